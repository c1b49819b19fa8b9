//! The table of a run, and its sums.

use super::case::Case;
use super::score::{FIRST, Finding, Study};
use std::fmt::Write;

/// How a case ended.
pub(crate) enum Outcome {
    /// The user's folder has none for it.
    NotRun,
    /// `find` ended with this error.
    Failed(String),
    Run {
        finding: Finding,
        study: Option<Result<Study, String>>,
    },
}

/// The run as Markdown: sums, a row a case, and the cases without a folder.
pub(crate) fn table(outcomes: &[(&Case, Outcome)]) -> String {
    let mut out = sums(outcomes);
    out.push_str("\n| case | kind | place | finding, or the reason for none | study | time |\n|---|---|---|---|---|---|\n");
    for (case, outcome) in outcomes {
        let kind =
            if case.control { format!("{}, control", case.kind.word()) } else { case.kind.word().to_owned() };
        let (place, words, study, time) = match outcome {
            Outcome::NotRun => continue,
            Outcome::Failed(error) => {
                ("–".to_owned(), format!("`find` failed: {error}"), String::new(), String::new())
            }
            Outcome::Run { finding, study } => {
                let place = finding.place.map_or("–".to_owned(), |place| place.to_string());
                let (words, time) = study_cells(study.as_ref());
                (place, finding.words.clone(), words, time)
            }
        };
        let cells = [case.name.as_str(), &kind, &place, &words, &study, &time].map(cell);
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    let not_run: Vec<&str> = outcomes
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::NotRun))
        .map(|(case, _)| case.name.as_str())
        .collect();
    if !not_run.is_empty() {
        let _ = writeln!(out, "\nNot run: {}.", not_run.join(", "));
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn study_cells(study: Option<&Result<Study, String>>) -> (String, String) {
    match study {
        None => (String::new(), String::new()),
        Some(Err(error)) => (format!("failed: {error}"), String::new()),
        Some(Ok(study)) => {
            let is_right = if study.is_of_case { "right data" } else { "other data or none" };
            let passes = match study.passes {
                None => "",
                Some(true) => ", tests pass",
                Some(false) => ", tests fail",
            };
            let change = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
            let time = study.time.map_or_else(String::new, |[ratio, low, high]| {
                format!("{} [{}, {}]", change(ratio), change(low), change(high))
            });
            (format!("{is_right}{passes}: {}", study.words), time)
        }
    }
}

fn sums(outcomes: &[(&Case, Outcome)]) -> String {
    let (mut wins, mut hits, mut controls, mut quiet) = (0, 0, 0, 0);
    let (mut studied, mut patched, mut faster, mut patched_controls, mut failed, mut missing) =
        (0, 0, 0, 0, 0, 0);
    for (case, outcome) in outcomes {
        let (finding, study) = match outcome {
            Outcome::NotRun => {
                missing += 1;
                continue;
            }
            Outcome::Failed(_) => {
                failed += 1;
                continue;
            }
            Outcome::Run { finding, study } => (finding, study),
        };
        let hit = u32::from(finding.is_hit());
        let study = study.as_ref().and_then(|study| study.as_ref().ok());
        let is_made = study.is_some_and(|study| study.is_of_case && study.passes != Some(false));
        studied += u32::from(study.is_some());
        if case.control {
            (controls, quiet, patched_controls) =
                (controls + 1, quiet + 1 - hit, patched_controls + u32::from(is_made));
        } else {
            (wins, hits, patched) = (wins + 1, hits + hit, patched + u32::from(is_made));
            faster += u32::from(
                is_made && study.and_then(|study| study.time).is_some_and(|[_, _, high]| high < 1.0),
            );
        }
    }
    let mut out = format!(
        "Found among the first {FIRST} findings: {hits} of {wins}. Controls without such a finding: {quiet} of {controls}.\n"
    );
    if studied > 0 {
        let _ = writeln!(
            out,
            "Studied: {studied}. Changes of the right data: {patched}, of them with less time beyond doubt: {faster}. \
             Controls that were changed: {patched_controls}."
        );
    }
    let _ = writeln!(out, "Failed: {failed}. Without a folder: {missing}.");
    out
}
