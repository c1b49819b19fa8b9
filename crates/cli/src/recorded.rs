//! A recording explained, and its parts in the shapes that advice, proof and report take.

use crate::explain;
use anyhow::{Context, Result};
use lineup_advise::usage::{Scale, TypedVariable, Usage};
use lineup_debuginfo::DebugInfo;
use lineup_explain::explanation::{Explanation, ImageUsage, LinesPerCall, RegionExplanation};
use lineup_explain::quantiles::Bar;
use lineup_explain::{Options, Survey};
use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::program::{Location, Variable};
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::{VariableRef, VariableUse};
use lineup_prove::RegionCalls;
use lineup_prove::footprint::{LineCounts, RegionFootprint};
use lineup_recording::{Header, Mode};
use lineup_report::study::{NotObserved, VariantUse};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

/// A recording with what it tells of one program.
pub(crate) struct Recorded {
    survey: Survey,
    debug: Vec<Option<DebugInfo>>,
    /// What the recorded calls touched.
    pub(crate) explanation: Explanation,
    /// Position of the program among the images.
    program: usize,
}

impl Recorded {
    /// Explains a recording of the program at this path.
    /// `known` is the program's debug info when it was read before.
    pub(crate) fn explain(
        recording: &Path,
        program: &Path,
        known: Option<DebugInfo>,
        options: Options,
    ) -> Result<Recorded> {
        let survey = explain::survey(recording)?;
        let position = survey.images.iter().position(|image| Path::new(&image.path) == program);
        let program = position.with_context(|| {
            let (recording, program) = (recording.display(), program.display());
            format!("{recording} holds no trace of {program}; was it recorded with another path?")
        })?;
        let debug = explain::debug_infos(recording, &survey, known.map(|known| (program, known)));
        let explanation = explain::explain(recording, &survey, &debug, options)?;
        Ok(Recorded { survey, debug, explanation, program })
    }

    /// The program's debug info.
    fn debug(&self) -> Option<&DebugInfo> {
        self.debug.get(self.program)?.as_ref()
    }

    /// The types of the program.
    pub(crate) fn types(&self) -> &Types {
        static NONE: LazyLock<Types> = LazyLock::new(Types::new);
        self.debug().map_or(&NONE, DebugInfo::types)
    }

    /// The program's machine and data model.
    pub(crate) fn abi(&self) -> Abi {
        self.survey.header.abi
    }

    /// True when a whole system was recorded.
    pub(crate) fn is_kernel(&self) -> bool {
        self.survey.header.mode == Mode::System
    }

    /// The emulator, as it names itself.
    pub(crate) fn emulator(&self) -> &str {
        &self.survey.header.emulator
    }

    /// Calls of a region that the program made in all.
    pub(crate) fn calls_made(&self, region: usize) -> Option<u64> {
        Some(self.survey.summary.as_ref()?.regions.get(region)?.seen)
    }

    /// Calls of every region, made and recorded.
    pub(crate) fn region_calls(&self) -> Vec<RegionCalls> {
        let calls = |(index, region): (usize, &RegionExplanation)| RegionCalls {
            region: region.name.clone(),
            made: self.calls_made(index),
            recorded: region.calls,
        };
        self.explanation.regions.iter().enumerate().map(calls).collect()
    }

    /// How regions use the program's own types and variables.
    fn own_usage(&self) -> Option<&ImageUsage> {
        self.explanation.usage.iter().find(|usage| usage.index == self.program)
    }

    /// Objects of the program's types: type and address.
    pub(crate) fn objects(&self) -> &[(TypeId, u64)] {
        self.own_usage().map(|own| own.objects.as_slice()).unwrap_or_default()
    }

    /// What was recorded, and how.
    pub(crate) fn header(&self) -> &Header {
        &self.survey.header
    }

    /// What advice is worked out from.
    pub(crate) fn usage(&self) -> Usage {
        let own = self.own_usage();
        let typed = |(variable, ty): &(VariableRef, _)| TypedVariable { variable: variable.clone(), ty: *ty };
        Usage {
            abi: self.abi(),
            threads: self.explanation.threads,
            regions: self.survey.header.regions.clone(),
            scales: self.explanation.regions.iter().map(|region| (region.id, scale(region))).collect(),
            types: own.map(|own| own.types.clone()).unwrap_or_default(),
            variables: own.map(described_variables).unwrap_or_default(),
            sharing: own.map(|own| own.sharing.clone()).unwrap_or_default(),
            variable_types: own.into_iter().flat_map(|own| &own.variable_types).map(typed).collect(),
            stack_types: self.stack_types(),
            per_cpu: self.per_cpu(),
        }
    }

    /// Types of which most objects that calls used lay on a stack.
    fn stack_types(&self) -> BTreeSet<TypeId> {
        let mut counts: BTreeMap<TypeId, (u64, u64)> = BTreeMap::new();
        for (ty, address) in self.objects() {
            let (all, on_stack) = counts.entry(*ty).or_default();
            *all += 1;
            let is_on = self.survey.stacks.iter().any(|stack| (stack.start..stack.end).contains(address));
            *on_stack += u64::from(is_on);
        }
        counts.into_iter().filter(|(_, (all, on_stack))| on_stack * 2 > *all).map(|(ty, _)| ty).collect()
    }

    /// Where Linux puts the variables of which every CPU has a copy.
    fn per_cpu(&self) -> Option<Range<u64>> {
        let sections = self.debug()?.sections();
        Some(sections.iter().find(|section| section.name == ".data..percpu")?.addresses.clone())
    }

    /// Lines per call, for the comparison.
    pub(crate) fn footprints(&self) -> Vec<RegionFootprint> {
        let counts = |lines: &LinesPerCall, bars: &[Bar]| {
            Some(LineCounts {
                line: LineSize::new(u32::try_from(lines.line_bytes).ok()?)?,
                calls_by_lines: bars.iter().map(|bar| (bar.value, bar.calls)).collect(),
            })
        };
        let footprint = |region: &RegionExplanation| RegionFootprint {
            region: region.name.clone(),
            weight: region.weight,
            data: region.lines.iter().filter_map(|lines| counts(lines, &lines.data_distribution)).collect(),
            code: region.lines.iter().filter_map(|lines| counts(lines, &lines.code_distribution)).collect(),
        };
        self.explanation.regions.iter().map(footprint).collect()
    }

    /// Lends what line maps are drawn from: the program's own types and variables.
    pub(crate) fn drawn<T>(&self, draw: impl FnOnce(VariantUse<'_>) -> T) -> T {
        let usage = self.own_usage().map(std::slice::from_ref).unwrap_or_default();
        let types = BTreeMap::from([(self.program, self.types())]);
        let variables = BTreeMap::from([(self.program, self.variables())]);
        draw(VariantUse { usage, types: &types, variables: &variables })
    }

    /// All variables of the program that have a fixed place.
    pub(crate) fn variables(&self) -> Vec<VariableRef> {
        let Some(debug) = self.debug() else { return Vec::new() };
        let place = |variable: &Variable| {
            let address = variable.places.iter().find_map(|place| match place.at {
                Location::Address(address) => Some(address),
                _ => None,
            })?;
            let size_bytes = debug.types().size_bytes(variable.ty?)?;
            Some(VariableRef { name: variable.name.as_deref()?.to_owned(), address, size_bytes })
        };
        debug.globals().iter().filter_map(place).collect()
    }

    /// What the recording could not see.
    pub(crate) fn not_observed(&self) -> Vec<NotObserved> {
        let mut all = Vec::new();
        let mut add = |what: String, consequence: &str| {
            all.push(NotObserved { what, consequence: consequence.to_owned() });
        };
        for region in &self.explanation.regions {
            if region.missed_blocks > 0 {
                add(
                    format!("{} executions of blocks in {}", region.missed_blocks, region.name),
                    "the first run did not see them inside the region; their accesses are missing",
                );
            }
            if region.unfinished > 0 {
                add(format!("{} calls of {} that had not ended", region.unfinished, region.name), "left out");
            }
        }
        let sizes = self.survey.summary.iter().flat_map(|summary| &summary.all_calls);
        for (region, sizes) in self.explanation.regions.iter().zip(sizes) {
            let recorded = region.instructions.filter(|_| sizes.calls() > region.calls);
            let unlike = recorded.filter(|recorded| !sizes.is_like(recorded.median as f64, recorded.mean));
            if let (Some(recorded), Some(median)) = (unlike, sizes.median()) {
                add(
                    format!(
                        "{} calls of {} that were not recorded",
                        sizes.calls() - region.calls,
                        region.name
                    ),
                    &format!(
                        "they are not like those that were: the median of all is {median} instructions, of the recorded {}",
                        recorded.median
                    ),
                );
            }
        }
        for note in self.survey.summary.iter().flat_map(|summary| &summary.notes) {
            add(note.clone(), "reported by the recorder");
        }
        if let Some(damage) = &self.survey.damage {
            add(format!("the recording after byte {}", damage.good_bytes), "the file was cut off there");
        }
        all
    }
}

/// What a region's calls need in all.
fn scale(region: &RegionExplanation) -> Scale {
    let lines = |bytes: u64| {
        let of_size = region.lines.iter().find(|lines| lines.line_bytes == bytes)?;
        Some(of_size.data.as_ref()?.mean)
    };
    let data_lines = || Some([lines(32)?, lines(64)?, lines(128)?]);
    let most_pressed = region.misses.iter().max_by_key(|misses| misses.pressure_bytes);
    Scale { data_lines: data_lines(), data_misses: most_pressed.map(|misses| misses.misses_per_call) }
}

/// How regions use the variables that debug info describes: what is known by its symbol alone has no type and no
/// source to edit.
fn described_variables(own: &ImageUsage) -> Vec<VariableUse> {
    let described: HashSet<&VariableRef> = own.variable_types.iter().map(|(variable, _)| variable).collect();
    let mut uses = own.variables.clone();
    for used in &mut uses {
        for pattern in &mut used.patterns {
            pattern.variables.retain(|(variable, _)| described.contains(variable));
        }
        used.patterns.retain(|pattern| !pattern.variables.is_empty());
    }
    uses.retain(|used| !used.patterns.is_empty());
    uses
}
