//! L2 model for a thread whose first levels are modelled inside the recorded process; it sees only their misses.
//!
//! The engine reports the blocks' execution counts once, at the end. In windows of the run it reports all events, which
//! are kept.

use crate::code::{Code, Run, SharedCode};
use crate::events::Batch;
use crate::handle::Handle;
use crate::heap::Heap;
use crate::model::Counts;
use crate::part::Part;
use crate::sample::{OfThread, Owners, Sampler};
use foldhash::HashMap;
use lineup_cache::{Cache, CacheLevel, CacheSpec, MostRecent, PageBytes, Tlb};
use lineup_recording::native::each_piece;
use lineup_recording::{HeapObject, Misses, PageCounts, Resident};
use std::sync::Arc;

/// The counts of such a thread, and its second level.
pub struct SecondLevel {
    l2: Option<Cache>,
    tlb: Tlb,
    /// Bytes of the first level's lines, as powers of two.
    code_line_shift: u32,
    data_line_shift: u32,
    shared: Arc<SharedCode>,
    code: Code,
    counts: Counts,
    /// Counts of chains of one access, by chain: they have most misses, and their counts need no other data of a chain.
    lone: Vec<Lone>,
    /// Pages that accesses alone in their chain needed, by chain.
    lone_pages: Vec<PageCounts>,
    sampler: Option<OfThread>,
    window: Option<Box<Under>>,
}

/// Misses of a chain of one access, and the address of the last one; 0 where none missed.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Lone {
    misses: Misses,
    last: u64,
}

/// A window under way.
struct Under {
    number: u64,
    /// The lines that were resident at its beginning, until they are kept.
    resident: Option<Resident>,
    batch: Batch,
    owners: Owners,
    /// The numbers of objects in the batch, by their names on the heap.
    numbers: HashMap<u32, u32>,
}

impl SecondLevel {
    pub(crate) fn new(
        specs: &[CacheSpec],
        shared: Arc<SharedCode>,
        sampler: Option<OfThread>,
    ) -> SecondLevel {
        let shift = |level| MostRecent::of_level(specs, level).line_bytes().trailing_zeros();
        SecondLevel {
            tlb: Tlb::new(),
            l2: specs.iter().rfind(|spec| spec.level() == CacheLevel::L2).map(Cache::new),
            code_line_shift: shift(CacheLevel::L1i),
            data_line_shift: shift(CacheLevel::L1d),
            shared,
            code: Code::default(),
            counts: Counts::default(),
            lone: Vec::new(),
            lone_pages: Vec::new(),
            sampler,
            window: None,
        }
    }

    /// A stretch of the run begins that is a window: all events are reported from here on. The first level holds these
    /// lines, in each set the least recently used first.
    pub fn begin_window(&mut self, stretch: u64, data_lines: &[u64], code_lines: &[u64]) {
        self.end_window();
        let addresses = |lines: &[u64], shift: u32| lines.iter().map(|line| line << shift).collect();
        let resident = Resident {
            l1d: addresses(data_lines, self.data_line_shift),
            l1i: addresses(code_lines, self.code_line_shift),
            l2: self.l2.as_ref().map(Cache::resident).unwrap_or_default(),
        };
        let number = Sampler::number_of(stretch);
        let window = Under {
            number,
            resident: Some(resident),
            batch: Batch::new(),
            owners: Owners::default(),
            numbers: HashMap::default(),
        };
        self.window = self.sampler.is_some().then(|| Box::new(window));
    }

    /// The window has ended.
    pub fn end_window(&mut self) {
        if let Some(window) = &mut self.window {
            keep(self.sampler.as_ref(), window);
        }
        self.window = None;
    }

    /// The number of times that every second window was dropped.
    pub fn halvings(&self) -> u64 {
        self.sampler.as_ref().map_or(0, |sampler| sampler.halvings())
    }

    /// Notes events in a window.
    fn note(&mut self, note: impl FnOnce(&mut Batch)) {
        let Some(window) = &mut self.window else { return };
        if !window.batch.has_room() {
            keep(self.sampler.as_ref(), window);
        }
        note(&mut window.batch);
    }

    /// As [`Self::note`], of data at an address.
    fn note_data(&mut self, heap: &mut Heap, address: u64, note: impl FnOnce(&mut Batch)) {
        self.note(note);
        if let Some(window) = &mut self.window {
            let object = heap.object_at(address);
            let number = object.map_or(0, |(named, object)| window.number_of(named, object));
            window.owners.see(heap.site_of(address), number);
        }
    }

    /// Takes in the code met since the last time.
    fn learn(&mut self) {
        let more = self.shared.after(&self.code);
        self.code.append(&more);
        let (runs, counters) =
            (self.code.runs.len(), self.code.runs.last().map_or(0, Run::counters_end) as usize);
        let Counts { executions, fetch_misses, accesses, access_misses, last_missed, pages, .. } =
            &mut self.counts;
        pages.resize(counters, PageCounts::default());
        executions.resize(runs, 0);
        fetch_misses.resize(runs, Misses::default());
        accesses.resize(counters, 0);
        access_misses.resize(counters, Misses::default());
        last_missed.resize(counters, 0);
        self.lone.resize(self.code.chains.len(), Lone::default());
        self.lone_pages.resize(self.code.chains.len(), PageCounts::default());
    }

    fn knows(&mut self, run: u32, counter: u32) -> bool {
        let knows = |own: &Self| {
            (run as usize) < own.code.runs.len() && (counter as usize) < own.counts.accesses.len()
        };
        if !knows(self) {
            self.learn();
        }
        knows(self)
    }

    /// The block that begins with a run was fetched, and these of its lines missed the first level: the lowest bit is
    /// the last line.
    pub fn fetch_missed(&mut self, run: u32, missed: u32) {
        if !self.knows(run, 0) {
            return;
        }
        self.note(|batch| batch.block(run));
        let mut block = run as usize;
        while !self.code.runs[block].ends_block {
            block += 1;
        }
        let line_of = |address: u64| address >> self.code_line_shift;
        let end = &self.code.runs[block];
        let mut missing = Missing { last_line: line_of(end.pc + u64::from(end.size_bytes) - 1), missed };
        for (number, run) in (run as usize..).zip(&self.code.runs[run as usize..=block]) {
            let last = run.pc + u64::from(run.size_bytes) - 1;
            if missing.takes(line_of(run.pc), line_of(last)) {
                let l2 = missed_by(&mut self.l2, run.pc, run.size_bytes.into());
                self.counts.fetch_misses[number].count(l2);
            }
        }
    }

    /// The accesses of a chain around one address were made, and these of their lines missed the first level: the
    /// lowest bit is the last line.
    pub fn chain_missed(&mut self, heap: &mut Heap, chain: Handle, address: u64, missed: u32) {
        if chain.chain() as usize >= self.code.chains.len() {
            self.learn();
        }
        if chain.chain() as usize >= self.code.chains.len() {
            return;
        }
        self.note_data(heap, address, |batch| match chain.lone_size_shift() {
            Some(size_shift) => batch.lone(chain.chain(), false, size_shift, address),
            None => {
                batch.chain(chain.chain(), false, true);
                batch.put(address);
            }
        });
        if let Some(size_shift) = chain.lone_size_shift() {
            return self.lone_missed(heap, chain.chain(), address, size_shift, missed);
        }
        let known = &self.code.chains[chain.chain() as usize];
        let line_of = |address: u64| address >> self.data_line_shift;
        let links = self.code.links_of(known);
        let places = links.iter().map(|link| (address.wrapping_add_signed(link.distance.into()), link));
        let ends = places.clone().map(|(place, link)| line_of(place.wrapping_add(link.size_bytes() - 1)));
        let mut missing = Missing { last_line: ends.max().unwrap_or(0), missed };
        let mut data = Data { l2: &mut self.l2, tlb: &mut self.tlb, is_in_window: self.window.is_some() };
        for (place, link) in places {
            if missing.takes(line_of(place), line_of(place.wrapping_add(link.size_bytes() - 1))) {
                let (l2, pages) = data.missed(heap, place, link.size_bytes());
                self.counts.access_misses[link.counter as usize].count(l2);
                self.counts.pages[link.counter as usize] += pages;
                self.counts.last_missed[link.counter as usize] = place;
            }
        }
    }

    /// As [`Self::chain_missed`], of a chain of one access.
    fn lone_missed(&mut self, heap: &mut Heap, chain: u32, address: u64, size_shift: u8, missed: u32) {
        let size_bytes = 1 << size_shift;
        let line_of = |address: u64| address >> self.data_line_shift;
        let last_line = line_of(address.wrapping_add(size_bytes - 1));
        if (Missing { last_line, missed }).takes(line_of(address), last_line) {
            let (l2, pages) = self.data().missed(heap, address, size_bytes);
            if !pages.is_empty() {
                self.lone_pages[chain as usize] += pages;
            }
            let lone = &mut self.lone[chain as usize];
            lone.misses.count(l2);
            lone.last = address;
        }
    }

    /// An access that is in no chain was made, by the instruction of a block's first run with this counter.
    pub fn accessed(&mut self, heap: &mut Heap, run: u32, counter: u32, address: u64, size_bytes: u32) {
        if self.knows(run, counter) {
            self.counts.accesses[counter as usize] += 1;
            each_piece(address, size_bytes, |address, bytes| {
                let size_shift = bytes.trailing_zeros() as u8;
                self.note_data(heap, address, |batch| batch.access(counter, address, size_shift));
            });
        }
    }

    /// An access missed the first level.
    pub fn access_missed(&mut self, heap: &mut Heap, counter: u32, address: u64, size_bytes: u64) {
        if self.knows(0, counter) {
            let (l2, pages) = self.data().missed(heap, address, size_bytes);
            self.counts.access_misses[counter as usize].count(l2);
            self.counts.pages[counter as usize] += pages;
            self.counts.last_missed[counter as usize] = address;
        }
    }

    /// The number of executions of the block that begins with a run, with these chains.
    pub fn executed(&mut self, run: u32, chains: &[Handle], times: u64) {
        if !self.knows(run, 0) {
            return;
        }
        self.counts.executions[run as usize] += times;
        for chain in chains {
            let Some(known) = self.code.chains.get(chain.chain() as usize) else { continue };
            for link in self.code.links_of(known) {
                self.counts.accesses[link.counter as usize] += times;
            }
        }
    }

    /// The levels behind the first, for data.
    fn data(&mut self) -> Data<'_> {
        Data { l2: &mut self.l2, tlb: &mut self.tlb, is_in_window: self.window.is_some() }
    }

    pub(crate) fn into_counts(mut self) -> Counts {
        self.end_window();
        for (chain, lone) in self.code.chains.iter().zip(&self.lone).filter(|(_, lone)| lone.last != 0) {
            for link in self.code.links_of(chain) {
                self.counts.access_misses[link.counter as usize] += lone.misses;
                self.counts.last_missed[link.counter as usize] = lone.last;
            }
        }
        for (chain, pages) in self.code.chains.iter().zip(&self.lone_pages) {
            // The first of the instructions that access the same bytes waits for the page.
            if let Some(link) = self.code.links_of(chain).first().filter(|_| !pages.is_empty()) {
                self.counts.pages[link.counter as usize] += *pages;
            }
        }
        self.counts
    }
}

/// Keeps the events noted so far.
fn keep(sampler: Option<&OfThread>, window: &mut Under) {
    let resident = window.resident.take();
    let part = if resident.is_some() { Part::First(window.number) } else { Part::Later(window.number) };
    if let Some(sampler) = sampler {
        sampler.keep(part, resident, window.batch.words(), std::mem::take(&mut window.owners));
    }
    window.batch.clear();
    window.owners = Owners::default();
    window.numbers.clear();
}

impl Under {
    /// One more than the number of an object in the batch, given its name on the heap. The name may have been another
    /// object's before.
    fn number_of(&mut self, named: u32, object: HeapObject) -> u32 {
        let known = self.numbers.get(&named).copied();
        let objects = &mut self.owners.objects;
        match known.filter(|number| objects[*number as usize - 1] == object) {
            Some(number) => number,
            None => {
                objects.push(object);
                self.numbers.insert(named, objects.len() as u32);
                objects.len() as u32
            }
        }
    }
}

/// The levels behind the first, of data.
struct Data<'a> {
    l2: &'a mut Option<Cache>,
    tlb: &'a mut Tlb,
    is_in_window: bool,
}

impl Data<'_> {
    /// An access missed the first level: whether it missed the second one too, and what it needed of pages.
    #[inline]
    fn missed(&mut self, heap: &mut Heap, address: u64, size_bytes: u64) -> (bool, PageCounts) {
        let l2 = missed_by(self.l2, address, size_bytes);
        let translation = self.tlb.access(address, size_bytes, PageBytes::Small);
        (l2, heap.missed(address, l2, translation, self.is_in_window))
    }
}

/// Lines that missed the first level, and that no reported access has missed yet.
struct Missing {
    last_line: u64,
    missed: u32,
}

impl Missing {
    /// Whether the first access to these lines misses one of them.
    fn takes(&mut self, first: u64, last: u64) -> bool {
        let bits = match self.last_line.checked_sub(first) {
            // One line, and the last of all: the most common case.
            Some(0) => 1,
            _ => (first..=last)
                .filter_map(|line| 1_u32.checked_shl(u32::try_from(self.last_line.checked_sub(line)?).ok()?))
                .fold(0, |all, bit| all | bit),
        };
        let is_missed = self.missed & bits != 0;
        self.missed &= !bits;
        is_missed
    }
}

fn missed_by(l2: &mut Option<Cache>, address: u64, size_bytes: u64) -> bool {
    l2.as_mut().is_some_and(|l2| !l2.access(address, size_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Profile;
    use crate::chains::{Chain, Chains, Link};

    #[test]
    fn the_first_that_uses_a_line_is_what_misses_it() {
        let profile = Profile::new(&["l2=1M,16,64".to_owned()], 0).unwrap();
        let link = |insn, distance| Link { insn, slot: 0, distance, is_store: false, size_shift: 3 };
        // Three instructions, the second over the end of a line; accesses at 0x1040, 0x1038 and 0x1040 again.
        let insns = [(0x13c, 2), (0x13e, 4), (0x142, 2)];
        let chain = Chain { links: vec![link(0, 0), link(1, -8), link(2, 0)], only: None };
        let block = profile.block(&insns, &Chains { all: vec![chain], ..Chains::default() });
        let (mut thread, heap) = (profile.beyond_first_level(), &mut Heap::default());
        thread.fetch_missed(block.run, 0b11);
        thread.fetch_missed(block.run, 0b01);
        thread.chain_missed(heap, block.handles[0], 0x1040, 0b11);
        thread.chain_missed(heap, block.handles[0], 0x1040, 0b10);
        thread.executed(block.run, &block.handles, 5);
        let counts = thread.into_counts();
        let misses = |l1, l2| Misses { l1, l2 };
        // The instruction that crosses the end of a line is fetched with the first line.
        assert_eq!(counts.fetch_misses, [misses(2, 1), misses(0, 0)]);
        assert_eq!(counts.executions, [5, 0]);
        let loads: Vec<_> = counts.access_misses.iter().step_by(2).copied().collect();
        assert_eq!(loads, [misses(1, 1), misses(2, 1), misses(0, 0)]);
        assert_eq!(counts.accesses, [5, 0, 5, 0, 5, 0]);
    }

    #[test]
    fn an_access_alone_is_counted_with_its_last_address() {
        let profile = Profile::new(&["l2=1M,16,64".to_owned()], 0).unwrap();
        let link = Link { insn: 1, slot: 0, distance: 0, is_store: true, size_shift: 3 };
        let chain = Chain { links: vec![link], only: None };
        let block =
            profile.block(&[(0x100, 4), (0x104, 4)], &Chains { all: vec![chain], ..Chains::default() });
        let (mut thread, heap) = (profile.beyond_first_level(), &mut Heap::default());
        // The first of its two lines, the second, both, and a value for neither.
        for (address, missed) in
            [(0x103c, 0b10), (0x107c, 0b01), (0x10bc, 0b11), (0x10fc, 0b100), (0x1100, 0)]
        {
            thread.chain_missed(heap, block.handles[0], address, missed);
        }
        let counts = thread.into_counts();
        let misses = |l1, l2| Misses { l1, l2 };
        assert_eq!(counts.access_misses, [misses(0, 0), misses(0, 0), misses(0, 0), misses(3, 3)]);
        assert_eq!(counts.last_missed, [0, 0, 0, 0x10bc]);
    }
}
