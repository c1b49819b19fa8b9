//! What happens now, for whoever waits: on a terminal a spinner or a bar, in a pipe a line for each long stage.

use indicatif::{ProgressBar, ProgressStyle};
use lineup_report::visible;
use lineup_study::progress::Progress;
use std::io::IsTerminal;
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
                bar.set_style(style("{spinner} {msg} {bar:30} {pos}/{len}, {elapsed}"));
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
    bar.set_style(style("{spinner} {msg}, {elapsed}"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
