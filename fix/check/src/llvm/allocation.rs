//! New memory in IR: it has no type and no content, and holds a whole object.

use super::uses::{Call, Walk, call};
use crate::gimple::library;

impl<'a> Walk<'a, '_> {
    /// New memory for at least one object, without content.
    pub(super) fn is_new(&mut self, value: &str, record: &str, to: &[&str]) -> bool {
        let Some(line) = self.made.get(value).copied() else { return false };
        let Some(call) = call(&self.function.lines[line].words) else { return false };
        let callee = call.callee.trim_start_matches('@');
        let Some(sizes) = library::allocated(callee) else { return false };
        let is_empty = call.arguments.first().is_some_and(|first| first.contains(&"null"));
        if library::keeps_content(callee) && !is_empty && !self.was(&call, record) {
            return false;
        }
        if to.iter().filter(|word| **word == "*").count() > 1 {
            return true;
        }
        let bytes = self.unit.pair.new.record(record).map_or(0, |record| record.bytes);
        let known: Vec<u64> =
            sizes.iter().filter_map(|at| self.number(call.arguments.get(*at)?.last()?)).collect();
        let product = known.iter().try_fold(1_u64, |product, number| product.checked_mul(*number));
        let is_large = product.is_some_and(|product| bytes > 0 && product >= bytes && !known.is_empty());
        if is_large && product.is_some_and(|product| product % bytes == 0) {
            self.covered.insert(line);
        }
        is_large
    }

    /// The memory that a call gets was that of such an object.
    fn was(&self, call: &Call<'_, 'a>, record: &str) -> bool {
        let made = call.arguments.first().and_then(|first| self.made.get(first.last()?));
        let words = made.map(|line| self.function.lines[*line].words.as_slice()).unwrap_or_default();
        let to = words.iter().rposition(|word| *word == "to").unwrap_or(0);
        words.get(3..to).and_then(|of| self.pointed(of)) == Some(record)
    }

    /// A number, or one that a value is a multiple of, or more than.
    fn number(&self, value: &str) -> Option<u64> {
        let computed = || {
            let words = self.function.lines[*self.made.get(value)?].words.as_slice();
            let is_known = matches!(words.get(2), Some(&("mul" | "add")));
            words.iter().skip(3).filter(|_| is_known).find_map(|word| word.parse().ok())
        };
        value.parse().ok().or_else(computed)
    }
}
