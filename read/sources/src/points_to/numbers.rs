//! Numbers for values.

use indexmap::IndexSet;
use std::hash::Hash;

/// Values by the order in which they were first met.
#[derive(Debug)]
pub(super) struct Numbers<T>(IndexSet<T, foldhash::fast::RandomState>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Numbers(IndexSet::default())
    }
}

impl<T: Hash + Eq + Clone> Numbers<T> {
    /// The value's number, a new one if it has none.
    pub(super) fn number(&mut self, value: &T) -> u32 {
        let at = match self.0.get_index_of(value) {
            Some(known) => known,
            None => self.0.insert_full(value.clone()).0,
        };
        u32::try_from(at).expect("values take many bytes each, so memory ends before their numbers do")
    }

    pub(super) fn known(&self, value: &T) -> Option<u32> {
        self.0.get_index_of(value).and_then(|at| u32::try_from(at).ok())
    }

    /// The value of a number that was given here.
    pub(super) fn value(&self, number: u32) -> &T {
        &self.0[number as usize]
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}
