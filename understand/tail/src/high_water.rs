//! New maxima: each call that took more cycles than any before it, with the functions that ran inside.

use crate::metric::{Cost, Metric};
use crate::run::{Measured, Run};
use crate::symbols::SymbolisedAddress;
use lineup_model::region::RegionId;
use lineup_recording::Arm;
use serde::Serialize;

/// A new maximum.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Mark {
    /// Position among the marks, from 1.
    pub number: usize,
    /// The virtual CPU.
    pub cpu: u16,
    /// Instructions that the CPU had executed when it began.
    pub begun_at: u64,
    /// Its cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// The place where it began: the return address of a call, or the instruction that turned interrupts off.
    pub from: SymbolisedAddress,
    /// The place where it ended.
    pub to: SymbolisedAddress,
    /// Calls of other regions inside, in order.
    pub inner: Vec<Inner>,
    /// Inner calls beyond the first 100.
    pub inner_not_listed: usize,
}

/// A call inside a new maximum.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Inner {
    /// The region.
    pub region: String,
    /// The number of calls of regions it lies in, from 1.
    pub depth: usize,
    /// Instructions of the CPU from the beginning of the maximum to its own.
    pub after_instructions: u64,
    /// The same to its end.
    pub until_instructions: u64,
    /// Its cost.
    #[serde(flatten)]
    pub cost: Cost,
}

/// Inner calls listed at most for one mark.
const INNER_LISTED: usize = 100;

/// The new maxima of a region, in the order of the CPUs' instructions, among calls before which nothing was done.
pub fn high_water(run: &Run, region: RegionId) -> Vec<Mark> {
    let mut calls: Vec<(usize, &Measured)> = run
        .calls(region)
        .filter(|(_, measured)| measured.returned() && measured.arm == Arm::Untouched)
        .collect();
    calls.sort_by_key(|(_, measured)| (measured.call.begun_at, measured.call.cpu));
    let mut most = None;
    let mut marks = Vec::new();
    for (position, measured) in calls {
        let cycles = Metric::Cycles.of(&measured.call);
        if most.is_none_or(|most| cycles > most) {
            most = Some(cycles);
            marks.push(mark(run, position, measured, marks.len() + 1));
        }
    }
    marks
}

fn mark(run: &Run, position: usize, measured: &Measured, number: usize) -> Mark {
    let call = &measured.call;
    let inside = run.inside(position);
    let inner = |(index, depth): &(usize, usize)| {
        let inner = &run.measured.get(*index)?.call;
        Some(Inner {
            region: run.regions.get(inner.region)?.name.clone(),
            depth: *depth,
            after_instructions: inner.begun_at.saturating_sub(call.begun_at),
            until_instructions: inner.ended_at.saturating_sub(call.begun_at),
            cost: Cost::of(inner),
        })
    };
    Mark {
        number,
        cpu: call.cpu,
        begun_at: call.begun_at,
        cost: Cost::of(call),
        from: run.place(call.from_pc),
        to: run.place(call.to_pc),
        inner: inside.iter().take(INNER_LISTED).filter_map(inner).collect(),
        inner_not_listed: inside.len().saturating_sub(INNER_LISTED),
    }
}
