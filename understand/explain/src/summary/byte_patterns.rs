//! The bytes of an object that one call uses together, with the count of each combination.

use crate::summary::byte_sums::ByteSums;
use foldhash::HashMap;
use lineup_model::usage::{ByteUse, NeededAnyway};
use std::hash::Hash;

/// Distinct combinations kept per subject; further ones are folded into one.
const MAX_PATTERNS: usize = 4096;

/// Bytes touched by one call, before they are put in order: loads and stores by offset and size.
#[derive(Clone, Default, Debug)]
pub(crate) struct Touches {
    by_run: HashMap<(u64, u64), (u64, u64)>,
}

impl Touches {
    /// Adds one access.
    pub(crate) fn add(&mut self, offset: u64, size_bytes: u64, is_store: bool) {
        let (loads, stores) = self.by_run.entry((offset, size_bytes)).or_default();
        *(if is_store { stores } else { loads }) += 1;
    }

    /// The bytes as sorted runs that do not overlap.
    pub(crate) fn runs(&self) -> Vec<ByteUse> {
        let all = self.by_run.iter().map(|((offset, size_bytes), (loads, stores))| ByteUse {
            offset: *offset,
            size_bytes: *size_bytes,
            loads: *loads,
            stores: *stores,
        });
        disjoint(all.collect())
    }
}

/// Cuts overlapping runs at each other's ends and adds up the parts that coincide.
fn disjoint(mut runs: Vec<ByteUse>) -> Vec<ByteUse> {
    runs.sort_unstable();
    let overlaps = runs.windows(2).any(|pair| match pair {
        [first, second] => first.offset + first.size_bytes > second.offset,
        _ => false,
    });
    if !overlaps {
        return runs;
    }
    let mut sums = ByteSums::default();
    sums.extend(&runs);
    sums.runs()
}

/// A combination without its counts.
type Shape = Vec<(u64, u64, bool, bool)>;

fn shape(runs: &[ByteUse]) -> Shape {
    runs.iter().map(|run| (run.offset, run.size_bytes, run.loads > 0, run.stores > 0)).collect()
}

/// The counts of combinations, for any number of subjects (a type, or a set of variables).
#[derive(Debug)]
pub(crate) struct Patterns<Subject> {
    known: HashMap<Subject, HashMap<Shape, Counted>>,
    folded: HashMap<Subject, Folded>,
}

/// A combination with its counts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counted {
    /// The bytes, with loads and stores over all occurrences.
    pub bytes: Vec<ByteUse>,
    /// The number of its occurrences.
    pub occurrences: u64,
    /// The number of occurrences in which a line at an end of the subject was a background line.
    pub needed_anyway: NeededAnyway,
}

/// Combinations that are kept as one.
#[derive(Clone, Default, Debug)]
struct Folded {
    bytes: ByteSums,
    occurrences: u64,
    needed_anyway: NeededAnyway,
}

impl Folded {
    fn counted(&self) -> Counted {
        Counted { bytes: self.bytes.runs(), occurrences: self.occurrences, needed_anyway: self.needed_anyway }
    }
}

impl<Subject> Default for Patterns<Subject> {
    fn default() -> Self {
        Self { known: HashMap::default(), folded: HashMap::default() }
    }
}

impl<Subject: Hash + Eq + Clone + Ord> Patterns<Subject> {
    /// Adds one occurrence.
    pub(crate) fn add(&mut self, subject: &Subject, runs: &[ByteUse], needed_anyway: &NeededAnyway) {
        let key = shape(runs);
        let of_subject = self.known.entry(subject.clone()).or_default();
        let is_new = !of_subject.contains_key(&key);
        if is_new && of_subject.len() >= MAX_PATTERNS {
            let folded = self.folded.entry(subject.clone()).or_default();
            folded.occurrences += 1;
            folded.needed_anyway.add(needed_anyway);
            folded.bytes.extend(runs);
            return;
        }
        let counted = of_subject.entry(key).or_insert_with(|| Counted {
            bytes: runs.iter().map(|run| ByteUse { loads: 0, stores: 0, ..*run }).collect(),
            ..Counted::default()
        });
        counted.occurrences += 1;
        counted.needed_anyway.add(needed_anyway);
        for (sum, run) in counted.bytes.iter_mut().zip(runs) {
            sum.loads += run.loads;
            sum.stores += run.stores;
        }
    }

    /// All combinations, sorted by subject and, within one, by falling count.
    pub(crate) fn sorted(&self) -> Vec<(Subject, Counted)> {
        let mut all: Vec<(Subject, Counted)> = self
            .known
            .iter()
            .flat_map(|(subject, shapes)| shapes.values().map(|counted| (subject.clone(), counted.clone())))
            .chain(self.folded.iter().map(|(subject, folded)| (subject.clone(), folded.counted())))
            .collect();
        all.sort_by(|(a, x), (b, y)| (a, y.occurrences, &x.bytes).cmp(&(b, x.occurrences, &y.bytes)));
        all
    }

    /// The number of occurrences that were folded because there were too many distinct combinations.
    pub(crate) fn folded(&self) -> u64 {
        self.folded.values().map(|folded| folded.occurrences).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(offset: u64, size_bytes: u64, loads: u64, stores: u64) -> ByteUse {
        ByteUse { offset, size_bytes, loads, stores }
    }

    #[test]
    fn a_copy_of_the_whole_and_an_access_to_a_member_are_cut_at_the_member() {
        let mut touches = Touches::default();
        touches.add(0, 16, false);
        touches.add(8, 4, true);
        assert_eq!(touches.runs(), [run(0, 8, 1, 0), run(8, 4, 1, 1), run(12, 4, 1, 0)]);
    }

    #[test]
    fn the_same_bytes_in_another_call_are_the_same_pattern() {
        let mut patterns = Patterns::default();
        patterns.add(&"device", &[run(0, 8, 1, 0)], &NeededAnyway::default());
        patterns.add(&"device", &[run(0, 8, 3, 0)], &NeededAnyway::default());
        patterns.add(&"device", &[run(0, 8, 1, 1)], &NeededAnyway::default());
        let sorted = patterns.sorted();
        assert_eq!(sorted.len(), 2);
        assert_eq!(
            sorted[0].1,
            Counted { bytes: vec![run(0, 8, 4, 0)], occurrences: 2, ..Counted::default() }
        );
    }

    #[test]
    fn too_many_patterns_are_folded_and_counted_not_lost() {
        let mut patterns = Patterns::default();
        for index in 0..5000 {
            patterns.add(&"table", &[run(index * 8, 8, 1, 0)], &NeededAnyway::default());
        }
        let occurrences: u64 = patterns.sorted().iter().map(|(_, counted)| counted.occurrences).sum();
        assert_eq!(occurrences, 5000);
        assert_eq!(patterns.folded(), 5000 - 4096);
    }
}
