//! The code that recorded calls executed, which can be flushed before calls that are timed.

use crate::error::{Doing, Error, Result};
use lineup_model::image::LoadedImage;
use lineup_model::region::{RegionId, Regions};
use lineup_recording::{Event, Reader};
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::path::Path;

/// The unit of the processor's flush instruction.
const LINE_BYTES: u64 = 64;

/// The lines of one file that recorded calls of a function executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedCode {
    /// The function's number among the timed ones.
    pub(super) region: RegionId,
    /// The file, as the recording has it.
    image: LoadedImage,
    /// Link addresses of its lines, in order.
    lines: Vec<u64>,
}

impl RecordedCode {
    /// Reads the code of the timed functions, which are found in the recording by their names.
    ///
    /// # Errors
    /// When the recording cannot be read, or has no calls of one of them.
    pub fn read(recording: &Path, regions: &Regions) -> Result<Vec<RecordedCode>> {
        let file =
            lineup_mapping::open(recording).doing_with(|| format!("reading {}", recording.display()))?;
        let reader = Reader::new(BufReader::new(file))?.without_log();
        let known: BTreeMap<RegionId, String> =
            reader.header().regions.iter().map(|(id, region)| (id, region.name.clone())).collect();
        let mut images = Vec::new();
        let mut executed: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for event in reader {
            match event {
                Event::Image(image) => images.push(image),
                Event::Call(call) => {
                    if let Some(name) = known.get(&call.region) {
                        executed.entry(name).or_default().extend(call.code_granules);
                    }
                }
                _ => {}
            }
        }
        let mut all = Vec::new();
        for (id, region) in regions.iter() {
            let granules = executed.get(region.name.as_str()).ok_or_else(|| {
                let recording = recording.display();
                Error::Start(format!(
                    "{recording} has no calls of {}: nothing says what they execute",
                    region.name
                ))
            })?;
            all.extend(images.iter().filter_map(|image| RecordedCode::of(id, image, granules)));
        }
        Ok(all)
    }

    fn of(region: RegionId, image: &LoadedImage, granules: &BTreeSet<u64>) -> Option<RecordedCode> {
        let own = granules.range(image.start..image.end);
        let lines: BTreeSet<u64> = own.map(|granule| image.to_link(*granule) & !(LINE_BYTES - 1)).collect();
        (!lines.is_empty()).then(|| RecordedCode {
            region,
            image: image.clone(),
            lines: lines.into_iter().collect(),
        })
    }

    /// The present addresses of these lines of a region's function in this file. `None` when they are another
    /// function's, or the file is not the recorded one.
    pub(super) fn lines_in(&self, region: u16, mapped: &LoadedImage) -> Option<Vec<u64>> {
        let is_same = self.image.path == mapped.path && self.image.build_id == mapped.build_id;
        let lines = || self.lines.iter().map(|line| mapped.to_runtime(*line)).collect();
        (self.region.0 == region && is_same).then(lines)
    }
}
