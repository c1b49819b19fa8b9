//! Numbers that tell whether two types are the same.
//!
//! Units repeat the types of shared headers. Two types are one when name, size, place of declaration
//! and members agree, and what their members refer to agrees in turn. References can form cycles, so
//! agreement is not followed to the end:
//!
//! * the *identity* of an aggregate is its name, size and place of declaration;
//! * its *shape* adds its members, with the identity of what they embed and only the bare *name* of
//!   what they point to, because a unit that declares `struct S` and one that defines it must agree on
//!   a type that points to `S`;
//! * its key adds the shape of what it embeds.
//!
//! A bare name is not enough where a program defines it twice. So every aggregate also lists the names
//! that it points to, each with the identity of what bears it there: [`super::merge`] adds those
//! identities to the key once such a name has turned out to be ambiguous.

use super::MAX_CHAIN;
use super::scan::{NO_SCOPE, RawChild, RawKind, RawType, Ref, Scan, What};
use super::store::Die;
use foldhash::quality::FixedState;
use lineup_model::types::AggregateKind;
use std::hash::{BuildHasher, Hash, Hasher};

/// Deeper nesting of types without a name than this is not told apart.
const MAX_DEPTH: u32 = 48;
/// Marks a key that is not worked out yet.
const UNKNOWN: u64 = 0;

/// File names of each scanned unit, as numbers.
pub(super) type FileHashes = Vec<u64>;

/// The keys of one unit's types.
#[derive(Debug, Default)]
pub(super) struct UnitKeys {
    /// Per type.
    pub(super) keys: Vec<TypeKey>,
    /// Bare names that aggregates point to, with the identity of what bears them in this unit.
    names: Vec<(u64, u64)>,
    /// Bare name and identity of every aggregate that the unit defines.
    pub(super) definitions: Vec<(u64, u64)>,
}

/// The key of one type.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypeKey {
    pub(super) key: u64,
    /// Indices in [`UnitKeys::names`].
    names: (u32, u32),
}

impl UnitKeys {
    /// The bare names that a type points to.
    pub(super) fn names(&self, key: &TypeKey) -> &[(u64, u64)] {
        self.names.get(key.names.0 as usize..key.names.1 as usize).unwrap_or_default()
    }
}

/// How a reference is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// To identities.
    Identity = 0,
    /// To bare names: behind a pointer.
    Name = 1,
    /// To identities and shapes.
    Strict = 2,
}

/// Works out the keys of the types of some units that refer to no other unit.
pub(super) struct Keys<'k, 'a> {
    scans: &'k [Scan<'a>],
    files: &'k [FileHashes],
    /// What is known per unit, type and [`Mode`]; shapes come last.
    known: Vec<Vec<[u64; 4]>>,
}

/// Index in a type's entry of [`Keys::known`].
const SHAPES: usize = 3;

/// A type by position: which scan, which type in it.
pub(super) type At = (usize, usize);

impl<'k, 'a> Keys<'k, 'a> {
    /// `files` runs parallel to `scans`, which are sorted by unit.
    pub(super) fn new(scans: &'k [Scan<'a>], files: &'k [FileHashes]) -> Self {
        let known = scans.iter().map(|scan| vec![[UNKNOWN; 4]; scan.types.len()]).collect();
        Keys { scans, files, known }
    }

    /// The keys of every type of a scan.
    pub(super) fn of_scan(&mut self, scan: usize) -> UnitKeys {
        let count = self.scans.get(scan).map_or(0, |scan| scan.types.len());
        let mut out = UnitKeys::default();
        for index in 0..count {
            let key = self.type_key(unalias(self.scans, (scan, index)), &mut out);
            out.keys.push(key);
        }
        out
    }

    fn get(&self, at: At) -> Option<(&'k Scan<'a>, &'k RawType<'a>)> {
        let scan = self.scans.get(at.0)?;
        Some((scan, scan.types.get(at.1)?))
    }

    fn type_key(&mut self, at: At, out: &mut UnitKeys) -> TypeKey {
        let start = out.names.len() as u32;
        let Some((scan, ty)) = self.get(at) else { return TypeKey { key: 4, names: (0, 0) } };
        if !matches!(ty.kind, RawKind::Aggregate(_)) {
            let key = self.follow(Mode::Strict, at, 0);
            return TypeKey { key, names: (start, start) };
        }
        if !ty.is_declaration && named(self.scans, (at.0, scan, ty)).1.name.is_some() {
            let name = self.follow(Mode::Name, at, 0);
            out.definitions.push((name, self.follow(Mode::Identity, at, 0)));
        }
        let shape = self.shape(at, 0);
        let mut hasher = FixedState::default().build_hasher();
        hasher.write_u64(shape);
        let mut visits = VISITS_PER_MEMBER * (scan.children(ty).len() + 1);
        for child in scan.children(ty) {
            if let Some(embedded) = self.embedded(at.0, child.target) {
                hasher.write_u64(self.shape(embedded, 0));
            }
            self.names_behind(at.0, child.target, (false, 0), &mut visits, &mut out.names);
        }
        TypeKey { key: hasher.finish() | 1 << 63, names: (start, out.names.len() as u32) }
    }

    /// The aggregate that a member holds, through arrays, typedefs and qualifiers.
    fn embedded(&self, from: usize, reference: Ref) -> Option<At> {
        let mut at = resolve(self.scans, from, reference)?;
        for _ in 0..MAX_CHAIN {
            let (_, ty) = self.get(at)?;
            match ty.kind {
                RawKind::Aggregate(_) => return Some(at),
                RawKind::Typedef | RawKind::Qualifier(_) | RawKind::Array => {
                    at = resolve(self.scans, at.0, ty.target)?;
                }
                _ => return None,
            }
        }
        None
    }

    /// Collects the named aggregates that a reference reaches behind a pointer.
    fn names_behind(
        &mut self,
        from: usize,
        reference: Ref,
        (is_behind, depth): (bool, u32),
        visits: &mut usize,
        names: &mut Vec<(u64, u64)>,
    ) {
        let is_allowed = *visits > 0 && depth < MAX_DEPTH;
        let Some(at) = resolve(self.scans, from, reference).filter(|_| is_allowed) else { return };
        *visits -= 1;
        let Some((scan, ty)) = self.get(at) else { return };
        match ty.kind {
            RawKind::Aggregate(_) if named(self.scans, (at.0, scan, ty)).1.name.is_some() => {
                if is_behind {
                    names.push((self.follow(Mode::Name, at, 0), self.follow(Mode::Identity, at, 0)));
                }
            }
            _ => {
                let below = (is_behind || is_pointing(ty.kind), depth + 1);
                self.names_behind(at.0, ty.target, below, visits, names);
                for child in scan.children(ty) {
                    self.names_behind(at.0, child.target, below, visits, names);
                }
            }
        }
    }

    fn reference(&mut self, mode: Mode, from: usize, reference: Ref, depth: u32) -> u64 {
        match (reference, resolve(self.scans, from, reference)) {
            (_, Some(at)) => self.follow(mode, at, depth),
            (Ref::Nothing, None) => 1,
            (_, None) => 2,
        }
    }

    /// The key of what a reference leads to, in one of the modes.
    fn follow(&mut self, mode: Mode, at: At, depth: u32) -> u64 {
        if depth > MAX_DEPTH {
            return 3;
        }
        if let Some(key) = self.remembered(mode as usize, at) {
            return key;
        }
        let Some((scan, ty)) = self.get(at) else { return 4 };
        let mut hasher = FixedState::default().build_hasher();
        let (named_scan, named) = named(self.scans, (at.0, scan, ty));
        match ty.kind {
            RawKind::Aggregate(kind) if named.name.is_some() => {
                (kind == AggregateKind::Union, named.name).hash(&mut hasher);
                hash_scope(named_scan, named.scope, &mut hasher);
                if mode != Mode::Name {
                    self.hash_place(at.0, ty, &mut hasher);
                }
                if mode == Mode::Strict {
                    hasher.write_u64(self.shape(at, depth + 1));
                }
            }
            RawKind::Aggregate(_) => hasher.write_u64(self.shape(at, depth + 1)),
            _ => {
                (ty.kind, scan.language, named.name).hash(&mut hasher);
                hash_scope(named_scan, named.scope, &mut hasher);
                self.hash_place(at.0, ty, &mut hasher);
                let mode = if mode == Mode::Identity && is_pointing(ty.kind) { Mode::Name } else { mode };
                hasher.write_u64(self.reference(mode, at.0, ty.target, depth + 1));
                for child in scan.children(ty) {
                    hash_child(child, &mut hasher);
                    hasher.write_u64(self.reference(mode, at.0, child.target, depth + 1));
                }
            }
        }
        self.remember(mode as usize, at, hasher.finish())
    }

    /// The key of an aggregate and its members.
    fn shape(&mut self, at: At, depth: u32) -> u64 {
        if depth > MAX_DEPTH {
            return 3;
        }
        if let Some(key) = self.remembered(SHAPES, at) {
            return key;
        }
        let Some((scan, ty)) = self.get(at) else { return 4 };
        let mut hasher = FixedState::default().build_hasher();
        (ty.kind, scan.language).hash(&mut hasher);
        if named(self.scans, (at.0, scan, ty)).1.name.is_some() {
            hasher.write_u64(self.follow(Mode::Identity, at, depth + 1));
        } else {
            self.hash_place(at.0, ty, &mut hasher);
        }
        for child in scan.children(ty) {
            hash_child(child, &mut hasher);
            hasher.write_u64(self.reference(Mode::Identity, at.0, child.target, depth + 1));
        }
        self.remember(SHAPES, at, hasher.finish())
    }

    fn hash_place(&self, from: usize, ty: &RawType<'a>, hasher: &mut impl Hasher) {
        (ty.size, ty.align, ty.encoding, ty.is_declaration).hash(hasher);
        // Declarations have no place; file 0 would be the unit's own.
        let is_placed = matches!(ty.kind, RawKind::Aggregate(_) | RawKind::Typedef | RawKind::Enum);
        if is_placed && ty.line != 0 {
            let files = self.files.get(from);
            let file = files.and_then(|files| files.get(ty.file as usize)).copied().unwrap_or(0);
            (file, ty.line).hash(hasher);
        }
    }

    fn remembered(&self, list: usize, at: At) -> Option<u64> {
        let key = self.known.get(at.0)?.get(at.1)?[list];
        (key != UNKNOWN).then_some(key)
    }

    fn remember(&mut self, list: usize, at: At, key: u64) -> u64 {
        // Never UNKNOWN, and never one of the small numbers that stand for no type.
        let key = key | 1 << 63;
        if let Some(keys) = self.known.get_mut(at.0).and_then(|keys| keys.get_mut(at.1)) {
            keys[list] = key;
        }
        key
    }
}

/// How many types are visited per member in search of names behind pointers.
const VISITS_PER_MEMBER: usize = 16;

/// True for types that need only the name of what they refer to.
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

/// The type that a reference leads to.
pub(super) fn resolve(scans: &[Scan<'_>], from: usize, reference: Ref) -> Option<At> {
    let at = match reference {
        Ref::Local(index) => (from, index as usize),
        Ref::Elsewhere(Die { unit, offset }) => {
            let scan = scans.binary_search_by_key(&unit, |scan| scan.unit).ok()?;
            (scan, scans.get(scan)?.at(offset)?)
        }
        Ref::Nothing | Ref::Broken => return None,
    };
    Some(unalias(scans, at))
}

/// Follows entries that stand for a type in a type unit.
pub(super) fn unalias(scans: &[Scan<'_>], mut at: At) -> At {
    for _ in 0..MAX_CHAIN {
        let Some(scan) = scans.get(at.0).filter(|scan| scan.has_aliases) else { return at };
        let Some(ty) = scan.types.get(at.1) else { return at };
        let target = match ty.alias {
            Ref::Local(index) => Some((at.0, index as usize)),
            Ref::Elsewhere(die) => scans
                .binary_search_by_key(&die.unit, |scan| scan.unit)
                .ok()
                .and_then(|scan| Some((scan, scans.get(scan)?.at(die.offset)?))),
            Ref::Nothing | Ref::Broken => None,
        };
        match target {
            Some(target) => at = target,
            None => return at,
        }
    }
    at
}

/// The entry that names a type: the declaration that it completes when it has no name of its own.
pub(super) fn named<'s, 'a>(
    scans: &'s [Scan<'a>],
    (from, scan, ty): (usize, &'s Scan<'a>, &'s RawType<'a>),
) -> (&'s Scan<'a>, &'s RawType<'a>) {
    if ty.name.is_some() || ty.completes == Ref::Nothing {
        return (scan, ty);
    }
    resolve(scans, from, ty.completes)
        .and_then(|at| {
            let scan = scans.get(at.0)?;
            Some((scan, scan.types.get(at.1)?))
        })
        .unwrap_or((scan, ty))
}

fn hash_child(child: &RawChild<'_>, hasher: &mut impl Hasher) {
    child.what.hash(hasher);
    if matches!(child.what, What::Member(_) | What::Static) {
        child.name.hash(hasher);
        child.place.hash(hasher);
        (child.bit_size, child.align).hash(hasher);
    }
}

fn hash_scope(scan: &Scan<'_>, mut scope: u32, hasher: &mut impl Hasher) {
    while scope != NO_SCOPE {
        let Some(found) = scan.scopes.get(scope as usize) else { return };
        found.name.hash(hasher);
        // A scope's parent is always listed before it, so that this ends.
        scope = found.parent;
    }
}
