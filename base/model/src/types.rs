//! Source-language types as the compiler laid them out.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Index of a [`Type`] in its [`Types`] table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TypeId(pub u32);

/// A table of types that refer to each other by [`TypeId`].
#[derive(Clone, Default, Debug)]
pub struct Types {
    all: Vec<Type>,
    /// The typedefs of each type; worked out when first asked for.
    typedefs: OnceLock<HashMap<TypeId, Vec<TypeId>>>,
}

/// One type.
#[derive(Clone, PartialEq, Debug)]
pub struct Type {
    /// The name as the source spells it, without `struct`; with namespaces (`a::b::C<int>`) in C++ and Rust. `None` for
    /// anonymous types. A qualifier has its keyword (`const`, `volatile`, …) here, a C++ reference `&` or `&&`. Shared,
    /// because many types have the same few names.
    pub name: Option<Arc<str>>,
    /// Size in bytes, when the type is complete.
    pub size_bytes: Option<u64>,
    /// Alignment written in the source (`aligned`, `alignas`), when debug info records it.
    pub declared_align: Option<u64>,
    /// The place of its declaration.
    pub declared_at: Option<SourceLocation>,
    /// The unit (source file) whose debug info described it.
    pub unit: Option<Arc<str>>,
    /// The language of that unit.
    pub language: Language,
    /// The kind of type.
    pub kind: TypeKind,
}

/// A place in source text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SourceLocation {
    /// Path as the compiler recorded it, joined with the compilation directory when relative.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: u32,
}

/// The source language of a type or function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Language {
    /// C of any year.
    C,
    /// C++ of any year.
    Cpp,
    /// Rust.
    Rust,
    /// Assembly.
    Assembly,
    /// Anything else, or unknown (BTF).
    #[default]
    Other,
}

/// The kind of type, with the types it refers to.
#[derive(Clone, PartialEq, Debug)]
pub enum TypeKind {
    /// A base type.
    Scalar(ScalarKind),
    /// An enumeration.
    Enum,
    /// A pointer or reference; `None` points to `void`.
    Pointer(Option<TypeId>),
    /// A C++ pointer to member.
    MemberPointer,
    /// An array; one count per dimension, outermost first; `None` where the declaration gave none
    /// (flexible array).
    Array {
        /// Element type.
        element: TypeId,
        /// Elements per dimension, outermost first.
        counts: Vec<Option<u64>>,
    },
    /// A struct, union or class.
    Aggregate(Aggregate),
    /// Another name for a type; `None` names `void`.
    Typedef(Option<TypeId>),
    /// `const`, `volatile`, `restrict`, `_Atomic` or a BTF tag; `None` qualifies `void`.
    Qualified(Option<TypeId>),
    /// A function type.
    Function {
        /// Return type; `None` is `void`.
        returns: Option<TypeId>,
        /// Parameter types in order.
        parameters: Vec<TypeId>,
    },
    /// Something the debug info describes but Lineup does not interpret.
    Opaque,
}

/// The kind of value that a base type holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ScalarKind {
    /// Signed or unsigned integer.
    Integer {
        /// True for signed types.
        signed: bool,
    },
    /// Plain or signed or unsigned `char`, Rust `u8` excluded.
    Character,
    /// Boolean.
    Boolean,
    /// Floating point, complex included.
    Float,
}

/// Struct, union, class, or a Rust enum seen as its overlapping variants.
#[derive(Clone, PartialEq, Debug)]
pub struct Aggregate {
    /// Struct, class or union.
    pub kind: AggregateKind,
    /// Members in declaration order; base classes first.
    pub members: Vec<Member>,
    /// Static members: they take no room.
    pub static_members: Vec<String>,
    /// True when only a declaration was seen.
    pub is_declaration: bool,
}

/// The keyword that declared an [`Aggregate`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AggregateKind {
    /// `struct`, Rust structs and tuples.
    Struct,
    /// C++ `class`.
    Class,
    /// `union`.
    Union,
    /// A Rust enum: members are its discriminant and its variants, which overlap.
    Variants,
}

/// A member of an [`Aggregate`].
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// Name; `None` for anonymous structs and unions.
    pub name: Option<Arc<str>>,
    /// Type.
    pub ty: TypeId,
    /// Offset of the first bit from the start of the aggregate, counted in memory order on a
    /// little-endian machine. `None` for virtual bases, whose place is only known at run time.
    pub offset_bits: Option<u64>,
    /// Width of a bit-field.
    pub bit_size: Option<u32>,
    /// Alignment written in the source, when debug info records it.
    pub declared_align: Option<u64>,
    /// The role that the member plays.
    pub role: MemberRole,
    /// The place of its declaration.
    pub declared_at: Option<SourceLocation>,
}

/// The role of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemberRole {
    /// A data member.
    Field,
    /// A base class.
    Base,
    /// A virtual base class.
    VirtualBase,
    /// The hidden pointer to the virtual table.
    VtablePointer,
    /// A variant of a Rust enum, with the values of the discriminant that mean it.
    Variant(Selector),
    /// The discriminant of a Rust enum.
    Discriminant,
}

/// The discriminant values of a Rust enum that select a variant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Selector {
    /// This one: see [`Types::discriminant_value`].
    Value {
        /// Its bits in debug info.
        bits: u64,
        /// The number of bits that debug info writes: 8, 16, 32 or 64. The last one is the sign when the type is
        /// signed.
        width_bits: u8,
    },
    /// Every value that selects no other variant: a variant that lies in a niche, or the only one.
    Rest,
    /// Debug info describes it in a form that Lineup does not read.
    Unknown,
}

impl Member {
    /// Offset of the first byte that holds part of the member.
    pub fn offset_bytes(&self) -> Option<u64> {
        self.offset_bits.map(|bits| bits / 8)
    }
}

impl Types {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for this many more types.
    pub fn reserve(&mut self, more: usize) {
        self.all.reserve(more);
    }

    /// Adds a type and returns its id.
    ///
    /// # Panics
    /// When the table already holds `u32::MAX` types.
    pub fn push(&mut self, ty: Type) -> TypeId {
        let id = TypeId(u32::try_from(self.all.len()).expect("fewer than 2^32 types"));
        self.all.push(ty);
        self.typedefs.take();
        id
    }

    /// The type with this id, or `None` when the id belongs to another table.
    pub fn get(&self, id: TypeId) -> Option<&Type> {
        self.all.get(id.0 as usize)
    }

    /// The type with this id, to be completed in place.
    pub fn get_mut(&mut self, id: TypeId) -> Option<&mut Type> {
        self.typedefs.take();
        self.all.get_mut(id.0 as usize)
    }

    /// The number of types.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True when the table has no type.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All types with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (TypeId, &Type)> {
        self.all.iter().enumerate().map(|(index, ty)| (TypeId(index as u32), ty))
    }

    /// Follows typedefs and qualifiers to their target. `None` for `void`, for an unknown id and for a cycle (corrupt
    /// input).
    pub fn strip(&self, mut id: TypeId) -> Option<TypeId> {
        for _ in 0..64 {
            match &self.get(id)?.kind {
                TypeKind::Typedef(target) | TypeKind::Qualified(target) => id = (*target)?,
                _ => return Some(id),
            }
        }
        None
    }

    /// The typedefs that stand for a type, also through other typedefs and qualifiers.
    pub fn typedefs_of(&self, id: TypeId) -> &[TypeId] {
        let all = self.typedefs.get_or_init(|| {
            let mut all: HashMap<TypeId, Vec<TypeId>> = HashMap::new();
            for (typedef, ty) in self.iter() {
                if let (TypeKind::Typedef(Some(_)), Some(target)) = (&ty.kind, self.strip(typedef)) {
                    all.entry(target).or_default().push(typedef);
                }
            }
            all
        });
        all.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The size of a type in bytes, through typedefs, qualifiers and arrays. `None` when incomplete,
    /// and for an array of itself (corrupt input).
    ///
    /// ```
    /// use lineup_model::types::{TypeId, Types};
    /// assert_eq!(Types::new().size_bytes(TypeId(0)), None);
    /// ```
    pub fn size_bytes(&self, id: TypeId) -> Option<u64> {
        let mut id = id;
        let mut elements = 1_u64;
        for _ in 0..64 {
            id = self.strip(id)?;
            let ty = self.get(id)?;
            match &ty.kind {
                TypeKind::Array { element, counts } if ty.size_bytes.is_none() => {
                    elements =
                        counts.iter().try_fold(elements, |product, count| product.checked_mul((*count)?))?;
                    id = *element;
                }
                _ => return ty.size_bytes?.checked_mul(elements),
            }
        }
        None
    }

    /// The aggregate that a type is, through typedefs and qualifiers.
    pub fn aggregate(&self, id: TypeId) -> Option<(TypeId, &Aggregate)> {
        let id = self.strip(id)?;
        match &self.get(id)?.kind {
            TypeKind::Aggregate(aggregate) => Some((id, aggregate)),
            _ => None,
        }
    }

    /// The type that a pointer type points to, through typedefs and qualifiers of both pointer and target.
    pub fn pointee(&self, id: TypeId) -> Option<TypeId> {
        let id = self.strip(id)?;
        match &self.get(id)?.kind {
            TypeKind::Pointer(target) => self.strip((*target)?),
            _ => None,
        }
    }

    /// Ids of complete types by name; pointers and qualifiers left out.
    pub fn by_name(&self) -> HashMap<&str, Vec<TypeId>> {
        let mut map: HashMap<&str, Vec<TypeId>> = HashMap::new();
        for (id, ty) in self.iter() {
            if matches!(ty.kind, TypeKind::Pointer(_) | TypeKind::Qualified(_)) {
                continue;
            }
            if let (Some(name), Some(_)) = (&ty.name, ty.size_bytes) {
                map.entry(name).or_default().push(id);
            }
        }
        map
    }
}

impl IntoIterator for Types {
    type Item = Type;
    type IntoIter = std::vec::IntoIter<Type>;

    /// The types in the order of their ids.
    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}
