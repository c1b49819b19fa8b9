//! Runs `lineup explain`.

use super::args::{Options, Table};
use super::parts::Shape;
use super::regions::select;
use super::{code, exports, page, samples, view};
use crate::recordings::survey::survey;
use crate::recordings::usage;
use crate::samples::findings::{STANDARD_INPUT, is_samples};
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::whole_program::counts;
use anyhow::{Context, Result, bail};
use lineup_debuginfo::spelled;
use lineup_report::text::TextStyle;
use lineup_study::companions::DebugInfos;
use std::path::Path;

/// Rows shown of each table of samples.
const SAMPLED_ROWS: usize = 15;

/// Runs `lineup explain`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    if options.code.is_given() || counts::is_whole_program(&options.recording) {
        let given = [
            (!options.regions.is_empty(), "--region"),
            (options.full, "--full"),
            (options.csv.is_some(), "--csv"),
            (options.trace.is_some(), "--trace"),
        ];
        refuse(options, &given, "counts of a whole program")?;
        return code::run::run(options);
    }
    let stages = Stages::new();
    if options.recording == Path::new(STANDARD_INPUT) || is_samples(&options.recording) {
        return of_samples(options, &stages);
    }
    if let Some(html) = &options.html {
        if options.json || options.top.is_some() {
            bail!("--html goes with --json and --top only for a whole program; leave them out");
        }
        let page = page::page(&options.recording, options.line_size, &stages)?;
        std::fs::write(html, page).with_context(|| html.display().to_string())?;
        return Ok(Outcome::Done);
    }
    let surveyed = survey(&options.recording, &stages)?;
    if options.trace.is_some() || options.csv == Some(Table::Calls) {
        return exports::calls(options, &surveyed, &stages);
    }
    let wanted = lineup_explain::Options {
        line_size: options.line_size,
        caches: options.caches.clone(),
        pressure_bytes: options.pressure.clone(),
        program_seconds: options.seconds,
        ..lineup_explain::Options::default()
    };
    let debug = surveyed.debug_infos(&mut DebugInfos::default(), &stages);
    let explanation = surveyed.explain(&debug, wanted, &stages)?;
    if options.usage {
        return print_json(&usage::of_recording(&surveyed, &debug, &explanation, &stages)?);
    }
    stages.end();
    let explanation = select(explanation, &options.regions)?;
    if options.csv.is_some() {
        output::print(&lineup_report::exports::members(&explanation))?;
        return Ok(Outcome::Done);
    }
    let out = if options.json {
        serde_json::to_string_pretty(&explanation)? + "\n"
    } else {
        let columns = match output::text_style() {
            TextStyle::Terminal { columns } => Some(usize::from(columns)),
            TextStyle::Plain => None,
        };
        view::text(&explanation, Shape { is_full: options.full, top: options.top, columns })
    };
    output::print(&out)?;
    Ok(Outcome::Done)
}

/// The same of samples, which know no calls.
fn of_samples(options: &Options, stages: &Stages) -> Result<Outcome> {
    refuse(options, &[(options.html.is_some(), "--html")], "samples")?;
    let rows = if options.full { usize::MAX } else { options.top.unwrap_or(SAMPLED_ROWS) };
    let functions: Vec<String> = options.regions.iter().map(|name| spelled(name)).collect();
    let given = (&options.symbols, options.find.as_deref());
    samples::explain(&options.recording, given, (&functions, rows), options.json, stages)
}

/// Refuses options that need recorded calls, those `given` among them, for a file with something else.
fn refuse(options: &Options, given: &[(bool, &str)], content: &str) -> Result<()> {
    let of_calls = [
        (!options.caches.is_empty(), "--cache"),
        (options.seconds.is_some(), "--seconds"),
        (options.usage, "--usage"),
    ];
    if let Some((_, option)) = of_calls.iter().chain(given).find(|(is_given, _)| *is_given) {
        bail!("{option} needs recorded calls, and {} has {content}", options.recording.display());
    }
    Ok(())
}

fn print_json(document: &impl serde::Serialize) -> Result<Outcome> {
    output::print(&(serde_json::to_string_pretty(document)? + "\n"))?;
    Ok(Outcome::Done)
}
