//! Execution counts of a file's instructions.

use lineup_model::image::LoadedImage;
use lineup_recording::ProfileRun;
use std::collections::BTreeMap;
use std::ops::Range;

/// Execution counts of one file's instructions, by link address.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Executed {
    /// Link address from which a count holds, and the count; by address.
    steps: Vec<(u64, u64)>,
}

impl Executed {
    /// Adds up the counts of the runs that lie in one file. Blocks that begin within others overlap; each counts.
    pub fn of(runs: &[ProfileRun], image: &LoadedImage) -> Executed {
        let mut changes: BTreeMap<u64, i128> = BTreeMap::new();
        for run in runs.iter().filter(|run| image.contains(run.pc)) {
            let start = image.to_link(run.pc);
            *changes.entry(start).or_default() += i128::from(run.executions);
            *changes.entry(start.saturating_add(u64::from(run.size_bytes))).or_default() -=
                i128::from(run.executions);
        }
        let mut count = 0i128;
        let mut steps: Vec<(u64, u64)> = Vec::new();
        for (address, change) in changes {
            count += change;
            let now = u64::try_from(count).unwrap_or(u64::MAX);
            if steps.last().map_or(0, |(_, before)| *before) != now {
                steps.push((address, now));
            }
        }
        Executed { steps }
    }

    /// The execution count of the instruction at a link address.
    pub fn at(&self, address: u64) -> u64 {
        let after = self.steps.partition_point(|(from, _)| *from <= address);
        after.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(0, |(_, count)| *count)
    }

    /// The parts of a range that were executed.
    pub fn ranges_in(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let first = self.steps.partition_point(|(from, _)| *from <= range.start).saturating_sub(1);
        let mut parts: Vec<Range<u64>> = Vec::new();
        for (index, (from, count)) in self.steps.iter().enumerate().skip(first) {
            if *from >= range.end {
                break;
            }
            let end = self.steps.get(index + 1).map_or(range.end, |(next, _)| *next);
            let part = (*from).max(range.start)..end.min(range.end);
            if *count == 0 || part.is_empty() {
                continue;
            }
            match parts.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => parts.push(part),
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_recording::Misses;

    fn run(pc: u64, size_bytes: u32, executions: u64) -> ProfileRun {
        ProfileRun {
            pc,
            size_bytes,
            executions,
            instructions: executions,
            fetch_misses: Misses::default(),
            loads: 0,
            load_misses: Misses::default(),
            stores: 0,
            store_misses: Misses::default(),
        }
    }

    fn image() -> LoadedImage {
        LoadedImage { path: "a".into(), start: 0x5000, end: 0x6000, bias: 0x4000, build_id: None }
    }

    #[test]
    fn runs_that_overlap_add_up() {
        let executed = Executed::of(&[run(0x5000, 16, 3), run(0x5008, 8, 4), run(0x9000, 8, 9)], &image());
        let counts = [0xfff, 0x1000, 0x1007, 0x1008, 0x100f, 0x1010].map(|address| executed.at(address));
        assert_eq!(counts, [0, 3, 3, 7, 7, 0]);
    }

    #[test]
    fn what_was_executed_of_a_range() {
        let executed = Executed::of(&[run(0x5000, 16, 3), run(0x5010, 8, 4), run(0x5040, 8, 9)], &image());
        assert_eq!(executed.ranges_in(&(0x1004..0x1044)), [0x1004..0x1018, 0x1040..0x1044]);
        assert_eq!(executed.ranges_in(&(0x1018..0x1040)), []);
        assert_eq!(Executed::default().ranges_in(&(0..u64::MAX)), []);
    }
}
