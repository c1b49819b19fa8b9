//! Two of several variants that were run together, held against each other.

use crate::compare::{Collected, Stopped};
use crate::run::{Slot, Variant};

/// The runs of two variants alone; the second is then held against the first.
pub fn of_pair(collected: &Collected, [first, second]: [Variant; 2]) -> Collected {
    let renamed = |slot: &Slot| match slot.variant {
        variant if variant == first => Some(Slot { variant: Variant::BEFORE, ..*slot }),
        variant if variant == second => Some(Slot { variant: Variant::AFTER, ..*slot }),
        _ => None,
    };
    let runs = collected.runs.iter().filter_map(|(slot, run)| Some((renamed(slot)?, run.clone())));
    Collected {
        runs: runs.collect(),
        cut_off: Vec::new(),
        blocks: collected.blocks,
        stopped: Stopped::Blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ComparePlan, Estimated, collect, judge_all};
    use crate::run::RunResult;

    #[test]
    fn the_third_variant_is_held_against_the_second_by_the_runs_of_all() {
        let plan = ComparePlan { variants: 3, ..ComparePlan::default() };
        let mut runner = |slot: &Slot| {
            let wall_ns = [300_000, 200_000, 100_000][slot.variant.0] + slot.number % 5;
            Ok(RunResult::finished(0, b"", b"", wall_ns))
        };
        let collected = collect(&mut runner, &plan);
        let pair = of_pair(&collected, [Variant(1), Variant(2)]);
        assert_eq!((pair.blocks, pair.runs.len()), (10, 40));
        let compared = judge_all(&pair, &ComparePlan { variants: 2, ..plan }).expect("a comparison");
        let Estimated::Ratio { judged, .. } = &compared.metrics[0].contrasts[0].estimate else {
            panic!("times are above zero");
        };
        assert!((judged.ratio - 0.5).abs() < 0.001, "{judged:?}");
    }
}
