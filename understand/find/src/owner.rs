//! The owner of accessed bytes, and its name.

use lineup_explain::abstract_value::Origin;
use lineup_explain::catalog::Ty;
use lineup_explain::name::{Class, Name, Named, VariableId};
use lineup_explain::namer::Namer;
use lineup_explain::owner::{OwnerKey, Part, block_part, parts, variable_ref};

/// The keys that accesses are added up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Owner {
    /// Objects of a type, wherever they lie.
    Type(Ty),
    /// A variable, or a data symbol, of an image, that holds no object of a type with members.
    Variable(usize, VariableId),
    /// Thread-local variables of an image.
    ThreadLocal(usize),
    /// The stack, but for objects of known types.
    Stack,
    /// Arrays of scalars or pointers behind a pointer.
    Buffer(Origin, Ty),
    /// Constants that came with an image, in a section by its name's number.
    Constant(usize, u32),
    /// The head of a thread's block.
    ThreadHead,
    /// Data that a function of a library touches, by its name's number.
    Library(usize, u32),
    /// Programs' memory and pages that a kernel copies or clears.
    Copied,
    /// Nothing is known.
    Unnamed,
}

/// The place of an access in its owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Spot {
    pub(crate) owner: Owner,
    /// Offset of the first byte of the member, or of the access where there are no members.
    pub(crate) at: u64,
    /// Bytes of the member, or of the access.
    pub(crate) size_bytes: u64,
}

impl Spot {
    pub(crate) const UNNAMED: Spot = Spot { owner: Owner::Unnamed, at: 0, size_bytes: 0 };

    fn whole(owner: Owner) -> Spot {
        Spot { owner, at: 0, size_bytes: 0 }
    }
}

/// The spot of a named access, and how far into the object it lies.
pub(crate) fn spot(namer: &mut Namer<'_>, named: Named, address: u64, size_bytes: u64) -> (Spot, u64) {
    if let Name::Member { ty, offset, .. } = named.name {
        let parted = parts(namer, named.name, address, size_bytes);
        let (ty, offset) = object(&parted).unwrap_or((ty, offset));
        return (member(namer, ty, offset, size_bytes), offset);
    }
    // A variable on the stack counts as its type there, too, whether code reaches it by a pointer or by its frame.
    if let Name::Stack { local: Some(_) } = named.name
        && let Some((ty, offset)) = object(&parts(namer, named.name, address, size_bytes))
    {
        return (member(namer, ty, offset, size_bytes), offset);
    }
    if matches!(named.class(), Class::Variable) {
        return variable(namer, named.name, address, size_bytes);
    }
    let owner = match named.name {
        Name::Stack { .. } => Owner::Stack,
        Name::Buffer { origin, element } => Owner::Buffer(origin, element),
        Name::Constant { image, section } => Owner::Constant(image, section),
        Name::ThreadHead { .. } => Owner::ThreadHead,
        Name::Library { image, symbol: Some(symbol) } => Owner::Library(image, symbol),
        Name::Copied => Owner::Copied,
        _ => Owner::Unnamed,
    };
    (Spot::whole(owner), 0)
}

/// A struct that a type holds in more bytes has a layout of its own.
const LEAST_EMBEDDED_BYTES: u64 = 64;

/// The spot in the struct that an object holds there, and how far into that it lies; the same without one.
pub(crate) fn within(namer: &mut Namer<'_>, (spot, offset): (Spot, u64), size_bytes: u64) -> (Spot, u64) {
    let Owner::Type(outer) = spot.owner else { return (spot, offset) };
    match namer.catalog().embedded(outer, offset, LEAST_EMBEDDED_BYTES) {
        Some((ty, offset)) => (member(namer, ty, offset, size_bytes), offset),
        None => (spot, offset),
    }
}

/// The object among parts, and the offset in it.
fn object(parts: &[Part]) -> Option<(Ty, u64)> {
    parts.iter().find_map(|part| match part.owner {
        OwnerKey::Object(ty, _) => Some((ty, part.offset)),
        _ => None,
    })
}

/// The member of a type at an offset.
fn member(namer: &mut Namer<'_>, ty: Ty, offset: u64, size_bytes: u64) -> Spot {
    let field = namer.catalog().field(ty, offset, size_bytes);
    let (at, size_bytes) =
        field.map_or((offset, size_bytes), |field| (field.bytes.start, field.bytes.end - field.bytes.start));
    Spot { owner: Owner::Type(ty), at, size_bytes }
}

fn variable(namer: &mut Namer<'_>, name: Name, address: u64, size_bytes: u64) -> (Spot, u64) {
    let parted = parts(namer, name, address, size_bytes);
    if let Some((ty, offset)) = object(&parted) {
        return (member(namer, ty, offset, size_bytes), offset);
    }
    let own = parted.iter().find_map(|part| match part.owner {
        OwnerKey::Variable(image, variable) => Some(Spot::whole(Owner::Variable(image, variable))),
        OwnerKey::Block(image, _) => {
            Some(Spot { owner: Owner::ThreadLocal(image), at: part.offset, size_bytes: part.size_bytes })
        }
        OwnerKey::Object(..) => None,
    });
    (own.unwrap_or(Spot::UNNAMED), 0)
}

/// The class of an owner's names.
pub(crate) fn class(owner: Owner) -> Class {
    match owner {
        Owner::Type(_) => Class::Member,
        Owner::Variable(..) | Owner::ThreadLocal(_) => Class::Variable,
        Owner::Stack => Class::Stack,
        Owner::Buffer(..) => Class::Buffer,
        Owner::Constant(..) | Owner::ThreadHead => Class::Constant,
        Owner::Library(..) => Class::Library,
        Owner::Copied => Class::Copied,
        Owner::Unnamed => Class::Unnamed,
    }
}

/// The name of an owner.
pub(crate) fn name(namer: &mut Namer<'_>, owner: Owner) -> String {
    let text = |namer: &Namer<'_>, number: u32| namer.names().text(number).to_owned();
    match owner {
        Owner::Type(ty) => namer.catalog().name(ty),
        Owner::Variable(image, variable) => {
            let found = variable_ref(namer, image, variable);
            found.map_or_else(|| "(variable)".to_owned(), |(reference, _)| reference.name)
        }
        Owner::ThreadLocal(_) => "(thread-local variables)".to_owned(),
        Owner::Stack => "(stack)".to_owned(),
        Owner::Buffer(origin, element) => buffer(namer, origin, element),
        Owner::Constant(image, section) => format!("{} of {}", text(namer, section), file(namer, image)),
        Owner::ThreadHead => "(head of a thread's block)".to_owned(),
        Owner::Library(image, symbol) => format!("data of {} in {}", text(namer, symbol), file(namer, image)),
        Owner::Copied => "(pages and programs' memory that the kernel copies)".to_owned(),
        Owner::Unnamed => "(unnamed)".to_owned(),
    }
}

fn buffer(namer: &mut Namer<'_>, origin: Origin, element: Ty) -> String {
    let element = namer.catalog().name(element);
    match origin {
        Origin::Unknown => format!("{element}[]"),
        Origin::Variable(number) => format!("{element}[] behind {}", namer.names().text(number)),
        Origin::Member(ty, offset) => {
            let name = namer.catalog().name(ty);
            let field = namer.catalog().field(ty, offset, 1);
            let path = field.map_or_else(String::new, |field| format!(".{}", field.path));
            format!("{element}[] behind {name}{path}")
        }
    }
}

/// The file name of an image.
pub(crate) fn file(namer: &Namer<'_>, image: usize) -> String {
    let path = namer.images().get(image).map_or("", |image| image.loaded.path.as_str());
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// The name of a member in its owner; empty for owners without members.
pub(crate) fn member_name(namer: &mut Namer<'_>, spot: Spot) -> String {
    match spot.owner {
        Owner::Type(ty) => {
            let field = namer.catalog().field(ty, spot.at, spot.size_bytes);
            field.map_or_else(|| format!("(at {})", spot.at), |field| field.path.clone())
        }
        Owner::ThreadLocal(image) => block_part(namer, image, spot.at, spot.size_bytes),
        _ => String::new(),
    }
}
