//! The differences between the calls of regions.

use crate::finding::{Finding, Ratio, Rule};
use crate::side::{CallMeans, RegionFigures};
use lineup_stats::published::{PrintedMean, ratio};
use lineup_stats::summary::Summary;
use std::collections::BTreeSet;

/// A region on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionChange {
    /// The base.
    pub before: RegionFigures,
    /// The head.
    pub after: RegionFigures,
}

/// Lines of objects of a type per call, on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeLines {
    /// The type; empty for variables.
    pub name: String,
    /// The base.
    pub before: f64,
    /// The head.
    pub after: f64,
}

/// The quantity counted for a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// Lines of data.
    DataLines,
    /// Lines of code.
    CodeLines,
    /// Instructions.
    Instructions,
}

/// Something that is counted, on both sides.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compared {
    /// Mean per call of the base.
    pub before: f64,
    /// Mean per call of the head.
    pub after: f64,
    /// Head by base, with the ends of its interval, which are both the ratio where all runs of each side are alike;
    /// `None` where a side has a single run, or counts nothing.
    pub ratio: Option<Ratio>,
}

/// Differences of fewer lines per call are rounding.
const LEAST_LINES: f64 = 0.005;

/// The confidence level of a change: many things are compared in one review.
const LEVEL: f64 = 0.99;

impl Counted {
    /// Everything that is counted, in the order in which it is shown.
    pub const ALL: [Counted; 3] = [Counted::DataLines, Counted::CodeLines, Counted::Instructions];

    fn of(self, means: &CallMeans) -> f64 {
        match self {
            Counted::DataLines => means.data_lines_per_call,
            Counted::CodeLines => means.code_lines_per_call,
            Counted::Instructions => means.instructions_per_call,
        }
    }

    fn rule(self) -> Rule {
        match self {
            Counted::DataLines => Rule::Lines,
            Counted::CodeLines => Rule::CodeLines,
            Counted::Instructions => Rule::Instructions,
        }
    }

    /// The units, as in "a call needs two cache lines of data".
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Counted::DataLines => ("needs", "cache lines of data"),
            Counted::CodeLines => ("needs", "cache lines of code"),
            Counted::Instructions => ("takes", "instructions"),
        }
    }
}

impl Compared {
    /// True when the head needs more, beyond the differences between its own runs and between those of the base.
    fn is_more(&self) -> bool {
        self.after - self.before >= LEAST_LINES && self.ratio.is_some_and(|ratio| ratio.low > 1.0)
    }
}

impl RegionFigures {
    /// Calls recorded in all runs.
    pub fn calls(&self) -> u64 {
        self.runs.iter().map(|run| run.calls).sum()
    }

    /// Calls that the program makes; `None` when they were not counted, or their number differs from run to run.
    pub fn calls_made(&self) -> Option<u64> {
        let made = self.runs.first()?.calls_made;
        self.runs.iter().all(|run| run.calls_made == made).then_some(made)?
    }

    fn summary(&self, counted: Counted) -> Option<Summary> {
        Summary::of(&self.runs.iter().map(|run| counted.of(run)).collect::<Vec<f64>>()).ok()
    }
}

impl RegionChange {
    /// Both sides of a counted quantity.
    pub fn compared(&self, counted: Counted) -> Compared {
        let sides = [&self.before, &self.after].map(|side| side.summary(counted));
        let [before, after] = sides.each_ref().map(|side| side.as_ref().map_or(0.0, |side| side.mean));
        let printed = |side: &Option<Summary>| {
            let side = side.as_ref()?;
            Some(PrintedMean::with_deviation(side.mean, side.deviation?, side.n))
        };
        let estimated = || {
            let [before, after] = &sides;
            let estimate = ratio(printed(before)?, printed(after)?, LEVEL).ok()?;
            Some(Ratio { value: estimate.ratio, low: estimate.interval.low, high: estimate.interval.high })
        };
        Compared { before, after, ratio: estimated() }
    }

    /// Types whose lines per call differ, most changed first.
    pub fn types(&self) -> Vec<TypeLines> {
        let of = |side: &RegionFigures, name: &str| side.type_lines_per_call.get(name).copied();
        let names = self.before.type_lines_per_call.keys().chain(self.after.type_lines_per_call.keys());
        let names: BTreeSet<&String> = names.collect();
        let mut types: Vec<TypeLines> = names
            .into_iter()
            .map(|name| TypeLines {
                name: name.clone(),
                before: of(&self.before, name).unwrap_or_default(),
                after: of(&self.after, name).unwrap_or_default(),
            })
            .filter(|lines| (lines.after - lines.before).abs() >= LEAST_LINES)
            .collect();
        types.sort_by(|one, other| {
            let by = |lines: &TypeLines| (lines.after - lines.before).abs();
            by(other).total_cmp(&by(one)).then_with(|| one.name.cmp(&other.name))
        });
        types
    }

    /// True when the program calls it another number of times: the means then belong to other work.
    pub fn has_other_calls(&self) -> bool {
        let made = (self.before.calls_made(), self.after.calls_made());
        matches!(made, (Some(before), Some(after)) if before != after)
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        let compared = Counted::ALL.map(|counted| (counted, self.compared(counted)));
        let more = compared.into_iter().filter(|(_, compared)| compared.is_more());
        more.map(|(counted, compared)| self.finding(counted, &compared)).collect()
    }

    fn finding(&self, counted: Counted, compared: &Compared) -> Finding {
        let (verb, what) = counted.words();
        let types = if counted == Counted::DataLines { self.of_which_types() } else { String::new() };
        let (name, before, after) = (&self.after.name, compared.before, compared.after);
        Finding {
            rule: counted.rule(),
            subject: name.clone(),
            message: format!("a call of {name} {verb} {after:.2} {what} instead of {before:.2}{types}"),
            place: self.after.place.clone(),
            ratio: compared.ratio,
            fails: false,
        }
    }

    /// The types that the additional lines are of: the two with the most.
    fn of_which_types(&self) -> String {
        let more =
            self.types().into_iter().filter(|lines| lines.after > lines.before && !lines.name.is_empty());
        let named: Vec<String> = more
            .take(2)
            .map(|lines| format!("{:.2} instead of {:.2} of {}", lines.after, lines.before, lines.name))
            .collect();
        if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
    }
}
