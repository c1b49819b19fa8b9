//! Random legal orders: they test whether members that may move can move.
//!
//! An order is legal when it obeys every constraint that a proposal obeys. The caller finds the orders that a test
//! refutes, by [`in_order`] and [`between`].

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::holds;
use crate::kinds::order::member_order::Plan;
use crate::layout::spelling::{Spelling, spelling};
use crate::layout::subject::Subject;
use crate::options::Options;
use crate::patch::line_edits::LineEdits;
use crate::proposal::Refusal;
use crate::text::sources::Sources;
use crate::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::types::{AggregateKind, MemberRole, TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet};

/// Random orders that are tried for one type before it is given up.
const TRIES: usize = 400;

/// A type whose members may move, and the constraints on some of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Movable {
    /// The type's name.
    pub type_name: String,
    /// Its id in the debug info.
    pub id: TypeId,
    /// The file that declares it.
    pub path: String,
    /// The names of the units of its declaration that move as one; several names are separated by commas.
    pub units: Vec<String>,
    /// The units that can change places with others.
    pub free: usize,
    /// The constraints that were obeyed.
    pub obeyed: Vec<Binding>,
}

/// The possible moves in the types of a program: every struct and class of two or more members of its own that the
/// sources declare. Instances of one template are one type.
pub fn survey(types: &Types, abi: Abi, sources: &Sources, options: &Options) -> (Vec<Movable>, Vec<Refusal>) {
    let usage = Usage::empty(abi);
    let (mut movable, mut refused) = (Vec::new(), Vec::new());
    let mut seen: BTreeSet<(String, Option<u32>)> = BTreeSet::new();
    for (id, ty) in types.iter() {
        let TypeKind::Aggregate(aggregate) = &ty.kind else { continue };
        let Some(spelled) = spelling(types, id).filter(|_| !aggregate.is_declaration) else { continue };
        let line = spelled.declared_at.as_ref().map(|at| at.line);
        let is_here =
            spelled.declared_at.as_ref().is_some_and(|at| sources.matching_path(&at.file).is_some());
        let own = aggregate.members.iter().filter(|member| member.role == MemberRole::Field).count();
        let is_one = aggregate.kind != AggregateKind::Union && own > 1 && !is_closure(&spelled.name);
        if !is_here || !is_one || !seen.insert((without_arguments(&spelled.name), line)) {
            continue;
        }
        match examine(types, id, &usage, sources, options) {
            Ok(found) => movable.push(found),
            Err(constraints) => {
                refused.push(Refusal { owner: spelled.name, constraints, lines: Vec::new() });
            }
        }
    }
    movable.sort_by(|a, b| a.type_name.cmp(&b.type_name));
    refused.sort_by(|a, b| a.owner.cmp(&b.owner));
    (movable, refused)
}

/// The compiler's type for a lambda has no declaration of its own.
fn is_closure(name: &str) -> bool {
    name.contains("<lambda") || name.contains("::<unnamed")
}

/// A template's name, for any arguments.
fn without_arguments(name: &str) -> String {
    let (mut depth, mut kept) = (0_u32, String::new());
    for letter in name.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(letter),
            _ => {}
        }
    }
    kept
}

fn examine(
    types: &Types,
    id: TypeId,
    usage: &Usage,
    sources: &Sources,
    options: &Options,
) -> Result<Movable, Vec<Binding>> {
    let nothing = || vec![Binding::new(Constraint::UnclearSource)];
    let subject = Subject::new(types, id, usage).ok_or_else(nothing)?;
    let spelled = spelling(types, subject.id).ok_or_else(nothing)?;
    holds::forbidden_outright(&subject, &spelled, options).map_err(|binding| vec![binding])?;
    let models = subject.models().map_err(|binding| vec![binding])?;
    let plan = Plan::make(&subject, &spelled, sources, options, models).map_err(|(_, bindings)| bindings)?;
    let free = plan.free_units();
    match free < 2 {
        true => Err(plan.obeyed()),
        false => Ok(Movable {
            type_name: spelled.name.clone(),
            id,
            path: plan.path().to_string(),
            units: plan.unit_names(),
            free,
            obeyed: plan.obeyed(),
        }),
    }
}

/// A random legal order for one type, as indices into its units; `random(n)` gives a number below `n`. `None` when
/// chance finds none: a type does not grow.
///
/// # Errors
/// The constraint that forbids it.
pub fn random_order(
    types: &Types,
    abi: Abi,
    id: TypeId,
    sources: &Sources,
    options: &Options,
    random: &mut dyn FnMut(usize) -> usize,
) -> Result<Option<Vec<usize>>, Vec<Binding>> {
    with_plan(types, abi, id, sources, options, |_, _, plan| {
        let identity: Vec<usize> = (0..plan.unit_names().len()).collect();
        for round in 0..TRIES {
            let order = plan.random_order(random, round % 2 == 1);
            if order != identity && plan.is_legal(&order) {
                return Ok(Some(order));
            }
        }
        Ok(None)
    })
}

/// Path and new text of every file that changes when the type gets this order of its units.
///
/// # Errors
/// The constraint that forbids it.
pub fn in_order(
    types: &Types,
    abi: Abi,
    id: TypeId,
    sources: &Sources,
    options: &Options,
    order: &[usize],
) -> Result<BTreeMap<String, String>, Vec<Binding>> {
    with_plan(types, abi, id, sources, options, |subject, spelled, plan| {
        plan.write(subject, sources, spelled, &plan.with_head(order)).map_err(|one| vec![one])
    })
}

/// The texts with several types in their orders, and how many of these could be written. Edits of lines that no other
/// edit touches are applied together, since each change of a file has it parsed anew; a type whose lines another one
/// changes follows in the next round. `go_on` is asked before each type.
///
/// # Errors
/// When `go_on` fails.
pub fn in_orders<E>(
    types: &Types,
    abi: Abi,
    orders: &[(TypeId, &[usize])],
    sources: &Sources,
    options: &Options,
    mut go_on: impl FnMut() -> Result<(), E>,
) -> Result<(BTreeMap<String, String>, usize), E> {
    let (mut sources, mut texts, mut moved) = (sources.clone(), BTreeMap::new(), 0);
    let mut left = orders.to_vec();
    while !left.is_empty() {
        let (mut round, mut waiting) = (LineEdits::default(), Vec::new());
        for (id, order) in left {
            go_on()?;
            let Ok(placed) = in_order(types, abi, id, &sources, options, order) else { continue };
            match round.take(&placed, |path| sources.get(path)) {
                true => moved += 1,
                false => waiting.push((id, order)),
            }
        }
        let edited = round.written(|path| sources.get(path));
        sources = sources.with(&edited);
        texts.extend(edited);
        left = waiting;
    }
    Ok((texts, moved))
}

fn with_plan<R>(
    types: &Types,
    abi: Abi,
    id: TypeId,
    sources: &Sources,
    options: &Options,
    ask: impl FnOnce(&Subject<'_>, &Spelling, &Plan<'_>) -> Result<R, Vec<Binding>>,
) -> Result<R, Vec<Binding>> {
    let usage = Usage::empty(abi);
    let nothing = || vec![Binding::new(Constraint::UnclearSource)];
    let subject = Subject::new(types, id, &usage).ok_or_else(nothing)?;
    let spelled = spelling(types, subject.id).ok_or_else(nothing)?;
    let models = subject.models().map_err(|binding| vec![binding])?;
    let plan = Plan::make(&subject, &spelled, sources, options, models).map_err(|(_, bindings)| bindings)?;
    ask(&subject, &spelled, &plan)
}

/// The orders on the way from the declared one to `order`, each of which swaps two neighbours more than the one before
/// it; with the pair that was swapped last. The last is `order` itself. Units that stay where they are swap with none.
pub fn between(order: &[usize]) -> Vec<(Vec<usize>, (usize, usize))> {
    let places: Vec<usize> = (0..order.len()).filter(|&place| order[place] != place).collect();
    let rank: BTreeMap<usize, usize> = order.iter().enumerate().map(|(place, &unit)| (unit, place)).collect();
    let mut present: Vec<usize> = (0..order.len()).collect();
    let mut steps = Vec::new();
    loop {
        let pair = places.windows(2).find(|pair| rank[&present[pair[0]]] > rank[&present[pair[1]]]);
        let Some(&[a, b]) = pair.and_then(|pair| <&[usize; 2]>::try_from(pair).ok()) else { break };
        let swapped = (present[a], present[b]);
        present.swap(a, b);
        steps.push((present.clone(), swapped));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_an_order_swaps_neighbours_and_arrives() {
        let order = [0, 3, 1, 2, 4];
        let steps = between(&order);
        assert_eq!(steps.last().map(|(last, _)| last.as_slice()), Some(order.as_slice()));
        assert_eq!(steps.iter().map(|(_, pair)| *pair).collect::<Vec<_>>(), [(2, 3), (1, 3)]);
        assert!(between(&[0, 1, 2]).is_empty());
    }
}
