//! Members whose type asks for cache lines of its own, or for another alignment. BTF does not contain alignments; the
//! type's declaration does.

use crate::layout::placement::APART_BYTES;
use crate::layout::subject::Subject;
use crate::text::located_declaration;
use crate::text::sources::{Question, Sources};
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::BTreeSet;

/// The members that begin a line because the declaration of their type, or of the elements they are an array of, says
/// so: `struct part { … } ____cacheline_aligned;`. An unknown macro that mentions an alignment counts.
pub(crate) fn members(subject: &Subject<'_>, sources: &Sources) -> BTreeSet<usize> {
    let types = subject.types;
    let begins_line = |index: &usize| {
        let member = &subject.aggregate.members[*index];
        let offset = member.offset_bytes().filter(|offset| offset.is_multiple_of(APART_BYTES));
        offset.is_some() && element(types, member.ty).is_some_and(|id| asks_for_lines(types, id, sources))
    };
    (1..subject.aggregate.members.len()).filter(begins_line).collect()
}

/// The members whose type asks for an alignment below a line's, which BTF does not contain: they keep their place. If
/// no source shows a typedef, members at multiples of their own size count as such, as kernels align them.
pub(crate) fn aligned(subject: &Subject<'_>, sources: &Sources) -> BTreeSet<usize> {
    let types = subject.types;
    let asks = |index: &usize| {
        let member = &subject.aggregate.members[*index];
        let typedefs = typedefs(types, member.ty);
        let shown: Vec<Option<bool>> = typedefs.iter().map(|name| typedef_aligns(sources, name)).collect();
        let may_ask = || {
            let size =
                types.size_bytes(member.ty).filter(|size| *size >= LEAST_UNSEEN && size.is_power_of_two());
            size.zip(member.offset_bytes()).is_some_and(|(size, offset)| offset.is_multiple_of(size))
        };
        // Debug info gives a pointer's alignment, as of every list of callbacks.
        let own = || {
            element(types, member.ty).is_some_and(|id| {
                declaration_aligns(types, id, sources, Question::DeclarationAlignsBeyondPointers)
            })
        };
        shown.contains(&Some(true)) || (shown.contains(&None) && may_ask()) || own()
    };
    (1..subject.aggregate.members.len()).filter(asks).collect()
}

/// Smaller types have no alignment beyond their members'.
const LEAST_UNSEEN: u64 = 16;

/// The names of typedefs around a struct or union.
fn typedefs(types: &Types, mut id: TypeId) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..16 {
        let Some(ty) = types.get(id) else { break };
        id = match &ty.kind {
            TypeKind::Typedef(Some(target)) => {
                names.extend(ty.name.as_deref().map(str::to_string));
                *target
            }
            TypeKind::Qualified(Some(target)) => *target,
            TypeKind::Array { element, .. } => *element,
            _ => break,
        };
    }
    if types.aggregate(id).is_some() { names } else { Vec::new() }
}

/// Whether a typedef's declaration mentions an alignment; `None` when no source has it.
fn typedef_aligns(sources: &Sources, name: &str) -> Option<bool> {
    sources.answer(Question::TypedefAligns, name, || find_typedef(sources, name))
}

fn find_typedef(sources: &Sources, name: &str) -> Option<bool> {
    let mut found = None;
    for (_, text) in sources.that_may_name(name) {
        for (at, _) in text.match_indices(name) {
            let after = &text[at + name.len()..];
            let attributes = after.split(';').next().unwrap_or_default();
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            if after.starts_with(is_name) || attributes.contains(['{', ',', '=']) {
                continue;
            }
            let before = text[..at].trim_end();
            let statement = before.rsplit([';', '}', '#']).next().unwrap_or_default();
            let is_typedef =
                statement.split_whitespace().any(|word| word == "typedef") || before.ends_with('}');
            if is_typedef {
                found = Some(found == Some(true) || attributes.contains("align"));
            }
        }
    }
    found
}

/// Whether a struct's declaration mentions an alignment.
fn declaration_aligns(types: &Types, id: TypeId, sources: &Sources, question: Question) -> bool {
    let name = types.aggregate(id).and_then(|_| types.get(id)?.name.as_deref());
    let but: &[&str] = match question {
        Question::DeclarationAlignsBeyondPointers => &["void"],
        _ => &[],
    };
    let find = |name: &str| {
        sources.answer(question, name, || Some(speaks_of_alignment(sources, name, but))) == Some(true)
    };
    name.is_some_and(find)
}

/// A type without typedefs and arrays around it.
fn element(types: &Types, id: TypeId) -> Option<TypeId> {
    let mut id = types.strip(id)?;
    while let Some(TypeKind::Array { element, .. }) = types.get(id).map(|ty| &ty.kind) {
        id = types.strip(*element)?;
    }
    Some(id)
}

fn asks_for_lines(types: &Types, id: TypeId, sources: &Sources) -> bool {
    let fills_lines = |bytes: u64| bytes > 0 && bytes.is_multiple_of(APART_BYTES);
    if types.aggregate(id).is_none() || !types.size_bytes(id).is_some_and(fills_lines) {
        return false;
    }
    declaration_aligns(types, id, sources, Question::DeclarationAligns)
}

/// Whether the words around a struct's members mention an alignment, and none of them is one of `but`.
fn speaks_of_alignment(sources: &Sources, name: &str, but: &[&str]) -> bool {
    let Ok(found) = located_declaration::find(sources, name, None) else { return false };
    let declaration = &found.declaration;
    let around = (declaration.keyword..declaration.open).chain(declaration.tail.clone());
    let words: Vec<&str> =
        around.filter(|&index| found.lexed.is_word(index)).map(|index| found.lexed.str(index)).collect();
    words.iter().any(|word| word.contains("align")) && !words.iter().any(|word| but.contains(word))
}
