//! The demand of calls on objects of a type, under one data model.

use crate::layout::background_lines::BackgroundLines;
use crate::layout::granules::Span;
use crate::layout::neighbour::Neighbour;
use crate::layout::placement::{self, Field, Placed};
use lineup_model::region::RegionId;

/// One way a call uses an object, in one data model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Demand {
    /// Index of the region.
    pub(crate) region: RegionId,
    /// The start of the object, modulo 128.
    pub(crate) base: u64,
    /// Expected occurrences per call, in units of 2^-20.
    pub(crate) per_call: u64,
    /// The same times the region's weight.
    pub(crate) weight: u64,
    /// The parts of members touched.
    pub(crate) spans: Vec<Span>,
    /// The neighbours: objects of the type before this one that the call uses in the same way. For each distance, the
    /// entry has the number of `per_call` with such a neighbour and their part of `anyway`.
    pub(crate) neighbours: Vec<(Neighbour, u64, BackgroundLines)>,
    /// The size of the objects when `anyway` was counted.
    pub(crate) recorded_bytes: u64,
    /// Background lines at the ends of the objects.
    pub(crate) anyway: BackgroundLines,
}

impl Demand {
    /// The number of `per_call` without a neighbour.
    pub(crate) fn alone_per_call(&self) -> u64 {
        let beside = self.neighbours.iter().map(|(_, per_call, _)| per_call).sum();
        self.per_call.saturating_sub(beside)
    }

    /// The part of `anyway` that belongs to objects without a neighbour.
    pub(crate) fn alone_anyway(&self) -> BackgroundLines {
        self.neighbours.iter().fold(self.anyway, |left, (_, _, anyway)| left.without(anyway))
    }

    /// The same demand of objects that start elsewhere. Bytes that lay next to them are not known to lie there as well.
    pub(crate) fn moved_to(&self, base: u64) -> Demand {
        if base == self.base {
            return self.clone();
        }
        let neighbours = self
            .neighbours
            .iter()
            .map(|(neighbour, per_call, _)| (*neighbour, *per_call, BackgroundLines::default()));
        Demand { base, neighbours: neighbours.collect(), anyway: BackgroundLines::default(), ..self.clone() }
    }

    /// Lines per call, counted by the weight of the region.
    pub(crate) fn weighed(&self, lines_per_call: u64) -> u64 {
        let weighed = u128::from(lines_per_call) * u128::from(self.weight) / u128::from(self.per_call.max(1));
        u64::try_from(weighed).unwrap_or(u64::MAX)
    }
}

/// A type under one data model.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The members to place.
    pub(crate) fields: Vec<Field>,
    /// Alignment of the whole.
    pub(crate) align_bytes: u64,
    /// The demands of calls.
    pub(crate) demands: Vec<Demand>,
    /// Fields whose bytes may not change offset.
    pub(crate) fixed_bits: Vec<(usize, u64)>,
    /// Bytes taken before the first field by base classes, which are no members.
    pub(crate) head_bits: u64,
}

impl Model {
    /// The places of the fields, laid out in the order that `fields` names them.
    pub(crate) fn place(&self, fields: &[usize]) -> Option<Placed> {
        placement::place_after(&self.fields, fields, self.align_bytes, self.head_bits)
    }

    /// The first field that has to keep its offset and has another.
    pub(crate) fn moved_from_its_offset(&self, offsets_bits: &[u64]) -> Option<usize> {
        let mut fixed = self.fixed_bits.iter();
        fixed.find(|(field, bits)| offsets_bits.get(*field) != Some(bits)).map(|(field, _)| *field)
    }
}

/// The accesses of threads that make a member unfit as a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Traffic {
    /// Written by one thread and touched by another.
    pub(crate) is_write_shared: bool,
    /// Read, by threads that do not write it, and written by none.
    pub(crate) is_read_mostly: bool,
}
