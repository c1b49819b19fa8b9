//! Findings ranked by time: data in whose functions the clock sees the time, stalling or not.

use crate::layout_evidence::{Evidence, Kind, MemberMap};
use serde::Serialize;

/// The source of shares of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeSource {
    /// Samples by the clock.
    Clock,
    /// Modelled cycles: without samples, or with too few.
    Model,
}

/// The stretch of a run in which lines are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stretch {
    /// A call of the function.
    Call,
    /// A window of the run: the windows have few calls of the function.
    Window,
}

/// Lines of a type's objects that one function touches.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FunctionLines {
    /// The function.
    pub function: String,
    /// The share of the time that its accesses to the type have.
    pub time: f64,
    /// The stretch that lines are counted in.
    pub per: Stretch,
    /// Stretches that were seen.
    pub stretches: u64,
    /// Different lines in one of them, on average.
    pub lines: f64,
    /// The same with the objects laid anew.
    pub lines_after: f64,
}

/// A type of which a layout touches fewer lines, whether they are in the first level or not.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Footprint {
    /// The type.
    pub subject: String,
    /// The layout.
    pub kind: Kind,
    /// The share of the time that accesses to it have.
    pub time: f64,
    /// The part of that time in proportion to the lines saved in each function. It ranks findings and promises nothing.
    pub bound: f64,
    /// The functions that access it, most time first.
    pub lines: Vec<FunctionLines>,
    /// Accesses that cross the end of a line, as a share of all.
    pub split_accesses: f64,
    /// The evidence for it.
    pub evidence: Evidence,
    /// The functions that a study takes.
    pub functions: Vec<String>,
    /// The next command; empty without one.
    pub next: String,
    /// The edit in words, where a person has to make it.
    pub by_hand: Option<String>,
    /// The uses of its members, and their places in the layout.
    pub map: Option<MemberMap>,
}

/// A finding's list and its place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "list", content = "index", rename_all = "snake_case")]
pub enum Ranked {
    /// In [`crate::Findings::findings`].
    Findings(usize),
    /// In [`crate::Findings::footprints`].
    Footprints(usize),
}
