//! Loads ahead: the stalls for a type's lines from memory that a prefetch could hide at most.
//!
//! Where the lines follow each other, the processor loads them ahead by itself. Nobody sees here whether a program knows
//! the addresses early enough.

use crate::findings::{Kind, Trial};
use crate::owner::{Owner, Spot};
use crate::stalls::window_names::Point;
use crate::trials::cache_configurations::Configuration;
use crate::trials::layouts::Layout;
use crate::trials::replay::replay;
use foldhash::HashMap;
use lineup_cache::Missed;
use lineup_explain::catalog::Ty;
use lineup_recording::{Latency, Window, WindowStep};
use rayon::prelude::*;
use std::collections::VecDeque;
use std::sync::OnceLock;

/// Lines of a type that were loaded last: a stream that the processor follows continues one of them.
const STREAMS: usize = 8;

/// The lines that were loaded last.
#[derive(Default)]
struct Streams(VecDeque<u64>);

impl Streams {
    /// Whether a line is next to one of them, or one of them.
    fn has_next(&mut self, line: u64) -> bool {
        let known = self.0.iter().position(|last| last.abs_diff(line) <= 1);
        match known {
            Some(index) => self.0[index] = line,
            None => {
                if self.0.len() == STREAMS {
                    self.0.pop_front();
                }
                self.0.push_back(line);
            }
        }
        known.is_some()
    }
}

/// Shares of the windows' stalls, under one configuration.
type Shares = HashMap<Ty, f64>;

/// The bounds of all types, once they are needed.
pub(crate) struct LoadsAhead<'b> {
    windows: (&'b [Window], &'b [Vec<Point>]),
    spots: &'b [Spot],
    configurations: &'b [Configuration],
    latency: Latency,
    line_bytes: u64,
    /// Under the modelled caches.
    usual: OnceLock<Shares>,
    /// Under each configuration.
    each: OnceLock<Vec<Shares>>,
}

impl<'b> LoadsAhead<'b> {
    pub(crate) fn new(
        windows: (&'b [Window], &'b [Vec<Point>]),
        spots: &'b [Spot],
        (configurations, line_bytes): (&'b [Configuration], u64),
        latency: Latency,
    ) -> Self {
        let (usual, each) = (OnceLock::new(), OnceLock::new());
        LoadsAhead { windows, spots, configurations, latency, line_bytes, usual, each }
    }

    /// The share that is for lines of each type from memory, none of them next to another.
    fn under(&self, configuration: &Configuration) -> Shares {
        let mut seen: HashMap<Ty, (Streams, u64)> = HashMap::default();
        let outcome = replay(configuration, self.windows, &Layout::AsIs, |step, point, missed| {
            if let (WindowStep::Access { address, .. }, Some(point), Missed::L2) = (*step, point, missed)
                && let Owner::Type(ty) = self.spots[point.spot as usize].owner
            {
                let (streams, misses) = seen.entry(ty).or_default();
                *misses += u64::from(!streams.has_next(address / self.line_bytes));
            }
        });
        let all = (outcome.cycles(self.latency) as f64).max(1.0);
        let share = |misses: u64| (misses * u64::from(self.latency.memory_cycles)) as f64 / all;
        seen.into_iter().map(|(ty, (_, misses))| (ty, share(misses))).collect()
    }

    /// The trial of a type's loads ahead under the modelled caches.
    pub(crate) fn trial(&self, ty: Ty) -> Option<Trial> {
        let usual = self.configurations.first()?;
        let known = self.usual.get_or_init(|| self.under(usual));
        known.get(&ty).map(|gain| Trial { kind: Kind::Prefetch, gain: *gain })
    }

    /// Its gain under each.
    pub(crate) fn under_each(&self, ty: Ty) -> Vec<f64> {
        let each = self.each.get_or_init(|| {
            self.configurations.par_iter().map(|configuration| self.under(configuration)).collect()
        });
        each.iter().map(|shares| shares.get(&ty).copied().unwrap_or_default()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_in_a_row_are_streams() {
        let mut streams = Streams::default();
        let lines = [10, 11, 50, 12, 51, 90, 49, 49, 12];
        let next = lines.map(|line| streams.has_next(line));
        assert_eq!(next, [false, true, false, true, true, false, false, true, true]);
        let mut streams = Streams::default();
        assert!(!(0..2 * STREAMS as u64).any(|number| streams.has_next(100 * number)));
    }
}
