//! How many bytes of each line that was fetched are used before it has to be fetched again.

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

    /// Takes in an access to what somebody owns.
    pub(crate) fn see(&mut self, owner: O, address: u64, size_bytes: u64, missed: Missed) {
        let last = address.saturating_add(size_bytes.max(1) - 1);
        for line in address / self.line_bytes..=last / self.line_bytes {
            let first_byte = address.max(line * self.line_bytes) - line * self.line_bytes;
            let last_byte = last.min(line * self.line_bytes + (self.line_bytes - 1)) - line * self.line_bytes;
            let used = (first_byte..=last_byte.min(127)).fold(0u128, |used, byte| used | 1 << byte.min(127));
            if missed != Missed::Nothing
                && let Some(old) = self.lines.insert(line, Line { owner, used })
            {
                self.add(&old);
            } else if let Some(line) = self.lines.get_mut(&line) {
                line.used |= used;
            }
        }
    }

    fn add(&mut self, line: &Line<O>) {
        let (lines, bytes) = self.sums.entry(line.owner).or_default();
        *lines += 1;
        *bytes += u64::from(line.used.count_ones());
    }

    /// Bytes used per line, by owner.
    pub(crate) fn finish(mut self) -> HashMap<O, f64> {
        for line in std::mem::take(&mut self.lines).into_values() {
            self.add(&line);
        }
        self.sums.into_iter().map(|(owner, (lines, bytes))| (owner, bytes as f64 / lines as f64)).collect()
    }
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
        assert_eq!(usage.finish()[&()], (12.0 + 4.0 + 2.0 + 2.0) / 4.0);
    }
}
