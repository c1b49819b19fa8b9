//! The engine's own allocator: the recorded calls may be those of the program's.

use crate::system;
use crate::system::lock::Lock;
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;

/// Blocks of 16 bytes up to 64 KB, by powers of two; larger ones are mapped.
const CLASSES: usize = 13;
const SMALLEST_SHIFT: usize = 4;
/// The size of mappings for small blocks.
const PIECE_BYTES: usize = 1 << 20;

/// The engine takes no memory from the program's allocator. Miri knows no system calls made by hand, and uses its own.
#[cfg_attr(not(miri), global_allocator)]
#[cfg_attr(miri, allow(dead_code))]
pub(crate) static ALLOCATOR: Allocator = Allocator::new();

/// Reserves memory for all later allocations of the engine, since it cannot ask the system for more. False without
/// memory.
pub(crate) fn reserve_memory() -> bool {
    const RESERVED_BYTES: usize = 256 << 20;
    ALLOCATOR.reserve(RESERVED_BYTES)
}

/// Whether the reserved memory has room for the largest single allocation.
pub(crate) fn has_memory() -> bool {
    const MOST_AT_ONCE: usize = 16 << 20;
    ALLOCATOR.left_bytes() > MOST_AT_ONCE
}

struct Heap {
    free: [*mut u8; CLASSES],
    next: *mut u8,
    end: *mut u8,
}

// SAFETY: the pointers are to memory of the heap alone, and the lock lets one thread at a time use them.
unsafe impl Send for Heap {}

/// The allocator.
pub(crate) struct Allocator(Lock<Heap>);

impl Allocator {
    pub(crate) const fn new() -> Allocator {
        let null = ptr::null_mut();
        Allocator(Lock::new(Heap { free: [null; CLASSES], next: null, end: null }))
    }
}

impl Allocator {
    /// Maps this many bytes at once for later allocations. False when the system has no memory.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        self.0.with(|heap| heap.map(bytes))
    }

    /// Bytes that are available without asking the system.
    pub(crate) fn left_bytes(&self) -> usize {
        self.0.with(|heap| heap.end as usize - heap.next as usize)
    }

    /// Does some work while no thread takes or gives back memory; the work must not either.
    pub(crate) fn while_still<R>(&self, work: impl FnOnce() -> R) -> R {
        self.0.with(|_| work())
    }
}

/// The class of a size; `None` for sizes that are mapped.
fn class(layout: Layout) -> Option<usize> {
    let bytes = layout.size().max(layout.align()).max(1 << SMALLEST_SHIFT).next_power_of_two();
    let class = bytes.trailing_zeros() as usize - SMALLEST_SHIFT;
    (class < CLASSES).then_some(class)
}

impl Heap {
    fn take(&mut self, class: usize) -> *mut u8 {
        let first = self.free[class];
        if !first.is_null() {
            // SAFETY: a free block begins with the address of the next.
            self.free[class] = unsafe { first.cast::<*mut u8>().read() };
            return first;
        }
        let bytes = 1 << (class + SMALLEST_SHIFT);
        // Blocks lie at multiples of their size.
        let at = (self.next as usize).next_multiple_of(bytes);
        if self.next.is_null() || at + bytes > self.end as usize {
            if !self.map(PIECE_BYTES) {
                return ptr::null_mut();
            }
            return self.take_aligned(bytes);
        }
        self.take_aligned(bytes)
    }

    fn map(&mut self, bytes: usize) -> bool {
        let Some(piece) = system::memory(bytes) else { return false };
        // SAFETY: within the piece.
        (self.next, self.end) = (piece, unsafe { piece.add(bytes) });
        true
    }

    fn take_aligned(&mut self, bytes: usize) -> *mut u8 {
        let at = self.next.wrapping_add((self.next as usize).next_multiple_of(bytes) - self.next as usize);
        self.next = at.wrapping_add(bytes);
        if self.next as usize > self.end as usize { ptr::null_mut() } else { at }
    }
}

// SAFETY: blocks are disjoint, at multiples of a power of two that is no smaller than size and alignment; mapped ones
// lie on pages.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match class(layout) {
            Some(class) => self.0.with(|heap| heap.take(class)),
            // Such memory is not given back.
            None if system::is_sealed() => self.0.with(|heap| {
                let bytes = layout.size().next_multiple_of(1 << SMALLEST_SHIFT);
                let has_room = heap.end as usize - heap.next as usize > 2 * layout.size() + layout.align();
                let at = (heap.next as usize).next_multiple_of(layout.align().max(1 << SMALLEST_SHIFT));
                let block = heap.next.wrapping_add(at - heap.next as usize);
                if !has_room {
                    return ptr::null_mut();
                }
                heap.next = block.wrapping_add(bytes);
                block
            }),
            None => system::memory(layout.size()).unwrap_or(ptr::null_mut()),
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match class(layout) {
            Some(class) => self.0.with(|heap| {
                // SAFETY: a block of this class, which is free from now on.
                unsafe { block.cast::<*mut u8>().write(heap.free[class]) };
                heap.free[class] = block;
            }),
            None => system::unmap(block, layout.size()),
        }
    }
}
