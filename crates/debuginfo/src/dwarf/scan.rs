//! One pass over a unit that collects its types in a compact form.
//!
//! Names stay slices of the section and references stay offsets, so that a unit costs little until
//! [`super::merge`] knows which of its types are new.

use super::attributes::{Attributes, Field};
use super::entries::Entries;
use super::offsets::Offsets;
use super::{Dwarf, Unit, Value, View};
use crate::dwarf::store::Die;
use gimli::{DwTag, constants as dw};
use lineup_model::types::{AggregateKind, Language, MemberRole, Selector};
use std::num::NonZeroU64;

/// What an entry refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ref {
    Nothing,
    /// Of a type in the same unit: its offset while the unit is read, then its index in
    /// [`Scan::types`].
    Local(u32),
    Elsewhere(Die),
    /// A reference that leads nowhere.
    Broken,
}

/// Which kind of type an entry describes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RawKind {
    Base,
    Enum,
    Pointer,
    Reference,
    RvalueReference,
    MemberPointer,
    Qualifier(Qualifier),
    Typedef,
    Aggregate(AggregateKind),
    Array,
    Function,
    Opaque,
}

/// A qualifier of a type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Qualifier {
    Const,
    Volatile,
    Restrict,
    Atomic,
    Unnamed,
}

impl Qualifier {
    pub(super) fn keyword(self) -> &'static str {
        match self {
            Qualifier::Const => "const",
            Qualifier::Volatile => "volatile",
            Qualifier::Restrict => "restrict",
            Qualifier::Atomic => "_Atomic",
            Qualifier::Unnamed => "",
        }
    }
}

/// A type as its entry describes it. Millions of these are made: they are kept small.
#[derive(Clone, Debug)]
pub(super) struct RawType<'a> {
    pub(super) kind: RawKind,
    pub(super) name: Option<&'a [u8]>,
    /// Index in [`Scan::scopes`].
    pub(super) scope: u32,
    pub(super) size: Option<u64>,
    pub(super) align: Option<NonZeroU64>,
    pub(super) target: Ref,
    /// The declaration that this entry completes.
    pub(super) completes: Ref,
    /// The type in a type unit that this entry stands for.
    pub(super) alias: Ref,
    pub(super) file: u32,
    pub(super) line: u32,
    pub(super) encoding: u8,
    pub(super) is_declaration: bool,
    /// Indices in [`Scan::children`].
    pub(super) children: (u32, u32),
}

/// Where a member is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum RawPlace {
    /// Bits from the start.
    Bits(u64),
    /// DWARF 3 bit-field: counted from the most significant bit of a storage unit.
    FromTop(Box<FromTop>),
    /// Known at run time only.
    Dynamic,
}

/// Where a DWARF 3 bit-field is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct FromTop {
    pub(super) byte_offset: u64,
    pub(super) bit_offset: i64,
    pub(super) storage_bytes: Option<u64>,
}

/// What belongs to a type: a member, a dimension, a parameter.
#[derive(Clone, Debug)]
pub(super) struct RawChild<'a> {
    owner: u32,
    pub(super) what: What,
    pub(super) name: Option<&'a [u8]>,
    pub(super) target: Ref,
    pub(super) place: RawPlace,
    pub(super) bit_size: Option<u32>,
    pub(super) align: Option<NonZeroU64>,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// The kinds of [`RawChild`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum What {
    Member(MemberRole),
    Static,
    Dimension(Option<u64>),
    Parameter,
}

/// A namespace or type that encloses others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) parent: u32,
    pub(super) name: &'a [u8],
}

/// The scope of everything that is not enclosed.
pub(super) const NO_SCOPE: u32 = u32::MAX;

/// All types of one unit.
pub(super) struct Scan<'a> {
    pub(super) unit: u32,
    pub(super) language: Language,
    pub(super) name: Option<&'a [u8]>,
    pub(super) pointer_bytes: u64,
    pub(super) types: Vec<RawType<'a>>,
    /// The offsets of the types' entries.
    pub(super) offsets: Offsets,
    pub(super) children: Vec<RawChild<'a>>,
    pub(super) scopes: Vec<Scope<'a>>,
    /// True when a type refers to another unit.
    pub(super) refers_elsewhere: bool,
    /// True when an entry stands for a type in a type unit.
    pub(super) has_aliases: bool,
    /// True when the unit broke off.
    pub(super) damaged: bool,
}

impl<'a> Scan<'a> {
    /// The index of the type at an offset of this unit.
    pub(super) fn at(&self, offset: u32) -> Option<usize> {
        self.offsets.find(offset).map(|index| index as usize)
    }

    /// What belongs to a type.
    pub(super) fn children(&self, ty: &RawType<'a>) -> &[RawChild<'a>] {
        self.children.get(ty.children.0 as usize..ty.children.1 as usize).unwrap_or_default()
    }
}

/// The language of a unit.
pub(crate) fn language(unit: &Unit<'_>) -> Language {
    let mut entries = unit.entries();
    let Ok(Some(root)) = entries.next_dfs() else { return Language::Other };
    match root.attr_value(dw::DW_AT_language) {
        Some(Value::Language(language)) => match language {
            dw::DW_LANG_C89 | dw::DW_LANG_C | dw::DW_LANG_C99 | dw::DW_LANG_C11 | dw::DW_LANG_C17 => {
                Language::C
            }
            dw::DW_LANG_C_plus_plus
            | dw::DW_LANG_C_plus_plus_03
            | dw::DW_LANG_C_plus_plus_11
            | dw::DW_LANG_C_plus_plus_14
            | dw::DW_LANG_C_plus_plus_17
            | dw::DW_LANG_C_plus_plus_20 => Language::Cpp,
            dw::DW_LANG_Rust => Language::Rust,
            dw::DW_LANG_Mips_Assembler => Language::Assembly,
            _ => Language::Other,
        },
        _ => Language::Other,
    }
}

/// Bytes of a unit per type, and per member, at the least in most units.
const BYTES_PER_TYPE: usize = 20;

/// Reads all types of a unit.
pub(super) fn scan<'a>(view: &View<'a>, index: u32, unit: &Unit<'a>) -> Option<Scan<'a>> {
    let dwarf = view.dwarf(index)?;
    let len_bytes = view.store.len_bytes(index) as usize;
    let mut scanner = Scanner {
        view,
        dwarf,
        unit,
        stack: Vec::new(),
        offsets: Vec::new(),
        out: Scan {
            unit: index,
            language: language(unit),
            name: unit.name.map(|name| name.slice()),
            pointer_bytes: u64::from(unit.header.address_size()),
            types: Vec::with_capacity(len_bytes / BYTES_PER_TYPE),
            offsets: Offsets::default(),
            children: Vec::with_capacity(len_bytes / BYTES_PER_TYPE),
            scopes: Vec::new(),
            refers_elsewhere: false,
            has_aliases: false,
            damaged: false,
        },
    };
    scanner.out.damaged = scanner.run().is_err();
    let mut out = scanner.out;
    out.offsets = Offsets::new(scanner.offsets);
    out.link();
    out.group_children();
    Some(out)
}

impl Scan<'_> {
    /// Turns offsets in the unit into indices, once for all who follow the references.
    fn link(&mut self) {
        let offsets = &self.offsets;
        let link = |reference: &mut Ref| {
            if let Ref::Local(offset) = *reference {
                *reference = offsets.find(offset).map_or(Ref::Broken, Ref::Local);
            }
        };
        for ty in &mut self.types {
            link(&mut ty.target);
            link(&mut ty.completes);
            link(&mut ty.alias);
        }
        for child in &mut self.children {
            link(&mut child.target);
        }
    }

    /// Brings the children of each type together.
    fn group_children(&mut self) {
        self.children.sort_by_key(|child| child.owner);
        let mut start = 0;
        while let Some(child) = self.children.get(start) {
            let owner = child.owner;
            let len = self.children[start..].iter().take_while(|child| child.owner == owner).count();
            if let Some(ty) = self.types.get_mut(owner as usize) {
                ty.children = (start as u32, (start + len) as u32);
            }
            start += len;
        }
    }
}

/// What an open entry is to the entries inside it.
#[derive(Clone, Copy)]
enum Parent {
    Type(u32),
    VariantPart(u32),
    Variant(u32, Selector),
    Other,
}

struct Frame {
    parent: Parent,
    scope: u32,
}

struct Scanner<'s, 'a> {
    view: &'s View<'a>,
    dwarf: &'s Dwarf<'a>,
    unit: &'s Unit<'a>,
    stack: Vec<Frame>,
    /// Of the types found so far.
    offsets: Vec<u32>,
    out: Scan<'a>,
}

impl<'a> Scanner<'_, 'a> {
    fn run(&mut self) -> Result<(), gimli::Error> {
        let mut entries = Entries::new(self.dwarf, self.unit)?;
        while !entries.is_at_end() {
            let Some(entry) = entries.next()? else {
                self.stack.pop();
                continue;
            };
            if !is_wanted(entry.tag, self.parent()) {
                entries.skip(&entry)?;
                if entry.has_children {
                    self.open(Parent::Other, self.scope());
                }
                continue;
            }
            entries.read(&entry)?;
            let Ok(offset) = u32::try_from(entry.offset) else { break };
            self.entry(entry.tag, offset, &entries.attributes, entry.has_children);
        }
        Ok(())
    }

    fn parent(&self) -> Parent {
        self.stack.last().map_or(Parent::Other, |frame| frame.parent)
    }

    fn scope(&self) -> u32 {
        self.stack.last().map_or(NO_SCOPE, |frame| frame.scope)
    }

    fn open(&mut self, parent: Parent, scope: u32) {
        self.stack.push(Frame { parent, scope });
    }

    fn enter_scope(&mut self, name: &'a [u8]) -> u32 {
        let parent = self.scope();
        self.out.scopes.push(Scope { parent, name });
        (self.out.scopes.len() - 1) as u32
    }

    fn reference(&mut self, found: &Attributes<'_, 'a>, field: Field) -> Ref {
        let reference = found.reference(field, self.view, self.out.unit);
        self.out.refers_elsewhere |= matches!(reference, Ref::Elsewhere(_));
        reference
    }

    fn entry(&mut self, tag: DwTag, offset: u32, found: &Attributes<'_, 'a>, has_children: bool) {
        let parent = self.parent();
        let mut opened = Parent::Other;
        let mut scope = self.scope();
        if let Some(kind) = type_kind(tag) {
            let index = self.push_type(kind, offset, found);
            opened = Parent::Type(index);
            if let (RawKind::Aggregate(_), Some(name), true) = (kind, found.name(), has_children) {
                scope = self.enter_scope(name);
            }
        } else {
            match (tag, parent) {
                (dw::DW_TAG_namespace, _) if has_children => {
                    scope = self.enter_scope(found.name().unwrap_or(b"(anonymous namespace)"));
                }
                (dw::DW_TAG_variant_part, Parent::Type(owner)) => {
                    if let Some(ty) = self.out.types.get_mut(owner as usize) {
                        ty.kind = RawKind::Aggregate(AggregateKind::Variants);
                    }
                    opened = Parent::VariantPart(owner);
                }
                (dw::DW_TAG_variant, Parent::VariantPart(owner)) => {
                    opened = Parent::Variant(owner, selector(found));
                }
                _ => self.push_child(tag, parent, found),
            }
        }
        if has_children {
            self.open(opened, scope);
        }
    }

    fn push_type(&mut self, kind: RawKind, offset: u32, found: &Attributes<'_, 'a>) -> u32 {
        let target = self.reference(found, Field::Target);
        let completes = self.reference(found, Field::Completes);
        let alias = self.reference(found, Field::Alias);
        self.out.has_aliases |= alias != Ref::Nothing;
        let bit_size = found.number(Field::BitSize);
        self.offsets.push(offset);
        self.out.types.push(RawType {
            kind,
            name: found.name(),
            scope: self.scope(),
            size: found.number(Field::Size).or(bit_size.map(|bits| bits.div_ceil(8))),
            align: found.number(Field::Align).and_then(NonZeroU64::new),
            target,
            completes,
            alias,
            file: found.number(Field::File).unwrap_or(0) as u32,
            line: found.number(Field::Line).unwrap_or(0) as u32,
            encoding: found.number(Field::Encoding).unwrap_or(0) as u8,
            is_declaration: found.is_set(Field::IsDeclaration),
            children: (0, 0),
        });
        (self.out.types.len() - 1) as u32
    }

    fn push_child(&mut self, tag: DwTag, parent: Parent, found: &Attributes<'_, 'a>) {
        let (Parent::Type(owner) | Parent::VariantPart(owner) | Parent::Variant(owner, _)) = parent else {
            return;
        };
        let name = found.name();
        let is_static = found.is_set(Field::IsExternal) || found.is_set(Field::IsDeclaration);
        let role = match parent {
            Parent::VariantPart(_) => MemberRole::Discriminant,
            Parent::Variant(_, selector) => MemberRole::Variant(selector),
            _ if found.is_set(Field::IsArtificial) && name.is_some_and(|name| name.starts_with(b"_vptr")) => {
                MemberRole::VtablePointer
            }
            _ => MemberRole::Field,
        };
        let what = match tag {
            dw::DW_TAG_member if is_static => What::Static,
            dw::DW_TAG_member => What::Member(role),
            dw::DW_TAG_variable => What::Static,
            dw::DW_TAG_inheritance if is_virtual(found) => What::Member(MemberRole::VirtualBase),
            dw::DW_TAG_inheritance => What::Member(MemberRole::Base),
            dw::DW_TAG_subrange_type => What::Dimension(dimension(found)),
            dw::DW_TAG_formal_parameter => What::Parameter,
            _ => return,
        };
        let target = self.reference(found, Field::Target);
        self.out.children.push(RawChild {
            owner,
            what,
            name,
            target,
            place: place(found),
            bit_size: found.number(Field::BitSize).and_then(|bits| u32::try_from(bits).ok()),
            align: found.number(Field::Align).and_then(NonZeroU64::new),
            file: found.number(Field::File).unwrap_or(0) as u32,
            line: found.number(Field::Line).unwrap_or(0) as u32,
        });
    }
}

/// Elements of one dimension; `None` when the declaration gave none.
fn dimension(found: &Attributes<'_, '_>) -> Option<u64> {
    if found.has(Field::Count) {
        return found.number(Field::Count);
    }
    let lower = found.number(Field::Lower).unwrap_or(0);
    // An upper bound of -1 is how an array of no elements is written.
    found.number(Field::Upper).map(|upper| upper.wrapping_add(1).wrapping_sub(lower))
}

fn selector(found: &Attributes<'_, '_>) -> Selector {
    let widths =
        [(Field::Selected8, 8), (Field::Selected16, 16), (Field::Selected32, 32), (Field::Selected, 64)];
    let value = widths
        .into_iter()
        .find_map(|(field, width_bits)| found.number(field).map(|bits| Selector::Value { bits, width_bits }));
    match value {
        Some(value) => value,
        None if found.has(Field::Selected) => Selector::Unknown,
        None => Selector::Rest,
    }
}

fn is_virtual(found: &Attributes<'_, '_>) -> bool {
    found.has(Field::Virtuality) && found.number(Field::Virtuality) != Some(dw::DW_VIRTUALITY_none.0.into())
}

fn place(found: &Attributes<'_, '_>) -> RawPlace {
    let byte_offset = match found.location() {
        Some(None) => return RawPlace::Dynamic,
        Some(Some(bytes)) => bytes,
        // Members of unions have no location.
        None => 0,
    };
    if is_virtual(found) {
        return RawPlace::Dynamic;
    }
    match (found.number(Field::DataBitOffset), found.number(Field::BitOffset)) {
        (Some(bits), _) => RawPlace::Bits(bits),
        (None, Some(bit_offset)) => RawPlace::FromTop(Box::new(FromTop {
            byte_offset,
            bit_offset: bit_offset.cast_signed(),
            storage_bytes: found.number(Field::Size),
        })),
        (None, None) => byte_offset.checked_mul(8).map_or(RawPlace::Dynamic, RawPlace::Bits),
    }
}

/// True for entries whose attributes are read: types wherever they are, and what belongs to a type.
fn is_wanted(tag: DwTag, parent: Parent) -> bool {
    match tag {
        dw::DW_TAG_member
        | dw::DW_TAG_inheritance
        | dw::DW_TAG_subrange_type
        | dw::DW_TAG_variant_part
        | dw::DW_TAG_variant
        | dw::DW_TAG_formal_parameter
        | dw::DW_TAG_variable => !matches!(parent, Parent::Other),
        dw::DW_TAG_namespace => true,
        _ => type_kind(tag).is_some(),
    }
}

fn type_kind(tag: DwTag) -> Option<RawKind> {
    Some(match tag {
        dw::DW_TAG_base_type => RawKind::Base,
        dw::DW_TAG_enumeration_type => RawKind::Enum,
        dw::DW_TAG_pointer_type => RawKind::Pointer,
        dw::DW_TAG_reference_type => RawKind::Reference,
        dw::DW_TAG_rvalue_reference_type => RawKind::RvalueReference,
        dw::DW_TAG_ptr_to_member_type => RawKind::MemberPointer,
        dw::DW_TAG_const_type => RawKind::Qualifier(Qualifier::Const),
        dw::DW_TAG_volatile_type => RawKind::Qualifier(Qualifier::Volatile),
        dw::DW_TAG_restrict_type => RawKind::Qualifier(Qualifier::Restrict),
        dw::DW_TAG_atomic_type => RawKind::Qualifier(Qualifier::Atomic),
        dw::DW_TAG_immutable_type | dw::DW_TAG_packed_type | dw::DW_TAG_shared_type => {
            RawKind::Qualifier(Qualifier::Unnamed)
        }
        dw::DW_TAG_typedef | dw::DW_TAG_template_alias => RawKind::Typedef,
        dw::DW_TAG_structure_type => RawKind::Aggregate(AggregateKind::Struct),
        dw::DW_TAG_class_type | dw::DW_TAG_interface_type => RawKind::Aggregate(AggregateKind::Class),
        dw::DW_TAG_union_type => RawKind::Aggregate(AggregateKind::Union),
        dw::DW_TAG_array_type => RawKind::Array,
        dw::DW_TAG_subroutine_type => RawKind::Function,
        dw::DW_TAG_unspecified_type | dw::DW_TAG_string_type | dw::DW_TAG_set_type | dw::DW_TAG_file_type => {
            RawKind::Opaque
        }
        _ => return None,
    })
}
