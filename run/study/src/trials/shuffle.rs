//! Random legal layouts as a test: which types, and which members of them, a test cannot do without in order.

use crate::error::Result;
use crate::trials::trial::{Trial, Trials};
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::meaning::{Effect, Hold, Meaning, TypeMeaning};
use lineup_advise::options::Options;
use lineup_advise::shuffle::{self, Movable};
use lineup_advise::sources::Sources;
use lineup_model::abi::Abi;
use lineup_model::types::Types;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// The program whose types are shuffled.
pub struct Ground<'a> {
    /// Its types.
    pub types: &'a Types,
    /// Its ABI.
    pub abi: Abi,
    /// Its sources.
    pub sources: &'a Sources,
}

/// The result of one seed.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Types that got another order.
    pub shuffled: usize,
    /// The failures that the test revealed; empty when it passed.
    pub failures: Vec<Failure>,
}

/// An order that the test does not stand.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The type.
    pub type_name: String,
    /// The units of the declaration whose order mattered; empty when no single pair did.
    pub pair: Vec<String>,
    /// The other types without whose new orders the test passes: all of them are held.
    pub together: Vec<String>,
    /// The output of the build or the test.
    pub words: String,
}

/// A type in the order that a seed gave it.
struct Dealt<'m> {
    movable: &'m Movable,
    order: Vec<usize>,
}

/// The most failures that are examined for one seed, before it is given up.
const MOST_FAILURES: usize = 4;

/// Gives every movable type a random order and tests the program. When the test fails, halving finds the type and then
/// the pair of members. That pair is held from then on, and the seed continues with the others.
///
/// # Errors
/// When nothing can be started or written.
pub fn run_seed(
    ground: &Ground<'_>,
    movable: &[Movable],
    options: &mut Options,
    trials: &Trials<'_>,
    seed: u64,
) -> Result<Outcome> {
    let mut outcome = Outcome { seed, shuffled: 0, failures: Vec::new() };
    let mut dealt = deal(ground, movable, options, trials, seed)?;
    while outcome.failures.len() < MOST_FAILURES && !dealt.is_empty() {
        let all: Vec<&Dealt<'_>> = dealt.iter().collect();
        let edits = edits(ground, options, trials, &all)?;
        outcome.shuffled = outcome.shuffled.max(edits.moved);
        let Trial::Failed(words) = trials.run(&edits.texts)? else { break };
        let culprits = halve(ground, options, trials, all)?;
        let names: Vec<String> = culprits.iter().map(|one| one.movable.type_name.clone()).collect();
        for culprit in culprits {
            let pair = find_pair(ground, options, trials, culprit)?;
            let type_name = culprit.movable.type_name.clone();
            options.meaning.types.push(held(&type_name, &pair, seed));
            let together = names.iter().filter(|name| **name != type_name).cloned().collect();
            outcome.failures.push(Failure { type_name, pair, together, words: words.clone() });
        }
        dealt.retain(|one| !names.contains(&one.movable.type_name));
    }
    Ok(outcome)
}

/// A random order for each type for which chance finds one.
fn deal<'m>(
    ground: &Ground<'_>,
    movable: &'m [Movable],
    options: &Options,
    trials: &Trials<'_>,
    seed: u64,
) -> Result<Vec<Dealt<'m>>> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut below = |bound: usize| random.random_range(0..bound.max(1));
    let mut all = Vec::new();
    for movable in movable {
        trials.check_interrupts()?;
        let order =
            shuffle::random_order(ground.types, ground.abi, movable.id, ground.sources, options, &mut below);
        if let Ok(Some(order)) = order {
            all.push(Dealt { movable, order });
        }
    }
    Ok(all)
}

/// The texts with some types in their orders.
struct Edits {
    texts: BTreeMap<String, String>,
    /// The types whose order could be written.
    moved: usize,
}

fn edits(ground: &Ground<'_>, options: &Options, trials: &Trials<'_>, dealt: &[&Dealt<'_>]) -> Result<Edits> {
    let orders: Vec<_> = dealt.iter().map(|one| (one.movable.id, one.order.as_slice())).collect();
    let (texts, moved) =
        shuffle::in_orders(ground.types, ground.abi, &orders, ground.sources, options, || {
            trials.check_interrupts()
        })?;
    Ok(Edits { texts, moved })
}

/// The types that fail by themselves: a single one, or several that fail only together.
fn halve<'d, 'm>(
    ground: &Ground<'_>,
    options: &Options,
    trials: &Trials<'_>,
    mut dealt: Vec<&'d Dealt<'m>>,
) -> Result<Vec<&'d Dealt<'m>>> {
    while dealt.len() > 1 {
        let (one, two) = dealt.split_at(dealt.len() / 2);
        if trials.run(&edits(ground, options, trials, one)?.texts)? != Trial::Passed {
            dealt = one.to_vec();
        } else if trials.run(&edits(ground, options, trials, two)?.texts)? != Trial::Passed {
            dealt = two.to_vec();
        } else {
            break;
        }
    }
    Ok(dealt)
}

/// The pair of neighbours whose exchange turns success into failure, on the way from the declared order to this one.
fn find_pair(
    ground: &Ground<'_>,
    options: &Options,
    trials: &Trials<'_>,
    culprit: &Dealt<'_>,
) -> Result<Vec<String>> {
    let steps = shuffle::between(&culprit.order);
    let fails = |step: usize| -> Result<bool> {
        let dealt = Dealt { movable: culprit.movable, order: steps[step].0.clone() };
        Ok(trials.run(&edits(ground, options, trials, &[&dealt])?.texts)? != Trial::Passed)
    };
    if steps.is_empty() || !fails(steps.len() - 1)? {
        return Ok(Vec::new());
    }
    let (mut passes, mut failing) = (0, steps.len());
    // The order after `failing` steps fails, the one after `passes` steps does not.
    while failing - passes > 1 {
        let middle = usize::midpoint(passes, failing);
        match fails(middle - 1)? {
            true => failing = middle,
            false => passes = middle,
        }
    }
    let (a, b) = steps[failing - 1].1;
    Ok(vec![culprit.movable.units[a].clone(), culprit.movable.units[b].clone()])
}

/// The constraint that a failure teaches.
fn held(type_name: &str, pair: &[String], seed: u64) -> TypeMeaning {
    let members: Vec<String> = pair
        .iter()
        .flat_map(|unit| unit.split(", "))
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect();
    let effect = if members.is_empty() { Effect::Forbid } else { Effect::Relative };
    let binding = Binding::new(Constraint::FailedTest).on(members);
    let binding = binding.because(format!("the test failed with another order (seed {seed})"));
    TypeMeaning {
        names: vec![type_name.to_string()],
        path: String::new(),
        holds: vec![Hold { binding, effect }],
    }
}

/// The constraints that failed tests revealed, and people's reviews.
pub fn learnt(meaning: &Meaning) -> Meaning {
    let is_learnt =
        |ty: &&TypeMeaning| ty.holds.iter().all(|hold| hold.binding.constraint == Constraint::FailedTest);
    let types = meaning.types.iter().filter(is_learnt).cloned().collect();
    Meaning { types, reviewed: meaning.reviewed.clone(), ..Meaning::default() }
}
