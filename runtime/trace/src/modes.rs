//! Modes of a run: the durations around which calls gather.

use crate::event::{Arm, Kind};
use crate::reader::Trace;
use serde::Serialize;

/// With fewer calls than this, no modes are reported.
pub const MIN_CALLS: usize = 100;

/// The search samples this many of the calls, evenly spread over their order.
const SAMPLE: usize = 500;

/// Calls slower than this quantile belong to no mode: they are the scheduler's.
const SLOWEST: f64 = 0.995;

/// A group with a smaller share of the calls is no mode.
const LEAST_SHARE: f64 = 0.01;

/// Calls that took about as long as each other.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Mode {
    /// Share of the calls, from 0 to 1; the rest belongs to no mode.
    pub share: f64,
    /// Geometric mean of the durations, nanoseconds.
    pub centre_ns: f64,
    /// The shortest, nanoseconds.
    pub low_ns: f64,
    /// The longest, nanoseconds.
    pub high_ns: f64,
}

/// The modes of a name's calls without an intervention, in ascending order of duration: groups of their logarithms,
/// because causes of slowness multiply. `None` for fewer than [`MIN_CALLS`] events, as in a trace that keeps histograms
/// alone.
pub fn modes(trace: &Trace, name: u16) -> Option<Vec<Mode>> {
    let events = trace.threads.iter().flat_map(|thread| &thread.events);
    let own = events.filter(|event| event.name == name && event.arm == Arm::None);
    let calls = own.filter(|event| matches!(event.kind, Kind::Region | Kind::Lock));
    modes_of(calls.map(|event| event.duration_ns).collect())
}

fn modes_of(mut durations_ns: Vec<u64>) -> Option<Vec<Mode>> {
    let calls = durations_ns.len();
    if calls < MIN_CALLS {
        return None;
    }
    durations_ns.sort_unstable();
    durations_ns.truncate((calls as f64 * SLOWEST).ceil() as usize);
    let kept = durations_ns.len();
    let taken = kept.min(SAMPLE);
    let at = |index: usize| durations_ns.get(index * (kept - 1) / (taken - 1)).copied().unwrap_or(1);
    let logarithms: Vec<f64> = (0..taken).map(|index| (at(index).max(1) as f64).ln()).collect();
    let groups = lineup_stats::modes::find(&logarithms).ok()?;
    let all = kept as f64 / calls as f64 / taken as f64;
    let modes = groups.iter().map(|group| Mode {
        share: group.count as f64 * all,
        centre_ns: group.mean.exp(),
        low_ns: group.low.exp(),
        high_ns: group.high.exp(),
    });
    Some(modes.filter(|mode| mode.share >= LEAST_SHARE).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_stats::random::Seed;
    use rand::RngExt;

    /// Calls of 2 µs and an exponential time more; every `struck`th takes 20 µs more, every 500th a millisecond.
    fn durations(struck: u64) -> Vec<u64> {
        let mut random = Seed(44).generator();
        let mut duration = |number: u64| {
            let jitter_ns = -200.0 * (1.0 - random.random::<f64>()).ln();
            let planted_ns = if number.is_multiple_of(struck) { 20_000 } else { 0 };
            let interrupted_ns = if number.is_multiple_of(500) { 1_000_000 } else { 0 };
            2_000 + jitter_ns as u64 + planted_ns + interrupted_ns
        };
        (1..=10_000).map(&mut duration).collect()
    }

    #[test]
    fn calls_that_gather_around_two_durations_have_two_modes_and_interruptions_are_none() {
        let found = modes_of(durations(12)).unwrap();
        let [fast, slow] = &found[..] else { panic!("{found:?}") };
        assert!(
            (fast.share - 11.0 / 12.0).abs() < 0.01 && (slow.share - 1.0 / 12.0).abs() < 0.01,
            "{found:?}"
        );
        assert!((2_000.0..2_400.0).contains(&fast.centre_ns) && fast.low_ns >= 1_999.0, "{fast:?}");
        assert!((22_000.0..22_600.0).contains(&slow.centre_ns) && slow.low_ns >= 21_999.0, "{slow:?}");
    }

    #[test]
    fn calls_around_one_duration_have_one_mode() {
        let found = modes_of(durations(u64::MAX)).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].share > 0.99 && found[0].high_ns < 10_000.0, "{found:?}");
    }

    #[test]
    fn calls_that_all_take_the_same_or_no_time_have_one_mode() {
        for duration_ns in [0, 7, u64::MAX] {
            let found = modes_of(vec![duration_ns; 1_000]).unwrap();
            assert_eq!(found.len(), 1, "{found:?}");
        }
    }

    #[test]
    fn too_few_calls_tell_none() {
        assert_eq!(modes_of(vec![5; MIN_CALLS - 1]), None);
        assert_eq!(modes_of(Vec::new()), None);
    }
}
