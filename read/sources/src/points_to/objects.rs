//! The objects that each place may point to.

use super::levels::at_level;
use super::numbers::Numbers;
use crate::collect::further;
use crate::facts::{Origin, PointerPlace, Reach, Source, Value};
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet};

/// An object, the position in it where a pointer points, and true when it was kept meanwhile: in a member, or as an
/// argument of functions of one type.
pub(crate) type Pointed = (Origin, Reach, bool);

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
    pub(super) places: Numbers<PointerPlace>,
    pub(super) origins: Numbers<Origin>,
    /// By the place's number.
    pub(super) at: Vec<PlaceContents>,
    /// The merged origins, each with true when it may arrive without having been kept.
    pub(crate) many: Vec<(Origin, bool)>,
    /// The separate memory of each call, by the memory inside the function that it stands for.
    pub(crate) same_memory: BTreeMap<Name, BTreeSet<Name>>,
}

impl PointsTo {
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
pub(super) struct PlaceContents {
    /// Origins by their numbers, the position in each, and true when it was kept.
    pub(super) each: Vec<(u32, Reach, bool)>,
    /// The position in any of [`PointsTo::many`], and true when it was kept.
    pub(super) many: BTreeSet<(Reach, bool)>,
}
