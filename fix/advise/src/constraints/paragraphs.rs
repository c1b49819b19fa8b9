//! Neighbours that a reader takes for one thing: a small patch moves them as one.

use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::opposite_names;
use crate::layout::subject::Subject;
use crate::text::body::Body;
use lineup_model::types::{Aggregate, AggregateKind, Member, TypeKind, Types};
use std::collections::BTreeSet;
use std::ops::Range;

/// Whether a unit, by its content, may move with the one before it.
pub(crate) type MayJoin<'m> = &'m dyn Fn(&Body<'_>, usize, &Range<usize>) -> bool;

/// Joins neighbours of which one selects the alternative of the other, and neighbours of one name with other endings or
/// beginnings. Neighbours of sibling types, and of one type in a short paragraph, are joined as well.
pub(crate) fn join(
    body: &mut Body<'_>,
    ranges: &mut Vec<Range<usize>>,
    subject: &Subject<'_>,
    may_join: MayJoin<'_>,
) {
    let bonds = Bonds::of(body, ranges, subject);
    for unit in (1..body.units.len()).rev() {
        let (before, own) = (ranges[unit - 1].clone(), ranges[unit].clone());
        let Some(because) = bonds.between(unit).filter(|_| may_join(body, unit, &own)) else { continue };
        let shown = |field| bonds.names.shown(field);
        let binding = Binding::new(Constraint::OneThing).on([before.end - 1, own.start].map(shown));
        let line = body.line_of(unit);
        body.bindings.push(binding.at(&body.found.path, line).because(because));
        body.join_neighbours(unit - 1..unit + 1);
        ranges.splice(unit - 1..unit + 1, std::iter::once(before.start..own.end));
    }
}

/// The largest number of members of one type between blank lines that are one thing.
const SHORT: usize = 4;

/// The number of neighbours that share a word, or whose types do, from which they count as alike.
const ALIKE: usize = 3;

/// Whether only blanks and the unit's own comments lie between a unit and the one before it.
fn are_neighbours(body: &Body<'_>, ranges: &[Range<usize>], unit: usize) -> bool {
    let (before, next) = (&body.units[unit - 1], &body.units[unit]);
    let has_members = !ranges[unit - 1].is_empty() && !ranges[unit].is_empty();
    before.segment == next.segment && before.pieces.end == next.pieces.start && has_members
}

/// Units that follow each other without a blank line between them.
pub(crate) fn paragraphs(body: &Body<'_>, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let follows = |unit: usize| {
        let lies_between = body.span(&body.units[unit - 1]).end..body.span(&body.units[unit]).start;
        let is_gap = body.found.lexed.text.get(lies_between).is_none_or(|gap| gap.contains('\n'));
        are_neighbours(body, ranges, unit) && !is_gap
    };
    runs(0..body.units.len(), &follows)
}

/// The bonds between units.
struct Bonds<'s> {
    names: Names<'s>,
    /// The members of each unit.
    fields: Vec<Range<usize>>,
    /// Units with nothing but blanks and their own comments between them and the one before.
    neighbours: BTreeSet<usize>,
    /// Units that follow each other, without a blank line between them.
    paragraphs: Vec<Range<usize>>,
    /// Neighbours that share their first, or their last, word, or the last of their types.
    alike: Vec<Range<usize>>,
}

impl<'s> Bonds<'s> {
    fn of(body: &Body<'_>, ranges: &[Range<usize>], subject: &Subject<'s>) -> Self {
        let names = Names::of(subject);
        let paragraphs = paragraphs(body, ranges);
        let share = |of: &dyn Fn(usize) -> Option<&'s str>| {
            let is_alike = |unit: usize| of(unit - 1).is_some() && of(unit - 1) == of(unit);
            let inside = paragraphs.iter().flat_map(|paragraph| runs(paragraph.clone(), &is_alike));
            inside.filter(|run| run.len() >= ALIKE).collect::<Vec<_>>()
        };
        let first = |unit: usize| names.word(&ranges[unit], first_word);
        let last = |unit: usize| names.word(&ranges[unit], last_word);
        let of_type = |unit: usize| names.word_of_type(&ranges[unit]);
        let alike = [share(&first), share(&last), share(&of_type)].concat();
        let neighbours = (1..body.units.len()).filter(|&unit| are_neighbours(body, ranges, unit)).collect();
        Bonds { fields: ranges.to_vec(), neighbours, paragraphs, alike, names }
    }

    /// The reason why a unit is one thing with the one before it.
    fn between(&self, unit: usize) -> Option<String> {
        let (before, own) = (&self.fields[unit - 1], &self.fields[unit]);
        if !self.neighbours.contains(&unit) {
            return None;
        }
        let holds = |run: &&Range<usize>| run.start < unit && unit < run.end;
        if let Some(because) = self.names.bond(before.end - 1, own.start) {
            return Some(because);
        }
        if self.alike.iter().any(|run| holds(&run)) {
            return Some("neighbours whose names, or types, share a word".into());
        }
        let paragraph = self.paragraphs.iter().find(holds)?;
        let is_short = paragraph.len() <= SHORT && self.paragraphs.len() > 1;
        (is_short && self.names.are_of_one_type(before.end - 1, own.start))
            .then(|| "a few members of one type between blank lines".into())
    }
}

/// The runs of numbers in which each is joined to the one before it.
fn runs(all: Range<usize>, is_joined: &dyn Fn(usize) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in all.clone() {
        match runs.last_mut() {
            Some(run) if is_joined(at) => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

fn first_word(name: &str) -> Option<&str> {
    name.split('_').next().filter(|word| word.len() >= LEAST_STEM)
}

/// The last word, unless it names only an aspect that many things have.
fn last_word(name: &str) -> Option<&str> {
    name.rsplit('_').next().filter(|word| word.len() >= LEAST_STEM && !ASPECTS.contains(word))
}

/// Last words that make a member an aspect of another member with the same name.
const ASPECTS: [&str; 20] = [
    "family", "type", "kind", "tag", "len", "length", "size", "count", "cnt", "nr", "num", "lock", "list",
    "flags", "mask", "state", "valid", "min", "max", "seq",
];

/// Last words of members that select an alternative of a union.
const TAGS: [&str; 12] = [
    "family", "type", "kind", "tag", "which", "mode", "format", "class", "selector", "proto", "protocol",
    "version",
];

/// The least number of letters of a name that others extend by endings.
const LEAST_STEM: usize = 2;

/// The members' names without the beginning that most of them share.
struct Names<'s> {
    types: &'s Types,
    aggregate: &'s Aggregate,
    prefix: &'s str,
}

impl<'s> Names<'s> {
    fn of(subject: &Subject<'s>) -> Self {
        Names { types: subject.types, aggregate: subject.aggregate, prefix: usual_prefix(subject.aggregate) }
    }

    fn shown(&self, field: usize) -> String {
        self.names(field).first().map_or("(anonymous)".into(), |name| (*name).to_owned())
    }

    /// A member's name; of an anonymous one, those of the members in it.
    fn names(&self, field: usize) -> Vec<&'s str> {
        let Some(member) = self.aggregate.members.get(field) else { return Vec::new() };
        match (member.name.as_deref(), self.types.aggregate(member.ty)) {
            (Some(name), _) => vec![name],
            (None, Some((_, inner))) => {
                inner.members.iter().filter_map(|member| member.name.as_deref()).collect()
            }
            (None, None) => Vec::new(),
        }
    }

    /// A word of the name of a unit's only member.
    fn word(&self, fields: &Range<usize>, which: fn(&str) -> Option<&str>) -> Option<&'s str> {
        let name = self.only(fields)?.name.as_deref()?;
        which(name.strip_prefix(self.prefix).unwrap_or(name))
    }

    /// The last word of the type of a unit's only member, when that is an object of several words.
    fn word_of_type(&self, fields: &Range<usize>) -> Option<&'s str> {
        let (id, _) = self.types.aggregate(self.only(fields)?.ty)?;
        let (_, last) = self.types.get(id)?.name.as_deref()?.rsplit_once('_')?;
        Some(last)
    }

    fn only(&self, fields: &Range<usize>) -> Option<&'s Member> {
        (fields.len() == 1).then(|| self.aggregate.members.get(fields.start))?
    }

    fn are_of_one_type(&self, first: usize, second: usize) -> bool {
        let ty = |field: usize| self.aggregate.members.get(field).map(|member| member.ty);
        // Debug info may hold a type twice.
        let name = |field: usize| self.types.get(ty(field)?)?.name.as_deref();
        ty(first) == ty(second) || name(first).is_some_and(|own| name(second) == Some(own))
    }

    /// The reason why two neighbours are one thing.
    fn bond(&self, first: usize, second: usize) -> Option<String> {
        if self.is_tag(first) && self.is_union(second) {
            return Some(format!("{} selects the content of the union", self.shown(first)));
        }
        let one = self.names(first);
        let is_bound = |other: &&str| one.iter().any(|name| self.are_one(name, other));
        let other = self.names(second).into_iter().find(is_bound)?;
        Some(format!("{} and {other} by their names", self.shown(first)))
    }

    fn is_union(&self, field: usize) -> bool {
        let member = self.aggregate.members.get(field);
        let inner = member.and_then(|member| self.types.aggregate(member.ty));
        inner.is_some_and(|(_, inner)| inner.kind == AggregateKind::Union)
    }

    /// An enumeration, or a number whose name says that it selects an alternative.
    fn is_tag(&self, field: usize) -> bool {
        let Some(member) = self.aggregate.members.get(field) else { return false };
        let kind = self.types.strip(member.ty).and_then(|id| self.types.get(id)).map(|ty| &ty.kind);
        let last = member.name.as_deref().and_then(|name| name.rsplit('_').next());
        match kind {
            Some(TypeKind::Enum) => true,
            Some(TypeKind::Scalar(_)) => last.is_some_and(|word| TAGS.contains(&word)),
            _ => false,
        }
    }

    /// `gp_seq` and `gp_seq_needed`, `gw_family` and `gw4`, `mm` and `active_mm`, `readers` and `writers`.
    fn are_one(&self, one: &str, other: &str) -> bool {
        let own = one.strip_prefix(self.prefix).zip(other.strip_prefix(self.prefix));
        let (one, other) = own.unwrap_or((one, other));
        let goes_on = |short: &str, long: &str| {
            short.len() >= LEAST_STEM && long.strip_prefix(short).is_some_and(|rest| rest.starts_with('_'))
        };
        let ends_so = |short: &str, long: &str| {
            short.len() >= LEAST_STEM && long.strip_suffix(short).is_some_and(|rest| rest.ends_with('_'))
        };
        let stems = [stem(one), stem(other)];
        goes_on(one, other)
            || goes_on(other, one)
            || ends_so(one, other)
            || ends_so(other, one)
            || opposite_names::are_opposites(one, other)
            || (stems[0] == stems[1] && stems[0].len() >= LEAST_STEM)
    }
}

/// The first word, with its underscore, of more than half of the members' names; else nothing.
pub(crate) fn usual_prefix(aggregate: &Aggregate) -> &str {
    let first_words = || aggregate.members.iter().filter_map(|member| prefix(member.name.as_deref()?));
    let count = |word: &str| first_words().filter(|other| *other == word).count();
    let usual = first_words().max_by_key(|word| count(word));
    usual.filter(|word| 2 * count(word) > aggregate.members.len()).unwrap_or("")
}

/// The first word with its underscore.
fn prefix(name: &str) -> Option<&str> {
    let end = name.find('_')?;
    (end > 0).then(|| &name[..=end])
}

/// A name without a number at its end, or without a last word that names an aspect.
fn stem(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
    match plain.rsplit_once('_') {
        Some((stem, last)) if ASPECTS.contains(&last) => stem,
        _ => plain,
    }
}
