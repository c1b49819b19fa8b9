//! The page of executed code.

use crate::terminal::progress::Stages;
use crate::terminal::typed_command;
use anyhow::{Context, Result, bail};
use lineup_codelayout::{Code, Fetches, Summary};
use lineup_recording::Reader;
use lineup_report::code_map::{CodePage, code_page};
use lineup_study::progress::Progress;
use std::io::BufReader;
use std::path::Path;

/// The page, with the fetches from `calls` when it is given.
pub(crate) fn page(
    code: &Code<'_>,
    summary: &Summary,
    calls: Option<&Path>,
    stages: &Stages,
) -> Result<String> {
    let fetches = match calls {
        Some(recording) => fetches(code, summary, recording, stages)?,
        None => Fetches::default(),
    };
    let command = typed_command::line(std::env::args_os());
    Ok(code_page(&CodePage { summary, map: &code.map(&fetches), command: &command }))
}

/// The lines of the same file that recorded calls fetched.
fn fetches(code: &Code<'_>, summary: &Summary, recording: &Path, stages: &Stages) -> Result<Fetches> {
    stages.stage(&format!("reading {}", recording.display()));
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    let reader = Reader::new(BufReader::new(file)).with_context(|| recording.display().to_string())?;
    let fetches = Fetches::read(reader.without_log(), |image| image.path == summary.file);
    stages.end();
    let Some(image) = &fetches.image else {
        bail!("{}: {} was not mapped in it", recording.display(), summary.file);
    };
    if image.build_id.is_some() && image.build_id.as_deref() != code.debug.build_id() {
        bail!("{}: is of another {}: its build id differs", recording.display(), summary.file);
    }
    if fetches.regions.is_empty() {
        bail!(
            "{}: holds no recorded calls; record some with lineup record --region FUNCTION",
            recording.display()
        );
    }
    Ok(fetches)
}
