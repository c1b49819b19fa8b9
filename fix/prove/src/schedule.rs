//! The order of the variants' runs.

use crate::run::{Slot, Variant};
use lineup_stats::random::{Seed, shuffle};

/// The order of the runs of one block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Order {
    /// A random order and then the same backwards: ABBA or BAAB for two variants. Each variant's
    /// mean position is the same, so that a steady drift cancels inside the block.
    #[default]
    Mirrored,
    /// Each variant once, in random order.
    Shuffled,
}

/// An endless sequence of blocks.
#[derive(Clone, Debug)]
pub struct Schedule {
    variants: usize,
    order: Order,
    seed: Seed,
    next_block: u64,
    next_number: u64,
}

impl Schedule {
    /// Blocks over `variants` variants, the same for the same seed.
    pub fn new(variants: usize, order: Order, seed: Seed) -> Self {
        Self { variants, order, seed, next_block: 0, next_number: 0 }
    }

    /// The runs before the first block: every variant `rounds` times.
    pub fn warm_up(&mut self, rounds: u32) -> Vec<Slot> {
        let order = (0..rounds).flat_map(|_| (0..self.variants).map(Variant)).collect();
        self.number(order, None)
    }

    /// The runs of the next block, in order.
    pub fn block(&mut self) -> Vec<Slot> {
        let block = self.next_block;
        self.next_block += 1;
        let mut order: Vec<Variant> = (0..self.variants).map(Variant).collect();
        shuffle(&mut order, self.seed.part(block));
        if self.order == Order::Mirrored {
            order.extend(order.clone().into_iter().rev());
        }
        self.number(order, Some(block))
    }

    fn number(&mut self, order: Vec<Variant>, block: Option<u64>) -> Vec<Slot> {
        let first = self.next_number;
        self.next_number += order.len() as u64;
        (first..).zip(order).map(|(number, variant)| Slot { variant, number, block }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variants(slots: &[Slot]) -> Vec<usize> {
        slots.iter().map(|slot| slot.variant.0).collect()
    }

    #[test]
    fn two_variants_run_abba_or_baab_and_both_occur() {
        let mut schedule = Schedule::new(2, Order::Mirrored, Seed(3));
        let blocks: Vec<_> = (0..20).map(|_| variants(&schedule.block())).collect();
        assert!(blocks.iter().all(|block| *block == [0, 1, 1, 0] || *block == [1, 0, 0, 1]));
        assert!(blocks.contains(&vec![0, 1, 1, 0]) && blocks.contains(&vec![1, 0, 0, 1]));
    }

    #[test]
    fn every_variant_has_the_same_mean_position_in_a_mirrored_block() {
        let block = variants(&Schedule::new(4, Order::Mirrored, Seed(5)).block());
        for variant in 0..4 {
            let positions = block.iter().enumerate().filter(|(_, v)| **v == variant).map(|(at, _)| at);
            assert_eq!(positions.sum::<usize>(), block.len() - 1);
        }
    }

    #[test]
    fn shuffled_blocks_hold_each_variant_once_and_numbers_run_on() {
        let mut schedule = Schedule::new(3, Order::Shuffled, Seed(5));
        assert_eq!(variants(&schedule.warm_up(2)), [0, 1, 2, 0, 1, 2]);
        let block = schedule.block();
        let mut sorted = variants(&block);
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
        assert_eq!((block[0].number, block[0].block), (6, Some(0)));
    }
}
