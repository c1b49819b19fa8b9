//! Pairs of allocations that one allocation could be: a function makes both, as many of each, they live equally long,
//! and are accessed together.

use crate::hand_findings::{AllocationPair, PairedSite};
use crate::recorded::Recorded;
use crate::stalls::allocation_sites::Sites;
use crate::trials::replay::cycles;
use foldhash::{HashMap, HashSet};
use lineup_recording::{AllocationSite, Latency, WindowObjects};

/// Fewer objects are not worth an edit.
const LEAST_OBJECTS: u64 = 1000;
/// Nor are pairs with a smaller share of all accesses in the windows.
const LEAST_ACCESSES: f64 = 0.01;
/// Chains of calls that are compared: those with most accesses.
const MOST_CHAINS: usize = 64;
/// Counts, and shares of objects in use at one time, that differ by less are the same.
const ALIKE: f64 = 0.01;
/// The part of the visits of each that come with a visit of the other.
const LEAST_TOGETHER: f64 = 0.5;
/// Visits, of either, between two that are together.
const NEAR: usize = 2;
/// The part of the objects that take and give back their places in the same order.
const LEAST_IN_STEP: f64 = 0.95;
/// Pairs that are reported.
const MOST_PAIRS: usize = 3;

/// The pairs, those with most accesses first.
pub(crate) fn pairs(
    recorded: &Recorded,
    sites: &Sites,
    of_accesses: u64,
    latency: Latency,
    all_cycles: f64,
) -> Vec<AllocationPair> {
    let accesses = accesses(&recorded.objects);
    let of = |site: &AllocationSite| accesses.get(&site.number).copied().unwrap_or_default();
    let mut chains: Vec<&AllocationSite> =
        recorded.sites.iter().filter(|site| site.objects >= LEAST_OBJECTS && of(site) > 0).collect();
    chains.sort_by_key(|site| (std::cmp::Reverse(of(site)), site.number));
    chains.truncate(MOST_CHAINS);
    let mut found: Vec<AllocationPair> = Vec::new();
    for (index, first) in chains.iter().enumerate() {
        for second in &chains[index + 1..] {
            let share = (of(first) + of(second)) as f64 / of_accesses.max(1) as f64;
            if share < LEAST_ACCESSES || !live_equally_long(first, second) {
                continue;
            }
            let Some((function, [one, other])) = joint(sites, &first.frames, &second.frames) else {
                continue;
            };
            let Some(together) = together(&recorded.objects, first.number, second.number) else { continue };
            let site =
                |site: &AllocationSite, line| PairedSite { line, objects: site.objects, bytes: site.bytes };
            let stalls = cycles(first.misses, latency) + cycles(second.misses, latency);
            // In the order of the source.
            let mut both = [site(first, one), site(second, other)];
            both.sort_by_key(|site| source_order(&site.line));
            found.push(AllocationPair {
                function,
                sites: both,
                together,
                accesses: share,
                share: stalls as f64 / all_cycles,
            });
        }
    }
    found.sort_by(|one, other| other.accesses.total_cmp(&one.accesses));
    found.truncate(MOST_PAIRS);
    found
}

/// The file, and the line as a number.
fn source_order(line: &str) -> (String, u64) {
    let (file, number) = line.rsplit_once(':').unwrap_or((line, ""));
    (file.to_owned(), number.parse().unwrap_or_default())
}

/// Accesses in the windows to the objects of each chain.
fn accesses(windows: &[WindowObjects]) -> HashMap<u32, u64> {
    let mut all: HashMap<u32, u64> = HashMap::default();
    for window in windows {
        let mut of_object = vec![0u64; window.objects.len() + 1];
        window.uses.iter().for_each(|used| of_object[*used as usize] += 1);
        for (object, uses) in window.objects.iter().zip(&of_object[1..]) {
            *all.entry(object.site).or_default() += uses;
        }
    }
    all
}

/// As many of each were made, and the same part of them was in use at one time.
fn live_equally_long(first: &AllocationSite, second: &AllocationSite) -> bool {
    let is_alike = |one: f64, other: f64| (one - other).abs() <= ALIKE * one.max(other);
    let live = |site: &AllocationSite| site.most_bytes as f64 / site.bytes.max(1) as f64;
    is_alike(first.objects as f64, second.objects as f64) && is_alike(live(first), live(second))
}

/// The function that makes both by different calls, and the lines of these calls. One call that two ways lead to makes
/// no pair, as in a function that builds both sides of a tree.
fn joint(sites: &Sites, first: &[u64], second: &[u64]) -> Option<(String, [String; 2])> {
    let common = first.iter().rev().zip(second.iter().rev()).take_while(|(one, other)| one == other).count();
    let at =
        |frames: &[u64]| frames.len().checked_sub(common + 1).and_then(|at| sites.frame(frames[at]).cloned());
    let (one, other) = (at(first)?, at(second)?);
    let maker = |frames: &[u64]| {
        frames.iter().copied().find(|back| sites.frame(*back).is_some_and(|frame| !frame.is_wrapper))
    };
    let is_joint =
        one.function == other.function && one.image == other.image && maker(first)? != maker(second)?;
    Some((one.function, [one.line?, other.line?])).filter(|_| is_joint)
}

/// The smaller of both shares of visits that come with a visit of the other object that was made at the same time;
/// `None` where it is small, or where the places that objects give back are taken in another order.
fn together(windows: &[WindowObjects], first: u32, second: u32) -> Option<f64> {
    let (mut near, mut all) = ([0u64; 2], [0u64; 2]);
    let mut places: HashMap<u32, [Option<u32>; 2]> = HashMap::default();
    let mut sizes: [HashSet<u32>; 2] = Default::default();
    for window in windows {
        let mut visits: Vec<(usize, u32)> = Vec::new();
        let used = window.uses.iter().filter_map(|used| window.objects.get((*used as usize).checked_sub(1)?));
        for object in used.filter(|object| object.site == first || object.site == second) {
            let side = usize::from(object.site == second);
            if visits.last() != Some(&(side, object.serial)) {
                visits.push((side, object.serial));
                places.entry(object.serial).or_default()[side] = Some(object.slot_by_site);
                sizes[side].insert(object.size_bytes);
            }
        }
        for (at, (side, serial)) in visits.iter().enumerate() {
            let around = &visits[at.saturating_sub(NEAR)..(at + NEAR + 1).min(visits.len())];
            all[*side] += 1;
            near[*side] += u64::from(around.contains(&(1 - side, *serial)));
        }
    }
    let share = |side: usize| near[side] as f64 / (all[side] as f64).max(1.0);
    let least = share(0).min(share(1));
    // Objects of other sizes are in other pools.
    let comparable = sizes.iter().all(|sizes| sizes.len() == 1);
    let both = || places.values().filter_map(|[one, other]| Some((one.as_ref()?, other.as_ref()?)));
    let in_step = both().filter(|(one, other)| one == other).count() as f64;
    let is_in_step = !comparable || in_step >= LEAST_IN_STEP * both().count() as f64;
    (least >= LEAST_TOGETHER && is_in_step).then_some(least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_recording::HeapObject;

    /// Visits of objects by site and serial number; each takes the place that `place` says.
    fn window(visits: &[(u32, u32)], place: impl Fn(u32, u32) -> u32) -> WindowObjects {
        let object = |(site, serial): &(u32, u32)| HeapObject {
            site: *site,
            serial: *serial,
            size_bytes: 24,
            slot_by_site: place(*site, *serial),
            ..HeapObject::default()
        };
        WindowObjects {
            window: 0,
            objects: visits.iter().map(object).collect(),
            uses: (1..=visits.len() as u32).collect(),
        }
    }

    #[test]
    fn objects_visited_with_their_partner_are_together() {
        let both: Vec<(u32, u32)> = (0..100).flat_map(|serial| [(1, serial), (2, serial)]).collect();
        assert_eq!(together(&[window(&both, |_, serial| serial)], 1, 2), Some(1.0));
        // The second is visited later, without the first.
        let apart: Vec<(u32, u32)> =
            (0..100).map(|serial| (1, serial)).chain((0..100).map(|serial| (2, serial))).collect();
        assert_eq!(together(&[window(&apart, |_, serial| serial)], 1, 2), None);
        // One in three visits of the first comes with the second.
        let seldom: Vec<(u32, u32)> = (0..300)
            .flat_map(|at| [Some((1, at)), (at % 3 == 0).then_some((2, at)), Some((9, at))])
            .flatten()
            .collect();
        assert_eq!(together(&[window(&seldom, |_, serial| serial)], 1, 2), None);
    }

    /// The second ones are freed while the first ones live: the next second one takes the place of the last.
    #[test]
    fn objects_that_give_back_their_places_at_other_times_are_no_pair() {
        let both: Vec<(u32, u32)> = (0..100).flat_map(|serial| [(1, serial), (2, serial)]).collect();
        let place = |site: u32, serial: u32| if site == 1 { serial } else { 0 };
        assert_eq!(together(&[window(&both, place)], 1, 2), None);
    }

    #[test]
    fn as_many_objects_of_another_lifetime_are_no_pair() {
        let site = |objects: u64, most: u64| AllocationSite {
            objects,
            bytes: 24 * objects,
            most_bytes: 24 * most,
            ..AllocationSite::default()
        };
        assert!(live_equally_long(&site(9000, 3000), &site(9000, 3000)));
        assert!(!live_equally_long(&site(9000, 3000), &site(9000, 1)));
        assert!(!live_equally_long(&site(9000, 3000), &site(4000, 3000)));
    }
}
