//! Times of the threads' calls on one CPU, on two, and so on, with each thread on a CPU of its own.

use super::region::CallTime;
use lineup_model::region::RegionId;
use lineup_prove::region_time::RegionTime;
use serde::Serialize;

/// The regions' calls by the number of CPUs.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Contention {
    /// The program was asked for as many threads as there were CPUs; else it made as many as always.
    pub threads_follow_cpus: bool,
    /// No calls could be timed: each time is that of a whole run, shown as a call of the first region.
    pub of_whole_runs: bool,
    /// By the number of CPUs.
    pub points: Vec<ContentionPoint>,
}

/// A comparison on this many CPUs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ContentionPoint {
    /// CPUs; with one all threads are on it, and it is another one in each block.
    pub cpus: usize,
    /// Each timed region.
    pub regions: Vec<ContentionOfRegion>,
}

/// The time of one region's calls.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ContentionOfRegion {
    /// The region's number.
    #[serde(skip)]
    pub id: RegionId,
    /// The comparison.
    #[serde(flatten)]
    pub time: CallTime,
}

impl ContentionPoint {
    /// The point of a comparison on this many CPUs.
    pub fn of(cpus: usize, times: &[RegionTime]) -> Self {
        let of_region = |time: &RegionTime| ContentionOfRegion { id: time.id, time: CallTime::from(time) };
        ContentionPoint { cpus, regions: times.iter().map(of_region).collect() }
    }
}

impl Contention {
    /// The comparisons of one region, by the number of CPUs.
    pub fn of_region(&self, id: RegionId) -> Vec<(usize, &CallTime)> {
        let of_point = |point: &'_ ContentionPoint| point.regions.iter().position(|region| region.id == id);
        let found = self.points.iter().filter_map(|point| Some((point, of_point(point)?)));
        found.map(|(point, at)| (point.cpus, &point.regions[at].time)).collect()
    }

    /// The comparison's terms, in a sentence.
    pub fn in_words(&self) -> String {
        let threads = if self.threads_follow_cpus {
            "with as many threads as CPUs, each on one of its own"
        } else {
            "the program's threads share this many CPUs, each on one of them in turn"
        };
        format!("Mean time of a {}; {threads}.", self.of())
    }

    /// The timed unit.
    pub fn of(&self) -> &'static str {
        if self.of_whole_runs { "whole run" } else { "call" }
    }
}
