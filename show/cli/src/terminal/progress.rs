//! Progress for a waiting user: on a terminal a spinner or a bar, in a pipe a line for each long stage, during the
//! stage and at its end. A signal may end any stage.

use crate::terminal::errors;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use lineup_prove::compare::{Collected, ComparePlan, collect};
use lineup_prove::run::{Runner, Slot};
use lineup_report::visible;
use lineup_study::interrupt::{Interrupted, Interrupts};
use lineup_study::progress::Progress;
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A stage that took less is not worth a line in a pipe.
const WORTH_A_LINE: Duration = Duration::from_secs(2);

/// The time after which a pipe gets a line that a stage is still under way; then after twice as long, and so on.
const STILL_AT_IT: Duration = Duration::from_secs(15);

/// Shows stages on standard error. The last one ends when this is dropped.
pub(crate) struct Stages {
    now: Arc<Mutex<Option<Stage>>>,
    is_terminal: bool,
    /// Ends the reading of files when the time of a part of the work is over.
    part: Option<Interrupts>,
    /// A sentence on what is kept when a signal cuts a stage off.
    kept: Arc<Mutex<Option<String>>>,
}

struct Stage {
    what: String,
    began: Instant,
    bar: ProgressBar,
    /// Says in a pipe that it lasts, until this is dropped.
    _lasting: Option<Sender<()>>,
}

impl Stages {
    /// No stage has begun yet.
    pub(crate) fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Stages { now: Arc::default(), is_terminal, part: None, kept: Arc::default() }
    }

    /// The stages of a part of the work, in which reading a file ends with the part's time.
    pub(crate) fn of_part(&self, part: &Interrupts) -> Stages {
        let (now, kept) = (self.now.clone(), self.kept.clone());
        Stages { now, is_terminal: self.is_terminal, part: Some(part.clone()), kept }
    }

    /// Watches for signals. A stage that does not end in time after one is cut off, with an error that names it.
    pub(crate) fn watch_signals(&self) -> Result<Interrupts> {
        let (now, kept) = (self.now.clone(), self.kept.clone());
        let cut = move |interrupted| cut_off(&now, &kept, interrupted);
        Interrupts::watch_or_exit(cut).context("watching for signals")
    }

    /// From now on a stage that a signal cuts off ends with this sentence, or with none.
    pub(crate) fn keep(&self, sentence: Option<String>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = sentence;
    }

    /// Ends the stage under way, if any.
    pub(crate) fn end(&self) {
        let stage = locked(&self.now).take();
        let Some(stage) = stage else { return };
        stage.bar.finish_and_clear();
        let took = stage.began.elapsed();
        if !self.is_terminal && took >= WORTH_A_LINE {
            eprintln!("lineup: {}: {:.1} s", stage.what, took.as_secs_f64());
        }
    }

    /// Shows the bytes that were read so far, of all.
    fn read(&self, read_bytes: u64, total_bytes: u64) {
        self.with_bar(|bar| {
            if bar.length() != Some(total_bytes) {
                bar.set_length(total_bytes);
                let bytes = "{binary_bytes}/{binary_total_bytes}";
                bar.set_style(style(&format!("{{spinner}} {{wide_msg}} {{bar:20}} {bytes}, {{elapsed}}")));
            }
            bar.set_position(read_bytes);
        });
    }

    fn with_bar(&self, change: impl FnOnce(&ProgressBar)) {
        if let Some(stage) = &*locked(&self.now) {
            change(&stage.bar);
        }
    }
}

/// A file whose reading is shown as the progress of the stage under way. Others may read the same open file meanwhile:
/// each reader has its own position.
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
        if let Some(part) = &self.stages.part {
            part.check().map_err(std::io::Error::other)?;
        }
        let count = self.file.read_at(buffer, self.read_bytes)?;
        let before = self.read_bytes >> 20;
        self.read_bytes += count as u64;
        if self.read_bytes >> 20 != before {
            self.stages.read(self.read_bytes, self.total_bytes);
        }
        Ok(count)
    }
}

impl Progress for Stages {
    fn stage(&self, what: &str) {
        self.end();
        let what = visible::one_line(what).into_owned();
        let bar = if self.is_terminal { spinner(&what) } else { ProgressBar::hidden() };
        let lasting = (!self.is_terminal).then(|| say_that_it_lasts(what.clone()));
        *locked(&self.now) = Some(Stage { what, began: Instant::now(), bar, _lasting: lasting });
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
        let shown = locked(&self.now);
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

fn locked(now: &Mutex<Option<Stage>>) -> MutexGuard<'_, Option<Stage>> {
    now.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says from time to time that a stage is under way, until the sender is dropped.
fn say_that_it_lasts(what: String) -> Sender<()> {
    let (stage, ended) = channel();
    std::thread::spawn(move || {
        let (mut wait, mut waited) = (STILL_AT_IT, Duration::ZERO);
        while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            waited += wait;
            wait = waited;
            eprintln!("lineup: {what}: {} s so far", waited.as_secs());
        }
    });
    stage
}

/// Says which stage a signal cuts off; returns the exit code.
fn cut_off(now: &Mutex<Option<Stage>>, kept: &Mutex<Option<String>>, interrupted: Interrupted) -> u8 {
    // The thread that holds the lock may be the one that does not end.
    let stage = now.try_lock().ok().and_then(|mut now| now.take());
    let error = anyhow::Error::from(interrupted);
    let error = match stage {
        Some(stage) => {
            stage.bar.finish_and_clear();
            error.context(format!("{}: cut off", stage.what))
        }
        None => error,
    };
    let error = match kept.try_lock().ok().and_then(|mut kept| kept.take()) {
        Some(sentence) => error.context(sentence),
        None => error,
    };
    errors::tell(&error, errors::json_is_typed());
    errors::EXIT_CODE
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

/// Runs the variants, which advances the stage under way. It ends early when an interval is narrow enough or the time
/// is up.
pub(crate) fn collect_shown(runner: &mut dyn Runner, plan: &ComparePlan, stages: &Stages) -> Collected {
    let mut done = 0;
    let mut shown = |slot: &Slot| {
        let blocks = u64::from(plan.warm_up).saturating_add(plan.max_blocks.max(2));
        stages.advance(done, blocks.saturating_mul(plan.variants as u64));
        done += 1;
        runner.run(slot)
    };
    collect(&mut shown, plan)
}
