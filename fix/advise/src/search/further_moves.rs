//! The gain of more moves than a small patch makes.

use crate::layout::granules::ONE;
use crate::search::best_order::{self, Effort};
use crate::search::outcome::{Further, Outcome};
use crate::search::score::Problem;

/// Less than a twentieth of a line a call is not worth a word.
const LEAST_LINES: u64 = ONE / 20;

/// The gain of the best order, whatever a reviewer says of it. `None` without a small patch, or if more moves gain
/// nothing worth a word.
pub(crate) fn beyond(problem: &Problem, small: &Outcome) -> Option<Further> {
    let moved = |order: &[usize]| order.len() - problem.kept(order).len();
    let few = Some(moved(&small.order)).filter(|few| *few > 0)?;
    let best = best_order::best(problem, Effort::SECOND)?;
    let moves = moved(&best.order).checked_sub(few).filter(|moves| *moves > 0)?;
    let (now, then) = (problem.region_lines(&small.order)?, problem.region_lines(&best.order)?);
    let gains = now.iter().map(|(region, lines)| {
        (*region, lines.saturating_sub(then.get(region).copied().unwrap_or_default()))
    });
    let (region, lines) = gains.max_by_key(|(_, lines)| *lines).filter(|(_, lines)| *lines >= LEAST_LINES)?;
    Some(Further { moves, region, lines })
}
