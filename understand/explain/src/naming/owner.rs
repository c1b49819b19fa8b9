//! The owner of accessed bytes: the object and the variable that a layout would move.

use crate::naming::name::{Name, VariableId};
use crate::naming::namer::Namer;
use crate::types::catalog::{Catalog, Ty};
use lineup_model::program::{Location, Symbol, SymbolKind};
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::VariableRef;

/// Something whose bytes were touched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum OwnerKey {
    /// The object of this type at this runtime address.
    Object(Ty, u64),
    /// This variable of this image.
    Variable(usize, VariableId),
    /// The thread-local variables of this image, in the thread whose block starts at this runtime address.
    Block(usize, u64),
}

/// A run of bytes of an owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Part {
    /// The owner.
    pub owner: OwnerKey,
    /// From where.
    pub offset: u64,
    /// The number of bytes, at most to the owner's end.
    pub size_bytes: u64,
    /// True when these bytes are a variable's, which has a part of its own, seen as the object in it.
    pub is_in_variable: bool,
}

/// The objects and variables that an access of `size_bytes` at `address` touched. A struct in a
/// variable counts as variable and as object.
pub fn parts(namer: &mut Namer<'_>, name: Name, address: u64, size_bytes: u64) -> Vec<Part> {
    match name {
        Name::Variable { image, variable, offset } => {
            let variable = VariableId::Described(variable);
            let found = of_variable(namer, (image, variable), (address, offset), size_bytes);
            let Some((own, ty)) = found else {
                return Vec::new();
            };
            let object = ty.and_then(|ty| object_in(namer.catalog(), ty, address, offset, size_bytes));
            let object = object.map(|object| Part { is_in_variable: true, ..object });
            std::iter::once(own).chain(object).collect()
        }
        Name::Symbol { image, symbol, offset } => {
            let variable = VariableId::Symbol(symbol);
            let own = of_variable(namer, (image, variable), (address, offset), size_bytes);
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
    (address, offset): (u64, u64),
    size_bytes: u64,
) -> Option<(Part, Option<Ty>)> {
    let (reference, ty) = variable_ref(namer, image, variable)?;
    let room = match reference.size_bytes {
        0 if matches!(variable, VariableId::Symbol(_)) => u64::MAX,
        size => size.saturating_sub(offset),
    };
    let size_bytes = size_bytes.min(room);
    if is_thread_local(namer, image, variable) {
        let offset = reference.address + offset;
        let owner = OwnerKey::Block(image, address.wrapping_sub(offset));
        return Some((Part { owner, offset, size_bytes, is_in_variable: false }, ty));
    }
    Some((Part { owner: OwnerKey::Variable(image, variable), offset, size_bytes, is_in_variable: false }, ty))
}

fn is_thread_local(namer: &Namer<'_>, image: usize, variable: VariableId) -> bool {
    match variable {
        VariableId::Symbol(index) => {
            symbol(namer, image, index).is_some_and(|symbol| symbol.kind == SymbolKind::ThreadLocal)
        }
        VariableId::Described(index) => {
            let found = namer.images().get(image).and_then(|image| image.globals().get(index as usize));
            found.is_some_and(|found| {
                found.places.iter().any(|place| matches!(place.at, Location::ThreadLocal(_)))
            })
        }
    }
}

/// A variable's name, place (of a thread-local one, its offset in the block) and size, and its type when it is
/// described.
pub fn variable_ref(
    namer: &mut Namer<'_>,
    image: usize,
    variable: VariableId,
) -> Option<(VariableRef, Option<Ty>)> {
    let variable = match variable {
        VariableId::Described(variable) => variable,
        VariableId::Symbol(index) => {
            let Symbol { name, address, size_bytes, .. } = symbol(namer, image, index)?;
            let name = lineup_debuginfo::spelled(name);
            let size_bytes = (*size_bytes).min(u64::MAX - address);
            return Some((VariableRef { name, address: *address, size_bytes }, None));
        }
    };
    let found = namer.images().get(image)?.globals().get(variable as usize)?;
    let address = found.places.iter().find_map(|place| match place.at {
        Location::Address(address) | Location::ThreadLocal(address) => Some(address),
        _ => None,
    })?;
    let name = found.name.clone().unwrap_or_else(|| "(unnamed)".to_owned());
    let size_bytes = found.ty.and_then(|id| namer.images().get(image)?.types().size_bytes(id)).unwrap_or(0);
    let size_bytes = size_bytes.min(u64::MAX - address);
    let id = found.ty;
    let ty = id.and_then(|id| namer.catalog().intern(image, id));
    Some((VariableRef { name, address, size_bytes }, ty))
}

fn symbol<'a>(namer: &Namer<'a>, image: usize, index: u32) -> Option<&'a Symbol> {
    namer.images().get(image)?.symbols().get(index as usize)
}

/// `Type.member` or `variable.member`.
pub(crate) fn part_name(namer: &mut Namer<'_>, owner: OwnerKey, offset: u64, size_bytes: u64) -> String {
    let (name, ty) = match owner {
        OwnerKey::Object(ty, _) => (namer.catalog().name(ty), Some(ty)),
        OwnerKey::Variable(image, variable) => match variable_ref(namer, image, variable) {
            Some((reference, ty)) => (reference.name, ty),
            None => return String::new(),
        },
        OwnerKey::Block(image, _) => return block_part(namer, image, offset, size_bytes),
    };
    let path =
        ty.and_then(|ty| namer.catalog().field(ty, offset, size_bytes)).map(|field| field.path.clone());
    with_path(&name, path.as_deref().unwrap_or(""))
}

/// The variable at an offset of a thread's block, with the path in it.
pub fn block_part(namer: &mut Namer<'_>, image: usize, offset: u64, size_bytes: u64) -> String {
    let all = namer.thread_locals(image);
    let found = all.iter().find(|(start, size, _)| (*start..start + size).contains(&offset));
    let Some((start, _, variable)) = found else { return String::new() };
    let Some((reference, ty)) = variable_ref(namer, image, *variable) else { return String::new() };
    let field = ty.and_then(|ty| namer.catalog().field(ty, offset - start, size_bytes));
    with_path(&reference.name, field.as_ref().map_or("", |field| &field.path))
}

/// `variable.member` or `variable[]`.
pub fn with_path(variable: &str, path: &str) -> String {
    if path.is_empty() || path.starts_with('[') {
        format!("{variable}{path}")
    } else {
        format!("{variable}.{path}")
    }
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
    (size_bytes > 0).then_some(Part {
        owner: OwnerKey::Object(object, start),
        offset: within,
        size_bytes,
        is_in_variable: false,
    })
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
