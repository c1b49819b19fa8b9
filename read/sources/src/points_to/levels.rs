//! Pointers to pointers: the origin behind some of them.

use crate::facts::Origin;

/// The block that stands for any of many, which [`super::PointsTo::same_memory`] lists.
pub(super) const ANY_BLOCK: &str = "(any of many)";

/// The depth up to which pointers to pointers to memory are kept separate.
pub(super) const MOST_LEVELS: u8 = 3;

/// The origin after `level` pointers were stored (or read, when negative). A value read from an array of pointers is
/// not the array. Objects do not distinguish levels.
pub(super) fn at_level(origin: &Origin, level: i8) -> Vec<Origin> {
    match (origin, level) {
        (Origin::Number(record), ..0) => return vec![Origin::Object(record.clone())],
        (Origin::End(_) | Origin::Element(_), ..0) => return Vec::new(),
        _ => {}
    }
    let Origin::Memory(block, known) = origin else {
        // A value read from an array of numbers is a number.
        let is_number = matches!(origin, Origin::Numbers(..)) && level < 0;
        return if is_number { Vec::new() } else { vec![origin.clone()] };
    };
    if **block == *ANY_BLOCK {
        return vec![origin.clone()];
    }
    let memory = |level: u8| Origin::Memory(block.clone(), level);
    match known.checked_add_signed(level) {
        None => Vec::new(),
        // At the greatest depth, it may be deeper still.
        Some(now) if *known == MOST_LEVELS && level < 0 => (now..=MOST_LEVELS).map(memory).collect(),
        Some(now) => vec![memory(now.min(MOST_LEVELS))],
    }
}
