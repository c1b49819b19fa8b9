//! Lines that were passed between CPUs.

use super::options::SampledOptions;
use crate::error::FindError;
use crate::sampled::findings::{SampledByte, SampledCpu, SampledLine};
use crate::sampled::place_names::Places;
use lineup_samples::data_source::{DataSource, Operation};
use lineup_samples::tally::{ByPlace, PassedLine, Tally};

/// The largest number of lines that are listed one by one.
const LINES: usize = 100;

/// The lines with most loads, most first.
pub(super) fn lines(
    tally: &Tally,
    places: &mut Places<'_>,
    wanted: &SampledOptions,
) -> Result<Vec<SampledLine>, FindError> {
    let mut all: Vec<(&(u32, u64), &PassedLine)> = tally.lines.iter().collect();
    all.sort_by_key(|(key, line)| (std::cmp::Reverse(line.sum.samples), **key));
    let is_wanted = |places: &Places<'_>, line: &PassedLine| {
        line.by_place.keys().any(|(code, ..)| wanted.has(&places.function(*code).name))
    };
    all.retain(|(_, line)| is_wanted(places, line));
    all.into_iter()
        .take(LINES)
        .map(|((process, address), line)| told(places, *process, *address, line))
        .collect()
}

fn told(
    places: &mut Places<'_>,
    process: u32,
    address: u64,
    line: &PassedLine,
) -> Result<SampledLine, FindError> {
    let bytes = bytes_of(places, &line.by_place, Operation::Load)?;
    let stores = bytes_of(places, &line.stores, Operation::Store)?;
    Ok(SampledLine {
        process,
        address: format!("{address:#x}"),
        samples: line.sum.samples,
        weight: line.sum.weight,
        cpus: line.by_cpu.iter().map(|(cpu, samples)| SampledCpu { cpu: *cpu, samples: *samples }).collect(),
        bytes,
        stores,
    })
}

/// The bytes of a line with their names, by the function that accessed them.
fn bytes_of(
    places: &mut Places<'_>,
    all: &ByPlace,
    operation: Operation,
) -> Result<Vec<SampledByte>, FindError> {
    let source = DataSource { operation, ..DataSource::default() };
    let mut bytes: Vec<SampledByte> = Vec::new();
    for ((code, data, at), samples) in all {
        let (spot, _) = places.accessed(*code, *data, source)?;
        let (name, function) = (places.spot_name(spot), places.function(*code).name);
        let same = |one: &&mut SampledByte| one.at == *at && one.name == name && one.function == function;
        match bytes.iter_mut().find(same) {
            Some(known) => known.samples += samples,
            None => bytes.push(SampledByte { at: *at, name, function, samples: *samples }),
        }
    }
    bytes.sort_by(|one, other| {
        (one.at, &one.name, &one.function).cmp(&(other.at, &other.name, &other.function))
    });
    Ok(bytes)
}
