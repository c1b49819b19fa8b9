//! Constraints on a member's place: promises of a `lineup.lock`, and reasons from advice.

use crate::evidence::Evidence;
use lineup_advise::guard::{Group, Lock, Violation};
use lineup_model::abi::Abi;
use lineup_model::types::Types;

/// The groups of a lock that hold a type compiled for this machine.
pub(crate) fn groups<'l>(lock: &'l Lock, type_name: &'l str, abi: Abi) -> impl Iterator<Item = &'l Group> {
    lock.groups
        .iter()
        .filter(move |group| group.type_name == type_name && group.data_model == abi.data_model())
}

/// The promises about a type that a program breaks.
pub(crate) fn broken(lock: &Lock, type_name: &str, types: &Types, abi: Abi) -> Vec<Violation> {
    let groups: Vec<Group> = groups(lock, type_name, abi).cloned().collect();
    match groups.is_empty() {
        true => Vec::new(),
        false => Lock { groups }.check(types, abi).violations,
    }
}

/// The reasons why a member stays where it is, a sentence each.
pub(crate) fn reasons(
    member: &str,
    type_name: &str,
    abi: Abi,
    (lock, evidence): (Option<&Lock>, Option<&Evidence>),
) -> Vec<String> {
    let groups = lock.into_iter().flat_map(|lock| groups(lock, type_name, abi));
    let promised = groups.filter_map(|group| promise(group, member));
    let held = evidence.map_or(&[][..], |evidence| evidence.held(type_name)).iter();
    let held =
        held.filter(|held| held.members.is_empty() || held.members.iter().any(|name| is_meant(name, member)));
    let advised = held.map(|held| {
        let of_all = if held.members.is_empty() { "the whole type: " } else { "" };
        format!("advice: {of_all}{}", held.because)
    });
    promised.chain(advised).collect()
}

/// A promise about `lock` is one about `lock.owner` as well.
fn is_meant(promised: &str, member: &str) -> bool {
    member == promised || member.strip_prefix(promised).is_some_and(|rest| rest.starts_with('.'))
}

fn promise(group: &Group, member: &str) -> Option<String> {
    let others = |but: &str| {
        let others: Vec<String> =
            group.members.iter().filter(|name| *name != but).map(|name| format!("`{name}`")).collect();
        others.join(", ")
    };
    let why: Vec<String> = group
        .why
        .iter()
        .map(|why| format!("`{}` used {} per call", why.region, why.lines_per_call))
        .collect();
    let why = if why.is_empty() { String::new() } else { format!(" (lines: {})", why.join(", ")) };
    let line = group.line_bytes;
    if let Some(name) = group.members.iter().find(|name| is_meant(name, member)) {
        return Some(match others(name) {
            others if others.is_empty() => format!("lineup.lock: on one {line}-byte line{why}"),
            others => format!("lineup.lock: on one {line}-byte line with {others}{why}"),
        });
    }
    group.apart.iter().any(|name| is_meant(name, member)).then(|| {
        format!("lineup.lock: not on the {line}-byte line of {}: other threads write it{why}", others(""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_told_its_promises_and_not_those_of_others() {
        let lock = Lock::parse(
            "l",
            "schema = \"lineup.lock/1\"\n[[group]]\ntype = \"s\"\nline_bytes = 64\ndata_model = \"LP64\"\n\
             members = [\"a\", \"b\"]\napart = [\"c\"]\n[[group.why]]\nregion = \"f\"\nlines_per_call = 1.5\n",
        )
        .expect("a lock");
        let of = |member: &str, ty: &str, abi: Abi| reasons(member, ty, abi, (Some(&lock), None));
        assert_eq!(
            of("a.x", "s", Abi::X86_64),
            ["lineup.lock: on one 64-byte line with `b` (lines: `f` used 1.5 per call)"]
        );
        assert_eq!(
            of("c", "s", Abi::X86_64),
            [
                "lineup.lock: not on the 64-byte line of `a`, `b`: other threads write it (lines: `f` used 1.5 per call)"
            ]
        );
        assert!(of("ab", "s", Abi::X86_64).is_empty());
        assert!(of("a", "t", Abi::X86_64).is_empty() && of("a", "s", Abi::ARM).is_empty());
    }
}
