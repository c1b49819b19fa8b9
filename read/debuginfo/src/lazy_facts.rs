//! The facts of a program that are read when first asked for.

use crate::dwarf::{Catalog, Lines};
use lineup_model::program::Variable;
use std::ops::Range;
use std::sync::OnceLock;

/// The data read lazily per unit.
#[derive(Debug, Default)]
pub(crate) struct LazyFacts {
    pub(crate) catalogs: Vec<OnceLock<Catalog>>,
    pub(crate) lines: Vec<OnceLock<Lines>>,
    pub(crate) has_types: Vec<OnceLock<Option<bool>>>,
    pub(crate) code_ranges: OnceLock<Vec<(Range<u64>, u32)>>,
    pub(crate) globals: OnceLock<Vec<Variable>>,
}

impl LazyFacts {
    pub(crate) fn new(units: usize) -> Self {
        LazyFacts {
            catalogs: (0..units).map(|_| OnceLock::new()).collect(),
            lines: (0..units).map(|_| OnceLock::new()).collect(),
            has_types: (0..units).map(|_| OnceLock::new()).collect(),
            ..LazyFacts::default()
        }
    }
}
