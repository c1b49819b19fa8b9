//! The windows of the run through caches again, with objects or code where a layout puts them.

use crate::stalls::window_names::Point;
use crate::trials::cache_configurations::{Caches, Configuration};
use crate::trials::layouts::Layout;
use lineup_cache::{CacheLevel, Missed};
use lineup_recording::{Latency, Misses, Window, WindowStep};

/// The counted misses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Misses,
    pub(crate) data: Misses,
}

impl Outcome {
    /// Cycles that both stalled for.
    pub(crate) fn cycles(&self, latency: Latency) -> u64 {
        cycles(self.code, latency) + cycles(self.data, latency)
    }
}

/// Cycles that misses stall for.
pub(crate) fn cycles(misses: Misses, latency: Latency) -> u64 {
    let from_l2 = misses.l1.saturating_sub(misses.l2);
    from_l2 * u64::from(latency.l2_cycles) + misses.l2 * u64::from(latency.memory_cycles)
}

/// Counts the misses of an access.
pub(crate) fn count(misses: &mut Misses, missed: Missed) {
    misses.l1 += u64::from(missed != Missed::Nothing);
    misses.l2 += u64::from(missed == Missed::L2);
}

/// Runs the windows through caches. `observe` gets every step, with the place of an access, and its misses. Caches are
/// not emptied between windows. A window finds there the lines that the recorder's caches held at its beginning, and
/// under those the lines that windows before left.
pub(crate) fn replay(
    configuration: &Configuration,
    (windows, points): (&[Window], &[Vec<Point>]),
    layout: &Layout,
    mut observe: impl FnMut(&WindowStep, Option<Point>, Missed),
) -> Outcome {
    let mut caches = configuration.caches();
    let mut outcome = Outcome::default();
    for (window, points) in windows.iter().zip(points) {
        hold(&mut caches, window, layout);
        let mut points = points.iter();
        for step in &window.steps {
            match *step {
                WindowStep::Fetch { pc, size_bytes } => {
                    let missed = caches.fetch(layout.code(pc), u64::from(size_bytes));
                    count(&mut outcome.code, missed);
                    observe(step, None, missed);
                }
                WindowStep::Access { address, size_shift, .. } => {
                    let Some(point) = points.next() else { break };
                    let mut missed = Missed::Nothing;
                    layout.each_part((address, 1 << size_shift), *point, |address, size_bytes| {
                        let own = caches.data(address, size_bytes);
                        count(&mut outcome.data, own);
                        missed = missed.max(own);
                    });
                    observe(step, Some(*point), missed);
                }
            }
        }
    }
    outcome
}

/// Puts into the caches the lines that the recorder's caches held when a window began.
fn hold(caches: &mut Caches, window: &Window, layout: &Layout) {
    let Some(resident) = &window.resident else { return };
    for (level, lines) in
        [(CacheLevel::L2, &resident.l2), (CacheLevel::L1i, &resident.l1i), (CacheLevel::L1d, &resident.l1d)]
    {
        for line in lines {
            layout.each_resident(*line, |address| caches.hold(level, address));
        }
    }
}
