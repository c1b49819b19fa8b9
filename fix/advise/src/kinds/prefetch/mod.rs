//! Prefetches in loops that chase pointers: the line that a later turn needs is asked for while this turn works.
//!
//! A prefetch changes no result, so time alone decides: the caller tries places and distances, and names those it wants
//! by [`Options::prefetches`](crate::options::Options::prefetches). The address must not read what the loop would not
//! read: the reader of the sources proves that ([`Chase::ahead`]), and this kind adds what only all units
//! together show.

mod text;

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::meaning::Meaning;
use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::patch::text_edits::{Edit, apply};
use crate::proposal::{Advice, PREFETCH, PrefetchProposal, PrefetchedPlace, Refusal};
use lineup_model::chase::{Ahead, Chase};
use std::collections::BTreeMap;

/// Prefetches of the next objects.
pub struct Prefetches;

/// Uses of a type by which an object may be smaller than it.
const MAY_BE_PARTS: [Constraint; 4] = [
    Constraint::UsedAsOtherType,
    Constraint::SharedBeginning,
    Constraint::FirstMemberIsObject,
    Constraint::SharesUnion,
];

impl FixKind for Prefetches {
    fn name(&self) -> KindName {
        PREFETCH
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let meaning = &task.options.meaning;
        advice.refusals.extend(meaning.chases.iter().filter_map(|chase| {
            let constraint = refusal(meaning, chase)?;
            Some(Refusal { owner: chase.place(), constraints: vec![constraint], lines: Vec::new() })
        }));
        let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
        let mut places = Vec::new();
        for wanted in &task.options.prefetches {
            let Some(chase) = meaning.chases.get(wanted.chase) else { continue };
            let Some(ahead) = chase.ahead.as_ref().ok().filter(|_| refusal(meaning, chase).is_none()) else {
                continue;
            };
            let source = task.sources.get(&chase.path).filter(|text| text.len() == ahead.file_bytes);
            let source = source.filter(|_| !advice.edited.contains_key(&chase.path));
            let Some(source) = source else {
                let why = "the file is not the one that clang read, or another fix edits it";
                advice.refusals.push(refused(chase, Constraint::UnclearSource, why));
                continue;
            };
            let statement = text::statement(&ahead.address, wanted.turns);
            let own = text::edits(source, ahead.insert, &statement);
            let others = edits.entry(chase.path.clone()).or_default();
            if own.iter().any(|edit| others.iter().any(|other| text::overlap(edit, other))) {
                let why = "another prefetch puts braces around the same statement";
                advice.refusals.push(refused(chase, Constraint::UnclearSource, why));
                continue;
            }
            places.push(PrefetchedPlace {
                path: chase.path.clone(),
                line: chase.line,
                function: chase.function.clone(),
                statement: statement.join(" "),
            });
            // Of two at one place, the later one stands first.
            others.splice(..0, own);
        }
        if places.is_empty() {
            return Ok(());
        }
        let mut edited = BTreeMap::new();
        for (path, edits) in edits {
            let Some(text) = task.sources.get(&path).and_then(|text| apply(text, edits)) else {
                let constraint =
                    Binding::new(Constraint::UnclearSource).because("two edits meet in one place");
                let refusal = Refusal { owner: path, constraints: vec![constraint], lines: Vec::new() };
                advice.refusals.push(refusal);
                return Ok(());
            };
            edited.insert(path, text);
        }
        let mut all = advice.edited.clone();
        all.extend(edited.clone());
        if let Err(error) = task.judge.compile(&all) {
            let why = error.into_first_words()?;
            let owner = places.iter().map(PrefetchedPlace::in_words).collect::<Vec<_>>().join(", ");
            let constraint = Binding::new(Constraint::CompilerDisagrees).because(why);
            advice.refusals.push(Refusal { owner, constraints: vec![constraint], lines: Vec::new() });
            return Ok(());
        }
        advice.edited = all;
        advice.prefetches.push(PrefetchProposal { places, edited });
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.prefetches.iter().map(describe).collect()
    }
}

fn describe(one: &PrefetchProposal) -> Description {
    let target: Vec<String> = one.places.iter().map(PrefetchedPlace::in_words).collect();
    let reasons = one.places.iter().map(|place| place.statement.clone()).collect();
    let summary = "The line that a later turn of the loop needs is asked for ahead.";
    Description { reasons, is_in_patch: true, ..Description::told(PREFETCH, target.join(", "), summary) }
}

fn refused(chase: &Chase, constraint: Constraint, why: &str) -> Refusal {
    let binding = Binding::new(constraint).at(&chase.path, chase.line).because(why);
    Refusal { owner: chase.place(), constraints: vec![binding], lines: Vec::new() }
}

/// The reason why a loop gets no prefetch; `None` where it may.
pub fn refusal(meaning: &Meaning, chase: &Chase) -> Option<Binding> {
    let ahead = match &chase.ahead {
        Ok(ahead) => ahead,
        Err(why) => {
            return Some(Binding::new(Constraint::NotReadAhead).at(&chase.path, chase.line).because(why));
        }
    };
    if ahead.needs_whole_object { part_of_object(meaning, chase) } else { None }
}

/// Objects of which only a beginning may be there: the pointer to the next one might lie behind it.
fn part_of_object(meaning: &Meaning, chase: &Chase) -> Option<Binding> {
    let is_known = meaning.is_of_all_units && meaning.unchecked.is_none();
    let why = "a turn may end before it reads the pointer, and the object may be the beginning of one";
    let here = |constraint| Binding::new(constraint).at(&chase.path, chase.line);
    let Some(object) = chase.object.as_ref().filter(|_| is_known) else {
        return Some(here(Constraint::Unchecked).because(why));
    };
    let of_type = meaning.types.iter().filter(|ty| ty.names.contains(object));
    let mut holds = of_type.flat_map(|ty| &ty.holds).map(|hold| &hold.binding);
    let hold = holds.find(|binding| MAY_BE_PARTS.contains(&binding.constraint))?;
    Some(here(hold.constraint).because(format!("{why}: {hold}")))
}

/// The statement that an address gets at a distance, on one line.
pub fn statement(ahead: &Ahead, turns: Option<u32>) -> String {
    text::statement(&ahead.address, turns).join(" ")
}
