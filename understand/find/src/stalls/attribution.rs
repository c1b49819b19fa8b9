//! The counts of the whole run, divided among names and functions.
//!
//! An instruction's misses are known exactly. Among several names they are divided as its misses in the windows were,
//! or as its accesses if it missed nothing there. An instruction that no window has is named by its code or by the
//! address of its last miss. Otherwise it stays unnamed.

use crate::error::FindError;
use crate::owner::Owner;
use crate::recorded::Recorded;
use crate::stalls::clock::Clock;
use crate::stalls::counts::{FunctionCounts, FunctionNumber, Tally};
use crate::stalls::function_names::function_at;
use crate::stalls::window_names::Naming;
use crate::stalls::window_stalls::{Observed, SpotMisses, Watched};
use crate::trials::replay::cycles;
use foldhash::{HashMap, HashSet};
use lineup_debuginfo::DebugInfo;
use lineup_recording::{Latency, Misses, ProfileInstruction};
use std::collections::BTreeMap;

/// Accesses that miss nothing, and that no window has, are not named up to this share of all.
const NOT_LOOKED_AT: f64 = 0.0005;

/// An address in no file.
const NOWHERE: u64 = u64::MAX;

/// Counts of the whole run, by name and by function.
pub(crate) struct Attribution {
    /// By spot.
    pub(crate) spots: HashMap<u32, Tally>,
    /// By owner and function.
    pub(crate) owners: HashMap<(Owner, FunctionNumber), Tally>,
    /// By allocation site, 0 if that is not known, and owner.
    pub(crate) sites: BTreeMap<(u32, Owner), Tally>,
    /// By spot and function.
    pub(crate) spots_in: BTreeMap<(u32, FunctionNumber), Tally>,
    pub(crate) functions: Vec<FunctionCounts>,
    /// The function of each instruction that accesses data.
    by_pc: HashMap<u64, FunctionNumber>,
}

impl Attribution {
    /// Divides the counts of the whole run.
    pub(crate) fn of(
        recorded: &Recorded,
        debug: &[Option<DebugInfo>],
        naming: &mut Naming<'_>,
        Watched { observed, used_by_pc, .. }: &Watched,
        (latency, code_line_bytes): (Latency, u64),
        clock: Option<&Clock>,
    ) -> Result<Attribution, FindError> {
        let mut functions = Functions::new(recorded, debug);
        let mut lines: HashSet<(FunctionNumber, u64)> = HashSet::default();
        for run in &recorded.runs {
            let function = functions.number(run.pc);
            let last = run.pc + u64::from(run.size_bytes.max(1)) - 1;
            lines.extend((run.pc / code_line_bytes..=last / code_line_bytes).map(|line| (function, line)));
            let counts = functions.at(run.pc);
            counts.instructions += run.instructions;
            counts.accesses += run.loads + run.stores;
            counts.fetch_misses += run.fetch_misses;
            counts.access_misses += run.load_misses;
            counts.access_misses += run.store_misses;
        }
        lines.into_iter().for_each(|(function, _)| functions.all[function].code_lines += 1);
        for (pc, (lines, bytes)) in used_by_pc {
            let counts = functions.at(*pc);
            counts.used = (counts.used.0 + lines, counts.used.1 + bytes);
        }
        for (pc, pages) in &recorded.pages {
            functions.at(*pc).pages += *pages;
        }
        for (address, samples) in clock.iter().flat_map(|clock| clock.addresses(&recorded.images, debug)) {
            functions.at(address.unwrap_or(NOWHERE)).samples += samples;
        }
        let mut spots: HashMap<u32, Tally> = HashMap::default();
        let mut owners: HashMap<(Owner, FunctionNumber), Tally> = HashMap::default();
        let mut spots_in: BTreeMap<(u32, FunctionNumber), Tally> = BTreeMap::new();
        let mut sites: BTreeMap<(u32, Owner), Tally> = BTreeMap::new();
        let all: u64 = recorded.instructions.iter().map(|counts| counts.loads + counts.stores).sum();
        let rare = rare(unseen(recorded, observed), all);
        for counts in &recorded.instructions {
            let function = functions.number(counts.pc);
            for Side { is_store, accesses, misses, address } in sides(counts) {
                for ((spot, site), tally) in match observed.0.get(&(counts.pc, is_store)) {
                    Some(seen) => divide(seen, accesses, misses, latency),
                    None if misses == Misses::default() && accesses <= rare => {
                        vec![((naming.unnamed(), 0), whole(accesses, misses))]
                    }
                    None => {
                        let spot = naming.by_code(counts.pc, is_store, address)?;
                        vec![((spot, 0), whole(accesses, misses))]
                    }
                } {
                    let stores = if is_store { tally.accesses } else { 0.0 };
                    let tally = Tally { stores, ..tally };
                    spots.entry(spot).or_default().add(tally);
                    spots_in.entry((spot, function)).or_default().add(tally);
                    let owner = naming.spots[spot as usize].owner;
                    owners.entry((owner, function)).or_default().add(tally);
                    sites.entry((site, owner)).or_default().add(tally);
                }
            }
        }
        Ok(Attribution { spots, owners, sites, spots_in, functions: functions.all, by_pc: functions.known })
    }

    /// Whether the C library's own `malloc` ran, which takes memory by known rules.
    pub(crate) fn allocates_by_glibc(&self) -> bool {
        self.functions.iter().any(|counts| {
            let file = counts.image.rsplit('/').next().unwrap_or_default();
            let is_allocator = ["malloc", "calloc"].iter().any(|name| counts.name.ends_with(name));
            counts.name == "_int_malloc" || file.starts_with("libc.so") && is_allocator
        })
    }

    /// The number of the function of an instruction that accesses data, or that begins a run.
    pub(crate) fn number_of(&self, pc: u64) -> Option<FunctionNumber> {
        self.by_pc.get(&pc).copied()
    }

    /// The function of an instruction that accesses data.
    pub(crate) fn function_of(&self, pc: u64) -> Option<&FunctionCounts> {
        self.functions.get(self.number_of(pc)?)
    }
}

/// The loads, or the stores, of one instruction.
struct Side {
    is_store: bool,
    accesses: u64,
    misses: Misses,
    /// The last that missed.
    address: u64,
}

/// The sides of an instruction that have accesses.
fn sides(counts: &ProfileInstruction) -> impl Iterator<Item = Side> {
    let ProfileInstruction { loads, load_misses, load_address, .. } = *counts;
    let ProfileInstruction { stores, store_misses, store_address, .. } = *counts;
    let both = [
        Side { is_store: false, accesses: loads, misses: load_misses, address: load_address },
        Side { is_store: true, accesses: stores, misses: store_misses, address: store_address },
    ];
    both.into_iter().filter(|side| side.accesses > 0)
}

/// Accesses of the loads, and of the stores, of every instruction that missed nothing and that no window has.
fn unseen(recorded: &Recorded, observed: &Observed) -> impl Iterator<Item = u64> {
    recorded.instructions.iter().flat_map(|counts| {
        let is_unseen = |side: &Side| {
            side.misses == Misses::default() && !observed.0.contains_key(&(counts.pc, side.is_store))
        };
        sides(counts).filter(is_unseen).map(|side| side.accesses)
    })
}

/// The largest number of accesses at which an unseen instruction is rare. Rare instructions are not analysed, since
/// that would take an analysis of whole functions. Together they have at most a share of [`NOT_LOOKED_AT`] of all
/// accesses.
fn rare(unseen: impl Iterator<Item = u64>, all: u64) -> u64 {
    let mut counted: BTreeMap<u64, u64> = BTreeMap::new();
    unseen.for_each(|accesses| *counted.entry(accesses).or_default() += accesses);
    let mut left = (all as f64 * NOT_LOOKED_AT) as u64;
    let mut fits = |sum: u64| left.checked_sub(sum).map(|rest| left = rest).is_some();
    counted.into_iter().take_while(|(_, sum)| fits(*sum)).last().map_or(0, |(accesses, _)| accesses)
}

fn whole(accesses: u64, misses: Misses) -> Tally {
    Tally { accesses: accesses as f64, stores: 0.0, l1: misses.l1 as f64, l2: misses.l2 as f64 }
}

/// Divides an instruction's counts among the spots that it was seen at, and their allocation sites.
fn divide(seen: &SpotMisses, accesses: u64, misses: Misses, latency: Latency) -> Vec<((u32, u32), Tally)> {
    let all_accesses: u64 = seen.values().map(|(accesses, _)| accesses).sum();
    let all_stalls: u64 = seen.values().map(|(_, misses)| cycles(*misses, latency)).sum();
    let total = whole(accesses, misses);
    let share = |(own_accesses, own_misses): &(u64, Misses)| {
        let of_accesses = *own_accesses as f64 / all_accesses.max(1) as f64;
        let of_stalls = match all_stalls {
            0 => of_accesses,
            all => cycles(*own_misses, latency) as f64 / all as f64,
        };
        Tally {
            accesses: total.accesses * of_accesses,
            stores: 0.0,
            l1: total.l1 * of_stalls,
            l2: total.l2 * of_stalls,
        }
    };
    let mut divided: Vec<((u32, u32), Tally)> =
        seen.iter().map(|(spot, counts)| (*spot, share(counts))).collect();
    // Sums of fractions come out the same each time.
    divided.sort_by_key(|(spot, _)| *spot);
    divided
}

/// Functions by the addresses of their code.
struct Functions<'a> {
    recorded: &'a Recorded,
    debug: &'a [Option<DebugInfo>],
    all: Vec<FunctionCounts>,
    numbers: HashMap<(String, String), FunctionNumber>,
    known: HashMap<u64, FunctionNumber>,
}

impl<'a> Functions<'a> {
    fn new(recorded: &'a Recorded, debug: &'a [Option<DebugInfo>]) -> Self {
        Functions { recorded, debug, all: Vec::new(), numbers: HashMap::default(), known: HashMap::default() }
    }

    fn at(&mut self, pc: u64) -> &mut FunctionCounts {
        let number = self.number(pc);
        &mut self.all[number]
    }

    fn number(&mut self, pc: u64) -> FunctionNumber {
        if let Some(known) = self.known.get(&pc) {
            return *known;
        }
        let (name, image) = function_at(self.recorded, self.debug, pc);
        let next = self.all.len();
        let number = *self.numbers.entry((name.clone(), image.clone())).or_insert(next);
        if number == next {
            self.all.push(FunctionCounts { name, image, ..FunctionCounts::default() });
        }
        self.known.insert(pc, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five of 10,000 accesses may be left without a name: those of two instructions with one each, and not three with
    /// two.
    #[test]
    fn all_that_is_rare_is_little() {
        assert_eq!(rare([1, 1, 2, 2, 2, 40].into_iter(), 10_000), 1);
        assert_eq!(rare([1, 1, 2, 2, 2, 40].into_iter(), 16_000), 2);
        assert_eq!(rare([7].into_iter(), 10_000), 0);
        assert_eq!(rare([].into_iter(), 10_000), 0);
    }

    #[test]
    fn misses_are_divided_as_they_were_seen_and_accesses_as_theirs() {
        let latency = Latency { l2_cycles: 10, memory_cycles: 100 };
        let seen = SpotMisses::from_iter([
            ((1, 0), (30, Misses { l1: 1, l2: 0 })),
            ((1, 7), (10, Misses { l1: 3, l2: 0 })),
            ((3, 0), (60, Misses::default())),
        ]);
        let divided = divide(&seen, 1000, Misses { l1: 40, l2: 4 }, latency);
        let expected = [
            ((1, 0), Tally { accesses: 300.0, stores: 0.0, l1: 10.0, l2: 1.0 }),
            ((1, 7), Tally { accesses: 100.0, stores: 0.0, l1: 30.0, l2: 3.0 }),
            ((3, 0), Tally { accesses: 600.0, stores: 0.0, l1: 0.0, l2: 0.0 }),
        ];
        assert_eq!(divided, expected);
        let unmissed =
            SpotMisses::from_iter([((1, 0), (3, Misses::default())), ((2, 0), (1, Misses::default()))]);
        let l1: Vec<f64> = divide(&unmissed, 8, Misses { l1: 4, l2: 0 }, latency)
            .iter()
            .map(|(_, tally)| tally.l1)
            .collect();
        assert_eq!(l1, [3.0, 1.0]);
        assert_eq!(Tally { accesses: 0.0, stores: 0.0, l1: 3.0, l2: 1.0 }.cycles(latency), 120.0);
    }
}
