//! The CPU of this thread, by one load where the C library keeps a restartable-sequence area per thread.

use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Offset of `cpu_id` from the thread pointer; `ABSENT` without such an area.
static CPU_ID_OFFSET: AtomicIsize = AtomicIsize::new(ABSENT);
const ABSENT: isize = isize::MIN;
/// Offset of `cpu_id` in the area, from the kernel's ABI.
const CPU_ID_IN_AREA: isize = 4;

/// Looks for the area; called once at the start of tracing.
pub(super) fn find() {
    // SAFETY: dlsym with a terminated name; the symbols, when present, are a `ptrdiff_t` and an `unsigned int` that
    // never change.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        if !offset.is_null() && !size.is_null() && *size > 0 {
            CPU_ID_OFFSET.store(*offset + CPU_ID_IN_AREA, Relaxed);
        }
    }
}

/// The CPU, or `0xffff` when it is unknown.
#[inline]
pub(super) fn current() -> u16 {
    by_load().unwrap_or_else(|| number(from_system()))
}

/// The same where it takes no call.
#[inline(always)]
pub(super) fn by_load() -> Option<u16> {
    let offset = CPU_ID_OFFSET.load(Relaxed);
    (offset != ABSENT).then(|| number(from_area(offset)))
}

fn number(cpu: i32) -> u16 {
    u16::try_from(cpu).unwrap_or(u16::MAX)
}

#[cfg(miri)]
fn from_system() -> i32 {
    0
}

#[cfg(not(miri))]
#[cold]
fn from_system() -> i32 {
    // SAFETY: takes nothing and returns a number.
    unsafe { libc::sched_getcpu() }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn from_area(offset: isize) -> i32 {
    let cpu: i32;
    // SAFETY: the C library registered four bytes of this thread's own block there; the kernel updates them.
    unsafe {
        std::arch::asm!("mov {0:e}, fs:[{1}]", out(reg) cpu, in(reg) offset,
            options(nostack, preserves_flags, readonly));
    }
    cpu
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn from_area(offset: isize) -> i32 {
    let base: isize;
    // SAFETY: as on x86-64; the thread pointer is in a register of its own.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) base, options(nostack, preserves_flags, nomem));
        ((base + offset) as *const i32).read_volatile()
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn from_area(_offset: isize) -> i32 {
    from_system()
}
