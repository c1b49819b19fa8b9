//! Selects the calls of a region that are recorded.

use lineup_recording::{CALLS_IN_RUN, Header, Selection};
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Picks the calls of one region as they come.
///
/// Calls spread over the run are those with the lowest positions (see [`spread_position`]). While the number of calls
/// is unknown, a call is taken when it is among the lowest so far, and may have to give way later: the command leaves
/// such calls out at the end.
pub struct Picker {
    warmup_calls: u64,
    most: Option<u64>,
    selection: Selection,
    /// No call at or above this position is taken.
    bound: AtomicU64,
    /// The positions taken.
    taken: Mutex<Taken>,
}

/// Positions of calls that were taken, highest first.
pub type Taken = BinaryHeap<u64>;

impl Picker {
    /// `expected` is the number of the region's calls in an earlier run, 0 without one.
    pub fn new(header: &Header, expected: u64) -> Self {
        // The native engine, which knows the time, has chosen.
        let most = header.max_calls.filter(|_| header.selection != Selection::Threads);
        let after_warmup = expected.saturating_sub(header.warmup_calls);
        Picker {
            warmup_calls: header.warmup_calls,
            most,
            selection: header.selection,
            bound: AtomicU64::new(most.map_or(u64::MAX, |most| {
                let at_once = if header.selection == Selection::Runs { CALLS_IN_RUN } else { 1 };
                bound(most, after_warmup, at_once)
            })),
            taken: Mutex::default(),
        }
    }

    /// True when the call of this number is recorded.
    pub fn takes(&self, sequence: u64) -> bool {
        let Some(number) = sequence.checked_sub(self.warmup_calls) else { return false };
        match (self.most, self.selection) {
            (None, _) => true,
            (Some(most), Selection::First) => number < most,
            (Some(most), spread) => self.takes_position(spread.position(number), most),
        }
    }

    /// No call at or above this position is recorded: it falls during the run.
    pub fn bound(&self) -> u64 {
        match (self.most, self.selection) {
            (Some(most), Selection::First) => most.saturating_add(1),
            _ => self.bound.load(Ordering::Relaxed),
        }
    }

    fn takes_position(&self, position: u64, most: u64) -> bool {
        if most == 0 || position >= self.bound.load(Ordering::Relaxed) {
            return false;
        }
        let mut taken = self.lock();
        if taken.len() as u64 >= most {
            if taken.peek().is_none_or(|highest| *highest <= position) {
                return false;
            }
            taken.pop();
        }
        taken.push(position);
        if let Some(highest) = taken.peek().filter(|_| taken.len() as u64 >= most) {
            self.bound.fetch_min(*highest, Ordering::Relaxed);
        }
        true
    }

    /// Keeps others from picking.
    pub fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A position below which there are at least `most` of `expected` calls, and few more: the multiples of the golden
/// ratio's fraction are spread evenly. Their number below a bound differs from the expected one by the order of its
/// logarithm.
fn bound(most: u64, expected: u64, at_once: u64) -> u64 {
    let room = u128::from(most) + u128::from(at_once) * (8 + 2 * u128::from(expected.max(1).ilog2()));
    match u128::from(expected) > room {
        true => u64::try_from((room << 64) / u128::from(expected)).unwrap_or(u64::MAX),
        false => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::abi::Abi;
    use lineup_recording::spread_position;

    fn header(most: Option<u64>, selection: Selection) -> Header {
        let mut header = Header::new(Abi::X86_64, Vec::new());
        (header.max_calls, header.selection, header.warmup_calls) = (most, selection, 3);
        header
    }

    /// The calls with the lowest positions, worked out from all of them.
    fn lowest(made: u64, most: usize) -> Vec<u64> {
        let mut calls: Vec<u64> = (3..made).collect();
        calls.sort_by_key(|call| spread_position(call - 3));
        calls.truncate(most);
        calls.sort_unstable();
        calls
    }

    fn picked(expected: u64, made: u64, most: u64) -> Vec<u64> {
        let picker = Picker::new(&header(Some(most), Selection::Spread), expected);
        (0..made).filter(|call| picker.takes(*call)).collect()
    }

    #[test]
    fn with_the_number_of_calls_known_few_more_are_taken_than_asked_for() {
        for (made, most) in [(10_000, 100), (1_000_000, 2000), (50, 40), (103, 100)] {
            let picked = picked(made, made, most);
            let lowest = lowest(made, most as usize);
            assert!(lowest.iter().all(|call| picked.contains(call)), "{made} {most}");
            assert!(picked.len() < lowest.len() + 60, "{made} {most}: {}", picked.len());
        }
    }

    #[test]
    fn without_it_the_lowest_are_among_those_taken() {
        for (made, most) in [(10_000, 100), (300, 400)] {
            let picked = picked(0, made, most);
            assert!(lowest(made, most as usize).iter().all(|call| picked.contains(call)), "{made} {most}");
            assert!((picked.len() as u64) < 8 * most, "{made} {most}: {}", picked.len());
        }
    }

    #[test]
    fn the_first_calls_after_the_warm_up_are_taken_when_asked_for() {
        let picker = Picker::new(&header(Some(2), Selection::First), 100);
        assert_eq!((0..9).filter(|call| picker.takes(*call)).collect::<Vec<_>>(), [3, 4]);
        let picker = Picker::new(&header(None, Selection::Spread), 0);
        assert_eq!((0..9).filter(|call| picker.takes(*call)).count(), 6);
    }
}
