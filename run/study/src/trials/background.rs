//! A load that runs during a comparison and always ends with it.

use crate::error::{Doing, Error, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use std::time::Duration;

/// The time a load gets to build up before the first run.
const BUILD_UP: Duration = Duration::from_millis(300);

/// A running `lineup load`.
pub struct Background {
    child: Waiting,
}

impl Background {
    /// Starts `load …` as a command of this program.
    pub fn start(command: &str, interrupts: &Interrupts) -> Result<Self> {
        let refused = |why: &str| Error::argument(format!("--under {command:?}"), why);
        let mut words = shell_words::split(command).map_err(|error| refused(&error.to_string()))?;
        if words.first().is_none_or(|word| word != "load") {
            return Err(refused("write 'load' and its options, as for `lineup load`"));
        }
        let ourselves = std::env::current_exe().doing("finding the lineup program itself")?;
        words.insert(0, ourselves.to_string_lossy().into_owned());
        let invocation = Run { command: words.into_iter().map(Into::into).collect(), ..Run::default() };
        let mut child = Waiting::start(&invocation, Streams::Shown, interrupts)?;
        child.release()?;
        std::thread::sleep(BUILD_UP);
        if child.has_ended()? {
            let what =
                format!("the background load {command:?} ended at once; run `lineup {command}` to see why");
            return Err(Error::Load(what));
        }
        Ok(Self { child })
    }

    /// Ends the load; an error when it had ended before.
    pub fn end(mut self) -> Result<()> {
        if self.child.has_ended()? {
            let what = "it ended before the comparison did; the results do not stand under one load";
            return Err(Error::Load(what.into()));
        }
        self.child.end();
        Ok(())
    }
}
