//! Findings of habits that a person changes by hand: they come with evidence, and no layout was tried.

use crate::layout_evidence::ThreadWaits;
use serde::Serialize;

/// Two allocations that one could be.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AllocationPair {
    /// The function that makes both.
    pub function: String,
    /// Both, in the order of the source.
    pub sites: [PairedSite; 2],
    /// The smaller of both shares of visits that come with a visit of the other object.
    pub together: f64,
    /// The share of all accesses, in the windows, that are to them.
    pub accesses: f64,
    /// The share of all modelled stalls that they have.
    pub share: f64,
}

/// One of two allocations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PairedSite {
    /// `FILE:LINE` of the function's call that leads to the allocator.
    pub line: String,
    /// Objects that were made.
    pub objects: u64,
    /// Bytes of them, as asked for.
    pub bytes: u64,
}

/// Large objects on stacks of which little is used.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StackObject {
    /// The type.
    pub name: String,
    /// The variables that hold it, where code names them.
    pub variables: Vec<String>,
    /// Bytes of an object.
    pub size_bytes: u64,
    /// Bytes that any of them used, in the windows.
    pub used_bytes: u64,
    /// The share of all accesses, in the windows, that are to them.
    pub accesses: f64,
    /// The functions that access them, most first.
    pub functions: Vec<String>,
}

/// Arrays of which elements with the same index are used together, in no order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ParallelArrays {
    /// The arrays.
    pub names: Vec<String>,
    /// The function that uses most of them.
    pub function: String,
    /// Bytes of one element of each, together.
    pub size_bytes: u64,
    /// Lines for the elements of one index, on average.
    pub lines: f64,
    /// The same with one array of structs.
    pub lines_after: f64,
    /// The share of all accesses, in the windows, that are to them.
    pub accesses: f64,
    /// The share of all modelled stalls that they have.
    pub share: f64,
}

/// A lock that threads wait for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LockWaits {
    /// The member or variable that holds its word, or its type.
    pub name: String,
    /// The program's functions that wait most for what other threads have, most first.
    pub functions: Vec<String>,
    /// Waits for its words.
    pub waits: ThreadWaits,
    /// The share of all waits of threads for each other's lines.
    pub share: f64,
    /// The command that shows who holds it, for how long, and who waits.
    pub next: String,
}
