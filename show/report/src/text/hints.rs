//! Hints in the sources.

use super::study::Writer;
use crate::study::HintsReport;
use crate::visible::{one_line, shortened};

/// The most hints on the first screen.
const MOST_HINTS: usize = 4;
/// Longest sentence there.
const SENTENCE_CHARACTERS: usize = 120;

impl Writer {
    /// The hints that were written into the sources, and those that were not.
    pub(super) fn hints(&mut self, hints: &HintsReport) {
        self.heading("Hints in the source");
        if hints.given.is_empty() {
            self.line("None: no condition that the text can express has one outcome beyond doubt, and no function is \
                       cold.");
        }
        let most = if self.is_full() { usize::MAX } else { MOST_HINTS };
        for hint in hints.given.iter().take(most) {
            let told = HintsReport::hint_in_words(hint);
            let told = if self.is_full() {
                one_line(&told).into_owned()
            } else {
                shortened(&told, SENTENCE_CHARACTERS)
            };
            self.line(&format!("- {told}"));
        }
        if let Some(more) = hints.given.len().checked_sub(most).filter(|more| *more > 0) {
            self.line(&format!("and {more} more"));
        }
        if !self.is_full() {
            if !hints.refused.is_empty() {
                self.line(&format!("{} more were refused; --full says why.", hints.refused.len()));
            }
            return;
        }
        hints
            .refused
            .iter()
            .for_each(|one| self.line(&one_line(&format!("- refused: {}: {}", one.at, one.because))));
        if !hints.unused_copies.is_empty() {
            self.heading("Inlined code that never ran");
            hints
                .unused_copies
                .iter()
                .for_each(|copy| self.line(&one_line(&format!("- {}", copy.in_words()))));
        }
        if !hints.unused_paths.is_empty() {
            self.heading("Code that never ran between code that does");
            hints
                .unused_paths
                .iter()
                .for_each(|path| self.line(&one_line(&format!("- {}", path.in_words()))));
        }
    }
}
