//! Orders of a plan's units, without a search: which are legal, and random ones.

use crate::kinds::order::member_order::Plan;

impl Plan<'_> {
    /// The file that declares the type.
    pub(crate) fn path(&self) -> &str {
        &self.ground.body.found.path
    }

    /// The names in each unit of the declaration.
    pub(crate) fn unit_names(&self) -> Vec<String> {
        self.ground.body.units.iter().map(|unit| unit.names.join(", ")).collect()
    }

    /// Units that can change places with another: not fixed, and not alone in their segment.
    pub(crate) fn free_units(&self) -> usize {
        let units = &self.problem.units;
        let moves = |unit: &&crate::search::score::Unit| !unit.is_fixed;
        let chained = units.iter().filter(moves).all(|unit| unit.is_chained);
        let alone = |unit: &crate::search::score::Unit| {
            units.iter().filter(moves).filter(|other| other.segment == unit.segment).count() < 2
        };
        if chained { 0 } else { units.iter().filter(moves).filter(|unit| !alone(unit)).count() }
    }

    /// An order of the declaration's units with the units before it, such as base classes.
    pub(crate) fn with_head(&self, order: &[usize]) -> Vec<usize> {
        (0..self.head_units).chain(order.iter().map(|unit| unit + self.head_units)).collect()
    }

    /// True when the order obeys segments, chains, places and offsets, and the type does not grow.
    pub(crate) fn is_legal(&self, order: &[usize]) -> bool {
        let order = self.with_head(order);
        let baseline = self.problem.baseline();
        self.problem.allows(&order) && self.problem.score(&order, baseline.as_ref()).is_some()
    }

    /// Units in random order within their segments, fixed ones in their places; larger alignments first when asked, so
    /// that types with little padding have a chance.
    pub(crate) fn random_order(
        &self,
        random: &mut dyn FnMut(usize) -> usize,
        by_alignment: bool,
    ) -> Vec<usize> {
        let units = &self.problem.units[self.head_units..];
        let mut order: Vec<usize> = (0..units.len()).collect();
        let segments: std::collections::BTreeSet<u32> = units.iter().map(|unit| unit.segment).collect();
        for segment in segments {
            let places: Vec<usize> = (0..units.len())
                .filter(|&place| units[place].segment == segment && !units[place].is_fixed)
                .collect();
            let mut moving = places.clone();
            for at in (1..moving.len()).rev() {
                moving.swap(at, random(at + 1));
            }
            if by_alignment {
                moving.sort_by_key(|&unit| std::cmp::Reverse(self.alignment(unit)));
            }
            let mut chained: Vec<usize> =
                moving.iter().copied().filter(|&unit| units[unit].is_chained).collect();
            chained.sort_unstable();
            let mut chained = chained.into_iter();
            for (&place, &unit) in places.iter().zip(&moving) {
                order[place] = if units[unit].is_chained { chained.next().unwrap_or(unit) } else { unit };
            }
        }
        order
    }

    fn alignment(&self, unit: usize) -> u64 {
        let fields = self.problem.units[unit + self.head_units].fields.clone();
        let model = &self.problem.models[0];
        fields.filter_map(|field| model.fields.get(field)).map(|field| field.align_bytes).max().unwrap_or(1)
    }
}
