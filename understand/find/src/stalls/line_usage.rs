//! The bytes of each fetched line that are used before it has to be fetched again.

use foldhash::HashMap;
use lineup_cache::Missed;
use std::hash::Hash;

/// A line of the first level, since it was last fetched.
struct Line<O> {
    owner: O,
    used: u128,
}

/// Bytes used of lines.
pub(crate) struct LineUsage<O> {
    line_bytes: u64,
    lines: HashMap<u64, Line<O>>,
    /// Lines fetched for each owner, and bytes used of them.
    sums: HashMap<O, (u64, u64)>,
}

impl<O: Copy + Eq + Hash> LineUsage<O> {
    /// Nothing was used yet. Lines have at most 128 bytes; of longer ones, the first count.
    pub(crate) fn new(line_bytes: u64) -> Self {
        LineUsage { line_bytes: line_bytes.max(1), lines: HashMap::default(), sums: HashMap::default() }
    }

    /// Takes in an access to an owner's data.
    pub(crate) fn see(&mut self, owner: O, address: u64, size_bytes: u64, missed: Missed) {
        let last = address.saturating_add(size_bytes.max(1) - 1);
        for line in address / self.line_bytes..=last / self.line_bytes {
            let first_byte = address.max(line * self.line_bytes) - line * self.line_bytes;
            let last_byte = last.min(line * self.line_bytes + (self.line_bytes - 1)) - line * self.line_bytes;
            let used = mask(first_byte, last_byte.min(127));
            if missed == Missed::Nothing {
                if let Some(line) = self.lines.get_mut(&line) {
                    line.used |= used;
                }
            } else if let Some(old) = self.lines.insert(line, Line { owner, used }) {
                self.add(&old);
            }
        }
    }

    fn add(&mut self, line: &Line<O>) {
        let (lines, bytes) = self.sums.entry(line.owner).or_default();
        *lines += 1;
        *bytes += u64::from(line.used.count_ones());
    }

    /// Lines fetched, and bytes used of them, by owner.
    pub(crate) fn finish(mut self) -> HashMap<O, (u64, u64)> {
        for line in std::mem::take(&mut self.lines).into_values() {
            self.add(&line);
        }
        self.sums
    }
}

/// Bytes used per line, with all owners that `by` gives the same added up.
pub(crate) fn per_line<O, K: Eq + Hash>(
    sums: &HashMap<O, (u64, u64)>,
    by: impl Fn(&O) -> K,
) -> HashMap<K, f64> {
    let mut all: HashMap<K, (u64, u64)> = HashMap::default();
    for (owner, (lines, bytes)) in sums {
        let sum = all.entry(by(owner)).or_default();
        *sum = (sum.0 + lines, sum.1 + bytes);
    }
    all.into_iter().map(|(key, (lines, bytes))| (key, bytes as f64 / lines as f64)).collect()
}

/// The bits from one number to another, of which neither is above 127.
fn mask(first: u64, last: u64) -> u128 {
    if first > last { 0 } else { (u128::MAX >> (127 - (last - first))) << first }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_from_one_fetch_of_a_line_to_the_next() {
        let mut usage = LineUsage::new(64);
        usage.see((), 0x1000, 8, Missed::L1);
        usage.see((), 0x1004, 8, Missed::Nothing);
        // Known only since before the window: whose fault it was is not known.
        usage.see((), 0x2000, 8, Missed::Nothing);
        usage.see((), 0x1000, 4, Missed::L2);
        // Over the end of a line.
        usage.see((), 0x10be, 4, Missed::L1);
        let sums = usage.finish();
        assert_eq!(sums[&()], (4, 12 + 4 + 2 + 2));
        assert_eq!(per_line(&sums, |()| 7), HashMap::from_iter([(7, 5.0)]));
        assert_eq!([mask(0, 127), mask(3, 4), mask(127, 127), mask(5, 4)], [u128::MAX, 0x18, 1 << 127, 0]);
    }
}
