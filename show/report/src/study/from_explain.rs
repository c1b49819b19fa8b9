//! From the results of `explain` on the recordings of one or both variants.

use super::coverage::{ClassCount, Coverage, EvidenceCount, FunctionCount, SharedLine};
use super::from_usage::ObjectUse;
use super::line_map::{LineMap, Owner, OwnerKind};
use super::region::{Footprint, LineDistribution, LineKind, MissesPerCall, Quantiles, RegionReport};
use lineup_explain::explanation::{
    self, ExpectedMisses, Explanation, ImageUsage, LinesPerCall, RegionExplanation,
};
use lineup_explain::name::{Class, Evidence};
use lineup_explain::quantiles::Bar;
use lineup_model::line::LineSize;
use lineup_model::types::{AggregateKind, Language, TypeId, TypeKind, Types};
use lineup_model::usage::VariableRef;
use std::collections::BTreeMap;

impl RegionReport {
    /// A region of the unchanged program, with the same region of the changed program where that was recorded.
    /// `calls_made` counts all calls, recorded or not.
    pub fn of_explained(
        before: &RegionExplanation,
        after: Option<&RegionExplanation>,
        calls_made: Option<u64>,
    ) -> Self {
        let spread = |of: &lineup_explain::quantiles::Quantiles| Quantiles {
            min: of.min as f64,
            median: of.median as f64,
            max: of.max as f64,
        };
        let misses = |one: &ExpectedMisses| MissesPerCall {
            cache: one.cache.clone(),
            pressure_bytes: one.pressure_bytes,
            before: one.misses_per_call,
            after: after.and_then(|after| {
                let same = |other: &&ExpectedMisses| {
                    (&other.cache, other.pressure_bytes) == (&one.cache, one.pressure_bytes)
                };
                after.misses.iter().find(same).map(|other| other.misses_per_call)
            }),
        };
        Self {
            id: before.id,
            name: before.name.clone(),
            weight: before.weight,
            calls_recorded: before.calls,
            calls_made,
            calls_abandoned: before.abandoned,
            calls_per_second: before.calls_per_second,
            instructions_per_call: before.instructions.as_ref().map(spread),
            footprints: footprints(before, after),
            time: None,
            misses: before.misses.iter().map(misses).collect(),
        }
    }
}

fn footprints(before: &RegionExplanation, after: Option<&RegionExplanation>) -> Vec<Footprint> {
    let mut all = Vec::new();
    for kind in [LineKind::Data, LineKind::Code] {
        for lines in &before.lines {
            let new =
                after.and_then(|after| after.lines.iter().find(|new| new.line_bytes == lines.line_bytes));
            let (Some(before), Ok(line_bytes)) = (distribution(lines, kind), u32::try_from(lines.line_bytes))
            else {
                continue;
            };
            all.push(Footprint {
                kind,
                line_bytes,
                before,
                after: new.and_then(|new| distribution(new, kind)),
            });
        }
    }
    all
}

fn distribution(lines: &LinesPerCall, kind: LineKind) -> Option<LineDistribution> {
    let bars: &[Bar] = match kind {
        LineKind::Data => &lines.data_distribution,
        LineKind::Code => &lines.code_distribution,
    };
    LineDistribution::new(bars.iter().map(|bar| (bar.value, bar.calls)))
}

impl Coverage {
    /// Over all regions. Accesses without a name in functions that `explain` did not list are counted as
    /// `other functions`.
    pub fn of_explained(explained: &Explanation) -> Self {
        let of: &explanation::Coverage = &explained.coverage;
        let unnamed = of.by_class.get(&Class::Unnamed).copied().unwrap_or(0);
        let mut by_class: Vec<ClassCount> = of
            .by_class
            .iter()
            .filter(|(class, accesses)| **class != Class::Unnamed && **accesses > 0)
            .map(|(class, accesses)| ClassCount { class: class_words(*class).into(), accesses: *accesses })
            .collect();
        by_class.sort_by_key(|one| u64::MAX - one.accesses);
        let mut by_evidence: Vec<EvidenceCount> = of
            .by_evidence
            .iter()
            .filter(|(evidence, accesses)| **evidence != Evidence::None && **accesses > 0)
            .map(|(evidence, accesses)| EvidenceCount {
                evidence: evidence_words(*evidence).into(),
                accesses: *accesses,
            })
            .collect();
        by_evidence.sort_by_key(|one| u64::MAX - one.accesses);
        Self {
            accesses: of.accesses,
            named: of.accesses.saturating_sub(unnamed),
            share: of.named,
            share_off_stack: of.named_off_stack,
            by_class,
            by_evidence,
            unnamed_by_function: unnamed_by_function(explained, unnamed),
        }
    }
}

fn unnamed_by_function(explained: &Explanation, unnamed: u64) -> Vec<FunctionCount> {
    let mut listed: BTreeMap<&str, u64> = BTreeMap::new();
    for one in explained.regions.iter().flat_map(|region| &region.unnamed) {
        let function = if one.function.is_empty() { &one.image } else { &one.function };
        *listed.entry(function).or_default() += one.accesses;
    }
    let rest = unnamed.saturating_sub(listed.values().sum());
    let mut all: Vec<FunctionCount> = listed
        .into_iter()
        .map(|(function, accesses)| FunctionCount { function: function.into(), accesses })
        .collect();
    all.sort_by_key(|one| u64::MAX - one.accesses);
    if rest > 0 {
        all.push(FunctionCount { function: "other functions".into(), accesses: rest });
    }
    all
}

fn class_words(class: Class) -> &'static str {
    match class {
        Class::Variable => "global and static variables",
        Class::Member => "members of objects",
        Class::Stack => "stack",
        Class::Buffer => "arrays behind pointers",
        Class::Constant => "constants and linkage",
        Class::Library => "inside library functions",
        Class::Copied => "copied for programs, and pages",
        Class::Unnamed => "without a name",
    }
}

fn evidence_words(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::GlobalAddress => "address of a variable, symbol or section",
        Evidence::LocatedRegister => "variable in the base register",
        Evidence::Propagated => "pointer followed from where it was known",
        Evidence::Argument => "pointer that a recorded call was given",
        Evidence::PointerValue => "value of a typed pointer",
        Evidence::ObjectMap => "object map",
        Evidence::Frame => "distance from the frame",
        Evidence::StackRange => "stack of a thread",
        Evidence::PerCpu => "address of a CPU's copy of a variable",
        Evidence::ThreadBase => "distance from the thread's base",
        Evidence::ProgramAddress => "address of a program's, used by the kernel",
        Evidence::Code => "code of a library function, or of one that copies",
        Evidence::None => "none",
    }
}

impl From<&explanation::SharedLine> for SharedLine {
    fn from(line: &explanation::SharedLine) -> Self {
        Self {
            address: line.address,
            parts: line.parts.clone(),
            readers: line.readers.clone(),
            writers: line.writers.clone(),
            true_handovers: line.true_handovers,
            false_handovers: line.false_handovers,
        }
    }
}

/// One variant of a program: the results from its recording, and its debug info.
#[derive(Clone, Copy)]
pub struct VariantUse<'a> {
    /// The regions' accesses to types and variables, by image.
    pub usage: &'a [ImageUsage],
    /// The type table of each image that `usage` speaks of, by [`ImageUsage::index`].
    pub types: &'a BTreeMap<usize, &'a Types>,
    /// All variables of the images by [`ImageUsage::index`]: those that lie on touched lines are shown.
    pub variables: &'a BTreeMap<usize, Vec<VariableRef>>,
}

/// The line maps of all types and variables that the regions use, most accessed first. Each also has the lines of the
/// changed program's object of the same name.
pub fn maps(before: VariantUse<'_>, after: Option<VariantUse<'_>>, line: LineSize) -> Vec<LineMap> {
    let mut changed: Vec<DrawnOwner> = after.map_or_else(Vec::new, |after| draw(after, line));
    let mut all = draw(before, line);
    all.sort_by(|a, b| b.accesses.cmp(&a.accesses).then_with(|| a.owner.name.cmp(&b.owner.name)));
    let mut maps = Vec::with_capacity(all.len());
    for one in all {
        let same =
            |other: &DrawnOwner| (other.owner.kind, &other.owner.name) == (one.owner.kind, &one.owner.name);
        let beside = changed.iter().position(same).map(|index| changed.swap_remove(index).used);
        maps.push(LineMap::new(one.owner, line, one.used, beside));
    }
    maps
}

struct DrawnOwner {
    owner: Owner,
    accesses: u64,
    used: ObjectUse,
}

fn draw(variant: VariantUse<'_>, line: LineSize) -> Vec<DrawnOwner> {
    let mut all = Vec::new();
    for image in variant.usage {
        let Some(types) = variant.types.get(&image.index) else { continue };
        let mut accesses: BTreeMap<TypeId, u64> = BTreeMap::new();
        for one in &image.types {
            let runs = one.patterns.iter().flat_map(|pattern| &pattern.bytes);
            let total = runs.fold(0u64, |sum, run| sum.saturating_add(run.loads).saturating_add(run.stores));
            *accesses.entry(one.ty).or_default() += total;
        }
        for (id, accesses) in accesses {
            if let Some(used) = ObjectUse::of_type(types, id, &image.types, &image.sharing, line) {
                all.push(DrawnOwner { owner: type_owner(types, id), accesses, used });
            }
        }
        all.extend(draw_variables(variant, image, types, line));
    }
    all
}

fn draw_variables(
    variant: VariantUse<'_>,
    image: &ImageUsage,
    types: &Types,
    line: LineSize,
) -> Option<DrawnOwner> {
    let neighbours = variant.variables.get(&image.index).map_or(&[][..], Vec::as_slice);
    let used = ObjectUse::of_variables(
        types,
        &image.variables,
        &image.variable_types,
        neighbours,
        &image.sharing,
        line,
    );
    if used.lines.lines.is_empty() {
        return None;
    }
    let file = image.image.rsplit('/').next().unwrap_or(&image.image);
    let owner = Owner { kind: OwnerKind::Variables, name: format!("of {file}"), declared_at: None };
    let patterns =
        image.variables.iter().flat_map(|one| &one.patterns).flat_map(|pattern| &pattern.variables);
    let runs = patterns.flat_map(|(_, runs)| runs);
    let accesses = runs.fold(0u64, |sum, run| sum.saturating_add(run.loads).saturating_add(run.stores));
    Some(DrawnOwner { owner, accesses, used })
}

/// The name of a typedef that stands for a type without a name of its own.
fn typedef_of(types: &Types, id: TypeId) -> Option<&str> {
    types.typedefs_of(id).iter().filter_map(|typedef| types.get(*typedef)?.name.as_deref()).min()
}

fn type_owner(types: &Types, id: TypeId) -> Owner {
    let ty = types.get(id);
    let own = ty.and_then(|ty| ty.name.as_deref());
    let name = own.or_else(|| typedef_of(types, id)).unwrap_or("(anonymous)");
    let keyword = match ty.map(|ty| (ty.language, &ty.kind)) {
        Some((Language::C, TypeKind::Aggregate(aggregate))) => match aggregate.kind {
            AggregateKind::Struct => "struct ",
            AggregateKind::Union => "union ",
            AggregateKind::Class | AggregateKind::Variants => "",
        },
        _ => "",
    };
    // A typedef of a struct without a tag is a name of its own.
    let keyword = if own.is_some() { keyword } else { "" };
    let declared_at = ty.and_then(|ty| ty.declared_at.as_ref()).map(|at| format!("{}:{}", at.file, at.line));
    Owner { kind: OwnerKind::Type, name: format!("{keyword}{name}"), declared_at }
}
