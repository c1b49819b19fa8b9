//! From the types of each unit to one table without repetition.

use super::detail::{UnitEntries, detail};
use super::keys::{Keys, TypeKey, UnitKeys};
use super::linked_types::Linked;
use super::ordered_results::in_order;
use super::raw::{ChildKind, Detail, Extent, FromTop, RawChild, RawPlace};
use super::scan::{RawType, Rest, Scan, scan};
use super::type_name::type_name;
use super::{definitions as unify, ignored_alignment};
use crate::dwarf::files::Files;
use crate::dwarf::kind::RawKind;
use crate::dwarf::reference::{Die, Ref};
use crate::dwarf::store::View;
use foldhash::quality::FixedState;
use gimli::constants as dw;
use lineup_model::types::{
    Aggregate, AggregateKind, Language, Member, ScalarKind, SourceLocation, Type, TypeId, TypeKind, Types,
};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::BuildHasher;
use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of units, per thread, that may be read before the preceding units are merged. Enough for threads not to wait,
/// and few enough to keep the queue of read units small.
const BYTES_AHEAD: u64 = 1 << 20;

/// All types of a program, and the entry that each comes from.
#[derive(Debug, Default)]
pub(crate) struct TypeTable {
    pub(crate) types: Types,
    /// Per unit: entry offset and type, by offset.
    by_entry: Vec<Vec<(u32, TypeId)>>,
    /// Units that could not be read to their end, and types that hold themselves.
    pub(crate) damaged: u64,
    /// Per type the unit that it was read from; `None` when units were not read one by one.
    pub(crate) origins: Option<Vec<u32>>,
}

impl TypeTable {
    /// Reads the types of all units.
    pub(crate) fn build(view: &View<'_>) -> TypeTable {
        let units: Vec<u32> = (0..view.store.units.len() as u32)
            .filter(|&unit| view.store.units.get(unit as usize).is_some_and(|entry| entry.split.is_none()))
            .collect();
        let merger = build_in_pieces(view, &units).unwrap_or_else(|| build_whole(view, &units));
        merger.finish()
    }

    /// Reads the types of some units; `None` when one refers to another.
    pub(crate) fn of_units(view: &View<'_>, units: &[u32]) -> Option<TypeTable> {
        build_in_pieces(view, units).map(Merger::finish)
    }

    /// The type that an entry describes.
    pub(crate) fn of_entry(&self, die: Die) -> Option<TypeId> {
        let entries = self.by_entry.get(die.unit as usize)?;
        let index = entries.binary_search_by_key(&die.offset, |&(offset, _)| offset).ok()?;
        entries.get(index).map(|&(_, id)| id)
    }
}

fn prepare<'a>(view: &View<'a>, index: u32) -> Option<(Scan<'a>, UnitEntries<'a>)> {
    let unit = view.unit(index).ok()?;
    let files = Files::new(view.file_names_of(index)?, &unit).hashes();
    let (scan, compiled) = scan(view, index, &unit, &files);
    Some((scan, UnitEntries { unit, compiled, paths: HashMap::default() }))
}

/// A unit that refers to no other, ready to be merged.
struct Prepared<'a> {
    linked: Linked<'a>,
    source: UnitEntries<'a>,
    keys: UnitKeys,
}

/// The result of reading a unit.
enum Outcome<'a> {
    Ready(Box<Prepared<'a>>),
    /// Its types refer to another unit.
    RefersElsewhere,
    Damaged,
}

fn read_alone<'a>(view: &View<'a>, index: u32) -> Outcome<'a> {
    let Some((scan, source)) = prepare(view, index) else { return Outcome::Damaged };
    if scan.refers_elsewhere {
        return Outcome::RefersElsewhere;
    }
    let linked = Linked::new(vec![scan]);
    let keys = Keys::new(&linked).all();
    Outcome::Ready(Box::new(Prepared { linked, source, keys }))
}

/// Reads units on all threads and merges them in order. `None` when a unit refers to another: then all
/// must be at hand at once.
fn build_in_pieces<'a>(view: &View<'a>, units: &[u32]) -> Option<Merger> {
    let mut merger = Merger::new(view);
    let mut is_whole = true;
    let mut unreleased_bytes = 0;
    let costs: Vec<u64> = units.iter().map(|&unit| view.store.len_bytes(unit)).collect();
    let limit = BYTES_AHEAD * rayon::current_num_threads() as u64;
    let take = |number: usize, outcome: Outcome<'a>| {
        match outcome {
            Outcome::Ready(mut unit) => {
                merger.absorb(view, &unit.linked, std::slice::from_mut(&mut unit.source), &unit.keys);
            }
            Outcome::Damaged => merger.table.damaged += 1,
            Outcome::RefersElsewhere => {
                is_whole = false;
                return ControlFlow::Break(());
            }
        }
        unreleased_bytes += costs[number];
        if unreleased_bytes > limit {
            unreleased_bytes = 0;
            view.store.release_up_to(units[number]);
        }
        ControlFlow::Continue(())
    };
    in_order(&costs, limit, |number| read_alone(view, units[number]), take);
    is_whole.then(|| {
        merger.table.origins = Some(std::mem::take(&mut merger.origins));
        merger
    })
}

/// Reads units and all that they refer to. A supplementary file holds the units of several programs: those that this
/// one does not need are left out.
fn build_whole(view: &View<'_>, units: &[u32]) -> Merger {
    let mut merger = Merger::new(view);
    let is_own = |unit: &u32| !view.store.is_in_supplement(*unit);
    let mut next: Vec<u32> = units.iter().copied().filter(is_own).collect();
    let mut asked: BTreeSet<u32> = BTreeSet::new();
    let mut read: BTreeMap<u32, (Scan<'_>, UnitEntries<'_>)> = BTreeMap::new();
    while !next.is_empty() {
        let prepared: Vec<Option<_>> = next.par_iter().map(|&unit| prepare(view, unit)).collect();
        merger.table.damaged += prepared.iter().filter(|unit| unit.is_none()).count() as u64;
        let needed = prepared.iter().flatten().flat_map(|(scan, _)| scan.needed_units());
        let needed: BTreeSet<u32> = needed.filter(|unit| !is_own(unit)).collect();
        read.extend(prepared.into_iter().flatten().map(|found| (found.0.unit, found)));
        next = needed.into_iter().filter(|unit| asked.insert(*unit)).collect();
    }
    let (scans, mut sources): (Vec<Scan<'_>>, Vec<UnitEntries<'_>>) = read.into_values().unzip();
    let linked = Linked::new(scans);
    let keys = Keys::new(&linked).all();
    merger.absorb(view, &linked, &mut sources, &keys);
    merger
}

/// Names and paths, each kept once.
type Texts = HashSet<Arc<str>, FixedState>;

struct Merger {
    table: TypeTable,
    known: HashMap<u64, TypeId, FixedState>,
    names: Texts,
    /// Identity of the first definition of each bare name.
    defined: HashMap<u64, u64, FixedState>,
    /// Bare names with several definitions.
    ambiguous: HashSet<u64, FixedState>,
    /// Per type the unit that it was read from.
    origins: Vec<u32>,
    /// Types with alignments that Clang described.
    aligned_by_clang: Vec<TypeId>,
    /// The highest alignment of a scalar in an aggregate.
    most_align: u64,
}

/// Stands for none.
const NO_UNIT: u32 = u32::MAX;

/// For each remaining type, the unit that its first definition was read from, else its first declaration. A definition
/// of another unit may have replaced a declaration.
fn kept_origins(origins: &[u32], forward: &[TypeId], declared: &[bool], count: usize) -> Vec<u32> {
    let mut kept = vec![NO_UNIT; count];
    for wants_declared in [false, true] {
        for ((unit, id), is_declared) in origins.iter().zip(forward).zip(declared) {
            if let Some(place) = kept.get_mut(id.0 as usize)
                && *is_declared == wants_declared
                && *place == NO_UNIT
            {
                *place = *unit;
            }
        }
    }
    kept
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
            names: Texts::default(),
            defined: HashMap::default(),
            ambiguous: HashSet::default(),
            origins: vec![NO_UNIT],
            aligned_by_clang: Vec::new(),
            most_align: 16,
        }
    }

    /// The table without repetition.
    fn finish(self) -> TypeTable {
        let mut table = self.table;
        let is_declared = |(_, ty): (TypeId, &Type)| matches!(&ty.kind, TypeKind::Aggregate(aggregate) if aggregate.is_declaration);
        let declared: Vec<bool> = table.types.iter().map(is_declared).collect();
        ignored_alignment::take_away(&mut table.types, &self.aligned_by_clang, self.most_align);
        let forward = unify::unify(&mut table.types);
        table.by_entry.par_iter_mut().flatten_iter().for_each(|(_, id)| {
            *id = forward.get(id.0 as usize).copied().unwrap_or(*id);
        });
        let count = table.types.len();
        table.origins = table.origins.map(|origins| kept_origins(&origins, &forward, &declared, count));
        table.damaged += table.types.break_containment().len() as u64;
        table
    }

    fn note_definitions(&mut self, keys: &UnitKeys) {
        for &(name, identity) in &keys.definitions {
            if *self.defined.entry(name).or_insert(identity) != identity {
                self.ambiguous.insert(name);
            }
        }
    }

    /// The key to merge a type by: it includes the identity of the types it points to where the name alone is
    /// ambiguous.
    fn choose(&self, keys: &UnitKeys, key: &TypeKey) -> u64 {
        let names = keys.names(key);
        let is_ambiguous = |(name, _): &&(u64, u64)| self.ambiguous.contains(name);
        if self.ambiguous.is_empty() || !names.iter().any(|pair| is_ambiguous(&pair)) {
            return key.key;
        }
        let identities = names.iter().filter(is_ambiguous).map(|&(_, identity)| identity);
        self.known.hasher().hash_one((key.key, identities.collect::<Vec<u64>>()))
    }

    /// Adds the new types of some units that refer to no others.
    fn absorb<'a>(
        &mut self,
        view: &View<'a>,
        linked: &Linked<'a>,
        sources: &mut [UnitEntries<'a>],
        keys: &UnitKeys,
    ) {
        self.note_definitions(keys);
        let mut ids: Vec<TypeId> = Vec::with_capacity(keys.keys.len());
        let mut fresh: Vec<(usize, TypeId)> = Vec::new();
        for (index, key) in keys.keys.iter().enumerate() {
            let key = self.choose(keys, key);
            let types = &mut self.table.types;
            let id = *self.known.entry(key).or_insert_with(|| {
                let id = types.push(blank());
                fresh.push((index, id));
                id
            });
            ids.push(id);
        }
        let unit = linked.scans.first().map_or(NO_UNIT, |scan| scan.unit);
        self.origins.resize(self.table.types.len(), unit);
        for (scan, &start) in linked.scans.iter().zip(&linked.starts) {
            self.table.damaged += u64::from(scan.damaged);
            if let Some(entries) = self.table.by_entry.get_mut(scan.unit as usize) {
                *entries = scan.offsets.iter().zip(ids.iter().skip(start).copied()).collect();
            }
        }
        for (index, id) in fresh {
            // An entry that stands for another has its key, and may precede it.
            let complete = self.complete(view, linked, sources, &ids, linked.real(index));
            if let (Some(slot), Some(complete)) = (self.table.types.get_mut(id), complete) {
                let is_aligned = complete.declared_align.is_some();
                *slot = complete;
                let scan = linked.types.get(linked.real(index)).and_then(|ty| linked.unit_of(ty));
                if let Some(scan) = scan.filter(|scan| is_aligned && scan.is_by_clang) {
                    self.aligned_by_clang.push(id);
                    self.most_align = if scan.pointer_bytes < 8 { 4 } else { 16 };
                }
            }
        }
    }

    /// A type as the vocabulary has it.
    fn complete<'a>(
        &mut self,
        view: &View<'a>,
        linked: &Linked<'a>,
        sources: &mut [UnitEntries<'a>],
        ids: &[TypeId],
        index: usize,
    ) -> Option<Type> {
        let own = detail(view, linked, sources, index)?;
        let name = type_name(view, linked, sources, (index, &own));
        let ty = linked.types.get(index)?;
        let scan = linked.unit_of(ty)?;
        let UnitEntries { unit, paths, .. } = sources.get_mut(ty.unit as usize)?;
        let files = Files::new(view.file_names_of(scan.unit)?, unit);
        let writer = Writer { linked, scan, unit: ty.unit, name, ids, files, paths, names: &mut self.names };
        let rest = linked.rests.get(index)?;
        Some(writer.complete((ty, rest), &own))
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
    linked: &'w Linked<'a>,
    scan: &'w Scan<'a>,
    /// Number of the unit in `linked`.
    unit: u32,
    /// With namespaces.
    name: Option<String>,
    ids: &'w [TypeId],
    files: Files<'w, 'a>,
    paths: &'w mut HashMap<u32, Option<Arc<str>>, FixedState>,
    names: &'w mut Texts,
}

impl Writer<'_, '_> {
    fn complete(mut self, (ty, rest): (&RawType, &Rest), detail: &Detail<'_>) -> Type {
        let is_declaration = ty.is_declaration;
        let kind = self.kind((ty, rest), detail);
        let name = match ty.kind {
            RawKind::Qualifier(keyword) => Some(self.intern(keyword.keyword())),
            RawKind::Range if matches!(kind, TypeKind::Qualified(_)) => Some(self.intern("")),
            RawKind::Reference => Some(self.intern("&")),
            RawKind::RvalueReference => Some(self.intern("&&")),
            _ => self.name.take().map(|name| self.intern(&name)),
        };
        Type {
            name,
            // An enumeration that is only declared has a size all the same: that of the type it is declared with.
            size_bytes: if is_declaration && ty.kind != RawKind::Enum {
                None
            } else {
                detail.descriptor_bytes.or_else(|| self.size(ty, rest.size)).or_else(|| strided_bytes(detail))
            },
            declared_align: detail.align.map(NonZeroU64::get),
            declared_at: self.location(detail.file, detail.line),
            unit: self.scan.name.map(|name| self.intern(&String::from_utf8_lossy(name))),
            language: self.scan.language,
            kind,
        }
    }

    fn kind(&mut self, (ty, rest): (&RawType, &Rest), detail: &Detail<'_>) -> TypeKind {
        let target = self.target(ty.target.get());
        match ty.kind {
            RawKind::Base => TypeKind::Scalar(scalar(detail.encoding)),
            RawKind::Enum => TypeKind::Enum,
            RawKind::Pointer | RawKind::Reference | RawKind::RvalueReference => TypeKind::Pointer(target),
            RawKind::MemberPointer => TypeKind::MemberPointer,
            RawKind::Qualifier(_) => TypeKind::Qualified(target),
            RawKind::Typedef => TypeKind::Typedef(target),
            RawKind::Range if rest.size.is_some() => TypeKind::Scalar(ScalarKind::Integer { signed: true }),
            RawKind::Range if self.name.is_some() => TypeKind::Typedef(target),
            RawKind::Range => TypeKind::Qualified(target),
            RawKind::Opaque => TypeKind::Opaque,
            RawKind::Array if detail.descriptor_bytes.is_some() => TypeKind::Opaque,
            RawKind::Array => TypeKind::Array { element: target.unwrap_or(UNKNOWN), counts: counts(detail) },
            RawKind::Function => {
                let children = detail.children.iter().filter(|child| child.what == ChildKind::Parameter);
                let parameters = children.map(|child| self.target_of(child).unwrap_or(UNKNOWN)).collect();
                TypeKind::Function { returns: target, parameters }
            }
            RawKind::Aggregate(kind) => TypeKind::Aggregate(self.aggregate(kind, ty.is_declaration, detail)),
        }
    }

    fn aggregate(&mut self, kind: AggregateKind, is_declaration: bool, detail: &Detail<'_>) -> Aggregate {
        let mut members: Vec<Member> = Vec::new();
        let mut static_members = Vec::new();
        for child in &detail.children {
            match child.what {
                ChildKind::Member(role) => members.push(Member {
                    name: child.name.map(|name| self.intern(&String::from_utf8_lossy(name.text()))),
                    ty: self.target_of(child).unwrap_or(UNKNOWN),
                    offset_bits: self.offset_bits(child),
                    bit_size: child.bit_size.filter(|bits| self.is_bit_field(child, *bits)),
                    declared_align: child.align.map(NonZeroU64::get),
                    role,
                    declared_at: self.location(child.file, child.line),
                }),
                ChildKind::Static => {
                    static_members.extend(child.name.map(|name| crate::dwarf::text(name.text())))
                }
                ChildKind::Dimension(_) | ChildKind::Parameter => {}
            }
        }
        if matches!(kind, AggregateKind::Struct | AggregateKind::Class) {
            self.find_whole_bit_fields(&mut members, detail);
        }
        Aggregate { kind, members, static_members, is_declaration }
    }

    /// Finds bit-fields that are as wide as their type: Clang describes them like other members, by the byte that they
    /// begin in. Where the bit-field before ends inside that byte, such a member begins at the next bit, if it then
    /// ends before the following member begins. That member begins at its bit, or in its byte when it may be such a
    /// bit-field as well.
    fn find_whole_bit_fields(&self, members: &mut [Member], detail: &Detail<'_>) {
        let of_members = detail.children.iter().filter(|child| matches!(child.what, ChildKind::Member(_)));
        let whole_bits = |child: &RawChild<'_>| {
            let reference = self.linked.resolve(self.unit, child.target);
            self.integer_bytes(reference).and_then(|bytes| u32::try_from(bytes.checked_mul(8)?).ok())
        };
        let widths: Vec<Option<u32>> = of_members.map(whole_bits).collect();
        let may_be_whole = |at: usize, member: &Member| {
            member.bit_size.is_none() && widths.get(at).is_some_and(Option::is_some)
        };
        let last_starts: Vec<Option<u64>> = (members.iter().enumerate())
            .map(|(at, member)| {
                let slack = if may_be_whole(at, member) { 7 } else { 0 };
                member.offset_bits.map(|start| start.saturating_add(slack))
            })
            .collect();
        let mut end = None;
        for (at, member) in members.iter_mut().enumerate() {
            let width = widths.get(at).copied().flatten();
            let next = last_starts.get(at + 1).copied().flatten();
            if let (Some(start), Some(before), Some(width)) = (member.offset_bits, end, width)
                && member.bit_size.is_none()
                && (start + 1..start.saturating_add(8)).contains(&before)
                && next.is_none_or(|next| before + u64::from(width) <= next)
            {
                (member.offset_bits, member.bit_size) = (Some(before), Some(width));
            }
            end = member
                .offset_bits
                .zip(member.bit_size)
                .and_then(|(start, bits)| start.checked_add(bits.into()));
        }
    }

    /// False for a width that Clang gives to an `_Atomic` member which is padded to a power of two: it is wider than
    /// the type, as no bit-field is.
    fn is_bit_field(&self, child: &RawChild<'_>, bits: u32) -> bool {
        let size_bytes = self.size_of(self.linked.resolve(self.unit, child.target));
        size_bytes.is_none_or(|size| size == 0 || u64::from(bits) <= size.saturating_mul(8))
    }

    /// The size of the integer or enumeration that a reference leads to, through typedefs and qualifiers.
    fn integer_bytes(&self, reference: Ref) -> Option<u64> {
        let at = self.strip(reference)?;
        let is_integer = matches!(self.linked.types.get(at)?.kind, RawKind::Base | RawKind::Enum);
        self.linked.rests.get(at)?.size.filter(|_| is_integer)
    }

    /// A member's place in bits. DWARF 3 counts a bit-field from the most significant bit of its
    /// storage unit, which on a little-endian machine is the last bit in memory order (DWARF 4,
    /// section 5.5.6).
    fn offset_bits(&self, child: &RawChild<'_>) -> Option<u64> {
        match child.place {
            RawPlace::Bits(bits) => Some(bits),
            RawPlace::Dynamic => None,
            RawPlace::FromTop(FromTop { byte_offset, bit_offset, storage_bytes }) => {
                let storage_bytes =
                    storage_bytes.or_else(|| self.size_of(self.linked.resolve(self.unit, child.target)))?;
                let end = byte_offset.checked_add(storage_bytes)?.checked_mul(8)?;
                end.checked_add_signed(bit_offset.checked_neg()?)?.checked_sub(child.bit_size?.into())
            }
        }
    }

    /// The size of a reference's target, through typedefs and qualifiers.
    fn size_of(&self, reference: Ref) -> Option<u64> {
        self.linked.rests.get(self.strip(reference)?)?.size
    }

    /// The type that typedefs and qualifiers lead to.
    fn strip(&self, reference: Ref) -> Option<usize> {
        let mut at = reference.index()?;
        for _ in 0..crate::dwarf::MAX_CHAIN {
            let ty = self.linked.types.get(at)?;
            match ty.kind {
                RawKind::Typedef | RawKind::Qualifier(_) => at = ty.target.index()?,
                RawKind::Range if self.linked.rests.get(at)?.size.is_none() => at = ty.target.index()?,
                _ => return Some(at),
            }
        }
        None
    }

    fn size(&self, ty: &RawType, own: Option<u64>) -> Option<u64> {
        match ty.kind {
            RawKind::Pointer | RawKind::Reference | RawKind::RvalueReference => {
                Some(own.unwrap_or(self.scan.pointer_bytes))
            }
            // Itanium C++ ABI, section 2.3: one word for data members, two for functions.
            RawKind::MemberPointer => own.or_else(|| {
                let target = self.linked.types.get(ty.target.index()?)?;
                let words = if target.kind == RawKind::Function { 2 } else { 1 };
                Some(words * self.scan.pointer_bytes)
            }),
            RawKind::Typedef | RawKind::Qualifier(_) => self.size_of(ty.target.get()),
            RawKind::Range => own.or_else(|| self.size_of(ty.target.get())),
            _ => own,
        }
    }

    fn target(&self, reference: Ref) -> Option<TypeId> {
        match (reference, reference.index()) {
            (Ref::Nothing, _) => None,
            (_, Some(index)) => self.ids.get(index).copied(),
            (_, None) => Some(UNKNOWN),
        }
    }

    fn target_of(&self, child: &RawChild<'_>) -> Option<TypeId> {
        self.target(self.linked.resolve(self.unit, child.target))
    }

    fn location(&mut self, file: u32, line: u32) -> Option<SourceLocation> {
        if line == 0 {
            return None;
        }
        let path = match self.paths.get(&file) {
            Some(known) => known.clone(),
            None => {
                let path = self.files.path(file.into()).map(|path| self.intern(&path));
                self.paths.insert(file, path.clone());
                path
            }
        };
        path.map(|file| SourceLocation { file, line })
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

/// The size of an array whose elements are not as far apart as their type is long.
fn strided_bytes(detail: &Detail<'_>) -> Option<u64> {
    let elements =
        counts(detail).into_iter().try_fold(1_u64, |product, count| product.checked_mul(count?))?;
    Some(elements.checked_mul(detail.stride_bits?)?.div_ceil(8))
}

fn counts(detail: &Detail<'_>) -> Vec<Option<u64>> {
    let dimension = |child: &RawChild<'_>| match child.what {
        ChildKind::Dimension(Extent::Elements(count)) => Some(Some(count)),
        ChildKind::Dimension(Extent::Open | Extent::Dynamic) => Some(None),
        _ => None,
    };
    let dimensions: Vec<Option<u64>> = detail.children.iter().filter_map(dimension).collect();
    if dimensions.is_empty() { vec![None] } else { dimensions }
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
