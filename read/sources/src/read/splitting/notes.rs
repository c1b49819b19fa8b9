//! The notes on the unit that is read.

use crate::libclang::Cursor;
use crate::split_facts::AllSplitFacts;
use std::collections::{BTreeSet, HashMap};

/// The notes on the unit that is read.
#[derive(Default)]
pub(in crate::read) struct Splitting<'u> {
    pub(in crate::read) facts: AllSplitFacts,
    /// The nodes around the present one, outermost first.
    pub(in crate::read) above: Vec<Cursor<'u>>,
    /// The project's classes that objects of a class hold by value, by the class's identity.
    pub(super) held: HashMap<usize, BTreeSet<String>>,
    /// Measurements of objects for calls that make them, by the identity of the expression.
    pub(super) measured_to_make: BTreeSet<usize>,
}
