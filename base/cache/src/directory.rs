//! A directory of the CPUs that hold each line: the cost of an access that another CPU's cache causes.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lines of 64 bytes that the directory knows at one time; a power of two.
const DIRECTORY_LINES: usize = 1 << 20;
/// Lines are shared in units of this size, whatever line size each cache has.
const DIRECTORY_SHIFT: u32 = 6;

/// The last writer of each line and its readers since. Each line has one word: a tag, the writer, and a bit for each of
/// the first sixteen CPUs. Lines that map to the same word evict each other.
#[derive(Debug)]
pub struct Directory {
    lines: Box<[AtomicU64]>,
}

impl Directory {
    /// Knows nothing.
    pub fn empty() -> Self {
        Directory { lines: (0..DIRECTORY_LINES).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Notes an access; true when it needed a line, or the right to write to it, from another CPU.
    pub fn access(&self, cpu: u16, address: u64, is_store: bool) -> bool {
        let line = address >> DIRECTORY_SHIFT;
        let Some(entry) = self.lines.get(line as usize % DIRECTORY_LINES) else { return false };
        let tag = (line / DIRECTORY_LINES as u64) << 24 & !0xff_ffff;
        let holder = 1 << (cpu & 15);
        let old = entry.load(Ordering::Relaxed);
        let (is_known, holders) = (old & !0xff_ffff == tag && old & 0xffff != 0, old & 0xffff);
        let is_foreign = is_known && if is_store { holders & !holder != 0 } else { holders & holder == 0 };
        let new = match (is_store, is_known) {
            (true, _) | (_, false) => tag | u64::from(cpu & 0xff) << 16 | holder,
            (false, true) => old | holder,
        };
        if new != old {
            entry.store(new, Ordering::Relaxed);
        }
        is_foreign
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_between_cpus_when_one_writes_what_the_other_has() {
        let directory = Directory::empty();
        assert!(!directory.access(0, 0x1000, true), "nobody had it");
        assert!(!directory.access(0, 0x1008, false), "its own line");
        assert!(directory.access(1, 0x1010, false), "written by the other");
        assert!(!directory.access(1, 0x1010, false), "has it now");
        assert!(directory.access(0, 0x1000, true), "the other reads it");
        assert!(!directory.access(0, 0x1000, true), "its own again");
        assert!(directory.access(1, 0x1000, true), "the other wrote it");
    }
}
