//! The stream for later replays: fetches and accesses, without those that no cache and no other CPU would notice.

use super::lock::lock;
use crate::describe::Description;
use crate::limits::BLOCK_BYTES;
use crate::output::Output;
use lineup_cache::{CacheLevel, CacheSpec, Directory, MostRecent};
use lineup_recording::Encoder;
use lineup_recording::stream::{Step, StreamEncoder};
use std::sync::Mutex;

/// Sets of the filters at most: any cache with more has the same lines in more sets.
const MAX_SETS: u64 = 64;
/// Parts of a line that distinguish repeated accesses to it, since another layout may put each on another line: single
/// bytes of lines of 64 bytes.
const PARTS: u64 = 64;

/// The line used last in a set.
#[derive(Clone, Copy)]
struct Recent {
    line: u64,
    /// Parts of it that were accessed since.
    seen: u64,
    /// Parts for which the line was taken from other CPUs since.
    taken: u64,
}

const FORGOTTEN: Recent = Recent { line: u64::MAX, seen: 0, taken: 0 };

/// Knows the line used last in each set. Using it again changes nothing in a cache of as many sets or more.
struct Filter {
    recent: Vec<Recent>,
    line_bytes: u64,
}

impl Filter {
    fn new((sets, line_bytes): (u64, u64)) -> Filter {
        Filter { recent: vec![FORGOTTEN; sets as usize], line_bytes }
    }

    /// Forgets the earlier accesses.
    fn forget(&mut self) {
        self.recent.fill(FORGOTTEN);
    }

    /// Notes a use; true when a cache may notice it.
    #[inline]
    fn matters(&mut self, address: u64, size_bytes: u64, takes_line: bool) -> bool {
        let line = address / self.line_bytes;
        let last = address.wrapping_add(size_bytes.max(1) - 1);
        let sets = self.recent.len() as u64;
        if line != last / self.line_bytes {
            // Two lines: both sets forget their last lines.
            self.recent[(line % sets) as usize] = FORGOTTEN;
            self.recent[(last / self.line_bytes % sets) as usize] = FORGOTTEN;
            return true;
        }
        let part_bytes = (self.line_bytes / PARTS).max(1);
        let part = |address: u64| address % self.line_bytes / part_bytes;
        let parts = u64::MAX << part(address) & u64::MAX >> (PARTS - 1 - part(last));
        let taken = if takes_line { parts } else { 0 };
        let recent = &mut self.recent[(line % sets) as usize];
        if recent.line != line {
            *recent = Recent { line, seen: parts, taken };
            return true;
        }
        let is_new = parts & !recent.seen != 0 || taken & !recent.taken != 0;
        recent.seen |= parts;
        recent.taken |= taken;
        is_new
    }
}

/// Notes a fetch, whose code no layout moves; true when a cache may notice it.
#[inline]
fn moves(code: &mut MostRecent, address: u64, size_bytes: u64) -> bool {
    !code.uses_again(code.lines(address, size_bytes))
}

/// Sets, and bytes of a line, that a filter for one level distinguishes.
fn geometry(specs: &[CacheSpec], level: CacheLevel) -> (u64, u64) {
    let spec = specs.iter().rfind(|spec| spec.level() == level);
    spec.map_or((1, 64), |spec| (spec.sets().min(MAX_SETS), spec.line().bytes()))
}

/// The last accesses of one CPU, and its open calls.
pub(crate) struct Lane {
    cpu: u16,
    code: MostRecent,
    data: Filter,
    inside: Vec<u16>,
}

impl Lane {
    pub(crate) fn new(cpu: u16, specs: &[CacheSpec]) -> Lane {
        let (code_sets, code_line_bytes) = geometry(specs, CacheLevel::L1i);
        Lane {
            cpu,
            code: MostRecent::of_sets(code_sets, code_line_bytes),
            data: Filter::new(geometry(specs, CacheLevel::L1d)),
            inside: Vec::new(),
        }
    }
}

/// The stream of all CPUs, in one order.
///
/// With several CPUs, one lock covers an access's effect on the directory and its place in the stream: in a replay each
/// line goes from CPU to CPU as the recorder saw it go. A CPU's repeated access is left out only when no other CPU's
/// access came in between: then it adds no information, for any layout of the objects.
pub(crate) struct Stream {
    /// True when there are several CPUs.
    is_shared: bool,
    log: Mutex<Log>,
}

/// The output.
struct Log {
    packed: StreamEncoder,
    encoder: Encoder,
    /// Steps until the limit.
    left: u64,
    /// The CPU whose steps follow, where this part has named it.
    cpu: Option<u16>,
    /// The CPU of the last access to data.
    accessed_by: Option<u16>,
}

impl Stream {
    pub(crate) fn new(cpus: u32, steps: u64) -> Stream {
        let log = Log {
            packed: StreamEncoder::default(),
            encoder: Encoder::new(),
            left: steps,
            cpu: None,
            accessed_by: None,
        };
        Stream { is_shared: cpus > 1, log: Mutex::new(log) }
    }

    /// Code is fetched.
    #[inline]
    pub(crate) fn fetch(&self, output: &Output, lane: &mut Lane, address: u64, size_bytes: u64) {
        if moves(&mut lane.code, address, size_bytes) {
            let step = Step::Fetch { address, size_bytes: size_bytes as u32 };
            self.put(output, &mut lock(&self.log), lane.cpu, &step);
        }
    }

    /// Data is accessed; true when the line, or the right to write to it, came from another CPU.
    #[inline]
    pub(crate) fn data(
        &self,
        (output, directory): (&Output, Option<&Directory>),
        lane: &mut Lane,
        (address, what): (u64, &Description),
    ) -> bool {
        let size_bytes = what.size_bytes();
        let mut is_foreign = false;
        let mut log = None;
        if let Some(directory) = directory {
            let log = log.insert(lock(&self.log));
            if log.accessed_by.replace(lane.cpu) != Some(lane.cpu) {
                lane.data.forget();
            }
            is_foreign = directory.access(lane.cpu, address, what.is_store);
        }
        let takes_line = self.is_shared && what.is_store;
        if lane.data.matters(address, u64::from(size_bytes), takes_line) {
            let mut log = log.unwrap_or_else(|| lock(&self.log));
            self.put(output, &mut log, lane.cpu, &Step::Data { address, size_bytes, takes_line });
        }
        is_foreign
    }

    /// Calls of these regions are under way.
    pub(crate) fn inside(&self, output: &Output, lane: &mut Lane, regions: Vec<u16>) {
        if lane.inside != regions {
            self.put(output, &mut lock(&self.log), lane.cpu, &Step::Inside(regions.clone()));
            lane.inside = regions;
        }
    }

    /// Writes the rest; true when the limit was not reached.
    pub(crate) fn finish(&self, output: &Output) -> bool {
        let log = &mut *lock(&self.log);
        log.encoder.stream(&log.packed.take());
        // A failure was reported on standard error.
        let _ = output.flush(&mut log.encoder);
        log.left > 0
    }

    /// A stream that reached its limit stays unchanged: its written part is whole.
    fn put(&self, output: &Output, log: &mut Log, cpu: u16, step: &Step) {
        if log.left == 0 {
            return;
        }
        log.left -= 1;
        if self.is_shared && log.cpu != Some(cpu) {
            log.cpu = Some(cpu);
            log.packed.step(&Step::Cpu(cpu));
        }
        log.packed.step(step);
        if log.packed.packed_bytes() >= BLOCK_BYTES / 2 {
            log.encoder.stream(&log.packed.take());
            log.cpu = None;
            output.flush_full(&mut log.encoder);
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
        assert!(filter.matters(0x1000, 8, false));
        assert!(!filter.matters(0x1000, 4, false), "the same bytes");
        assert!(filter.matters(0x1008, 4, false), "other bytes of it may lie on another line one day");
        assert!(filter.matters(0x100c, 4, false), "even those of the same word");
        assert!(!filter.matters(0x1000, 16, false), "both are known");
        assert!(filter.matters(0x1200, 8, false), "another line of the set");
        assert!(filter.matters(0x1000, 8, false), "no longer the last");
    }

    #[test]
    fn an_access_to_two_lines_always_matters() {
        let mut filter = filter();
        assert!(filter.matters(0x103c, 8, false));
        assert!(filter.matters(0x103c, 8, false));
        assert!(filter.matters(0x1000, 8, false));
    }

    #[test]
    fn a_store_after_loads_takes_the_line_once() {
        let mut filter = filter();
        assert!(filter.matters(0x1000, 8, false));
        assert!(filter.matters(0x1000, 4, true), "other CPUs lose it");
        assert!(!filter.matters(0x1000, 4, true));
        assert!(!filter.matters(0x1000, 8, false));
        assert!(filter.matters(0x1004, 4, true), "these bytes may lie on another line one day");
        filter.forget();
        assert!(filter.matters(0x1000, 4, false), "another CPU may have taken it");
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
