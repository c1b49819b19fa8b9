//! Keys that are equal when two types are the same.
//!
//! Units repeat the types of shared headers. Two types are one when name, size, place of declaration and members agree,
//! and the targets of their members' references agree in turn. References can form cycles, so agreement is not followed
//! to the end:
//!
//! * the *identity* of an aggregate is its name, size and place of declaration;
//! * its *shape* adds its members, with the identity of embedded types and only the bare *name* of pointed-to types: a
//!   unit that declares `struct S` and one that defines it must agree on a type that points to `S`;
//! * its key adds the shapes of embedded types.
//!
//! A bare name is not enough where a program defines it twice. So every aggregate also lists the names that it points
//! to, each with the identity of the type of that name there: [`super::type_table`] adds those identities to the key
//! once such a name has turned out to be ambiguous.

use super::linked_types::Linked;
use super::scan::RawType;
use crate::dwarf::MAX_CHAIN;
use crate::dwarf::kind::RawKind;
use crate::dwarf::reference::{PackedRef, Ref};
use foldhash::fast::FixedState;
use lineup_model::types::AggregateKind;
use std::hash::{BuildHasher, Hash, Hasher};

/// Types without a name that nest deeper than this are not distinguished.
const MAX_DEPTH: u32 = 48;
/// Marks a key that is not worked out yet.
const UNKNOWN: u64 = 0;

/// The keys of one unit's types.
#[derive(Debug, Default)]
pub(crate) struct UnitKeys {
    /// Per type.
    pub(crate) keys: Vec<TypeKey>,
    /// Bare names that aggregates point to, with the identity of the type of that name in this unit.
    names: Vec<(u64, u64)>,
    /// Bare name and identity of every aggregate that the unit defines.
    pub(crate) definitions: Vec<(u64, u64)>,
}

/// The key of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeKey {
    pub(crate) key: u64,
    /// Indices in [`UnitKeys::names`].
    names: (u32, u32),
}

impl UnitKeys {
    /// The bare names that a type points to.
    pub(crate) fn names(&self, key: &TypeKey) -> &[(u64, u64)] {
        self.names.get(key.names.0 as usize..key.names.1 as usize).unwrap_or_default()
    }
}

/// The way a reference is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To identities.
    Identity = 0,
    /// To bare names: behind a pointer.
    Name = 1,
    /// To identities and shapes.
    Strict = 2,
}

/// Works out the keys of types.
pub(crate) struct Keys<'k, 'a> {
    linked: &'k Linked<'a>,
    /// The known keys per type and [`Mode`]; shapes come last.
    known: Vec<[u64; 4]>,
}

/// Index in a type's entry of [`Keys::known`].
const SHAPES: usize = 3;

impl<'k, 'a> Keys<'k, 'a> {
    pub(crate) fn new(linked: &'k Linked<'a>) -> Self {
        Keys { linked, known: vec![[UNKNOWN; 4]; linked.types.len()] }
    }

    /// The keys of every type.
    pub(crate) fn all(mut self) -> UnitKeys {
        let count = self.linked.types.len();
        let mut out = UnitKeys { keys: Vec::with_capacity(count), ..UnitKeys::default() };
        for index in 0..count {
            let key = self.type_key(self.linked.real(index), &mut out);
            out.keys.push(key);
        }
        out
    }

    #[inline]
    fn get(&self, at: usize) -> Option<&'k RawType> {
        self.linked.types.get(at)
    }

    /// The entry that names a type.
    #[inline]
    fn named(&self, at: usize, ty: &'k RawType) -> &'k RawType {
        if ty.completes.index().is_none() { ty } else { self.get(self.linked.named(at)).unwrap_or(ty) }
    }

    fn type_key(&mut self, at: usize, out: &mut UnitKeys) -> TypeKey {
        let start = out.names.len() as u32;
        let Some(ty) = self.get(at) else { return TypeKey { key: 4, names: (0, 0) } };
        if !matches!(ty.kind, RawKind::Aggregate(_)) {
            let key = self.follow(Mode::Strict, at, 0);
            return TypeKey { key, names: (start, start) };
        }
        if !ty.is_declaration && self.named(at, ty).is_named {
            let name = self.follow(Mode::Name, at, 0);
            out.definitions.push((name, self.follow(Mode::Identity, at, 0)));
        }
        let shape = self.shape(at, 0);
        let mut hasher = FixedState::default().build_hasher();
        hasher.write_u64(shape);
        let mut visits = VISITS_PER_MEMBER * (ty.parts.count as usize + 1);
        for target in self.linked.part_targets(ty) {
            if let Some(embedded) = self.embedded(target) {
                hasher.write_u64(self.shape(embedded, 0));
            }
            self.names_behind(target, (false, 0), &mut visits, &mut out.names);
        }
        TypeKey { key: hasher.finish() | 1 << 63, names: (start, out.names.len() as u32) }
    }

    /// The aggregate that a member holds, through arrays, typedefs and qualifiers.
    fn embedded(&self, reference: PackedRef) -> Option<usize> {
        let mut at = reference.index()?;
        for _ in 0..MAX_CHAIN {
            let ty = self.get(at)?;
            match ty.kind {
                RawKind::Aggregate(_) => return Some(at),
                RawKind::Typedef | RawKind::Qualifier(_) | RawKind::Array => {
                    at = ty.target.index()?;
                }
                _ => return None,
            }
        }
        None
    }

    /// Collects the named aggregates that a reference reaches behind a pointer.
    fn names_behind(
        &mut self,
        reference: PackedRef,
        (mut is_behind, depth): (bool, u32),
        visits: &mut usize,
        names: &mut Vec<(u64, u64)>,
    ) {
        let mut next = reference.index();
        for depth in depth..MAX_DEPTH {
            let Some(at) = next.filter(|_| *visits > 0) else { return };
            *visits -= 1;
            let Some(ty) = self.get(at) else { return };
            let is_aggregate = matches!(ty.kind, RawKind::Aggregate(_));
            if is_aggregate && self.named(at, ty).is_named {
                if is_behind {
                    names.push((self.follow(Mode::Name, at, 0), self.follow(Mode::Identity, at, 0)));
                }
                return;
            }
            is_behind |= is_pointing(ty.kind);
            if ty.parts.count as usize > 0 {
                let below = (is_behind, depth + 1);
                self.names_behind(ty.target, below, visits, names);
                for target in self.linked.part_targets(ty) {
                    self.names_behind(target, below, visits, names);
                }
                return;
            }
            next = ty.target.index();
        }
    }

    #[inline]
    fn reference(&mut self, mode: Mode, reference: PackedRef, depth: u32) -> u64 {
        match reference.index() {
            Some(at) => self.follow(mode, at, depth),
            None if reference.get() == Ref::Nothing => 1,
            None => 2,
        }
    }

    /// The key of a reference's target, in one of the modes.
    #[inline]
    fn follow(&mut self, mode: Mode, at: usize, depth: u32) -> u64 {
        if depth > MAX_DEPTH {
            return 3;
        }
        match self.remembered(mode as usize, at) {
            Some(key) => key,
            None => self.work_out(mode, at, depth),
        }
    }

    fn work_out(&mut self, mode: Mode, at: usize, depth: u32) -> u64 {
        let Some(ty) = self.get(at) else { return 4 };
        if mode == Mode::Identity && is_pointing(ty.kind) {
            return self.follow(Mode::Name, at, depth);
        }
        let mut hasher = FixedState::default().build_hasher();
        let named = self.named(at, ty);
        match ty.kind {
            RawKind::Aggregate(kind) if named.is_named => {
                hasher.write_u64(named.full_name);
                hasher.write_u8((kind == AggregateKind::Union).into());
                if mode != Mode::Name {
                    hasher.write_u64(ty.outside);
                }
                if mode == Mode::Strict {
                    hasher.write_u64(self.shape(at, depth + 1));
                }
            }
            RawKind::Aggregate(_) => hasher.write_u64(self.shape(at, depth + 1)),
            _ => {
                hasher.write_u64(named.full_name);
                hasher.write_u64(ty.outside);
                hasher.write_u64(ty.inside);
                (ty.kind, ty.language, named.is_named).hash(&mut hasher);
                hasher.write_u64(self.reference(mode, ty.target, depth + 1));
                for target in self.linked.part_targets(ty) {
                    hasher.write_u64(self.reference(mode, target, depth + 1));
                }
            }
        }
        self.remember(mode as usize, at, hasher.finish())
    }

    /// The key of an aggregate and its members.
    fn shape(&mut self, at: usize, depth: u32) -> u64 {
        if depth > MAX_DEPTH {
            return 3;
        }
        if let Some(key) = self.remembered(SHAPES, at) {
            return key;
        }
        let Some(ty) = self.get(at) else { return 4 };
        let mut hasher = FixedState::default().build_hasher();
        (ty.kind, ty.language).hash(&mut hasher);
        if self.named(at, ty).is_named {
            hasher.write_u64(self.follow(Mode::Identity, at, depth + 1));
        } else {
            hasher.write_u64(ty.outside);
        }
        hasher.write_u64(ty.inside);
        for target in self.linked.part_targets(ty) {
            hasher.write_u64(self.reference(Mode::Identity, target, depth + 1));
        }
        self.remember(SHAPES, at, hasher.finish())
    }

    #[inline]
    fn remembered(&self, list: usize, at: usize) -> Option<u64> {
        let key = self.known.get(at)?[list];
        (key != UNKNOWN).then_some(key)
    }

    #[inline]
    fn remember(&mut self, list: usize, at: usize, key: u64) -> u64 {
        // Never UNKNOWN, and never one of the small numbers that stand for no type.
        let key = key | 1 << 63;
        if let Some(keys) = self.known.get_mut(at) {
            keys[list] = key;
        }
        key
    }
}

/// The number of types visited per member in search of names behind pointers.
const VISITS_PER_MEMBER: usize = 16;

/// True for types that need only the name of their target.
fn is_pointing(kind: RawKind) -> bool {
    matches!(
        kind,
        RawKind::Pointer
            | RawKind::Reference
            | RawKind::RvalueReference
            | RawKind::MemberPointer
            | RawKind::Function
    )
}
