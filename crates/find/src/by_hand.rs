//! Edits that no kind of fix makes, sketched for the person who makes them.

use crate::findings::{Evidence, Kind};
use crate::library::Library;
use lineup_model::first_names;

/// Members named in a sketch.
const MEMBERS: usize = 8;

/// The edit in words; `None` where a command makes it.
pub(crate) fn edit(name: &str, kind: Kind, evidence: &Evidence) -> Option<String> {
    let Evidence::Type { used, unused, largest_variant, .. } = evidence else { return None };
    let used = first_names(used, MEMBERS);
    let others = match unused {
        0 => "members that are used less".to_owned(),
        1 => "one member that is not used".to_owned(),
        unused => format!("{unused} members that are not used"),
    };
    let sketch = match kind {
        Kind::Split => format!("{name} keeps {used}, and a pointer to a second struct with the {others}"),
        Kind::Columns => format!("instead of an array of {name}, an array for each of {used}"),
        Kind::ReprC => {
            format!("#[repr(C)] on {name}, with its members in the order {used}, then the {others}")
        }
        Kind::Boxed => format!("{name} keeps {used}, and a Box of a second struct with the {others}"),
        Kind::BoxedVariant => {
            let variant = largest_variant.as_ref().map_or("the largest variant", |largest| &largest.name);
            format!("{variant} of {name} holds a Box of what it holds now")
        }
        Kind::Order | Kind::Code | Kind::OwnLines => return None,
    };
    Some(format!("by hand, since no patch is made for this: {sketch}"))
}

/// What is left to do about a type that is not the program's own.
pub(crate) fn of_library(name: &str, library: &Library) -> String {
    let can_do = match library {
        Library::Allocator => {
            "it is what the allocator keeps of each block: fewer allocations, or a pool for objects of one size, save it"
        }
        _ => "its layout is not yours to change; how many of its objects there are, and where they lie, is",
    };
    format!("{name} is declared in {library}: {can_do}")
}
