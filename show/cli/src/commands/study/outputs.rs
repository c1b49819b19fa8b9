//! The files that a study writes.

use super::patch_command::apply;
use super::plan::Plan;
use super::result_files::{LOCK, PAGE, PATCH, RECORDING, REJECTED, REPORT, UNPROVEN, VARIANTS, put};
use super::series;
use crate::options::advice::ReportOptions;
use crate::terminal::{output, typed_command};
use anyhow::{Context, Result};
use lineup_report::html::study_page;
use lineup_report::study::{CommandLine, Fact, LeverReport, StudyReport};
use lineup_report::text::{levers_text, study_text};
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Writes report, figures and patch; `rejected` is a patch that failed as a whole. A patch of an earlier study that
/// this one does not confirm is removed.
pub(crate) fn write(out: &Path, report: &StudyReport, rejected: Option<&str>) -> Result<()> {
    put(out, PAGE, &study_page(report))?;
    put(out, REPORT, &report.to_json()?)?;
    for name in [PATCH, UNPROVEN] {
        let patch = report.patch.as_ref().filter(|patch| patch.file == name);
        put_or_remove(out, name, patch.map(|patch| patch.text.as_str()))?;
    }
    put_or_remove(out, REJECTED, rejected)
}

/// Writes and prints a report of the levers beside the layout, with the reason why no layout was studied, and with where
/// the cycles go.
pub(crate) fn write_without_layout(
    plan: &Plan,
    nothing: &str,
    levers: Vec<LeverReport>,
    cycles: Option<Fact>,
) -> Result<()> {
    let report = StudyReport {
        setting: cycles.into_iter().collect(),
        not_proven: Some(nothing.to_owned()),
        levers,
        commands: vec![repeat()],
        ..StudyReport::new(plan.started.display().to_string())
    };
    series::write_settings(&plan.out, &report)?;
    write(&plan.out, &report, None)?;
    let page = plan.out.join(PAGE);
    output::print(&match plan.json {
        true => report.to_json()?,
        false => {
            let levers = levers_text(&report, plan.report.telling());
            format!("{levers}\n{nothing}\nwritten: {}\n", page.display())
        }
    })
}

/// The command that repeats a study.
fn repeat() -> CommandLine {
    CommandLine { purpose: "repeat this study".into(), text: typed_command::line(std::env::args_os()) }
}

fn put_or_remove(out: &Path, name: &str, text: Option<&str>) -> Result<()> {
    let path = out.join(name);
    match text.map_or_else(|| fs::remove_file(&path), |text| fs::write(&path, text)) {
        Err(error) if error.kind() != ErrorKind::NotFound || text.is_some() => {
            Err(error).with_context(|| format!("cannot write or remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The results of a study that next steps can use.
#[derive(Clone, Copy, Default)]
pub(crate) struct Left {
    /// [`PATCH`] or [`UNPROVEN`].
    pub(crate) patch: Option<&'static str>,
    /// [`LOCK`].
    pub(crate) lock: bool,
    /// No change, but the recording, which shows the goal of a change by hand.
    pub(crate) recording: bool,
}

/// Commands that repeat a study, and commands for next steps, for the user's current folder.
pub(crate) fn commands(plan: &Plan, program: &Path, left: Left) -> Vec<CommandLine> {
    let mut commands = vec![repeat()];
    if let Some(patch) = left.patch {
        let apply = apply(&plan.source, &plan.out.join(patch));
        let purpose = if patch == PATCH { "apply the patch" } else { "apply the patch, which is not proven" };
        commands.push(CommandLine { purpose: purpose.into(), text: typed_command::line(apply) });
    }
    if left.recording {
        let recording = plan.out.join(VARIANTS[0]).join(RECORDING);
        let explain: [OsString; 3] = ["lineup".into(), "explain".into(), recording.into()];
        commands.push(CommandLine {
            purpose: "show the lines that these calls touch, by type and member".into(),
            text: typed_command::line(explain),
        });
    }
    if left.lock {
        let (lock, program) = (plan.out.join(LOCK), plan.source.join(program));
        let check: [OsString; 5] =
            ["lineup".into(), "layout".into(), "--check".into(), lock.into(), program.into()];
        commands.push(CommandLine {
            purpose: "hold a later build against the guard; exit code 1 when a member has moved".into(),
            text: typed_command::line(check),
        });
    }
    commands
}

/// The report for standard output: JSON when asked for, a table for a terminal, plain text for a pipe.
pub(crate) fn for_standard_output(
    json: bool,
    wanted: &ReportOptions,
    out: &Path,
    report: &StudyReport,
) -> Result<String> {
    if json {
        return Ok(report.to_json()?);
    }
    let page = out.join(PAGE);
    Ok(format!("{}{}\nwritten: {}\n", study_text(report, wanted.telling()), wanted.more(), page.display()))
}
