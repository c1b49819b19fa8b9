//! Loads on memory and caches.

use crate::error::LoadError;
use crate::stop::Stop;
use lineup_stats::random::Seed;
use rand::RngExt;
use std::hint::black_box;

/// Bytes between two touched addresses in [`stress`]: one page.
const PAGE_BYTES: usize = 4096;

/// Bytes between two touched addresses in the thrashing walks: one line.
const LINE_BYTES: usize = 64;

/// The number of touches between two checks of the flag.
const TOUCHES_PER_LOOK: usize = 4096;

/// No buffer is larger than this: 64 GiB.
const MAX_BYTES: u64 = 64 << 30;

/// The order in which a thrashing load walks its buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Walk {
    /// Line after line. Prefetchers see it coming, so that caches are not really emptied.
    Linear,
    /// Along a random cycle through all lines, each address read from the line before.
    Random,
}

/// Allocates, dirties, re-reads and frees memory until stopped, as `stress --vm 1 --vm-bytes` does.
/// Returns how many rounds were completed.
///
/// # Errors
/// When `bytes` is below one page or above 64 GiB.
pub fn stress(bytes: u64, stop: &Stop) -> Result<u64, LoadError> {
    let size = buffer_size(bytes, PAGE_BYTES)?;
    let mut rounds = 0u64;
    while !stop.is_set() {
        let mut buffer = vec![0u8; size];
        for (index, page) in buffer.chunks_mut(PAGE_BYTES).enumerate() {
            if let Some(first) = page.first_mut() {
                *first = index as u8;
            }
            if index % TOUCHES_PER_LOOK == 0 && stop.is_set() {
                return Ok(rounds);
            }
        }
        let sum: u64 =
            buffer.chunks(PAGE_BYTES).filter_map(|page| page.first()).map(|byte| u64::from(*byte)).sum();
        black_box(sum);
        rounds += 1;
    }
    Ok(rounds)
}

/// Empties caches until stopped by walking a buffer. Returns how many lines were touched.
///
/// # Errors
/// When `bytes` is below one line or above 64 GiB.
pub fn thrash(bytes: u64, walk: Walk, seed: Seed, stop: &Stop) -> Result<u64, LoadError> {
    let lines = buffer_size(bytes, LINE_BYTES)? / LINE_BYTES;
    match walk {
        Walk::Linear => Ok(linear(lines, stop)),
        Walk::Random => Ok(random(&cycle(lines, seed), stop)),
    }
}

fn buffer_size(bytes: u64, least: usize) -> Result<usize, LoadError> {
    let fits = bytes >= least as u64 && bytes <= MAX_BYTES;
    usize::try_from(bytes).ok().filter(|_| fits).ok_or(LoadError::Parameter {
        what: "the buffer size in bytes",
        value: bytes,
        range: "from one page (one line for thrashing) to 64 GiB",
    })
}

fn linear(lines: usize, stop: &Stop) -> u64 {
    let mut buffer = vec![0u8; lines * LINE_BYTES];
    let mut touched = 0;
    while !stop.is_set() {
        for part in buffer.chunks_mut(TOUCHES_PER_LOOK * LINE_BYTES) {
            part.fill(touched as u8);
            touched += (part.len() / LINE_BYTES) as u64;
            if stop.is_set() {
                break;
            }
        }
        black_box(&mut buffer);
    }
    touched
}

fn random(line_after: &[Line], stop: &Stop) -> u64 {
    let (mut at, mut touched) = (0usize, 0u64);
    while !stop.is_set() {
        for _ in 0..TOUCHES_PER_LOOK {
            at = line_after.get(at).map_or(0, |line| line.next);
        }
        touched += TOUCHES_PER_LOOK as u64;
    }
    black_box(at);
    touched
}

/// One cache line that names the line to go to next.
#[repr(align(64))]
struct Line {
    next: usize,
}

/// A random cycle through all lines (Sattolo's algorithm), so that the walk comes back to a line only
/// after all others.
fn cycle(lines: usize, seed: Seed) -> Vec<Line> {
    let mut order: Vec<usize> = (0..lines).collect();
    let mut random = seed.generator();
    for last in (1..lines).rev() {
        order.swap(last, random.random_range(0..last));
    }
    order.into_iter().map(|next| Line { next }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_random_walk_visits_every_line_before_it_returns() {
        let lines = cycle(1000, Seed(3));
        let (mut at, mut seen) = (0, vec![false; 1000]);
        for _ in 0..1000 {
            assert!(!seen[at]);
            seen[at] = true;
            at = lines[at].next;
        }
        assert_eq!(at, 0);
        assert_eq!(std::mem::size_of::<Line>(), LINE_BYTES);
    }

    #[test]
    fn sizes_out_of_range_are_refused() {
        let stop = Stop::new();
        assert!(stress(100, &stop).is_err());
        assert!(stress(u64::MAX, &stop).is_err());
        assert!(thrash(0, Walk::Linear, Seed(1), &stop).is_err());
    }

    #[test]
    fn every_load_works_until_it_is_stopped() {
        let run_for = |work: fn(&Stop) -> u64, ms: u64| {
            let stop = Stop::new();
            let theirs = stop.clone();
            let worker = std::thread::spawn(move || work(&theirs));
            std::thread::sleep(std::time::Duration::from_millis(ms));
            stop.set();
            worker.join().unwrap()
        };
        // A busy machine may not let the worker run at all in the shorter times.
        let works = |work: fn(&Stop) -> u64| [30, 300, 3_000, 30_000].iter().any(|&ms| run_for(work, ms) > 0);
        assert!(works(|stop| stress(1 << 16, stop).unwrap()));
        assert!(works(|stop| thrash(1 << 20, Walk::Linear, Seed(1), stop).unwrap()));
        assert!(works(|stop| thrash(1 << 20, Walk::Random, Seed(1), stop).unwrap()));
    }
}
