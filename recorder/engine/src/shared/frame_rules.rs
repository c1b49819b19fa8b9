//! Rules that lead from a place in the code to its function's caller.

use lineup_recording::native::heap::FrameRule;

/// The rule for a place, of a file's that begins at `start`: the last at or before it.
pub(super) fn rule_at(count: usize, start: u64, pc: u64, word: impl Fn(usize) -> u64) -> Option<FrameRule> {
    let place = u32::try_from(pc.checked_sub(start)?).ok()?;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = usize::midpoint(low, high);
        match FrameRule::of_word(word(middle)).from <= place {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    Some(FrameRule::of_word(word(low.checked_sub(1)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_recording::native::heap::FrameBase;

    #[test]
    fn the_rule_of_a_place_is_the_last_that_begins_at_or_before_it() {
        let rule = |from, words| FrameRule {
            from,
            base: Some(FrameBase { is_of_frame_pointer: false, words, saved_words: 0 }),
        };
        let rules = [rule(0x10, 1), rule(0x20, 2), FrameRule { from: 0x30, base: None }];
        let at = |pc| rule_at(rules.len(), 0x1000, pc, |number| rules[number].to_word());
        assert_eq!(at(0xfff), None);
        assert_eq!(at(0x100f), None);
        assert_eq!(at(0x1010), Some(rules[0]));
        assert_eq!(at(0x102f), Some(rules[1]));
        assert_eq!(at(0x1030), Some(rules[2]));
        assert_eq!(at(0x1000 + (1 << 32)), None);
    }
}
