//! A load that runs beside a comparison and always ends with it.

use crate::interrupt::Interrupts;
use crate::process::{Streams, Waiting};
use crate::run::Run;
use anyhow::{Context, Result, bail};
use std::time::Duration;

/// How long a load gets to build up before the first run.
const BUILD_UP: Duration = Duration::from_millis(300);

/// A running `lineup load`.
pub struct Background {
    child: Waiting,
}

impl Background {
    /// Starts `load …` as a command of this program.
    pub fn start(command: &str, interrupts: &Interrupts) -> Result<Self> {
        let mut words = shell_words::split(command).with_context(|| format!("--under {command:?}"))?;
        if words.first().is_none_or(|word| word != "load") {
            bail!("--under {command:?}: write 'load' and its options, as for `lineup load`");
        }
        let ourselves = std::env::current_exe().context("finding the lineup program itself")?;
        words.insert(0, ourselves.to_string_lossy().into_owned());
        let invocation = Run { command: words.into_iter().map(Into::into).collect(), ..Run::default() };
        let mut child = Waiting::start(&invocation, None, Streams::Shown, interrupts)?;
        child.release()?;
        std::thread::sleep(BUILD_UP);
        if child.has_ended()? {
            bail!("the background load {command:?} ended at once; run `lineup {command}` to see why");
        }
        Ok(Self { child })
    }

    /// Ends the load; an error when it had ended before.
    pub fn end(mut self) -> Result<()> {
        if self.child.has_ended()? {
            bail!("it ended before the comparison did; the results do not stand under one load");
        }
        self.child.end();
        Ok(())
    }
}
