//! The first word at the target of a pointer to bytes: it identifies the object there.

use super::Judge;
use super::pointer_uses::{CROWD, is_generic};
use crate::facts::{Act, Facts, Origin, PointerPlace, Reach, Shape, Source, Value, Where};
use crate::relation::{first_leaf, first_type};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// A sequence of adjacent objects.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stream<'f> {
    /// The targets of these places, which are assigned to each other.
    Places(&'f PointerPlace),
    Memory(Name),
}

/// The words read at the starts of objects, and the records that the same places are used as.
#[derive(Default)]
struct Starts<'f> {
    words: BTreeSet<(&'f Shape, &'f Name, &'f Where)>,
    records: BTreeSet<&'f Name>,
}

impl<'f> Judge<'f> {
    /// `(*(code **)at)(…)` and `(struct step *)at`: the steps begin with such a word.
    pub(super) fn first_words(&mut self) {
        let facts = self.facts;
        let groups = Groups::of(facts);
        let mut streams: BTreeMap<Stream<'f>, Starts<'f>> = BTreeMap::new();
        for (value, act, at) in &facts.acts {
            let (Act::As(shape, spelling), Reach::Start) = (act, value.reach) else { continue };
            let is_word = matches!(shape, Shape::Pointer | Shape::Scalar(_));
            if !is_word && !matches!(shape, Shape::Record(_)) {
                continue;
            }
            let mut add = |stream: Stream<'f>| {
                let starts = streams.entry(stream).or_default();
                match shape {
                    Shape::Record(record) => _ = starts.records.insert(record),
                    _ => _ = starts.words.insert((shape, spelling, at)),
                }
            };
            if let Source::Place(place) = &value.source {
                add(Stream::Places(groups.first(place)));
            }
            let objects = self.points_to.objects(value);
            let blocks = objects.each.iter().filter_map(|(origin, ..)| match origin {
                Origin::Memory(block, 0) => Some(block.clone()),
                _ => None,
            });
            let blocks: BTreeSet<Name> = blocks.collect();
            // The block that a number is read from is unknown when there are several.
            let is_known = !is_word || blocks.len() == 1 || is_code(spelling);
            if is_known && !is_generic(&objects) {
                blocks.into_iter().for_each(|block| add(Stream::Memory(block)));
            }
        }
        for (stream, mut starts) in streams {
            let count = starts.records.len();
            // Memory with several types is mostly an array's, whose elements are distinguished by their positions; but
            // not where code is called by its first word. Memory with more types is an allocator's.
            starts.words.retain(|(_, spelling, _)| match stream {
                Stream::Memory(_) => count == 1 || (count <= CROWD && is_code(spelling)),
                Stream::Places(_) => count <= CROWD || is_code(spelling),
            });
            self.begin_with(&starts);
        }
    }

    fn begin_with(&mut self, starts: &Starts<'_>) {
        for record in &starts.records {
            let leaf = first_leaf(self.facts, record);
            let begins_with_code = first_type(self.facts, record).is_some_and(|ty| is_code(&ty));
            let fits = |(shape, spelling, _): &&(&Shape, &Name, &Where)| match (&leaf, shape) {
                (Some(Shape::Pointer), Shape::Pointer) if is_code(spelling) => begins_with_code,
                (Some(Shape::Pointer), Shape::Pointer | Shape::Scalar(8)) => true,
                (Some(leaf), shape) => leaf == *shape,
                (None, _) => false,
            };
            if let Some((_, spelling, at)) = starts.words.iter().find(fits) {
                let reason = format!("a pointer that it is taken from is read as {spelling} as well");
                self.find(record, Verdict::First, UseKind::FirstMember, at, reason);
            }
        }
    }
}

/// True when the spelling of a type is that of a pointer to a function.
fn is_code(spelling: &Name) -> bool {
    spelling.contains("( * )")
}

/// Places, with the variables that they are assigned to unchanged.
struct Groups<'f>(BTreeMap<&'f PointerPlace, &'f PointerPlace>);

impl<'f> Groups<'f> {
    fn of(facts: &'f Facts) -> Groups<'f> {
        let mut groups = Groups(BTreeMap::new());
        for (value, to) in &facts.flows {
            // A member may be given every other member's value.
            let is_variable = matches!(to, PointerPlace::Variable(_));
            if let Value { source: Source::Place(from), reach: Reach::Start, level: 0 } = value
                && is_variable
            {
                let (one, two) = (groups.first(from), groups.first(to));
                if one != two {
                    groups.0.insert(two, one);
                }
            }
        }
        groups
    }

    /// The place that stands for its group.
    fn first(&self, place: &'f PointerPlace) -> &'f PointerPlace {
        let mut place = place;
        while let Some(next) = self.0.get(place) {
            place = next;
        }
        place
    }
}
