//! Spans with interrupts off: the longest, and where such spans begin and end.

use crate::metric::{Cost, Metric};
use crate::run::{Measured, Run};
use crate::symbols::SymbolisedAddress;
use lineup_model::region::RegionId;
use serde::Serialize;
use std::collections::HashMap;

/// Spans of one region.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Spans {
    /// The longest, by cycles.
    pub longest: Vec<Span>,
    /// By the functions they begin and end in, the longest first.
    pub between: Vec<Between>,
}

/// One span.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Span {
    /// Its cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// The place where interrupts were turned off.
    pub from: SymbolisedAddress,
    /// The place where they were turned on.
    pub to: SymbolisedAddress,
    /// The outermost calls of regions inside, in order, each name once.
    pub inside: Vec<String>,
}

/// Spans that begin in one function and end in another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Between {
    /// The function that turned interrupts off.
    pub from: String,
    /// The one that turned them on.
    pub to: String,
    /// The number of spans.
    pub spans: u64,
    /// Most cycles.
    pub max_cycles: u64,
    /// Cycles of all together.
    pub total_cycles: u64,
}

/// Entries of either list at most.
const LISTED: usize = 15;

/// The spans of a region.
pub fn spans(run: &Run, region: RegionId) -> Spans {
    let mut calls: Vec<(usize, &Measured)> = run.calls(region).collect();
    let mut between: HashMap<(String, String), Between> = HashMap::new();
    for (_, measured) in &calls {
        let cycles = Metric::Cycles.of(&measured.call);
        let from = run.place(measured.call.from_pc).function_text();
        let to = run.place(measured.call.to_pc).function_text();
        let entry = between.entry((from.clone(), to.clone())).or_insert_with(|| Between {
            from,
            to,
            spans: 0,
            max_cycles: 0,
            total_cycles: 0,
        });
        entry.spans += 1;
        entry.max_cycles = entry.max_cycles.max(cycles);
        entry.total_cycles = entry.total_cycles.saturating_add(cycles);
    }
    let mut between: Vec<Between> = between.into_values().collect();
    between.sort_by(|a, b| {
        b.max_cycles.cmp(&a.max_cycles).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    between.truncate(LISTED);
    calls.sort_by_key(|(position, measured)| {
        (std::cmp::Reverse(Metric::Cycles.of(&measured.call)), *position)
    });
    calls.truncate(LISTED);
    Spans {
        longest: calls.into_iter().map(|(position, measured)| span(run, position, measured)).collect(),
        between,
    }
}

fn span(run: &Run, position: usize, measured: &Measured) -> Span {
    let call = &measured.call;
    let mut inside: Vec<String> = Vec::new();
    for (index, _) in run.inside(position).into_iter().filter(|(_, depth)| *depth == 1) {
        let region = run.measured.get(index).and_then(|inner| run.regions.get(inner.call.region));
        if let Some(region) = region.filter(|region| !inside.contains(&region.name)) {
            inside.push(region.name.clone());
        }
    }
    Span { cost: Cost::of(call), from: run.place(call.from_pc), to: run.place(call.to_pc), inside }
}
