//! The objects that arrive at each place: pointers followed through the whole program.
//!
//! A pointer that a function takes and gives back (`realloc`, a list's `void *`) comes out at the call that gave it,
//! not at every call of the function.
//!
//! A program may have hundreds of thousands of places, and objects of thousands of types may arrive at each of them. So
//! places and origins have numbers. Where the kept objects have more than [`MANY`] types, they are merged: they are
//! added to [`PointsTo::many`], and all such places hold any of these. Memory without a type is treated likewise where
//! it arrives together with objects of several types.

mod flow_edges;
mod follow;
mod through;

use crate::collect::further;
use crate::facts::{Facts, Origin, PointerPlace, Reach, Source, Value};
use crate::tree::Name;
use flow_edges::FlowEdges;
use indexmap::IndexSet;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

/// An object, the position in it where a pointer points, and true when it was kept meanwhile: in a member, or as an
/// argument of functions of one type.
pub(crate) type Pointed = (Origin, Reach, bool);

/// The number of types of kept objects up to which a place keeps their origins separate.
const MANY: usize = 64;

/// The number of arrivals of kept memory up to which a place with several types keeps the blocks separate.
const MANY_BLOCKS: usize = 256;

/// The block that stands for any of many, which [`PointsTo::same_memory`] lists.
const ANY_BLOCK: &str = "(any of many)";

/// The possible targets of a value.
#[derive(Default, Debug)]
pub(crate) struct Objects {
    /// The targets that are kept separate.
    pub(crate) each: Vec<Pointed>,
    /// For pointers to any of [`PointsTo::many`]: the position in the target, and true when it was kept.
    pub(crate) many: BTreeSet<(Reach, bool)>,
}

/// The objects that each place may point to.
#[derive(Default, Debug)]
pub(crate) struct PointsTo {
    places: Numbers<PointerPlace>,
    origins: Numbers<Origin>,
    /// By the place's number.
    at: Vec<PlaceContents>,
    /// The merged origins, each with true when it may arrive without having been kept.
    pub(crate) many: Vec<(Origin, bool)>,
    /// The separate memory of each call, by the memory inside the function that it stands for.
    pub(crate) same_memory: BTreeMap<Name, BTreeSet<Name>>,
}

impl PointsTo {
    /// Follows every flow until nothing new arrives anywhere.
    pub(crate) fn of(facts: &Facts) -> PointsTo {
        follow::follow(FlowEdges::of(facts), facts)
    }

    /// The possible targets of a value.
    pub(crate) fn objects(&self, value: &Value) -> Objects {
        match &value.source {
            Source::Origin(origin) => {
                let origins = at_level(origin, value.level).into_iter();
                let each = origins.map(|origin| (origin, value.reach, false)).collect();
                Objects { each, ..Objects::default() }
            }
            Source::Place(_) if value.reach == Reach::Address => Objects::default(),
            Source::Place(place) => {
                let found = self.places.known(place).and_then(|place| self.at.get(place as usize));
                found.map_or_else(Objects::default, |found| self.moved(found, value))
            }
            Source::Function(_) => Objects::default(),
        }
    }

    /// The contents of a place, moved as the value moves them.
    fn moved(&self, found: &PlaceContents, value: &Value) -> Objects {
        let each = found.each.iter().flat_map(|(origin, reach, kept)| {
            let origins = at_level(self.origins.value(*origin), value.level).into_iter();
            origins.map(|origin| (origin, further(*reach, value.reach), *kept))
        });
        let many = found.many.iter().map(|(reach, kept)| (further(*reach, value.reach), *kept));
        Objects { each: each.collect(), many: many.collect() }
    }
}

/// The origins that arrive at one place.
#[derive(Clone, Default, Debug)]
struct PlaceContents {
    /// Origins by their numbers, the position in each, and true when it was kept.
    each: Vec<(u32, Reach, bool)>,
    /// The position in any of [`PointsTo::many`], and true when it was kept.
    many: BTreeSet<(Reach, bool)>,
}

/// The depth up to which pointers to pointers to memory are kept separate.
const MOST_LEVELS: u8 = 3;

/// The origin after `level` pointers were stored (or read, when negative). A value read from an array of pointers is
/// not the array. Objects do not distinguish levels.
fn at_level(origin: &Origin, level: i8) -> Vec<Origin> {
    if let (Origin::Number(record), ..0) = (origin, level) {
        return vec![Origin::Object(record.clone())];
    }
    let Origin::Memory(block, known) = origin else {
        // A value read from an array of numbers is a number.
        let is_number = matches!(origin, Origin::Numbers(..)) && level < 0;
        return if is_number { Vec::new() } else { vec![origin.clone()] };
    };
    if **block == *ANY_BLOCK {
        return vec![origin.clone()];
    }
    let memory = |level: u8| Origin::Memory(block.clone(), level);
    match known.checked_add_signed(level) {
        None => Vec::new(),
        // At the greatest depth, it may be deeper still.
        Some(now) if *known == MOST_LEVELS && level < 0 => (now..=MOST_LEVELS).map(memory).collect(),
        Some(now) => vec![memory(now.min(MOST_LEVELS))],
    }
}

/// Values by the order in which they were first met.
#[derive(Debug)]
struct Numbers<T>(IndexSet<T, foldhash::fast::RandomState>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers(IndexSet::default())
    }
}

impl<T: Hash + Eq + Clone> Numbers<T> {
    /// The value's number, a new one if it has none.
    fn number(&mut self, value: &T) -> u32 {
        let at = match self.0.get_index_of(value) {
            Some(known) => known,
            None => self.0.insert_full(value.clone()).0,
        };
        u32::try_from(at).expect("values take many bytes each, so memory ends before their numbers do")
    }

    fn known(&self, value: &T) -> Option<u32> {
        self.0.get_index_of(value).and_then(|at| u32::try_from(at).ok())
    }

    /// The value of a number that was given here.
    fn value(&self, number: u32) -> &T {
        &self.0[number as usize]
    }

    fn count(&self) -> usize {
        self.0.len()
    }
}
