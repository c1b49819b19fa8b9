//! Sightings of objects: the types that were seen at an address, and how reliably.

use super::list_links::{LinkAt, TouchedParts};
use super::live_times::{LiveTimes, Moment};
use crate::types::catalog::Ty;
use lineup_model::access::AccessKind;
use std::collections::BTreeMap;

/// The reliability of an object's sighting.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Strength {
    /// A pointer of its type held its address.
    PointedTo,
    /// A recorded call was given its address, as a pointer of its type.
    Given,
    /// It was accessed through a pointer of its type.
    Accessed,
}

/// All sightings of a type at one address.
#[derive(Clone, Debug)]
pub(crate) struct TypeSighting {
    pub(crate) ty: Ty,
    pub(crate) strength: Strength,
    pub(crate) touched: TouchedParts,
    pub(super) count: u64,
    pub(super) live: LiveTimes,
    /// Moments at which bytes of it were written as something else, as far as kept.
    pub(super) overwritten: Vec<Moment>,
}

impl TypeSighting {
    /// The same sighting, of the object that this one is part of.
    pub(crate) fn of_type(&self, ty: Ty) -> Self {
        TypeSighting { ty, ..self.clone() }
    }
}

/// A sighting of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sighting {
    /// A pointer of its type held its address.
    Pointer,
    /// A recorded call was given its address, as a pointer of its type.
    Argument,
    /// Bytes of it were accessed through its type.
    Access {
        /// Load or store.
        kind: AccessKind,
        /// From where in the object.
        offset: u64,
        /// The number of bytes.
        size_bytes: u64,
        /// The link that the bytes lie in, if any.
        link: Option<LinkAt>,
    },
}

/// All sightings of objects in one stretch of memory, by the first byte.
pub(crate) type Starts = BTreeMap<u64, Vec<TypeSighting>>;
