//! Pools by allocation site and size in front of the allocator that a program has:
//! `LD_PRELOAD=liblineup_heap.so LINEUP_HEAP_PLAN=plan program`. The plan's text is that of `lineup_heap_plan`.
//!
//! Memory: one range of addresses is reserved. It is cut into segments of 2 MiB, each of one pool, and a segment into
//! runs of 64 KiB, each of one thread's lane. A run holds objects of one size without headers, and a bitmap elsewhere
//! says which are free. So an address leads to its run by a shift, and what is outside the range belongs to others.
//!
//! Design constraints:
//!
//! * Without a plan, and for all that it does not name, every call goes to the allocator the program had.
//! * A lane is used by one thread at a time. Objects that another thread frees wait in a second bitmap of their run,
//!   and the run waits in its lane's inbox.
//! * An object that is free already, and an address inside an object, end the program with a message.
//! * Nothing here allocates from the program's heap: memory for tables is mapped.
//! * With `LINEUP_HEAP_PROFILE` there are no pools, and calls are counted by site.

mod counting;
mod distances;
mod entry;
mod fork_gate;
mod forks;
mod lane;
mod lock;
mod memory;
mod message;
mod modules;
mod next;
mod pools;
mod run;
mod segments;
mod sites;
mod start;
mod thread_word;

use std::alloc::{GlobalAlloc, Layout};

pub use entry::{
    aligned_alloc, calloc, free, malloc, malloc_trim, malloc_usable_size, memalign, posix_memalign, realloc,
    reallocarray,
};

/// The same for a Rust program: `#[global_allocator] static HEAP: lineup_heap::Heap = lineup_heap::Heap;`
#[derive(Clone, Copy, Debug, Default)]
pub struct Heap;

/// `malloc` aligns to this.
const USUAL: usize = 16;

// SAFETY: the functions are those of C, whose contract for size, alignment and lifetime is the same.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size may be asked for.
        unsafe {
            match layout.align() <= USUAL {
                true => malloc(layout.size()).cast(),
                false => memalign(layout.align(), layout.size()).cast(),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size may be asked for; the object is as large as what is zeroed.
        unsafe {
            if layout.align() <= USUAL {
                return calloc(1, layout.size()).cast();
            }
            let object = self.alloc(layout);
            if !object.is_null() {
                object.write_bytes(0, layout.size());
            }
            object
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, _: Layout) {
        // SAFETY: the caller's object is one of these functions.
        unsafe { free(object.cast()) }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's object has the layout; a copy holds the smaller of both sizes.
        unsafe {
            if layout.align() <= USUAL {
                return realloc(object.cast(), size).cast();
            }
            let moved = memalign(layout.align(), size).cast::<u8>();
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(object, layout.size().min(size));
                free(object.cast());
            }
            moved
        }
    }
}
