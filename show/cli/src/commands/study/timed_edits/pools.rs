//! Candidates of pools: each type alone, all types together, and these on huge pages.

use super::candidate::{Candidate, Candidates};
use super::stalling::{LEAST, Stalling, StallingObject};
use lineup_advise::options::{Options, WantedPool};
use lineup_advise::pool::refusal;
use lineup_advise::sources::Sources;
use lineup_find::malloc_bytes;
use lineup_model::figure;

/// Types at most.
const MOST_TYPES: usize = 4;

/// Candidates for the types of objects that stall, those with the largest bounds first. Objects in blocks save the lines
/// of headers and of room behind objects.
pub(crate) fn candidates(sources: &Sources, options: &Options, stalling: &Stalling) -> Candidates {
    // Others are types of libraries.
    let is_own = |name: &String| options.meaning.splits.iter().any(|split| split.names.contains(name));
    let own = stalling.objects().iter().filter(|object| is_own(&object.type_name));
    let objects = own.map(|object| {
        let wanted = WantedPool {
            type_name: object.type_name.clone(),
            size_bytes: object.size_bytes,
            is_on_huge_pages: false,
        };
        (wanted, bound(object))
    });
    let mut objects: Vec<(WantedPool, f64)> = objects.filter(|(_, bound)| *bound >= LEAST).collect();
    objects.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut all = Candidates::default();
    let mut pools = Vec::new();
    for (wanted, bound) in objects {
        let words = in_words(&wanted, bound);
        match refusal(sources, options, &wanted) {
            Some(why) => all.refused.push(format!("{words}: no pool, since {why}")),
            None if pools.len() == MOST_TYPES => {
                all.refused.push(format!("{words}: not tried, since others stall more"));
            }
            None => {
                pools.push(wanted.clone());
                all.list.push(Candidate { pools: vec![wanted], words, ..Candidate::default() });
            }
        }
    }
    let names = |pools: &[WantedPool]| {
        let names: Vec<&str> = pools.iter().map(|one| one.type_name.as_str()).collect();
        names.join(", ")
    };
    if pools.len() > 1 {
        let words = format!("pools for {}", names(&pools));
        all.list.push(Candidate { pools: pools.clone(), words, ..Candidate::default() });
    }
    let huge = pools.into_iter().map(|one| WantedPool { is_on_huge_pages: true, ..one });
    let huge: Vec<WantedPool> = huge.filter(|one| refusal(sources, options, one).is_none()).collect();
    if !huge.is_empty() {
        let words = format!("pools on huge pages for {}", names(&huge));
        all.list.push(Candidate { pools: huge, words, ..Candidate::default() });
    }
    all
}

/// True where objects of some type stall enough, whoever declares it.
pub(crate) fn may_gain(stalling: &Stalling) -> bool {
    stalling.objects().iter().any(|object| bound(object) >= LEAST)
}

/// The stalls of a type for headers and room behind its objects, as a share of all.
fn bound(object: &StallingObject) -> f64 {
    object.share * (1.0 - object.size_bytes as f64 / malloc_bytes(object.size_bytes) as f64)
}

fn in_words(wanted: &WantedPool, bound: f64) -> String {
    let WantedPool { type_name, size_bytes, .. } = wanted;
    format!(
        "a pool for {type_name} ({size_bytes} of {} bytes, upper bound −{} of modelled stalls)",
        malloc_bytes(*size_bytes),
        figure::share(bound)
    )
}
