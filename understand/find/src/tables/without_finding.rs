//! Data that stalls much and has no finding, with the reason: a type that is missing from the list would else seem
//! forgotten.

use crate::findings::{Finding, Kind, NoFinding, OwnerStalls, WithoutFinding};
use lineup_model::Library;

/// Data considered at most: those with most stalls.
const MOST: usize = 5;
/// Data with a smaller share of all stalls needs no reason.
const LEAST_SHARE: f64 = 0.05;

/// The reasons. `owners` are sorted by stalls, `tried` are all subjects that layouts were tried of, `shown` those that
/// are findings.
pub(crate) fn without_finding(
    owners: &[OwnerStalls],
    tried: &[(String, Kind, f64)],
    shown: &[Finding],
) -> Vec<WithoutFinding> {
    let is_shown = |owner: &OwnerStalls| {
        owner.class == "member"
            && shown.iter().any(|finding| finding.subject.as_deref() == Some(owner.name.as_str()))
    };
    let much = owners.iter().take(MOST).filter(|owner| owner.share >= LEAST_SHARE);
    much.filter(|owner| !is_shown(owner) && owner.class != "unnamed")
        .map(|owner| WithoutFinding {
            name: owner.name.clone(),
            share: owner.share,
            reason: reason(owner, tried),
        })
        .collect()
}

fn reason(owner: &OwnerStalls, tried: &[(String, Kind, f64)]) -> NoFinding {
    match owner.class {
        "member" if Library::is_of_allocator(&owner.name) => NoFinding::Allocator,
        "member" => match tried.iter().find(|(name, ..)| *name == owner.name) {
            Some((_, layout, gain)) if *gain > 0.0 => NoFinding::LittleGain { layout: *layout, gain: *gain },
            Some(_) => NoFinding::NoGain,
            None => NoFinding::NothingToMove,
        },
        "stack" => NoFinding::Stack,
        "library" => NoFinding::Library,
        _ => NoFinding::NoMembers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, class: &'static str, share: f64) -> OwnerStalls {
        OwnerStalls { name: name.to_owned(), class, share, ..OwnerStalls::default() }
    }

    #[test]
    fn each_of_the_data_with_most_stalls_has_a_reason() {
        let owners = [
            owner("node", "member", 0.4),
            owner("pair", "member", 0.2),
            owner("one", "member", 0.1),
            owner("u32[]", "buffer", 0.1),
            owner("malloc_chunk", "member", 0.06),
            owner("sixth", "member", 0.06),
        ];
        let tried = [("node".to_owned(), Kind::Order, 0.004), ("pair".to_owned(), Kind::Split, -0.1)];
        let reasons: Vec<NoFinding> =
            without_finding(&owners, &tried, &[]).into_iter().map(|one| one.reason).collect();
        let little = NoFinding::LittleGain { layout: Kind::Order, gain: 0.004 };
        let expected =
            [little, NoFinding::NoGain, NoFinding::NothingToMove, NoFinding::NoMembers, NoFinding::Allocator];
        assert_eq!(reasons, expected);
    }
}
