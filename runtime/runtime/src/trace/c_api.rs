//! The functions behind `lineup/trace.h`.

use super::{Config, CounterChoice, Modes, Region, StartError, WhenFull, lock, probe};
use crate::clock::now_ns;
use crate::imv;
use libc::{c_char, c_int};
use lineup_trace::layout::mode;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The address at which images that include `lineup/trace.h` find the variable that wakes their probes, to import it.
#[unsafe(export_name = "lineup_tracing_address")]
pub static TRACING_ADDRESS: &imv::Imv<u8> = &super::TRACING;

/// `struct lineup_trace_config`. A zero takes the default.
#[repr(C)]
#[derive(Debug)]
pub struct LineupTraceConfig {
    /// The file.
    pub path: *const c_char,
    /// Mask: 1 events, 2 high-water marks, 4 histograms.
    pub modes: u32,
    /// 1: a full ring stops recording.
    pub stop_when_full: u32,
    /// Records in each thread's ring.
    pub ring_records: u32,
    /// Records in each thread's high-water ring.
    pub high_water_records: u32,
    /// The number of threads with room.
    pub threads: u32,
    /// The number of names with room.
    pub names: u32,
    /// 0 none, 1 hardware, 2 software.
    pub counters: u32,
    /// Name of the region that lock records are limited to, or null.
    pub locks_inside: *const c_char,
}

/// Starts tracing. 0, or an errno value: `EBUSY` when it is on already, `EINVAL` for sizes out of range, the system's
/// error about the file, `ENOEXEC` when the probes cannot be switched.
///
/// # Safety
///
/// `config` must point to a configuration whose strings are terminated; its path must not be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_trace_start(config: *const LineupTraceConfig) -> c_int {
    // SAFETY: the caller's promise.
    let Some(given) = (unsafe { config.as_ref() }) else { return libc::EINVAL };
    if given.path.is_null() {
        return libc::EINVAL;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(given.path) };
    let locks_inside = (!given.locks_inside.is_null()).then(|| {
        // SAFETY: not null, and terminated by the caller's promise.
        unsafe { CStr::from_ptr(given.locks_inside) }.to_string_lossy().into_owned()
    });
    let default = Config::new(Path::new(OsStr::from_bytes(path.to_bytes())));
    let or = |given: u32, default: u32| if given == 0 { default } else { given };
    let modes = or(given.modes, mode::EVENTS);
    let config = Config {
        modes: Modes {
            events: modes & mode::EVENTS != 0,
            high_water: modes & mode::HIGH_WATER != 0,
            histograms: modes & mode::HISTOGRAMS != 0,
        },
        when_full: if given.stop_when_full == 0 { WhenFull::OverwriteOldest } else { WhenFull::Stop },
        ring_records: or(given.ring_records, default.ring_records),
        high_water_records: or(given.high_water_records, default.high_water_records),
        threads: or(given.threads, default.threads),
        names: or(given.names, default.names),
        counters: match given.counters {
            0 => CounterChoice::None,
            1 => CounterChoice::Hardware,
            2 => CounterChoice::Software,
            _ => return libc::EINVAL,
        },
        locks_inside,
        ..default
    };
    match super::start(&config) {
        Ok(()) => 0,
        Err(StartError::AlreadyOn) => libc::EBUSY,
        Err(StartError::Sizes { .. }) => libc::EINVAL,
        Err(StartError::File { source, .. }) => source.raw_os_error().unwrap_or(libc::EIO),
        Err(StartError::Switch(_)) => libc::ENOEXEC,
    }
}

/// Makes the probes dormant.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_trace_stop() {
    super::stop();
}

/// Opens a region. Called by an active `LINEUP_BEGIN`.
///
/// # Safety
///
/// `region` must point to a static `struct lineup_region`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_trace_begin(region: *const Region) {
    // SAFETY: the caller's promise.
    if let Some(region) = unsafe { region.as_ref() } {
        probe::begin(region);
    }
}

/// Closes a region. Called by an active `LINEUP_END`.
///
/// # Safety
///
/// As [`lineup_trace_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_trace_end(region: *const Region) {
    // SAFETY: the caller's promise.
    if let Some(region) = unsafe { region.as_ref() } {
        probe::end(region);
    }
}

/// Records a mark. Called by an active `LINEUP_MARK`.
///
/// # Safety
///
/// As [`lineup_trace_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_trace_mark(region: *const Region, value: u64) {
    // SAFETY: the caller's promise.
    if let Some(region) = unsafe { region.as_ref() } {
        probe::mark(region, value);
    }
}

/// The functions of one kind of lock, as `lineup/trace.h` passes them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LineupLockFunctions {
    /// Takes the lock if it is free: 0, or an errno value.
    pub try_take: unsafe extern "C" fn(*mut libc::c_void) -> c_int,
    /// Takes the lock: 0, or an errno value.
    pub take: unsafe extern "C" fn(*mut libc::c_void) -> c_int,
    /// Releases it: 0, or an errno value.
    pub release: unsafe extern "C" fn(*mut libc::c_void) -> c_int,
}

/// Takes a lock and notes the wait. Returns the result of `take`.
///
/// # Safety
///
/// `name` must point to a static `struct lineup_region`; `lock` must be a lock of the kind that `functions` handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_lock_take(
    name: *const Region,
    lock: *mut libc::c_void,
    functions: LineupLockFunctions,
) -> c_int {
    let mut result = 0;
    // SAFETY: the caller's promise.
    let name = unsafe { &*name };
    lock::acquire(
        name,
        lock as usize,
        // SAFETY: the caller's promise.
        || unsafe { (functions.try_take)(lock) == 0 },
        // SAFETY: the caller's promise.
        || result = unsafe { (functions.take)(lock) },
    );
    result
}

/// As [`lineup_lock_take`], but returns `ETIMEDOUT` when the region around was assigned to give up and its bound has
/// passed.
///
/// # Safety
///
/// As [`lineup_lock_take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_lock_take_bounded(
    name: *const Region,
    lock: *mut libc::c_void,
    functions: LineupLockFunctions,
) -> c_int {
    let mut result = 0;
    // SAFETY: the caller's promise.
    let name = unsafe { &*name };
    let taken = lock::acquire_bounded(
        name,
        lock as usize,
        // SAFETY: the caller's promise.
        || unsafe { (functions.try_take)(lock) == 0 },
        // SAFETY: the caller's promise.
        || result = unsafe { (functions.take)(lock) },
    );
    if taken { result } else { libc::ETIMEDOUT }
}

/// Releases a lock and records it. Returns the result of `release`.
///
/// # Safety
///
/// As [`lineup_lock_take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_lock_release(
    lock: *mut libc::c_void,
    functions: LineupLockFunctions,
) -> c_int {
    let now = if super::is_on() { Some(now_ns()) } else { None };
    // SAFETY: the caller's promise.
    let result = unsafe { (functions.release)(lock) };
    if let Some(now) = now {
        probe::lock_released(lock as usize, now);
    }
    result
}

/// Notes that a lock was taken without waiting, by a function that the tracer does not wrap.
///
/// # Safety
///
/// `name` must point to a static `struct lineup_region`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_lock_note_taken(name: *const Region, lock: *mut libc::c_void) {
    // SAFETY: the caller's promise.
    if let Some(name) = unsafe { name.as_ref() }
        && super::is_on()
    {
        let now = now_ns();
        probe::lock_taken(name, lock as usize, now, now);
    }
}

/// Notes that a lock was released by a function that the tracer does not wrap.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_lock_note_released(lock: *mut libc::c_void) {
    if super::is_on() {
        probe::lock_released(lock as usize, now_ns());
    }
}
