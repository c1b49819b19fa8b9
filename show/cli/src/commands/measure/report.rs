//! The values that `lineup measure` shows.

use crate::terminal::failed_runs::failed_in_words;
use lineup_prove::measure::Measurement;
use lineup_prove::run::Ending;
use lineup_study::interrupt::Interrupted;

/// A measurement and its result.
pub(crate) struct Report {
    pub(crate) command: Vec<String>,
    pub(crate) measurement: Measurement,
    /// The end of each run.
    pub(crate) endings: Vec<Ending>,
    /// The time that runs waited for other programs.
    pub(crate) waited_ns: u64,
    pub(crate) interrupted: Option<Interrupted>,
}

impl Report {
    fn failed(&self) -> impl Iterator<Item = Ending> {
        self.endings.iter().copied().filter(|ending| *ending != Ending::Exited(0))
    }

    /// The number of runs that did not exit with status 0.
    pub(super) fn failed_runs(&self) -> usize {
        self.failed().count()
    }

    /// The failed runs in words, with their endings.
    pub(super) fn failed_in_words(&self) -> Option<String> {
        failed_in_words("the program", self.failed(), self.endings.len())
    }

    /// Whether a signal ended a run, or runs ended in different ways.
    pub(super) fn ends_unlike(&self) -> bool {
        let is_unlike = |ending: &Ending| *ending != self.endings[0] || matches!(ending, Ending::Killed(_));
        self.endings.iter().any(is_unlike)
    }
}
