//! Members whose type asks for cache lines of its own. BTF does not tell alignments; the type's declaration does.

use crate::declaration;
use crate::problem::Subject;
use crate::shape_rules::APART_BYTES;
use crate::sources::Sources;
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::BTreeSet;

/// The members that begin a line because the declaration of their type, or of the elements they are an array of, says
/// so: `struct part { … } ____cacheline_aligned;`. An unknown macro that speaks of an alignment counts.
pub(crate) fn members(subject: &Subject<'_>, sources: &Sources) -> BTreeSet<usize> {
    let types = subject.types;
    let begins_line = |index: &usize| {
        let member = &subject.aggregate.members[*index];
        let offset = member.offset_bytes().filter(|offset| offset.is_multiple_of(APART_BYTES));
        offset.is_some() && element(types, member.ty).is_some_and(|id| asks_for_lines(types, id, sources))
    };
    (1..subject.aggregate.members.len()).filter(begins_line).collect()
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
    let Some(name) = types.get(id).and_then(|ty| ty.name.as_deref()) else { return false };
    let Ok(found) = declaration::find(sources, name, None) else { return false };
    let declaration = &found.declaration;
    let around = (declaration.keyword..declaration.open).chain(declaration.tail.clone());
    around.into_iter().any(|index| found.lexed.is_word(index) && found.lexed.str(index).contains("align"))
}
