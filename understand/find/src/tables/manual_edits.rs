//! Edits that no kind of fix makes, sketched for the person who makes them.

use crate::findings::{Evidence, Kind, LaidMember, MemberMap};
use lineup_model::{Library, first_names};

/// Members named in a sketch.
const MEMBERS: usize = 8;

/// The edit in words; `None` where a command makes it for certain. A study tries to write it where `is_written` says so.
/// Members that are used much stay together, if the layout says which those are.
pub(crate) fn edit(
    name: &str,
    (kind, is_written): (Kind, bool),
    evidence: &Evidence,
    map: Option<&MemberMap>,
) -> Option<String> {
    let Evidence::Type { used, unused, largest_variant, .. } = evidence else { return None };
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
        (Some((staying, all)), _) if all - staying.len() == 1 => "the other member".to_owned(),
        (Some((staying, all)), _) => format!("the other {} members", all - staying.len()),
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
        Kind::Order | Kind::Code | Kind::OwnLines => return None,
    };
    Some(match is_written {
        true => format!("lineup study writes this where the sources allow it: {sketch}"),
        false => format!("by hand, since no patch is made for this: {sketch}"),
    })
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
