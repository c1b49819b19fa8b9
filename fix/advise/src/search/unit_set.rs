//! A set of units, asked for each of tens of thousands of orders.

/// Which units are in the set, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct UnitSet {
    is_in: Vec<bool>,
}

impl UnitSet {
    /// The set of `members`, which are below `units`.
    pub(crate) fn of(units: usize, members: impl IntoIterator<Item = usize>) -> Self {
        let mut is_in = vec![false; units];
        for unit in members {
            is_in[unit] = true;
        }
        UnitSet { is_in }
    }

    pub(crate) fn contains(&self, unit: usize) -> bool {
        self.is_in.get(unit).copied().unwrap_or(false)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.is_in.iter().enumerate().filter(|(_, is_in)| **is_in).map(|(unit, _)| unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_it_was_made_of_in_order() {
        let set = UnitSet::of(4, [3, 1, 3]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [1, 3]);
        assert!(set.contains(1) && !set.contains(0) && !set.contains(4));
    }
}
