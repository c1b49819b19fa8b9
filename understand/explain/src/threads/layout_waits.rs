//! Recorded accesses, gone through once more with data elsewhere: the waits of a layout.

use crate::naming::namer::Namer;
use crate::naming::owner::{OwnerKey, variable_ref};
use crate::threads::access_log::Use;
use crate::threads::process::{Process, all_waits};
use crate::threads::report::{Waits, WaitsByOrder};
use crate::types::catalog::Ty;
use lineup_coherence::{Lines, Orders, Outcome};
use lineup_model::line::LineSize;
use lineup_model::types::TypeId;
use lineup_model::usage::VariableRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An address far from all of a program's data, for variables that would have lines of their own.
const APART: u64 = 0xf0 << 56;
/// Bytes from one such variable to the next.
const VARIABLE_BYTES: u64 = 1 << 32;
/// Data further than this from an object keep their place in their line when the object grows.
const NEAR_BYTES: u64 = 128;

/// The accesses of threads, in the orders in which they may have happened.
#[derive(Debug)]
pub(crate) struct Replay {
    processes: Vec<OfProcess>,
    /// Waits of all of them.
    waits: WaitsByOrder,
    accesses: u64,
    line: LineSize,
}

#[derive(Debug)]
struct OfProcess {
    orders: Orders,
    /// Addresses of objects, by type.
    objects: BTreeMap<Ty, BTreeSet<u64>>,
    /// Addresses of variables, by image.
    variables: BTreeMap<(usize, VariableRef), u64>,
}

impl Replay {
    pub(super) fn new(
        processes: Vec<Process>,
        uses: &[Use],
        (waits, accesses): (WaitsByOrder, u64),
        line: LineSize,
        namer: &mut Namer<'_>,
    ) -> Replay {
        let processes = processes.into_iter().map(|process| of_process(process, uses, line, namer)).collect();
        Replay { processes, waits, accesses, line }
    }

    /// Types of which objects lie on lines that several threads use.
    pub(crate) fn types(&self) -> BTreeSet<Ty> {
        self.processes.iter().flat_map(|process| process.objects.keys()).copied().collect()
    }
}

fn of_process(process: Process, uses: &[Use], line: LineSize, namer: &mut Namer<'_>) -> OfProcess {
    let mut objects: BTreeMap<Ty, BTreeSet<u64>> = BTreeMap::new();
    let mut variables = BTreeMap::new();
    let mut known = BTreeSet::new();
    for (number, touched) in &process.touched {
        for (offset, _, tag, _) in touched.keys() {
            let Some(used) = uses.get(*tag as usize) else { continue };
            if let Some(OwnerKey::Object(ty, start)) = used.object.map(|part| part.owner) {
                objects.entry(ty).or_default().insert(start);
            }
            let Some((OwnerKey::Variable(image, variable), at)) =
                used.part.map(|part| (part.owner, part.offset))
            else {
                continue;
            };
            if known.insert((image, variable))
                && let Some((found, _)) = variable_ref(namer, image, variable)
                && let Some(start) = (number * line.bytes() + offset).checked_sub(at)
            {
                variables.insert((image, found), start);
            }
        }
    }
    OfProcess { orders: process.orders, objects, variables }
}

/// A mapping from each address to its new one.
type Placing = Box<dyn Fn(u64) -> u64>;

/// Waits as data lie, and as they would lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitsElsewhere {
    /// Accesses of all threads.
    pub accesses: u64,
    /// Waits of all threads in the present layout.
    pub before: WaitsByOrder,
    /// Waits of all threads in the other layout.
    pub after: WaitsByOrder,
}

/// The changed layout of a type's objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectsElsewhere {
    /// Size now, in bytes.
    pub size_bytes: u64,
    /// Size then.
    pub new_size_bytes: u64,
    /// Members: offset and size, and the offset then.
    pub members: Vec<(u64, u64, u64)>,
}

/// A variable with lines of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariableElsewhere {
    /// It.
    pub variable: VariableRef,
    /// Bytes from one of its elements to the next, now and then; `None` when it stays in one piece.
    pub strides: Option<(u64, u64)>,
}

/// One image's view of the recorded accesses, to compute the waits with its data elsewhere. Two are equal when they are
/// of the same recording.
#[derive(Clone)]
pub struct Elsewhere {
    replay: Arc<Replay>,
    image: usize,
    types: BTreeMap<TypeId, Ty>,
}

impl PartialEq for Elsewhere {
    fn eq(&self, other: &Elsewhere) -> bool {
        Arc::ptr_eq(&self.replay, &other.replay) && self.image == other.image
    }
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Elsewhere").field("image", &self.image).finish_non_exhaustive()
    }
}

impl Elsewhere {
    pub(crate) fn new(replay: Arc<Replay>, image: usize, types: BTreeMap<TypeId, Ty>) -> Elsewhere {
        Elsewhere { replay, image, types }
    }

    /// Accesses of all threads.
    pub fn accesses(&self) -> u64 {
        self.replay.accesses
    }

    /// Waits as data lie.
    pub fn waits(&self) -> WaitsByOrder {
        self.replay.waits
    }

    /// Waits in the recorded order with the objects of a type as they would be; all else stays. `None` when no such
    /// object lies on a line that several threads use.
    pub fn objects_as_recorded(&self, ty: TypeId, new: &ObjectsElsewhere) -> Option<Waits> {
        let ty = self.types.get(&ty)?;
        let shape = Lines::of(self.replay.line.bytes());
        let one = |process: &OfProcess| {
            let stretched = Stretched::new(process.objects.get(ty), new);
            all_waits(&process.orders.recorded_at(shape, &|address| stretched.place(address)))
        };
        Some(self.replay.processes.iter().map(one).fold(Waits::default(), Waits::plus))
    }

    /// The same in all three orders, and in the present layout.
    pub fn objects(&self, ty: TypeId, new: &ObjectsElsewhere) -> Option<WaitsElsewhere> {
        let ty = self.types.get(&ty)?;
        Some(self.compare(&|process| {
            let stretched = Stretched::new(process.objects.get(ty), new);
            Box::new(move |address| stretched.place(address))
        }))
    }

    /// Waits with these variables on lines of their own; all else stays.
    pub fn variables(&self, all: &[VariableElsewhere]) -> WaitsElsewhere {
        self.compare(&|process| {
            let mut places = BTreeMap::new();
            for (number, one) in (0..).zip(all) {
                if let Some(start) = process.variables.get(&(self.image, one.variable.clone())) {
                    let new = APART + VARIABLE_BYTES * number;
                    places.insert(*start, (one.variable.size_bytes, one.strides, new));
                }
            }
            Box::new(move |address| {
                let before = places.range(..=address).next_back();
                let Some((start, (size, strides, new))) = before else { return address };
                let offset = address - start;
                match strides {
                    _ if offset >= *size => address,
                    None => new + offset,
                    Some((now, then)) => new + offset / now * then + offset % now,
                }
            })
        })
    }

    fn compare(&self, placed: &dyn Fn(&OfProcess) -> Placing) -> WaitsElsewhere {
        let shape = Lines::of(self.replay.line.bytes());
        let one = |process: &OfProcess| in_all_orders(&process.orders, shape, &*placed(process));
        let Replay { waits: before, accesses, ref processes, .. } = *self.replay;
        WaitsElsewhere {
            accesses,
            before,
            after: processes.iter().map(one).fold(WaitsByOrder::default(), WaitsByOrder::plus),
        }
    }
}

fn in_all_orders(orders: &Orders, shape: Lines, place: &dyn Fn(u64) -> u64) -> WaitsByOrder {
    let waits = |outcome: Outcome| all_waits(&outcome);
    WaitsByOrder {
        recorded: waits(orders.recorded_at(shape, place)),
        fewest: waits(orders.fewest_at(shape, place)),
        most: waits(orders.most_at(shape, place)),
    }
}

/// Objects of another layout and size. Data close behind an object move with its end, as in an array or on the heap.
/// Data further away keep their place in their line.
struct Stretched {
    /// The addresses of objects, present and new.
    starts: BTreeMap<u64, u64>,
    new: ObjectsElsewhere,
}

impl Stretched {
    fn new(objects: Option<&BTreeSet<u64>>, new: &ObjectsElsewhere) -> Stretched {
        let mut starts = BTreeMap::new();
        let mut last: Option<(u64, u64)> = None;
        for start in objects.into_iter().flatten().copied() {
            let placed = match last {
                None => start,
                // Such an object is the one before by another name.
                Some((before, _)) if start - before < new.size_bytes => continue,
                Some(before) => behind(before, start, new),
            };
            starts.insert(start, placed);
            last = Some((start, placed));
        }
        Stretched { starts, new: new.clone() }
    }

    fn place(&self, address: u64) -> u64 {
        let Some((start, placed)) = self.starts.range(..=address).next_back() else { return address };
        let offset = address - start;
        if offset >= self.new.size_bytes {
            return behind((*start, *placed), address, &self.new);
        }
        let inside = |(at, size, _): &&(u64, u64, u64)| offset >= *at && offset - at < *size;
        let moved = self.new.members.iter().find(inside);
        moved.map_or(placed.wrapping_add(offset), |(at, _, then)| {
            placed.wrapping_add(*then).wrapping_add(offset - at)
        })
    }
}

/// The new address of data behind an object.
fn behind((start, placed): (u64, u64), address: u64, new: &ObjectsElsewhere) -> u64 {
    let is_near = address - start < new.size_bytes + NEAR_BYTES;
    let by = placed.wrapping_sub(start).wrapping_add(new.new_size_bytes.wrapping_sub(new.size_bytes));
    match is_near {
        true => address.wrapping_add(by),
        false => address.wrapping_add(by.wrapping_add(NEAR_BYTES - 1) & !(NEAR_BYTES - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_beside_each_other_move_with_those_before_and_far_ones_keep_their_place_in_the_line() {
        let new =
            ObjectsElsewhere { size_bytes: 16, new_size_bytes: 72, members: vec![(0, 8, 0), (8, 8, 64)] };
        let starts = BTreeSet::from([0x1000, 0x1010, 0x5008]);
        let stretched = Stretched::new(Some(&starts), &new);
        // The first stays; its second member goes 56 further; the object behind it begins where the first ends now.
        assert_eq!(stretched.place(0x0ff8), 0x0ff8);
        assert_eq!((stretched.place(0x1000), stretched.place(0x100c)), (0x1000, 0x1044));
        assert_eq!((stretched.place(0x1010), stretched.place(0x1018)), (0x1048, 0x1088));
        // Close followers move with the objects. Everything further away moves by whole lines.
        assert_eq!(stretched.place(0x1020), 0x1090);
        assert_eq!(stretched.place(0x5008) % 128, 8);
        assert_eq!(stretched.place(0x5010) - stretched.place(0x5008), 64);
        assert!(stretched.place(0x1020 + 128) > stretched.place(0x1020 + 127));
        assert_eq!(stretched.place(0x3000) % 128, 0);
        // Nothing moves for types without objects.
        assert_eq!(Stretched::new(None, &new).place(0x1010), 0x1010);
    }
}
