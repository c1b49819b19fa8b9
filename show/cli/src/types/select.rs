//! Selects the types that the user means.

use crate::terminal::errors::UnknownName;
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

/// The name of a template's instance in a form common to both compilers' spellings: `Ring<short int, 5u>` and
/// `Ring<short, 5>`.
fn common_spelling(name: &str) -> String {
    let mut spelling = String::new();
    let mut words: Vec<&str> = Vec::new();
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    for word in name.split_inclusive(|character| !is_part(character)) {
        let end = word.find(|character| !is_part(character)).unwrap_or(word.len());
        let (word, rest) = word.split_at(end);
        words.extend((!word.is_empty()).then_some(word));
        if rest == " " {
            continue;
        }
        spelling += &plain_integer(&words);
        spelling += rest;
        words.clear();
    }
    spelling + &plain_integer(&words)
}

/// The words of a type of integers without redundant ones, in one order.
fn plain_integer(words: &[&str]) -> String {
    const OF_INTEGERS: [&str; 6] = ["unsigned", "signed", "long", "short", "int", "char"];
    if words.is_empty() || !words.iter().all(|word| OF_INTEGERS.contains(word)) {
        return words.iter().map(|word| number(word)).collect::<Vec<_>>().join(" ");
    }
    let is_plain = |word: &&&str| match **word {
        "int" => !words.iter().any(|other| ["long", "short"].contains(other)),
        "signed" => words.contains(&"char"),
        _ => true,
    };
    let mut plain: Vec<&str> = words.iter().filter(is_plain).copied().collect();
    plain.sort_by_key(|word| OF_INTEGERS.iter().position(|known| known == word));
    if plain == ["unsigned"] { "unsigned int".to_owned() } else { plain.join(" ") }
}

/// A number without its suffix.
fn number(word: &str) -> &str {
    let digits = word.trim_end_matches(['u', 'l', 'U', 'L']);
    if digits.parse::<u128>().is_ok() { digits } else { word }
}

fn find<'s>(subject: &'s Subject, wanted: &str) -> Vec<(&'s str, TypeId)> {
    let found = find_by(subject, &|name| (name == wanted, is_meant(name, wanted)));
    if !found.is_empty() || !wanted.contains('<') {
        return found;
    }
    let common = common_spelling(wanted);
    find_by(subject, &|name| {
        let name = name.contains('<').then(|| common_spelling(name));
        name.map_or((false, false), |name| (name == common, is_meant(&name, &common)))
    })
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

fn unknown(subject: &Subject, wanted: &str) -> UnknownName {
    let types = subject.types();
    if let Some((_, ty)) = types.iter().find(|(_, ty)| ty.name.as_deref() == Some(wanted)) {
        return UnknownName(match &ty.kind {
            TypeKind::Aggregate(_) => format!(
                "{wanted} is only declared in {}; look in a file whose code uses its members",
                subject.path.display()
            ),
            _ => format!("{wanted} is not a struct, class or union"),
        });
    }
    let names: Vec<&str> = all(subject).into_iter().map(|(name, _)| name).collect();
    let near = nearest(wanted, names, 5);
    let advice = if near.is_empty() {
        "`lineup layout FILE` lists all types".to_owned()
    } else {
        format!("did you mean {}?", near.join(", "))
    };
    UnknownName(format!("no type {wanted} in {}; {advice}", subject.path.display()))
}

#[cfg(test)]
mod tests {
    use super::common_spelling;

    #[test]
    fn spellings_of_both_compilers_come_to_one() {
        for (one, other) in [
            ("lab::Ring<short int, 5>", "lab::Ring<short, 5>"),
            ("Map<long unsigned int, Box<unsigned char> >", "Map<unsigned long, Box<unsigned char>>"),
            ("Few<long long unsigned int, 3u>", "Few<unsigned long long, 3>"),
            ("Ref<unsigned int *const>", "Ref<unsigned *const>"),
        ] {
            assert_eq!(common_spelling(one), common_spelling(other));
        }
        for (one, other) in [
            ("Ring<short, 5>", "Ring<short, 6>"),
            ("Ring<signed char>", "Ring<char>"),
            ("Ring<long>", "Ring<long long>"),
            ("Ring<unsigned>", "Ring<int>"),
        ] {
            assert_ne!(common_spelling(one), common_spelling(other));
        }
    }
}
