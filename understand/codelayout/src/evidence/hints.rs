//! The evidence for hints in the sources of a file's code.

use super::descriptions::Descriptions;
use super::{branches, executed_places, never_called, unused_copies, unused_paths};
use crate::code::Code;
use lineup_model::branch::Evidence;

impl Code<'_> {
    /// The evidence for hints.
    pub fn evidence(&self) -> Evidence {
        let mut starts = self.functions.iter().map(|function| function.addresses.start);
        let described = Descriptions::of(self.debug, &mut starts);
        Evidence {
            branches: branches::branches(self, &described),
            executed: executed_places::executed(self, &described),
            never_called: never_called::never_called(self, &described),
            unused_copies: unused_copies::unused(self, &described),
            unused_paths: unused_paths::unused(self, &described),
        }
    }
}
