//! Structs that other structs hold.

use super::catalog::{Catalog, Ty};
use lineup_model::Library;
use lineup_model::types::{AggregateKind, Type, TypeId, TypeKind, Types};

/// Structs in structs that are looked into.
const MOST_DEPTH: usize = 16;

/// The types that hold the bytes of a value.
const BYTES_OF_VALUES: [&str; 2] = ["__gnu_cxx::__aligned_buffer<", "__gnu_cxx::__aligned_membuf<"];

impl Catalog<'_> {
    /// The innermost struct of several members, and the offset in it, that a type holds at an offset: on its own or in an
    /// array, in more than `least_bytes`. Libraries' structs are passed over.
    pub fn embedded(&mut self, outer: Ty, offset: u64, least_bytes: u64) -> Option<(Ty, u64)> {
        let key = (outer, offset, least_bytes);
        if let Some(known) = self.embedded.get(&key) {
            return *known;
        }
        let found = self.table(outer).and_then(|(types, described)| {
            let (id, offset) = embedded(types, described.id, offset, least_bytes)?;
            Some((self.intern(described.image, id)?, offset))
        });
        self.embedded.insert(key, found);
        found
    }
}

fn embedded(types: &Types, outer: TypeId, offset: u64, least_bytes: u64) -> Option<(TypeId, u64)> {
    let (mut id, mut offset, mut found) = (types.strip(outer)?, offset, None);
    for _ in 0..MOST_DEPTH {
        if let Some(value) = stored(types, id) {
            id = value;
            let is_large = types.size_bytes(id).is_some_and(|size| size > least_bytes);
            found = (is_large && has_layout(types, id)).then_some((id, offset)).or(found);
        }
        let Some((_, aggregate)) = types.aggregate(id) else { break };
        if !matches!(aggregate.kind, AggregateKind::Struct | AggregateKind::Class) {
            break;
        }
        let holding = aggregate.members.iter().filter_map(|member| {
            let start = member.offset_bytes().filter(|_| member.bit_size.is_none())?;
            let size_bytes = types.size_bytes(member.ty)?;
            let into = offset.checked_sub(start).filter(|into| *into < size_bytes)?;
            Some((size_bytes, member.ty, into))
        });
        // A base without members takes none of the bytes that it has.
        let largest = holding.max_by_key(|(size_bytes, ..)| *size_bytes);
        let Some((size_bytes, ty, into)) = largest else { break };
        let Some((element, into)) = element(types, ty, into) else { break };
        if types.aggregate(element).is_none() {
            break;
        }
        (id, offset) = (element, into);
        let is_large = size_bytes > least_bytes;
        found = (is_large && has_layout(types, id)).then_some((id, offset)).or(found);
    }
    found
}

/// A struct of several members that no library declares.
fn has_layout(types: &Types, id: TypeId) -> bool {
    let is_struct = types.aggregate(id).is_some_and(|(_, held)| {
        matches!(held.kind, AggregateKind::Struct | AggregateKind::Class) && held.members.len() > 1
    });
    is_struct && types.get(id).is_some_and(|ty| ty.name.is_some() && Library::of(ty, None).is_none())
}

/// The type of the value that a node of libstdc++'s containers stores as bytes: the argument of their type.
fn stored(types: &Types, id: TypeId) -> Option<TypeId> {
    let name = types.get(id)?.name.as_deref()?;
    let argument = BYTES_OF_VALUES.iter().find_map(|of| name.strip_prefix(of))?;
    let value = argument.strip_suffix('>')?.trim_end();
    let is_value = |ty: &Type| ty.name.as_deref() == Some(value) && matches!(ty.kind, TypeKind::Aggregate(_));
    types.iter().find(|(_, ty)| is_value(ty)).map(|(id, _)| id)
}

/// The element of an array, of arrays too, and the offset in it; of another type itself.
fn element(types: &Types, id: TypeId, mut offset: u64) -> Option<(TypeId, u64)> {
    let mut id = types.strip(id)?;
    for _ in 0..MOST_DEPTH {
        match &types.get(id)?.kind {
            TypeKind::Array { element, .. } => {
                id = types.strip(*element)?;
                offset %= types.size_bytes(id).filter(|size| *size > 0)?;
            }
            _ => return Some((id, offset)),
        }
    }
    None
}
