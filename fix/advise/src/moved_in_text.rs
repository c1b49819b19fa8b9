//! The members that a patch shows as moved. Of two members that change places either may be the moved one: the reader sees
//! the choice of the diff, so that a list of moved members has to follow it.

use crate::body::Mode;
use crate::member_order::Plan;
use similar::{ChangeTag, TextDiff};
use std::collections::{BTreeMap, BTreeSet};

/// The members, by index, of which the diff removes a line of the declaration. `None` where a diff of lines shows no
/// members: several share a line, or nothing is moved.
pub(crate) fn members(plan: &Plan<'_>, edited: &BTreeMap<String, String>) -> Option<Vec<usize>> {
    let body = &plan.ground.body;
    if body.mode != Mode::Lines {
        return None;
    }
    let lexed = &body.found.lexed;
    let diff = TextDiff::from_lines(lexed.text, edited.get(&body.found.path)?);
    let removed = diff.iter_all_changes().filter(|change| change.tag() == ChangeTag::Delete);
    let removed: BTreeSet<usize> = removed.filter_map(|change| change.old_index()).collect();
    // Lines count from one in the text and from zero in the diff.
    let line_of = |token: usize| lexed.line_at(lexed.tokens[token].start()) as usize - 1;
    let is_moved = |unit: &usize| {
        let text = unit.checked_sub(plan.head_units).and_then(|at| body.units.get(at));
        let pieces = text.map_or(&[][..], |text| &body.pieces[text.pieces.clone()]);
        pieces.iter().filter(|piece| piece.is_data() && !piece.tokens.is_empty()).any(|piece| {
            let lines = line_of(piece.tokens.start)..=line_of(piece.tokens.end - 1);
            removed.range(lines).next().is_some()
        })
    };
    let units = (0..plan.problem.units.len()).filter(is_moved);
    let moved: Vec<usize> = units.flat_map(|unit| plan.problem.units[unit].fields.clone()).collect();
    (!moved.is_empty()).then_some(moved)
}
