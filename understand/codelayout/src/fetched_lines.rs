//! Lines of a file's code that recorded calls fetched.

use crate::maps::footprint::LINE_BYTES;
use lineup_debuginfo::spelled;
use lineup_model::access::CallEnd;
use lineup_model::image::LoadedImage;
use lineup_recording::{Event, Reader};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Recorded calls, and the lines of one file's code that they fetched.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fetches {
    /// The file; `None` when no process had mapped it.
    pub image: Option<LoadedImage>,
    /// Regions in the order of the recording.
    pub regions: Vec<RegionCalls>,
    /// For each line, by its link address, the number of calls of each region that fetched it.
    lines: BTreeMap<u64, Vec<u64>>,
}

/// A region's recorded calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionCalls {
    /// The function, as its source spells it.
    pub name: String,
    /// Calls that ended.
    pub calls: u64,
}

/// The rate at which calls of a region fetch a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RegionFetch {
    /// The region, by its number.
    pub region: usize,
    /// The share of its calls.
    pub share: f64,
}

impl Fetches {
    /// Reads a recording of calls through, for the file that is mapped as an image of which `is_meant` is true.
    pub fn read<R: Read>(mut reader: Reader<R>, is_meant: impl Fn(&LoadedImage) -> bool) -> Fetches {
        let regions = reader.header().regions.clone();
        let name = |name: &str| RegionCalls { name: spelled(name), calls: 0 };
        let mut fetches = Fetches {
            regions: regions.iter().map(|(_, region)| name(&region.name)).collect(),
            ..Fetches::default()
        };
        let mut by_runtime: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let count = fetches.regions.len();
        for event in reader.by_ref() {
            match event {
                Event::Image(image) if fetches.image.is_none() && is_meant(&image) => {
                    fetches.image = Some(image)
                }
                Event::Call(call) if call.end != CallEnd::Unfinished => {
                    let region = usize::from(call.region.0);
                    let Some(calls) = fetches.regions.get_mut(region) else { continue };
                    calls.calls += 1;
                    let lines = call.code_granules.iter().map(|granule| granule / LINE_BYTES * LINE_BYTES);
                    for line in lines.collect::<BTreeSet<u64>>() {
                        by_runtime.entry(line).or_insert_with(|| vec![0; count])[region] += 1;
                    }
                }
                _ => {}
            }
        }
        if let Some(image) = &fetches.image {
            let own = by_runtime.into_iter().filter(|(line, _)| image.contains(*line));
            fetches.lines = own.map(|(line, calls)| (image.to_link(line), calls)).collect();
        }
        fetches
    }

    /// The regions that fetch the line at a link address, with their rates.
    pub(crate) fn of_line(&self, address: u64) -> Vec<RegionFetch> {
        let counts = self.lines.get(&address).into_iter().flatten().zip(&self.regions).enumerate();
        let fetched = counts.filter(|(_, (times, _))| **times > 0);
        fetched
            .map(|(region, (times, of))| RegionFetch {
                region,
                share: *times as f64 / of.calls.max(1) as f64,
            })
            .collect()
    }
}
