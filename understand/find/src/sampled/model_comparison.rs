//! A model's shares of functions, compared with samples of the clock.

use crate::sampled::findings::{AgainstModel, SampledFindings, SampledFunction};
use crate::stalls::clock;
use std::collections::BTreeMap;

/// Functions below this share of both are not listed.
const LEAST: f64 = 0.005;

/// The functions' shares of a program's modelled cycles, by name, compared with their shares of time. Those are shares
/// of the samples in programs, of the event that has most samples without addresses. `None` without such an event. Code
/// without a name is in the sums, and is not listed.
pub fn against_model(
    found: &SampledFindings,
    of_cycles: &BTreeMap<String, f64>,
) -> Option<Vec<AgainstModel>> {
    let is_clock = |event: &&(u32, u64)| event.1 > 0;
    let events = (0u32..).zip(&found.events).filter(|(_, event)| !event.carries.contains(&"addresses"));
    let events = events.map(|(number, event)| (number, event.samples)).collect::<Vec<_>>();
    let (event, _) = *events.iter().filter(is_clock).max_by_key(|(_, samples)| *samples)?;
    let is_own = |function: &&SampledFunction| {
        function.event == event && !function.file.starts_with("[kernel") && function.name != "(kernel)"
    };
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    for function in found.functions.iter().filter(is_own) {
        *samples.entry(&function.name).or_default() += function.samples;
    }
    let all: u64 = samples.values().sum();
    let names = samples.keys().copied().chain(of_cycles.keys().map(String::as_str));
    let mut names: Vec<&str> = names.filter(|name| !name.starts_with('(')).collect();
    names.sort_unstable();
    names.dedup();
    let one = |name: &str| {
        let modelled = of_cycles.get(name).copied().unwrap_or_default();
        let clock = clock::share(samples.get(name).copied().unwrap_or_default(), all, modelled);
        AgainstModel { name: name.to_owned(), of_cycles: modelled, clock }
    };
    let mut told: Vec<AgainstModel> = names.into_iter().map(one).collect();
    told.retain(|one| one.clock.share.max(one.of_cycles) >= LEAST);
    told.sort_by(|one, other| {
        other.clock.share.total_cmp(&one.clock.share).then_with(|| one.name.cmp(&other.name))
    });
    Some(told)
}
