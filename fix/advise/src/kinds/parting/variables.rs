//! Variables of different threads on lines of their own, and elements of an array that different threads use.
//!
//! An alignment changes only the place of a variable. Elements of an array get room by one more dimension, of which
//! only the first place is used: every use names an element, or the array is not changed.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::judge::asserted::Asserted;
use crate::judge::compiler::Judge;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::gather::struct_text::compiled_files;
use crate::kinds::parting::variables_text::{self, Edit};
use crate::layout::granules::Granules;
use crate::options::Options;
use crate::proposal::{
    Advice, PART, PredictedWaits, Refusal, RegionLines, SizeChange, Suggestion, VariableLayout,
    VariablesProposal,
};
use crate::text::sources::Sources;
use crate::usage::Usage;
use lineup_explain::threads::{Remedy, VariableElsewhere};
use lineup_model::line::LineSize;
use lineup_model::types::{TypeKind, Types};
use lineup_model::usage::{FoughtVariables, VariableRef};
use std::collections::{BTreeMap, BTreeSet};

/// An array that would become larger than this is not indexed by thread.
const MOST_BYTES: u64 = 1 << 16;

/// Variables apart, and elements of arrays.
pub(crate) struct VariablesApart;

impl FixKind for VariablesApart {
    fn name(&self) -> KindName {
        PART
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let mut done: BTreeSet<String> = BTreeSet::new();
        for fought in task.usage.fought_variables.clone() {
            let is_new = |variable: &VariableRef| !done.contains(&variable.name);
            let variables: Vec<VariableRef> =
                fought.variables.iter().filter(|one| is_new(one)).cloned().collect();
            if variables.is_empty() {
                continue;
            }
            done.extend(variables.iter().map(|one| one.name.clone()));
            let names: Vec<&str> = variables.iter().map(|one| one.name.as_str()).collect();
            let owner = names.join(", ");
            if !task.options.allow_growth {
                let told = format!("{} --allow-growth tries it.", said(&fought, task.options));
                advice.suggestions.push(Suggestion::new(PART, owner, told));
                continue;
            }
            match part(task, advice, &fought, &variables)? {
                Ok(proposal) => {
                    advice.edited.extend(proposal.edited.clone());
                    advice.variables.push(proposal);
                }
                Err(refusal) => advice.refusals.push(refusal),
            }
        }
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.variables.iter().map(describe).collect()
    }
}

fn said(fought: &FoughtVariables, options: &Options) -> String {
    let what = match fought.is_inside {
        true => "Different threads use elements of it",
        false => "Different threads use these variables",
    };
    format!(
        "{what} on one line of {} bytes: {:.1} waits in a thousand accesses as recorded, up to {:.1} in other orders of the same \
         accesses.",
        options.primary.bytes(),
        fought.per_thousand,
        fought.per_thousand_at_most
    )
}

fn describe(one: &VariablesProposal) -> Description {
    let summary = match one.layout {
        VariableLayout::Aligned => format!("Each is aligned to {} bytes. {}", one.line_bytes, one.because),
        VariableLayout::Spread { .. } => {
            format!("Each element gets {} bytes of its own. {}", one.line_bytes, one.because)
        }
    };
    let size = one.sizes.first();
    let price =
        size.map(|size| format!("Price: {} bytes become up to {}.", size.before_bytes, size.after_bytes));
    let checked = "The compiler was asked for the alignment and the size.".to_owned();
    Description {
        reasons: price.into_iter().chain(one.is_asserted.then_some(checked)).collect(),
        predicted: one.predicted,
        lines: one.lines.clone(),
        sizes: one.sizes.clone(),
        is_in_patch: !one.edited.is_empty(),
        ..Description::told(PART, one.variables.join(", "), summary)
    }
}

type Parted = Result<Result<VariablesProposal, Refusal>, AdviseError>;

fn part(task: &mut Task<'_>, advice: &Advice, fought: &FoughtVariables, variables: &[VariableRef]) -> Parted {
    let (usage, types, options) = (task.usage, task.types, task.options);
    let names: Vec<String> = variables.iter().map(|one| one.name.clone()).collect();
    let refuse =
        |binding: Binding| Refusal { owner: names.join(", "), constraints: vec![binding], lines: Vec::new() };
    if let Some(refusal) = names.iter().find_map(|name| options.refusal_of(name)) {
        return Ok(Err(refusal));
    }
    if let Some(kept) = names.iter().find(|name| options.keeps.contains(name)) {
        return Ok(Err(refuse(Binding::new(Constraint::Kept).on([kept]))));
    }
    let layout = match layout(usage, types, options, fought, variables) {
        Ok(layout) => layout,
        Err(binding) => return Ok(Err(refuse(binding))),
    };
    let written = match write(&task.sources.with(&advice.edited), types, variables, layout, options) {
        Ok(written) => written,
        Err(binding) => return Ok(Err(refuse(binding))),
    };
    if written.texts.is_empty() {
        let why = "each has that alignment, and none of the others follows on its lines".to_owned();
        return Ok(Err(refuse(Binding::new(Constraint::LayoutNotReproduced).because(why))));
    }
    let mut all = advice.edited.clone();
    all.extend(written.texts.clone());
    let is_asserted = match confirm(&mut *task.judge, &all, &written.asserted)? {
        Ok(is_asserted) => is_asserted,
        Err(binding) => return Ok(Err(refuse(binding))),
    };
    let after = |variable: &VariableRef| match layout {
        VariableLayout::Aligned => variable.size_bytes.next_multiple_of(options.primary.bytes()),
        VariableLayout::Spread { element_bytes, .. } => {
            variable.size_bytes / element_bytes * options.primary.bytes()
        }
    };
    let size = SizeChange {
        data_model: usage.abi.data_model(),
        before_bytes: variables.iter().map(|one| one.size_bytes).sum(),
        after_bytes: variables.iter().map(after).sum(),
    };
    Ok(Ok(VariablesProposal {
        variables: names,
        layout,
        line_bytes: options.primary.bytes(),
        because: said(fought, options),
        lines: lines(usage, variables, layout, options.primary.bytes()),
        sizes: vec![size],
        predicted: predict(usage, variables, layout, options.primary.bytes()),
        is_asserted,
        edited: written.texts,
    }))
}

fn predict(
    usage: &Usage,
    variables: &[VariableRef],
    layout: VariableLayout,
    line_bytes: u64,
) -> Option<PredictedWaits> {
    let strides = match layout {
        VariableLayout::Aligned => None,
        VariableLayout::Spread { element_bytes, .. } => Some((element_bytes, line_bytes)),
    };
    let one = |variable: &VariableRef| VariableElsewhere { variable: variable.clone(), strides };
    let all: Vec<VariableElsewhere> = variables.iter().map(one).collect();
    Some(PredictedWaits::from(usage.elsewhere.as_ref()?.variables(&all)))
}

/// The layout of the variables.
fn layout(
    usage: &Usage,
    types: &Types,
    options: &Options,
    fought: &FoughtVariables,
    variables: &[VariableRef],
) -> Result<VariableLayout, Binding> {
    let names = || variables.iter().map(|one| one.name.clone());
    if let Some(per_cpu) = variables.iter().find(|one| usage.is_per_cpu(one)) {
        return Err(Binding::new(Constraint::PerCpu).on([&per_cpu.name]));
    }
    if variables.len() > Remedy::MOST_VARIABLES {
        let why = format!("{} variables on these lines", variables.len());
        return Err(Binding::new(Constraint::TooLarge).because(why));
    }
    let [variable] = variables else { return Ok(VariableLayout::Aligned) };
    if !fought.is_inside {
        return Ok(VariableLayout::Aligned);
    }
    let unknown =
        |why: &str| Binding::new(Constraint::LayoutNotReproduced).on(names()).because(why.to_owned());
    let known = usage.variable_types.iter().find(|known| known.variable == *variable);
    let ty = known.and_then(|known| types.strip(known.ty)).ok_or_else(|| unknown("its type is not known"))?;
    let element = match types.get(ty).map(|ty| &ty.kind) {
        Some(TypeKind::Array { element, counts }) if counts.len() == 1 => *element,
        Some(TypeKind::Array { .. }) => {
            return Err(unknown("its elements are arrays: give their rows a multiple of a line's bytes"));
        }
        _ => return Err(unknown("it is no array")),
    };
    let line_bytes = options.primary.bytes();
    let element_bytes = types.size_bytes(element).filter(|bytes| *bytes > 0);
    let element_bytes = element_bytes.ok_or_else(|| unknown("the size of its elements is not known"))?;
    if element_bytes >= line_bytes || !line_bytes.is_multiple_of(element_bytes) {
        return Err(unknown("no whole number of its elements fills a line"));
    }
    if variable.size_bytes / element_bytes * line_bytes > MOST_BYTES {
        let why = format!("{} elements: not one for each thread", variable.size_bytes / element_bytes);
        return Err(Binding::new(Constraint::TooLarge).on(names()).because(why));
    }
    Ok(VariableLayout::Spread { element_bytes, per_line: line_bytes / element_bytes })
}

/// Texts, and the question about them for the compiler.
struct Written {
    texts: BTreeMap<String, String>,
    asserted: Vec<Asserted>,
}

fn write(
    sources: &Sources,
    types: &Types,
    variables: &[VariableRef],
    layout: VariableLayout,
    options: &Options,
) -> Result<Written, Binding> {
    let compiled = compiled_files(sources, types);
    let line_bytes = options.primary.bytes();
    let mut written = Written { texts: BTreeMap::new(), asserted: Vec::new() };
    for variable in variables {
        let edit = match layout {
            VariableLayout::Aligned => Edit::Align { bytes: line_bytes },
            VariableLayout::Spread { per_line, .. } => Edit::Spread { bytes: line_bytes, per_line },
        };
        let current = sources.with(&written.texts);
        let edited = variables_text::edit(&current, &compiled, &variable.name, edit)?;
        let spelled = variable.name.replace("(anonymous namespace)::", "");
        let size = match layout {
            VariableLayout::Aligned => None,
            VariableLayout::Spread { element_bytes, .. } => {
                Some(variable.size_bytes / element_bytes * line_bytes)
            }
        };
        written.asserted.push(Asserted::of_placed(&edited.path, &spelled, line_bytes, size));
        written.texts.extend(edited.texts);
    }
    Ok(written)
}

/// Has the compiler take the texts; true when it was asked for alignments and sizes, too.
fn confirm(
    judge: &mut dyn Judge,
    all: &BTreeMap<String, String>,
    asserted: &[Asserted],
) -> Result<Result<bool, Binding>, AdviseError> {
    let disagrees = |why: String| Binding::new(Constraint::CompilerDisagrees).because(why);
    let mut is_asserted = true;
    for one in asserted {
        match judge.declares(all, one) {
            Ok(declares) => is_asserted &= declares,
            Err(error) => return Ok(Err(disagrees(error.into_first_words()?))),
        }
    }
    if is_asserted {
        return Ok(Ok(true));
    }
    match judge.compile(all) {
        Ok(_) => Ok(Ok(false)),
        Err(error) => Ok(Err(disagrees(error.into_first_words()?))),
    }
}

/// Lines per call of the variables, before and after: the cost for a single thread.
fn lines(
    usage: &Usage,
    variables: &[VariableRef],
    layout: VariableLayout,
    line_bytes: u64,
) -> Vec<RegionLines> {
    let mut rows = Vec::new();
    for used in &usage.variables {
        let Some(region) = usage.regions.get(used.region) else { continue };
        let (mut before, mut after) = ([0.0; 3], [0.0; 3]);
        for pattern in &used.patterns {
            let (mut old, mut new) = (Granules::default(), Granules::default());
            for (variable, bytes) in &pattern.variables {
                let Some(place) = variables.iter().position(|one| one == variable) else { continue };
                for part in bytes {
                    old.add(variable.address.saturating_add(part.offset), part.size_bytes);
                    let at = match layout {
                        VariableLayout::Aligned => part.offset,
                        VariableLayout::Spread { element_bytes, .. } => {
                            part.offset / element_bytes * line_bytes + part.offset % element_bytes
                        }
                    };
                    new.add(((place as u64 + 1) << 32) + at, part.size_bytes);
                }
            }
            let per_call = pattern.occurrences as f64 / used.calls.max(1) as f64;
            for (sum, count) in before.iter_mut().zip(old.counts()).chain(after.iter_mut().zip(new.counts()))
            {
                *sum += per_call * count as f64;
            }
        }
        if before.iter().any(|lines| *lines > 0.0) {
            rows.extend(LineSize::ALL.into_iter().zip(before).zip(after).map(|((line, before), after)| {
                RegionLines {
                    id: used.region,
                    region: region.name.clone(),
                    data_model: usage.abi.data_model(),
                    line_bytes: line.bytes(),
                    before: Some(before),
                    after,
                }
            }));
        }
    }
    rows
}
