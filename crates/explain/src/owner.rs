//! Whose bytes an access touched: the object and the variable that a layout would move.

use crate::catalog::{Catalog, Ty};
use crate::name::{Name, VariableId};
use crate::namer::Namer;
use lineup_model::program::{Location, Symbol};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::VariableRef;

/// Something whose bytes were touched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum OwnerKey {
    /// The object of this type at this runtime address.
    Object(Ty, u64),
    /// This variable of this image.
    Variable(usize, VariableId),
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
            let variable = VariableId::Described(variable);
            let Some((own, ty)) = of_variable(namer, (image, variable), offset, size_bytes) else {
                return Vec::new();
            };
            let object = ty.and_then(|ty| object_in(namer.catalog(), ty, address, offset, size_bytes));
            std::iter::once(own).chain(object).collect()
        }
        Name::Symbol { image, symbol, offset } => {
            let own = of_variable(namer, (image, VariableId::Symbol(symbol)), offset, size_bytes);
            own.into_iter().map(|(own, _)| own).collect()
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

/// The bytes of a variable that an access touched, and the variable's type. A symbol may have no size: then the
/// access ends where it ends.
fn of_variable(
    namer: &mut Namer<'_>,
    (image, variable): (usize, VariableId),
    offset: u64,
    size_bytes: u64,
) -> Option<(Part, Option<Ty>)> {
    let (room, ty) = match variable {
        VariableId::Described(_) => {
            let (reference, ty) = variable_ref(namer, image, variable)?;
            (reference.size_bytes.saturating_sub(offset), ty)
        }
        VariableId::Symbol(index) => match symbol(namer, image, index)?.size_bytes {
            0 => (u64::MAX, None),
            size => (size.saturating_sub(offset), None),
        },
    };
    Some((Part { owner: OwnerKey::Variable(image, variable), offset, size_bytes: size_bytes.min(room) }, ty))
}

/// A variable's name, place and size, and its type when it is described.
pub fn variable_ref(
    namer: &mut Namer<'_>,
    image: usize,
    variable: VariableId,
) -> Option<(VariableRef, Option<Ty>)> {
    let variable = match variable {
        VariableId::Described(variable) => variable,
        VariableId::Symbol(index) => {
            let Symbol { name, address, size_bytes, .. } = symbol(namer, image, index)?;
            let name = lineup_debuginfo::demangle(name).unwrap_or_else(|| name.clone());
            return Some((VariableRef { name, address: *address, size_bytes: *size_bytes }, None));
        }
    };
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

fn symbol<'a>(namer: &Namer<'a>, image: usize, index: u32) -> Option<&'a Symbol> {
    namer.images().get(image)?.symbols().get(index as usize)
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
