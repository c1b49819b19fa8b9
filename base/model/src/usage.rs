//! The use of types and variables by regions: the basis of all advice.

use crate::access::ThreadId;
use crate::line::LineSize;
use crate::region::RegionId;
use crate::types::TypeId;
use std::collections::BTreeSet;

/// The use counts of a run of bytes in an object or variable. Offsets count from its start.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ByteUse {
    /// Offset of the first byte.
    pub offset: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Loads seen, summed over all occurrences of the pattern.
    pub loads: u64,
    /// Stores seen, summed over all occurrences of the pattern.
    pub stores: u64,
}

/// One way in which a single call used a single object, and how often it occurred.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectPattern {
    /// Runtime address of the object modulo 128: where it started in its line.
    pub base_in_line: u8,
    /// Distance from the start of the object of this type before it, where the same call used that one in the same way
    /// and the two are near enough to share a line of 128 bytes: elements of an array, for the most part.
    pub neighbour_distance_bytes: Option<u64>,
    /// The bytes touched, sorted by offset, not overlapping.
    pub bytes: Vec<ByteUse>,
    /// The number of pairs of a call and an object that showed this pattern.
    pub occurrences: u64,
    /// The number of them in which the call needs a line at an end of the object in any case: a background line.
    pub needed_anyway: NeededAnyway,
}

impl ObjectPattern {
    /// Objects that start at this offset in a line of 128 bytes, with no neighbouring bytes that the calls use.
    pub fn alone(base_in_line: u8, bytes: Vec<ByteUse>, occurrences: u64) -> Self {
        let needed_anyway = NeededAnyway::default();
        ObjectPattern { base_in_line, neighbour_distance_bytes: None, bytes, occurrences, needed_anyway }
    }
}

/// How often a call also touched neighbouring bytes on an object's first or last line that belong to no object of its
/// type. Such a line is a background line: the call needs it whatever part of the object lies on it. Counted for lines
/// of 32, 64 and 128 bytes.
///
/// ```
/// use lineup_model::usage::NeededAnyway;
/// // 48 bytes from 40 on: bytes 88 to 95, behind the object, are touched as well, on the second line of 64 bytes.
/// let seen = NeededAnyway::seen(40, 48, 0, 0xff << 88);
/// assert_eq!((seen.first, seen.last), ([0, 0, 0], [1, 1, 1]));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct NeededAnyway {
    /// Occurrences in which bytes in front of the object lie on its first line.
    pub first: [u64; 3],
    /// Occurrences in which bytes behind the object lie on its last line.
    pub last: [u64; 3],
    /// Occurrences with both.
    pub both: [u64; 3],
}

impl NeededAnyway {
    /// One object of `size_bytes` that starts at `start` (an address, or its remainder modulo 128). The masks hold the
    /// other bytes that the call touched: on the 128-byte line of the object's first byte, and on that of its last
    /// byte. The lowest bit is the line's first byte.
    pub fn seen(start: u64, size_bytes: u64, first_line: u128, last_line: u128) -> Self {
        let mut seen = Self::default();
        let before = start % 128;
        let end = before.wrapping_add(size_bytes) % 128;
        for (index, line) in LineSize::ALL.into_iter().enumerate() {
            let in_front = before % line.bytes();
            // No room where the object ends with the line.
            let room = end.next_multiple_of(line.bytes()) - end;
            let first = bits(first_line >> (before - in_front), in_front) != 0;
            let last = bits(last_line >> end, room) != 0;
            seen.first[index] = first.into();
            seen.last[index] = last.into();
            seen.both[index] = (first && last).into();
        }
        seen
    }

    /// Adds another's occurrences.
    pub fn add(&mut self, other: &Self) {
        *self = self.zip(other, u64::saturating_add);
    }

    /// Each count with the other's.
    pub fn zip(&self, other: &Self, of: impl Fn(u64, u64) -> u64) -> Self {
        let each =
            |own: &[u64; 3], others: &[u64; 3]| std::array::from_fn(|size| of(own[size], others[size]));
        NeededAnyway {
            first: each(&self.first, &other.first),
            last: each(&self.last, &other.last),
            both: each(&self.both, &other.both),
        }
    }
}

/// The lowest bits of a mask, fewer than all.
fn bits(mask: u128, count: u64) -> u128 {
    mask & ((1 << count) - 1)
}

/// The use of one type's objects by one region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeUse {
    /// The region.
    pub region: RegionId,
    /// The outermost named aggregate that was used (its nested parts count as its bytes).
    pub ty: TypeId,
    /// Calls recorded of the region, whether or not they used the type.
    pub calls: u64,
    /// The distinct patterns.
    pub patterns: Vec<ObjectPattern>,
    /// Objects of this type that were used at offset 0 as a different type, by that type: its first
    /// member is then the object itself and must stay first.
    pub used_as: BTreeSet<TypeId>,
}

/// A global or static variable, identified by its place.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VariableRef {
    /// Its name.
    pub name: String,
    /// Link address.
    pub address: u64,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Bytes of a type's objects that an instruction used which faults where they do not lie at such a multiple. Objects
/// in variables and on stacks are not among these: there a compiler knows the place, and chooses such instructions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AlignedUse {
    /// The type.
    pub ty: TypeId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// The alignment in bytes that the access requires.
    pub asked_bytes: u64,
    /// They are changed in one step, which no compiler chooses by itself.
    pub is_atomic: bool,
}

/// The use of global and static variables by one region: each distinct combination with its count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariableUse {
    /// The region.
    pub region: RegionId,
    /// Calls recorded of the region.
    pub calls: u64,
    /// Combinations of variables touched together in one call.
    pub patterns: Vec<VariablePattern>,
}

/// Variables that one call touched together, and how many calls did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariablePattern {
    /// Each variable with the bytes of it that were touched.
    pub variables: Vec<(VariableRef, Vec<ByteUse>)>,
    /// The number of calls that showed this pattern.
    pub occurrences: u64,
}

/// The threads that read and wrote a run of bytes of a type's objects or of a variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// The type or variable that the bytes belong to.
    pub owner: Owner,
    /// Offset of the first byte in the owner.
    pub offset: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Threads that read them.
    pub readers: BTreeSet<ThreadId>,
    /// Threads that wrote them.
    pub writers: BTreeSet<ThreadId>,
    /// Times a thread touched, in one object, bytes last written by another thread.
    pub handovers: u64,
}

/// The kind of mappings that a program's objects lay in.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MemoryOfObjects {
    /// Types of which all objects seen lay in mappings of the process alone.
    pub private_types: BTreeSet<TypeId>,
    /// Mappings that the process shared with others, or that were a device's.
    pub shared_mappings: u64,
}

/// The threads' use of bytes in objects that several threads share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadUse {
    /// The type.
    pub ty: TypeId,
    /// Offset of the first byte.
    pub offset: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Threads that read them, in any object.
    pub readers: BTreeSet<ThreadId>,
    /// Threads that wrote them.
    pub writers: BTreeSet<ThreadId>,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
}

/// Objects of a type that threads fight over without need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FoughtOver {
    /// The type.
    pub ty: TypeId,
    /// True when different threads use members of one object; false when they use whole neighbouring objects.
    pub is_inside: bool,
    /// Waits for the line alone in a thousand accesses of the threads, in the recorded order.
    pub per_thousand: f64,
    /// The same in the order with most such waits.
    pub per_thousand_at_most: f64,
}

/// A lock in objects of a type, which several threads take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockUse {
    /// The type.
    pub ty: TypeId,
    /// The lock's name.
    pub name: String,
    /// The offset of its word in an object.
    pub offset: u64,
    /// Members used mostly by holders of the lock: offset and size.
    pub guards: Vec<(u64, u64)>,
    /// Waits for the line of its word, and for data needed while it is held, in the recorded order.
    pub waits: u64,
    /// True when threads would wait less with its word elsewhere, alone or next to data needed while it is held.
    pub is_better_elsewhere: bool,
}

/// Variables that threads fight over without need.
#[derive(Clone, PartialEq, Debug)]
pub struct FoughtVariables {
    /// The variables used on the lines; or the one whose elements different threads use.
    pub variables: Vec<VariableRef>,
    /// Elements of one variable are used by different threads; else several variables.
    pub is_inside: bool,
    /// Waits for the line alone in a thousand accesses of the threads, in the recorded order.
    pub per_thousand: f64,
    /// The same in the order with most such waits.
    pub per_thousand_at_most: f64,
}

/// The owner of a run of bytes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// Objects of a type.
    Type(TypeId),
    /// A variable.
    Variable(VariableRef),
}
