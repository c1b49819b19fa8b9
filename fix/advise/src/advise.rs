//! From usage to all advice, in one call.

use crate::error::AdviseError;
use crate::judge::compiler::{Asked, Judge};
use crate::kind::{FixKind, Task};
use crate::kinds::alignment::Alignments;
use crate::kinds::cold_part::cold_parts::ColdParts;
use crate::kinds::gather::gathers::Gathers;
use crate::kinds::immediate_values::Immediates;
use crate::kinds::narrow::narrowings::Narrowings;
use crate::kinds::order::orders::Orders;
use crate::kinds::order::user_orders::UserOrders;
use crate::kinds::parting::partings::Partings;
use crate::kinds::parting::variables::VariablesApart;
use crate::kinds::pool::Pools;
use crate::kinds::prefetch::Prefetches;
use crate::kinds::saving_share;
use crate::kinds::split::Splits;
use crate::kinds::thread_copies::Copies;
use crate::options::Options;
use crate::proposal::Advice;
use crate::text::sources::Sources;
use crate::usage::Usage;
use lineup_model::types::Types;

/// The kinds of fixes that Lineup knows, in the order in which they propose: members leave their types, and get smaller
/// ones, before anything else edits the files, since the compiler named the places of their uses in the unchanged texts; variables are gathered before types are
/// ordered, because gathering orders the types of the gathered variables. Data under contention is parted before it
/// could be packed.
pub fn kinds() -> [&'static dyn FixKind; 12] {
    [
        &ColdParts,
        &Narrowings,
        &Gathers,
        &VariablesApart,
        &Partings,
        &Orders,
        &Alignments,
        &Splits,
        &Copies,
        &Immediates,
        &Pools,
        &Prefetches,
    ]
}

/// Works out all advice: variables to gather, member orders, alignments, and reports without an edit; or writes the
/// given orders. Every proposal that edits text was compiled by `judge`, together with the proposals before it; where
/// the judge can check a declaration alone, each is checked so, and all are compiled once in the end.
///
/// # Errors
/// When a candidate's build failed for another reason than the candidate, or was interrupted: nothing is
/// known then of the candidate, and it is not counted as refused by the compiler.
pub fn advise(
    usage: &Usage,
    types: &Types,
    sources: &Sources,
    options: &Options,
    judge: &mut dyn Judge,
) -> Result<Advice, AdviseError> {
    let all = kinds();
    let kinds: &[&dyn FixKind] = if options.orders.is_empty() { &all } else { &[&UserOrders] };
    let mut asked = Asked::new(judge);
    let checked = advise_with(kinds, Task { usage, types, sources, options, judge: &mut asked })?;
    if !asked.has_declared || checked.edited.is_empty() || holds(&checked, &mut asked)? {
        return Ok(checked);
    }
    // A declaration alone did not show everything: each candidate is built.
    let judge = &mut asked.for_whole_builds();
    advise_with(kinds, Task { usage, types, sources, options, judge })
}

/// Compiles all that is proposed at once, and holds the build against every layout that was asserted.
fn holds(advice: &Advice, judge: &mut dyn Judge) -> Result<bool, AdviseError> {
    match judge.compile(&advice.edited) {
        Ok(compiled) => Ok(compiled.first().is_none_or(|build| advice.is_in(&build.types))),
        Err(error) => error.into_first_words().map(|_| false),
    }
}

/// The advice of these kinds. All propose, then all guard, then all put their proposals in words.
///
/// # Errors
/// As [`advise`].
pub fn advise_with(kinds: &[&dyn FixKind], mut task: Task<'_>) -> Result<Advice, AdviseError> {
    let mut advice = Advice { threads: task.usage.threads, ..Advice::none(task.options.primary.bytes()) };
    for kind in kinds {
        kind.propose(&mut task, &mut advice)?;
    }
    let mut lock = std::mem::take(&mut advice.guard);
    for kind in kinds {
        kind.guard(&task, &advice, &mut lock);
    }
    advice.guard = lock;
    advice.descriptions = kinds.iter().flat_map(|kind| kind.describe(&advice)).collect();
    for one in &mut advice.descriptions {
        one.worth = saving_share::of_lines(task.usage, &one.lines, task.options.primary.bytes());
    }
    Ok(advice)
}
