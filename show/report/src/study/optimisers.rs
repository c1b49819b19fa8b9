//! Several optimisers' versions of a program, side by side: all trained by one run, and timed and counted in another.

use super::proof::TimeVerdict;
use lineup_model::figure::{change, short_time_ns};
use lineup_prove::compare::{Comparison, Estimated};
use lineup_prove::metric::ELAPSED;
use serde::Serialize;

/// The metric of the time on a processor in user mode, by its name in comparisons.
pub const USER: &str = "user";

/// Optimised programs, compared with the program as it was linked.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Optimisers {
    /// The program as it was linked, then every optimised one that could be made and does the same.
    pub rows: Vec<Optimised>,
    /// Two optimised programs against each other.
    pub pairs: Vec<OptimisedPair>,
    /// Programs that are not in the table, with the reasons.
    pub not_observed: Vec<NotOptimised>,
    /// The sum of two optimisers' gains, compared with both together; `None` where one of them is not in the table.
    pub together: Option<Together>,
    /// The same of the study's patch and the order of code.
    pub patch_together: Option<Together>,
    /// Blocks of runs in which each program ran twice.
    pub blocks: u64,
    /// The level of all intervals, such as 0.95; of each alone.
    pub level: f64,
    /// Changes below this share count as equivalent.
    pub margin: f64,
}

/// One program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Optimised {
    /// Its optimiser, such as `GCC PGO`.
    pub name: String,
    /// The steps that made it, in words.
    pub made: String,
    /// The comparison of its effects with those of the program as it was linked; `None` for that one itself.
    pub effects: Option<String>,
    /// Figures of the whole test run, named as those of [`super::CodeReport::whole_run`].
    pub figures: Vec<Figure>,
    /// Mean time on a processor in user mode, in nanoseconds.
    pub user_ns: Option<f64>,
    /// Mean elapsed time in nanoseconds.
    pub elapsed_ns: Option<f64>,
    /// User time against the program as it was linked; `None` for that one itself.
    pub user: Option<TimeRatio>,
    /// Elapsed time, likewise.
    pub elapsed: Option<TimeRatio>,
}

/// A figure of one program's whole run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Figure {
    /// The counted quantity.
    pub what: String,
    /// The count.
    pub count: u64,
}

/// One time against another.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TimeRatio {
    /// The one ÷ the other.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub low: f64,
    /// Upper end of the ratio's interval.
    pub high: f64,
    /// The verdict.
    pub verdict: TimeVerdict,
}

/// Two optimised programs against each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OptimisedPair {
    /// The one.
    pub of: String,
    /// The other one.
    pub against: String,
    /// User time of the one ÷ that of the other.
    pub user: Option<TimeRatio>,
    /// Elapsed time, likewise.
    pub elapsed: Option<TimeRatio>,
}

/// An optimised program that is not in the table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotOptimised {
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: String,
}

/// The row of the program with the study's patch alone.
pub const PATCH: &str = "the patch";

/// The gain of two optimisers together, compared with the product of their gains alone.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Together {
    /// The two.
    pub names: [String; 2],
    /// The product of both ratios of user time.
    pub if_added: f64,
    /// The ratio of user time that was seen of both together.
    pub seen: f64,
}

impl TimeRatio {
    /// A variant's quantity against the first one's; `None` where it was not observed, or has values of zero.
    pub fn of(comparison: &Comparison, quantity: &str, variant: usize) -> Option<TimeRatio> {
        let metric = comparison.metrics.iter().find(|metric| metric.name == quantity)?;
        let contrast = metric.contrasts.iter().find(|contrast| contrast.variant.0 == variant)?;
        let Estimated::Ratio { judged, .. } = &contrast.estimate else { return None };
        let (low, high) = (judged.interval.low, judged.interval.high);
        Some(TimeRatio { ratio: judged.ratio, low, high, verdict: contrast.verdict.into() })
    }

    /// The change with its interval.
    pub fn in_words(&self) -> String {
        format!("{} ({} to {})", change(self.ratio), change(self.low), change(self.high))
    }
}

impl Optimised {
    /// With the times that a comparison found; `variant` is its place there, and 0 the program as it was linked.
    pub fn timed(self, comparison: &Comparison, variant: usize) -> Optimised {
        let mean = |quantity: &str| {
            let metric = comparison.metrics.iter().find(|metric| metric.name == quantity)?;
            let values = metric.variants.get(variant)?.as_ref().ok()?;
            Some(values.summary.mean)
        };
        Optimised {
            user_ns: mean(USER),
            elapsed_ns: mean(ELAPSED),
            user: TimeRatio::of(comparison, USER, variant),
            elapsed: TimeRatio::of(comparison, ELAPSED, variant),
            ..self
        }
    }

    /// Its user time: of the program as it was linked itself, of others the change.
    pub(crate) fn user_in_words(&self) -> String {
        told(self.user, self.user_ns)
    }

    /// Its elapsed time, likewise.
    pub(crate) fn elapsed_in_words(&self) -> String {
        told(self.elapsed, self.elapsed_ns)
    }
}

fn told(ratio: Option<TimeRatio>, mean_ns: Option<f64>) -> String {
    match (ratio, mean_ns) {
        (Some(ratio), _) => ratio.in_words(),
        (None, Some(mean_ns)) => short_time_ns(mean_ns),
        (None, None) => lineup_model::figure::UNKNOWN.into(),
    }
}

impl OptimisedPair {
    /// In a sentence.
    pub(crate) fn in_words(&self) -> String {
        let time = |ratio: Option<TimeRatio>| ratio.map(|ratio| (ratio.in_words(), ratio.verdict.word()));
        match (time(self.user), time(self.elapsed)) {
            (Some((words, verdict)), _) => {
                format!("{} against {}: {words} user time, {verdict}", self.of, self.against)
            }
            (None, Some((words, verdict))) => {
                format!("{} against {}: {words} elapsed time, {verdict}", self.of, self.against)
            }
            (None, None) => format!("{} against {}: no time was observed", self.of, self.against),
        }
    }
}

impl Together {
    /// In a sentence.
    pub(crate) fn in_words(&self) -> String {
        let Together { names: [one, other], if_added, seen } = self;
        format!(
            "If the gains of {one} and {other} added up, user time would change by {}; with both it changes by {}",
            change(*if_added),
            change(*seen)
        )
    }
}

impl Optimisers {
    /// The table's subject: other optimisers, or the patch and the order alone.
    pub(crate) fn heading(&self) -> &'static str {
        const PATCH_AND_ORDER: usize = 4;
        let has_patch = self.rows.iter().any(|row| row.name == PATCH);
        match has_patch && self.rows.len() + self.not_observed.len() <= PATCH_AND_ORDER {
            true => "The patch and the order, alone and together",
            false => "Against the optimisers",
        }
    }

    /// The basis of the times, in a sentence.
    pub(crate) fn times_in_words(&self) -> String {
        format!(
            "Times against the program as linked, with intervals of {} each, of {} blocks of runs, {}.",
            lineup_model::figure::level(self.level),
            self.blocks,
            lineup_prove::links::OF_ONE_LINK
        )
    }
}
