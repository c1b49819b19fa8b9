//! Globals used together, gathered into one aligned struct.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::judge::asserted::Asserted;
use crate::judge::compiler::{Compiled, Judge};
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::gather::arrangement::{self, Candidate};
use crate::kinds::gather::struct_text::{self, Gathering, Planned};
use crate::kinds::order::member_order::{self, RequiredGain, Verdict};
use crate::kinds::saving_share;
use crate::layout::spelling::spelling;
use crate::layout::subject::{Subject, is_write_shared};
use crate::options::Options;
use crate::proposal::{Advice, Check, GATHER, GatherProposal, OrderProposal, Refusal};
use crate::text::sources::Sources;
use crate::usage::Usage;
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::{ObjectPattern, Owner, TypeUse, VariableRef};
use std::collections::{BTreeMap, BTreeSet};

/// A variable belongs to the hot ones when a call of some region touches it at least this often.
const LEAST_TOUCHES_PER_CALL: f64 = 0.25;

/// Larger variables fill lines of their own; gathering them moves the others apart.
const LARGEST_BYTES: u64 = 256;

/// Variables that calls use together become members of one aligned object, per source file.
pub(crate) struct Gathers;

impl FixKind for Gathers {
    fn name(&self) -> KindName {
        GATHER
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        propose(task, advice)
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.gathers.iter().map(describe).collect()
    }
}

fn propose(task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
    let Task { usage, types, sources, options, judge } = task;
    let mut by_file: BTreeMap<String, Vec<(VariableRef, Planned)>> = BTreeMap::new();
    let hot = hot_variables(usage, types);
    if hot.len() < 2 {
        return Ok(());
    }
    let compiled = struct_text::compiled_files(sources, types);
    for variable in hot {
        if let Some(refusal) = options.refusal_of(&variable.name) {
            advice.refusals.push(refusal);
            continue;
        }
        match plan(usage, sources, &compiled, &variable) {
            Ok((path, planned)) => by_file.entry(path).or_default().push((variable, planned)),
            Err(binding) => advice.refusals.push(Refusal {
                owner: variable.name.clone(),
                constraints: vec![binding],
                lines: Vec::new(),
            }),
        }
    }
    for (path, variables) in by_file {
        if variables.len() < 2 {
            continue;
        }
        let job = Job { usage, types, options, path: &path };
        match job.gather(variables, &sources.with(&advice.edited), &advice.edited, &mut **judge)? {
            Ok(Some(proposal)) => {
                if let Some(little) = saving_share::too_little(usage, options, &describe(&proposal)) {
                    advice.too_little.push(little);
                    continue;
                }
                advice.edited.extend(proposal.edited.clone());
                advice.gathers.push(proposal);
            }
            Ok(None) => {}
            Err(refusal) => advice.refusals.push(refusal),
        }
    }
    Ok(())
}

fn describe(one: &GatherProposal) -> Description {
    let reordered = |name: &String| format!("The members of {name} are reordered, hot ones first.");
    let summary = format!("In {}, they become members of one aligned struct, {}.", one.path, one.name);
    Description {
        reasons: one.reordered_types.iter().map(reordered).collect(),
        lines: one.lines.clone(),
        sizes: one.sizes.clone(),
        obeyed: one.notes.clone(),
        check: Some(one.check),
        is_in_patch: !one.edited.is_empty(),
        ..Description::told(GATHER, one.variables.join(", "), summary)
    }
}

/// Variables that calls touch often, in order of address.
fn hot_variables(usage: &Usage, types: &Types) -> Vec<VariableRef> {
    let mut hot: BTreeMap<u64, VariableRef> = BTreeMap::new();
    for used in &usage.variables {
        let mut touches: BTreeMap<&VariableRef, u64> = BTreeMap::new();
        for pattern in &used.patterns {
            for (variable, _) in &pattern.variables {
                *touches.entry(variable).or_default() += pattern.occurrences;
            }
        }
        for (variable, count) in touches {
            if count as f64 >= LEAST_TOUCHES_PER_CALL * used.calls.max(1) as f64 {
                hot.insert(variable.address, variable.clone());
            }
        }
    }
    // Data under contention is parted, not gathered.
    let is_of_fought_type = |one: &VariableRef| {
        let known = usage.variable_types.iter().find(|known| known.variable == *one);
        let element = known.and_then(|known| types.aggregate(element(types, known.ty)?));
        element.is_some_and(|(ty, _)| usage.fought_over.iter().any(|fought| fought.ty == ty))
    };
    let is_fought_over = |one: &VariableRef| {
        usage.fought_variables.iter().any(|fought| fought.variables.contains(one)) || is_of_fought_type(one)
    };
    hot.into_values().filter(|one| !is_fought_over(one)).collect()
}

/// The element type of an array, or the type itself.
fn element(types: &Types, ty: TypeId) -> Option<TypeId> {
    let ty = types.strip(ty)?;
    match types.get(ty).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, .. }) => Some(*element),
        _ => Some(ty),
    }
}

/// Finds a variable's definition and all its uses.
fn plan(
    usage: &Usage,
    sources: &Sources,
    compiled: &BTreeSet<String>,
    variable: &VariableRef,
) -> Result<(String, Planned), Binding> {
    if variable.size_bytes > LARGEST_BYTES {
        let why = format!("{} bytes", variable.size_bytes);
        return Err(Binding::new(Constraint::TooLarge).on([&variable.name]).because(why));
    }
    if usage.is_per_cpu(variable) {
        return Err(Binding::new(Constraint::PerCpu).on([&variable.name]));
    }
    let uses: u64 =
        usage.variables.iter().flat_map(|used| &used.patterns).map(|pattern| pattern.occurrences).sum();
    let is_shared = usage
        .sharing
        .iter()
        .any(|sharing| sharing.owner == Owner::Variable(variable.clone()) && is_write_shared(sharing, uses));
    if is_shared {
        return Err(Binding::new(Constraint::WrittenByOthers).on([&variable.name]));
    }
    struct_text::plan(sources, compiled, &variable.name)
}

struct Job<'j> {
    usage: &'j Usage,
    types: &'j Types,
    options: &'j Options,
    path: &'j str,
}

impl Job<'_> {
    fn gather(
        &self,
        variables: Vec<(VariableRef, Planned)>,
        sources: &Sources,
        edited: &BTreeMap<String, String>,
        judge: &mut dyn Judge,
    ) -> Result<Result<Option<GatherProposal>, Refusal>, AdviseError> {
        let mut candidates = self.candidates(&variables);
        if candidates.len() < 2 {
            return Ok(Ok(None));
        }
        let (reordered, texts) = self.reorder_types(&mut candidates, sources, edited, judge)?;
        let best = arrangement::best_arrangement(self.usage, self.types, self.options, candidates);
        let Some(arrangement) = best.filter(|best| best.gain > 0.01) else { return Ok(Ok(None)) };
        let names: Vec<String> =
            arrangement.order.iter().map(|candidate| candidate.variable.name.clone()).collect();
        let current = sources.with(&texts);
        let refuse = |binding: Binding| {
            let lines = arrangement.lines.clone();
            Ok(Err(Refusal { owner: names.join(", "), constraints: vec![binding], lines }))
        };
        let written = self.gathering(&current, &names).and_then(|gathering| {
            let text = struct_text::write(&current, self.path, &gathering)?;
            Ok((gathering, text))
        });
        let (gathering, text) = match written {
            Ok(written) => written,
            Err(binding) => return refuse(binding),
        };
        let mut proposal_texts = texts;
        proposal_texts.insert(self.path.to_string(), text);
        let mut all = edited.clone();
        all.extend(proposal_texts.clone());
        let of_recorded = arrangement.offsets.iter().find(|(abi, _)| *abi == self.usage.abi);
        let asserted = of_recorded
            .map(|(_, offsets)| Asserted::of_variable(&gathering.name, self.path, &names, offsets));
        let check = match self.confirm(judge, &all, &names, &arrangement, asserted.as_ref())? {
            Ok(check) => check,
            Err(binding) => return refuse(binding),
        };
        Ok(Ok(Some(GatherProposal {
            name: gathering.name.clone(),
            path: self.path.to_string(),
            reordered_types: reordered.iter().map(|proposal| proposal.type_name.clone()).collect(),
            lines: arrangement.lines,
            sizes: arrangement.sizes,
            check,
            notes: gathering.notes(self.path),
            variables: names,
            asserted: reordered.into_iter().flat_map(|one| one.asserted).chain(asserted).collect(),
            edited: proposal_texts,
        })))
    }

    /// The variables whose type is known.
    fn candidates(&self, variables: &[(VariableRef, Planned)]) -> Vec<Candidate> {
        let known_type = |variable: &VariableRef| {
            self.usage.variable_types.iter().find(|known| known.variable == *variable).map(|known| known.ty)
        };
        let of = |(variable, _): &(VariableRef, Planned)| {
            Some(Candidate { variable: variable.clone(), ty: known_type(variable)?, order: None })
        };
        variables.iter().filter_map(of).collect()
    }

    /// The edit: one aligned object that holds the variables `names` in that order.
    fn gathering(&self, sources: &Sources, names: &[String]) -> Result<Gathering, Binding> {
        let compiled = struct_text::compiled_files(sources, self.types);
        let plan = |name: &String| struct_text::plan(sources, &compiled, name).map(|(_, plan)| plan);
        let region = self.usage.regions.iter().next().map_or("hot", |(_, region)| region.name.as_str());
        Ok(Gathering {
            name: struct_text::free_name(sources, region),
            align_bytes: self.options.primary.bytes(),
            regions: self.usage.regions.iter().map(|(_, region)| region.name.clone()).collect(),
            variables: names.iter().map(plan).collect::<Result<_, _>>()?,
        })
    }

    /// Orders the members of struct-typed variables hot first, each for its own place.
    fn reorder_types(
        &self,
        candidates: &mut [Candidate],
        sources: &Sources,
        edited: &BTreeMap<String, String>,
        judge: &mut dyn Judge,
    ) -> Result<(Vec<OrderProposal>, BTreeMap<String, String>), AdviseError> {
        let mut proposals: Vec<OrderProposal> = Vec::new();
        let mut texts: BTreeMap<String, String> = BTreeMap::new();
        let scalars: u64 = candidates
            .iter()
            .filter(|candidate| self.types.aggregate(candidate.ty).is_none())
            .map(|candidate| candidate.variable.size_bytes)
            .sum();
        let mut seen: BTreeSet<TypeId> = BTreeSet::new();
        for candidate in candidates.iter_mut() {
            let Some((id, _)) = self.types.aggregate(candidate.ty).filter(|(id, _)| seen.insert(*id)) else {
                continue;
            };
            let usage = self.usage_as_type(&candidate.variable, id, scalars);
            let (Some(subject), Some(spelling)) =
                (Subject::new(self.types, id, &usage), spelling(self.types, id))
            else {
                continue;
            };
            let mut before = edited.clone();
            before.extend(texts.clone());
            let current = sources.with(&texts);
            if let Verdict::Proposed(proposal) = member_order::propose(
                &subject,
                &spelling,
                &current,
                self.options,
                judge,
                &before,
                RequiredGain::PlacedAnyway,
            )? {
                candidate.order = Some(proposal.field_order.clone());
                texts.extend(proposal.edited.clone());
                proposals.push(*proposal);
            }
        }
        Ok((proposals, texts))
    }

    /// The use of a variable as use of its type's one object, placed after `before_bytes` of other data.
    fn usage_as_type(&self, variable: &VariableRef, id: TypeId, before_bytes: u64) -> Usage {
        let mut usage = self.usage.clone();
        usage.types.clear();
        for used in &self.usage.variables {
            let mut patterns = Vec::new();
            for pattern in &used.patterns {
                let bytes = pattern.variables.iter().find(|(known, _)| known == variable);
                let base_in_line = (before_bytes % 128) as u8;
                patterns.extend(bytes.map(|(_, bytes)| {
                    ObjectPattern::alone(base_in_line, bytes.clone(), pattern.occurrences)
                }));
            }
            usage.types.push(TypeUse {
                region: used.region,
                ty: id,
                calls: used.calls,
                patterns,
                used_as: BTreeSet::new(),
            });
        }
        usage
    }

    /// Has the declaration checked, or compiles the candidate and looks for a struct with these members at these
    /// offsets.
    fn confirm(
        &self,
        judge: &mut dyn Judge,
        edited: &BTreeMap<String, String>,
        names: &[String],
        arrangement: &arrangement::Arrangement,
        asserted: Option<&Asserted>,
    ) -> Result<Result<Check, Binding>, AdviseError> {
        if let Some(asserted) = asserted {
            match judge.declares(edited, asserted) {
                Ok(true) => return Ok(Ok(Check::CompiledRecordedOnly)),
                Ok(false) => {}
                Err(error) => return Ok(Err(disagrees(error.into_first_words()?))),
            }
        }
        match judge.compile(edited) {
            Ok(compiled) => Ok(self.hold_against(&compiled, names, arrangement)),
            Err(error) => Ok(Err(disagrees(error.into_first_words()?))),
        }
    }

    fn hold_against(
        &self,
        compiled: &[Compiled],
        names: &[String],
        arrangement: &arrangement::Arrangement,
    ) -> Result<Check, Binding> {
        let mut recorded = false;
        let mut others = true;
        for build in compiled {
            let found = build.types.iter().find_map(|(_, ty)| match &ty.kind {
                lineup_model::types::TypeKind::Aggregate(aggregate)
                    if aggregate
                        .members
                        .iter()
                        .map(|member| member.name.as_deref())
                        .eq(names.iter().map(|name| Some(name.as_str()))) =>
                {
                    aggregate.members.iter().map(|member| member.offset_bytes()).collect::<Option<Vec<u64>>>()
                }
                _ => None,
            });
            let found =
                found.ok_or_else(|| disagrees("the gathered struct is not in the build".to_string()))?;
            let is_recorded = build.abi == self.usage.abi;
            let matches =
                arrangement.offsets.iter().any(|(abi, offsets)| *abi == build.abi && *offsets == found);
            if is_recorded && !matches {
                return Err(disagrees(format!("offsets are {found:?}")));
            }
            recorded |= is_recorded;
            others &= matches || is_recorded;
        }
        Ok(match (recorded, others && compiled.len() > 1) {
            (true, true) => Check::Compiled,
            (true, false) => Check::CompiledRecordedOnly,
            _ => Check::Predicted,
        })
    }
}

fn disagrees(why: String) -> Binding {
    Binding::new(Constraint::CompilerDisagrees).because(why)
}
