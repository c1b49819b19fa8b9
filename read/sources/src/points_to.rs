//! Which objects come to which places: pointers followed through the whole program.
//!
//! What is given to a function and comes out of it again (`realloc`, a list's `void *`) comes out at the call that gave
//! it, not at every call of the function.
//!
//! A program may have hundreds of thousands of places, and to each of them objects of thousands of types may come. So
//! places and origins have numbers, and where what was kept is of more than [`MANY`] types it is not told apart any further:
//! it is added to [`PointsTo::many`], and all such places hold any of these. Memory without a type is treated likewise
//! where it comes beside objects of several types.

mod flow_edges;
mod follow;
mod through;

use crate::collect::further;
use crate::facts::{Facts, Origin, Place, Reach, Source, Value};
use crate::tree::Name;
use flow_edges::FlowEdges;
use indexmap::IndexSet;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;

/// An object, where in it a pointer points, and whether it was kept meanwhile: in a member, or as what functions of one
/// type are called with.
pub(crate) type Pointed = (Origin, Reach, bool);

/// Types of objects that were kept and come to one place, of which the origins are told apart.
const MANY: usize = 64;

/// Arrivals of memory that was kept, at a place where several types come, of which the blocks are told apart.
const MANY_BLOCKS: usize = 256;

/// The block that stands for any of many, which [`PointsTo::same_memory`] lists.
const ANY_BLOCK: &str = "(any of many)";

/// What a value may point to.
#[derive(Default, Debug)]
pub(crate) struct Objects {
    /// What is told apart.
    pub(crate) each: Vec<Pointed>,
    /// Where in it pointers point that lead to any of [`PointsTo::many`], and whether it was kept.
    pub(crate) many: BTreeSet<(Reach, bool)>,
}

/// The objects that each place may point to.
#[derive(Default, Debug)]
pub(crate) struct PointsTo {
    places: Numbers<Place>,
    origins: Numbers<Origin>,
    /// By the place's number.
    at: Vec<Found>,
    /// What is not told apart, and whether it may come where it goes without having been kept.
    pub(crate) many: Vec<(Origin, bool)>,
    /// The memory that calls gave of their own, by the memory inside the function that it is.
    pub(crate) same_memory: BTreeMap<Name, BTreeSet<Name>>,
}

impl PointsTo {
    /// Follows every flow until nothing new comes anywhere.
    pub(crate) fn of(facts: &Facts) -> PointsTo {
        follow::follow(FlowEdges::of(facts), facts)
    }

    /// What a value may point to.
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

    /// What a place holds, as a value moves it.
    fn moved(&self, found: &Found, value: &Value) -> Objects {
        let each = found.each.iter().flat_map(|(origin, reach, kept)| {
            let origins = at_level(self.origins.value(*origin), value.level).into_iter();
            origins.map(|origin| (origin, further(*reach, value.reach), *kept))
        });
        let many = found.many.iter().map(|(reach, kept)| (further(*reach, value.reach), *kept));
        Objects { each: each.collect(), many: many.collect() }
    }
}

/// What comes to one place.
#[derive(Clone, Default, Debug)]
struct Found {
    /// Origins by their numbers, where in them, and whether they were kept.
    each: Vec<(u32, Reach, bool)>,
    /// Where in any of [`PointsTo::many`], and whether it was kept.
    many: BTreeSet<(Reach, bool)>,
}

/// Pointers to pointers to memory that are told apart.
const MOST_LEVELS: u8 = 3;

/// What is found after so many pointers were stored (or read, when negative). What is read from an array of pointers is
/// not the array. Of objects it is not told apart.
fn at_level(origin: &Origin, level: i8) -> Vec<Origin> {
    if let (Origin::Number(record), ..0) = (origin, level) {
        return vec![Origin::Object(record.clone())];
    }
    let Origin::Memory(block, known) = origin else {
        // What is read from an array of numbers is a number.
        let is_number = matches!(origin, Origin::Numbers(..)) && level < 0;
        return if is_number { Vec::new() } else { vec![origin.clone()] };
    };
    if **block == *ANY_BLOCK {
        return vec![origin.clone()];
    }
    let memory = |level: u8| Origin::Memory(block.clone(), level);
    match known.checked_add_signed(level) {
        None => Vec::new(),
        // So far behind, it may be further still.
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
