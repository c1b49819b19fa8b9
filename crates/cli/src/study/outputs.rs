//! What a study leaves behind.

use crate::study::plan::Plan;
use crate::typed;
use anyhow::{Context, Result};
use lineup_advise::proposal::Advice;
use lineup_report::html::study_page;
use lineup_report::study::{CommandLine, StudyReport};
use lineup_report::text::study_text;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// Name of the patch.
pub(crate) const PATCH: &str = "fix.patch";

/// Writes report, figures, patch and guard. A patch of an earlier study that this one does not confirm is
/// taken away.
pub(crate) fn write(plan: &Plan, report: &StudyReport, advice: &Advice, patch: &str) -> Result<()> {
    let put = |name: &str, text: &str| {
        let path = plan.out.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    put("report.html", &study_page(report))?;
    put("report.json", &report.to_json()?)?;
    remove(plan, "rejected.patch")?;
    match patch.is_empty() {
        true => remove(plan, PATCH)?,
        false => put(PATCH, patch)?,
    }
    if plan.guard {
        put("lineup.lock", &advice.guard.to_text())?;
    }
    Ok(())
}

/// Keeps a patch that the comparison rejected.
pub(crate) fn write_rejected(plan: &Plan, patch: &str) -> Result<()> {
    remove(plan, PATCH)?;
    let path = plan.out.join("rejected.patch");
    fs::write(&path, patch).with_context(|| format!("cannot write {}", path.display()))
}

fn remove(plan: &Plan, name: &str) -> Result<()> {
    let path = plan.out.join(name);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The commands that repeat a study and go on from it, from where the user stands.
pub(crate) fn commands(plan: &Plan, has_patch: bool) -> Vec<CommandLine> {
    let mut commands =
        vec![CommandLine { purpose: "repeat this study".into(), text: typed::line(std::env::args_os()) }];
    if has_patch {
        let mut apply: Vec<OsString> = vec!["git".into()];
        let mut patch = plan.out.join(PATCH);
        if plan.source != Path::new(".") {
            apply.extend(["-C".into(), plan.source.clone().into()]);
            // In another folder a relative name leads elsewhere.
            patch = std::path::absolute(&patch).unwrap_or(patch);
        }
        apply.extend(["apply".into(), patch.into()]);
        commands.push(CommandLine { purpose: "apply the patch".into(), text: typed::line(apply) });
    }
    if plan.guard {
        let (lock, program) = (plan.out.join("lineup.lock"), plan.source.join(&plan.program));
        let check: [OsString; 5] =
            ["lineup".into(), "layout".into(), "--check".into(), lock.into(), program.into()];
        commands.push(CommandLine {
            purpose: "hold a later build against the guard; exit code 1 when a member has moved".into(),
            text: typed::line(check),
        });
    }
    commands
}

/// The report for standard output: JSON when asked for, a table for a terminal, plain text for a pipe.
pub(crate) fn for_standard_output(plan: &Plan, report: &StudyReport) -> Result<String> {
    if plan.json {
        return Ok(report.to_json()?);
    }
    let page = plan.out.join("report.html");
    Ok(format!(
        "{}{}\nwritten: {}\n",
        study_text(report, plan.report.telling()),
        plan.report.more(),
        page.display()
    ))
}
