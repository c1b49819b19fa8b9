//! `lineup view`: a recording in the terminal, or its page in the browser.

use crate::advise::recorded_program;
use crate::explain::{self, Surveyed};
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::{files, typed};
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_model::access::{Call, CallEnd};
use lineup_model::line::LineSize;
use lineup_recording::Mode;
use lineup_report::exports::CallFigures;
use lineup_report::html::study_page;
use lineup_report::study::{CommandLine, StudyReport};
use lineup_study::companions::DebugInfos;
use lineup_study::tool;
use lineup_view::{CallRow, Subject};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// How a page begins.
const PAGE: &[u8] = b"<!DOCTYPE html>";

/// Lines of the view and of its page.
const LINE: LineSize = LineSize::B64;

/// Arguments of `lineup view`.
#[derive(Args)]
pub(crate) struct Options {
    /// A recording of calls, a page that Lineup wrote, or the folder of a study
    file: PathBuf,
    /// Open the recording's page in the browser, not the terminal view
    #[arg(long)]
    page: bool,
    /// Write the recording's page here and open nothing
    #[arg(long, value_name = "FILE", conflicts_with = "page")]
    out: Option<PathBuf>,
}

/// Runs `lineup view`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let file = match options.file.is_dir() {
        true => options.file.join("report.html"),
        false => options.file.clone(),
    };
    if is_page(&file)? {
        if options.out.is_some() {
            bail!("{} is a page already: --out is for recordings", file.display());
        }
        return open(&file);
    }
    let stages = Stages::new();
    let surveyed = explain::survey_any(&file, &stages)?;
    refuse_others(&surveyed, &file)?;
    if let Some(out) = &options.out {
        std::fs::write(out, page(surveyed, &file, &stages)?).with_context(|| out.display().to_string())?;
        stages.end();
        files::print(&format!("written: {}\n", out.display()))?;
        return Ok(Outcome::Done);
    }
    if options.page {
        let kept = tempfile::Builder::new().prefix("lineup-view-").suffix(".html").tempfile()?;
        std::fs::write(kept.path(), page(surveyed, &file, &stages)?)?;
        stages.end();
        let (_, path) = kept.keep()?;
        return open(&path);
    }
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        let name = file.display();
        bail!(
            "there is no terminal to show {name} on: `lineup view --page {name}` opens its page, \
             `lineup explain {name}` prints text"
        );
    }
    let subject = subject(surveyed, &file, &stages)?;
    stages.end();
    lineup_view::run(subject)?;
    Ok(Outcome::Done)
}

fn is_page(file: &Path) -> Result<bool> {
    let mut first = Vec::new();
    let opened = File::open(file).with_context(|| file.display().to_string())?;
    opened.take(PAGE.len() as u64).read_to_end(&mut first)?;
    Ok(first.eq_ignore_ascii_case(PAGE))
}

/// Opens a page in the browser, and says which.
fn open(page: &Path) -> Result<Outcome> {
    let page = std::path::absolute(page)?;
    let shown = page.display();
    match tool::open_page(&page) {
        Ok(status) if status.success() => files::print(&format!("opened in the browser: {shown}\n"))?,
        Ok(status) => bail!("xdg-open did not open {shown} ({status}): open it with a browser of your own"),
        Err(error) => {
            bail!("xdg-open: {error}: install xdg-utils, or open {shown} with a browser of your own")
        }
    }
    Ok(Outcome::Done)
}

/// Recordings that hold no calls with their accesses are shown by other commands.
pub(crate) fn refuse_others(surveyed: &Surveyed, file: &Path) -> Result<()> {
    let name = file.display();
    match surveyed.survey.header.mode {
        Mode::OnePass | Mode::TwoPass => Ok(()),
        Mode::System => bail!(
            "{name} is of a whole system: `lineup trace report --html PAGE {name}` writes its page, then `lineup view PAGE`"
        ),
        Mode::WholeProgram => bail!(
            "{name} holds counts of a whole program: `lineup code --html PAGE {name}` writes its page, then `lineup view PAGE`"
        ),
    }
}

/// What its calls touched, and how the calls are shown.
pub(crate) fn report(surveyed: Surveyed, file: &Path, stages: &Stages) -> Result<StudyReport> {
    let mut known = DebugInfos::default();
    let program = recorded_program(file, &surveyed.survey, &mut known)?;
    let wanted = lineup_explain::Options { line_size: LINE, ..lineup_explain::Options::default() };
    let explained = explain::program(surveyed, &program, known, wanted, stages)?;
    let title =
        file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into());
    Ok(StudyReport::of_recording(title, &explained, LINE))
}

fn page(surveyed: Surveyed, file: &Path, stages: &Stages) -> Result<String> {
    if surveyed.survey.calls == 0 {
        bail!("{}: no call was recorded; check that the program calls the regions", file.display());
    }
    let mut report = report(surveyed, file, stages)?;
    let purpose = "Write this page again".to_owned();
    report.commands.push(CommandLine { purpose, text: typed::line(std::env::args_os()) });
    Ok(study_page(&report))
}

fn subject(surveyed: Surveyed, file: &Path, stages: &Stages) -> Result<Subject> {
    let mut subject = Subject { title: file.display().to_string(), ..Subject::default() };
    if let Some(damage) = &surveyed.survey.damage {
        subject.notes.push(format!("Only what stands before the damage is shown: {damage}."));
    }
    if surveyed.survey.calls == 0 {
        subject.notes.push("No call was recorded; check that the program calls the regions.".to_owned());
        return Ok(subject);
    }
    let mut calls: Vec<(u64, CallRow)> = Vec::new();
    surveyed.each_call(stages, |call| calls.push((call.entered_at, row(call))))?;
    calls.sort_by_key(|(entered_at, _)| *entered_at);
    subject.calls = calls.into_iter().map(|(_, call)| call).collect();
    let report = report(surveyed, file, stages)?;
    subject.notes.extend(report.not_observed.iter().map(|one| format!("{}: {}.", one.what, one.consequence)));
    (subject.regions, subject.maps) = (report.regions, report.maps);
    Ok(subject)
}

/// A call with its lines counted.
fn row(call: &Call) -> CallRow {
    let figures = CallFigures::of(call, LINE);
    CallRow {
        region: usize::from(call.region.0),
        number: call.sequence,
        thread: call.thread.0,
        instructions: call.instructions,
        data_lines: figures.data_lines,
        code_lines: figures.code_lines,
        ended: match call.end {
            CallEnd::Returned => None,
            CallEnd::Abandoned => Some("left by a jump"),
            CallEnd::ThreadEnded => Some("its thread ended"),
            CallEnd::ProcessEnded => Some("ended the process"),
            CallEnd::Unfinished => Some("not ended"),
        },
    }
}
