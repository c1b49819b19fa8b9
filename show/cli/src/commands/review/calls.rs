//! The calls of the regions, recorded on one side.

use super::args::{Options, has_folder};
use super::around::Around;
use crate::recordings::survey;
use anyhow::{Context, Result};
use lineup_debuginfo::{DebugInfo, FoundFunctions, spelled};
use lineup_explain::explanation::RegionExplanation;
use lineup_explain::quantiles::Quantiles;
use lineup_model::line::LineSize;
use lineup_model::region::Region;
use lineup_recording::Mode;
use lineup_review::{CallMeans, RegionFigures, RepositoryLine};
use lineup_study::companions::DebugInfos;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject};
use lineup_study::run::Run;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Records the regions that this side has, and sums up the needs of their calls.
pub(crate) fn record(options: &Options, root: &Path, around: &Around<'_>) -> Result<Calls> {
    let run = run(options, root, around)?;
    let subject = Subject::load(&run, None)?;
    let has = |region: &&Region| {
        !matches!(subject.debug().find_functions(&region.name), FoundFunctions::Unknown { .. })
    };
    let (regions, missing): (Vec<&Region>, Vec<&Region>) = options.regions.iter().partition(has);
    let missing = missing.into_iter().map(|region| region.name.clone()).collect();
    if regions.is_empty() {
        return Ok(Calls { regions: Vec::new(), missing });
    }
    let places = Places { debug: subject.debug(), root };
    let mut figures: Vec<RegionFigures> = regions
        .iter()
        .map(|region| RegionFigures {
            name: spelled(&region.name),
            place: places.of(&region.name),
            runs: Vec::new(),
            type_lines_per_call: BTreeMap::new(),
        })
        .collect();
    for _ in 0..options.runs {
        record_once(options, &run, &subject, &regions, &mut figures, around)?;
    }
    Ok(Calls { regions: figures, missing })
}

/// Records a run, and adds the needs of its calls.
fn record_once(
    options: &Options,
    run: &Run,
    subject: &Subject,
    regions: &[&Region],
    figures: &mut [RegionFigures],
    around: &Around<'_>,
) -> Result<()> {
    let folder = around.interrupts.temporary_folder().context("making a temporary folder")?;
    let output = folder.path().join("review.rec");
    let request = RecordRequest {
        regions: regions.iter().copied().cloned().collect(),
        max_calls: Some(options.calls),
        output: output.clone(),
        output_stays: false,
        streams: Streams::Captured,
        ..RecordRequest::new(run.clone(), Engine::Fitting, Mode::TwoPass)
    };
    around.stages.stage(&format!("recording {}", subject.program().display()));
    let outcome = recorder::record(&request, subject, around.interrupts)?;
    outcome.require_whole(&request)?;
    let surveyed = survey::survey(&output, around.stages)?;
    let wanted =
        lineup_explain::Options { line_size: options.line_size, ..lineup_explain::Options::default() };
    let debug = surveyed.debug_infos(&mut DebugInfos::default(), around.stages);
    let explanation = surveyed.explain(&debug, wanted, around.stages)?;
    let made = surveyed.survey.summary.as_ref();
    let made = |index: usize| made.and_then(|summary| summary.regions.get(index)).map(|counts| counts.seen);
    for (index, (figures, explained)) in figures.iter_mut().zip(&explanation.regions).enumerate() {
        figures.runs.push(means(explained, made(index), options.line_size));
        for used in &explained.map {
            let lines = figures.type_lines_per_call.entry(used.type_name.clone().unwrap_or_default());
            *lines.or_default() += used.needed_per_call / options.runs as f64;
        }
    }
    Ok(())
}

/// The program of this side, in its folder.
pub(crate) fn run(options: &Options, root: &Path, around: &Around<'_>) -> Result<Run> {
    let (program, arguments) = options.command.split_first().context("no program given")?;
    let program = match has_folder(program) {
        true => root.join(program).into_os_string(),
        false => program.clone(),
    };
    let command: Vec<OsString> = [program].into_iter().chain(arguments.iter().cloned()).collect();
    let run = options.limits.run(&command, &options.environment, around.interrupts, around.stages)?;
    // The same addresses on both sides, as far as both are alike.
    Ok(Run { directory: Some(root.to_owned()), fixed_addresses: true, ..run })
}

/// The declarations of functions.
struct Places<'p> {
    debug: &'p DebugInfo,
    root: &'p Path,
}

impl Places<'_> {
    fn of(&self, name: &str) -> Option<RepositoryLine> {
        let FoundFunctions::OutOfLine(found) = self.debug.find_functions(name) else { return None };
        let entry = found.first()?.entry;
        let functions = self.debug.functions_covering(&mut std::iter::once(entry));
        RepositoryLine::in_repository(functions.first()?.declared_at.as_ref()?, self.root)
    }
}

fn means(explained: &RegionExplanation, calls_made: Option<u64>, line: LineSize) -> CallMeans {
    let lines = explained.lines.iter().find(|lines| lines.line_bytes == line.bytes());
    let mean = |of: Option<Quantiles>| of.map_or(0.0, |quantiles| quantiles.mean);
    CallMeans {
        calls_made,
        calls: explained.calls,
        instructions_per_call: mean(explained.instructions),
        data_lines_per_call: mean(lines.and_then(|lines| lines.data)),
        code_lines_per_call: mean(lines.and_then(|lines| lines.code)),
    }
}

/// The recorded calls.
#[derive(Default)]
pub(crate) struct Calls {
    /// By region that this side has.
    pub(crate) regions: Vec<RegionFigures>,
    /// Regions that it does not have.
    pub(crate) missing: Vec<String>,
}
