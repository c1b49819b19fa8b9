//! Alignments that Clang describes although they have no effect: `aligned(1)` lowers none but of a packed type, and
//! that a type is packed stands nowhere in its debug information.

use lineup_model::types::{Aggregate, MemberRole, TypeId, TypeKind, Types};

/// The maximum nesting of types that is searched.
const DEEPEST: usize = 32;

/// Takes away each alignment that is lower than the members', where their places and the size show no packing.
pub(crate) fn take_away(types: &mut Types, doubtful: &[TypeId], most_align: u64) {
    let ignored = |id: &&TypeId| {
        let declared = types.get(**id).and_then(|ty| ty.declared_align);
        let natural = natural(types, **id, most_align, DEEPEST);
        declared.is_some_and(|declared| natural.is_some_and(|natural| declared < natural))
    };
    let ignored: Vec<TypeId> = doubtful.iter().filter(ignored).copied().collect();
    for id in ignored {
        if let Some(ty) = types.get_mut(id) {
            ty.declared_align = None;
        }
    }
}

/// The alignment that a type gets from its members; `None` where that is not known, or where it is packed.
fn natural(types: &Types, id: TypeId, most: u64, depth: usize) -> Option<u64> {
    let ty = types.get(id)?;
    let depth = depth.checked_sub(1)?;
    let of_size = || Some(ty.size_bytes?.clamp(1, most)).filter(|align| align.is_power_of_two());
    match &ty.kind {
        TypeKind::Scalar(_) | TypeKind::Enum | TypeKind::Pointer(_) => of_size(),
        TypeKind::Typedef(target) | TypeKind::Qualified(target) => match ty.declared_align {
            Some(align) => Some(align),
            None => natural(types, (*target)?, most, depth),
        },
        TypeKind::Array { element, .. } => natural(types, *element, most, depth),
        TypeKind::Aggregate(aggregate) => {
            let of_members = of_members(types, aggregate, ty.size_bytes?, most, depth)?;
            Some(of_members.max(ty.declared_align.unwrap_or(1)))
        }
        _ => None,
    }
}

fn of_members(types: &Types, aggregate: &Aggregate, size_bytes: u64, most: u64, depth: usize) -> Option<u64> {
    let mut all = 1;
    for member in &aggregate.members {
        if member.bit_size.is_some() || member.role != MemberRole::Field {
            return None;
        }
        let align = member.declared_align.or_else(|| natural(types, member.ty, most, depth))?;
        if !(member.offset_bits? / 8).is_multiple_of(align) {
            return None;
        }
        all = all.max(align);
    }
    size_bytes.is_multiple_of(all).then_some(all)
}
