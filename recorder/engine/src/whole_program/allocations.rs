//! Whole programs: the program's allocations, and their callers.
//!
//! The command lists the functions of allocators, and the rules that lead from a place in the code to its function's
//! caller, see [`lineup_recording::native::heap`]. Blocks that begin there, and those that such a call returns to, hand
//! over to the engine first, with the program's registers unchanged. Of allocators that call each other the outermost
//! counts.

use crate::engine::Engine;
use crate::machine::{Abi, Host, HostRegisters, Registers};
use crate::shared::Shared;
use crate::system::{self, mappings};
use crate::threads::slots::Slots;
use lineup_recording::native::heap::{Allocator, FrameBase, MOST_FRAMES};
use lineup_recording::native::record;
use std::ops::Range;

/// Places in the code that a thread remembers. A power of two.
const PLACES: usize = 1 << 12;
/// Stacks that a thread remembers.
const MOST_STACKS: usize = 16;
/// Places of hand-over to the engine that a thread remembers. A power of two.
const KINDS: usize = 1 << 8;
/// Chains of calls that a thread remembers. A power of two.
const CHAINS: usize = 1 << 12;

/// A thread's open call of an allocator, and caches for walking its stack.
pub(crate) struct Allocations {
    /// The allocator's call that has not returned.
    open: Option<Open>,
    places: Box<[ReturnSite; PLACES]>,
    /// Memory that stacks lie in.
    stacks: Vec<Range<u64>>,
    /// The kind of each place, for this number of known allocators.
    kinds: Box<[Kind; KINDS]>,
    allocators: usize,
    /// Names of chains of calls that the log has.
    chains: Box<[u64; CHAINS]>,
}

/// The allocator that begins at a place, if any.
#[derive(Clone, Copy, Default)]
struct Kind {
    pc: u64,
    allocator: Option<Allocator>,
}

/// The calls under way.
struct Frames {
    /// Their return addresses, the innermost first.
    all: [u64; MOST_FRAMES],
    count: usize,
    /// Their name in the log.
    name: u64,
}

/// A call of an allocator.
struct Open {
    /// Address of its return address.
    stack: u64,
    /// The return address.
    back: u64,
    allocator: Allocator,
    /// Its arguments in registers.
    arguments: [u64; 6],
    frames: Frames,
}

/// Knowledge of a return address.
#[derive(Clone, Copy, Default)]
struct ReturnSite {
    pc: u64,
    base: Option<FrameBase>,
    /// A call returns there, and the block hands over to the engine.
    is_watched: bool,
}

impl Allocations {
    /// Without any knowledge.
    pub(crate) fn new() -> Allocations {
        Allocations {
            open: None,
            places: table(),
            stacks: Vec::new(),
            kinds: table(),
            allocators: 0,
            chains: table(),
        }
    }

    /// The allocator that begins at an address: there are some dozens, too many to be looked through each time.
    fn allocator_at(&mut self, shared: &Shared, pc: u64) -> Option<Allocator> {
        let told = shared.count_allocators();
        if self.allocators != told {
            self.allocators = told;
            self.kinds.fill(Kind::default());
        }
        let kind = &mut self.kinds[(pc ^ pc >> 8) as usize % KINDS];
        if kind.pc != pc {
            *kind = Kind { pc, allocator: shared.allocator_at(pc) };
        }
        kind.allocator
    }

    /// The end of the mapped memory in which a stack pointer lies.
    fn stack_end(&mut self, stack: u64) -> u64 {
        if let Some(known) = self.stacks.iter().find(|range| range.contains(&stack)) {
            return known.end;
        }
        let mappings = mappings::read();
        let Some(mapping) = mappings.iter().find(|mapping| mapping.range.contains(&stack)) else { return 0 };
        // A stack that has grown replaces its old entry.
        self.stacks.retain(|range| range.end != mapping.range.end);
        self.stacks.truncate(MOST_STACKS - 1);
        self.stacks.insert(0, mapping.range.clone());
        mapping.range.end
    }
}

impl Engine {
    /// The program is at the start of an allocator, or at the return from one. False when the log cannot be written any
    /// more.
    pub(crate) fn at_allocation(
        &self,
        slots: &mut Slots,
        registers: &HostRegisters,
        own: &mut Allocations,
    ) -> bool {
        let pc = slots.pc;
        if let Some(open) = own.open.take_if(|open| slots.stack > open.stack) {
            // If it continues, the call was left by a jump.
            if open.back == pc
                && slots.stack == open.stack + Host::RETURN_BYTES
                && !self.log_allocated(slots, registers, &open, own)
            {
                return false;
            }
        }
        match own.allocator_at(&self.shared, pc) {
            None => true,
            Some(_) if own.open.is_some() => true,
            Some(Allocator::Free) => self.log_freed(slots, registers.function_arguments()[0]),
            Some(allocator) => {
                self.open(slots, registers, allocator, own);
                true
            }
        }
    }

    /// A call of an allocator, outside of any other allocator.
    fn open(&self, slots: &Slots, registers: &HostRegisters, allocator: Allocator, own: &mut Allocations) {
        let stack = slots.stack;
        // SAFETY: at a function's beginning.
        let back = unsafe { Host::return_address(stack, registers) };
        let frames = self.frames(stack, registers.frame_pointer(), own);
        let place = &mut own.places[place_of(back)];
        if !std::mem::replace(&mut place.is_watched, true) {
            let signals = system::block_signals();
            self.code.with(|code| code.watch(self, back));
            system::restore_signals(signals);
        }
        let arguments = registers.function_arguments();
        own.open = Some(Open { stack, back, allocator, arguments, frames });
    }

    /// The calls under way.
    fn frames(&self, stack: u64, frame_pointer: u64, own: &mut Allocations) -> Frames {
        let end = own.stack_end(stack);
        let mut frames = Frames { all: [0; MOST_FRAMES], count: 0, name: 0 };
        // The address of the return address.
        let (mut at, mut frame_pointer) = (stack, frame_pointer);
        while frames.count < MOST_FRAMES && at.checked_add(8).is_some_and(|after| after <= end) {
            // SAFETY: between the stack pointer and the end of the memory that it lies in.
            let pc = unsafe { (at as *const u64).read() };
            // A return address that was met before means an outer level of one recursion. With a chain for each way
            // down a recursion there would be as many chains as objects.
            if pc == 0 || frames.all[..frames.count].contains(&pc) {
                break;
            }
            frames.all[frames.count] = pc;
            frames.count += 1;
            frames.name = named(frames.name, pc);
            let place = &mut own.places[place_of(pc)];
            if place.pc != pc {
                // The byte after a call may belong to the next function already.
                let base = self.shared.frame_rule(pc - 1).and_then(|rule| rule.base);
                *place = ReturnSite { pc, base, is_watched: false };
            }
            let Some(base) = place.base else { break };
            let from = if base.is_of_frame_pointer { frame_pointer } else { at + 8 };
            let Some(callers) = from.checked_add(8 * u64::from(base.words)) else { break };
            let is_above = callers > at + 8 && callers <= end;
            let saved = callers.wrapping_sub(8 * u64::from(base.saved_words));
            if !is_above || !callers.is_multiple_of(8) || saved < stack {
                break;
            }
            if base.saved_words > 0 {
                // SAFETY: between the stack pointer and the end of its memory, as checked.
                frame_pointer = unsafe { (saved as *const u64).read() };
            }
            at = callers - 8;
        }
        frames
    }

    /// A call of an allocator has returned.
    fn log_allocated(
        &self,
        slots: &mut Slots,
        registers: &HostRegisters,
        open: &Open,
        own: &mut Allocations,
    ) -> bool {
        let [first, second, third, ..] = open.arguments;
        let given = registers.function_result();
        let (old, address, bytes) = match open.allocator {
            Allocator::Malloc => (0, given, first),
            Allocator::Calloc => (0, given, first.wrapping_mul(second)),
            Allocator::Realloc => (first, given, second),
            Allocator::ReallocArray => (first, given, second.wrapping_mul(third)),
            Allocator::Aligned => (0, given, second),
            Allocator::PosixMemalign if given == 0 => {
                // SAFETY: the allocator has just written there, as its result says.
                (0, unsafe { (first as *const u64).read_unaligned() }, third)
            }
            Allocator::PosixMemalign | Allocator::Free => return true,
        };
        // A block that got no other memory keeps its own, unless none was asked for.
        if address == 0 {
            return bytes != 0 || self.log_freed(slots, old);
        }
        if !self.log_freed(slots, old) {
            return false;
        }
        self.log_chain(slots, &open.frames, own)
            && self.log(slots, &[u64::from(record::ALLOCATED) << 32, address, bytes, open.frames.name])
    }

    /// Logs the calls that a name stands for, unless this thread has logged them lately.
    fn log_chain(&self, slots: &mut Slots, frames: &Frames, own: &mut Allocations) -> bool {
        let known = &mut own.chains[frames.name as usize % CHAINS];
        if std::mem::replace(known, frames.name) == frames.name {
            return true;
        }
        let mut words = [0; record::CHAIN_WORDS + MOST_FRAMES];
        words[..record::CHAIN_WORDS].copy_from_slice(&[
            u64::from(record::CHAIN) << 32,
            frames.name,
            frames.count as u64,
        ]);
        words[record::CHAIN_WORDS..].copy_from_slice(&frames.all);
        self.log(slots, &words[..record::CHAIN_WORDS + frames.count])
    }

    fn log_freed(&self, slots: &mut Slots, address: u64) -> bool {
        address == 0 || self.log(slots, &[u64::from(record::FREED) << 32, address])
    }
}

/// A table in which nothing is known.
fn table<T: Clone + Default, const N: usize>() -> Box<[T; N]> {
    vec![T::default(); N].try_into().unwrap_or_else(|_| unreachable!("of this very length"))
}

/// The name of a chain of calls with one more call. It has enough bits to be unique within a program, and is never 0.
fn named(name: u64, pc: u64) -> u64 {
    // The upper half of a product depends on all bits of both, and the lower one on all below; 2^64 over the golden
    // ratio.
    let product = u128::from(name.rotate_left(5) ^ pc) * 0x9e37_79b9_7f4a_7c15;
    (product as u64 ^ (product >> 64) as u64) | 1 << 63
}

fn place_of(pc: u64) -> usize {
    (pc ^ pc >> 12) as usize % PLACES
}
