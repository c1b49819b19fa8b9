//! Members that link objects of a type, as lists and trees do.

use crate::types::catalog::{Catalog, Ty};
use crate::types::fields;
use foldhash::HashMap;
use lineup_model::types::{TypeId, TypeKind, Types};

/// A member that links objects: its type, and its offset in the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct LinkAt {
    /// Its type.
    pub ty: Ty,
    /// Its offset.
    pub offset: u64,
}

/// The parts of an object that accesses through its type touched.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum TouchedParts {
    /// Nothing.
    #[default]
    Nothing,
    /// One link, and nothing else.
    OnlyLink(LinkAt),
    /// Other members, or several links.
    Members,
}

impl TouchedParts {
    /// Takes in an access to this link, or to none.
    pub(crate) fn add(&mut self, link: Option<LinkAt>) {
        *self = match (*self, link) {
            (TouchedParts::Nothing, Some(link)) => TouchedParts::OnlyLink(link),
            (TouchedParts::OnlyLink(known), Some(link)) if known == link => *self,
            _ => TouchedParts::Members,
        };
    }

    pub(super) fn only_link(self) -> Option<LinkAt> {
        match self {
            TouchedParts::OnlyLink(link) => Some(link),
            _ => None,
        }
    }
}

/// The links of types, by offset: worked out once.
#[derive(Default, Debug)]
pub(crate) struct Links(HashMap<(Ty, u64, u64), Option<LinkAt>>);

/// Members in members that are looked into.
const MOST_NESTED: u32 = 8;

/// A link has at most so many pointers.
const MOST_POINTERS: u64 = 4;

impl Links {
    /// The link that an access to a type touches, if it is one that another type may have as well.
    pub(crate) fn at(
        &mut self,
        catalog: &mut Catalog<'_>,
        ty: Ty,
        offset: u64,
        size_bytes: u64,
    ) -> Option<LinkAt> {
        let key = (ty, offset, size_bytes);
        if let Some(known) = self.0.get(&key) {
            return *known;
        }
        let found = catalog.table(ty).and_then(|(types, described)| {
            let (id, at) = link_at(types, described.id, offset, size_bytes)?;
            Some(LinkAt { ty: catalog.intern(described.image, id)?, offset: at })
        });
        self.0.insert(key, found);
        found
    }
}

/// The innermost member, with its offset, that points to others of its own type and holds the bytes.
fn link_at(types: &Types, id: TypeId, offset: u64, size_bytes: u64) -> Option<(TypeId, u64)> {
    let (mut id, mut base) = (types.aggregate(id)?.0, 0);
    for _ in 0..MOST_NESTED {
        let (_, aggregate) = types.aggregate(id)?;
        let last = aggregate.members.len().saturating_sub(1);
        let inner = aggregate.members.iter().enumerate().find_map(|(index, member)| {
            let extent = fields::extent(types, member, index == last)?;
            let (start, end) = (extent.start.checked_add(base)?, extent.end.saturating_add(base));
            let holds = start <= offset && offset.checked_add(size_bytes)? <= end;
            let (inner, _) = types.aggregate(member.ty).filter(|_| holds && member.bit_size.is_none())?;
            Some((inner, start))
        });
        let (inner, start) = inner?;
        if is_link(types, inner) {
            return Some((inner, start));
        }
        (id, base) = (inner, start);
    }
    None
}

/// A small type with a name, one of whose members points to another object of the type.
fn is_link(types: &Types, id: TypeId) -> bool {
    let Some((_, aggregate)) = types.aggregate(id) else { return false };
    let points_back = |ty: TypeId| {
        let target = types.strip(ty).and_then(|ty| types.get(ty)).map(|ty| &ty.kind);
        matches!(target, Some(TypeKind::Pointer(Some(target))) if types.aggregate(*target).is_some_and(|(to, _)| is_same(types, to, id)))
    };
    let is_small = types.size_bytes(id).is_some_and(|size| size <= 8 * MOST_POINTERS);
    let has_name = types.get(id).is_some_and(|ty| ty.name.is_some());
    is_small && has_name && aggregate.members.iter().any(|member| points_back(member.ty))
}

/// Debug information may hold a type twice, or declare it.
fn is_same(types: &Types, one: TypeId, other: TypeId) -> bool {
    let name = |id| types.get(id).and_then(|ty| ty.name.as_deref());
    one == other || name(one).is_some_and(|own| name(other) == Some(own))
}
