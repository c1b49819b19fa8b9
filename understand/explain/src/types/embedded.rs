//! Structs that other structs hold.

use super::catalog::{Catalog, Ty};
use lineup_model::Library;
use lineup_model::types::{AggregateKind, TypeId, TypeKind, Types};

/// Structs in structs that are looked into.
const MOST_DEPTH: usize = 16;

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
        let (_, aggregate) = types.aggregate(id)?;
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
        let Some((_, held)) = types.aggregate(element) else { break };
        (id, offset) = (element, into);
        let has_layout = matches!(held.kind, AggregateKind::Struct | AggregateKind::Class)
            && held.members.len() > 1
            && types.get(element).is_some_and(|ty| ty.name.is_some() && Library::of(ty, None).is_none());
        if has_layout && size_bytes > least_bytes {
            found = Some((id, offset));
        }
    }
    found
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
