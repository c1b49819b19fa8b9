//! Bursts: short stretches of a running program in the code cache, from any instruction on.
//!
//! The command stops a thread and lets it continue at the code of [`crate::machine::Gates::begin_burst`], which hands
//! over. A burst ends when it has filled some chunks of the log, after a time, and where the thread continues natively
//! for another reason. Then the thread has all registers of its own again, at an instruction of its own.

use crate::cache::blocks::Blocks;
use crate::engine::{self, Engine};
use crate::system::{self, mappings};
use crate::threads::slots::Slots;
use lineup_recording::native::record;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// The engine's own code.
static OWN_CODE: OnceLock<Range<u64>> = OnceLock::new();

/// A thread's burst.
pub(crate) struct Burst {
    chunks_left: u64,
    /// The thread's processor time when it last left a system call, or began; `None` in a system call.
    since_ns: Option<u64>,
    /// Processor time before that.
    spent_ns: u64,
}

impl Burst {
    fn spent_ns(&self) -> u64 {
        self.spent_ns + self.since_ns.map_or(0, |since| system::thread_time_ns().saturating_sub(since))
    }
}

/// Reads the program's code and the place of the engine's own, while no thread of the program waits.
pub(crate) fn prepare(engine: &Engine) {
    if engine.shared.control().burst_chunks.load(Ordering::Relaxed) == 0 {
        return;
    }
    let own = engine::hand_over as *const () as u64;
    let code = mappings::read().into_iter().map(|mapping| mapping.range).find(|range| range.contains(&own));
    if let Some(code) = code {
        let _ = OWN_CODE.set(code);
    }
    engine.code.with(Blocks::read_ahead);
}

impl Engine {
    /// A burst begins, unless nobody reads or there is no room for its log.
    pub(crate) fn begin_burst(&self, slots: &mut Slots) -> bool {
        let control = self.shared.control();
        let chunks_left = control.burst_chunks.load(Ordering::Relaxed);
        if !self.is_on() || system::is_sealed() || OWN_CODE.get().is_none() || chunks_left == 0 {
            return false;
        }
        let Some(thread) = self.thread(slots) else { return false };
        // A chunk that is kept from a call before would hold its records back.
        self.hand_chunk_over(slots);
        let Some((number, start)) = self.shared.take_chunk(thread.number, 0) else {
            control.bursts_refused.fetch_add(1, Ordering::Relaxed);
            return false;
        };
        thread.chunk = Some((number, start as u64));
        slots.log = start as u64;
        // No return is above it: a burst does not end with a call.
        slots.minus_base = 1 << 63;
        let base = (&raw const *slots as u64).wrapping_sub(i64::from(self.slots) as u64);
        self.log(slots, &[u64::from(record::BURST) << 32, slots.stack, base]);
        thread.burst = Some(Burst { chunks_left, since_ns: Some(system::thread_time_ns()), spent_ns: 0 });
        control.bursts.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn burst<'a>(&self, slots: &Slots) -> Option<&'a mut Burst> {
        self.thread(slots)?.burst.as_mut()
    }

    /// The chunk is full: whether it was the burst's last.
    pub(crate) fn is_burst_over(&self, slots: &mut Slots) -> bool {
        let is_over = self.burst(slots).is_some_and(|burst| {
            burst.chunks_left -= 1;
            burst.chunks_left == 0
        });
        if is_over {
            // Behind a full chunk there is room for it.
            engine::write(slots, &[u64::from(record::LEAVE) << 32]);
        }
        is_over
    }

    /// Whether a burst must end before code that is not in the cache yet, or not by a link: the engine's own, as where
    /// a signal handler returns to it, or any after too long a time. Then that is logged.
    pub(crate) fn ends_burst_at(&self, slots: &mut Slots, pc: u64) -> bool {
        let Some(burst) = self.burst(slots) else { return false };
        if OWN_CODE.get().is_some_and(|own| own.contains(&pc)) {
            self.log(slots, &[u64::from(record::LOST) << 32]);
            self.lose_burst(slots);
            return true;
        }
        let is_long = burst.spent_ns() > self.shared.control().burst_most_ns.load(Ordering::Relaxed);
        if is_long {
            self.shared.control().bursts_cut.fetch_add(1, Ordering::Relaxed);
            self.log(slots, &[u64::from(record::LEAVE) << 32]);
        }
        is_long
    }

    /// A burst's system call: whether the burst must end before it, since it does not return to the next instruction.
    pub(crate) fn ends_burst_before(&self, slots: &Slots, number: i64) -> bool {
        let Some(burst) = self.burst(slots) else { return false };
        burst.spent_ns = burst.spent_ns();
        burst.since_ns = None;
        number == libc::SYS_rt_sigreturn
    }

    /// The system call has returned.
    pub(crate) fn resume_burst(&self, slots: &Slots) -> bool {
        if let Some(burst) = self.burst(slots) {
            burst.since_ns = Some(system::thread_time_ns());
        }
        true
    }

    /// The burst ends early.
    pub(crate) fn lose_burst(&self, slots: &Slots) {
        if self.burst(slots).is_some() {
            self.shared.control().bursts_lost.fetch_add(1, Ordering::Relaxed);
            self.finish_burst(slots);
        }
    }

    /// The burst has ended: its log is complete.
    pub(crate) fn finish_burst(&self, slots: &Slots) {
        let Some(burst) = self.thread(slots).and_then(|thread| thread.burst.take()) else { return };
        let spent = burst.spent_ns();
        self.shared.control().burst_ns.fetch_add(spent, Ordering::Relaxed);
        self.shared.control().longest_burst_ns.fetch_max(spent, Ordering::Relaxed);
        self.shared.control().bursts_ended.fetch_add(1, Ordering::Relaxed);
        self.hand_chunk_over(slots);
    }
}
