//! The virtual CPUs of a recording, from its beginning to its end.

use super::cpu::Cpu;
use super::processor::Processor;
use super::shared::{LAST_CALLBACK, System};
use super::stream::Lane;
use lineup_model::image::LoadedImage;
use lineup_recording::stream::MOST_CPUS;
use lineup_recording::{Encoder, SystemSummary};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Virtual CPUs recorded at most.
pub(super) const MAX_CPUS: usize = MOST_CPUS as usize;

/// The state of each virtual CPU while the recording runs, where callbacks find it with one load.
static CPUS: [AtomicPtr<Cpu>; MAX_CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CPUS];

/// The state of a virtual CPU; `None` before the recording began and after it ended.
///
/// # Safety
/// Only for callbacks of that virtual CPU, and only one reference at a time.
#[inline]
pub(crate) unsafe fn current<'a>(vcpu: u32) -> Option<&'a mut Cpu> {
    let slot = CPUS.get(vcpu as usize)?;
    // SAFETY: null, or a box that is never freed. Callbacks of one virtual CPU run one after the other, so the
    // reference is unique; [`System::finish`] reads the states of all CPUs only after it has set every slot to null,
    // inside a callback. With one host thread for all CPUs, as with counted time, no other callback is under way then.
    // With a thread for each, `finish` first waits far longer than a callback lasts. A callback that the host holds up
    // for that long is unlikely but possible, and would be a race on that CPU's last counts.
    unsafe { slot.load(Ordering::Relaxed).as_mut() }
}

impl System {
    /// The recording begins: every virtual CPU gets its state.
    pub(crate) fn begin(&self) {
        let mut encoder = Encoder::new();
        encoder.image(&LoadedImage {
            path: self.plan.program.clone(),
            start: self.kernel.entries.kernel_start,
            end: u64::MAX,
            bias: 0,
            build_id: None,
        });
        self.kernel.modules.iter().for_each(|section| encoder.image(section));
        self.write(&mut encoder);
        if self.profile.is_some() {
            return self.begin_profile();
        }
        for (index, slot) in CPUS.iter().enumerate().take(self.kernel.cpus.max(1) as usize) {
            let processor = Processor::new(&self.caches, self.kernel.latency);
            let lane = self.stream.as_ref().map(|_| Lane::new(index as u16, &self.caches));
            let shows_accesses = lane.is_some() || self.directory.is_some() || self.kernel.windows.is_some();
            let cpu = Cpu::new(index as u16, self.api, processor, lane, shows_accesses, self.regions.len());
            slot.store(Box::into_raw(Box::new(cpu)), Ordering::Release);
        }
    }

    /// Ends the recording: closes every call and writes the last words.
    pub(crate) fn finish(&self, is_complete: bool) {
        if !self.begun.load(Ordering::Acquire) || self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.profile.is_some() {
            return self.finish_profile();
        }
        let taken: Vec<*mut Cpu> =
            CPUS.iter().map(|slot| slot.swap(ptr::null_mut(), Ordering::AcqRel)).collect();
        if self.kernel.cpus > 1 {
            std::thread::sleep(LAST_CALLBACK);
        }
        let mut summary =
            SystemSummary { complete: is_complete, latency: self.kernel.latency, ..SystemSummary::default() };
        // SAFETY: see `current`: the slots are null now, and the boxes are never freed.
        for cpu in taken.into_iter().filter_map(|cpu| unsafe { cpu.as_mut() }) {
            cpu.finish(self, &mut summary);
            self.write(&mut cpu.encoder);
        }
        summary.has_whole_stream = self.stream.as_ref().is_some_and(|stream| stream.finish(&self.output));
        self.write_summary(&summary);
    }
}
