//! The stream for later replays: fetches and accesses, without those that no cache would notice.

use lineup_cache::{CacheLevel, CacheSpec, MostRecent};
use lineup_recording::stream::{Step, StreamEncoder};

/// Sets of the filters at most: any cache with more has the same lines in more sets.
const MAX_SETS: u64 = 64;
/// Parts of a line by which repeated accesses to it are told apart, since another layout may put each on another line:
/// single bytes of lines of 64 bytes.
const PARTS: u64 = 64;

/// Knows the line used last in each set. Using it again changes nothing in a cache of as many sets or more.
struct Filter {
    /// Line, and the parts of it that were accessed since.
    recent: Vec<(u64, u64)>,
    line_bytes: u64,
}

impl Filter {
    fn new((sets, line_bytes): (u64, u64)) -> Filter {
        Filter { recent: vec![(u64::MAX, 0); sets as usize], line_bytes }
    }

    /// Notes a use; true when a cache may notice it.
    #[inline]
    fn matters(&mut self, address: u64, size_bytes: u64) -> bool {
        let line = address / self.line_bytes;
        let last = address.wrapping_add(size_bytes.max(1) - 1);
        let sets = self.recent.len() as u64;
        if line != last / self.line_bytes {
            // Two lines: both sets forget.
            self.recent[(line % sets) as usize] = (u64::MAX, 0);
            self.recent[(last / self.line_bytes % sets) as usize] = (u64::MAX, 0);
            return true;
        }
        let part_bytes = (self.line_bytes / PARTS).max(1);
        let part = |address: u64| address % self.line_bytes / part_bytes;
        let parts = u64::MAX << part(address) & u64::MAX >> (PARTS - 1 - part(last));
        let (recent, seen) = &mut self.recent[(line % sets) as usize];
        if *recent != line {
            (*recent, *seen) = (line, parts);
            return true;
        }
        let is_new = parts & !*seen != 0;
        *seen |= parts;
        is_new
    }
}

/// Notes a fetch, whose code no layout moves; true when a cache may notice it.
#[inline]
fn moves(code: &mut MostRecent, address: u64, size_bytes: u64) -> bool {
    !code.uses_again(code.lines(address, size_bytes))
}

/// Sets, and bytes of a line, that a filter for one level tells apart.
fn geometry(specs: &[CacheSpec], level: CacheLevel) -> (u64, u64) {
    let spec = specs.iter().rfind(|spec| spec.level() == level);
    spec.map_or((1, 64), |spec| (spec.sets().min(MAX_SETS), spec.line().bytes()))
}

/// The stream of one CPU.
pub(crate) struct Stream {
    code: MostRecent,
    data: Filter,
    pub(crate) encoder: StreamEncoder,
    left: u64,
    inside: Vec<u16>,
}

impl Stream {
    pub(crate) fn new(specs: &[CacheSpec], steps: u64) -> Stream {
        let (code_sets, code_line_bytes) = geometry(specs, CacheLevel::L1i);
        Stream {
            code: MostRecent::of_sets(code_sets, code_line_bytes),
            data: Filter::new(geometry(specs, CacheLevel::L1d)),
            encoder: StreamEncoder::default(),
            left: steps,
            inside: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn fetch(&mut self, address: u64, size_bytes: u64) {
        if moves(&mut self.code, address, size_bytes) {
            self.put(&Step::Fetch { address, size_bytes: size_bytes as u32 });
        }
    }

    #[inline]
    pub(crate) fn data(&mut self, address: u64, size_bytes: u32) {
        if self.data.matters(address, u64::from(size_bytes)) {
            self.put(&Step::Data { address, size_bytes });
        }
    }

    /// Calls of these regions are under way.
    pub(crate) fn inside(&mut self, regions: Vec<u16>) {
        if self.inside != regions {
            self.put(&Step::Inside(regions.clone()));
            self.inside = regions;
        }
    }

    /// True when the limit was not reached.
    pub(crate) fn is_whole(&self) -> bool {
        self.left > 0
    }

    /// A stream that reached its limit stays as it is: what is written is whole.
    fn put(&mut self, step: &Step) {
        if self.left > 0 {
            self.left -= 1;
            self.encoder.step(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter() -> Filter {
        Filter::new(geometry(&["l1d=512,1,64".parse().unwrap()], CacheLevel::L1d))
    }

    #[test]
    fn the_line_used_last_in_its_set_is_left_out_byte_by_byte() {
        let mut filter = filter();
        assert!(filter.matters(0x1000, 8));
        assert!(!filter.matters(0x1000, 4), "the same bytes");
        assert!(filter.matters(0x1008, 4), "other bytes of it may lie on another line one day");
        assert!(filter.matters(0x100c, 4), "even those of the same word");
        assert!(!filter.matters(0x1000, 16), "both are known");
        assert!(filter.matters(0x1200, 8), "another line of the set");
        assert!(filter.matters(0x1000, 8), "no longer the last");
    }

    #[test]
    fn an_access_to_two_lines_always_matters() {
        let mut filter = filter();
        assert!(filter.matters(0x103c, 8));
        assert!(filter.matters(0x103c, 8));
        assert!(filter.matters(0x1000, 8));
    }

    #[test]
    fn code_is_left_out_by_the_line() {
        let mut code = MostRecent::of_sets(8, 64);
        assert!(moves(&mut code, 0x1000, 16));
        assert!(!moves(&mut code, 0x1010, 16));
        assert!(moves(&mut code, 0x1200, 16));
        assert!(moves(&mut code, 0x1000, 16));
    }
}
