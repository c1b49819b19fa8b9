//! Hints for the compiler, from counts: `__builtin_expect` around conditions that come out one way, and `cold` at
//! functions that are never called.
//!
//! Nothing that a program does changes by them. A hint has to be true. It is given if the share of the other way lies
//! below [`MOST_SHARE`] beyond doubt, and if machine code and text leave one meaning.

mod cold;
mod decide;
mod hint;
mod macros;
mod site;

pub use hint::{Hint, Hints, LEAST_EXECUTIONS, LEVEL, MOST_SHARE, RefusedHint};

use crate::text::sources::Sources;
use hint::Edit;
use lineup_model::branch::Evidence;
use std::collections::BTreeMap;

/// The hints that the evidence gives reason for. Its paths are those of the sources.
pub fn hints(evidence: &Evidence, sources: &Sources) -> Hints {
    let macros = macros::Macros::of(sources);
    let mut hints = Hints::default();
    let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    decide::conditions(evidence, sources, &macros, &mut hints, &mut edits);
    cold::functions(&evidence.never_called, sources, &macros, &mut hints, &mut edits);
    for (path, mut edits) in edits {
        let Some(mut text) = sources.get(&path).map(str::to_owned) else { continue };
        edits.sort_by_key(|edit| std::cmp::Reverse(edit.bytes.start));
        for edit in edits {
            text.replace_range(edit.bytes, &edit.text);
        }
        hints.edited.insert(path, text);
    }
    hints.given.sort_by(|a, b| a.at.cmp(&b.at));
    hints.refused.sort_by(|a, b| a.at.cmp(&b.at));
    hints
}
