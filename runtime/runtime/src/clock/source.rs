//! Counters: the machine's, the system's clock, and any that the user registers.

use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

/// A free-running counter.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Reads it.
    pub read: extern "C" fn() -> u64,
    /// Cycles per second; `None` to measure it against the reference.
    pub hz: Option<f64>,
    /// The number of valid low bits in the result of `read`: 8 to 64.
    pub bits: u8,
    /// The clock it is held against, in nanoseconds.
    pub reference: Reference,
}

/// A clock in nanoseconds that another is held against.
pub type Reference = extern "C" fn() -> u64;

/// The fitness of the machine's counter for a clock.
#[derive(Clone, Debug)]
pub enum Fitness {
    /// It has.
    Fit(Source),
    /// It has not, and why; the system's clock serves.
    Unfit(&'static str),
}

/// The reason a source was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SourceError {
    /// The width is out of range.
    #[error("a counter of {bits} bits: widths from 8 to 64 are supported")]
    Width {
        /// The width given.
        bits: u8,
    },
    /// The rate is out of range.
    #[error("a counter of {hz} Hz: rates from 1 kHz to 8 GHz are supported")]
    Rate {
        /// The rate given, in cycles per second.
        hz: u64,
    },
    /// Too many different counters were registered in this process.
    #[error("{SLOTS} counters are registered already; reuse one of them")]
    Full,
}

/// Index of the system's clock.
pub(super) const SYSTEM: u8 = 0;
/// Index of the machine's counter.
pub(super) const MACHINE: u8 = 1;
/// Index of the first registered one.
const REGISTERED: u8 = 2;
const SLOTS: usize = 64;

/// Functions, never removed: a reader may hold an old index for as long as it likes.
static FUNCTIONS: [AtomicPtr<()>; SLOTS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS];
static USED: AtomicUsize = AtomicUsize::new(0);

/// The index of `read`, registered now if it was not before.
pub(super) fn index_of(read: extern "C" fn() -> u64) -> Result<u8, SourceError> {
    if read as usize == machine_counter as *const () as usize {
        return Ok(MACHINE);
    }
    if read as usize == system_reference as *const () as usize {
        return Ok(SYSTEM);
    }
    let used = USED.load(Acquire).min(SLOTS);
    let wanted = read as *mut ();
    if let Some(at) = FUNCTIONS[..used].iter().position(|slot| slot.load(Acquire) == wanted) {
        return Ok(REGISTERED + at as u8);
    }
    let at = USED.fetch_add(1, Relaxed);
    let slot = FUNCTIONS.get(at).ok_or(SourceError::Full)?;
    slot.store(wanted, Release);
    Ok(REGISTERED + at as u8)
}

/// Reads counter number `index`.
#[inline(always)]
pub(super) fn read_source(index: u8) -> u64 {
    if index == MACHINE { machine_counter_inline() } else { read_other(index) }
}

#[cold]
#[inline(never)]
fn read_other(index: u8) -> u64 {
    let slot = usize::from(index.wrapping_sub(REGISTERED));
    match FUNCTIONS.get(slot).map(|slot| slot.load(Acquire)) {
        Some(function) if !function.is_null() => {
            // SAFETY: `index_of` alone fills the slots, with functions of this type.
            let read: extern "C" fn() -> u64 = unsafe { std::mem::transmute(function) };
            read()
        }
        _ => system_reference(),
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
pub extern "C" fn system_reference() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC)
}

pub(super) fn clock_ns(clock: libc::clockid_t) -> u64 {
    // SAFETY: clock_gettime writes the timespec it is given.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(clock, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The machine's own counter.
pub(super) extern "C" fn machine_counter() -> u64 {
    machine_counter_inline()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn machine_counter_inline() -> u64 {
    // SAFETY: every x86-64 has this counter, and Linux lets user code read it unless a process asked otherwise
    // (PR_SET_TSC), which then fails here as it would anywhere.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub(super) fn machine_counter_inline() -> u64 {
    let value: u64;
    // SAFETY: reads the virtual counter, which Linux lets user code read.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack, preserves_flags))
    };
    value
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub(super) fn machine_counter_inline() -> u64 {
    system_reference()
}

/// The machine's counter, if it runs at a constant rate through idle states and the kernel itself trusts it.
pub fn best_source() -> Fitness {
    let source = Source { read: machine_counter, hz: machine_hz(), bits: 64, reference: system_reference };
    match unfit() {
        None => Fitness::Fit(source),
        Some(why) => Fitness::Unfit(why),
    }
}

#[cfg(target_arch = "x86_64")]
fn unfit() -> Option<&'static str> {
    const INVARIANT: u32 = 1 << 8;
    let extended = std::arch::x86_64::__cpuid(0x8000_0000).eax;
    if extended < 0x8000_0007 || std::arch::x86_64::__cpuid(0x8000_0007).edx & INVARIANT == 0 {
        return Some("the time-stamp counter is not invariant");
    }
    // The kernel moves away from the counter when its watchdog has seen it go wrong. Paravirtual clocks (kvm-clock,
    // hyperv) are built on the counter.
    let current = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match current.as_deref().map(str::trim) {
        Ok("hpet" | "acpi_pm" | "jiffies" | "refined-jiffies") => {
            Some("the kernel found the time-stamp counter unstable and uses another clock")
        }
        _ => None,
    }
}

#[cfg(target_arch = "aarch64")]
fn unfit() -> Option<&'static str> {
    None
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn unfit() -> Option<&'static str> {
    Some("no counter is known on this architecture")
}

#[cfg(target_arch = "aarch64")]
fn machine_hz() -> Option<f64> {
    let hz: u64;
    // SAFETY: reads the counter's frequency register, which Linux lets user code read.
    unsafe { std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags)) };
    (hz >= 1_000_000).then_some(hz as f64)
}

#[cfg(not(target_arch = "aarch64"))]
fn machine_hz() -> Option<f64> {
    None
}
