//! The program's state at a place in the cache.

use crate::engine::Engine;
use crate::machine::{Mark, Translated};

/// The program's state at a place in the cache, and the block that holds it, or an empty one.
pub(crate) fn mark_at(engine: &Engine, pc: u64) -> Option<(Mark, Translated)> {
    engine.code.with(|code| {
        if let Some(mark) = code.targets.as_ref().and_then(|targets| targets.mark_at(pc)) {
            return Some((mark, Translated::default()));
        }
        let (start, block) = code.around(engine, pc)?;
        let mark = *block.marks.iter().rev().find(|mark| start + mark.offset as u64 <= pc)?;
        Some((mark, block))
    })
}
