//! Leaves out calls beyond a number of accesses: a few calls that walk a whole heap would take minutes to read.

use super::{LeftOut, RecordingContent, position, thin};
use crate::error::{Doing, Result};
use lineup_model::region::RegionId;
use lineup_recording::{Header, Reader};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// The calls that are kept of a recording, so that another variant's recording can keep the same ones.
#[derive(Clone, Debug, Default)]
pub struct KeptCalls {
    /// For each region the last position in the order of selection that is kept; `None` when all are.
    bounds: Vec<Option<u64>>,
    /// Regions of which calls were left out.
    pub reduced: Vec<ReducedRegion>,
}

/// A region of which calls were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReducedRegion {
    /// The region.
    pub region: RegionId,
    /// Calls that were recorded.
    pub recorded: u64,
    /// Calls that were kept.
    pub kept: u64,
    /// Accesses of the recorded calls.
    pub accesses: u64,
}

/// Keeps as many calls of each region of the recording at `path` as make `accesses` accesses together, and at least
/// one. The kept calls are the first ones in the order of selection, so that they are spread like those recorded.
///
/// # Errors
/// When the recording cannot be read or rewritten; it is then unchanged.
pub fn keep_accesses(path: &Path, accesses: u64) -> Result<KeptCalls> {
    let header = header(path)?;
    let mut sizes: BTreeMap<RegionId, Sizes> = BTreeMap::new();
    let found = RecordingContent::read_beside(path, &header, &HashSet::new(), |call| {
        let at = sizes.entry(call.region).or_default().entry(position(call, &header)).or_default();
        *at = (at.0 + 1, at.1 + call.accesses.len() as u64);
    })?;
    let mut kept = KeptCalls::default();
    for (region, _) in header.regions.iter() {
        let reduced = sizes.get(&region).and_then(|calls| within(accesses, region, calls));
        kept.bounds.push(reduced.map(|(bound, _)| bound));
        kept.reduced.extend(reduced.map(|(_, reduced)| reduced));
    }
    Ok(if keep(path, &header, found, &kept)? { kept } else { KeptCalls::default() })
}

/// Keeps the calls of the recording at `path` that were kept of another recording of the same regions.
///
/// # Errors
/// When the recording cannot be read or rewritten; it is then unchanged.
pub fn keep_same(path: &Path, kept: &KeptCalls) -> Result<()> {
    if kept.reduced.is_empty() {
        return Ok(());
    }
    let header = header(path)?;
    let found = RecordingContent::read(path, &header, &HashSet::new())?;
    keep(path, &header, found, kept).map(drop)
}

fn header(path: &Path) -> Result<Header> {
    let file = File::open(path).doing_with(|| format!("cannot read back {}", path.display()))?;
    Ok(Reader::new(BufReader::new(file)).doing("nothing was recorded")?.header().clone())
}

/// Rewrites a whole recording with these calls; true when it was. One that was cut off keeps all, so that nothing
/// recorded is lost.
fn keep(path: &Path, header: &Header, found: RecordingContent, kept: &KeptCalls) -> Result<bool> {
    match found.counted {
        Some(summary) if !found.is_damaged && !kept.reduced.is_empty() => {
            let left_out = LeftOut { bounds: kept.bounds.clone(), calls: HashSet::new() };
            thin(path, header, &left_out, summary, |_| ()).map(|_| true)
        }
        _ => Ok(false),
    }
}

/// Calls by their positions in the order of selection: their number and their accesses.
type Sizes = BTreeMap<u64, (u64, u64)>;

/// The last position that is kept, where calls are left out.
fn within(most: u64, region: RegionId, calls: &Sizes) -> Option<(u64, ReducedRegion)> {
    let (recorded, accesses) = calls.values().fold((0, 0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
    let (mut kept, mut taken, mut bound) = (0, 0, None);
    for (position, (calls, accesses)) in calls {
        if bound.is_some() && taken + accesses > most {
            break;
        }
        (kept, taken, bound) = (kept + calls, taken + accesses, Some(*position));
    }
    let reduced = ReducedRegion { region, recorded, kept, accesses };
    bound.filter(|_| kept < recorded).map(|bound| (bound, reduced))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(accesses: &[u64]) -> Sizes {
        accesses.iter().enumerate().map(|(position, accesses)| (position as u64, (1, *accesses))).collect()
    }

    #[test]
    fn as_many_calls_are_kept_as_make_the_accesses() {
        let (bound, reduced) = within(10, RegionId(0), &calls(&[4, 4, 4, 4])).expect("calls are left out");
        assert_eq!((bound, reduced.kept, reduced.recorded, reduced.accesses), (1, 2, 4, 16));
    }

    #[test]
    fn one_call_is_kept_however_long_it_is() {
        let (bound, reduced) = within(10, RegionId(0), &calls(&[400, 4])).expect("calls are left out");
        assert_eq!((bound, reduced.kept), (0, 1));
    }

    #[test]
    fn nothing_is_left_out_of_calls_within_the_limit() {
        assert_eq!(within(16, RegionId(0), &calls(&[4, 4, 4, 4])), None);
        assert_eq!(within(16, RegionId(0), &calls(&[])), None);
    }
}
