//! One pass over a unit that collects its types in a compact form.
//!
//! Names stay slices of the section and references stay offsets, so that a unit costs little until
//! [`super::merge`] knows which of its types are new.

use super::offsets::Offsets;
use super::{Dwarf, Unit, Value, View, constant};
use crate::dwarf::store::Die;
use gimli::{DwAt, DwTag, constants as dw};
use lineup_model::types::{AggregateKind, Language, MemberRole};

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
    Qualifier(&'static str),
    Typedef,
    Aggregate(AggregateKind),
    Array,
    Function,
    Opaque,
}

/// A type as its entry describes it.
#[derive(Clone, Debug)]
pub(super) struct RawType<'a> {
    pub(super) kind: RawKind,
    pub(super) name: Option<&'a [u8]>,
    /// Index in [`Scan::scopes`].
    pub(super) scope: u32,
    pub(super) size: Option<u64>,
    pub(super) align: Option<u64>,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum RawPlace {
    /// Bits from the start.
    Bits(u64),
    /// DWARF 3 bit-field: counted from the most significant bit of a storage unit.
    FromTop { byte_offset: u64, bit_offset: i64, storage_bytes: Option<u64> },
    /// Known at run time only.
    Dynamic,
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
    pub(super) align: Option<u64>,
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

/// Reads all types of a unit.
pub(super) fn scan<'a>(view: &View<'a>, index: u32, unit: &Unit<'a>) -> Option<Scan<'a>> {
    let dwarf = view.dwarf(index)?;
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
            types: Vec::new(),
            offsets: Offsets::default(),
            children: Vec::new(),
            scopes: Vec::new(),
            refers_elsewhere: false,
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
    Variant(u32),
    Other,
}

struct Frame {
    depth: isize,
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

/// The attributes that types and members use.
struct Attributes<'a> {
    name: Option<&'a [u8]>,
    size: Option<u64>,
    bit_size: Option<u64>,
    align: Option<u64>,
    target: Ref,
    completes: Ref,
    alias: Ref,
    file: u32,
    line: u32,
    encoding: u8,
    is_declaration: bool,
    is_external: bool,
    is_artificial: bool,
    is_virtual: bool,
    location: Option<Option<u64>>,
    bit_offset: Option<i64>,
    data_bit_offset: Option<u64>,
    count: Option<Option<u64>>,
    upper: Option<Option<u64>>,
    lower: u64,
}

impl Attributes<'_> {
    fn new() -> Self {
        Attributes {
            name: None,
            size: None,
            bit_size: None,
            align: None,
            target: Ref::Nothing,
            completes: Ref::Nothing,
            alias: Ref::Nothing,
            file: 0,
            line: 0,
            encoding: 0,
            is_declaration: false,
            is_external: false,
            is_artificial: false,
            is_virtual: false,
            location: None,
            bit_offset: None,
            data_bit_offset: None,
            count: None,
            upper: None,
            lower: 0,
        }
    }
}

impl<'a> Scanner<'_, 'a> {
    fn run(&mut self) -> Result<(), gimli::Error> {
        let unit = self.unit;
        let mut entries = unit.entries_raw(None)?;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let offset = entries.next_offset().0;
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            while self.stack.last().is_some_and(|frame| frame.depth >= depth) {
                self.stack.pop();
            }
            let tag = abbreviation.tag();
            if !is_wanted(tag, self.parent()) {
                entries.skip_attributes(abbreviation.attributes())?;
                if abbreviation.has_children() {
                    self.open(depth, Parent::Other, self.scope());
                }
                continue;
            }
            let mut attributes = Attributes::new();
            for &specification in abbreviation.attributes() {
                let attribute = entries.read_attribute_inline(specification)?;
                self.note(&mut attributes, attribute.name(), attribute.value());
            }
            let Ok(offset) = u32::try_from(offset) else { break };
            self.entry(tag, offset, depth, &attributes, abbreviation.has_children());
        }
        Ok(())
    }

    fn parent(&self) -> Parent {
        self.stack.last().map_or(Parent::Other, |frame| frame.parent)
    }

    fn scope(&self) -> u32 {
        self.stack.last().map_or(NO_SCOPE, |frame| frame.scope)
    }

    fn open(&mut self, depth: isize, parent: Parent, scope: u32) {
        self.stack.push(Frame { depth, parent, scope });
    }

    fn enter_scope(&mut self, name: &'a [u8]) -> u32 {
        let parent = self.scope();
        self.out.scopes.push(Scope { parent, name });
        (self.out.scopes.len() - 1) as u32
    }

    fn note(&mut self, found: &mut Attributes<'a>, name: DwAt, value: Value<'a>) {
        match name {
            dw::DW_AT_name => {
                found.name = self.dwarf.attr_string(self.unit, value).ok().map(|name| name.slice());
            }
            dw::DW_AT_byte_size => found.size = constant(value),
            dw::DW_AT_bit_size => found.bit_size = constant(value),
            dw::DW_AT_alignment => found.align = constant(value),
            dw::DW_AT_type => found.target = self.reference(value),
            dw::DW_AT_specification => found.completes = self.reference(value),
            dw::DW_AT_signature => found.alias = self.reference(value),
            dw::DW_AT_decl_file => found.file = constant(value).unwrap_or(0) as u32,
            dw::DW_AT_decl_line => found.line = constant(value).unwrap_or(0) as u32,
            dw::DW_AT_encoding => {
                if let Value::Encoding(encoding) = value {
                    found.encoding = encoding.0;
                }
            }
            dw::DW_AT_declaration => found.is_declaration = value == Value::Flag(true),
            dw::DW_AT_external => found.is_external = value == Value::Flag(true),
            dw::DW_AT_artificial => found.is_artificial = value == Value::Flag(true),
            dw::DW_AT_virtuality => {
                found.is_virtual = !matches!(value, Value::Virtuality(dw::DW_VIRTUALITY_none));
            }
            dw::DW_AT_data_member_location => found.location = Some(member_location(value, self.unit)),
            dw::DW_AT_bit_offset => found.bit_offset = constant(value).map(u64::cast_signed),
            dw::DW_AT_data_bit_offset => found.data_bit_offset = constant(value),
            dw::DW_AT_count => found.count = Some(constant(value)),
            dw::DW_AT_upper_bound => found.upper = Some(constant(value)),
            dw::DW_AT_lower_bound => found.lower = constant(value).unwrap_or(0),
            _ => {}
        }
    }

    fn reference(&mut self, value: Value<'a>) -> Ref {
        let elsewhere = match value {
            Value::UnitRef(offset) => return u32::try_from(offset.0).map_or(Ref::Broken, Ref::Local),
            Value::DebugInfoRef(offset) => self.view.in_section(self.out.unit, offset.0),
            Value::DebugInfoRefSup(offset) => self.view.in_supplement(offset.0),
            Value::DebugTypesRef(signature) => self.view.signature(signature.0),
            _ => None,
        };
        match elsewhere {
            Some(die) if die.unit == self.out.unit => Ref::Local(die.offset),
            Some(die) => {
                self.out.refers_elsewhere = true;
                Ref::Elsewhere(die)
            }
            None => Ref::Broken,
        }
    }

    fn entry(&mut self, tag: DwTag, offset: u32, depth: isize, found: &Attributes<'a>, has_children: bool) {
        let parent = self.parent();
        let mut opened = Parent::Other;
        let mut scope = self.scope();
        if let Some(kind) = type_kind(tag) {
            let index = self.push_type(kind, offset, found);
            opened = Parent::Type(index);
            if let (RawKind::Aggregate(_), Some(name), true) = (kind, found.name, has_children) {
                scope = self.enter_scope(name);
            }
        } else {
            match (tag, parent) {
                (dw::DW_TAG_namespace, _) if has_children => {
                    scope = self.enter_scope(found.name.unwrap_or(b"(anonymous namespace)"));
                }
                (dw::DW_TAG_variant_part, Parent::Type(owner)) => {
                    if let Some(ty) = self.out.types.get_mut(owner as usize) {
                        ty.kind = RawKind::Aggregate(AggregateKind::Variants);
                    }
                    opened = Parent::VariantPart(owner);
                }
                (dw::DW_TAG_variant, Parent::VariantPart(owner)) => opened = Parent::Variant(owner),
                _ => self.push_child(tag, parent, found),
            }
        }
        if has_children {
            self.open(depth, opened, scope);
        }
    }

    fn push_type(&mut self, kind: RawKind, offset: u32, found: &Attributes<'a>) -> u32 {
        self.offsets.push(offset);
        self.out.types.push(RawType {
            kind,
            name: found.name,
            scope: self.scope(),
            size: found.size.or(found.bit_size.map(|bits| bits.div_ceil(8))),
            align: found.align,
            target: found.target,
            completes: found.completes,
            alias: found.alias,
            file: found.file,
            line: found.line,
            encoding: found.encoding,
            is_declaration: found.is_declaration,
            children: (0, 0),
        });
        (self.out.types.len() - 1) as u32
    }

    fn push_child(&mut self, tag: DwTag, parent: Parent, found: &Attributes<'a>) {
        let (Parent::Type(owner) | Parent::VariantPart(owner) | Parent::Variant(owner)) = parent else {
            return;
        };
        let role = match parent {
            Parent::VariantPart(_) => MemberRole::Discriminant,
            Parent::Variant(_) => MemberRole::Variant,
            _ if found.is_artificial && found.name.is_some_and(|name| name.starts_with(b"_vptr")) => {
                MemberRole::VtablePointer
            }
            _ => MemberRole::Field,
        };
        let what = match tag {
            dw::DW_TAG_member if found.is_external || found.is_declaration => What::Static,
            dw::DW_TAG_member => What::Member(role),
            dw::DW_TAG_variable => What::Static,
            dw::DW_TAG_inheritance if found.is_virtual => What::Member(MemberRole::VirtualBase),
            dw::DW_TAG_inheritance => What::Member(MemberRole::Base),
            dw::DW_TAG_subrange_type => What::Dimension(dimension(found)),
            dw::DW_TAG_formal_parameter => What::Parameter,
            _ => return,
        };
        self.out.children.push(RawChild {
            owner,
            what,
            name: found.name,
            target: found.target,
            place: place(found),
            bit_size: found.bit_size.and_then(|bits| u32::try_from(bits).ok()),
            align: found.align,
            file: found.file,
            line: found.line,
        });
    }
}

/// Elements of one dimension; `None` when the declaration gave none.
fn dimension(found: &Attributes<'_>) -> Option<u64> {
    match (found.count, found.upper) {
        (Some(count), _) => count,
        // An upper bound of -1 is how an array of no elements is written.
        (None, Some(upper)) => upper.map(|upper| upper.wrapping_add(1).wrapping_sub(found.lower)),
        (None, None) => None,
    }
}

fn place(found: &Attributes<'_>) -> RawPlace {
    let byte_offset = match found.location {
        Some(None) => return RawPlace::Dynamic,
        Some(Some(bytes)) => bytes,
        // Members of unions have no location.
        None => 0,
    };
    if found.is_virtual {
        return RawPlace::Dynamic;
    }
    match (found.data_bit_offset, found.bit_offset) {
        (Some(bits), _) => RawPlace::Bits(bits),
        (None, Some(bit_offset)) => RawPlace::FromTop { byte_offset, bit_offset, storage_bytes: found.size },
        (None, None) => byte_offset.checked_mul(8).map_or(RawPlace::Dynamic, RawPlace::Bits),
    }
}

/// A member's byte offset: a constant, or the expression that adds one.
fn member_location(value: Value<'_>, unit: &Unit<'_>) -> Option<u64> {
    let Value::Exprloc(expression) = value else { return constant(value) };
    let mut operations = expression.operations(unit.encoding());
    match operations.next().ok()?? {
        gimli::Operation::PlusConstant { value } => Some(value),
        gimli::Operation::UnsignedConstant { value } => Some(value),
        _ => None,
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
        dw::DW_TAG_const_type => RawKind::Qualifier("const"),
        dw::DW_TAG_volatile_type => RawKind::Qualifier("volatile"),
        dw::DW_TAG_restrict_type => RawKind::Qualifier("restrict"),
        dw::DW_TAG_atomic_type => RawKind::Qualifier("_Atomic"),
        dw::DW_TAG_immutable_type | dw::DW_TAG_packed_type | dw::DW_TAG_shared_type => RawKind::Qualifier(""),
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
