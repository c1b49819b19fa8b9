//! The name of a type, with the namespaces around it; for some types without a name, a description.

use super::detail::{UnitEntries, detail};
use super::linked_types::Linked;
use super::raw::{ChildKind, Detail};
use super::scan::{NO_SCOPE, ScopeName};
use crate::dwarf::MAX_CHAIN;
use crate::dwarf::View;
use crate::dwarf::kind::RawKind;
use lineup_model::types::Language;

/// The name of a type, of which `own` was read.
pub(crate) fn type_name<'a>(
    view: &View<'a>,
    linked: &Linked<'a>,
    sources: &mut [UnitEntries<'a>],
    (index, own): (usize, &Detail<'a>),
) -> Option<String> {
    let ty = linked.types.get(index)?;
    match (ty.kind, own.name) {
        (RawKind::Array, _) if own.descriptor_bytes.is_some() => {
            let rank =
                own.children.iter().filter(|child| matches!(child.what, ChildKind::Dimension(_))).count();
            let element = element_name(view, linked, sources, ty.target.index());
            // As Fortran declares arrays that are allocated at run time.
            Some(format!("{element}({})", vec![":"; rank.max(1)].join(",")))
        }
        (RawKind::Opaque, None) if own.is_string => {
            let length = linked.rests.get(index)?.size.map_or(":".to_owned(), |size| size.to_string());
            Some(format!("character(len={length})"))
        }
        (_, name) => {
            let named = linked.named(index);
            let name = if named == index { name } else { detail(view, linked, sources, named)?.name };
            qualified(view, linked, sources, (named, String::from_utf8_lossy(name?.text()).into_owned()))
        }
    }
}

/// The name of the entry at an index, with the names of the scopes around it.
fn qualified<'a>(
    view: &View<'a>,
    linked: &Linked<'a>,
    sources: &mut [UnitEntries<'a>],
    (mut named, own): (usize, String),
) -> Option<String> {
    let mut names = vec![own];
    'entries: for _ in 0..MAX_CHAIN {
        let ty = linked.types.get(named)?;
        let scan = linked.unit_of(ty)?;
        let mut scope = linked.rests.get(named)?.scope;
        if scan.language == Language::C || scope == NO_SCOPE {
            break;
        }
        while let Some(found) = scan.scopes.get(scope as usize) {
            match found.name {
                ScopeName::Own(name) => names.push(String::from_utf8_lossy(name.text()).into_owned()),
                ScopeName::Of(number) => {
                    let start = *linked.starts.get(ty.unit as usize)?;
                    named = linked.named(linked.real(start + number as usize));
                    let Some(name) = detail(view, linked, sources, named).and_then(|lent| lent.name) else {
                        break 'entries;
                    };
                    names.push(String::from_utf8_lossy(name.text()).into_owned());
                    continue 'entries;
                }
            }
            scope = found.parent;
        }
        break;
    }
    names.reverse();
    Some(names.join("::"))
}

/// The name of an array's element type.
fn element_name<'a>(
    view: &View<'a>,
    linked: &Linked<'a>,
    sources: &mut [UnitEntries<'a>],
    element: Option<usize>,
) -> String {
    let mut next = element;
    for _ in 0..MAX_CHAIN {
        let Some((index, ty)) = next.and_then(|at| Some((at, linked.types.get(at)?))) else { break };
        match ty.kind {
            RawKind::Qualifier(_) | RawKind::Array => next = ty.target.index(),
            RawKind::Pointer | RawKind::Function => break,
            _ => {
                let name = detail(view, linked, sources, index)
                    .and_then(|own| type_name(view, linked, sources, (index, &own)));
                return name.unwrap_or_else(|| "array".to_owned());
            }
        }
    }
    "array".to_owned()
}
