//! The objects on the heap, and the counts of the places that allocated them.
//!
//! Allocators give memory out in steps of 16 bytes. So a table of such steps gives the owner of an address, and the end
//! of its object, with two loads. Large objects are in a list of their own, and so are the few that do not begin with a
//! step.

use crate::objects::{self, Objects};
use foldhash::{HashMap, HashSet};
use lineup_cache::Missed;
use lineup_recording::{AllocationSite, HeapObject, Misses, PageCounts, SiteMemory};
use std::collections::BTreeMap;

/// Bytes of a step, as a power of two.
const STEP_SHIFT: u32 = 4;
/// Bytes of a page of the table, as a power of two. Only written parts of a table take memory.
const PAGE_SHIFT: u32 = 20;
const STEPS: usize = 1 << (PAGE_SHIFT - STEP_SHIFT);
/// Pages that are found without a search. A power of two.
const NEAR_PAGES: usize = 16;
/// Larger objects are listed.
const LARGE_BYTES: u64 = 1 << 16;

/// Set at the beginning of an object whose end the table holds: the other bits are not its [`SITE`] alone.
const BEGINS: u32 = 1 << 31;
/// Set in the steps of objects that are listed.
const LISTED: u32 = 1 << 30;
/// Position of the number of bytes of an object's last step that are not its own: four bits.
const SPARE_AT: u32 = 26;
/// The bits of a site's number.
const SITE: u32 = (1 << SPARE_AT) - 1;

/// Bytes of a page of memory, as a power of two.
const MEMORY_PAGE_SHIFT: u32 = 12;
/// Bytes of the lines whose live bytes are counted, as a power of two.
const LINE_SHIFT: u32 = 6;
/// Steps that an object is followed back to its beginning at most.
const MOST_STEPS_BACK: u64 = objects::MOST_BYTES >> STEP_SHIFT;
/// Frames of a chain that name the place of the code for which it allocates.
const PLACE_FRAMES: usize = 2;

/// Callers that are kept of a chain, by the number of sites: recursion through many places has more chains than memory
/// could hold. There are as many pairs of a call and its caller as calls in the program's code.
const KEPT_CALLERS: [(usize, usize); 3] = [(1 << 14, usize::MAX), (1 << 15, 4), (usize::MAX, 2)];

/// An object in use.
#[derive(Clone, Copy)]
struct Object {
    bytes: u64,
    site: u32,
}

/// The counts of a site.
#[derive(Default)]
struct Site {
    /// The chain of calls, as return addresses.
    frames: Vec<u64>,
    objects: u64,
    bytes: u64,
    now_bytes: u64,
    most_bytes: u64,
    misses: Misses,
    /// The number of the place in the code.
    place: u32,
    memory: SiteMemory,
}

/// Bytes that glibc's `malloc` takes for an object: with its header, in steps, and of pages where it maps them.
fn chunk_bytes(bytes: u64) -> u64 {
    const MAPPED: u64 = 128 << 10;
    const PAGE: u64 = 1 << MEMORY_PAGE_SHIFT;
    match bytes >= MAPPED {
        true => bytes.saturating_add(16).div_ceil(PAGE).saturating_mul(PAGE),
        false => (bytes + 8).next_multiple_of(16).max(32),
    }
}

/// The heap of a whole program, as far as its allocations were reported.
#[derive(Default)]
pub struct Heap {
    /// Objects whose end the table does not hold.
    listed: HashMap<u64, Object>,
    pages: HashMap<u64, u32>,
    /// For each page the objects that its steps are part of, see [`BEGINS`]; 0 is no object.
    tables: Vec<Box<[u32]>>,
    /// For each page, at the first steps of small objects, their names among [`Heap::objects`].
    named: Vec<Box<[u32]>>,
    objects: Objects,
    /// Places in the code by their frames.
    places: HashMap<Box<[u64]>, u32>,
    /// Pages of the process, on the heap or not, that some access touched.
    touched: HashSet<u64>,
    /// Pages of recent lookups, each with one more than the number of its table.
    near: [(u64, u32); NEAR_PAGES],
    large: BTreeMap<u64, (u64, u32)>,
    /// Sites by the names of their chains of calls.
    names: HashMap<u64, u32>,
    /// Sites by their frames, of chains that were shortened.
    shortened: HashMap<Box<[u64]>, u32>,
    /// By number, without number 0.
    sites: Vec<Site>,
}

impl Heap {
    /// Gives a name to a chain of calls that asks for memory: its return addresses, the innermost first.
    pub fn chain(&mut self, name: u64, frames: &[u64]) {
        if self.names.contains_key(&name) {
            return;
        }
        let count = self.sites.len();
        let most = KEPT_CALLERS.iter().find(|(below, _)| count < *below).map_or(1, |(_, most)| *most);
        let kept = &frames[..frames.len().min(most)];
        let site = match self.shortened.get(kept) {
            Some(known) => *known,
            None => {
                let of_place = &frames[..frames.len().min(PLACE_FRAMES)];
                let next = self.places.len() as u32;
                let place = *self.places.entry(of_place.into()).or_insert(next);
                self.sites.push(Site { frames: kept.to_vec(), place, ..Site::default() });
                // Sites without room are counted with the last one.
                let site = (self.sites.len() as u32).min(SITE);
                if most < usize::MAX {
                    self.shortened.insert(kept.into(), site);
                }
                site
            }
        };
        self.names.insert(name, site);
    }

    /// A note when there were too many chains of calls for the sites.
    pub fn note(&self) -> Option<String> {
        let (most, _) = KEPT_CALLERS[0];
        (self.sites.len() > most).then(|| {
            format!(
                "memory is allocated by more than {most} chains of calls: of later ones only the last {} callers are kept",
                KEPT_CALLERS[1].1
            )
        })
    }

    /// A chain of calls of this name allocated memory.
    pub fn allocated(&mut self, address: u64, bytes: u64, name: u64) {
        // Removes an old object there whose release was not reported.
        self.freed(address);
        let Some(&site) = self.names.get(&name) else { return };
        let (mut serial, mut place) = (0, 0);
        if let Some(own) = self.site(site) {
            (serial, place) = (own.objects as u32, own.place);
            own.memory.chunk_bytes += chunk_bytes(bytes);
            own.objects += 1;
            own.bytes += bytes;
            own.now_bytes += bytes;
            own.most_bytes = own.most_bytes.max(own.now_bytes);
        }
        let object = Object { bytes, site };
        if bytes > LARGE_BYTES {
            self.listed.insert(address, object);
            self.large.insert(address, (address.saturating_add(bytes), site));
        } else if bytes == 0 || self.shares_step(address) {
            self.list(address, object);
        } else {
            let spare = (bytes.wrapping_neg() % (1 << STEP_SHIFT)) as u32;
            self.mark(address, bytes, (BEGINS | spare << SPARE_AT | site, site));
            if bytes <= objects::MOST_BYTES {
                let size_bytes = bytes as u32;
                let object = HeapObject { address, size_bytes, site, serial, ..HeapObject::default() };
                let named = self.objects.add(object, place);
                let table = self.table(address >> PAGE_SHIFT);
                self.named[table][(address >> STEP_SHIFT) as usize % STEPS] = named;
            }
        }
    }

    /// Memory was given back.
    pub fn freed(&mut self, address: u64) {
        let Some(Object { bytes, site }) = self.take(address).or_else(|| self.take_listed(address)) else {
            return;
        };
        if let Some(own) = self.site(site) {
            own.now_bytes = own.now_bytes.saturating_sub(bytes);
        }
    }

    /// Whether an object does not begin with a step, or with one that holds another. The object that began with that
    /// step is listed, too.
    fn shares_step(&mut self, address: u64) -> bool {
        let start = address >> STEP_SHIFT << STEP_SHIFT;
        if address == start {
            let table = self.table_of(address >> PAGE_SHIFT);
            return table.is_some_and(|table| {
                self.tables[table][(address >> STEP_SHIFT) as usize % STEPS] & LISTED != 0
            });
        }
        if let Some(before) = self.take(start) {
            self.list(start, before);
        }
        true
    }

    fn list(&mut self, address: u64, object: Object) {
        self.listed.insert(address, object);
        let mark = LISTED | object.site;
        self.mark(address, object.bytes, (mark, mark));
    }

    fn take_listed(&mut self, address: u64) -> Option<Object> {
        if self.listed.is_empty() {
            return None;
        }
        let object = self.listed.remove(&address)?;
        match object.bytes > LARGE_BYTES {
            true => {
                self.large.remove(&address);
            }
            false => self.mark(address, object.bytes, (0, 0)),
        }
        Some(object)
    }

    /// Removes the object that begins at an address, when the table holds its end, and returns it.
    fn take(&mut self, address: u64) -> Option<Object> {
        if !address.is_multiple_of(1 << STEP_SHIFT) {
            return None;
        }
        let first = (address >> STEP_SHIFT) as usize % STEPS;
        let mut page = address >> PAGE_SHIFT;
        let table = self.table_of(page)?;
        let entry = self.tables[table].get_mut(first).filter(|entry| **entry & BEGINS != 0)?;
        let (site, spare) = (*entry & SITE, *entry >> SPARE_AT & 0xf);
        *entry = 0;
        self.objects.remove(std::mem::take(&mut self.named[table][first]));
        let (mut steps, mut from) = (1, first + 1);
        let mut table = Some(table);
        while let Some(number) = table {
            let rest = &mut self.tables[number][from..];
            let own = rest.iter().take_while(|entry| **entry == site).count();
            rest[..own].fill(0);
            steps += own as u64;
            if own < rest.len() {
                break;
            }
            (page, from) = (page + 1, 0);
            table = self.table_of(page);
        }
        Some(Object { bytes: (steps << STEP_SHIFT) - u64::from(spare), site })
    }

    fn site(&mut self, number: u32) -> Option<&mut Site> {
        self.sites.get_mut((number as usize).checked_sub(1)?)
    }

    /// Writes the values of the first step and of the others of an object.
    fn mark(&mut self, address: u64, bytes: u64, (first, others): (u32, u32)) {
        let end = address.saturating_add(bytes.max(1));
        let (begin, last) = (address >> STEP_SHIFT, (end - 1) >> STEP_SHIFT);
        let mut step = begin;
        while step <= last {
            let page = step << STEP_SHIFT >> PAGE_SHIFT;
            let place = (step as usize) % STEPS;
            let count = (STEPS - place).min((last - step + 1) as usize);
            let number = self.table(page);
            let own = &mut self.tables[number][place..place + count];
            own.fill(others);
            if step == begin {
                own[0] = first;
            }
            step += count as u64;
        }
    }

    /// The number of a page's table, where there is one.
    #[inline]
    fn table_of(&mut self, page: u64) -> Option<usize> {
        let near = &mut self.near[page as usize % NEAR_PAGES];
        if near.0 != page || near.1 == 0 {
            *near = (page, self.pages.get(&page)? + 1);
        }
        Some(near.1 as usize - 1)
    }

    /// The number of a page's table, made if it does not exist.
    fn table(&mut self, page: u64) -> usize {
        self.table_of(page).unwrap_or_else(|| {
            self.pages.insert(page, self.tables.len() as u32);
            self.tables.push(vec![0; STEPS].into_boxed_slice());
            self.named.push(vec![0; STEPS].into_boxed_slice());
            self.tables.len() - 1
        })
    }

    /// The site of the object that holds an address; 0 where none does.
    #[inline]
    pub fn site_of(&mut self, address: u64) -> u32 {
        if self.sites.is_empty() { 0 } else { self.known_site_of(address) }
    }

    fn known_site_of(&mut self, address: u64) -> u32 {
        let step = (address >> STEP_SHIFT) as usize % STEPS;
        let table = self.table_of(address >> PAGE_SHIFT);
        let small = table.map_or(0, |table| self.tables[table][step] & SITE);
        if small != 0 || self.large.is_empty() {
            return small;
        }
        let before = self.large.range(..=address).next_back();
        before.map_or(0, |(_, (end, site))| if address < *end { *site } else { 0 })
    }

    /// An access missed the first level, and perhaps the second; returns what it needed of pages. In a window of the
    /// run, the live bytes of the line are counted.
    pub(crate) fn missed(
        &mut self,
        address: u64,
        is_l2: bool,
        translation: Missed,
        is_in_window: bool,
    ) -> PageCounts {
        let translations = Misses {
            l1: u64::from(translation != Missed::Nothing),
            l2: u64::from(translation == Missed::L2),
        };
        // The translation of a page that nothing touched is nowhere.
        let is_first = translation == Missed::L2 && self.touched.insert(address >> MEMORY_PAGE_SHIFT);
        let pages = PageCounts { first_touches: u64::from(is_first), translations };
        let site = self.site_of(address);
        if site == 0 {
            return pages;
        }
        let live_bytes = if is_in_window { self.live_bytes(address) } else { 0 };
        if let Some(own) = self.site(site) {
            own.misses.count(is_l2);
            own.memory.pages += pages;
            own.memory.lines += u64::from(is_in_window);
            own.memory.live_bytes += live_bytes;
        }
        pages
    }

    /// The entry of the table for a step.
    fn entry(&mut self, step: u64) -> u32 {
        let table = self.table_of(step << STEP_SHIFT >> PAGE_SHIFT);
        table.map_or(0, |table| self.tables[table][step as usize % STEPS])
    }

    /// The first step of the small object that has a step.
    fn first_step(&mut self, step: u64) -> Option<u64> {
        for back in 0..=MOST_STEPS_BACK.min(step) {
            let entry = self.entry(step - back);
            if entry & BEGINS != 0 {
                return Some(step - back);
            }
            if entry == 0 || entry & LISTED != 0 {
                return None;
            }
        }
        None
    }

    /// The small object at an address, with its name.
    pub(crate) fn object_at(&mut self, address: u64) -> Option<(u32, HeapObject)> {
        if self.sites.is_empty() {
            return None;
        }
        let first = self.first_step(address >> STEP_SHIFT)?;
        let table = self.table_of(first << STEP_SHIFT >> PAGE_SHIFT)?;
        let named = self.named[table][first as usize % STEPS];
        let object = self.objects.get(named)?;
        (address < object.address + u64::from(object.size_bytes)).then_some((named, object))
    }

    /// Bytes of the line at an address that belong to objects in use, as asked for.
    fn live_bytes(&mut self, address: u64) -> u64 {
        let first = address >> LINE_SHIFT << (LINE_SHIFT - STEP_SHIFT);
        (first..first + (1 << (LINE_SHIFT - STEP_SHIFT))).map(|step| self.live_bytes_of_step(step)).sum()
    }

    fn live_bytes_of_step(&mut self, step: u64) -> u64 {
        let entry = self.entry(step);
        if entry == 0 {
            return if self.site_of(step << STEP_SHIFT) == 0 { 0 } else { 1 << STEP_SHIFT };
        }
        let is_last = entry & LISTED == 0 && self.entry(step + 1) != entry & SITE;
        let first = if is_last { self.first_step(step) } else { None };
        let spare = first.map_or(0, |first| self.entry(first) >> SPARE_AT & 0xf);
        (1 << STEP_SHIFT) - u64::from(spare)
    }

    /// The memory of each site's objects.
    pub fn memory(&self) -> impl Iterator<Item = SiteMemory> {
        (1..).zip(&self.sites).map(|(site, own)| SiteMemory { site, ..own.memory.clone() })
    }

    /// All sites.
    pub fn sites(&self) -> impl Iterator<Item = AllocationSite> {
        (1..).zip(&self.sites).map(|(number, site)| AllocationSite {
            number,
            frames: site.frames.clone(),
            objects: site.objects,
            bytes: site.bytes,
            most_bytes: site.most_bytes,
            misses: site.misses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A heap that knows two chains of calls by the names 7 and 9.
    fn heap() -> Heap {
        let mut heap = Heap::default();
        heap.chain(7, &[70, 71]);
        heap.chain(9, &[90]);
        heap
    }

    #[test]
    fn an_address_is_told_from_its_object_while_that_is_in_use() {
        assert_eq!(Heap::default().site_of(0), 0);
        let mut heap = heap();
        // The first reaches over the end of a page.
        heap.allocated(0x1f_fff0, 40, 7);
        heap.allocated(0x30_0000, LARGE_BYTES + 1, 9);
        heap.allocated(0x20_0020, 1, 7);
        let of = |heap: &mut Heap, addresses: &[u64]| -> Vec<u32> {
            addresses.iter().map(|address| heap.site_of(*address)).collect()
        };
        let places = [0x1f_ffef, 0x1f_fff0, 0x20_0017, 0x20_0020, 0x20_0030, 0x30_0000, 0x31_0000, 0x31_0001];
        assert_eq!(of(&mut heap, &places), [0, 1, 1, 1, 0, 2, 2, 0]);
        heap.freed(0x1f_fff0);
        heap.freed(0x30_0000);
        heap.freed(0x30_0000);
        assert_eq!(of(&mut heap, &places), [0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn sites_count_what_they_allocated_and_what_missed_there() {
        let mut heap = heap();
        heap.allocated(0x1000, 32, 7);
        heap.allocated(0x1020, 16, 7);
        heap.freed(0x1000);
        // The same address once more, without a report that it was given back.
        heap.allocated(0x1020, 8, 9);
        heap.allocated(0x1040, 8, 8);
        heap.missed(0x1024, true, Missed::Nothing, false);
        heap.missed(0x1000, true, Missed::Nothing, false);
        let site = |number, frames: &[u64], objects, bytes, most_bytes, missed| AllocationSite {
            number,
            frames: frames.to_vec(),
            objects,
            bytes,
            most_bytes,
            misses: Misses { l1: missed, l2: missed },
        };
        let expected = [site(1, &[70, 71], 2, 48, 48, 0), site(2, &[90], 1, 8, 8, 1)];
        assert_eq!(heap.sites().collect::<Vec<_>>(), expected);
    }

    /// Every way down a recursion through many places is a chain of its own.
    #[test]
    fn of_too_many_chains_fewer_callers_are_kept_and_every_object_is_counted() {
        let mut heap = Heap::default();
        let chains = 100_000;
        for name in 0..chains {
            let frames: Vec<u64> =
                [7].into_iter().chain((0..12).map(|level| 100 + (name >> (4 * level)) % 16)).collect();
            heap.chain(name + 1, &frames);
            heap.allocated(0x10_0000 + 32 * name, 32, name + 1);
        }
        let sites: Vec<AllocationSite> = heap.sites().collect();
        assert!(sites.len() < 40_000, "{}", sites.len());
        assert!(heap.note().is_some());
        assert_eq!(sites.iter().map(|site| site.objects).sum::<u64>(), chains);
        assert!(sites.iter().all(|site| site.frames[0] == 7));
        assert_eq!(super::Heap::default().note(), None);
    }

    /// Objects of 16 bytes in chunks of 32: half of each line is headers and rounding.
    #[test]
    fn headers_of_small_objects_are_half_of_each_line() {
        let mut heap = heap();
        (0..64).for_each(|number| heap.allocated(0x1010 + 32 * number, 16, 7));
        // Of 40 bytes in chunks of 48, of which the middle one was given back.
        (0..3).for_each(|number| heap.allocated(0x9000 + 48 * number, 40, 9));
        heap.freed(0x9030);
        heap.missed(0x1050, true, Missed::L2, true);
        heap.missed(0x1090, false, Missed::L1, true);
        heap.missed(0x10d0, false, Missed::Nothing, false);
        heap.missed(0x9010, true, Missed::L2, true);
        heap.missed(0x9070, true, Missed::Nothing, true);
        let all: Vec<SiteMemory> = heap.memory().collect();
        let pages = |first_touches, l1, l2| PageCounts { first_touches, translations: Misses { l1, l2 } };
        let own = |site, chunk_bytes, pages, lines, live_bytes| SiteMemory {
            site,
            chunk_bytes,
            pages,
            lines,
            live_bytes,
        };
        // Of the second one's lines: 40 bytes of the first object, and 32 of the third.
        assert_eq!(all, [own(1, 64 * 32, pages(1, 2, 1), 2, 64), own(2, 144, pages(1, 1, 1), 2, 72)]);
        assert_eq!([0, 24, 25, 40, 128 << 10].map(chunk_bytes), [32, 32, 48, 48, (128 << 10) + 4096]);
    }

    /// An address in an object, at its last byte, in its padding, in one that is too large, and in none.
    #[test]
    fn a_small_object_is_found_from_each_of_its_bytes() {
        let mut heap = heap();
        heap.allocated(0x1f_ffe0, 1000, 9);
        heap.allocated(0x30_0000, 24, 7);
        heap.allocated(0x30_0020, 24, 7);
        heap.allocated(0x40_0000, 1025, 7);
        let mut of = |address| heap.object_at(address).map(|(_, object)| (object.address, object.serial));
        let places = [0x1f_ffe0, 0x20_03c7, 0x20_03c8, 0x30_0017, 0x30_0018, 0x30_0020, 0x40_0000, 0x50_0000];
        let (large, first, second) = (Some((0x1f_ffe0, 0)), Some((0x30_0000, 0)), Some((0x30_0020, 1)));
        assert_eq!(places.map(&mut of), [large, large, None, first, None, second, None, None]);
        heap.freed(0x30_0020);
        assert_eq!(heap.object_at(0x30_0020), None);
    }

    #[test]
    fn a_page_is_touched_first_once_whoever_touches_it() {
        let mut heap = Heap::default();
        let mut touches = |addresses: &[u64]| {
            let each = addresses.iter();
            each.map(|address| heap.missed(*address, true, Missed::L2, false).first_touches).sum::<u64>()
        };
        let pages: Vec<u64> = (0..1000).map(|page| 0x7000_0000 + page * 4096).collect();
        assert_eq!([touches(&pages), touches(&pages), touches(&[0x7000_0ff8, 0x703e_8000])], [1000, 0, 1]);
    }

    #[test]
    fn two_objects_in_one_step_are_told_apart_when_they_are_given_back() {
        let most = |addresses: [u64; 2]| {
            let mut heap = heap();
            addresses.iter().for_each(|address| heap.allocated(*address, 8, 7));
            addresses.iter().for_each(|address| heap.freed(*address));
            assert_eq!(heap.site_of(0x1000), 0);
            heap.allocated(0x2000, 20, 7);
            heap.sites().next().map(|site| site.most_bytes)
        };
        assert_eq!([most([0x1000, 0x1008]), most([0x1008, 0x1000])], [Some(20); 2]);
    }

    /// Against a list of all objects: sizes from none to large ones, and places that are no whole number of steps.
    #[test]
    fn what_is_in_use_is_counted_to_the_byte() {
        let mut heap = heap();
        let mut objects: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let (mut state, mut now, mut most) = (1_u64, [0; 2], [0; 2]);
        let mut next = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..20_000 {
            // Each place has room for the largest.
            let address = (1 + next(500)) << 17 | if next(8) == 0 { 8 } else { 0 };
            let taken = objects.range(address & !0xf..=address | 0xf).next().map(|(place, _)| *place);
            match taken {
                Some(place) => {
                    let (bytes, name) = objects.remove(&place).unwrap();
                    now[name as usize / 9] -= bytes;
                    heap.freed(place);
                    assert_eq!(heap.site_of(place + bytes / 2), 0);
                }
                None => {
                    let bytes = [next(100), next(5000), next((1 << 17) - 8), 0][next(4) as usize];
                    let name = [7, 9][next(2) as usize];
                    heap.allocated(address, bytes, name);
                    objects.insert(address, (bytes, name));
                    let own = name as usize / 9;
                    now[own] += bytes;
                    most[own] = most[own].max(now[own]);
                    assert_eq!(heap.site_of(address + bytes / 2), 1 + own as u32);
                }
            }
        }
        assert_eq!(heap.sites().map(|site| site.most_bytes).collect::<Vec<_>>(), most);
    }
}
