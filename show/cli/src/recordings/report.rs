//! The report of one recording, for its page and for an editor.

use crate::recordings::survey::{Surveyed, program};
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use lineup_model::line::LineSize;
use lineup_recording::Mode;
use lineup_report::study::StudyReport;
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
            bail!(
                "{name} holds counts of a whole program: `lineup explain --html PAGE {name}` writes its page"
            )
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
    let recorded = surveyed.recorded_program(&mut known)?;
    let wanted = lineup_explain::Options { line_size, ..lineup_explain::Options::default() };
    let explained = program(surveyed, &recorded, known, wanted, stages)?;
    let title =
        file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into());
    Ok(StudyReport::of_recording(title, &explained, line_size))
}
