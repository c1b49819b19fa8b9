//! From usage to all advice, in one call.

use crate::alignment;
use crate::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::gather;
use crate::guard::Lock;
use crate::guarding;
use crate::judge::Judge;
use crate::member_order::{self, Verdict, Worth, spelling};
use crate::observations;
use crate::options::Options;
use crate::problem::Subject;
use crate::proposal::{ADVICE_SCHEMA, Advice, Refusal};
use crate::sources::Sources;
use crate::usage::Usage;
use lineup_model::types::{TypeId, Types};
use std::collections::{BTreeMap, BTreeSet};

/// Works out all advice: variables to gather, member orders, alignments, and what is only reported.
/// Every proposal that edits text was compiled by `judge`, together with the proposals before it.
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
    let mut advice = Advice {
        schema: ADVICE_SCHEMA,
        line_bytes: options.primary.bytes(),
        orders: Vec::new(),
        gathers: Vec::new(),
        alignments: alignment::advise(usage, types, options),
        splits: observations::splits(usage, types, options),
        immediates: observations::immediates(usage, types),
        refusals: Vec::new(),
        already_good: Vec::new(),
        guard: Lock::default(),
        edited: BTreeMap::new(),
    };
    let outcome = gather::propose(usage, types, sources, options, judge)?;
    let mut gathered_types: BTreeSet<String> = BTreeSet::new();
    for proposal in &outcome.proposals {
        gathered_types.extend(proposal.reordered_types.iter().cloned());
        advice.edited.extend(proposal.edited.clone());
    }
    advice.gathers = outcome.proposals;
    advice.refusals = outcome.refusals;
    for id in used_types(usage, types) {
        order_type(&mut advice, &gathered_types, (usage, types, id), sources, options, judge)?;
    }
    Ok(advice)
}

/// Used aggregates, the one with the most accesses per call first.
fn used_types(usage: &Usage, types: &Types) -> Vec<TypeId> {
    let mut weights: BTreeMap<TypeId, f64> = BTreeMap::new();
    for used in &usage.types {
        let Some((id, _)) = types.aggregate(used.ty) else { continue };
        let weight = usage.region(used.region).map_or(0.0, |(_, region)| region.weight);
        let objects: u64 = used.patterns.iter().map(|pattern| pattern.occurrences).sum();
        *weights.entry(id).or_default() += weight * objects as f64 / used.calls.max(1) as f64;
    }
    let mut ids: Vec<(TypeId, f64)> = weights.into_iter().collect();
    ids.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ids.into_iter().map(|(id, _)| id).collect()
}

fn order_type(
    advice: &mut Advice,
    gathered_types: &BTreeSet<String>,
    (usage, types, id): (&Usage, &Types, TypeId),
    sources: &Sources,
    options: &Options,
    judge: &mut dyn Judge,
) -> Result<(), AdviseError> {
    let Some(subject) = Subject::new(types, id, usage) else { return Ok(()) };
    let Some(spelling) = spelling(types, subject.id) else {
        let constraints = vec![Binding::new(Constraint::Anonymous)];
        let owner = format!("(anonymous type {})", id.0);
        advice.refusals.push(Refusal { owner, constraints, lines: Vec::new() });
        return Ok(());
    };
    if gathered_types.contains(&spelling.name) || subject.aggregate.members.len() < 2 {
        return Ok(());
    }
    let current = sources.with(&advice.edited);
    match member_order::propose(
        &subject,
        &spelling,
        &current,
        options,
        judge,
        &advice.edited,
        Worth::OwnPatch,
    )? {
        Verdict::Proposed(proposal) => {
            advice.edited.extend(proposal.edited.clone());
            guarding::add_order(&mut advice.guard, &subject, &proposal, options);
            advice.orders.push(*proposal);
        }
        Verdict::AlreadyGood(name) => {
            guarding::add_present(&mut advice.guard, &subject, &name, options);
            advice.already_good.push(name);
        }
        Verdict::Refused(refusal) => advice.refusals.push(refusal),
    }
    Ok(())
}
