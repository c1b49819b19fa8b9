//! Code in another order: its needs before and after, for the whole program and call by call.

use super::optimisers::Optimisers;
use super::proof::{TimeReport, TimeVerdict};
use lineup_advise::hints::{Hint, RefusedHint};
use lineup_model::figure::{change, short_time_ns, whole};
use serde::Serialize;

/// A program whose code was put in another order, compared with the unchanged program.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CodeReport {
    /// The tool that computed the order, such as `Debian LLVM version 19.1.7`.
    pub optimiser: String,
    /// The words that made it.
    pub optimiser_command: String,
    /// Functions that the tool could not move, and that keep their places.
    pub not_ordered: Vec<String>,
    /// The evidence for the order: `counts` of a whole run, or `calls` that were recorded.
    pub evidence: &'static str,
    /// The run that these are of, as a command.
    pub training: String,
    /// The run on which both programs were judged.
    pub test: String,
    /// False when these are one run: an order does best on its own training run.
    pub is_held_out: bool,
    /// Ways between blocks whose counts are exact.
    pub ways_exact: u64,
    /// Ways between blocks for which several counts fit.
    pub ways_estimated: u64,
    /// Figures of the whole test run.
    pub whole_run: Vec<CodeFigure>,
    /// The code that a call of each region fetches, on average.
    pub calls: Vec<CodePerCall>,
    /// Calls that find no code in the caches, where the order was made for them.
    pub cold: Option<ColdCalls>,
    /// The patch that was applied before the code was put in order, in words.
    pub patch: Option<String>,
    /// Hints in the sources, where these stand in the place of an order.
    pub hints: Option<HintsReport>,
    /// Other optimisers' versions of the program, where they were requested.
    pub optimisers: Option<Optimisers>,
}

/// Hints for the compiler that were written into the sources.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HintsReport {
    /// The written hints.
    pub given: Vec<Hint>,
    /// Hints that the counts would have allowed, and the reasons why they were not written.
    pub refused: Vec<RefusedHint>,
    /// Code that was inlined into functions that run, and never ran itself; largest first.
    pub unused_copies: Vec<UnusedInline>,
    /// Other code that never ran and lies between code that did; largest first.
    pub unused_paths: Vec<UnusedCode>,
}

/// Code behind conditions that never led to it, between code that runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UnusedCode {
    /// The function that it lies in.
    pub function: String,
    /// Its beginning, `file:line`.
    pub at: String,
    /// Bytes of code.
    pub bytes: u64,
    /// The number of times that conditions which may lead to it did not.
    pub decisions: u64,
}

/// An inlined copy that never ran.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct UnusedInline {
    /// The inlined function.
    pub function: String,
    /// The function that it was inlined into.
    pub into: String,
    /// The place of its call, `file:line`.
    pub at: String,
    /// Bytes of code.
    pub bytes: u64,
}

impl HintsReport {
    /// A hint with its place and reason.
    pub fn hint_in_words(hint: &Hint) -> String {
        format!("{}: {} at {}: {}", hint.at, hint.hint, hint.of, hint.because)
    }
}

impl UnusedInline {
    /// In a sentence.
    pub fn in_words(&self) -> String {
        let UnusedInline { function, into, at, bytes } = self;
        format!(
            "{at}: {function}, inlined into {into}, is {bytes} bytes that never ran; noinline keeps them apart"
        )
    }
}

impl UnusedCode {
    /// In a sentence.
    pub fn in_words(&self) -> String {
        let UnusedCode { function, at, bytes, decisions } = self;
        format!(
            "{at}: {bytes} bytes of {function} lie between what runs and never ran: conditions before them came out otherwise \
             {} times; a function of its own with __attribute__((cold, noinline)) keeps them apart",
            whole(*decisions)
        )
    }
}

/// Calls that find none of the program's code in the caches: as linked, in an order by counts, and in the order for
/// them.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ColdCalls {
    /// Calls of the training run from which the order was computed.
    pub recorded_calls: u64,
    /// By region.
    pub regions: Vec<ColdCall>,
    /// Calls whose time was not compared, with the reasons.
    pub not_timed: Vec<String>,
}

/// Such calls of one region.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ColdCall {
    /// The function.
    pub region: String,
    /// Lines of 64 bytes that a call fetches on average: as linked, by counts, and in the order for these calls.
    pub lines: [f64; 3],
    /// Pages of 4,096 bytes, likewise.
    pub pages: [f64; 3],
    /// The typical time of a call after the lines that recorded calls execute were flushed: the order for these calls
    /// against the program as linked, and against the order by counts. `None` where they were not timed.
    pub time: [Option<ColdTime>; 2],
}

/// The typical times of two orders: the median of a run's emptied calls.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ColdTime {
    /// The mean over runs, in nanoseconds: the other order, and the one for these calls.
    pub typical_ns: [f64; 2],
    /// The second ÷ the first.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub ratio_low: f64,
    /// Upper end of the ratio's interval.
    pub ratio_high: f64,
    /// The interval's level.
    pub level: f64,
    /// The verdict.
    pub verdict: TimeVerdict,
}

/// The evidence of an order by counts of a whole run.
pub const COUNTS: &str = "counts";
/// The evidence of an order for calls.
pub const CALLS: &str = "calls";

/// The orders that [`ColdCall::time`] compares with.
pub const COLD_AGAINST: [&str; 2] = ["as linked", "by counts"];

impl ColdTime {
    /// Both times, and the change with its interval.
    pub fn in_words(&self, other: &str) -> String {
        let [before, after] = self.typical_ns.map(short_time_ns);
        format!(
            "{before} {other}, {after} by calls: {} ({} to {}), {}",
            change(self.ratio),
            change(self.ratio_low),
            change(self.ratio_high),
            self.verdict.word()
        )
    }
}

impl From<&TimeReport> for ColdTime {
    fn from(time: &TimeReport) -> Self {
        let mean = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len().max(1) as f64;
        ColdTime {
            typical_ns: [mean(&time.before_ns), mean(&time.after_ns)],
            ratio: time.ratio,
            ratio_low: time.ratio_low,
            ratio_high: time.ratio_high,
            level: time.level,
            verdict: time.verdict,
        }
    }
}

/// A figure of a whole run of both programs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CodeFigure {
    /// The counted quantity, such as `lines of 64 bytes, of the program`.
    pub what: String,
    /// The unchanged program.
    pub before: u64,
    /// The program in the other order.
    pub after: u64,
}

impl CodeFigure {
    /// after ÷ before; `None` when there was nothing before.
    pub fn ratio(&self) -> Option<f64> {
        (self.before > 0).then(|| self.after as f64 / self.before as f64)
    }
}

/// The code that a call of a region fetches, on average.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CodePerCall {
    /// The function.
    pub region: String,
    /// Lines of 64 bytes, before and after.
    pub lines: [f64; 2],
    /// Pages of 4,096 bytes, before and after.
    pub pages: [f64; 2],
}

/// The functions that an order leaves in their places, in words.
pub fn not_ordered_in_words(names: &[String]) -> String {
    format!("llvm-bolt cannot move these functions, which stay: {}", names.join(", "))
}

impl CodeReport {
    /// An order of a kernel's functions, computed from recorded calls under a workload.
    pub fn of_calls(optimiser: String, workload: &str) -> CodeReport {
        CodeReport {
            optimiser,
            optimiser_command: String::new(),
            not_ordered: Vec::new(),
            evidence: CALLS,
            training: workload.to_owned(),
            test: workload.to_owned(),
            is_held_out: false,
            ways_exact: 0,
            ways_estimated: 0,
            whole_run: Vec::new(),
            calls: Vec::new(),
            cold: None,
            patch: None,
            hints: None,
            optimisers: None,
        }
    }

    /// The functions that keep their places, in a sentence.
    pub(crate) fn not_ordered_in_words(&self) -> Option<String> {
        (!self.not_ordered.is_empty()).then(|| format!("{}.", not_ordered_in_words(&self.not_ordered)))
    }

    /// The changes of the sources before, in a sentence.
    pub(crate) fn patch_in_words(&self) -> Option<String> {
        let patch = self.patch.as_ref()?;
        Some(format!(
            "The sources were changed first by {patch}; the two together are compared with the unchanged program."
        ))
    }

    /// From which run, and on which it was judged.
    pub fn runs_in_words(&self) -> String {
        let evidence = self.evidence;
        match self.is_held_out {
            true => format!("from the {evidence} of `{}`, judged by `{}`", self.training, self.test),
            false => format!(
                "from the {evidence} of `{}`, judged by the same run, which flatters it",
                self.training
            ),
        }
    }
}
