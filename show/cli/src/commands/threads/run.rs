//! Runs `lineup threads`.

use super::args::Options;
use crate::recordings::survey::{Surveyed, survey};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_explain::threads::{BetweenThreads, Of};
use lineup_report::threads::{ThreadsReport, threads_page, threads_text};
use lineup_study::companions::DebugInfos;
use lineup_tail::second::unusual_above;

/// Runs `lineup threads`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let surveyed = survey(&options.recording, &stages)?;
    let between = between(&surveyed, options, &stages)?;
    stages.end();
    let report = ThreadsReport {
        schema: "lineup.threads/1",
        recording: options.recording.display().to_string(),
        wait_cycles: options.wait_cycles,
        calls_cut: surveyed.calls_cut(),
        between: &between,
    };
    if let Some(file) = &options.html {
        let name = || format!("cannot write {}", file.display());
        std::fs::write(file, threads_page(&report, options.top)).with_context(name)?;
    }
    let out = match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => threads_text(&report, options.top, output::text_style()),
    };
    output::print(&out)?;
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
        only_threads: true,
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
