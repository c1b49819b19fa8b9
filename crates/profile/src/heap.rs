//! What lies where on the heap, and what is counted of the places that allocated it.
//!
//! Allocators give memory out in steps of 16 bytes, so a table of such steps tells whose an address is with two loads.
//! Large objects lie in a list of their own: they are few.

use foldhash::HashMap;
use lineup_recording::{AllocationSite, Misses};
use std::collections::BTreeMap;

/// Bytes of a step, as a power of two.
const STEP_SHIFT: u32 = 4;
/// Bytes of a page of the table, as a power of two.
const PAGE_SHIFT: u32 = 16;
const STEPS: usize = 1 << (PAGE_SHIFT - STEP_SHIFT);
/// Larger objects are listed.
const LARGE_BYTES: u64 = 1 << 16;

/// The sites of one page's steps.
type Page = Box<[u32; STEPS]>;

/// An object in use.
struct Object {
    bytes: u64,
    site: u32,
}

/// What is counted of a site.
#[derive(Default)]
struct Site {
    objects: u64,
    bytes: u64,
    now_bytes: u64,
    most_bytes: u64,
    misses: Misses,
}

/// The heap of a whole program, as far as its allocations were told.
#[derive(Default)]
pub struct Heap {
    objects: HashMap<u64, Object>,
    pages: HashMap<u64, u32>,
    tables: Vec<Page>,
    /// The page that was asked for last, and its table.
    last: Option<(u64, u32)>,
    large: BTreeMap<u64, (u64, u32)>,
    numbers: HashMap<Vec<u64>, u32>,
    /// By number, but for number 0.
    sites: Vec<Site>,
}

impl Heap {
    /// Memory was given out to who is told by return addresses, the innermost first.
    pub fn allocated(&mut self, address: u64, bytes: u64, frames: &[u64]) {
        // What was not seen to be given back.
        self.freed(address);
        let site = match self.numbers.get(frames) {
            Some(site) => *site,
            None => {
                self.sites.push(Site::default());
                let number = self.sites.len() as u32;
                self.numbers.insert(frames.to_vec(), number);
                number
            }
        };
        if let Some(own) = self.site(site) {
            own.objects += 1;
            own.bytes += bytes;
            own.now_bytes += bytes;
            own.most_bytes = own.most_bytes.max(own.now_bytes);
        }
        self.objects.insert(address, Object { bytes, site });
        match bytes > LARGE_BYTES {
            true => {
                self.large.insert(address, (address.saturating_add(bytes), site));
            }
            false => self.mark(address, bytes, site),
        }
    }

    /// Memory was given back.
    pub fn freed(&mut self, address: u64) {
        let Some(Object { bytes, site }) = self.objects.remove(&address) else { return };
        if let Some(own) = self.site(site) {
            own.now_bytes -= bytes;
        }
        match bytes > LARGE_BYTES {
            true => {
                self.large.remove(&address);
            }
            false => self.mark(address, bytes, 0),
        }
    }

    fn site(&mut self, number: u32) -> Option<&mut Site> {
        self.sites.get_mut((number as usize).checked_sub(1)?)
    }

    fn mark(&mut self, address: u64, bytes: u64, site: u32) {
        let end = address.saturating_add(bytes.max(1));
        let (mut step, last) = (address >> STEP_SHIFT, (end - 1) >> STEP_SHIFT);
        while step <= last {
            let page = step << STEP_SHIFT >> PAGE_SHIFT;
            let place = (step as usize) % STEPS;
            let count = (STEPS - place).min((last - step + 1) as usize);
            self.table(page)[place..place + count].fill(site);
            step += count as u64;
        }
    }

    fn table(&mut self, page: u64) -> &mut Page {
        let next = self.tables.len() as u32;
        let number = *self.pages.entry(page).or_insert(next);
        if number == next {
            let table = vec![0; STEPS].try_into().unwrap_or_else(|_| unreachable!("of this very length"));
            self.tables.push(table);
        }
        &mut self.tables[number as usize]
    }

    /// The site of the object that holds an address; 0 where none does.
    #[inline]
    pub fn site_of(&mut self, address: u64) -> u32 {
        if self.objects.is_empty() { 0 } else { self.known_site_of(address) }
    }

    fn known_site_of(&mut self, address: u64) -> u32 {
        let page = address >> PAGE_SHIFT;
        let table = match self.last {
            Some((last, table)) if last == page => Some(table),
            _ => self.pages.get(&page).copied().inspect(|table| self.last = Some((page, *table))),
        };
        let step = (address >> STEP_SHIFT) as usize % STEPS;
        let small = table.map_or(0, |table| self.tables[table as usize][step]);
        if small != 0 || self.large.is_empty() {
            return small;
        }
        let before = self.large.range(..=address).next_back();
        before.map_or(0, |(_, (end, site))| if address < *end { *site } else { 0 })
    }

    /// An access missed the first level, and perhaps the second.
    pub(crate) fn missed(&mut self, address: u64, is_l2: bool) {
        let site = self.site_of(address);
        if let Some(own) = self.site(site) {
            own.misses.count(is_l2);
        }
    }

    /// All sites.
    pub fn sites(&self) -> impl Iterator<Item = AllocationSite> {
        let mut numbered: Vec<(&Vec<u64>, u32)> =
            self.numbers.iter().map(|(frames, number)| (frames, *number)).collect();
        numbered.sort_by_key(|(_, number)| *number);
        numbered.into_iter().zip(&self.sites).map(|((frames, number), site)| AllocationSite {
            number,
            frames: frames.clone(),
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

    #[test]
    fn an_address_is_told_from_its_object_while_that_is_in_use() {
        let mut heap = Heap::default();
        assert_eq!(heap.site_of(0), 0);
        heap.allocated(0x1_fff0, 40, &[7, 8]);
        heap.allocated(0x3_0000, LARGE_BYTES + 1, &[9]);
        heap.allocated(0x2_0020, 1, &[7, 8]);
        let of = |heap: &mut Heap, addresses: &[u64]| -> Vec<u32> {
            addresses.iter().map(|address| heap.site_of(*address)).collect()
        };
        let places = [0x1_ffef, 0x1_fff0, 0x2_0017, 0x2_0020, 0x2_0030, 0x3_0000, 0x4_0000, 0x4_0001];
        assert_eq!(of(&mut heap, &places), [0, 1, 1, 1, 0, 2, 2, 0]);
        heap.freed(0x1_fff0);
        heap.freed(0x3_0000);
        heap.freed(0x3_0000);
        assert_eq!(of(&mut heap, &places), [0, 0, 0, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn sites_count_what_they_allocated_and_what_missed_there() {
        let mut heap = Heap::default();
        heap.allocated(0x1000, 32, &[7]);
        heap.allocated(0x1020, 16, &[7]);
        heap.freed(0x1000);
        // The same address once more, though nobody told that it was given back.
        heap.allocated(0x1020, 8, &[]);
        heap.missed(0x1024, true);
        heap.missed(0x1000, true);
        let site = |number, frames: &[u64], objects, bytes, most_bytes, missed| AllocationSite {
            number,
            frames: frames.to_vec(),
            objects,
            bytes,
            most_bytes,
            misses: Misses { l1: missed, l2: missed },
        };
        assert_eq!(heap.sites().collect::<Vec<_>>(), [site(1, &[7], 2, 48, 48, 0), site(2, &[], 1, 8, 8, 1)]);
    }
}
