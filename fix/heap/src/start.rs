//! The library's begin: reads the environment and the plan. Until it ran, every call goes to the program's allocator.

use crate::memory;
use crate::message::say;
use crate::pools::{self, Sizes};
use crate::{counting, forks, lane, next, segments, sites};
use lineup_heap_plan::lines;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::{slice, str};

/// The file of the plan.
const PLAN: &CStr = c"LINEUP_HEAP_PLAN";

/// The file for counts, without the process's number.
const PROFILE: &CStr = c"LINEUP_HEAP_PROFILE";

/// The longest plan, in bytes.
const LONGEST: usize = 16 << 20;

/// The pools for objects of every site.
static ALL: AtomicPtr<Sizes> = AtomicPtr::new(ptr::null_mut());

/// The pool for an object; 0 where the plan names none.
#[inline(always)]
pub(crate) fn pool(size: usize, slot: *const usize) -> u32 {
    if let Some(sizes) = sites::sizes(slot) {
        let pool = sizes.pool(size);
        if pool != 0 {
            return pool;
        }
    }
    // SAFETY: null, or pools, which stay.
    match unsafe { ALL.load(Relaxed).as_ref() } {
        Some(sizes) => sizes.pool(size),
        None => 0,
    }
}

/// The loader calls it before the program's own constructors.
#[used]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".init_array"))]
pub(crate) static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    next::begin();
    // SAFETY: names end with a zero; the environment does not change yet.
    let (plan, profile) = unsafe { (variable(PLAN), variable(PROFILE)) };
    if let Some(file) = profile {
        forks::watch();
        counting::begin(file);
    } else if let Some(file) = plan {
        match load(file) {
            Ok(()) => {}
            Err(why) => say(format_args!(
                "the plan {} is not used, and the program runs as without it: {why}",
                file.to_str().unwrap_or("(not UTF-8)")
            )),
        }
    }
}

/// A variable of the environment, unless the program has more rights than its user.
///
/// # Safety
/// The environment does not change meanwhile, and the variable stays.
unsafe fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        fn secure_getenv(name: *const libc::c_char) -> *const libc::c_char;
    }
    // SAFETY: the name ends with a zero, and so does the value.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null() && *value != 0).then(|| CStr::from_ptr(value))
    }
}

/// Why a plan is not used.
enum Refusal {
    /// The system's error number.
    File(i32),
    Length,
    Text,
    Line(lineup_heap_plan::PlanError),
    Memory,
    Pools,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::File(number) => write!(f, "it cannot be read (error {number})"),
            Refusal::Length => write!(f, "it is empty, or longer than 16 MiB"),
            Refusal::Text => write!(f, "it is no UTF-8 text"),
            Refusal::Line(error) => write!(f, "{error}"),
            Refusal::Memory => write!(f, "the system reserves no addresses for pools"),
            Refusal::Pools => write!(f, "it needs more than {} pools", pools::MOST_POOLS - 1),
        }
    }
}

fn load(file: &CStr) -> Result<(), Refusal> {
    let text = read(file)?;
    let mut count = 0;
    for line in lines(text) {
        line.map_err(Refusal::Line)?;
        count += 1;
    }
    if !segments::reserve() || !pools::begin() {
        return Err(Refusal::Memory);
    }
    let room = memory::zeroed(count.max(1) * size_of::<AtomicPtr<Sizes>>()).ok_or(Refusal::Memory)?;
    let of_lines = room as *mut AtomicPtr<Sizes>;
    let all = Sizes::new().ok_or(Refusal::Memory)?;
    for (at, line) in lines(text).flatten().enumerate() {
        let sizes = match line.is_of_all() {
            true => all,
            false => Sizes::new().ok_or(Refusal::Memory)?,
        };
        if !sizes.add(&line) {
            return Err(Refusal::Pools);
        }
        if !line.is_of_all() {
            // SAFETY: there is room for every line.
            unsafe { &*of_lines.add(at) }.store(ptr::from_ref(sizes).cast_mut(), Relaxed);
        }
    }
    forks::watch();
    lane::watch_threads();
    if !sites::begin(text, of_lines) {
        return Err(Refusal::Memory);
    }
    ALL.store(ptr::from_ref(all).cast_mut(), Release);
    Ok(())
}

/// The text of a file, in memory that stays.
fn read(file: &CStr) -> Result<&'static str, Refusal> {
    let error = || {
        let keeping = memory::Errno::keep();
        Refusal::File(keeping.number())
    };
    // SAFETY: the name ends with a zero.
    let open = unsafe { libc::open(file.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if open < 0 {
        return Err(error());
    }
    let room = memory::zeroed(LONGEST + 1).ok_or(Refusal::Memory)?;
    let mut length = 0;
    let result = loop {
        // SAFETY: the room is one byte longer than what is read at most.
        match unsafe { libc::read(open, (room + length) as *mut _, LONGEST + 1 - length) } {
            0 => break Ok(()),
            more if more > 0 => length += more as usize,
            _ => break Err(error()),
        }
        if length > LONGEST {
            break Err(Refusal::Length);
        }
    };
    // SAFETY: opened above.
    unsafe { libc::close(open) };
    result?;
    if length == 0 {
        return Err(Refusal::Length);
    }
    // SAFETY: this many bytes were read, and the memory stays.
    str::from_utf8(unsafe { slice::from_raw_parts(room as *const u8, length) }).map_err(|_| Refusal::Text)
}
