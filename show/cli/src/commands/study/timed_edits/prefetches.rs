//! Candidates of prefetches: each place at each distance, and all places together.

use super::candidate::{Candidate, Candidates};
use super::stalling::{LEAST, Stalling};
use lineup_advise::meaning::Meaning;
use lineup_advise::options::WantedPrefetch;
use lineup_advise::prefetch::{refusal, statement};
use lineup_model::chase::{Address, Chase};
use lineup_model::figure;

/// Distances that are tried, in turns of the loop.
const DISTANCES: [u32; 3] = [4, 16, 64];

/// The distance of a place when all are tried together.
const TOGETHER: u32 = 16;

/// Programs at most, all places together included.
pub(crate) const MOST: usize = 9;

/// Candidates for the loops of functions that stall, those with the largest bounds first.
pub(crate) fn candidates(meaning: &Meaning, stalling: &Stalling) -> Candidates {
    let bound = |chase: &Chase| stalling.bound(&chase.asked, chase.object.as_deref());
    let mut chases: Vec<(usize, &Chase, f64)> =
        meaning.chases.iter().enumerate().map(|(at, chase)| (at, chase, bound(chase))).collect();
    chases.retain(|(.., bound)| *bound >= LEAST);
    chases.sort_by(|(.., one), (.., other)| other.total_cmp(one));
    let mut all = Candidates::default();
    let mut places = Vec::new();
    for (at, chase, bound) in chases {
        match refusal(meaning, chase) {
            None => places.push((at, chase, bound)),
            Some(why) => {
                all.refused.push(format!("{}, {}: no prefetch, since {why}", chase.place(), hidden(bound)))
            }
        }
    }
    let has_several = places.len() > 1;
    let room = if has_several { MOST - 1 } else { MOST };
    let mut chosen = Vec::new();
    for (at, chase, bound) in places {
        let own = of_place(at, chase, bound);
        if all.list.len() + own.len() > room {
            all.refused.push(format!(
                "{}, {}: not tried, since others stall more",
                chase.place(),
                hidden(bound)
            ));
            continue;
        }
        chosen.push(WantedPrefetch {
            chase: at,
            turns: own.first().and_then(|one| one.prefetches[0].turns).map(|_| TOGETHER),
        });
        all.list.extend(own);
    }
    if chosen.len() > 1 {
        let words = format!("all {} places together", chosen.len());
        all.list.push(Candidate { prefetches: chosen, words, ..Candidate::default() });
    }
    all
}

fn of_place(at: usize, chase: &Chase, bound: f64) -> Vec<Candidate> {
    let Ok(ahead) = &chase.ahead else { return Vec::new() };
    let distances: Vec<Option<u32>> = match ahead.address {
        Address::Pointer { .. } => vec![None],
        Address::Element { .. } => DISTANCES.map(Some).to_vec(),
    };
    let candidate = |turns: Option<u32>| Candidate {
        prefetches: vec![WantedPrefetch { chase: at, turns }],
        words: format!("{}, {}: `{}`", chase.place(), hidden(bound), statement(ahead, turns)),
        ..Candidate::default()
    };
    distances.into_iter().map(candidate).collect()
}

/// The upper bound in words.
fn hidden(bound: f64) -> String {
    format!("upper bound −{} of modelled stalls", figure::share(bound))
}
