//! Functions that ran in calls of the tail, with the amount of data they accessed there.

use super::split::Split;
use crate::run::Run;
use lineup_model::access::{CODE_GRANULE_BYTES, Call};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A function in calls of both kinds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionFound {
    /// Its name.
    pub function: String,
    /// Kept calls of the tail that it ran in.
    pub tail_calls: usize,
    /// Other kept calls that it ran in.
    pub usual_calls: usize,
    /// Its accesses to data per kept call of the tail, mean.
    pub accesses_per_tail_call: f64,
    /// The same per other kept call.
    pub accesses_per_usual_call: f64,
    /// Bytes of its code that calls of the tail fetched, in pieces of 32; mean.
    pub code_bytes_per_tail_call: f64,
    /// The same of other calls.
    pub code_bytes_per_usual_call: f64,
}

impl FunctionFound {
    fn excess(&self) -> f64 {
        self.accesses_per_tail_call - self.accesses_per_usual_call
    }
}

/// Functions listed at most.
const LISTED: usize = 40;

/// The functions one kept call ran, by number: accesses, pieces of code.
pub(super) type Ran = BTreeMap<usize, (u64, u64)>;

/// Functions in both kinds of kept calls.
pub(crate) struct Functions {
    /// By position in the run, the functions that each kept call of the tail ran.
    pub(crate) kept_tail: Vec<(usize, Ran)>,
    pub(crate) kept_usual: Vec<(usize, Ran)>,
    all: Vec<FunctionFound>,
}

/// The functions of kept calls. A function ran when one of its instructions accessed data (a return does), or when a
/// piece of code was fetched that lies in it alone.
pub(crate) fn compare(run: &Run, split: &Split) -> Functions {
    let kept = |positions: &[usize]| -> Vec<(usize, Ran)> {
        let of = |position: &usize| Some((*position, ran(run, run.kept(&run.measured[*position].call)?)));
        positions.iter().filter_map(of).collect()
    };
    let (kept_tail, kept_usual) = (kept(&split.tail), kept(&split.usual));
    let names: BTreeSet<usize> =
        kept_tail.iter().chain(&kept_usual).flat_map(|(_, ran)| ran.keys().copied()).collect();
    let all = names.into_iter().map(|function| found(run, function, &kept_tail, &kept_usual)).collect();
    Functions { kept_tail, kept_usual, all }
}

fn ran(run: &Run, call: &Call) -> Ran {
    let mut ran = Ran::new();
    for function in call.accesses.iter().filter_map(|access| run.symbols.index(access.pc)) {
        ran.entry(function).or_default().0 += 1;
    }
    for granule in &call.code_granules {
        if let Some(function) = run.symbols.index_of_range(*granule, CODE_GRANULE_BYTES) {
            ran.entry(function).or_default().1 += 1;
        }
    }
    ran
}

fn found(run: &Run, function: usize, tail: &[(usize, Ran)], usual: &[(usize, Ran)]) -> FunctionFound {
    let sum = |calls: &[(usize, Ran)]| {
        let of = calls.iter().filter_map(|(_, ran)| ran.get(&function));
        let (count, accesses, pieces) =
            of.fold((0, 0, 0), |(count, a, p), (accesses, pieces)| (count + 1, a + accesses, p + pieces));
        let per_call = |total: u64| total as f64 / calls.len().max(1) as f64;
        (count, per_call(accesses), per_call(pieces * CODE_GRANULE_BYTES))
    };
    let ((tail_calls, tail_accesses, tail_bytes), (usual_calls, usual_accesses, usual_bytes)) =
        (sum(tail), sum(usual));
    FunctionFound {
        function: run.symbols.name(function).to_owned(),
        tail_calls,
        usual_calls,
        accesses_per_tail_call: tail_accesses,
        accesses_per_usual_call: usual_accesses,
        code_bytes_per_tail_call: tail_bytes,
        code_bytes_per_usual_call: usual_bytes,
    }
}

impl Functions {
    fn exceeding(&self) -> Vec<&FunctionFound> {
        if self.kept_tail.is_empty() {
            return Vec::new();
        }
        let mut exceeding: Vec<&FunctionFound> =
            self.all.iter().filter(|function| function.excess() > 0.0).collect();
        exceeding.sort_by(|a, b| b.excess().total_cmp(&a.excess()).then_with(|| a.function.cmp(&b.function)));
        exceeding
    }

    pub(crate) fn listed(&self) -> Vec<FunctionFound> {
        self.exceeding().into_iter().take(LISTED).cloned().collect()
    }

    pub(crate) fn not_listed(&self) -> usize {
        self.exceeding().len().saturating_sub(LISTED)
    }

    /// `None` when calls of either kind are missing.
    pub(crate) fn excess_accesses_per_call(&self) -> Option<f64> {
        let has_both = !self.kept_tail.is_empty() && !self.kept_usual.is_empty();
        has_both.then(|| self.all.iter().map(FunctionFound::excess).sum())
    }
}
