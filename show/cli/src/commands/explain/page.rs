//! The page of a recording.

use crate::recordings::report::{refuse_others, report};
use crate::recordings::survey::survey_any;
use crate::terminal::progress::Stages;
use crate::terminal::typed_command;
use anyhow::Result;
use lineup_model::line::LineSize;
use lineup_report::html::study_page;
use lineup_report::study::CommandLine;
use std::path::Path;

/// A page of that.
pub(crate) fn page(file: &Path, line_size: LineSize, stages: &Stages) -> Result<String> {
    let surveyed = survey_any(file, stages)?;
    refuse_others(&surveyed, file)?;
    surveyed.require_calls()?;
    let mut report = report(surveyed, file, line_size, stages)?;
    let purpose = "Write this page again".to_owned();
    report.commands.push(CommandLine { purpose, text: typed_command::line(std::env::args_os()) });
    Ok(study_page(&report))
}
