//! A commit, checked out in a scratch clone and built there.

use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_prove::output::Output;
use lineup_prove::run::Ending;
use lineup_study::git::Scratch;
use lineup_study::interrupt::Interrupts;
use lineup_study::process::{Streams, Waiting};
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::source::build::Environment;
use std::path::PathBuf;

/// The way to build commits.
pub(crate) struct How<'h> {
    /// A shell command; `None` when there is nothing to build.
    pub(crate) build: Option<&'h str>,
    /// The destination of its output.
    pub(crate) streams: Streams,
}

impl How<'_> {
    /// The folder with the commit built in it, or the build's complaint. A commit is built only once.
    pub(crate) fn built(
        &self,
        scratch: &Scratch,
        commit: &str,
        stages: &Stages,
        interrupts: &Interrupts,
    ) -> Result<std::result::Result<PathBuf, Output>> {
        let folder = scratch.checkout(commit)?;
        let mark = folder.with_extension("built");
        if mark.exists() {
            return Ok(Ok(folder));
        }
        if let Some(build) = self.build {
            let environment = Environment::new(interrupts)?;
            let run = Run {
                command: ["/bin/sh", "-c", build].map(Into::into).to_vec(),
                directory: Some(folder.clone()),
                environment: environment.with([]),
                ..Run::default()
            };
            stages.stage(&format!("building {}", scratch.title(commit)?));
            let ended = Waiting::start(&run, self.streams, interrupts)?.run()?;
            stages.end();
            if ended.ending != Ending::Exited(0) {
                return Ok(Err(ended.stderr));
            }
        }
        std::fs::write(&mark, "").with_context(|| format!("writing {}", mark.display()))?;
        Ok(Ok(folder))
    }
}
