//! Changes of the caches before some of the timed calls.
//!
//! The code of an entry counts calls down. For the call at which the count is 0, it samples a trial, does it, and
//! samples the distance to the next such call. Each random number follows from the one before, so the same seed gives
//! the same samples. A long trial is followed by a rest without trials. Sampled calls are kept one by one. The machine
//! does all of that, see [`crate::machine::Timing::stamp`]; this file gives it the data.

use crate::engine::Engine;
use crate::machine::{Abi, Host, Timing};
use crate::system;
use crate::system::mappings::{self, Mapping};
use lineup_recording::native::timed::{self, Arm, trial};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Factor of a thread's and region's number in its seed. With this odd number no two sequences overlap in practice.
const APART: u64 = 0xd134_2543_de82_ef95;

/// Memory that is read to push other data out of the caches, or 0.
static SWEPT: AtomicU64 = AtomicU64::new(0);
/// The limit is this many times the cycles of one reading.
static DEAREST: AtomicU64 = AtomicU64::new(u64::MAX);
const TIMES_DEARER: u64 = 4;
/// The number of readings to measure that.
const TRIES: usize = 3;

/// Data of one entry for the code that samples.
#[repr(C)]
pub(crate) struct SamplingData {
    /// The distance to the next sampled call is between 1 and this number of calls.
    pub(crate) span: u64,
    /// Half of it, rounded up.
    pub(crate) every: u64,
    /// The number of the next words that are arms.
    pub(crate) choices: u64,
    pub(crate) choice: [u64; Arm::ALL.len()],
    pub(crate) swept: u64,
    pub(crate) swept_end: u64,
    /// See [`lineup_recording::native::head::Control::rest`].
    pub(crate) rest: u64,
    /// The most cycles that are counted for a trial: the rest is other programs'.
    pub(crate) dearest: u64,
    /// Beginnings and ends of flushed code, pair after pair, and 0 after the last.
    pub(crate) ranges: u64,
    /// The word that counts trials, and their address.
    pub(crate) trials_word: u64,
    pub(crate) trials: u64,
    /// A trial's tag without its arm.
    pub(crate) tag: u64,
}

const _: () = assert!(trial::TAG == 0 && trial::CYCLES == 1);
// An arm with both bits flushes everything.
const _: () = assert!(Arm::FlushBoth as u64 == Arm::FlushCode as u64 | Arm::FlushData as u64);

fn arms(engine: &Engine) -> impl Iterator<Item = Arm> {
    let arms = engine.shared.control().arms.load(Ordering::Relaxed);
    Arm::ALL.into_iter().filter(move |arm| arms >> arm.number() & 1 == 1)
}

/// Makes the memory that trials read before calls, if they do. False without memory.
pub(crate) fn prepare(engine: &Engine) -> bool {
    if !arms(engine).any(Arm::flushes_data) {
        return true;
    }
    let bytes = engine.shared.control().swept_bytes.load(Ordering::Relaxed) as usize;
    let Some(memory) = system::memory(bytes) else { return false };
    for page in (0..bytes).step_by(Host::page_bytes() as usize) {
        // This gives each page memory of its own. SAFETY: our own memory, and within it.
        unsafe { memory.add(page).write_volatile(1) };
    }
    SWEPT.store(memory as u64, Ordering::Relaxed);
    let cycles = (0..TRIES).map(|_| sweep(memory as u64, bytes)).min().unwrap_or(u64::MAX);
    DEAREST.store(cycles.saturating_mul(TIMES_DEARER), Ordering::Relaxed);
    true
}

/// Reads memory as before calls. Returns the number of cycles.
fn sweep(memory: u64, bytes: usize) -> u64 {
    let begun = Host::counter();
    // SAFETY: our own memory, which is read; its end is a multiple of lines.
    unsafe { Host::sweep(memory, memory + bytes as u64) };
    Host::counter().wrapping_sub(begun)
}

/// Address of the sampling data of one entry, whose function has these parts; `None` without sampling.
pub(crate) fn lots(engine: &Engine, region: usize, pc: u64, parts: &[Range<u64>]) -> Option<u64> {
    let control = engine.shared.control();
    let mut choice = [0; Arm::ALL.len()];
    let arms = arms(engine).map(Arm::number);
    let choices = choice.iter_mut().zip(arms).map(|(choice, arm)| *choice = arm).count();
    if choices == 0 {
        return None;
    }
    let every = control.drawn_every.load(Ordering::Relaxed).clamp(1, u64::from(u32::MAX) / 2);
    let maps = mappings::read();
    let own = maps.iter().find(|mapping| mapping.range.contains(&pc));
    let flushed = engine.shared.flushed(region);
    let code = if flushed.is_empty() { within(own, parts) } else { of_lines(&flushed) };
    let lines = code.iter().flat_map(|part| [part.start & !(Host::line_bytes() - 1), part.end]);
    let ranges: Vec<u64> = lines.chain([0]).collect();
    let swept = SWEPT.load(Ordering::Relaxed);
    let lots = SamplingData {
        span: 2 * every - 1,
        every,
        choices: choices as u64,
        choice,
        swept,
        swept_end: swept + control.swept_bytes.load(Ordering::Relaxed),
        rest: control.rest.load(Ordering::Relaxed),
        dearest: DEAREST.load(Ordering::Relaxed),
        ranges: Vec::leak(ranges).as_ptr() as u64,
        trials_word: control.trials.as_ptr() as u64,
        trials: engine.shared.trials() as u64,
        tag: 1 << trial::IS_WRITTEN_AT | (region as u64) << trial::REGION_AT,
    };
    Some(Box::leak(Box::new(lots)) as *const SamplingData as u64)
}

/// The parts that lie in this mapping: those of another file may be unmapped while calls are sampled.
fn within(own: Option<&Mapping>, parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let Some(own) = own.map(|own| &own.range) else { return Vec::new() };
    parts.iter().filter(|part| own.start <= part.start && part.end <= own.end).cloned().collect()
}

/// Lines in order; adjacent lines form one range.
fn of_lines(lines: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for line in lines {
        match ranges.last_mut().filter(|last| last.end == *line) {
            Some(last) => last.end += Host::line_bytes(),
            None => ranges.push(*line..line + Host::line_bytes()),
        }
    }
    ranges
}

/// A thread takes over a table of times: seeds its sampling, if no thread had the table before.
pub(crate) fn begin(engine: &Engine, number: usize, table: *mut u8) {
    let control = engine.shared.control();
    let seed = control.seed.load(Ordering::Relaxed);
    let first = control.drawn_every.load(Ordering::Relaxed).max(1);
    for region in 0..timed::STAMPS {
        // SAFETY: within the thread's own table.
        let words = unsafe { table.cast::<u64>().add(region * timed::WORDS) };
        let begins = (number * timed::REGIONS + region) as u64;
        // SAFETY: as above.
        unsafe {
            if *words.add(timed::COUNTDOWN) == 0 {
                *words.add(timed::LOTS) = seed.wrapping_add(begins.wrapping_mul(APART));
                *words.add(timed::COUNTDOWN) = first;
            }
        }
    }
}

/// Keeps a sampled call, as the code of ends does, and has the thread sample again. `words` are the region's words of
/// the thread.
pub(crate) fn note(engine: &Engine, region: u64, words: &mut [u64], cycles: u64) {
    words[timed::TRIAL] = 0;
    let number = engine.shared.control().trials.fetch_add(1, Ordering::Relaxed) as usize;
    if number >= trial::MOST {
        return;
    }
    let tag = 1 << trial::IS_WRITTEN_AT | region << trial::REGION_AT | words[timed::ARM];
    let at = engine.shared.trials().wrapping_add(trial::WORDS * number);
    // SAFETY: the file has room for as many trials.
    let [of_tag, of_cycles] = [trial::TAG, trial::CYCLES].map(|word| unsafe { &*at.wrapping_add(word) });
    of_cycles.store(cycles, Ordering::Relaxed);
    of_tag.store(tag, Ordering::Release);
}

/// A thread leaves its table: its open calls count as left.
pub(crate) fn end(table: *mut u8) {
    for region in 0..timed::STAMPS {
        // SAFETY: within the table, which is the thread's own.
        unsafe { *table.cast::<u64>().add(region * timed::WORDS + timed::TRIAL) = 0 };
    }
}
