//! `lineup find --pid`: findings in a process that runs, from short bursts.

use super::args::Options;
use crate::host::caches;
use crate::options::engine::EngineName;
use crate::terminal::progress::Stages;
use crate::whole_program::counts::read;
use crate::whole_program::findings::work_out;
use anyhow::{Context, Result, bail};
use lineup_find::{Again, BurstsNotBegun, BurstsTaken, Findings};
use lineup_recording::Mode;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, BurstCost, BurstCounts, Engine, RecordRequest, Subject};
use lineup_study::run::Run;

/// Takes bursts of the process, and works them out.
pub(crate) fn find(
    options: &Options,
    process: u32,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Findings> {
    if options.engine == Some(EngineName::Qemu) {
        bail!("the emulator attaches to no process; leave --engine qemu out");
    }
    let scratch = interrupts.temporary_folder().context("making a temporary folder")?;
    let recording = options.out.clone().unwrap_or_else(|| scratch.path().join("find.rec"));
    let command = recorder::command_of(process)?;
    let run = Run { command, max_time: Some(options.seconds), ..Run::default() };
    let subject = Subject::load(&run, None)?;
    let request = RecordRequest {
        process: Some(process),
        bursts: Some(options.overhead),
        caches: match options.caches.is_empty() {
            true => caches::of_this_machine()?,
            false => options.caches.clone(),
        },
        window_bytes: options.windows << 20,
        output: recording.clone(),
        output_stays: options.out.is_some(),
        streams: Streams::Shown,
        ..RecordRequest::new(run, Engine::Native, Mode::WholeProgram)
    };
    stages.stage(&format!("looking at process {process}, {}", subject.program().display()));
    let outcome = recorder::record(&request, &subject, interrupts)?;
    outcome.require_whole(&request)?;
    let Some((counts, cost)) = outcome.bursts else { bail!("no bursts were taken") };
    let taken = taken(process, options.overhead, counts, &cost);
    if counts.kept == 0 {
        bail!("{}", none(&taken));
    }
    let mut recorded = read(&recording, stages)?;
    recorded.count_bursts()?;
    let wanted = lineup_find::Options {
        least_gain: options.least,
        again: Again::default(),
        bursts: Some(taken),
        ..lineup_find::Options::default()
    };
    work_out(&recorded, subject, None, &wanted, stages)
}

fn taken(process: u32, allowed: f64, counts: BurstCounts, cost: &BurstCost) -> BurstsTaken {
    let us = |time: std::time::Duration| time.as_secs_f64() * 1e6;
    let not_begun =
        |(reason, times): &(String, u64)| BurstsNotBegun { reason: reason.clone(), times: *times };
    BurstsTaken {
        process,
        watched_seconds: cost.watched.as_secs_f64(),
        process_seconds: cost.process_time.as_secs_f64(),
        bursts: counts.bursts,
        kept: counts.kept,
        unended: counts.unended,
        lost: cost.lost,
        cut: cost.cut,
        instructions: counts.instructions,
        accesses: counts.accesses,
        threads: counts.threads,
        burst_seconds: cost.in_bursts.as_secs_f64(),
        stopped_seconds: cost.stopped.as_secs_f64(),
        longest_burst_us: us(cost.longest_burst),
        longest_stop_us: us(cost.longest_stop),
        allowed,
        cost: cost.share(),
        not_begun: cost.not_begun.iter().map(not_begun).collect(),
    }
}

/// Why there is nothing to work out.
fn none(taken: &BurstsTaken) -> String {
    let reasons = taken.not_begun.iter().map(|one| format!("{}: {} times", one.reason, one.times));
    let reasons: Vec<String> = reasons.collect();
    format!(
        "process {} used {:.3} s of processor time in {:.1} s, and no burst was taken ({}); try more --seconds, or more \
         --overhead",
        taken.process,
        taken.process_seconds,
        taken.watched_seconds,
        if reasons.is_empty() {
            "its processor time was too short for one".to_owned()
        } else {
            reasons.join("; ")
        }
    )
}
