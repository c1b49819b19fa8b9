//! The figures of a recorded kernel.

use lineup_model::access::CallEnd;
use lineup_recording::{CallSizes, Counts, MeasuredCall, Recording, SystemPlan};
use serde::Serialize;

/// A recording's summary (schema `lineup.record-kernel/1`).
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    /// The recording.
    pub(crate) file: String,
    /// The emulator and its version.
    pub(crate) emulator: String,
    /// The guest's summary.
    pub(crate) guest: Guest,
    /// The caches modelled.
    pub(crate) caches: Vec<String>,
    /// Cycles of a stall for the second level, and for memory; `None` without caches.
    pub(crate) l2_cycles: Option<u32>,
    pub(crate) memory_cycles: Option<u32>,
    /// Instructions of all virtual CPUs between begin and end of the workload.
    pub(crate) total_instructions: u64,
    /// Hardware interrupts, and the number of them that came while the tracked flag said off.
    pub(crate) interrupts: u64,
    pub(crate) interrupts_while_off: u64,
    /// The number of times the kernel showed its interrupt flag; `None` where it never does.
    pub(crate) flag_checks: Option<u64>,
    /// The number of these times that it differed from the tracked one.
    pub(crate) failed_flag_checks: Option<u64>,
    /// The number of times the flag could not be determined.
    pub(crate) flag_lost: u64,
    pub(crate) exceptions: u64,
    pub(crate) unmatched_returns: u64,
    pub(crate) switches: u64,
    /// True when the workload's end was reached.
    pub(crate) complete: bool,
    pub(crate) regions: Vec<RegionSummary>,
    pub(crate) notes: Vec<String>,
}

/// The guest's summary.
#[derive(Serialize)]
pub(crate) struct Guest {
    pub(crate) release: Option<String>,
    pub(crate) clocksource: Option<String>,
    /// The kernel's command line.
    pub(crate) cmdline: String,
    pub(crate) workload: String,
    pub(crate) status: Option<i32>,
    pub(crate) boot_seconds: Option<f64>,
    pub(crate) workload_seconds: Option<f64>,
    pub(crate) total_seconds: f64,
}

/// One region.
#[derive(Serialize)]
pub(crate) struct RegionSummary {
    pub(crate) name: String,
    /// Calls measured.
    pub(crate) calls: u64,
    /// Calls kept with their accesses.
    pub(crate) kept: u64,
    /// Calls that did not return.
    pub(crate) left: u64,
    /// Interrupts that came during calls; their work is not counted.
    pub(crate) interrupts: u64,
    pub(crate) instructions: Option<Quantiles>,
    pub(crate) code_l1_misses: Option<Quantiles>,
    pub(crate) code_l2_misses: Option<Quantiles>,
    pub(crate) data_l1_misses: Option<Quantiles>,
    pub(crate) data_l2_misses: Option<Quantiles>,
    pub(crate) shared_misses: Option<Quantiles>,
    pub(crate) spin_instructions: Option<Quantiles>,
    /// Modelled: one cycle an instruction, and the stalls.
    pub(crate) cycles: Option<Quantiles>,
}

/// Quantiles over calls.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Quantiles {
    pub(crate) min: u64,
    pub(crate) median: u64,
    pub(crate) p99: u64,
    pub(crate) max: u64,
}

impl std::fmt::Display for Quantiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}", self.min, self.median, self.p99, self.max)
    }
}

/// Quantiles as tables show them.
pub(crate) fn shown(quantiles: Option<Quantiles>) -> String {
    quantiles.map_or_else(|| "not observed".to_owned(), |quantiles| quantiles.to_string())
}

impl Quantiles {
    /// By rank: every quantile is a value that occurred. `None` without values.
    fn of(values: impl Iterator<Item = u64>) -> Option<Quantiles> {
        let mut sorted: Vec<u64> = values.collect();
        sorted.sort_unstable();
        let at = |share: f64| {
            let rank = (share * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied()
        };
        Some(Quantiles { min: *sorted.first()?, median: at(0.5)?, p99: at(0.99)?, max: *sorted.last()? })
    }
}

/// Puts the figures together.
pub(crate) fn summarise(file: &str, recording: &Recording, plan: &SystemPlan, guest: Guest) -> Report {
    let system = recording.system.clone().unwrap_or_default();
    let mut notes = Vec::new();
    if let Some(damage) = &recording.damage {
        notes.push(format!("the recording is cut off: {damage}"));
    }
    if recording.system.is_none() {
        notes.push("the recorder did not get to its last words: totals are not observed".to_owned());
    }
    if system.interrupts_while_off + system.flag.failed_checks > 0 {
        notes.push("spans with interrupts off are not exact: the tracked flag was found to be wrong".into());
    }
    for (id, region) in recording.header.regions.iter() {
        let all = recording.measured.iter().filter(|call| call.region == id);
        let kept = recording.calls.iter().filter(|call| call.region == id);
        let all = all.map(|call| call.own.instructions);
        notes.extend(unlike_the_rest(&region.name, all, kept.map(|call| call.instructions)));
    }
    let models = models_caches(recording);
    let shows_flag = system.flag.checks > 0;
    let names = recording.header.regions.iter().enumerate();
    Report {
        schema: "lineup.record-kernel/1",
        file: file.to_owned(),
        emulator: recording.header.emulator.clone(),
        guest,
        caches: recording.header.caches.clone(),
        l2_cycles: models.then_some(plan.latency.l2_cycles),
        memory_cycles: models.then_some(plan.latency.memory_cycles),
        total_instructions: system.cpus.iter().map(|cpu| cpu.instructions).sum(),
        interrupts: system.interrupts,
        interrupts_while_off: system.interrupts_while_off,
        flag_checks: shows_flag.then_some(system.flag.checks),
        failed_flag_checks: shows_flag.then_some(system.flag.failed_checks),
        flag_lost: system.flag.lost,
        exceptions: system.exceptions,
        unmatched_returns: system.unmatched_returns,
        switches: system.switches,
        complete: system.complete,
        regions: names.map(|(index, (_, region))| of_region(recording, index, &region.name)).collect(),
        notes,
    }
}

fn of_region(recording: &Recording, index: usize, name: &str) -> RegionSummary {
    let calls: Vec<&MeasuredCall> =
        recording.measured.iter().filter(|call| usize::from(call.region.0) == index).collect();
    let models = models_caches(recording);
    let quantiles = |of: fn(&Counts) -> u64| Quantiles::of(calls.iter().map(|call| of(&call.own)));
    let modelled = |of: fn(&Counts) -> u64| quantiles(of).filter(|_| models);
    RegionSummary {
        name: name.to_owned(),
        calls: calls.len() as u64,
        kept: recording.calls.iter().filter(|call| usize::from(call.region.0) == index).count() as u64,
        left: calls.iter().filter(|call| call.end != CallEnd::Returned).count() as u64,
        interrupts: calls.iter().map(|call| u64::from(call.interrupts)).sum(),
        instructions: quantiles(|own| own.instructions),
        code_l1_misses: modelled(|own| own.code_misses.l1),
        code_l2_misses: modelled(|own| own.code_misses.l2),
        data_l1_misses: modelled(|own| own.data_misses.l1),
        data_l2_misses: modelled(|own| own.data_misses.l2),
        shared_misses: modelled(|own| own.shared_misses),
        spin_instructions: quantiles(|own| own.spin_instructions),
        cycles: Quantiles::of(calls.iter().map(|call| call.cycles())).filter(|_| models),
    }
}

/// False when the recorder modelled no caches: misses and stalls were then not observed.
fn models_caches(recording: &Recording) -> bool {
    !recording.header.caches.is_empty()
}

/// A note on a region whose kept calls are not like all of its calls: findings about their accesses then need not hold
/// for the others. Calls are compared by their instructions.
fn unlike_the_rest(
    name: &str,
    all: impl Iterator<Item = u64>,
    kept: impl Iterator<Item = u64>,
) -> Option<String> {
    let mut sizes = CallSizes::default();
    all.for_each(|instructions| sizes.add(instructions));
    let mut kept: Vec<u64> = kept.collect();
    kept.sort_unstable();
    let median = *kept.get(kept.len() / 2)?;
    let mean = kept.iter().map(|instructions| *instructions as f64).sum::<f64>() / kept.len() as f64;
    if kept.len() as u64 >= sizes.calls() || sizes.is_like(median as f64, mean) {
        return None;
    }
    let (all_median, all_mean) = (sizes.median()?, sizes.mean()?);
    Some(format!(
        "{name}: the {} calls whose accesses are kept are not like all {}: median {median} instructions, over all \
         {all_median}; mean {mean:.0}, over all {all_mean:.0}; keep more with --calls",
        kept.len(),
        sizes.calls()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_calls_that_are_not_like_all_are_told() {
        let all = || (0..100).map(|number| if number < 20 { 500 } else { 800 });
        let told = unlike_the_rest("tick", all(), all().take(20)).expect("they differ");
        assert!(
            told.contains("the 20 calls") && told.contains("median 500 instructions, over all 800"),
            "{told}"
        );
        assert_eq!(unlike_the_rest("tick", all(), all()), None, "all are kept");
        assert_eq!(unlike_the_rest("tick", all().skip(20), all().skip(90)), None, "they are alike");
        assert_eq!(unlike_the_rest("tick", all(), all().take(0)), None, "none is kept, so none is explained");
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let quantiles = Quantiles::of((1..=200).rev()).unwrap();
        assert_eq!(quantiles, Quantiles { min: 1, median: 100, p99: 198, max: 200 });
        assert_eq!(Quantiles::of([7].into_iter()), Some(Quantiles { min: 7, median: 7, p99: 7, max: 7 }));
        assert_eq!(Quantiles::of([].into_iter()), None);
    }
}
