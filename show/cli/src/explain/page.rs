//! The page of a recording, and the parts that both the page and an editor show.

use super::{Surveyed, program, survey_any};
use crate::advise::recorded_program;
use crate::progress::Stages;
use crate::typed;
use anyhow::{Result, bail};
use lineup_model::line::LineSize;
use lineup_recording::Mode;
use lineup_report::html::study_page;
use lineup_report::study::{CommandLine, StudyReport};
use lineup_study::companions::DebugInfos;
use std::path::Path;

/// Recordings that hold no calls with their accesses are shown by other commands.
pub(crate) fn refuse_others(surveyed: &Surveyed, file: &Path) -> Result<()> {
    let name = file.display();
    match surveyed.survey.header.mode {
        Mode::OnePass | Mode::TwoPass => Ok(()),
        Mode::System => {
            bail!("{name} is of a whole system: `lineup trace report --html PAGE {name}` writes its page")
        }
        Mode::WholeProgram => {
            bail!("{name} holds counts of a whole program: `lineup code --html PAGE {name}` writes its page")
        }
    }
}

/// The report on the lines that a recording's calls touched, with maps for lines of this size.
pub(crate) fn report(
    surveyed: Surveyed,
    file: &Path,
    line_size: LineSize,
    stages: &Stages,
) -> Result<StudyReport> {
    let mut known = DebugInfos::default();
    let recorded = recorded_program(file, &surveyed.survey, &mut known)?;
    let wanted = lineup_explain::Options { line_size, ..lineup_explain::Options::default() };
    let explained = program(surveyed, &recorded, known, wanted, stages)?;
    let title =
        file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into());
    Ok(StudyReport::of_recording(title, &explained, line_size))
}

/// A page of that.
pub(super) fn page(file: &Path, line_size: LineSize, stages: &Stages) -> Result<String> {
    let surveyed = survey_any(file, stages)?;
    refuse_others(&surveyed, file)?;
    surveyed.require_calls()?;
    let mut report = report(surveyed, file, line_size, stages)?;
    let purpose = "Write this page again".to_owned();
    report.commands.push(CommandLine { purpose, text: typed::line(std::env::args_os()) });
    Ok(study_page(&report))
}
