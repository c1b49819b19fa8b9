//! The values that `lineup compare` shows.

use crate::terminal::failed_runs::failed_in_words;
use crate::terminal::typed_command;
use lineup_prove::compare::{Collected, ComparePlan, Comparison, FalseAlarms, Stopped};
use lineup_prove::disturbance::Disturbance;
use lineup_prove::run::Ending;
use lineup_report::html::{ComparisonPage, comparison_page};
use lineup_study::error::Error;

/// A comparison and its result.
pub(crate) struct Report {
    pub(crate) commands: Vec<String>,
    pub(crate) plan: ComparePlan,
    pub(crate) comparison: Comparison,
    pub(crate) collected: Collected,
    pub(crate) under: Option<String>,
    pub(crate) false_alarms: Option<FalseAlarms>,
}

impl Report {
    /// The signal that cut the comparison short.
    pub(super) fn interrupted(&self) -> Option<i32> {
        let Stopped::Failed(error) = &self.collected.stopped else { return None };
        error.downcast_ref::<Error>().and_then(Error::interrupted).map(|interrupted| interrupted.signal)
    }

    /// The reason why no more blocks were run, in words.
    pub(super) fn why_stopped(&self) -> String {
        match &self.collected.stopped {
            Stopped::Width => "the interval was narrow enough".into(),
            Stopped::Blocks => "all blocks were run".into(),
            Stopped::Time => "the time was up".into(),
            Stopped::Failed(error) => format!("cut short: {error}"),
        }
    }

    /// Other work on the CPUs of the runs, and the time that they waited for its end, in words.
    pub(super) fn disturbance(&self) -> Option<String> {
        let runs = self.collected.runs.iter().filter_map(|(_, run)| run.disturbance);
        runs.fold(Disturbance::default(), Disturbance::plus).in_words()
    }

    /// The offline page.
    pub(crate) fn html(&self) -> String {
        let repeat = typed_command::line(std::env::args_os());
        let stopped = self.why_stopped();
        let about = ComparisonPage {
            commands: &self.commands,
            under: self.under.as_deref(),
            stopped: &stopped,
            margin: self.plan.margin,
            links: self.comparison.links,
            level: self.plan.stop.level,
            repeat: &repeat,
        };
        comparison_page(&about, &self.comparison, &self.collected)
    }

    /// The variants with failed runs, each in words with its ending.
    pub(super) fn failed(&self) -> Vec<String> {
        let failed = |variant: usize| {
            let endings = self.endings(variant);
            let failed = endings.iter().filter(|ending| **ending != Ending::Exited(0));
            failed_in_words(&Report::letter(variant), failed.copied(), endings.len())
        };
        (0..self.commands.len()).filter_map(failed).collect()
    }

    /// Whether the runs of one variant ended otherwise than those of another, or by a signal.
    pub(super) fn ends_unlike(&self) -> bool {
        let endings = || (0..self.commands.len()).flat_map(|variant| self.endings(variant));
        let first = endings().next();
        endings().any(|ending| Some(ending) != first || matches!(ending, Ending::Killed(_)))
    }

    fn endings(&self, variant: usize) -> Vec<Ending> {
        let runs = self.collected.runs.iter().filter(|(slot, _)| slot.variant.0 == variant);
        runs.map(|(_, run)| run.ending).collect()
    }

    /// A letter for each variant, as on the command line.
    pub(super) fn letter(variant: usize) -> String {
        let letter = u8::try_from(variant).ok().filter(|number| *number < 26).map(|number| b'A' + number);
        letter.map_or_else(|| format!("V{}", variant + 1), |letter| char::from(letter).to_string())
    }
}
