//! Data that takes or stalls for much time and has no finding, with the reason: a type that is missing from the list
//! would else seem forgotten.

use crate::findings::{Finding, Kind, NoFinding, OwnerStalls, WithoutFinding};
use crate::threads::line_fights::BETWEEN_SUBJECTS;
use crate::time_findings::Footprint;
use lineup_model::Library;

/// Types considered by time, and data considered by stalls.
const MOST: usize = 5;
/// A type with a smaller share of the time needs no reason.
const LEAST_TIME: f64 = 0.01;
/// Other data, which has no layout of its own, needs none with a smaller share of the time.
const LEAST_TIME_OF_OTHERS: f64 = 0.05;
/// Data with a smaller share of all stalls needs no reason.
const LEAST_SHARE: f64 = 0.05;
/// Nor does data whose stalls are a smaller share of all cycles.
const LEAST_OF_CYCLES: f64 = 0.001;

/// The reasons, of data with most time first. `owners` are sorted by stalls, `tried` are all subjects that layouts were
/// tried of for their stalls, `judged` the reasons of types by time. `shown` are findings and footprints. Stalls are
/// `stalls_of_cycles` of all cycles.
pub(crate) fn without_finding(
    owners: &[OwnerStalls],
    tried: &[(String, Kind, f64)],
    judged: &[(String, NoFinding)],
    (findings, footprints): (&[Finding], &[Footprint]),
    stalls_of_cycles: f64,
) -> Vec<WithoutFinding> {
    let is_shown = |owner: &OwnerStalls| {
        let is_of = |finding: &Finding| {
            let of_threads = || finding.kind.is_of_threads();
            let all = finding.subject.as_deref().unwrap_or_default();
            (owner.class == "member" || of_threads()) && all == owner.name
                || of_threads() && all.split(BETWEEN_SUBJECTS).any(|one| one == owner.name)
        };
        findings.iter().any(is_of)
            || owner.class == "member" && footprints.iter().any(|one| one.subject == owner.name)
    };
    let mut by_time: Vec<&OwnerStalls> = owners.iter().collect();
    by_time.sort_by(|one, other| other.time.total_cmp(&one.time));
    let types = by_time.iter().filter(|owner| owner.class == "member" && owner.time >= LEAST_TIME);
    let least = types.take(MOST).last().map_or(f64::INFINITY, |owner| owner.time);
    let mut much: Vec<&OwnerStalls> = by_time;
    much.retain(|owner| match owner.class {
        "member" => owner.time >= least,
        _ => owner.time >= LEAST_TIME_OF_OTHERS,
    });
    for owner in owners.iter().take(MOST) {
        let is_much = owner.share >= LEAST_SHARE && owner.share * stalls_of_cycles >= LEAST_OF_CYCLES;
        if is_much && !much.iter().any(|known| std::ptr::eq(*known, owner)) {
            much.push(owner);
        }
    }
    much.into_iter()
        .filter(|owner| !is_shown(owner) && owner.class != "unnamed")
        .map(|owner| WithoutFinding {
            name: owner.name.clone(),
            share: owner.share,
            time: owner.time,
            reason: reason(owner, tried, judged),
            by_hand: None,
        })
        .collect()
}

fn reason(owner: &OwnerStalls, tried: &[(String, Kind, f64)], judged: &[(String, NoFinding)]) -> NoFinding {
    let by_time = || judged.iter().find(|(name, _)| *name == owner.name).map(|(_, reason)| reason.clone());
    match owner.class {
        "member" if Library::is_of_allocator(&owner.name) => NoFinding::Allocator,
        "member" => match tried.iter().find(|(name, ..)| *name == owner.name) {
            Some((_, layout, gain)) if *gain > 0.0 => NoFinding::LittleGain { layout: *layout, gain: *gain },
            Some(_) => by_time().unwrap_or(NoFinding::NoGain),
            None => by_time().unwrap_or(NoFinding::NothingToMove),
        },
        "stack" => NoFinding::Stack,
        "library" => NoFinding::Library,
        _ => NoFinding::NoMembers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, class: &'static str, share: f64, time: f64) -> OwnerStalls {
        OwnerStalls { name: name.to_owned(), class, share, time, ..OwnerStalls::default() }
    }

    fn names(all: &[WithoutFinding]) -> Vec<&str> {
        all.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn each_of_the_data_with_most_stalls_has_a_reason() {
        let owners = [
            owner("node", "member", 0.4, 0.0),
            owner("pair", "member", 0.2, 0.0),
            owner("one", "member", 0.1, 0.0),
            owner("u32[]", "buffer", 0.1, 0.0),
            owner("malloc_chunk", "member", 0.06, 0.0),
            owner("sixth", "member", 0.06, 0.0),
        ];
        let tried = [("node".to_owned(), Kind::Order, 0.004), ("pair".to_owned(), Kind::Split, -0.1)];
        let found = without_finding(&owners, &tried, &[], (&[], &[]), 0.5);
        let reasons: Vec<NoFinding> = found.into_iter().map(|one| one.reason).collect();
        let little = NoFinding::LittleGain { layout: Kind::Order, gain: 0.004 };
        let expected =
            [little, NoFinding::NoGain, NoFinding::NothingToMove, NoFinding::NoMembers, NoFinding::Allocator];
        assert_eq!(reasons, expected);
        let hardly = without_finding(&owners, &tried, &[], (&[], &[]), 0.001);
        assert_eq!(names(&hardly), Vec::<&str>::new(), "the program hardly stalls");
    }

    /// Types first in their order by time, whatever they stall for; the sixth needs no reason, nor does a buffer with
    /// little time.
    #[test]
    fn each_of_the_types_with_most_time_has_a_reason_without_a_stall() {
        let owners = [
            owner("cold", "member", 0.9, 0.001),
            owner("f", "member", 0.0, 0.02),
            owner("e", "member", 0.0, 0.03),
            owner("(stack)", "stack", 0.0, 0.06),
            owner("int[]", "buffer", 0.0, 0.04),
            owner("d", "member", 0.0, 0.10),
            owner("c", "member", 0.0, 0.11),
            owner("b", "member", 0.0, 0.12),
            owner("a", "member", 0.0, 0.30),
        ];
        let full = NoFinding::Full { size_bytes: 24 };
        let found = without_finding(&owners, &[], &[("b".to_owned(), full.clone())], (&[], &[]), 0.0);
        assert_eq!(names(&found), ["a", "b", "c", "d", "(stack)", "e"]);
        assert_eq!(found[1].reason, full);
        assert_eq!(names(&without_finding(&owners, &[], &[], (&[], &[]), 0.5)).last(), Some(&"cold"));
    }
}
