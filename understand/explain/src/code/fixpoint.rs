//! The known facts at the beginning of each block of a function, found by iteration to a fixed point.

use crate::code::flow_graph::Block;
use crate::code::transfer::State;
use std::collections::BTreeSet;

/// Visits of one block after which values that a loop changes are widened.
const WIDEN_AFTER: u32 = 20;

/// The number of visits of one block after which the analysis is given up. Widened values stop changing long before.
pub(crate) const MAX_VISITS: u32 = 1000;

/// The states at the start of the blocks, from `entries` on; `run` changes a state as the block of a number does.
/// `None` when a block was visited `max_visits` times without convergence: the facts learned until then are not
/// certain.
pub(crate) fn fixpoint(
    blocks: &[Block],
    first: Option<usize>,
    mut entries: Vec<State>,
    max_visits: u32,
    mut run: impl FnMut(usize, &mut State),
) -> Option<Vec<State>> {
    let ranks = ranks(blocks, first);
    let rank_of = |block: usize| ranks.get(block).copied().unwrap_or(0);
    let mut visits = vec![0u32; blocks.len()];
    let mut waiting: BTreeSet<(usize, usize)> =
        (0..blocks.len()).map(|block| (rank_of(block), block)).collect();
    while let Some((rank, number)) = waiting.pop_first() {
        let (Some(block), Some(entry), Some(count)) =
            (blocks.get(number), entries.get(number), visits.get_mut(number))
        else {
            continue;
        };
        if *count >= max_visits {
            return None;
        }
        *count += 1;
        let is_long = *count > WIDEN_AFTER;
        let mut state = entry.clone();
        run(number, &mut state);
        for next in &block.next {
            let leads_back = rank_of(*next) <= rank;
            if entries.get_mut(*next).is_some_and(|entry| entry.merge(&state, is_long && leads_back)) {
                waiting.insert((rank_of(*next), *next));
            }
        }
    }
    Some(entries)
}

/// The place of each block in an order in which blocks come before those that they lead to, but for loops: from the
/// first block on, then the blocks that it does not lead to. The blocks' addresses do not matter.
fn ranks(blocks: &[Block], first: Option<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    let mut is_seen = vec![false; blocks.len()];
    for root in first.into_iter().chain(0..blocks.len()) {
        let before = order.len();
        leave_after_successors(blocks, root, &mut is_seen, &mut order);
        order.get_mut(before..).unwrap_or_default().reverse();
    }
    let mut ranks = vec![0; blocks.len()];
    for (rank, block) in order.into_iter().enumerate() {
        if let Some(own) = ranks.get_mut(block) {
            *own = rank;
        }
    }
    ranks
}

/// Appends the blocks that `root` leads to, each after those that it leads to itself.
fn leave_after_successors(blocks: &[Block], root: usize, is_seen: &mut [bool], order: &mut Vec<usize>) {
    let mut enter = |block: usize| is_seen.get_mut(block).is_some_and(|seen| !std::mem::replace(seen, true));
    let mut open: Vec<(usize, usize)> = enter(root).then_some((root, 0)).into_iter().collect();
    while let Some((block, taken)) = open.last_mut() {
        let next = blocks.get(*block).and_then(|block| block.next.get(*taken)).copied();
        *taken += 1;
        match next {
            Some(next) => {
                if enter(next) {
                    open.push((next, 0));
                }
            }
            None => {
                order.push(*block);
                open.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::abstract_value::{AbstractValue, Number, Origin, Pointer};
    use crate::code::instruction::{Convention, InstructionSet, Register};
    use crate::types::catalog::Ty;
    use crate::types::congruence::Congruence;

    const AT: Register = Register(3);

    fn blocks(next: &[&[usize]]) -> Vec<Block> {
        next.iter().map(|next| Block { range: 0..0, next: next.to_vec() }).collect()
    }

    fn pointer(offset: i64) -> AbstractValue {
        AbstractValue::Pointer(Pointer::new(Ty(1), Congruence::exactly(offset), Origin::Unknown))
    }

    fn unknown(blocks: &[Block]) -> Vec<State> {
        vec![State::nothing(&Convention::of(InstructionSet::X86_64)); blocks.len()]
    }

    /// A pointer that goes down through an array, by 8 bytes a round: 0 -> 1 -> 1 | 2.
    fn stepping_down(max_visits: u32) -> Option<Vec<State>> {
        let blocks = blocks(&[&[1], &[1, 2], &[]]);
        let mut entries = unknown(&blocks);
        entries[0].set(AT, pointer(8000));
        let run = |block, state: &mut State| {
            if block == 1 {
                state.set(AT, state.register(AT).plus(Number::exactly(-8)));
            }
        };
        fixpoint(&blocks, Some(0), entries, max_visits, run)
    }

    #[test]
    fn a_loop_that_steps_down_ends_and_keeps_the_step() {
        let settled = stepping_down(MAX_VISITS).expect("an end");
        let AbstractValue::Pointer(after) = settled[2].register(AT) else { panic!("{settled:?}") };
        assert_eq!((after.offset.remainder(8), after.offset.smallest()), (Some(0), None));
    }

    #[test]
    fn what_was_learned_without_an_end_is_not_kept() {
        assert_eq!(stepping_down(5), None);
    }

    #[test]
    fn the_order_of_the_blocks_in_memory_does_not_matter() {
        // 0 leads to 1, 2 and 3, which say null, a variable's address and a pointer; all lead to 4.
        let said = [
            AbstractValue::Number(Number::exactly(0)),
            AbstractValue::Number(Number::exactly(0x4010)),
            pointer(0),
        ];
        let orders = [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]];
        let results: Vec<AbstractValue> = orders
            .iter()
            .map(|order| {
                let blocks = blocks(&[order, &[4], &[4], &[4], &[]]);
                let run = |block, state: &mut State| {
                    if let Some(place) = order.iter().position(|placed| *placed == block) {
                        state.set(AT, said[place]);
                    }
                };
                let settled = fixpoint(&blocks, Some(0), unknown(&blocks), MAX_VISITS, run).expect("an end");
                settled[4].register(AT)
            })
            .collect();
        assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
    }
}
