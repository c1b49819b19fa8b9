//! Edits that no kind of fix makes, sketched for the person who makes them.

use crate::findings::{Evidence, Kind, LaidMember, MemberMap, WordChange};
use crate::trials::layouts::malloc_bytes;
use crate::trials::pieces::Wide;
use lineup_model::{Library, first_names};

/// Members named in a sketch.
const MEMBERS: usize = 8;

/// Of this many bytes of an object, one at least belongs to a member that may be smaller.
const LEAST_WIDE: u64 = 8;

/// The edit in words; `None` where a command makes it for certain. A study tries to write it where `is_written` says so.
/// Members that are used much stay together, if the layout says which those are.
pub(crate) fn edit(
    name: &str,
    (kind, is_written): (Kind, bool),
    evidence: &Evidence,
    map: Option<&MemberMap>,
) -> Option<String> {
    let Evidence::Type { used, unused, largest_variant, size_bytes, hole_bytes, in_arrays, .. } = evidence
    else {
        return None;
    };
    let of_all = map.map(|map| {
        let uses = |one: &LaidMember| one.uses.iter().map(|(_, loads, stores)| loads + stores).sum::<f64>();
        // An access may span several members.
        let single = map.members.iter().filter(|member| !member.path.contains(".."));
        let (mut staying, leaving): (Vec<&LaidMember>, Vec<&LaidMember>) =
            single.partition(|member| member.offset_after.is_some());
        staying.sort_by(|one, other| uses(other).total_cmp(&uses(one)));
        let staying: Vec<String> = staying.into_iter().map(|member| member.path.clone()).collect();
        let all = staying.len() + leaving.len();
        (staying, all)
    });
    let of_all = of_all.filter(|(staying, all)| !staying.is_empty() && staying.len() < *all);
    let others = match (&of_all, unused) {
        // The map lists parts of members, and none that no access reached: its rows are no count of members.
        (Some(_), _) => "the other members".to_owned(),
        (None, 0) => "members that are used less".to_owned(),
        (None, 1) => "one member that is not used".to_owned(),
        (None, unused) => format!("{unused} members that are not used"),
    };
    let used = first_names(of_all.as_ref().map_or(used, |(staying, _)| staying), MEMBERS);
    let sketch = match kind {
        Kind::Split => format!("{name} keeps {used}, and a pointer to a second struct with {others}"),
        Kind::Columns => format!("instead of an array of {name}, an array for each of {used}"),
        Kind::ReprC => {
            format!("#[repr(C)] on {name}, with its members in the order {used}, then {others}")
        }
        Kind::Boxed => format!("{name} keeps {used}, and a Box of a second struct with {others}"),
        Kind::BoxedVariant => {
            let variant = largest_variant.as_ref().map_or("the largest variant", |largest| &largest.name);
            format!("{variant} of {name} holds a Box of what it holds now")
        }
        Kind::NoHoles => {
            let fill = if *in_arrays > 0.5 {
                "an array for its small members, or one block for several elements, large members first"
            } else {
                "members of the structs that it holds as its own, the large ones first"
            };
            format!("{hole_bytes} of the {size_bytes} bytes of {name} are no member's: {fill}")
        }
        Kind::Order | Kind::Narrow | Kind::Prefetch | Kind::Code | Kind::OwnLines | Kind::OwnParts => {
            return None;
        }
    };
    Some(match is_written {
        true => format!("lineup study writes this where the sources allow it: {sketch}"),
        false => format!("by hand, since no patch is made for this: {sketch}"),
    })
}

/// The order of members of a type that a template makes, in words.
pub(crate) fn order_of_template(name: &str, map: Option<&MemberMap>) -> String {
    let members = map.map(|map| map.members.iter()).into_iter().flatten();
    let mut placed: Vec<(u64, &str)> =
        members.filter_map(|member| Some((member.offset_after?, outermost(&member.path)))).collect();
    placed.sort_unstable();
    let mut order: Vec<&str> = placed.into_iter().map(|(_, member)| member).collect();
    order.dedup();
    let order = match order.is_empty() {
        true => "the members that are used most".to_owned(),
        false => first_names(&order, MEMBERS),
    };
    let template = name.split('<').next().unwrap_or(name);
    format!(
        "by hand, since a study leaves the members of templates as they are: {template} begins with {order}, and the \
         other members follow"
    )
}

/// Lines of their own for data of types that templates make, in words.
pub(crate) fn own_lines_of_template(names: &[String]) -> String {
    format!(
        "by hand, since a study leaves the members of templates as they are: alignas(64) before the members of {} that \
         different threads write",
        names.join(" and ")
    )
}

/// The member of an object in which a part of it lies: `title` of `title._M_dataplus`.
fn outermost(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// The members of a type that may be smaller, in words. Where `malloc` makes the objects, only some sizes take less.
pub(crate) fn smaller(size_bytes: u64, wide: Wide, is_of_malloc: bool) -> Option<String> {
    // Of an object that is all else, smaller members save next to nothing.
    if (wide.integer_bytes + wide.pointer_bytes) * LEAST_WIDE < size_bytes {
        return None;
    }
    let of = |bytes: u64, words: &str| (bytes > 0).then(|| format!("{bytes} are {words}"));
    let integers = of(wide.integer_bytes, "integers of 4 bytes or more");
    let pointers = of(wide.pointer_bytes, "pointers, which indices could be");
    let members: Vec<String> = integers.into_iter().chain(pointers).collect();
    let taken = malloc_bytes(size_bytes);
    let step = taken.saturating_sub(16);
    let classes = (is_of_malloc && step >= 32).then(|| {
        format!("; malloc takes {taken} for an object, and {step} for one of {} or fewer", step - 8)
    });
    let classes = classes.unwrap_or_default();
    (!members.is_empty())
        .then(|| format!("by hand, fewer bytes: of its {size_bytes}, {}{classes}", members.join(", ")))
}

/// Loads ahead, in words.
pub(crate) fn ahead(name: &str, is_written: bool, smaller: Option<String>) -> String {
    let by_study = if is_written { "; lineup study tries prefetches in loops" } else { "" };
    let smaller = smaller.map(|edit| format!("; else {edit}")).unwrap_or_default();
    format!(
        "by hand: a prefetch of {name} where its address is known, or fewer pointers on the way to it{by_study}{smaller}"
    )
}

/// Fewer waits for a word that several threads need, in words.
pub(crate) fn own_parts(change: WordChange) -> String {
    let edit = match change {
        WordChange::Adds => {
            "if it counts, a part for each thread on a line of its own, and the sum where it is read; if it hands out \
             places, several of them in one turn"
        }
        WordChange::Stores => "a copy for each thread on a line of its own, or one turn for several values",
        WordChange::ByOne => {
            "one turn for several values, or a copy that the other threads renew more rarely"
        }
    };
    format!("by hand, since only you know what the word is for: {edit}")
}

/// The words for the edit that a study makes where it does not make this one.
pub(crate) fn instead(is_written: bool, other: Option<Kind>) -> &'static str {
    match (is_written, other) {
        (true, Some(Kind::Order)) => "; else it orders the members",
        (true, Some(Kind::Split)) => "; else it moves cold members out",
        (false, Some(Kind::Order)) => "; lineup study orders the members instead",
        (false, Some(Kind::Boxed)) => {
            "; lineup study moves members into a Box instead, where the sources allow it"
        }
        (false, Some(Kind::Split)) => {
            "; lineup study moves cold members out of it instead, where the sources allow it"
        }
        _ => "",
    }
}

/// The next step for a type that lies outside the sources.
pub(crate) fn of_library(name: &str, library: &Library) -> String {
    format!("{name} is declared in {library}: a study takes it with --source and a folder that holds both")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_of_a_template_are_ordered_by_hand() {
        let member = |path: &str, offset_after| LaidMember {
            path: path.to_owned(),
            offset: 0,
            size_bytes: 8,
            offset_after,
            uses: Vec::new(),
        };
        let members = vec![member("desc", None), member("price", Some(8)), member("title._M_p", Some(0))];
        let map = MemberMap {
            size_bytes: 24,
            size_bytes_after: Some(24),
            line_bytes: 64,
            start_in_line: None,
            functions: Vec::new(),
            members,
        };
        let said = order_of_template("shop::Entry<long unsigned int>", Some(&map));
        assert!(
            said.starts_with("by hand, ") && said.contains("shop::Entry begins with title, price"),
            "{said}"
        );
        assert!(order_of_template("a<b>", None).contains("a begins with the members that are used most"));
    }
}
