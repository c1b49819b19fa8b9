//! Whose bytes an access touched: the object and the variable that a layout would move.

use crate::catalog::{Catalog, Ty};
use crate::name::Name;
use crate::namer::Namer;
use lineup_model::program::Location;
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::VariableRef;

/// Something whose bytes were touched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum OwnerKey {
    /// The object of this type at this runtime address.
    Object(Ty, u64),
    /// The variable with this index in this image.
    Variable(usize, u32),
}

/// A run of bytes of an owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Part {
    /// Whose.
    pub owner: OwnerKey,
    /// From where.
    pub offset: u64,
    /// How many bytes, at most to the owner's end.
    pub size_bytes: u64,
}

/// The objects and variables that an access of `size_bytes` at `address` touched. A struct in a
/// variable counts as variable and as object.
pub fn parts(namer: &mut Namer<'_>, name: Name, address: u64, size_bytes: u64) -> Vec<Part> {
    match name {
        Name::Variable { image, variable, offset } => {
            let Some((reference, ty)) = variable_ref(namer, image, variable) else { return Vec::new() };
            let own = Part {
                owner: OwnerKey::Variable(image, variable),
                offset,
                size_bytes: size_bytes.min(reference.size_bytes.saturating_sub(offset)),
            };
            let mut parts = vec![own];
            parts.extend(ty.and_then(|ty| object_in(namer.catalog(), ty, address, offset, size_bytes)));
            parts
        }
        Name::Member { ty, base: Some(_), offset, .. } => {
            object_in(namer.catalog(), ty, address, offset, size_bytes).into_iter().collect()
        }
        Name::Stack { local: Some((_, ty, offset)) } => {
            object_in(namer.catalog(), ty, address, offset, size_bytes).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A variable's name, place and size, and its type.
pub fn variable_ref(namer: &mut Namer<'_>, image: usize, variable: u32) -> Option<(VariableRef, Option<Ty>)> {
    let found = namer.images().get(image)?.globals().get(variable as usize)?;
    let address = found.places.iter().find_map(|place| match place.at {
        Location::Address(address) => Some(address),
        _ => None,
    })?;
    let name = found.name.clone().unwrap_or_else(|| "(unnamed)".to_owned());
    let size_bytes = found.ty.and_then(|id| namer.images().get(image)?.types().size_bytes(id)).unwrap_or(0);
    let id = found.ty;
    let ty = id.and_then(|id| namer.catalog().intern(image, id));
    Some((VariableRef { name, address, size_bytes }, ty))
}

/// The named aggregate that a byte of a type lies in: the type itself or its array element.
fn object_in(catalog: &mut Catalog<'_>, ty: Ty, address: u64, offset: u64, size_bytes: u64) -> Option<Part> {
    let (types, described) = catalog.table(ty)?;
    let (id, within) = element(types, described.id, offset)?;
    let object = catalog.intern(described.image, id)?;
    let start = address.checked_sub(within)?;
    let room = catalog.size_bytes(object)?;
    let size_bytes =
        if catalog.has_open_end(object) { size_bytes } else { size_bytes.min(room.saturating_sub(within)) };
    (size_bytes > 0).then_some(Part { owner: OwnerKey::Object(object, start), offset: within, size_bytes })
}

/// Descends through arrays to an aggregate.
fn element(types: &Types, id: TypeId, offset: u64) -> Option<(TypeId, u64)> {
    let (mut id, mut offset) = (types.strip(id)?, offset);
    for _ in 0..16 {
        match &types.get(id)?.kind {
            TypeKind::Aggregate(_) => return Some((id, offset)),
            TypeKind::Array { element, .. } => {
                offset %= types.size_bytes(*element).filter(|size| *size > 0)?;
                id = types.strip(*element)?;
            }
            _ => return None,
        }
    }
    None
}
