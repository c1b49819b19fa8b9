//! The functions of C, and their way to a pool or to the program's allocator.

use crate::memory::set_errno;
use crate::run::RUN;
use crate::{counting, lane, message, next, pools, segments, start};
use libc::{c_int, c_void};
use std::ptr;

/// Declares a function of C whose last argument, for the function that does its work, is the place of its return
/// address on the stack.
#[cfg(target_arch = "x86_64")]
macro_rules! with_return_address {
    ($($(#[$words:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $register:literal, $work:ident;)*) => {$(
        $(#[$words])*
        ///
        /// # Safety
        ///
        /// As for the function of C.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            std::arch::naked_asm!(concat!("mov ", $register, ", rsp"), "jmp {work}", work = sym $work)
        }
    )*};
}

/// Elsewhere the place is not known, and only pools for all sites are used.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! with_return_address {
    ($($(#[$words:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $register:literal, $work:ident;)*) => {$(
        $(#[$words])*
        ///
        /// # Safety
        ///
        /// As for the function of C.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller's promise.
            unsafe { $work($($argument,)* ptr::null()) }
        }
    )*};
}

with_return_address! {
    /// An object.
    malloc(size: usize) -> *mut c_void, "rsi", malloc_at;
    /// Objects side by side, of zeros.
    calloc(count: usize, size: usize) -> *mut c_void, "rdx", calloc_at;
    /// An object's content in one of another size.
    realloc(object: *mut c_void, size: usize) -> *mut c_void, "rdx", realloc_at;
    /// The same for objects side by side.
    reallocarray(object: *mut c_void, count: usize, size: usize) -> *mut c_void, "rcx", reallocarray_at;
    /// An object at a multiple of a power of two.
    memalign(alignment: usize, size: usize) -> *mut c_void, "rdx", memalign_at;
    /// An object at a multiple of a power of two.
    aligned_alloc(alignment: usize, size: usize) -> *mut c_void, "rdx", memalign_at;
    /// An object at a multiple of a power of two that is stored, and an error number.
    posix_memalign(object: *mut *mut c_void, alignment: usize, size: usize) -> c_int, "rcx", posix_memalign_at;
}

/// The path of all that has no pool.
#[inline(always)]
fn outside(slot: *const usize, size: usize, make: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let object = make();
    if counting::is_on() {
        counting::note(slot, object, size);
    }
    object
}

extern "C" fn malloc_at(size: usize, slot: *const usize) -> *mut c_void {
    let pool = start::pool(size, slot);
    if pool != 0
        && let Some(object) = lane::take(pool)
    {
        return object as *mut c_void;
    }
    outside(slot, size, || next::malloc(size))
}

extern "C" fn calloc_at(count: usize, size: usize, slot: *const usize) -> *mut c_void {
    let whole = count.saturating_mul(size);
    let pool = start::pool(whole, slot);
    if pool != 0
        && let Some(object) = lane::take(pool)
    {
        let object = object as *mut u8;
        // SAFETY: the pool's objects are at least this large.
        unsafe { object.write_bytes(0, whole) };
        return object.cast();
    }
    outside(slot, whole, || next::calloc(count, size))
}

/// # Safety
/// As for C's `realloc`.
unsafe extern "C" fn realloc_at(object: *mut c_void, size: usize, slot: *const usize) -> *mut c_void {
    if object.is_null() {
        return malloc_at(size, slot);
    }
    let Some(offset) = segments::offset(object as usize) else {
        if counting::is_on() {
            counting::forget(object);
        }
        // SAFETY: the caller's promise; the object is none of a pool.
        let moved = unsafe { next::realloc(object, size) };
        if counting::is_on() {
            counting::note(slot, moved, size);
        }
        return moved;
    };
    let room = lane::usable(object as usize, offset);
    if size == 0 {
        lane::give(object as usize, offset);
        return ptr::null_mut();
    }
    if size <= room && size > room / 2 {
        return object;
    }
    let moved = malloc_at(size, slot);
    if !moved.is_null() {
        // SAFETY: both hold this many bytes, and are objects of their own.
        unsafe { ptr::copy_nonoverlapping(object.cast::<u8>(), moved.cast(), room.min(size)) };
        lane::give(object as usize, offset);
    }
    moved
}

/// # Safety
/// As for `reallocarray`.
unsafe extern "C" fn reallocarray_at(
    object: *mut c_void,
    count: usize,
    size: usize,
    slot: *const usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(whole) => unsafe { realloc_at(object, whole, slot) },
        None => {
            set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

extern "C" fn memalign_at(alignment: usize, size: usize, slot: *const usize) -> *mut c_void {
    match pool_of_aligned(alignment, size, slot).and_then(lane::take) {
        Some(object) => object as *mut c_void,
        None => outside(slot, size, || next::memalign(alignment, size)),
    }
}

/// The pool whose objects all lie at multiples of the alignment: runs begin at multiples of more, and objects are a
/// multiple of it apart.
#[inline(always)]
fn pool_of_aligned(alignment: usize, size: usize, slot: *const usize) -> Option<u32> {
    if !alignment.is_power_of_two() || alignment > RUN {
        return None;
    }
    let pool = start::pool(size.checked_next_multiple_of(alignment)?, slot);
    (pool != 0 && pools::pool(pool).stride().is_multiple_of(alignment)).then_some(pool)
}

/// # Safety
/// As for `posix_memalign`.
unsafe extern "C" fn posix_memalign_at(
    object: *mut *mut c_void,
    alignment: usize,
    size: usize,
    slot: *const usize,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let keeping = crate::memory::Errno::keep();
    let new = memalign_at(alignment, size, slot);
    drop(keeping);
    if new.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: the caller's place.
    unsafe { object.write(new) };
    0
}

/// Frees an object.
///
/// # Safety
///
/// As for the function of C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(object: *mut c_void) {
    match segments::offset(object as usize) {
        Some(offset) => lane::give(object as usize, offset),
        None => {
            if counting::is_on() {
                counting::forget(object);
            }
            if segments::is_unused(object as usize) {
                message::end("free of an address that was never an object", object as usize);
            }
            // SAFETY: the caller's promise; the object is none of a pool.
            unsafe { next::free(object) }
        }
    }
}

/// The bytes that an object may use.
///
/// # Safety
///
/// As for the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(object: *mut c_void) -> usize {
    match segments::offset(object as usize) {
        Some(offset) => lane::usable(object as usize, offset),
        // SAFETY: the caller's promise.
        None => unsafe { next::usable(object) },
    }
}

/// Gives memory back that holds no objects.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(kept: usize) -> c_int {
    lane::trim();
    // The object that the loader looks at: without this, an archive's constructor is not linked.
    std::hint::black_box(&start::BEGIN);
    next::trim(kept)
}
