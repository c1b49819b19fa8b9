//! The costs of pages on this machine: measured once, and kept in the user's cache folder.

use crate::trials::cycles::{REPEATS, cycles_per_ns, shortest_ns};
use lineup_stats::random::{Seed, shuffle};
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Costs in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageCosts {
    /// Of the first touch of a page of 4 KiB, the system's work included.
    pub first_touch_cycles: u32,
    /// The same of a huge page of 2 MiB; of all its small pages where the system gives no huge ones.
    pub huge_first_touch_cycles: u32,
    /// Of a translation that the second level of data TLBs has.
    pub dtlb_l1_cycles: u32,
    /// Of a translation that no level has.
    pub dtlb_l2_cycles: u32,
}

/// The first line of the file.
const HEADER: &str = "lineup page costs 2";
const FILE: &str = "page-costs.txt";
const PAGE_BYTES: usize = 4096;
const LINE_BYTES: usize = 64;
/// Pages whose first touch is measured: too many for memory that the allocator keeps.
const FRESH_PAGES: usize = 12_288;
/// Huge pages whose first touch is measured.
const FRESH_HUGE_PAGES: usize = 24;
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Pages that the second level of translations has, and the first one has not.
const FEW_PAGES: usize = 512;
/// Pages that no level has. A line of each fits the second level of the cache.
const MANY_PAGES: usize = 8192;

impl PageCosts {
    /// The costs kept from an earlier measurement on this processor, with their file.
    pub fn kept() -> Option<(PageCosts, PathBuf)> {
        let file = file()?;
        let costs = PageCosts::read(&fs::read_to_string(&file).ok()?, &processor())?;
        Some((costs, file))
    }

    /// The kept costs. Measures them where none are, and keeps them where that is possible; it takes about a second.
    pub fn of_this_machine() -> PageCosts {
        if let Some((costs, _)) = PageCosts::kept() {
            return costs;
        }
        let costs = PageCosts::measured();
        if let Some(file) = file() {
            // Without a folder to keep it in, the next run measures again.
            let _ = file.parent().map(fs::create_dir_all);
            let _ = fs::write(&file, costs.text(&processor()));
        }
        costs
    }

    /// Measures them.
    pub fn measured() -> PageCosts {
        let cycles_per_ns = cycles_per_ns();
        let cycles = |ns: f64, least: u32, most: u32| {
            ((ns * cycles_per_ns).round().clamp(f64::from(least), f64::from(most))) as u32
        };
        let apart_by = |lines: usize| {
            let (near, far) = (chase_ns(lines, LINE_BYTES), chase_ns(lines, PAGE_BYTES + LINE_BYTES));
            (far - near).max(0.0)
        };
        let first = apart_by(FEW_PAGES);
        let dtlb_l1_cycles = cycles(first, 1, 100);
        let first_touch_ns = first_touch_ns();
        let of_small_ones = first_touch_ns * (HUGE_PAGE_BYTES / PAGE_BYTES) as f64;
        PageCosts {
            first_touch_cycles: cycles(first_touch_ns, 100, 100_000),
            huge_first_touch_cycles: cycles(
                huge_first_touch_ns().unwrap_or(of_small_ones),
                1000,
                100_000_000,
            ),
            dtlb_l1_cycles,
            dtlb_l2_cycles: cycles(first + apart_by(MANY_PAGES), dtlb_l1_cycles, 1000),
        }
    }

    fn text(self, processor: &str) -> String {
        let PageCosts { first_touch_cycles, huge_first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles } = self;
        format!(
            "{HEADER}\n{processor}\n{first_touch_cycles} {huge_first_touch_cycles} {dtlb_l1_cycles} {dtlb_l2_cycles}\n"
        )
    }

    /// Reads [`PageCosts::text`] back, of the same processor.
    fn read(text: &str, processor: &str) -> Option<PageCosts> {
        let mut lines = text.lines();
        if lines.next()? != HEADER || lines.next()? != processor {
            return None;
        }
        let costs: Vec<u32> = lines.next()?.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [first_touch_cycles, huge_first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles] = costs[..] else {
            return None;
        };
        Some(PageCosts { first_touch_cycles, huge_first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles })
    }
}

fn file() -> Option<PathBuf> {
    Some(lineup_bundle::cache_folder().ok()?.join(FILE))
}

/// The processor's name: a cache folder may be shared between machines.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name") || line.starts_with("CPU part"));
    name.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, name)| name.trim().to_owned())
}

fn first_touch_ns() -> f64 {
    shortest_ns(FRESH_PAGES, || {
        let mut fresh = vec![0_u8; FRESH_PAGES * PAGE_BYTES];
        for page in fresh.chunks_mut(PAGE_BYTES) {
            page[0] = 1;
        }
        black_box(&fresh);
    })
}

/// `None` where the system gives no huge pages.
fn huge_first_touch_ns() -> Option<f64> {
    let each = (0..REPEATS).map(|_| {
        let mut fresh = lineup_mapping::on_huge_pages((FRESH_HUGE_PAGES + 1) * HUGE_PAGE_BYTES).ok()?;
        let before_first = fresh.as_ptr().align_offset(HUGE_PAGE_BYTES);
        let begun = Instant::now();
        for page in fresh[before_first..].chunks_exact_mut(PAGE_BYTES) {
            page[0] = 1;
        }
        Some(begun.elapsed().as_nanos() as f64 / FRESH_HUGE_PAGES as f64)
    });
    each.collect::<Option<Vec<f64>>>().map(|all| all.into_iter().fold(f64::MAX, f64::min))
}

/// Nanoseconds of a load that depends on the one before, over lines that lie `distance` bytes apart, in an order that
/// no prefetcher follows.
fn chase_ns(lines: usize, distance: usize) -> f64 {
    const STEPS: usize = 200_000;
    let step = distance / size_of::<u32>();
    let mut order: Vec<u32> = (0..lines as u32).collect();
    shuffle(&mut order, Seed(1));
    let mut next = vec![0_u32; lines * step];
    // One cycle through all of them.
    for (from, to) in order.iter().zip(order.iter().cycle().skip(1)) {
        next[*from as usize * step] = to * step as u32;
    }
    let mut at = 0;
    shortest_ns(STEPS, || {
        for _ in 0..STEPS {
            at = next[at] as usize;
        }
        black_box(at);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_kept_for_one_processor() {
        let costs = PageCosts {
            first_touch_cycles: 1400,
            huge_first_touch_cycles: 300_000,
            dtlb_l1_cycles: 7,
            dtlb_l2_cycles: 28,
        };
        let text = costs.text("a processor");
        assert_eq!(PageCosts::read(&text, "a processor"), Some(costs));
        assert_eq!(PageCosts::read(&text, "another"), None);
        for damaged in
            ["", "lineup page costs 2\na processor\n1 2 3\n", "lineup page costs 2\na processor\n1 2 3 x\n"]
        {
            assert_eq!(PageCosts::read(damaged, "a processor"), None, "{damaged}");
        }
    }

    /// A miss of both levels costs more than one of the first, and a first touch more than both.
    #[test]
    fn measured_costs_grow_with_what_has_to_be_done() {
        let costs = PageCosts::measured();
        assert!(costs.dtlb_l1_cycles <= costs.dtlb_l2_cycles, "{costs:?}");
        assert!(costs.dtlb_l2_cycles <= costs.first_touch_cycles, "{costs:?}");
        assert!(costs.first_touch_cycles <= costs.huge_first_touch_cycles, "{costs:?}");
    }
}
