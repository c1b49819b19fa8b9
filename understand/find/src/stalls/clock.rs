//! Measured time: samples by the clock, compared with the model's shares.

use crate::findings::ClockShare;
use crate::stalls::counts::FunctionCounts;
use crate::stalls::run_alone::RunAlone;
use lineup_debuginfo::DebugInfo;
use lineup_model::image::LoadedImage;
use lineup_model::sampling::ClockEvent;

/// Half the width of the interval that holds 95 % of a normal distribution, in standard deviations.
const WITHIN: f64 = 1.959_964;

/// Fewer samples of a run contradict nothing.
pub(crate) const LEAST_SAMPLES: u64 = 20;
/// Fewer samples of a function do not say that it takes more time than the model has for it.
const LEAST_OF_FUNCTION: u64 = 3;
/// The model is no closer than that: shares whose ratio is smaller agree, however narrow the clock's interval is.
const LEAST_RATIO: f64 = 1.2;

/// Samples by the clock of a run at the program's own speed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Clock {
    /// The clock.
    pub event: ClockEvent,
    /// File, offset in it, and the number of samples.
    pub places: Vec<(String, u64, u64)>,
    /// Samples in code of no file.
    pub outside: u64,
    /// Taken and not kept.
    pub lost: u64,
    /// The whole run.
    pub alone: RunAlone,
}

impl Clock {
    /// All samples that were kept.
    pub fn all(&self) -> u64 {
        self.places.iter().map(|(_, _, samples)| samples).sum::<u64>() + self.outside
    }

    /// The runtime addresses, in the recorded run, of the places; `None` for files that it did not map.
    pub(crate) fn addresses<'c>(
        &'c self,
        images: &'c [LoadedImage],
        debug: &'c [Option<DebugInfo>],
    ) -> impl Iterator<Item = (Option<u64>, u64)> + 'c {
        let address = |path: &str, offset: u64| {
            let index = images.iter().position(|image| image.path == path)?;
            let segments = debug.get(index)?.as_ref()?.segments();
            let segment = segments.iter().find(|segment| segment.file.contains(&offset))?;
            let link = segment.addresses.start.checked_add(offset - segment.file.start)?;
            Some(images[index].to_runtime(link))
        };
        let places =
            self.places.iter().map(move |(path, offset, samples)| (address(path, *offset), *samples));
        places.chain(std::iter::once((None, self.outside)))
    }
}

/// The clock's share of a function with its interval, and the model's share.
pub(crate) fn share(samples: u64, all: u64, model: f64) -> ClockShare {
    let (low, high) = interval(samples, all);
    let share = samples as f64 / all.max(1) as f64;
    let is_chance = all < LEAST_SAMPLES || share > model && samples < LEAST_OF_FUNCTION;
    let is_close = share.max(model) < LEAST_RATIO * share.min(model);
    ClockShare {
        samples,
        share,
        low,
        high,
        is_explained: is_chance || is_close || (low..=high).contains(&model),
    }
}

/// Wilson's interval of a share.
fn interval(samples: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let all = all as f64;
    let share = samples as f64 / all;
    let square = WITHIN * WITHIN;
    let middle = share + square / (2.0 * all);
    let half = WITHIN * (share * (1.0 - share) / all + square / (4.0 * all * all)).sqrt();
    let scale = 1.0 + square / all;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

/// The share of all modelled cycles that a function has: one for each instruction, and its stalls.
pub(crate) fn modelled(counts: &FunctionCounts, stall_cycles: u64, all_cycles: u64) -> f64 {
    (counts.instructions + stall_cycles) as f64 / all_cycles.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against published values of Wilson's interval.
    #[test]
    fn a_share_has_its_interval() {
        let (low, high) = interval(10, 100);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        assert_eq!(interval(0, 0), (0.0, 1.0));
        let (low, high) = interval(0, 50);
        assert!(low < 1e-9 && (high - 0.0713).abs() < 1e-4, "{high}");
        assert!(share(10, 100, 0.1).is_explained && !share(10, 100, 0.3).is_explained);
        // One sample of a short run is chance; that a function has none of a long one is not.
        assert!(share(1, 1, 0.0).is_explained && share(2, 40, 0.0).is_explained);
        // 96.5 % and 98.7 % agree in all that matters, though 480 samples tell them apart.
        assert!(share(463, 480, 0.987).is_explained && !share(463, 480, 0.78).is_explained);
        assert!(!share(0, 300, 0.5).is_explained && !share(3, 40, 0.0).is_explained);
    }
}
