//! From the types of each unit to one table without repetition.

use super::files::Files;
use super::keys::{At, FileHashes, Keys, TypeKey, UnitKeys, named, resolve, unalias};
use super::scan::{FromTop, NO_SCOPE, RawChild, RawKind, RawPlace, RawType, Ref, Scan, What, scan};
use super::store::{Die, View};
use super::{Unit, unify};
use gimli::constants as dw;
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, ScalarKind, SourceLocation, Type, TypeId, TypeKind, Types,
};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Bytes of units read at once, per thread, before their types are merged: enough to keep the threads
/// busy, few enough that what is waiting stays small. Collected types take about twelve times the room
/// of their entries.
const BYTES_AT_ONCE: u64 = 1 << 20;

/// All types of a program, and which entry each comes from.
#[derive(Debug, Default)]
pub(crate) struct TypeTable {
    pub(crate) types: Types,
    /// Per unit: entry offset and type, by offset.
    by_entry: Vec<Vec<(u32, TypeId)>>,
    /// Units that could not be read to their end.
    pub(crate) damaged: u64,
}

impl TypeTable {
    /// Reads the types of all units.
    pub(crate) fn build(view: &View<'_>) -> TypeTable {
        let units: Vec<u32> = (0..view.store.units.len() as u32)
            .filter(|&unit| view.store.units.get(unit as usize).is_some_and(|entry| entry.split.is_none()))
            .collect();
        let mut merger = build_in_pieces(view, &units).unwrap_or_else(|| build_whole(view, &units));
        let forward = unify::unify(&mut merger.table.types);
        for (_, id) in merger.table.by_entry.iter_mut().flatten() {
            *id = forward.get(id.0 as usize).copied().unwrap_or(*id);
        }
        merger.table
    }

    /// The type that an entry describes.
    pub(crate) fn of_entry(&self, die: Die) -> Option<TypeId> {
        let entries = self.by_entry.get(die.unit as usize)?;
        let index = entries.binary_search_by_key(&die.offset, |&(offset, _)| offset).ok()?;
        entries.get(index).map(|&(_, id)| id)
    }
}

/// A unit read, with what is needed to merge it.
struct Prepared<'a> {
    scan: Scan<'a>,
    unit: Unit<'a>,
    files: FileHashes,
}

fn prepare<'a>(view: &View<'a>, index: u32) -> Option<Prepared<'a>> {
    let unit = view.unit(index).ok()?;
    let scan = scan(view, index, &unit)?;
    let files = Files::new(view.dwarf(index)?, &unit).hashes();
    Some(Prepared { scan, unit, files })
}

/// Reads and merges some units at a time. `None` when a unit refers to another: then all must be at
/// hand at once.
fn build_in_pieces(view: &View<'_>, units: &[u32]) -> Option<Merger> {
    let mut merger = Merger::new(view);
    let read = |piece: &[u32]| -> Vec<Option<(Prepared<'_>, UnitKeys)>> {
        let one = |&unit: &u32| {
            let prepared = prepare(view, unit)?;
            let keys = if prepared.scan.refers_elsewhere {
                UnitKeys::default()
            } else {
                let files = std::slice::from_ref(&prepared.files);
                Keys::new(std::slice::from_ref(&prepared.scan), files).of_scan(0)
            };
            Some((prepared, keys))
        };
        piece.par_iter().map(one).collect()
    };
    let mut pieces = pieces(view, units);
    let mut waiting = pieces.next().map(read).unwrap_or_default();
    while !waiting.is_empty() {
        if waiting.iter().flatten().any(|(prepared, _)| prepared.scan.refers_elsewhere) {
            return None;
        }
        let next = pieces.next();
        let merge = || {
            for prepared in &waiting {
                match prepared {
                    Some((prepared, keys)) => {
                        let scans = std::slice::from_ref(&prepared.scan);
                        merger.absorb(view, scans, &[&prepared.unit], std::slice::from_ref(keys));
                    }
                    None => merger.table.damaged += 1,
                }
            }
            if let Some((last, _)) = waiting.iter().rev().flatten().next() {
                view.store.release_up_to(last.scan.unit);
            }
        };
        let ((), following) = rayon::join(merge, || next.map(read).unwrap_or_default());
        waiting = following;
    }
    Some(merger)
}

/// Divides the units into pieces of about equal length.
fn pieces<'u>(view: &View<'_>, units: &'u [u32]) -> impl Iterator<Item = &'u [u32]> {
    let at_once = BYTES_AT_ONCE * rayon::current_num_threads() as u64;
    let mut rest = units;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let is_over = |&unit: &u32| {
            bytes += view.store.len_bytes(unit);
            bytes >= at_once
        };
        let end = rest.iter().position(is_over).map_or(rest.len(), |last| last + 1);
        let (piece, following) = rest.split_at(end);
        rest = following;
        (!piece.is_empty()).then_some(piece)
    })
}

fn build_whole(view: &View<'_>, units: &[u32]) -> Merger {
    let mut merger = Merger::new(view);
    let prepared: Vec<Option<Prepared<'_>>> = units.par_iter().map(|&unit| prepare(view, unit)).collect();
    let (mut scans, mut units, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for prepared in prepared {
        match prepared {
            Some(prepared) => {
                scans.push(prepared.scan);
                units.push(prepared.unit);
                files.push(prepared.files);
            }
            None => merger.table.damaged += 1,
        }
    }
    let mut keys = Keys::new(&scans, &files);
    let keys: Vec<UnitKeys> = (0..scans.len()).map(|scan| keys.of_scan(scan)).collect();
    let units: Vec<&Unit<'_>> = units.iter().collect();
    merger.absorb(view, &scans, &units, &keys);
    merger
}

struct Merger {
    table: TypeTable,
    known: HashMap<u64, TypeId, foldhash::quality::FixedState>,
    names: HashSet<Arc<str>>,
    /// Identity of the first definition of each bare name.
    defined: HashMap<u64, u64, foldhash::quality::FixedState>,
    /// Bare names with several definitions.
    ambiguous: HashSet<u64, foldhash::quality::FixedState>,
}

/// Stands for types that the debug information refers to but does not describe.
const UNKNOWN: TypeId = TypeId(0);

impl Merger {
    fn new(view: &View<'_>) -> Self {
        let mut table =
            TypeTable { by_entry: vec![Vec::new(); view.store.units.len()], ..TypeTable::default() };
        table.types.push(blank());
        Merger {
            table,
            known: HashMap::default(),
            names: HashSet::new(),
            defined: HashMap::default(),
            ambiguous: HashSet::default(),
        }
    }

    fn note_definitions(&mut self, keys: &UnitKeys) {
        for &(name, identity) in &keys.definitions {
            if *self.defined.entry(name).or_insert(identity) != identity {
                self.ambiguous.insert(name);
            }
        }
    }

    /// The key to merge a type by: with the identity of what it points to where the name alone could
    /// mean several.
    fn choose(&self, keys: &UnitKeys, key: &TypeKey) -> u64 {
        let names = keys.names(key);
        let is_ambiguous = |(name, _): &&(u64, u64)| self.ambiguous.contains(name);
        if self.ambiguous.is_empty() || !names.iter().any(|pair| is_ambiguous(&pair)) {
            return key.key;
        }
        let identities = names.iter().filter(is_ambiguous).map(|&(_, identity)| identity);
        self.known.hasher().hash_one((key.key, identities.collect::<Vec<u64>>()))
    }

    /// Adds what is new of some units that refer to no others.
    fn absorb(&mut self, view: &View<'_>, scans: &[Scan<'_>], units: &[&Unit<'_>], keys: &[UnitKeys]) {
        let mut ids: Vec<Vec<TypeId>> = Vec::with_capacity(scans.len());
        let mut fresh: Vec<(At, TypeId)> = Vec::new();
        for keys in keys {
            self.note_definitions(keys);
        }
        for (number, (scan, keys)) in scans.iter().zip(keys).enumerate() {
            self.table.damaged += u64::from(scan.damaged);
            let mut of_scan = Vec::with_capacity(keys.keys.len());
            for (index, key) in keys.keys.iter().enumerate() {
                let key = self.choose(keys, key);
                let id = match self.known.get(&key) {
                    Some(&id) => id,
                    None => {
                        let id = self.table.types.push(blank());
                        self.known.insert(key, id);
                        fresh.push(((number, index), id));
                        id
                    }
                };
                of_scan.push(id);
            }
            if let Some(entries) = self.table.by_entry.get_mut(scan.unit as usize) {
                *entries = scan.offsets.iter().zip(of_scan.iter().copied()).collect();
            }
            ids.push(of_scan);
        }
        for ((number, index), id) in fresh {
            // An entry that stands for another has its key, and may come first.
            let (from, index) = unalias(scans, (number, index));
            let (Some(scan), Some(&unit)) = (scans.get(from), units.get(from)) else { continue };
            let (Some(ty), Some(dwarf)) = (scan.types.get(index), view.dwarf(scan.unit)) else { continue };
            let writer = Writer {
                scans,
                scan,
                from,
                ids: &ids,
                files: Files::new(dwarf, unit),
                names: &mut self.names,
            };
            let complete = writer.complete(ty);
            if let Some(slot) = self.table.types.get_mut(id) {
                *slot = complete;
            }
        }
    }
}

fn blank() -> Type {
    Type {
        name: None,
        size_bytes: None,
        declared_align: None,
        declared_at: None,
        unit: None,
        language: Language::Other,
        kind: TypeKind::Opaque,
    }
}

/// Turns compact types of one unit into the vocabulary's.
struct Writer<'w, 'a> {
    scans: &'w [Scan<'a>],
    scan: &'w Scan<'a>,
    from: usize,
    ids: &'w [Vec<TypeId>],
    files: Files<'w, 'a>,
    names: &'w mut HashSet<Arc<str>>,
}

impl Writer<'_, '_> {
    fn complete(mut self, ty: &RawType<'_>) -> Type {
        let is_declaration = ty.is_declaration;
        let kind = self.kind(ty);
        let name = match ty.kind {
            RawKind::Qualifier(keyword) => Some(self.intern(keyword.keyword())),
            RawKind::Reference => Some(self.intern("&")),
            RawKind::RvalueReference => Some(self.intern("&&")),
            _ => self.qualified_name(ty),
        };
        Type {
            name,
            size_bytes: if is_declaration { None } else { self.size(ty) },
            declared_align: ty.align.map(NonZeroU64::get),
            declared_at: self.location(ty.file, ty.line),
            unit: self.scan.name.map(|name| self.intern(&String::from_utf8_lossy(name))),
            language: self.scan.language,
            kind,
        }
    }

    fn kind(&mut self, ty: &RawType<'_>) -> TypeKind {
        let target = self.target(ty.target);
        match ty.kind {
            RawKind::Base => TypeKind::Scalar(scalar(ty.encoding)),
            RawKind::Enum => TypeKind::Enum,
            RawKind::Pointer | RawKind::Reference | RawKind::RvalueReference => TypeKind::Pointer(target),
            RawKind::MemberPointer => TypeKind::MemberPointer,
            RawKind::Qualifier(_) => TypeKind::Qualified(target),
            RawKind::Typedef => TypeKind::Typedef(target),
            RawKind::Opaque => TypeKind::Opaque,
            RawKind::Array => TypeKind::Array { element: target.unwrap_or(UNKNOWN), counts: self.counts(ty) },
            RawKind::Function => {
                let children = self.scan.children(ty).iter().filter(|child| child.what == What::Parameter);
                let parameters = children.map(|child| self.target(child.target).unwrap_or(UNKNOWN)).collect();
                TypeKind::Function { returns: target, parameters }
            }
            RawKind::Aggregate(kind) => TypeKind::Aggregate(self.aggregate(kind, ty)),
        }
    }

    fn counts(&self, ty: &RawType<'_>) -> Vec<Option<u64>> {
        let dimensions: Vec<Option<u64>> = self
            .scan
            .children(ty)
            .iter()
            .filter_map(|child| if let What::Dimension(count) = child.what { Some(count) } else { None })
            .collect();
        if dimensions.is_empty() { vec![None] } else { dimensions }
    }

    fn aggregate(&mut self, kind: AggregateKind, ty: &RawType<'_>) -> Aggregate {
        let scan = self.scan;
        let mut members = Vec::new();
        let mut static_members = Vec::new();
        for child in scan.children(ty) {
            match child.what {
                What::Member(role) => members.push(Member {
                    name: child.name.map(|name| self.intern(&String::from_utf8_lossy(name))),
                    ty: self.target(child.target).unwrap_or(UNKNOWN),
                    offset_bits: self.offset_bits(child),
                    bit_size: child.bit_size,
                    declared_align: child.align.map(NonZeroU64::get),
                    role,
                    declared_at: self.location(child.file, child.line),
                }),
                What::Static => static_members.extend(child.name.map(super::text)),
                What::Dimension(_) | What::Parameter => {}
            }
        }
        Aggregate { kind, members, static_members, is_declaration: ty.is_declaration }
    }

    /// A member's place in bits. DWARF 3 counts a bit-field from the most significant bit of its
    /// storage unit, which on a little-endian machine is the last bit in memory order (DWARF 4,
    /// section 5.5.6).
    fn offset_bits(&self, child: &RawChild<'_>) -> Option<u64> {
        match &child.place {
            RawPlace::Bits(bits) => Some(*bits),
            RawPlace::Dynamic => None,
            RawPlace::FromTop(place) => {
                let FromTop { byte_offset, bit_offset, storage_bytes } = **place;
                let storage_bytes = storage_bytes.or_else(|| self.size_of(child.target))?;
                let end = byte_offset.checked_add(storage_bytes)?.checked_mul(8)?;
                end.checked_add_signed(bit_offset.checked_neg()?)?.checked_sub(child.bit_size?.into())
            }
        }
    }

    /// The size of what a reference leads to, through typedefs and qualifiers.
    fn size_of(&self, reference: Ref) -> Option<u64> {
        let mut at = resolve(self.scans, self.from, reference)?;
        for _ in 0..super::MAX_CHAIN {
            let ty = self.scans.get(at.0)?.types.get(at.1)?;
            match ty.kind {
                RawKind::Typedef | RawKind::Qualifier(_) => at = resolve(self.scans, at.0, ty.target)?,
                _ => return ty.size,
            }
        }
        None
    }

    fn size(&self, ty: &RawType<'_>) -> Option<u64> {
        match ty.kind {
            RawKind::Pointer | RawKind::Reference | RawKind::RvalueReference => {
                Some(ty.size.unwrap_or(self.scan.pointer_bytes))
            }
            // Itanium C++ ABI, section 2.3: one word for data members, two for functions.
            RawKind::MemberPointer => ty.size.or_else(|| {
                let (scan, index) = resolve(self.scans, self.from, ty.target)?;
                let target = self.scans.get(scan)?.types.get(index)?;
                let words = if target.kind == RawKind::Function { 2 } else { 1 };
                Some(words * self.scan.pointer_bytes)
            }),
            RawKind::Typedef | RawKind::Qualifier(_) => self.size_of(ty.target),
            _ => ty.size,
        }
    }

    fn target(&self, reference: Ref) -> Option<TypeId> {
        match (reference, resolve(self.scans, self.from, reference)) {
            (Ref::Nothing, _) => None,
            (_, Some((scan, index))) => self.ids.get(scan).and_then(|ids| ids.get(index)).copied(),
            (_, None) => Some(UNKNOWN),
        }
    }

    fn location(&mut self, file: u32, line: u32) -> Option<SourceLocation> {
        if line == 0 {
            return None;
        }
        let path = self.files.path(file.into())?;
        Some(SourceLocation { file: self.intern(&path), line })
    }

    fn qualified_name(&mut self, ty: &RawType<'_>) -> Option<Arc<str>> {
        let (scan, ty) = named(self.scans, (self.from, self.scan, ty));
        let own = String::from_utf8_lossy(ty.name?);
        if scan.language == Language::C || ty.scope == NO_SCOPE {
            return Some(self.intern(&own));
        }
        let mut names = vec![own];
        let mut scope = ty.scope;
        while let Some(found) = scan.scopes.get(scope as usize) {
            names.push(String::from_utf8_lossy(found.name));
            scope = found.parent;
        }
        names.reverse();
        Some(self.intern(&names.join("::")))
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        match self.names.get(name) {
            Some(known) => Arc::clone(known),
            None => {
                let shared: Arc<str> = name.into();
                self.names.insert(Arc::clone(&shared));
                shared
            }
        }
    }
}

fn scalar(encoding: u8) -> ScalarKind {
    match gimli::DwAte(encoding) {
        dw::DW_ATE_boolean => ScalarKind::Boolean,
        dw::DW_ATE_float
        | dw::DW_ATE_complex_float
        | dw::DW_ATE_imaginary_float
        | dw::DW_ATE_decimal_float => ScalarKind::Float,
        dw::DW_ATE_signed_char | dw::DW_ATE_unsigned_char | dw::DW_ATE_UTF | dw::DW_ATE_ASCII => {
            ScalarKind::Character
        }
        dw::DW_ATE_signed | dw::DW_ATE_signed_fixed => ScalarKind::Integer { signed: true },
        _ => ScalarKind::Integer { signed: false },
    }
}
