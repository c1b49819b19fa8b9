//! `lineup threads`: the effects of threads that ran together on each other's caches.

mod kernel;
mod text;

pub(crate) use text::serialising_sentence;

use crate::advice_options::line_size;
use crate::explain::{Surveyed, survey};
use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_explain::threads::{BetweenThreads, Of};
use lineup_model::line::LineSize;
use lineup_report::html::{ThreadsPage, threads_page};
use lineup_study::companions::DebugInfos;
use lineup_tail::second::unusual_above;
use serde::Serialize;
use std::path::PathBuf;

/// Arguments of `lineup threads`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording of functions that threads run at the same time, made by `lineup record --engine native`, or of a
    /// kernel on several CPUs, made with `--cpus 2 --region kernel`
    recording: PathBuf,
    /// Bytes in a cache line: 64, or 128 for processors that fetch lines in pairs
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// Assumed cost of one wait for a line, in cycles; it is not measured
    #[arg(long, value_name = "CYCLES", default_value_t = 100)]
    wait_cycles: u64,
    /// Findings and lines shown at most
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
    /// End with exit code 1 when threads share lines without need
    #[arg(long)]
    check: bool,
    /// Also write an HTML page with a map of each line, by who reads and writes its bytes
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON (schema lineup.threads/1)
    #[arg(long)]
    json: bool,
}

/// The printed JSON.
#[derive(Serialize)]
struct Page<'a> {
    schema: &'static str,
    recording: String,
    wait_cycles: u64,
    /// The number of calls whose recording lacks accesses.
    calls_cut: Option<u64>,
    #[serde(flatten)]
    between: &'a BetweenThreads,
}

/// Runs `lineup threads`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let surveyed = survey(&options.recording, &stages)?;
    let between = between(&surveyed, options, &stages)?;
    stages.end();
    let page = Page {
        schema: "lineup.threads/1",
        recording: options.recording.display().to_string(),
        wait_cycles: options.wait_cycles,
        calls_cut: surveyed.calls_cut(),
        between: &between,
    };
    if let Some(file) = &options.html {
        let told = ThreadsPage {
            recording: page.recording.clone(),
            remedies: between
                .false_sharing
                .iter()
                .map(|found| text::remedy(&found.remedy, between.line_bytes))
                .collect(),
            in_words: text::in_words(&between, options.top),
            notes: text::notes(&page),
        };
        let name = || format!("cannot write {}", file.display());
        std::fs::write(file, threads_page(&between, &told)).with_context(name)?;
    }
    let out = match options.json {
        true => serde_json::to_string_pretty(&page)? + "\n",
        false => text::text(&page, options.top, files::text_style()),
    };
    files::print(&out)?;
    let is_found = options.check && !(between.false_sharing.is_empty() && between.beside_hot.is_empty());
    Ok(if is_found { Outcome::Finding } else { Outcome::Done })
}

fn between(surveyed: &Surveyed, options: &Options, stages: &Stages) -> Result<BetweenThreads> {
    let debug = surveyed.debug_infos(&mut DebugInfos::default(), stages);
    let unusual = surveyed.survey.instructions.iter();
    let unusual = unusual.filter_map(|(region, counts)| Some((*region, unusual_above(counts)?)));
    let wanted = lineup_explain::Options {
        line_size: options.line_size,
        unusual: unusual.collect(),
        ..lineup_explain::Options::default()
    };
    let explanation = surveyed.explain(&debug, wanted, stages)?;
    let name = || options.recording.display().to_string();
    if explanation.tells.of == Of::Cpus && explanation.between.is_none() {
        bail!(
            "{}: nothing is known of the order between CPUs; record with --cpus 2 (or more) --region kernel",
            name()
        );
    }
    if explanation.threads < 2 {
        bail!(
            "{}: calls of one thread only were recorded; record a function that several threads run",
            name()
        );
    }
    explanation.between.with_context(|| {
        format!(
            "{}: the calls carry no times, so nothing is known of the order between threads; record with --engine native",
            name()
        )
    })
}
