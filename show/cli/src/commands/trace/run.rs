//! Runs `lineup trace`.

use super::args::{Command, Explain, Format, Options, Report};
use super::calls;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_mapping::FileBytes;
use lineup_report::trace::{TracedRun, attributions_text, trace_page, traces_text};
use lineup_study::progress::Progress;
use lineup_trace::attribution::{Attribution, attribute};
use lineup_trace::estimate::Level;
use lineup_trace::summary::summarise;
use lineup_trace::tail::Tail;
use lineup_trace::{NameKind, Trace, export, hdr};
use std::io::Write as _;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    match &options.command {
        Command::Report(report) => run_report(report),
        Command::Explain(explain) => run_explain(explain),
    }
}

fn read(path: &Path, stages: &Stages) -> Result<Trace> {
    stages.stage(&format!("reading {}", path.display()));
    let bytes = FileBytes::open(path).with_context(|| format!("cannot read the trace {}", path.display()))?;
    Trace::parse(bytes.as_ref()).with_context(|| path.display().to_string())
}

fn write(out: Option<&Path>, bytes: &[u8]) -> Result<()> {
    match out {
        Some(path) => std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display())),
        None => match std::io::stdout().lock().write_all(bytes) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                Err(error).context("standard output")
            }
            _ => Ok(()),
        },
    }
}

fn run_report(report: &Report) -> Result<Outcome> {
    let recordings = report.files.iter().filter(|path| calls::is_recording(path)).count();
    match recordings {
        0 => report_traces(report),
        _ if recordings == report.files.len() => report_calls(report),
        _ => bail!("traces and recordings cannot be laid over each other; give files of one kind"),
    }
}

fn report_calls(report: &Report) -> Result<Outcome> {
    let stages = Stages::new();
    let studied = calls::study(&report.files, report.symbols.as_deref(), &report.regions, &stages)?;
    stages.stage("rendering the calls");
    let shown = studied.calls();
    if let Some(page) = &report.html {
        write(Some(page), lineup_report::calls::calls_page(&shown).as_bytes())?;
    }
    let bytes = match report.format() {
        Format::Text => {
            let (style, extent) = output::text_for(report.out.as_deref(), report.full);
            lineup_report::calls::calls_text(&shown, style, extent).into_bytes()
        }
        Format::Json => json(&studied.analysis)?,
        Format::Csv => lineup_report::calls::calls_csv(&studied.runs).into_bytes(),
        Format::Html => lineup_report::calls::calls_page(&shown).into_bytes(),
        Format::Chrome => lineup_report::calls::calls_chrome(&studied.runs).into_bytes(),
        Format::Perfetto | Format::Hdr | Format::HdrPercentiles => {
            bail!("recorded calls have no such form; give text, json, csv, chrome or html")
        }
    };
    stages.end();
    write(report.out.as_deref(), &bytes)?;
    Ok(Outcome::Done)
}

fn report_traces(report: &Report) -> Result<Outcome> {
    if report.symbols.is_some() || !report.regions.is_empty() {
        bail!("--symbols and --region are for recordings of whole systems; a trace holds its own names");
    }
    let stages = Stages::new();
    let runs: Vec<TracedRun> = report
        .files
        .iter()
        .map(|path| Ok(TracedRun { label: path.display().to_string(), trace: read(path, &stages)? }))
        .collect::<Result<_>>()?;
    stages.stage("summing up the trace");
    let single = |what: &str| match &runs[..] {
        [run] => Ok(&run.trace),
        _ => bail!("{what} holds one trace; give one file"),
    };
    let html =
        || trace_page(&runs, &explain_all(&runs[0].trace, Tail::default(), Level::default())).into_bytes();
    if let Some(page) = &report.html {
        write(Some(page), &html())?;
    }
    let bytes = match report.format() {
        Format::Text => {
            let (style, extent) = output::text_for(report.out.as_deref(), report.full);
            traces_text(&runs, style, extent).into_bytes()
        }
        Format::Json => json(&summarise(single("JSON")?))?,
        Format::Csv => export::csv(single("CSV")?).into_bytes(),
        Format::Html => html(),
        Format::Chrome => bail!("a trace has Perfetto's own form: --format perfetto"),
        Format::Perfetto => export::perfetto(single("a Perfetto trace")?),
        Format::Hdr => hdr::interval_log(single("an HDR export")?)?,
        Format::HdrPercentiles => percentiles(single("an HDR export")?).into_bytes(),
    };
    stages.end();
    write(report.out.as_deref(), &bytes)?;
    Ok(Outcome::Done)
}

fn json(value: &impl serde::Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn percentiles(trace: &Trace) -> String {
    let names = trace.names.iter().filter(|name| name.kind != NameKind::Mark);
    names
        .map(|name| format!("#[{}, ns]\n{}", name.text, hdr::percentiles(&trace.histogram(name.index, 0))))
        .collect()
}

fn explain_all(trace: &Trace, tail: Tail, level: Level) -> Vec<Attribution> {
    let regions = trace.names.iter().filter(|name| name.kind == NameKind::Region && name.arms_mask != 0);
    regions.filter_map(|region| attribute(trace, &region.text, tail, level).ok()).collect()
}

fn run_explain(explain: &Explain) -> Result<Outcome> {
    let stages = Stages::new();
    let trace = read(&explain.file, &stages)?;
    stages.stage("attributing the tail");
    let found = match &explain.region {
        Some(region) => vec![attribute(&trace, region, explain.tail, explain.level)?],
        None => explain_all(&trace, explain.tail, explain.level),
    };
    stages.end();
    if found.is_empty() {
        bail!(
            "no region in {} was given anything to try; declare it with LINEUP_TRY_CODE, LINEUP_TRY_DATA or \
             LINEUP_TRY_GIVE_UP (Rust: Region::with_code, with_data, with_give_up)",
            explain.file.display()
        );
    }
    if explain.json {
        write(None, &json(&serde_json::json!({ "schema": "lineup.explain-trace/1", "regions": found }))?)?;
    } else {
        let (style, extent) = output::text_for(None, explain.full);
        let text = attributions_text(&found, style, extent);
        write(None, text.as_bytes())?;
    }
    Ok(Outcome::Done)
}
