//! Code in another order: what it needs before and after, whole program and call by call.

use serde::Serialize;

/// A program whose code was put in another order, beside the program as it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CodeReport {
    /// What made the order, such as `Debian LLVM version 19.1.7`.
    pub optimiser: String,
    /// The words that made it.
    pub optimiser_command: String,
    /// The run whose counts it was made from, as a command.
    pub training: String,
    /// The run on which both programs were judged.
    pub test: String,
    /// False when these are one run: an order does best on what it was made from.
    pub is_held_out: bool,
    /// Ways between blocks whose counts are exact.
    pub ways_exact: u64,
    /// Ways between blocks for which several counts fit.
    pub ways_estimated: u64,
    /// Figures of the whole test run.
    pub whole_run: Vec<CodeFigure>,
    /// What a call of each region fetched, on average.
    pub calls: Vec<CodePerCall>,
}

/// A figure of a whole run of both programs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CodeFigure {
    /// What is counted, such as `lines of 64 bytes, of the program`.
    pub what: String,
    /// The program as it is.
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

/// What a call of a region fetched, on average.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CodePerCall {
    /// The function.
    pub region: String,
    /// Lines of 64 bytes, before and after.
    pub lines: [f64; 2],
    /// Pages of 4,096 bytes, before and after.
    pub pages: [f64; 2],
}

impl CodeReport {
    /// From which run, and on which it was judged.
    pub fn runs_in_words(&self) -> String {
        match self.is_held_out {
            true => format!("from the counts of `{}`, judged by `{}`", self.training, self.test),
            false => format!(
                "from the counts of `{}`, judged by the same run, which flatters it; --test-arguments gives another",
                self.training
            ),
        }
    }
}
