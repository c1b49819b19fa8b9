//! Lines that were passed between CPUs.

use super::findings::{SampledByte, SampledCpu, SampledLine};
use super::places::Places;
use crate::error::FindError;
use lineup_samples::data_source::{DataSource, Operation};
use lineup_samples::tally::{PassedLine, Tally};

/// Lines told one by one.
const LINES: usize = 100;

/// Those with most loads, most first.
pub(super) fn lines(tally: &Tally, places: &mut Places<'_>) -> Result<Vec<SampledLine>, FindError> {
    let mut all: Vec<(&(u32, u64), &PassedLine)> = tally.lines.iter().collect();
    all.sort_by_key(|(key, line)| (std::cmp::Reverse(line.sum.samples), **key));
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
    let load = DataSource { operation: Operation::Load, ..DataSource::default() };
    let mut bytes: Vec<SampledByte> = Vec::new();
    for ((code, data, at), samples) in &line.by_place {
        let (spot, _) = places.accessed(*code, *data, load)?;
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
    Ok(SampledLine {
        process,
        address: format!("{address:#x}"),
        samples: line.sum.samples,
        weight: line.sum.weight,
        cpus: line.by_cpu.iter().map(|(cpu, samples)| SampledCpu { cpu: *cpu, samples: *samples }).collect(),
        bytes,
    })
}
