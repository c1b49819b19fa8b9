//! Counts of the edges between blocks, from the execution counts of the blocks.
//!
//! A block is left as often as it is entered. Where all but one edge of a block's entering or leaving ones are known,
//! so is the last. Most graphs of compiled code are solved by that alone, and their counts are exact. The rest is
//! divided in proportion to the executions that the targets still lack, and marked as estimated.

/// The count of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taken {
    /// Times.
    pub times: u64,
    /// False when it follows from the counts of blocks; true when several answers fit them.
    pub is_estimated: bool,
}

/// An edge whose count is wanted: the blocks that it leaves and enters, by their numbers. `None` is outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockEdge {
    /// The block that it leaves.
    pub(crate) from: Option<usize>,
    /// The block that it enters.
    pub(crate) to: Option<usize>,
}

/// The count of each of `edges`, from the execution counts of the blocks.
pub(crate) fn solve(executions: &[u64], edges: &[BlockEdge]) -> Vec<Taken> {
    let mut flow = Flow::new(executions, edges);
    flow.follow();
    while let Some(edge) = flow.most_wanted() {
        flow.estimate(edge);
        flow.follow();
    }
    flow.solved.into_iter().map(|taken| taken.unwrap_or(Taken { times: 0, is_estimated: true })).collect()
}

struct Flow<'e> {
    edges: &'e [BlockEdge],
    solved: Vec<Option<Taken>>,
    /// The executions of each block that are not yet explained: leaving at `2 * block`, entering after it.
    rest: Vec<u64>,
    /// Edges of each side that are not solved.
    open: Vec<Vec<usize>>,
    /// Whether an estimated count went into a side.
    is_estimated: Vec<bool>,
    /// Sides with one open edge at most.
    ready: Vec<usize>,
}

impl<'e> Flow<'e> {
    fn new(executions: &[u64], edges: &'e [BlockEdge]) -> Self {
        let rest: Vec<u64> = executions.iter().flat_map(|times| [*times, *times]).collect();
        let mut open = vec![Vec::new(); rest.len()];
        for (number, edge) in edges.iter().enumerate() {
            sides(edge).filter(|side| *side < rest.len()).for_each(|side| open[side].push(number));
        }
        let is_estimated = vec![false; rest.len()];
        let ready = (0..rest.len()).collect();
        Flow { edges, solved: vec![None; edges.len()], rest, open, is_estimated, ready }
    }

    /// Solves everything that follows from the known counts.
    fn follow(&mut self) {
        while let Some(side) = self.ready.pop() {
            if self.rest[side] == 0 {
                // Nothing is left for any of them.
                for edge in std::mem::take(&mut self.open[side]) {
                    self.settle(edge, Taken { times: 0, is_estimated: self.is_estimated[side] });
                }
            } else if let [edge] = self.open[side][..] {
                let taken = Taken { times: self.rest[side], is_estimated: self.is_estimated[side] };
                self.settle(edge, taken);
            }
        }
    }

    fn settle(&mut self, edge: usize, taken: Taken) {
        if self.solved[edge].is_some() {
            return;
        }
        self.solved[edge] = Some(taken);
        for side in sides(&self.edges[edge]) {
            let Some(rest) = self.rest.get_mut(side) else { continue };
            // Counts that do not fit each other, as after a signal, leave nothing rather than less.
            *rest = rest.saturating_sub(taken.times);
            self.open[side].retain(|open| *open != edge);
            self.is_estimated[side] |= taken.is_estimated;
            self.ready.push(side);
        }
    }

    /// The open edge that most executions depend on.
    fn most_wanted(&self) -> Option<usize> {
        let open = (0..self.edges.len()).filter(|edge| self.solved[*edge].is_none());
        open.max_by_key(|edge| sides(&self.edges[*edge]).filter_map(|side| self.rest.get(side)).min())
    }

    /// Gives an edge its share of its block's remaining executions, by the lack of its target and of the others.
    fn estimate(&mut self, edge: usize) {
        let lacks = |edge: usize| {
            sides(&self.edges[edge]).filter_map(|side| self.rest.get(side)).copied().min().unwrap_or(0)
        };
        let most = lacks(edge);
        let rivals =
            sides(&self.edges[edge]).filter_map(|side| self.open.get(side)).max_by_key(|open| open.len());
        let all: u128 = rivals.into_iter().flatten().map(|rival| u128::from(lacks(*rival))).sum();
        let available =
            sides(&self.edges[edge]).filter_map(|side| self.rest.get(side)).copied().max().unwrap_or(0);
        let part = u128::from(available) * u128::from(most) / all.max(1);
        let times = u64::try_from(part).unwrap_or(u64::MAX).min(most);
        self.settle(edge, Taken { times, is_estimated: true });
    }
}

/// The two sides an edge counts for: the leaving side of one block, the entering side of another.
fn sides(edge: &BlockEdge) -> impl Iterator<Item = usize> + use<> {
    edge.from.map(|block| 2 * block).into_iter().chain(edge.to.map(|block| 2 * block + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(of: &[(i64, i64)]) -> Vec<BlockEdge> {
        let block = |number: i64| usize::try_from(number).ok();
        of.iter().map(|(from, to)| BlockEdge { from: block(*from), to: block(*to) }).collect()
    }

    fn times(executions: &[u64], of: &[(i64, i64)]) -> Vec<(u64, bool)> {
        let taken = solve(executions, &edges(of));
        taken.into_iter().map(|taken| (taken.times, taken.is_estimated)).collect()
    }

    #[test]
    fn two_ways_that_meet_are_exact() {
        // 0 goes to 1 or 2, both to 3.
        let of = [(-1, 0), (0, 1), (0, 2), (1, 3), (2, 3), (3, -1)];
        let exact = [10, 7, 3, 7, 3, 10].map(|times| (times, false));
        assert_eq!(times(&[10, 7, 3, 10], &of), exact);
    }

    #[test]
    fn a_loop_is_exact() {
        // 0 enters 1, which goes back to itself or on to 2.
        let of = [(-1, 0), (0, 1), (1, 1), (1, 2), (2, -1)];
        assert_eq!(times(&[2, 50, 2], &of), [2, 2, 48, 2, 2].map(|times| (times, false)));
    }

    #[test]
    fn what_several_answers_fit_is_called_estimated_and_adds_up() {
        // 0 and 1 each go to 2 or 3.
        let of = [(0, 2), (0, 3), (1, 2), (1, 3)];
        let taken = times(&[60, 40, 30, 70], &of);
        assert!(taken.iter().all(|(_, is_estimated)| *is_estimated), "{taken:?}");
        let [to_2, to_3, other_to_2, other_to_3] = [0, 1, 2, 3].map(|edge: usize| taken[edge].0);
        assert_eq!((to_2 + to_3, other_to_2 + other_to_3), (60, 40));
        assert_eq!((to_2 + other_to_2, to_3 + other_to_3), (30, 70));
    }

    #[test]
    fn counts_that_do_not_fit_each_other_are_taken_as_they_are() {
        assert_eq!(times(&[5, 9], &[(0, 1), (1, -1)]).len(), 2);
        assert_eq!(times(&[5, u64::MAX], &[(0, 1), (0, 0), (1, 1), (-1, 1)]).len(), 4);
        assert_eq!(times(&[], &[(-1, -1)]), [(0, true)]);
        // A block that is not there.
        assert_eq!(times(&[5], &[(0, 7)]), [(5, false)]);
    }
}
