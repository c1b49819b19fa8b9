//! Ranges of addresses, found by an address that they hold, however many there are.

/// A range of addresses with its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ranged<T> {
    /// The first byte.
    pub(crate) start: u64,
    /// After the last byte.
    pub(crate) end: u64,
    /// The range's value.
    pub(crate) value: T,
}

/// Ranges by their size, rounded up to a power of two, and by their first byte. A range that holds an address begins no
/// further below it than its size. So the search near one large range does not visit all smaller ones.
#[derive(Clone, Debug)]
pub(crate) struct ByAddress<T> {
    classes: Vec<Class>,
    all: Vec<Ranged<T>>,
}

impl<T> Default for ByAddress<T> {
    fn default() -> Self {
        ByAddress { classes: Vec::new(), all: Vec::new() }
    }
}

/// Ranges of nearly one size.
#[derive(Clone, Debug)]
struct Class {
    /// The upper limit of their sizes.
    most_bytes: u64,
    /// By their first byte, and the one after their last.
    groups: Vec<Group>,
}

/// Equal ranges.
#[derive(Clone, Debug)]
struct Group {
    start: u64,
    end: u64,
    /// Their positions in the list of all.
    first: usize,
    after: usize,
}

impl<T> ByAddress<T> {
    /// An index of these ranges. Equal ones stay in their order.
    pub(crate) fn new(mut all: Vec<Ranged<T>>) -> Self {
        let class_of = |one: &Ranged<T>| one.end.saturating_sub(one.start).max(1).next_power_of_two();
        all.sort_by_key(|one| (class_of(one), one.start, one.end));
        let mut classes: Vec<Class> = Vec::new();
        for (number, one) in all.iter().enumerate() {
            let most_bytes = class_of(one);
            if classes.last().is_none_or(|last| last.most_bytes != most_bytes) {
                classes.push(Class { most_bytes, groups: Vec::new() });
            }
            let Some(class) = classes.last_mut() else { continue };
            let is_same = |group: &&mut Group| (group.start, group.end) == (one.start, one.end);
            match class.groups.last_mut().filter(is_same) {
                Some(group) => group.after = number + 1,
                None => {
                    let (start, end) = (one.start, one.end);
                    class.groups.push(Group { start, end, first: number, after: number + 1 });
                }
            }
        }
        ByAddress { classes, all }
    }

    /// Groups of equal ranges that hold an address, with the number of the first of each.
    pub(crate) fn holding(&self, address: u64) -> impl Iterator<Item = (usize, &[Ranged<T>])> {
        let groups = self.groups_near(address).filter(move |group| address < group.end);
        groups.map(|group| (group.first, &self.all[group.first..group.after]))
    }

    /// The groups that are looked at for an address.
    fn groups_near(&self, address: u64) -> impl Iterator<Item = &Group> {
        self.classes.iter().flat_map(move |class| {
            let is_far = |group: &Group| group.start < address && address - group.start >= class.most_bytes;
            let from = class.groups.partition_point(is_far);
            class.groups[from..].iter().take_while(move |group| group.start <= address)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(ranges: &ByAddress<u32>, address: u64) -> Vec<u32> {
        let mut found: Vec<u32> =
            ranges.holding(address).flat_map(|(_, group)| group.iter().map(|one| one.value)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn all_that_hold_an_address_are_found_and_few_others_are_looked_at() {
        let one = |start, end, value| Ranged { start, end, value };
        let mut all: Vec<Ranged<u32>> = (0..10_000u64).map(|at| one(at * 64, at * 64 + 48, 7)).collect();
        all.extend([one(0, 1 << 30, 1), one(6400, 6432, 2), one(6400, 6416, 3)]);
        let ranges = ByAddress::new(all);
        assert_eq!(holding(&ranges, 6400), [1, 2, 3, 7]);
        assert_eq!(holding(&ranges, 6420), [1, 2, 7]);
        assert_eq!(holding(&ranges, 6440), [1, 7]);
        assert_eq!(holding(&ranges, 6450), [1], "between two");
        assert_eq!(holding(&ranges, 1 << 30), [0; 0]);
        assert!((0..10_000).all(|at| ranges.groups_near(at * 64).count() <= 6));
    }
}
