//! The usage of recorded calls, as JSON that replaces the recording where the program is not available.

use crate::recordings::survey::{Surveyed, survey};
use crate::recordings::usage;
use crate::terminal::progress::{ReadInStage, Stages};
use anyhow::{Context, Result, bail};
use lineup_advise::data_model::DataModel;
use lineup_debuginfo::DebugInfo;
use lineup_explain::Explanation;
use lineup_explain::explanation::{ImageUsage, RegionExplanation};
use lineup_model::image::LoadedImage;
use lineup_model::types::{AggregateKind, Member, TypeId, Types};
use lineup_model::usage::{ByteUse, TypeUse, VariableUse};
use lineup_study::companions::DebugInfos;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The document.
#[derive(Serialize)]
pub(crate) struct UsageJson {
    schema: &'static str,
    file: String,
    content_sha256: String,
    recorded_at_s: Option<u64>,
    host: String,
    program: String,
    build_id: Option<String>,
    command: Vec<String>,
    recorder: String,
    machine: &'static str,
    data_model: &'static str,
    threads: u64,
    accesses: u64,
    named: Option<f64>,
    regions: Vec<RegionJson>,
    types: Vec<TypeJson>,
    uses: Vec<UseJson>,
    variables: Vec<VariableJson>,
    shared_lines: Vec<SharedLineJson>,
}

#[derive(Serialize)]
struct RegionJson {
    name: String,
    weight: f64,
    calls: u64,
    calls_made: Option<u64>,
    calls_per_second: Option<f64>,
    instructions_per_call: Option<f64>,
    data_lines_32: Option<f64>,
    data_lines_64: Option<f64>,
    data_lines_128: Option<f64>,
    code_lines_64: Option<f64>,
    data_misses_per_call: Option<f64>,
    stall_cycles_per_call: Option<f64>,
}

#[derive(Serialize)]
struct TypeJson {
    name: String,
    image: String,
    build_id: Option<String>,
    kind: &'static str,
    size_bytes: u64,
    align_bytes: u64,
    first_is_held: bool,
    members: Vec<MemberJson>,
}

#[derive(Serialize)]
struct MemberJson {
    name: Option<String>,
    #[serde(rename = "type")]
    type_name: String,
    offset_bits: Option<u64>,
    bit_size: Option<u32>,
    size_bytes: Option<u64>,
    align_bytes: Option<u64>,
}

impl TypeJson {
    /// True when both files describe one type, as the explanation sees it.
    fn is_same_in_other_image(&self, other: &TypeJson) -> bool {
        let place = |member: &MemberJson| (member.name.clone(), member.offset_bits, member.bit_size);
        let places = |ty: &TypeJson| ty.members.iter().map(place).collect::<Vec<_>>();
        self.image != other.image
            && (&self.name, self.size_bytes) == (&other.name, other.size_bytes)
            && places(self) == places(other)
    }
}

#[derive(Serialize)]
struct UseJson {
    region: usize,
    #[serde(rename = "type")]
    type_index: usize,
    calls: u64,
    patterns: Vec<PatternJson>,
}

#[derive(Serialize)]
struct PatternJson {
    base_in_line: u8,
    neighbour_distance_bytes: Option<u64>,
    occurrences: u64,
    needed_anyway: NeededAnywayJson,
    bytes: Vec<BytesJson>,
}

/// For lines of 32, 64 and 128 bytes.
#[derive(Serialize)]
struct NeededAnywayJson {
    first: [u64; 3],
    last: [u64; 3],
    both: [u64; 3],
}

#[derive(Serialize)]
struct BytesJson {
    offset: u64,
    size_bytes: u64,
    loads: u64,
    stores: u64,
}

#[derive(Serialize)]
struct VariableJson {
    region: usize,
    name: String,
    size_bytes: u64,
    loads: u64,
    stores: u64,
}

#[derive(Serialize)]
struct SharedLineJson {
    address: String,
    parts: Vec<String>,
    readers: usize,
    writers: usize,
    true_handovers: u64,
    false_handovers: u64,
}

/// The recording's use, under the name that the user gave it.
///
/// # Errors
/// When the recording is damaged: the missing part is unknown.
pub(crate) fn of_recording(
    surveyed: &Surveyed,
    debug: &[Option<DebugInfo>],
    explanation: &Explanation,
    stages: &Stages,
) -> Result<UsageJson> {
    let survey = &surveyed.survey;
    if let Some(damage) = &survey.damage {
        bail!("{}: {damage}; it is left out whole: record again", surveyed.path.display());
    }
    let header = &survey.header;
    let program = program(surveyed);
    let mut types = UsedTypes { debug, images: &survey.images, all: Vec::new(), known: BTreeMap::new() };
    let (mut uses, mut variables) = (Vec::new(), Vec::new());
    for usage in &explanation.usage {
        uses.extend(usage.types.iter().filter_map(|used| types.use_of(usage, used)));
        variables.extend(usage.variables.iter().flat_map(variables_of));
    }
    Ok(UsageJson {
        schema: "lineup.usage/1",
        file: surveyed.path.display().to_string(),
        content_sha256: hash(&surveyed.file, stages)?,
        recorded_at_s: written_at(&surveyed.file),
        host: host(),
        program: program.map(|image| image.path.clone()).unwrap_or_default(),
        build_id: program.and_then(build_id),
        command: header.command.clone(),
        recorder: header.emulator.clone(),
        machine: header.abi.machine.description().name,
        data_model: header.abi.data_model(),
        threads: explanation.threads,
        accesses: explanation.coverage.accesses,
        named: explanation.coverage.named,
        regions: explanation.regions.iter().map(|region| region_json(surveyed, region)).collect(),
        types: types.all,
        uses,
        variables,
        shared_lines: explanation.shared_lines.iter().map(shared_line).collect(),
    })
}

fn hash(file: &File, stages: &Stages) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut bytes = ReadInStage::new(file.try_clone()?, stages);
    std::io::copy(&mut bytes, &mut hasher).context("cannot read the recording again")?;
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The name of this machine.
fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned()
}

fn written_at(file: &File) -> Option<u64> {
    let modified = file.metadata().ok()?.modified().ok()?;
    Some(modified.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// The file that holds most of the regions' functions; else the first that is no library.
fn program(surveyed: &Surveyed) -> Option<&LoadedImage> {
    let survey = &surveyed.survey;
    let regions =
        |image: &LoadedImage| survey.header.regions.iter().filter(|(_, one)| one.image == image.path).count();
    let most = survey.images.iter().rev().max_by_key(|image| regions(image)).filter(|one| regions(one) > 0);
    let named = |image: &&LoadedImage| Path::new(&image.path).is_absolute() && !image.is_shared_library();
    most.or_else(|| survey.images.iter().find(named)).or(survey.images.first())
}

fn build_id(image: &LoadedImage) -> Option<String> {
    Some(image.build_id.as_ref()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn region_json(surveyed: &Surveyed, region: &RegionExplanation) -> RegionJson {
    let place = usize::from(region.id.0);
    let lines = |bytes: u64| region.lines.iter().find(|lines| lines.line_bytes == bytes);
    let data = |bytes: u64| Some(lines(bytes)?.data.as_ref()?.mean);
    let counts = surveyed.survey.summary.as_ref().and_then(|summary| summary.regions.get(place));
    let pressed = region.misses.iter().max_by_key(|misses| misses.pressure_bytes);
    RegionJson {
        name: region.name.clone(),
        weight: region.weight,
        calls: region.calls,
        calls_made: counts.map(|counts| counts.seen),
        calls_per_second: region.calls_per_second,
        instructions_per_call: region.instructions.map(|instructions| instructions.mean),
        data_lines_32: data(32),
        data_lines_64: data(64),
        data_lines_128: data(128),
        code_lines_64: lines(64).and_then(|lines| Some(lines.code.as_ref()?.mean)),
        data_misses_per_call: pressed.map(|misses| misses.misses_per_call),
        stall_cycles_per_call: surveyed.survey.stalls.of_region(place).map(|stalls| stalls.cycles_per_call),
    }
}

fn shared_line(line: &lineup_explain::explanation::SharedLine) -> SharedLineJson {
    SharedLineJson {
        address: format!("{:#x}", line.address),
        parts: line.parts.clone(),
        readers: line.readers.len(),
        writers: line.writers.len(),
        true_handovers: line.true_handovers,
        false_handovers: line.false_handovers,
    }
}

fn variables_of(used: &VariableUse) -> Vec<VariableJson> {
    let mut sums: BTreeMap<(&str, u64, u64), (u64, u64)> = BTreeMap::new();
    for (variable, bytes) in used.patterns.iter().flat_map(|pattern| &pattern.variables) {
        let sum = sums.entry((&variable.name, variable.address, variable.size_bytes)).or_default();
        sum.0 += bytes.iter().map(|bytes| bytes.loads).sum::<u64>();
        sum.1 += bytes.iter().map(|bytes| bytes.stores).sum::<u64>();
    }
    let json = |((name, _, size_bytes), (loads, stores)): ((&str, u64, u64), (u64, u64))| VariableJson {
        region: usize::from(used.region.0),
        name: name.to_owned(),
        size_bytes,
        loads,
        stores,
    };
    sums.into_iter().map(json).collect()
}

/// The types that calls used, each once.
struct UsedTypes<'d> {
    debug: &'d [Option<DebugInfo>],
    images: &'d [LoadedImage],
    all: Vec<TypeJson>,
    known: BTreeMap<(usize, TypeId), usize>,
}

impl UsedTypes<'_> {
    /// The use of a type; `None` for one that another file describes as well, whose use stands there.
    fn use_of(&mut self, usage: &ImageUsage, used: &TypeUse) -> Option<UseJson> {
        let type_index = self.index(usage, used.ty)?;
        if self.all[type_index].image != usage.image {
            return None;
        }
        // An object that was used as another type begins with that type.
        self.all[type_index].first_is_held |= !used.used_as.is_empty();
        let bytes = |bytes: &ByteUse| BytesJson {
            offset: bytes.offset,
            size_bytes: bytes.size_bytes,
            loads: bytes.loads,
            stores: bytes.stores,
        };
        let patterns = used.patterns.iter().map(|pattern| PatternJson {
            base_in_line: pattern.base_in_line,
            neighbour_distance_bytes: pattern.neighbour_distance_bytes,
            occurrences: pattern.occurrences,
            needed_anyway: NeededAnywayJson {
                first: pattern.needed_anyway.first,
                last: pattern.needed_anyway.last,
                both: pattern.needed_anyway.both,
            },
            bytes: pattern.bytes.iter().map(bytes).collect(),
        });
        let patterns = patterns.collect();
        Some(UseJson { region: usize::from(used.region.0), type_index, calls: used.calls, patterns })
    }

    fn index(&mut self, usage: &ImageUsage, ty: TypeId) -> Option<usize> {
        let types = self.debug.get(usage.index)?.as_ref()?.types();
        let (id, aggregate) = types.aggregate(ty)?;
        if let Some(index) = self.known.get(&(usage.index, id)) {
            return Some(*index);
        }
        let named = |id: &TypeId| types.get(*id).and_then(|ty| ty.name.as_deref());
        let name = named(&id).or_else(|| types.typedefs_of(id).iter().find_map(named))?;
        let shapes = DataModel::new(types, usage.abi, usage.abi);
        let shape = shapes.shape(id)?;
        let found = TypeJson {
            name: name.to_owned(),
            image: usage.image.clone(),
            build_id: self.images.get(usage.index).and_then(build_id),
            kind: match aggregate.kind {
                AggregateKind::Struct => "struct",
                AggregateKind::Class => "class",
                AggregateKind::Union => "union",
                AggregateKind::Variants => "variants",
            },
            size_bytes: shape.size_bytes,
            align_bytes: shape.align_bytes,
            first_is_held: false,
            members: aggregate.members.iter().map(|member| member_json(types, &shapes, member)).collect(),
        };
        let index = match self.all.iter().position(|known| known.is_same_in_other_image(&found)) {
            Some(index) => index,
            None => {
                self.all.push(found);
                self.all.len() - 1
            }
        };
        self.known.insert((usage.index, id), index);
        Some(index)
    }
}

fn member_json(types: &Types, shapes: &DataModel<'_>, member: &Member) -> MemberJson {
    MemberJson {
        name: member.name.as_deref().map(str::to_owned),
        type_name: types.spell(Some(member.ty), ""),
        offset_bits: member.offset_bits,
        bit_size: member.bit_size,
        size_bytes: types.size_bytes(member.ty),
        align_bytes: shapes
            .shape(member.ty)
            .map(|shape| shape.align_bytes.max(member.declared_align.unwrap_or(1))),
    }
}

/// The usage by the calls of a recording, for `lineup fleet add`.
pub(crate) fn usage_of(recording: &Path, stages: &Stages) -> Result<UsageJson> {
    let surveyed = survey(recording, stages)?;
    let debug = surveyed.debug_infos(&mut DebugInfos::default(), stages);
    let explanation = surveyed.explain(&debug, Default::default(), stages)?;
    usage::of_recording(&surveyed, &debug, &explanation, stages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::region::RegionId;
    use lineup_model::usage::{VariablePattern, VariableRef};
    use std::collections::BTreeSet;

    #[test]
    fn variables_of_one_name_at_two_places_stay_apart() {
        let at = |address| VariableRef { name: "state".into(), address, size_bytes: 8 };
        let bytes = |loads| vec![ByteUse { offset: 0, size_bytes: 8, loads, stores: 0 }];
        let pattern =
            |address, loads| VariablePattern { variables: vec![(at(address), bytes(loads))], occurrences: 1 };
        let patterns = vec![pattern(64, 2), pattern(128, 3), pattern(64, 5)];
        let all = variables_of(&VariableUse { region: RegionId(1), calls: 3, patterns });
        let loads: BTreeSet<u64> = all.iter().map(|one| one.loads).collect();
        assert_eq!(loads, BTreeSet::from([3, 7]));
        assert!(all.iter().all(|one| one.region == 1 && one.name == "state"));
    }
}
