//! Whole systems, counted: what every instruction executes, accesses and misses, in the kernel and in programs.

use super::{LAST_CALLBACK, System, get};
use crate::block::{insns, profile_block};
use crate::ffi::{NO_REGISTERS, PluginId, Tb};
use crate::profile::{Profiled, give_current, take_current};
use lineup_recording::{Encoder, Summary};
use std::ffi::{c_uint, c_void};

/// A block is translated.
pub(crate) unsafe extern "C" fn on_translate(_id: PluginId, tb: *mut Tb) {
    let Some(system) = get() else { return };
    let Some(profile) = &system.profile else { return };
    // SAFETY: `tb` is valid for this callback.
    let insns = unsafe { insns(&system.api, system.machine, tb) };
    let Some(first) = insns.first() else { return };
    if first.pc == system.kernel.entries.marker {
        // SAFETY: as above.
        unsafe { (system.api.block_exec)(tb, on_marker, NO_REGISTERS, std::ptr::null_mut()) };
        return;
    }
    // SAFETY: as above.
    unsafe { profile_block(&system.api, system.machine, profile, tb, &insns) };
}

/// The marker is reached again: the workload has ended.
unsafe extern "C" fn on_marker(_vcpu: c_uint, _data: *mut c_void) {
    if let Some(system) = get() {
        system.finish(true);
    }
}

impl System {
    /// Every virtual CPU gets its counts.
    pub(super) fn begin_profile(&self) {
        let Some(profile) = &self.profile else { return };
        for vcpu in 0..self.kernel.cpus.max(1) {
            give_current(vcpu, Profiled::new(profile.thread(), self.api));
        }
    }

    /// Writes the counts of all virtual CPUs.
    pub(super) fn finish_profile(&self) {
        let Some(profile) = &self.profile else { return };
        let taken: Vec<*mut Profiled> = (0..self.kernel.cpus.max(1)).map(take_current).collect();
        if self.kernel.cpus > 1 {
            std::thread::sleep(LAST_CALLBACK);
        }
        // SAFETY: null, or given in `begin_profile`. This callback holds no reference to any, and those of other virtual CPUs
        // have had time to return: see `super::current`.
        let whole = |taken: *mut Profiled| (!taken.is_null()).then(|| unsafe { Box::from_raw(taken) });
        let counts =
            taken.into_iter().map(|taken| profile.take(whole(taken).map(|profiled| profiled.counts)));
        let instructions: u64 = counts.sum();
        let mut encoder = Encoder::new();
        // A failure was told on standard error.
        let _ = profile.write(&mut encoder, |encoder| self.output.flush(encoder));
        encoder.summary(&Summary {
            total_instructions: Some(instructions),
            elapsed_ns: instructions << self.kernel.time_shift,
            threads: u64::from(self.kernel.cpus),
            ..Summary::default()
        });
        self.write(&mut encoder);
    }
}
