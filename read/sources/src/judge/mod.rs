//! From facts and flows to verdicts.

mod address_order;
mod alignment;
mod base_templates;
mod blocks;
mod contents;
mod copies;
mod direct_uses;
mod distance_before;
mod elements;
mod embedded;
mod ended_objects;
mod first_words;
mod function_casts;
mod further;
mod further_objects;
mod generated_code;
mod heads;
mod layout;
mod memory_types;
mod number_places;
mod number_uses;
mod pointer_uses;
mod signatures;
mod spans;
mod used_as;

pub(crate) use elements::settle_steps;
pub(crate) use further::unread_functions;

use crate::facts::{Facts, RecordFact, Saying, Shape, Slot, Where};
use crate::points_to::PointsTo;
use crate::relation::Relations;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A use before its text is looked up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Finding {
    pub(crate) verdict: Verdict,
    pub(crate) kind: UseKind,
    pub(crate) at: Where,
    pub(crate) reason: String,
}

/// The build's products, as far as they change the verdicts.
#[derive(Clone, Default, Debug)]
pub(crate) struct Product {
    /// A shared library is linked.
    pub(crate) is_shared_library: bool,
    /// Headers that are installed, by file name; none known means all are.
    pub(crate) installed_headers: BTreeSet<String>,
}

/// True for functions that end an object's life: their use of its bytes matters to nobody any more.
fn is_harmless_name(function: &str) -> bool {
    crate::library_functions::ends_life(function)
}

/// The function and the record of a parameter that is a pointer to the record.
fn taken_by_type(slot: &Slot) -> Option<(Name, Name)> {
    match &slot.shape {
        Shape::Record(record) => Some((slot.function.clone(), record.clone())),
        _ => None,
    }
}

/// Every finding, by record.
pub(crate) fn judge(facts: &Facts, product: &Product) -> BTreeMap<Name, BTreeSet<Finding>> {
    let points_to = PointsTo::of(facts);
    let offset = |(record, saying, _): &(Name, Saying, Where)| {
        matches!(saying, Saying::Offset(_) | Saying::Measured(_)).then(|| record.clone())
    };
    let mut judge = Judge {
        facts,
        points_to,
        relations: Relations::new(facts),
        signatures: facts.taken.iter().map(|(signature, _)| signature.clone()).collect(),
        generated: BTreeSet::new(),
        measured: facts.sayings.iter().filter_map(offset).collect(),
        seen_arrays: BTreeSet::new(),
        taken_by_type: facts.signatures.iter().filter_map(taken_by_type).collect(),
        followed: BTreeMap::new(),
        behind: BTreeMap::new(),
        alone_in_bytes: BTreeSet::new(),
        found: BTreeMap::new(),
    };
    judge.generated = judge.generated_code();
    judge.acts();
    judge.reached_from_outside();
    judge.ended_objects();
    judge.base_templates();
    judge.copies();
    judge.signatures();
    judge.function_casts();
    judge.further_objects();
    judge.looked_up();
    judge.first_words();
    judge.passed_as_bytes();
    judge.contents();
    judge.number_places();
    judge.steps();
    judge.address_order();
    judge.distances();
    judge.sayings();
    judge.layouts();
    judge.exports(product);
    judge.sizes_inside();
    judge.embedded();
    judge.found.into_iter().map(|(record, findings)| (record, once_each(findings))).collect()
}

/// Keeps the first of several equal uses, and a few of the refusals.
fn once_each(findings: BTreeSet<Finding>) -> BTreeSet<Finding> {
    let mut said: BTreeSet<(Verdict, UseKind, String)> = BTreeSet::new();
    let mut refusals = 0;
    let further = further_refusal(&findings);
    let is_new = |finding: &Finding| {
        refusals += usize::from(finding.verdict == Verdict::Refuse);
        let is_shown = finding.verdict != Verdict::Refuse || refusals <= MOST_REFUSALS;
        // Each of these places needs an edit of its own.
        let is_named = matches!(finding.verdict, Verdict::Named(_) | Verdict::Exchanged(_));
        is_named || is_shown && said.insert((finding.verdict.clone(), finding.kind, finding.reason.clone()))
    };
    let mut kept: BTreeSet<Finding> = findings.into_iter().filter(is_new).collect();
    kept.extend(further);
    kept
}

/// Stands for the refusals that are not kept, so that a user who judges the others harmless has not judged these.
fn further_refusal(findings: &BTreeSet<Finding>) -> Option<Finding> {
    let mut refusals = findings.iter().filter(|finding| finding.verdict == Verdict::Refuse);
    let first = refusals.nth(MOST_REFUSALS)?.clone();
    let reason =
        format!("{} further uses forbid a move, this one first: {}", refusals.count() + 1, first.reason);
    Some(Finding { reason, ..first })
}

/// Reasons for refusing one type that are kept.
const MOST_REFUSALS: usize = 8;

struct Judge<'f> {
    facts: &'f Facts,
    points_to: PointsTo,
    relations: Relations<'f>,
    /// The types as which functions of the program are used by their address.
    signatures: BTreeSet<Name>,
    /// The types as which memory that the program writes is called.
    generated: BTreeSet<Name>,
    /// The records of whose members offsets are taken.
    measured: BTreeSet<Name>,
    /// Arrays of bytes whose addresses go to code that is not compiled here.
    seen_arrays: BTreeSet<Name>,
    /// Functions, and the records of objects that they take by their types.
    taken_by_type: BTreeSet<(Name, Name)>,
    /// Records of objects that code which is not compiled here looks into: the first such function, and the place.
    followed: BTreeMap<Name, (Name, Where)>,
    /// The records of objects in the memory behind those of each record.
    behind: BTreeMap<Name, BTreeSet<Name>>,
    /// Records, and the reason of a refusal that concerns nothing behind their objects: there is no room.
    alone_in_bytes: BTreeSet<(Name, String)>,
    found: BTreeMap<Name, BTreeSet<Finding>>,
}

impl<'f> Judge<'f> {
    /// The record, when it is one of the project.
    fn own(&self, record: &Name) -> Option<&'f RecordFact> {
        self.facts.records.get(record).filter(|found| !found.is_foreign)
    }

    fn find(
        &mut self,
        record: &Name,
        verdict: Verdict,
        kind: UseKind,
        at: &Where,
        reason: impl Into<String>,
    ) {
        // A library's template with objects in it passes its findings on to them.
        if self.facts.records.contains_key(record) {
            let finding = Finding { verdict, kind, at: at.clone(), reason: reason.into() };
            self.found.entry(record.clone()).or_default().insert(finding);
        }
    }

    fn name(&self, record: &Name) -> String {
        let known = self.facts.records.get(record).and_then(|found| found.names.first().cloned());
        known.unwrap_or_else(|| "an unnamed type".into())
    }

    /// The record's leading members.
    fn leading(&self, record: &Name, count: usize) -> Vec<String> {
        let members =
            self.own(record).map_or(&[][..], |found| &found.members[..count.min(found.members.len())]);
        members
            .iter()
            .filter(|member| !member.name.is_empty())
            .map(|member| member.name.to_string())
            .collect()
    }

    /// The first `count` members of each stay in place.
    fn keep_common(
        &mut self,
        one: (&Name, usize),
        two: (&Name, usize),
        kind: UseKind,
        at: &Where,
        what: &str,
    ) {
        for ((record, count), (other, _)) in [(one, two), (two, one)] {
            let names = self.leading(record, count);
            let reason = format!("{what} {}, which begins with the same members", self.name(other));
            let verdict = match (names.len(), count) {
                // A nameless member is held as the first one, which it is.
                (0, 1) => Verdict::First,
                (0, _) => Verdict::Refuse,
                _ => Verdict::Keep(names),
            };
            self.find(record, verdict, kind, at, reason);
        }
    }
}
