//! The tables of findings: where the whole run stalled, by owner, allocation site and function.

use crate::findings::{
    AllocationStalls, ClassShare, Coverage, FunctionStalls, MemberStalls, OwnerStalls, Stack, Stalls,
    ThreadWaits,
};
use crate::owner::{self, Owner, Spot};
use crate::stalls::clock;
use crate::stalls::counts::{FunctionCounts, Tally};
use crate::stalls::page_stalls::PageStalls;
use crate::stalls::visit_order::visits;
use crate::tables::site_table::{self, SeenMemory};
use crate::threads::contention::Waits;
use crate::trials::replay::cycles;
use crate::work::Work;
use foldhash::HashMap;
use lineup_coherence::WAIT_CYCLES;
use lineup_explain::name::Class;
use std::collections::BTreeMap;

/// Functions named with an owner or a finding at most.
const MOST_FUNCTIONS: usize = 3;
/// A function that has less of an owner's stalls than this share is not worth a look.
const LEAST_OF_OWNER: f64 = 0.1;
/// Data that never stalls is listed when accesses to it have at least this share of the time.
const LEAST_TIME: f64 = 0.01;
/// A function that never stalls is listed when it executes at least this share of all instructions.
const LEAST_EXECUTED: f64 = 0.0001;

impl Work<'_, '_> {
    /// Stalls of data by owner, member and function, and of code by function.
    pub(crate) fn stacks(&mut self) -> Vec<Stack> {
        let mut sums: BTreeMap<Vec<String>, f64> = BTreeMap::new();
        for ((spot, function), tally) in &self.attribution.spots_in {
            let cycles = tally.cycles(self.options.latency);
            if cycles > 0.0 {
                let spot = self.naming.spots[*spot as usize];
                let owner = owner::name(&mut self.naming.namer, spot.owner);
                let member = owner::member_name(&mut self.naming.namer, spot);
                let function = self.attribution.functions[*function].name.clone();
                let frames = ["data".to_owned(), owner, member, function];
                let frames = frames.into_iter().filter(|frame| !frame.is_empty()).collect();
                *sums.entry(frames).or_default() += cycles;
            }
        }
        for counts in &self.attribution.functions {
            let cycles = cycles(counts.fetch_misses, self.options.latency);
            *sums.entry(vec!["code".to_owned(), counts.name.clone()]).or_default() += cycles as f64;
        }
        let stacks = sums.into_iter().map(|(frames, cycles)| Stack { frames, cycles: cycles.round() as u64 });
        stacks.filter(|stack| stack.cycles > 0).collect()
    }

    /// Stalls by where objects were allocated; `None` when that was not seen.
    pub(crate) fn allocation_sites(&mut self, all_cycles: f64) -> Option<Vec<AllocationStalls>> {
        if self.recorded.sites.is_empty() {
            return None;
        }
        let seen = SeenMemory {
            used: &self.watched.used_by_site,
            visits: visits(&self.recorded.objects, |chain| self.sites.number_of(chain)),
            costs: self.counts_pages().then_some(self.options.page_costs),
            is_glibc: self.attribution.allocates_by_glibc(),
        };
        let (latency, naming) = (self.options.latency, &mut self.naming);
        Some(site_table::stalls(self.sites, &self.attribution, naming, &seen, latency, all_cycles))
    }

    /// Data stalls, or waits of threads, by owner.
    pub(crate) fn owners(&mut self, all_cycles: f64) -> Vec<OwnerStalls> {
        let mut all: Vec<OwnerStalls> = Vec::new();
        let spots = self.spots_by_owner();
        let undescribed = self.undescribed_images();
        for (owner, tally) in self.by_owner() {
            let stall_cycles = tally.cycles(self.options.latency);
            let own = spots.get(&owner).map_or(&[][..], Vec::as_slice);
            let waits =
                own.iter().fold(Waits::default(), |all, (number, ..)| all.plus(self.waits_at(*number)));
            let time = self.times.of_owner(owner);
            if stall_cycles <= 0.0 && waits == Waits::default() && time < LEAST_TIME {
                continue;
            }
            all.push(OwnerStalls {
                name: owner::name(&mut self.naming.namer, owner),
                class: match owner {
                    // The program's own code: its types are unknown, and no layout of them was judged.
                    Owner::Library(image, _) | Owner::Variable(image, _) if undescribed.contains(&image) => {
                        class_name(Class::Unnamed)
                    }
                    _ => class_name(owner::class(owner)),
                },
                size_bytes: match owner {
                    Owner::Type(ty) => self.naming.namer.catalog().size_bytes(ty),
                    _ => None,
                },
                accesses: tally.accesses,
                l1_misses: tally.l1,
                l2_misses: tally.l2,
                stall_cycles,
                share: stall_cycles / all_cycles,
                time,
                used_bytes_per_line: self.watched.used_per_line.get(&owner).copied(),
                thread_waits: self.told(waits),
                members: match owner {
                    Owner::Type(_) | Owner::ThreadLocal(_) => self.members(own, all_cycles),
                    _ => Vec::new(),
                },
                functions: self.functions_of(owner),
            });
        }
        let cost = |own: &OwnerStalls| {
            own.stall_cycles + own.thread_waits.map_or(0.0, ThreadWaits::all) * WAIT_CYCLES
        };
        all.sort_by(|one, other| {
            let order = cost(other).total_cmp(&cost(one));
            let order = order.then(other.time.total_cmp(&one.time));
            order.then_with(|| (&one.name, one.class).cmp(&(&other.name, other.class)))
        });
        all
    }

    /// Every spot with its number and counts, by whose it is.
    fn spots_by_owner(&self) -> HashMap<Owner, Vec<(u32, Spot, Tally)>> {
        let mut all: HashMap<Owner, Vec<(u32, Spot, Tally)>> = HashMap::default();
        for (number, tally) in &self.attribution.spots {
            let spot = self.naming.spots[*number as usize];
            all.entry(spot.owner).or_default().push((*number, spot, *tally));
        }
        all
    }

    /// Waits of threads at a spot, in the windows.
    fn waits_at(&self, spot: u32) -> Waits {
        self.between.by_spot.get(&spot).copied().unwrap_or_default()
    }

    /// Waits of the whole run, where there are threads.
    fn told(&self, waits: Waits) -> Option<ThreadWaits> {
        (self.between.threads > 1).then(|| self.thread_waits(waits))
    }

    fn members(&mut self, own: &[(u32, Spot, Tally)], all_cycles: f64) -> Vec<MemberStalls> {
        let member = |(number, spot, tally): &(u32, Spot, Tally)| {
            let stall_cycles = tally.cycles(self.options.latency);
            MemberStalls {
                path: owner::member_name(&mut self.naming.namer, *spot),
                offset: spot.at,
                size_bytes: spot.size_bytes,
                accesses: tally.accesses,
                l1_misses: tally.l1,
                l2_misses: tally.l2,
                stall_cycles,
                share: stall_cycles / all_cycles,
                thread_waits: self.told(self.waits_at(*number)),
            }
        };
        let mut members: Vec<MemberStalls> = own.iter().map(member).collect();
        members.sort_by(|one, other| {
            let order = other.stall_cycles.total_cmp(&one.stall_cycles);
            order.then_with(|| (one.offset, one.size_bytes).cmp(&(other.offset, other.size_bytes)))
        });
        members
    }

    /// The functions in which an owner stalls most, with their shares in its stalls.
    fn functions_of(&self, owner: Owner) -> Vec<(String, f64)> {
        let mut named = self.functions_among(owner, |_| true);
        named.truncate(MOST_FUNCTIONS);
        named
    }

    /// The functions among them that can be regions.
    pub(crate) fn regions_of(&self, owner: Owner) -> Vec<String> {
        let named = self.functions_among(owner, |counts| self.can_be_region(counts));
        let mut named: Vec<String> = named.into_iter().map(|(name, _)| name).collect();
        if named.len() > 1 {
            // It is called once: its work is better studied in the functions that it calls.
            named.retain(|name| name != "main");
        }
        named.truncate(MOST_FUNCTIONS);
        named
    }

    fn functions_among(
        &self,
        owner: Owner,
        is_wanted: impl Fn(&FunctionCounts) -> bool,
    ) -> Vec<(String, f64)> {
        let own = self.attribution.owners.iter().filter(|((of, _), _)| *of == owner);
        let own = own.map(|((_, function), tally)| (*function, tally.cycles(self.options.latency)));
        let mut own: Vec<(usize, f64)> = own.collect();
        // Sums of fractions come out the same each time.
        own.sort_by_key(|(function, _)| *function);
        let all: f64 = own.iter().map(|(_, cycles)| cycles).sum();
        let named = own.into_iter().filter_map(|(function, cycles)| {
            let counts = &self.attribution.functions[function];
            (is_wanted(counts) && cycles > 0.0).then(|| (counts.name.clone(), cycles / all))
        });
        let mut named: Vec<(String, f64)> = named.filter(|(_, share)| *share >= LEAST_OF_OWNER).collect();
        named.sort_by(|(one, share), (other, more)| more.total_cmp(share).then(one.cmp(other)));
        named
    }

    pub(crate) fn functions(&self, all_cycles: f64) -> Vec<FunctionStalls> {
        let samples = self.samples();
        let executed: u64 = self.attribution.functions.iter().map(|counts| counts.instructions).sum();
        let is_worth = |counts: &&FunctionCounts| {
            self.of_function(counts).cycles() > 0
                || !counts.pages.is_empty()
                || counts.samples > 0
                || counts.instructions as f64 >= LEAST_EXECUTED * executed as f64
        };
        let costs = &self.options.page_costs;
        let counts_pages = self.counts_pages();
        let of_pages = |counts: &FunctionCounts| costs.cycles(counts.pages);
        let for_pages: u64 = self.attribution.functions.iter().map(of_pages).sum();
        let cycles = executed + self.stalls().cycles() + for_pages;
        let all = self.attribution.functions.iter().filter(is_worth).map(|counts| {
            let stalls = self.of_function(counts);
            let of_cycles = clock::modelled(counts, stalls.cycles() + of_pages(counts), cycles);
            FunctionStalls {
                name: counts.name.clone(),
                image: counts.image.clone(),
                instructions: counts.instructions,
                code_lines: counts.code_lines,
                code_l1_misses: counts.fetch_misses.l1,
                code_l2_misses: counts.fetch_misses.l2,
                accesses: counts.accesses,
                l1_misses: counts.access_misses.l1,
                l2_misses: counts.access_misses.l2,
                used_bytes_per_line: (counts.used.0 > 0).then(|| counts.used.1 as f64 / counts.used.0 as f64),
                stalls,
                pages: counts_pages.then(|| PageStalls::of(counts.pages, costs)),
                share: stalls.cycles() as f64 / all_cycles,
                of_cycles,
                clock: (samples > 0).then(|| clock::share(counts.samples, samples, of_cycles)),
            }
        });
        let mut all: Vec<FunctionStalls> = all.collect();
        all.sort_by(|one, other| {
            let order = other.stalls.cycles().cmp(&one.stalls.cycles());
            order.then_with(|| (&one.name, &one.image).cmp(&(&other.name, &other.image)))
        });
        all
    }
}

/// The shares of stalls of data that have names, by class. Pages and programs' memory that a kernel copies have none.
/// Nor has data of code without debug information, whose stalls are `undescribed`, whatever an allocator's heads say.
pub(crate) fn coverage(
    owners: &[OwnerStalls],
    stalls: Stalls,
    (lack, undescribed): (Option<&'static str>, u64),
) -> Coverage {
    let all: f64 = owners.iter().map(|owner| owner.stall_cycles).sum();
    let of = |class: Class| {
        let own = owners.iter().filter(|owner| owner.class == class_name(class));
        own.fold(0.0, |sum, owner| sum + owner.stall_cycles)
    };
    let share = |cycles: f64| cycles / all.max(1.0);
    let nameless = (of(Class::Unnamed) + of(Class::Copied)).max((undescribed as f64).min(all));
    Coverage {
        of_all: (stalls.cycles() > 0).then(|| 1.0 - nameless / stalls.cycles() as f64),
        named: (all > 0.0).then(|| share(all - nameless)),
        lack,
        classes: Class::ALL
            .into_iter()
            .filter(|class| *class != Class::Copied || of(*class) > 0.0)
            .map(|class| ClassShare { class: class_name(class), share: share(of(class)) })
            .collect(),
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Variable => "variable",
        Class::Member => "member",
        Class::Stack => "stack",
        Class::Buffer => "buffer",
        Class::Constant => "constant",
        Class::Library => "library",
        Class::Copied => "copied",
        Class::Unnamed => "unnamed",
    }
}
