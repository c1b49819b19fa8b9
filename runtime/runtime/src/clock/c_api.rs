//! The functions behind `lineup/clock.h`.

use super::{CLOCK, Fitness, Maintained, Source, system_reference};
use libc::c_int;

/// Nanoseconds on the clock of this process.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_clock_ns() -> u64 {
    CLOCK.now_ns()
}

/// Calibrates to the machine's counter. 0, or `ENODEV` when the machine has no trustworthy counter and the system's
/// clock serves.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_clock_start() -> c_int {
    match super::start() {
        Fitness::Fit(_) => 0,
        Fitness::Unfit(_) => libc::ENODEV,
    }
}

/// Recalibrates; returns the nanoseconds within which to call again.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_clock_maintain() -> u64 {
    let report = CLOCK.maintain();
    if report.did == Maintained::Nothing { u64::MAX } else { report.next_within_ns }
}

/// Moves the clock to another counter without a step; a null `read` is the machine's own, for machines where it is fit
/// although the system does not report it. `hz` 0: measure it. 0, or `EINVAL` for an unsupported width or rate, or
/// `ENOSPC` when too many counters were registered.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_clock_register(read: Option<extern "C" fn() -> u64>, hz: u64, bits: u32) -> c_int {
    let hz = (hz != 0).then_some(hz as f64);
    let bits = u8::try_from(bits).unwrap_or(0);
    let read = read.unwrap_or(super::source::machine_counter);
    match CLOCK.try_register(Source { read, hz, bits, reference: system_reference }) {
        Ok(()) => 0,
        Err(super::SourceError::Full) => libc::ENOSPC,
        Err(_) => libc::EINVAL,
    }
}

/// Stops time until [`lineup_clock_resume`].
#[unsafe(no_mangle)]
pub extern "C" fn lineup_clock_suspend() {
    CLOCK.suspend();
}

/// Lets time continue from where it stopped.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_clock_resume() {
    CLOCK.resume();
}
