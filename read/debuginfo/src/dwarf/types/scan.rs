//! One pass over a unit that collects its types in a compact form.
//!
//! Other units have already described most types of a unit. So the scan keeps little more of a type than the numbers
//! from which [`super::keys`] computes its key, and its references. [`super::type_table`] reads the entries of new
//! types once more, by [`super::raw::Detail`].

use super::offsets::Offsets;
use super::raw::{ChildKind, Parent, RawChild};
use crate::dwarf::attributes::{Attributes, Field};
use crate::dwarf::entries::{Compiled, CompiledAbbreviation, Entries};
use crate::dwarf::extent::{has_inner_types, has_modules, is_by_clang, language};
use crate::dwarf::files::FileHashes;
use crate::dwarf::kind::RawKind;
use crate::dwarf::name::Name;
use crate::dwarf::reference::{PackedRef, Ref};
use crate::dwarf::{Unit, View};
use foldhash::fast::FixedState;
use gimli::{DwTag, constants as dw};
use lineup_model::types::{AggregateKind, Language};
use std::hash::{BuildHasher, Hash, Hasher};
use std::num::NonZeroU64;

/// A type with the facts needed to compare and follow it. A program has millions of these, looked up in no order: each
/// takes one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct RawType {
    pub(crate) kind: RawKind,
    pub(crate) language: Language,
    pub(crate) is_declaration: bool,
    pub(crate) is_named: bool,
    /// Number of the unit among the units that are linked together.
    pub(crate) unit: u32,
    /// Stands for name and scopes.
    pub(crate) full_name: u64,
    /// Stands for size, alignment, encoding and place of declaration.
    pub(crate) outside: u64,
    /// Identifies the parts of the type, without their references.
    pub(crate) inside: u64,
    pub(crate) target: PackedRef,
    /// The declaration that this entry completes.
    pub(crate) completes: PackedRef,
    pub(crate) parts: Parts,
}

const _: () = assert!(size_of::<RawType>() == 64);

/// The rarely used facts about a type.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    pub(crate) size: Option<u64>,
    /// Index in [`Scan::scopes`].
    pub(crate) scope: u32,
    /// The type in a type unit that this entry stands for.
    pub(crate) alias: PackedRef,
}

/// First and last index in [`Scan::parts`], and how many there are.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Parts {
    pub(crate) first: u32,
    last: u32,
    pub(crate) count: u32,
}

/// The reference of a part of a type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) target: PackedRef,
    /// Index of the next one of the same type.
    pub(crate) next: u32,
}

/// A namespace or type that encloses others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) parent: u32,
    pub(crate) name: ScopeName<'a>,
    /// Stands for this name and the names of the scopes around it.
    pub(crate) full_name: u64,
}

/// The name of a scope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScopeName<'a> {
    Own(Name<'a>),
    /// As the type that an entry completes or stands for: the number of that entry among the types of the unit.
    Of(u32),
}

/// A number for a name in a scope. The scope's contribution can be exchanged: see [`moved`].
pub(crate) fn name_in(around: u64, name: Name<'_>) -> u64 {
    spread(around) ^ FixedState::default().hash_one(name.id())
}

/// The number of a name that moves from one scope to another.
pub(crate) fn moved(full_name: u64, from: u64, to: u64) -> u64 {
    full_name ^ spread(from) ^ spread(to)
}

/// The number of a scope, in other bits than its number as a name: an entity named like its scope differs from it.
fn spread(scope: u64) -> u64 {
    scope.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}

/// The scope of everything that is not enclosed.
pub(crate) const NO_SCOPE: u32 = u32::MAX;

/// Name of a namespace that has none.
const ANONYMOUS_NAMESPACE: &[u8] = b"(anonymous namespace)";

/// The type of C++'s null pointer, which debug information gives no size: it has that of a pointer.
const NULL_POINTER: &[u8] = b"decltype(nullptr)";

/// All types of one unit.
pub(crate) struct Scan<'a> {
    pub(crate) unit: u32,
    pub(crate) language: Language,
    pub(crate) is_by_clang: bool,
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) pointer_bytes: u64,
    pub(crate) types: Vec<RawType>,
    /// Runs parallel to `types`.
    pub(crate) rests: Vec<Rest>,
    /// The offsets of the types' entries.
    pub(crate) offsets: Offsets,
    pub(crate) parts: Vec<Part>,
    pub(crate) scopes: Vec<Scope<'a>>,
    /// True when a type refers to another unit.
    pub(crate) refers_elsewhere: bool,
    /// The units of a supplementary file that this one imports.
    pub(crate) imports: Vec<u32>,
    /// True when an entry stands for a type in a type unit.
    pub(crate) has_aliases: bool,
    /// True when the name or a scope of a type is that of another entry.
    pub(crate) has_lent_names: bool,
    /// True when the unit broke off.
    pub(crate) damaged: bool,
}

impl Scan<'_> {
    /// The units that this one imports or whose types it refers to.
    pub(crate) fn needed_units(&self) -> impl Iterator<Item = u32> {
        let of_types = self.types.iter().flat_map(|ty| [ty.target, ty.completes]);
        let of_rests = self.rests.iter().map(|rest| rest.alias);
        let all = of_types.chain(of_rests).chain(self.parts.iter().map(|part| part.target));
        let referred = all.filter_map(|reference| match reference.get() {
            Ref::Elsewhere(die) => Some(die.unit),
            _ => None,
        });
        self.imports.iter().copied().chain(referred)
    }
}

/// Bytes of a unit per type, and per part of a type, at the least in most units.
const BYTES_PER_TYPE: usize = 32;
const BYTES_PER_PART: usize = 16;

/// Reads all types of a unit. Also returns the abbreviations compiled so far.
pub(crate) fn scan<'a>(
    view: &View<'a>,
    index: u32,
    unit: &Unit<'a>,
    files: &FileHashes,
) -> (Scan<'a>, Compiled) {
    let len_bytes = view.store.len_bytes(index) as usize;
    let mut scanner = Scanner {
        view,
        files,
        has_modules: has_modules(unit),
        has_inner_types: has_inner_types(unit),
        stack: Vec::new(),
        offsets: Offsets::with_capacity(len_bytes),
        out: Scan {
            unit: index,
            language: language(unit),
            is_by_clang: view.dwarf(index).is_some_and(|dwarf| is_by_clang(dwarf, unit)),
            name: unit.name.map(|name| name.slice()),
            pointer_bytes: u64::from(unit.header.address_size()),
            types: Vec::with_capacity(len_bytes / BYTES_PER_TYPE),
            rests: Vec::with_capacity(len_bytes / BYTES_PER_TYPE),
            offsets: Offsets::default(),
            parts: Vec::with_capacity(len_bytes / BYTES_PER_PART),
            scopes: Vec::new(),
            refers_elsewhere: false,
            imports: Vec::new(),
            has_aliases: false,
            has_lent_names: false,
            damaged: false,
        },
    };
    let compiled = scanner.run(unit);
    let mut out = scanner.out;
    out.offsets = scanner.offsets;
    (out, compiled)
}

#[derive(Clone, Copy)]
struct Frame {
    parent: Parent,
    scope: u32,
}

struct Scanner<'s, 'a> {
    view: &'s View<'a>,
    files: &'s FileHashes,
    /// True where modules are scopes for names.
    has_modules: bool,
    /// True when a type is a scope for the names of the types in it.
    has_inner_types: bool,
    stack: Vec<Frame>,
    /// The offsets of the types found so far.
    offsets: Offsets,
    out: Scan<'a>,
}

impl<'a> Scanner<'_, 'a> {
    fn run(&mut self, unit: &Unit<'a>) -> Compiled {
        match Entries::new(self.view, (self.out.unit, unit), Compiled::default()) {
            Ok(mut entries) => {
                self.out.damaged = self.read(&mut entries).is_err();
                entries.into_compiled()
            }
            Err(_) => {
                self.out.damaged = true;
                Compiled::default()
            }
        }
    }

    fn read(&mut self, entries: &mut Entries<'_, 'a>) -> Result<(), gimli::Error> {
        while !entries.is_at_end() {
            let Some(code) = entries.next()? else {
                self.stack.pop();
                continue;
            };
            let Some(&CompiledAbbreviation { tag, kind, may_be_part, has_children, .. }) =
                entries.about(code)
            else {
                break;
            };
            let (parent, scope) =
                self.stack.last().map_or((Parent::Other, NO_SCOPE), |frame| (frame.parent, frame.scope));
            let kind = kind.filter(|kind| *kind != RawKind::Range || !self.is_in_array(parent));
            let is_part = may_be_part && kind.is_none() && parent.owner().is_some();
            let is_space = tag == dw::DW_TAG_namespace || tag == dw::DW_TAG_module && self.has_modules;
            if !is_part && kind.is_none() && !is_space {
                match tag {
                    dw::DW_TAG_imported_unit => {
                        entries.read(code)?;
                        self.take_import(&entries.attributes);
                    }
                    _ => entries.skip(code)?,
                }
                if has_children {
                    self.stack.push(Frame { parent: Parent::Other, scope });
                }
                continue;
            }
            entries.read(code)?;
            let Ok(offset) = u32::try_from(entries.offset) else { break };
            let found = &entries.attributes;
            let around = Frame { parent, scope };
            let opened = match kind {
                Some(kind) => self.take_type(kind, offset, found, (around, has_children)),
                None => self.take_other(tag, found, around),
            };
            if has_children {
                self.stack.push(opened);
            }
        }
        Ok(())
    }

    /// True for the entries right inside an array.
    fn is_in_array(&self, parent: Parent) -> bool {
        let Parent::Type(owner) = parent else { return false };
        self.out.types.get(owner as usize).is_some_and(|ty| ty.kind == RawKind::Array)
    }

    /// Adds a type. Returns its role for the entries inside it.
    #[inline]
    fn take_type(
        &mut self,
        kind: RawKind,
        offset: u32,
        found: &Attributes<'_, 'a>,
        (around, has_children): (Frame, bool),
    ) -> Frame {
        let index = self.push_type(kind, offset, found, around.scope);
        let is_lent = found.has(Field::Completes) || found.has(Field::Alias);
        let scope = match (kind, found.name()) {
            _ if !self.has_inner_types => around.scope,
            (RawKind::Aggregate(_), name) if has_children && is_lent => {
                let full_name = self.full_name(around.scope, name);
                let scope = Scope { parent: around.scope, name: ScopeName::Of(index), full_name };
                self.push_scope(scope)
            }
            (RawKind::Aggregate(_), Some(name)) if has_children => self.enter_scope(around.scope, name),
            _ => around.scope,
        };
        Frame { parent: Parent::Type(index), scope }
    }

    fn take_import(&mut self, found: &Attributes<'_, 'a>) {
        if let Ref::Elsewhere(imported) = found.reference(Field::Target, self.view, self.out.unit)
            && self.view.store.is_in_supplement(imported.unit)
        {
            self.out.refers_elsewhere = true;
            self.out.imports.push(imported.unit);
        }
    }

    /// Adds a namespace or a part of a type. Returns its role for the entries inside it.
    #[inline]
    fn take_other(&mut self, tag: DwTag, found: &Attributes<'_, 'a>, around: Frame) -> Frame {
        let Frame { parent, scope } = around;
        if tag == dw::DW_TAG_namespace || tag == dw::DW_TAG_module {
            let name = found.name().unwrap_or(Name::new(ANONYMOUS_NAMESPACE));
            return Frame { parent: Parent::Other, scope: self.enter_scope(scope, name) };
        }
        let opened = parent.inside(tag, found);
        if let (dw::DW_TAG_variant_part, Parent::VariantPart(owner)) = (tag, opened)
            && let Some(ty) = self.out.types.get_mut(owner as usize)
        {
            ty.kind = RawKind::Aggregate(AggregateKind::Variants);
        }
        let child = RawChild::read(tag, parent, found, self.view, self.out.unit);
        if let (Some(child), Some(owner)) = (child, parent.owner()) {
            self.push_part(&child, owner);
        }
        Frame { parent: opened, scope }
    }

    fn enter_scope(&mut self, parent: u32, name: Name<'a>) -> u32 {
        let full_name = self.full_name(parent, Some(name));
        self.push_scope(Scope { parent, name: ScopeName::Own(name), full_name })
    }

    fn push_scope(&mut self, scope: Scope<'a>) -> u32 {
        self.out.scopes.push(scope);
        (self.out.scopes.len() - 1) as u32
    }

    /// A number for a name in a scope.
    fn full_name(&self, scope: u32, name: Option<Name<'a>>) -> u64 {
        let around = self.out.scopes.get(scope as usize).map_or(0, |scope| scope.full_name);
        name.map_or(around, |name| name_in(around, name))
    }

    fn reference(&mut self, found: &Attributes<'_, 'a>, field: Field) -> Ref {
        let reference = found.reference(field, self.view, self.out.unit);
        self.out.refers_elsewhere |= matches!(reference, Ref::Elsewhere(_));
        reference
    }

    fn push_type(&mut self, kind: RawKind, offset: u32, found: &Attributes<'_, 'a>, scope: u32) -> u32 {
        let target = self.reference(found, Field::Target);
        let completes = self.reference(found, Field::Completes);
        let alias = self.reference(found, Field::Alias);
        self.out.has_aliases |= alias != Ref::Nothing;
        self.out.has_lent_names |= alias != Ref::Nothing || completes != Ref::Nothing;
        let name = found.name();
        let is_null_pointer =
            kind == RawKind::Opaque && name.is_some_and(|name| name.starts_with(NULL_POINTER));
        let size = found.size_bytes().or(is_null_pointer.then_some(self.out.pointer_bytes));
        self.offsets.push(offset);
        self.out.rests.push(Rest { size, scope, alias: alias.into() });
        self.out.types.push(RawType {
            kind,
            language: self.out.language,
            is_declaration: found.is_set(Field::IsDeclaration),
            is_named: name.is_some(),
            unit: 0,
            full_name: self.full_name(scope, name),
            outside: self.outside(kind, size, found),
            inside: 0,
            target: target.into(),
            completes: completes.into(),
            parts: Parts::default(),
        });
        (self.out.types.len() - 1) as u32
    }

    fn outside(&self, kind: RawKind, size: Option<u64>, found: &Attributes<'_, 'a>) -> u64 {
        let align = found.number(Field::Align).and_then(NonZeroU64::new);
        let encoding = found.number(Field::Encoding).unwrap_or(0) as u8;
        let mut hasher = FixedState::default().build_hasher();
        let is_declaration = found.is_set(Field::IsDeclaration);
        (size, align, encoding, is_declaration, found.is_descriptor(), found.stride_bits()).hash(&mut hasher);
        // Declarations have no place; file 0 would be the unit's own.
        let line = found.number(Field::Line).unwrap_or(0) as u32;
        if matches!(kind, RawKind::Aggregate(_) | RawKind::Typedef | RawKind::Enum) && line != 0 {
            let file = found.number(Field::File).unwrap_or(0) as u32;
            (self.files.get(file as usize).copied().unwrap_or(0), line).hash(&mut hasher);
        }
        hasher.finish()
    }

    #[inline]
    fn push_part(&mut self, child: &RawChild<'a>, owner: u32) {
        self.out.refers_elsewhere |= matches!(child.target, Ref::Elsewhere(_));
        let index = self.out.parts.len() as u32;
        self.out.parts.push(Part { target: child.target.into(), next: 0 });
        let Some(ty) = self.out.types.get_mut(owner as usize) else { return };
        let mut hasher = FixedState::default().build_hasher();
        hasher.write_u64(ty.inside);
        child.what.hash(&mut hasher);
        if matches!(child.what, ChildKind::Member(_) | ChildKind::Static) {
            hasher.write_u64(child.name.map_or(0, Name::id));
            (child.place, child.bit_size, child.align).hash(&mut hasher);
        }
        ty.inside = hasher.finish();
        let Parts { last, count, .. } = &mut ty.parts;
        if *count > 0
            && let Some(part) = self.out.parts.get_mut(*last as usize)
        {
            part.next = index;
        }
        (*last, *count) = (index, *count + 1);
        if ty.parts.count == 1 {
            ty.parts.first = index;
        }
    }
}
