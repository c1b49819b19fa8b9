//! What happens now, for whoever waits: on a terminal a spinner or a bar, in a pipe a line for each long stage.

use indicatif::{ProgressBar, ProgressStyle};
use lineup_report::visible;
use lineup_study::progress::Progress;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A stage that took less is not worth a line in a pipe.
const WORTH_A_LINE: Duration = Duration::from_secs(2);

/// Shows stages on standard error. The last one ends when this is dropped.
pub(crate) struct Stages {
    now: Mutex<Option<Stage>>,
    is_terminal: bool,
}

struct Stage {
    what: String,
    began: Instant,
    bar: ProgressBar,
}

impl Stages {
    /// Nothing has begun yet.
    pub(crate) fn new() -> Self {
        Stages { now: Mutex::default(), is_terminal: std::io::stderr().is_terminal() }
    }

    /// Ends the stage under way, if any.
    pub(crate) fn end(&self) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stage) = now.take() else { return };
        stage.bar.finish_and_clear();
        let took = stage.began.elapsed();
        if !self.is_terminal && took >= WORTH_A_LINE {
            eprintln!("lineup: {}: {:.1} s", stage.what, took.as_secs_f64());
        }
    }

    fn with_bar(&self, change: impl FnOnce(&ProgressBar)) {
        if let Some(stage) = &*self.now.lock().unwrap_or_else(PoisonError::into_inner) {
            change(&stage.bar);
        }
    }
}

/// A file whose reading is shown as the progress of the stage under way, in MiB. Others may read the same open file beside
/// it: each has its own place in it.
pub(crate) struct ReadInStage<'s> {
    file: File,
    stages: &'s Stages,
    read_bytes: u64,
    total_bytes: u64,
}

impl<'s> ReadInStage<'s> {
    /// The file from its start.
    pub(crate) fn new(file: File, stages: &'s Stages) -> Self {
        let total_bytes = file.metadata().map_or(0, |about| about.len());
        ReadInStage { file, stages, read_bytes: 0, total_bytes }
    }
}

impl Read for ReadInStage<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read_at(buffer, self.read_bytes)?;
        let before = self.read_bytes >> 20;
        self.read_bytes += count as u64;
        if self.read_bytes >> 20 != before {
            self.stages.advance(self.read_bytes >> 20, self.total_bytes >> 20);
        }
        Ok(count)
    }
}

impl Progress for Stages {
    fn stage(&self, what: &str) {
        self.end();
        let what = visible::one_line(what).into_owned();
        let bar = if self.is_terminal { spinner(&what) } else { ProgressBar::hidden() };
        let stage = Stage { what, began: Instant::now(), bar };
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage);
    }

    fn advance(&self, done: u64, total: u64) {
        self.with_bar(|bar| {
            if bar.length() != Some(total) {
                bar.set_length(total);
                bar.set_style(style("{spinner} {wide_msg} {bar:20} {pos}/{len}, {elapsed}"));
            }
            bar.set_position(done);
        });
    }

    fn line(&self, text: &str) {
        let text = visible::one_line(text).into_owned();
        let shown = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        match &*shown {
            Some(stage) => stage.bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

impl Drop for Stages {
    fn drop(&mut self) {
        self.end();
    }
}

fn spinner(what: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    bar.set_style(style("{spinner} {wide_msg} {elapsed}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
