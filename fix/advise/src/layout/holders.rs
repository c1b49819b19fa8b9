//! Types of debug info that hold objects of a type, and types that share its name.

use crate::layout::spelling::bare;
use lineup_model::types::{AggregateKind, Language, Member, TypeId, TypeKind, Types};
use std::collections::HashMap;

/// Types inside types beyond this are no program's.
const MOST_NESTING: u32 = 64;

/// The types that are, or contain, the wanted one.
pub(crate) struct Holders<'t> {
    pub(crate) types: &'t Types,
    pub(crate) wanted: TypeId,
    pub(crate) known: HashMap<TypeId, bool>,
}

impl Holders<'_> {
    pub(crate) fn holds(&mut self, id: TypeId) -> bool {
        self.holds_at(id, 0)
    }

    fn holds_at(&mut self, id: TypeId, depth: u32) -> bool {
        let types = self.types;
        let Some(id) = types.strip(id).filter(|_| depth < MOST_NESTING) else { return false };
        if id == self.wanted {
            return true;
        }
        if let Some(&known) = self.known.get(&id) {
            return known;
        }
        // Types that contain themselves end here.
        self.known.insert(id, false);
        let holds = match types.get(id).map(|ty| &ty.kind) {
            Some(TypeKind::Array { element, .. }) => self.holds_at(*element, depth + 1),
            Some(TypeKind::Aggregate(aggregate)) => {
                aggregate.members.iter().any(|member| self.holds_at(member.ty, depth + 1))
            }
            _ => false,
        };
        self.known.insert(id, holds);
        holds
    }
}

/// The largest struct of Rust in a tuple, as a hash map keeps its pairs, and its place in bytes.
pub(crate) fn in_tuple(types: &Types, id: TypeId) -> Option<(TypeId, u64)> {
    let (id, aggregate) = types.aggregate(id)?;
    let is_tuple = |id: TypeId| types.get(id)?.name.as_deref().map(|name| name.starts_with('('));
    if types.get(id)?.language != Language::Rust || !is_tuple(id)? {
        return None;
    }
    let members = aggregate.members.iter().filter_map(|member| {
        let (inner, _) =
            types.aggregate(member.ty).filter(|(_, inner)| inner.kind == AggregateKind::Struct)?;
        is_tuple(inner).filter(|is_tuple| !is_tuple)?;
        Some((inner, member.offset_bytes()?))
    });
    members.max_by_key(|(inner, _)| types.size_bytes(*inner))
}

/// The type's name, when another type that is declared elsewhere and has other members has it, too.
pub(crate) fn shared_name(types: &Types, wanted: TypeId) -> Option<&str> {
    let own = types.get(wanted)?;
    let (_, aggregate) = types.aggregate(wanted)?;
    let name = bare(own.name.as_deref()?);
    let members = |members: &[Member]| -> Vec<Option<String>> {
        members.iter().map(|member| member.name.as_deref().map(str::to_string)).collect()
    };
    let wanted_members = members(&aggregate.members);
    let is_other = |other: &lineup_model::types::Type| match &other.kind {
        TypeKind::Aggregate(found) => {
            !found.is_declaration
                && other.name.as_deref().is_some_and(|known| bare(known) == name)
                && other.declared_at != own.declared_at
                && members(&found.members) != wanted_members
        }
        _ => false,
    };
    types.iter().any(|(_, other)| is_other(other)).then_some(name)
}

/// Complete aggregates, and typedefs of them, by name.
pub(crate) fn type_names(types: &Types) -> HashMap<&str, TypeId> {
    let mut names = HashMap::new();
    for (id, ty) in types.iter() {
        let Some(name) = ty.name.as_deref() else { continue };
        let is_complete = types.aggregate(id).is_some_and(|(_, aggregate)| !aggregate.is_declaration);
        let is_array = matches!(types.strip(id).and_then(|id| types.get(id)), Some(ty) if matches!(ty.kind, TypeKind::Array { .. }));
        if is_complete || is_array {
            let last = name.rsplit("::").next().unwrap_or(name);
            names.entry(last).or_insert(id);
        }
    }
    names
}

/// True for arrays.
pub(crate) fn is_array(types: &Types, id: TypeId) -> bool {
    types.strip(id).and_then(|id| types.get(id)).is_some_and(|ty| matches!(ty.kind, TypeKind::Array { .. }))
}

/// True when an object of type `id` is, or contains, one of type `wanted`.
pub(crate) fn holds(types: &Types, id: TypeId, wanted: TypeId, depth: u32) -> bool {
    let Some(id) = types.strip(id).filter(|_| depth < 16) else { return false };
    match types.get(id).map(|ty| &ty.kind) {
        _ if id == wanted => true,
        Some(TypeKind::Array { element, .. }) => holds(types, *element, wanted, depth + 1),
        Some(TypeKind::Aggregate(aggregate)) => {
            aggregate.members.iter().any(|member| holds(types, member.ty, wanted, depth + 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::types::{Aggregate, MemberRole, Type};

    fn add(types: &mut Types, name: &str, size_bytes: u64, members: &[(TypeId, u64)]) -> TypeId {
        let member = |(ty, at): &(TypeId, u64)| Member {
            name: Some("__0".into()),
            ty: *ty,
            offset_bits: Some(at * 8),
            bit_size: None,
            declared_align: None,
            role: MemberRole::Field,
            declared_at: None,
        };
        let aggregate = Aggregate {
            kind: AggregateKind::Struct,
            members: members.iter().map(member).collect(),
            static_members: Vec::new(),
            is_declaration: false,
        };
        types.push(Type {
            name: Some(name.into()),
            size_bytes: Some(size_bytes),
            declared_align: None,
            declared_at: None,
            unit: None,
            language: Language::Rust,
            kind: TypeKind::Aggregate(aggregate),
        })
    }

    #[test]
    fn a_pair_of_a_hash_map_holds_its_larger_struct() {
        let mut types = Types::new();
        let key = add(&mut types, "key::Key", 8, &[]);
        let session = add(&mut types, "store::Session", 152, &[(key, 0)]);
        let pair = add(&mut types, "(key::Key, store::Session)", 160, &[(key, 0), (session, 8)]);
        assert_eq!(in_tuple(&types, pair), Some((session, 8)));
        assert_eq!(in_tuple(&types, session), None);
    }
}
