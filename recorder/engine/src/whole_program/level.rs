//! A modelled first-level cache, in its layout in memory.
//!
//! Each set is a row of words: the most recently used line, the line of each way, and the time when each of these
//! became the most recently used one, in the cache's own time. A repeated use of the most recently used line changes
//! nothing. So of two other lines, the one that became most recently used earlier was also used longer ago. No line has
//! to be moved, and a lookup takes the same time for every way. The time is stored before the first row. Before it is a
//! table of the way that each line was in last, by the line's lowest bits.

use lineup_recording::native::head::Geometry;
use lineup_recording::native::sieve;
use std::sync::atomic::Ordering;

/// A first-level cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Level {
    /// Bytes of a line, as a power of two.
    pub(crate) line_shift: u32,
    /// A power of two.
    pub(crate) sets: u64,
    /// 0 when every access hits.
    pub(crate) ways: u64,
}

/// The first-level caches.
#[derive(Clone, Copy)]
pub(crate) struct Levels {
    pub(crate) code: Level,
    pub(crate) data: Level,
}

/// Lines whose last way is noted.
pub(crate) const NOTED_WAYS: u64 = 4096;
/// Distance from the first row to these, two bytes each.
pub(crate) const WAYS: i32 = -(HEAD as i32);
/// Bytes before the first row; the last word is the time.
const HEAD: u64 = 2 * NOTED_WAYS + 64;

impl Level {
    /// Reads the geometry that the command gave.
    pub(crate) fn read(given: &Geometry) -> Level {
        let line_shift = (given.line_shift.load(Ordering::Relaxed) as u32).clamp(3, 12);
        let sets = given.sets.load(Ordering::Relaxed).clamp(1, 1 << 30);
        Level { line_shift, sets, ways: given.ways.load(Ordering::Relaxed).min(1 << 16) }
    }

    /// Bytes of a line.
    pub(crate) fn line_bytes(self) -> u64 {
        1 << self.line_shift
    }

    /// Whether adjacent lines lie in different sets.
    pub(crate) fn parts_neighbours(self) -> bool {
        self.sets > 1
    }

    /// Words of a row.
    pub(crate) fn row(self) -> u64 {
        1 + 2 * self.ways
    }

    /// Bytes of all.
    pub(crate) fn bytes(self) -> usize {
        (HEAD + 8 * self.sets * self.row()) as usize
    }

    /// Address of the first row, in memory of [`Level::bytes`].
    pub(crate) fn rows(memory: u64) -> u64 {
        memory + HEAD
    }

    /// The memory that holds these rows.
    pub(crate) fn memory(rows: u64) -> u64 {
        rows - HEAD
    }

    /// All lines, set after set, each set with the most recently used first; 0 for an unused way.
    ///
    /// # Safety
    /// The thread's own rows.
    pub(crate) unsafe fn lines(self, rows: u64) -> Vec<u64> {
        let words = (self.sets * self.row()) as usize;
        // SAFETY: the caller's promise.
        let all = unsafe { std::slice::from_raw_parts(rows as *const u64, words) };
        let of_set = |row: &[u64]| {
            let (lines, times) = row[1..].split_at(self.ways as usize);
            let mut order: Vec<(u64, u64)> = times.iter().copied().zip(lines.iter().copied()).collect();
            order.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
            order.into_iter().map(|(_, line)| line)
        };
        all.chunks(self.row() as usize).flat_map(of_set).collect()
    }

    /// Uses a line of data; true when it was there.
    ///
    /// # Safety
    /// The thread's own rows and sieve.
    pub(crate) unsafe fn uses(self, line: u64, rows: u64, sieve: u64) -> bool {
        if self.ways == 0 {
            return true;
        }
        let place =
            |line: u64| (sieve as usize + sieve::DATA + 8 * (line as usize % sieve::PLACES)) as *mut u64;
        // SAFETY: the caller's promise.
        unsafe {
            let time = (rows as *mut u64).sub(1);
            let first = (rows as *mut u64).add(((line & (self.sets - 1)) * self.row()) as usize);
            let [recent, ways @ ..] = std::slice::from_raw_parts_mut(first, self.row() as usize) else {
                return true;
            };
            if *recent == line {
                return true;
            }
            place(*recent).write(0);
            place(line).write(line.wrapping_neg());
            *recent = line;
            *time += 1;
            let (lines, times) = ways.split_at_mut(self.ways as usize);
            let found = lines.iter().position(|held| *held == line);
            let oldest = || (0..times.len()).min_by_key(|way| times[*way]).unwrap_or(0);
            let way = found.unwrap_or_else(oldest);
            lines[way] = line;
            times[way] = *time;
            found.is_some()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row that is reordered at each use.
    fn uses(row: &mut Vec<u64>, ways: usize, line: u64) -> bool {
        let found = row.iter().position(|held| *held == line);
        found.map(|way| row.remove(way));
        row.insert(0, line);
        row.truncate(ways);
        found.is_some()
    }

    #[test]
    fn the_line_that_was_used_longest_ago_goes() {
        let level = Level { line_shift: 6, sets: 2, ways: 3 };
        let mut memory = vec![0u64; level.bytes() / 8];
        let mut tables = vec![0u64; sieve::COUNTS / 8];
        let rows = Level::rows(memory.as_mut_ptr() as u64);
        assert_eq!(Level::memory(rows), memory.as_ptr() as u64);
        let mut sets = [vec![], vec![]];
        let mut random = 1u64;
        for _ in 0..5_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let line = 0x1000 + (random >> 40) % 10;
            // SAFETY: of the sizes that the level asks for.
            let was_there = unsafe { level.uses(line, rows, tables.as_mut_ptr() as u64) };
            assert_eq!(was_there, uses(&mut sets[line as usize % 2], 3, line));
            assert_eq!(tables[(sieve::DATA / 8) + line as usize % sieve::PLACES], line.wrapping_neg());
        }
        // SAFETY: as above.
        assert_eq!(unsafe { level.lines(rows) }, sets.concat());
        assert_eq!(tables.iter().filter(|word| **word != 0).count(), 2);
    }
}
