//! The declaration of each region, mark or lock that a program traces.

use libc::c_char;
use std::ffi::CStr;
use std::sync::atomic::AtomicU64;

/// A region, mark or lock. Its layout is that of `struct lineup_region` in `lineup/trace.h`.
///
/// Made by [`region!`](crate::region) and its siblings; the fields after the name list the interventions that may be
/// tried on it.
#[repr(C)]
#[derive(Debug)]
pub struct Region {
    pub(super) name: *const c_char,
    /// 0 region, 1 mark, 2 lock.
    pub(super) kind: u32,
    /// Mask of arms, by their numbers in [`lineup_trace::Arm`].
    pub(super) arms: u32,
    pub(super) code: *const u8,
    pub(super) code_bytes: usize,
    pub(super) data: *const u8,
    pub(super) data_bytes: usize,
    pub(super) give_up_ns: u64,
    /// Session number in the upper 48 bits, index in its table of names in the lower 16.
    pub(super) cached: AtomicU64,
}

// SAFETY: the pointers are to a string constant, to code and to data that the maker promised to be static; they are
// used to read the name once and to name cache lines.
unsafe impl Sync for Region {}

impl Region {
    const fn of_kind(name: &'static CStr, kind: u32) -> Self {
        Self {
            name: name.as_ptr(),
            kind,
            arms: 0,
            code: std::ptr::null(),
            code_bytes: 0,
            data: std::ptr::null(),
            data_bytes: 0,
            give_up_ns: 0,
            cached: AtomicU64::new(0),
        }
    }

    /// A region of code.
    pub const fn new(name: &'static CStr) -> Self {
        Self::of_kind(name, 0)
    }

    /// A mark.
    pub const fn mark(name: &'static CStr) -> Self {
        Self::of_kind(name, 1)
    }

    /// A lock.
    pub const fn lock(name: &'static CStr) -> Self {
        Self::of_kind(name, 2)
    }

    /// Lets the tracer flush or fetch the `bytes` of code from the start of `function`, by chance, before a call.
    #[must_use]
    pub const fn with_code(mut self, function: *const u8, bytes: usize) -> Self {
        self.code = function;
        self.code_bytes = bytes;
        self.arms |= 1 | 1 << 1 | 1 << 2 | 1 << 6;
        self
    }

    /// Lets the tracer flush or fetch the lines of `data`, by chance, before a call.
    #[must_use]
    pub const fn with_data<T: Sync>(mut self, data: &'static T) -> Self {
        self.data = (&raw const *data).cast();
        self.data_bytes = size_of::<T>();
        self.arms |= 1 | 1 << 3 | 1 << 4 | 1 << 6;
        self
    }

    /// Lets bounded locks inside the region be given up after `bound_ns`, by chance.
    #[must_use]
    pub const fn with_give_up(mut self, bound_ns: u64) -> Self {
        self.give_up_ns = bound_ns;
        self.arms |= 1 | 1 << 5 | 1 << 6;
        self
    }
}
