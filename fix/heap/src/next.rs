//! The allocator that the program had: the functions behind these in the loader's order.

use crate::memory::set_errno;
use libc::{c_char, c_int, c_void};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// The address of a function, once it was looked up.
struct Function {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Function {
    const fn new(name: &'static CStr) -> Self {
        Function { name, address: AtomicUsize::new(0) }
    }

    #[inline(always)]
    fn get(&self) -> Option<usize> {
        match self.address.load(Relaxed) {
            0 => look_up_all().then(|| self.address.load(Relaxed)).filter(|address| *address != 0),
            address => Some(address),
        }
    }
}

static MALLOC: Function = Function::new(c"malloc");
static CALLOC: Function = Function::new(c"calloc");
static REALLOC: Function = Function::new(c"realloc");
static FREE: Function = Function::new(c"free");
static MEMALIGN: Function = Function::new(c"memalign");
static USABLE: Function = Function::new(c"malloc_usable_size");
static TRIM: Function = Function::new(c"malloc_trim");

/// The thread that looks the functions up, as `pthread_self` names it.
static LOOKING_UP: AtomicUsize = AtomicUsize::new(0);
static LOOKED_UP: AtomicBool = AtomicBool::new(false);

/// False for the thread that is looking the functions up, which itself may allocate.
#[cold]
fn look_up_all() -> bool {
    // SAFETY: asks for the thread's name.
    let own = unsafe { libc::pthread_self() } as usize;
    if let Err(by) = LOOKING_UP.compare_exchange(0, own, Acquire, Acquire) {
        while by != own && !LOOKED_UP.load(Acquire) {
            std::hint::spin_loop();
        }
        return LOOKED_UP.load(Acquire);
    }
    for function in [&MALLOC, &CALLOC, &REALLOC, &FREE, &MEMALIGN, &USABLE, &TRIM] {
        // SAFETY: the name ends with a zero.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, function.name.as_ptr().cast::<c_char>()) };
        function.address.store(address as usize, Relaxed);
    }
    LOOKED_UP.store(true, Release);
    true
}

/// Looks the functions up, and has the next allocator begin while there is one thread: glibc's does not expect two
/// threads to be the first ones.
pub(crate) fn begin() {
    look_up_all();
    // SAFETY: the object is new.
    unsafe { free(std::hint::black_box(malloc(1))) };
}

/// Objects for the loader while it looks functions up; none is ever given back.
#[repr(C, align(16))]
struct Early([u8; EARLY]);

const EARLY: usize = 16384;

/// Each early object has its size in front of it.
const EARLY_HEADER: usize = 16;

static mut EARLY_ROOM: Early = Early([0; EARLY]);
static EARLY_USED: AtomicUsize = AtomicUsize::new(0);

fn early(size: usize) -> *mut c_void {
    let whole = size.saturating_add(EARLY_HEADER).next_multiple_of(16);
    let at = EARLY_USED.fetch_add(whole.min(EARLY), Relaxed);
    if at.saturating_add(whole) > EARLY {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    }
    let room = (&raw mut EARLY_ROOM).cast::<u8>();
    // SAFETY: the part from `at` is inside the room, and no other call got it.
    unsafe {
        let start = room.add(at);
        start.cast::<usize>().write(size);
        start.add(EARLY_HEADER).cast()
    }
}

/// The size of an early object; `None` for every other address.
fn early_size(object: *mut c_void) -> Option<usize> {
    let offset = (object as usize).wrapping_sub(&raw const EARLY_ROOM as usize);
    // SAFETY: early objects have their size in front of them.
    (offset < EARLY).then(|| unsafe { object.cast::<usize>().byte_sub(EARLY_HEADER).read() })
}

pub(crate) fn malloc(size: usize) -> *mut c_void {
    let Some(address) = MALLOC.get() else { return early(size) };
    // SAFETY: the function of this name.
    unsafe { std::mem::transmute::<usize, extern "C" fn(usize) -> *mut c_void>(address)(size) }
}

pub(crate) fn calloc(count: usize, size: usize) -> *mut c_void {
    // Early memory begins as zeros.
    let Some(address) = CALLOC.get() else { return early(count.saturating_mul(size)) };
    // SAFETY: the function of this name.
    unsafe { std::mem::transmute::<usize, extern "C" fn(usize, usize) -> *mut c_void>(address)(count, size) }
}

pub(crate) fn memalign(alignment: usize, size: usize) -> *mut c_void {
    let Some(address) = MEMALIGN.get() else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    // SAFETY: the function of this name.
    unsafe {
        std::mem::transmute::<usize, extern "C" fn(usize, usize) -> *mut c_void>(address)(alignment, size)
    }
}

/// # Safety
/// As for C's `realloc`.
pub(crate) unsafe fn realloc(object: *mut c_void, size: usize) -> *mut c_void {
    if let Some(before) = early_size(object) {
        let moved = malloc(size);
        if !moved.is_null() {
            // SAFETY: both hold at least this many bytes.
            unsafe { ptr::copy_nonoverlapping(object.cast::<u8>(), moved.cast(), before.min(size)) };
        }
        return moved;
    }
    let Some(address) = REALLOC.get() else { return early(size) };
    // SAFETY: the function of this name, with the caller's promise.
    unsafe {
        std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>(address)(
            object, size,
        )
    }
}

/// # Safety
/// As for C's `free`.
pub(crate) unsafe fn free(object: *mut c_void) {
    if object.is_null() || early_size(object).is_some() {
        return;
    }
    if let Some(address) = FREE.get() {
        // SAFETY: the function of this name, with the caller's promise.
        unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(address)(object) }
    }
}

/// # Safety
/// As for `malloc_usable_size`.
pub(crate) unsafe fn usable(object: *mut c_void) -> usize {
    if let Some(size) = early_size(object) {
        return size;
    }
    let Some(address) = USABLE.get() else { return 0 };
    // SAFETY: the function of this name, with the caller's promise.
    unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> usize>(address)(object) }
}

pub(crate) fn trim(kept: usize) -> c_int {
    let Some(address) = TRIM.get() else { return 0 };
    // SAFETY: the function of this name.
    unsafe { std::mem::transmute::<usize, extern "C" fn(usize) -> c_int>(address)(kept) }
}
