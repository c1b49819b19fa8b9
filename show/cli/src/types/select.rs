//! Selects the types that the user means.

use crate::terminal::errors::UnknownName;
use crate::types::spelling::{Shortened, common_spelling, with_part};
use crate::types::subject::Subject;
use lineup_debuginfo::{is_meant, nearest};
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet};

/// All complete structs, classes and unions with a name, own or by typedef, by name.
pub(crate) fn all(subject: &Subject) -> Vec<(&str, TypeId)> {
    let types = subject.types();
    let mut names: BTreeMap<TypeId, &str> = BTreeMap::new();
    for (id, ty) in types.iter().skip(subject.first_own().0 as usize) {
        let Some(name) = ty.name.as_deref() else { continue };
        match &ty.kind {
            TypeKind::Aggregate(aggregate) if !aggregate.is_declaration => {
                names.insert(id, name);
            }
            TypeKind::Typedef(_) => {
                if let Some((target, _)) = types.aggregate(id)
                    && types.get(target).is_some_and(|ty| ty.name.is_none())
                    && !types.aggregate(target).is_some_and(|(_, aggregate)| aggregate.is_declaration)
                {
                    names.entry(target).or_insert(name);
                }
            }
            _ => {}
        }
    }
    let mut chosen: Vec<(&str, TypeId)> = names.into_iter().map(|(id, name)| (name, id)).collect();
    chosen.sort();
    chosen
}

/// The types with these names, in the order given. A name may leave out leading namespaces and template arguments, and
/// may carry `struct`, `union` or `class`.
pub(crate) fn named<'s>(subject: &'s Subject, wanted: &[String]) -> Selected<'s> {
    let mut selected = Selected::default();
    for name in wanted {
        let plain = without_keyword(name);
        let found = find(subject, plain);
        if found.is_empty() {
            selected.unknown.push(unknown(subject, plain));
        }
        selected.types.extend(found);
    }
    selected
}

/// The types found for the user's names.
#[derive(Default)]
pub(crate) struct Selected<'s> {
    pub(crate) types: Vec<(&'s str, TypeId)>,
    /// For each other name, the reason why there is nothing to show.
    pub(crate) unknown: Vec<UnknownName>,
}

/// The names without `struct`, `union` or `class`.
pub(crate) fn plain(wanted: &[String]) -> Vec<&str> {
    wanted.iter().map(|name| without_keyword(name)).collect()
}

fn without_keyword(name: &str) -> &str {
    let keywords = ["struct ", "union ", "class ", "enum "];
    keywords.iter().find_map(|keyword| name.strip_prefix(keyword)).unwrap_or(name).trim()
}

/// The complete struct, class or union that the name of a type stands for: its own, or a typedef's.
pub(crate) fn meant_by(types: &Types, id: TypeId) -> Option<TypeId> {
    if matches!(types.get(id)?.kind, TypeKind::Qualified(_) | TypeKind::Pointer(_)) {
        return None;
    }
    let (target, aggregate) = types.aggregate(id)?;
    (!aggregate.is_declaration).then_some(target)
}

fn find<'s>(subject: &'s Subject, wanted: &str) -> Vec<(&'s str, TypeId)> {
    let found = find_by(subject, &|name| (name == wanted, is_meant(name, wanted)));
    if !found.is_empty() {
        return found;
    }
    let found = if wanted.contains('<') { find_by_common(subject, wanted) } else { Vec::new() };
    if found.is_empty() { find_shortened(subject, wanted) } else { found }
}

/// The types whose name the user's is in the spelling of another compiler.
fn find_by_common<'s>(subject: &'s Subject, wanted: &str) -> Vec<(&'s str, TypeId)> {
    let common = common_spelling(wanted);
    find_by(subject, &|name| {
        let name = name.contains('<').then(|| common_spelling(name));
        name.map_or((false, false), |name| (name == common, is_meant(&name, &common)))
    })
}

/// The types whose name the user's is but for parts that sources leave out: scopes without a name, reserved inline
/// namespaces, default arguments of templates, and packages and arguments as Go writes them.
fn find_shortened<'s>(subject: &'s Subject, wanted: &str) -> Vec<(&'s str, TypeId)> {
    let wanted = Shortened::new(wanted);
    find_by(subject, &|name| wanted.is_meant(name))
}

/// The types for which `named` returns that their name is exactly it, or it without its beginning or end.
fn find_by<'s>(subject: &'s Subject, named: &dyn Fn(&str) -> (bool, bool)) -> Vec<(&'s str, TypeId)> {
    let types = subject.types();
    let mut exact = Vec::new();
    let mut by_last_part = Vec::new();
    let mut seen = BTreeSet::new();
    for (id, name) in types.iter().filter_map(|(id, ty)| Some((id, ty.name.as_deref()?))) {
        let (is_exact, is_meant) = named(name);
        if !is_exact && !is_meant {
            continue;
        }
        if let Some(target) = meant_by(types, id).filter(|target| seen.insert(*target)) {
            let own_name = types.get(target).and_then(|ty| ty.name.as_deref()).unwrap_or(name);
            if is_exact { &mut exact } else { &mut by_last_part }.push((own_name, target));
        }
    }
    if exact.is_empty() { by_last_part } else { exact }
}

/// The number of names that a message about an unknown one shows.
const MOST_NEAR: usize = 5;

fn unknown(subject: &Subject, wanted: &str) -> UnknownName {
    let types = subject.types();
    let named = |is_named: &dyn Fn(&str) -> bool| {
        types.iter().find(|(_, ty)| ty.name.as_deref().is_some_and(is_named)).map(|(_, ty)| ty)
    };
    if let Some(ty) = named(&|name| name == wanted).or_else(|| named(&|name| is_meant(name, wanted))) {
        return UnknownName(match &ty.kind {
            TypeKind::Aggregate(_) => format!(
                "{wanted} is only declared in {}; look in a file whose code uses its members",
                subject.path.display()
            ),
            _ => format!("{wanted} is not a struct, class or union"),
        });
    }
    let names: Vec<&str> = all(subject).into_iter().map(|(name, _)| name).collect();
    let mut near = with_part(wanted, &names, MOST_NEAR);
    if near.is_empty() {
        near = nearest(wanted, names, MOST_NEAR);
    }
    let advice = if near.is_empty() {
        "`lineup layout FILE` lists all types".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    UnknownName(format!("no type {wanted} in {}; {advice}", subject.path.display()))
}
