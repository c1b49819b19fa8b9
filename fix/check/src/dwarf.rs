//! Reads an object file: its types and variables from DWARF, its data with what its relocations point at.

use crate::error::{Error, Result};
use crate::facts::{Facts, Member, Record, Type, TypeId, Variable};
use gimli::{AttributeValue, EndianSlice, LittleEndian, Section as _};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex, SymbolKind,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The target of a pointer in a section's data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Symbol, or section and offset.
    pub target: Target,
    /// Bytes added to it.
    pub addend: i64,
}

/// A named or unnamed place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A symbol that is no section.
    Symbol(String),
    /// A place in a section of this object.
    Section(usize),
}

/// A section with bytes.
#[derive(Debug, Default)]
pub struct Section {
    /// Its name.
    pub name: String,
    /// Its bytes; zeroes for one that occupies no place in the file.
    pub bytes: Vec<u8>,
    /// References by offset.
    pub references: BTreeMap<u64, Reference>,
}

/// A symbol for data or a function.
#[derive(Debug)]
pub struct DataSymbol {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: usize,
    /// Its offset there.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// It names data.
    pub is_data: bool,
}

/// An object file.
#[derive(Debug, Default)]
pub struct Object {
    /// Types and variables.
    pub facts: Facts,
    /// Sections by index.
    pub sections: HashMap<usize, Section>,
    /// Symbols for data and functions.
    pub symbols: Vec<DataSymbol>,
    /// Names of places in code.
    pub labels: Vec<String>,
}

/// Sections larger than this are not read: zeroes of a common block could be made to fill memory.
const LARGEST: u64 = 1 << 30;

impl Object {
    /// Reads the object file of a unit.
    pub fn read(unit: &str, bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|what| Error::Unreadable { unit: unit.into(), what })
    }

    /// The symbol that covers a place.
    pub fn symbol_at(&self, section: usize, offset: u64) -> Option<&DataSymbol> {
        let covers = |symbol: &&DataSymbol| {
            symbol.section == section
                && symbol.offset <= offset
                && (offset < symbol.offset + symbol.bytes || offset == symbol.offset)
        };
        self.symbols.iter().find(covers)
    }

    /// The variable that begins at a place.
    pub fn variable_at(&self, section: usize, offset: u64) -> Option<&Variable> {
        self.facts.variables.iter().find(|variable| variable.place == Some((section, offset)))
    }
}

type Text = std::result::Result<Object, String>;

fn read(bytes: &[u8]) -> Text {
    let file = object::File::parse(bytes).map_err(|error| format!("no object file: {error}"))?;
    if !file.is_little_endian() || !file.is_64() {
        return Err("only little-endian objects of 64 bits are read".into());
    }
    let mut object = Object::default();
    for section in file.sections() {
        let is_data = matches!(
            section.kind(),
            object::SectionKind::Data
                | object::SectionKind::ReadOnlyData
                | object::SectionKind::ReadOnlyString
                | object::SectionKind::ReadOnlyDataWithRel
                | object::SectionKind::UninitializedData
                | object::SectionKind::Tls
                | object::SectionKind::UninitializedTls
        );
        let name = section.name().unwrap_or("").to_owned();
        if section.size() > LARGEST {
            return Err(format!("the section {name} is too large"));
        }
        if !is_data {
            continue;
        }
        let mut bytes = section.data().map_err(|error| error.to_string())?.to_vec();
        bytes.resize(section.size() as usize, 0);
        let mut references = BTreeMap::new();
        for (offset, relocation) in section.relocations() {
            let (target, added) = target(&file, &relocation)?;
            references.insert(offset, Reference { target, addend: relocation.addend() + added });
        }
        object.sections.insert(section.index().0, Section { name, bytes, references });
    }
    for symbol in file.symbols() {
        let kind = symbol.kind();
        let is_data = matches!(kind, SymbolKind::Data | SymbolKind::Tls);
        // Functions and labels of assembler. The compiler's own labels, of texts for example, begin with `.L`.
        let is_label = !is_data && !matches!(kind, SymbolKind::Section | SymbolKind::File);
        if is_label && symbol.section_index().is_some() {
            let is_own = |name: &&str| name.is_empty() || name.starts_with(".L");
            object.labels.extend(symbol.name().ok().filter(|name| !is_own(name)).map(str::to_owned));
        }
        if let (true, Some(section)) = (is_data || kind == SymbolKind::Text, symbol.section_index()) {
            let name = symbol.name().unwrap_or("").to_owned();
            let (offset, bytes) = (symbol.address(), symbol.size());
            object.symbols.push(DataSymbol { name, section: section.0, offset, bytes, is_data });
        }
    }
    object.facts = facts(&file)?;
    Ok(object)
}

/// The target of a relocation; names of sections become numbers.
fn target(
    file: &object::File<'_>,
    relocation: &object::Relocation,
) -> std::result::Result<(Target, i64), String> {
    match relocation.target() {
        RelocationTarget::Symbol(index) => {
            let symbol = file.symbol_by_index(index).map_err(|error| error.to_string())?;
            match (symbol.kind(), symbol.section_index()) {
                (SymbolKind::Section, Some(SectionIndex(section))) => Ok((Target::Section(section), 0)),
                (_, _) => Ok((Target::Symbol(symbol.name().unwrap_or("").to_owned()), 0)),
            }
        }
        _ => Err("a relocation refers to nothing".into()),
    }
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Reads DWARF with its relocations applied; where `.debug_info` names an address is kept by its offset.
fn facts(file: &object::File<'_>) -> std::result::Result<Facts, String> {
    let mut addresses: HashMap<usize, (usize, u64)> = HashMap::new();
    let mut symbols: HashMap<usize, String> = HashMap::new();
    let mut load = |id: gimli::SectionId| -> std::result::Result<Cow<'_, [u8]>, String> {
        let Some(section) = file.section_by_name(id.name()) else { return Ok(Cow::Borrowed(&[])) };
        let mut bytes = section.uncompressed_data().map_err(|error| error.to_string())?.into_owned();
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = file.symbol_by_index(index).map_err(|error| error.to_string())?;
            let value = symbol.address().wrapping_add_signed(relocation.addend());
            let width = usize::from(relocation.size() / 8);
            let at = usize::try_from(offset).map_err(|error| error.to_string())?;
            let place = at.checked_add(width).and_then(|end| bytes.get_mut(at..end));
            let Some(place) = place.filter(|_| width <= 8) else {
                return Err(format!("a relocation of {} lies outside", id.name()));
            };
            place.copy_from_slice(&value.to_le_bytes()[..width]);
            if id == gimli::SectionId::DebugInfo {
                match symbol.section_index() {
                    Some(section) => drop(addresses.insert(at, (section.0, value))),
                    None => drop(symbols.insert(at, symbol.name().unwrap_or("").to_owned())),
                }
            }
        }
        Ok(Cow::Owned(bytes))
    };
    let sections = gimli::DwarfSections::load(&mut load)?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let reader = DebugInfo { dwarf: &dwarf, addresses: &addresses };
    let mut facts = Facts::default();
    let mut units = dwarf.units();
    while let Some(header) = units.next().map_err(|error| error.to_string())? {
        let unit = dwarf.unit(header).map_err(|error| error.to_string())?;
        reader.unit(&unit, &mut facts).map_err(|error| error.to_string())?;
    }
    facts.name_records();
    Ok(facts)
}

/// An open entry: its depth; its record, its array or function type, its name as a function.
type Open = (isize, Option<usize>, Option<TypeId>, Option<String>);

struct DebugInfo<'a> {
    dwarf: &'a gimli::Dwarf<Slice<'a>>,
    addresses: &'a HashMap<usize, (usize, u64)>,
}

type Entry<'a> = gimli::DebuggingInformationEntry<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;

impl<'a> DebugInfo<'a> {
    fn unit(&self, unit: &Unit<'a>, facts: &mut Facts) -> gimli::Result<()> {
        let mut tree = unit.entries();
        // Open entries: depth, the record or array or function that it is.
        let mut open: Vec<Open> = Vec::new();
        let mut dimensions: HashMap<TypeId, Vec<(TypeId, Option<u64>)>> = HashMap::new();
        while let Some(entry) = tree.next_dfs()? {
            let depth = entry.depth();
            while open.last().is_some_and(|(at, ..)| *at >= depth) {
                open.pop();
            }
            let id = self.id(unit, entry);
            let name = self.text(unit, entry, gimli::DW_AT_name);
            let of = self.reference(unit, entry, gimli::DW_AT_type);
            let number = |at| entry.attr(at).and_then(|attribute| attribute.udata_value());
            let bytes = number(gimli::DW_AT_byte_size);
            let function = open.iter().rev().find_map(|(.., function)| function.clone());
            let mut scope = (depth, None, None, None);
            match entry.tag() {
                gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type | gimli::DW_TAG_class_type => {
                    if entry.attr(gimli::DW_AT_declaration).is_some() {
                        facts.types.insert(id, Type::Scalar { name: name.unwrap_or_default(), bytes: 0 });
                    } else {
                        let is_union = entry.tag() == gimli::DW_TAG_union_type;
                        let record = Record {
                            name: name.unwrap_or_default(),
                            is_union,
                            bytes: bytes.unwrap_or(0),
                            members: Vec::new(),
                        };
                        scope.1 = Some(facts.records.len());
                        facts.types.insert(id, Type::Record(facts.records.len()));
                        facts.records.push(record);
                    }
                }
                gimli::DW_TAG_member | gimli::DW_TAG_inheritance => {
                    if let Some(record) = open.last().and_then(|(_, record, ..)| *record) {
                        let at_bits = number(gimli::DW_AT_data_bit_offset)
                            .unwrap_or_else(|| number(gimli::DW_AT_data_member_location).unwrap_or(0) * 8);
                        let bits = number(gimli::DW_AT_bit_size);
                        let member = Member {
                            name,
                            of: of.unwrap_or(0),
                            at_bits,
                            bits: bits.unwrap_or(0),
                            is_bit_field: bits.is_some(),
                        };
                        facts.records[record].members.push(member);
                    }
                }
                gimli::DW_TAG_pointer_type
                | gimli::DW_TAG_reference_type
                | gimli::DW_TAG_rvalue_reference_type => {
                    facts.types.insert(id, Type::Pointer(of.unwrap_or(0)));
                }
                gimli::DW_TAG_array_type => {
                    if entry.attr(gimli::DW_AT_GNU_vector).is_some() {
                        // A vector is one value, whatever it is made of.
                        facts
                            .types
                            .insert(id, Type::Scalar { name: "vector".into(), bytes: bytes.unwrap_or(0) });
                    } else {
                        facts.types.insert(id, Type::Array { of: of.unwrap_or(0), count: None });
                        scope.2 = Some(id);
                    }
                }
                gimli::DW_TAG_subrange_type => {
                    if let Some(array) = open.last().and_then(|(_, _, array, _)| *array) {
                        let count = number(gimli::DW_AT_count)
                            .or_else(|| number(gimli::DW_AT_upper_bound).map(|last| last.wrapping_add(1)));
                        dimensions.entry(array).or_default().push((id, count));
                    }
                }
                gimli::DW_TAG_typedef => {
                    facts.types.insert(id, of.map_or(Type::Function, Type::Same));
                    facts.typedefs.extend(name.map(|name| (name, id)));
                }
                gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {
                    let void = Type::Scalar { name: "void".into(), bytes: 0 };
                    facts.types.insert(id, of.map_or(void, Type::Same));
                }
                gimli::DW_TAG_base_type | gimli::DW_TAG_enumeration_type | gimli::DW_TAG_unspecified_type => {
                    let name = name.unwrap_or_default();
                    facts.types.insert(id, Type::Scalar { name, bytes: bytes.unwrap_or(0) });
                }
                gimli::DW_TAG_subroutine_type => {
                    facts.types.insert(id, Type::Function);
                    facts.returned.extend(of.map(|of| (id, of)));
                    scope.2 = Some(id);
                }
                gimli::DW_TAG_formal_parameter => {
                    if let Some(function) = open.last().and_then(|(_, _, function, _)| *function) {
                        facts.parameters.entry(function).or_default().push(of.unwrap_or(0));
                    }
                }
                gimli::DW_TAG_subprogram => {
                    facts.functions.extend(name.clone().map(|name| (name, id)));
                    facts.returned.extend(of.map(|of| (id, of)));
                    if entry.attr(gimli::DW_AT_external).is_some() {
                        facts.exported.extend(name.clone());
                    }
                    scope.2 = Some(id);
                    scope.3 = name;
                }
                gimli::DW_TAG_variable => self.variable(unit, entry, (name, of, function), facts),
                _ => {}
            }
            open.push(scope);
        }
        for (array, counts) in dimensions {
            add_dimensions(facts, array, &counts);
        }
        for index in 0..facts.records.len() {
            for member in 0..facts.records[index].members.len() {
                let (of, is_bit_field) = {
                    let member = &facts.records[index].members[member];
                    (member.of, member.is_bit_field)
                };
                if !is_bit_field {
                    facts.records[index].members[member].bits = facts.bytes(of) * 8;
                }
            }
        }
        Ok(())
    }

    fn variable(
        &self,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        (name, of, function): (Option<String>, Option<TypeId>, Option<String>),
        facts: &mut Facts,
    ) {
        let symbol = self.text(unit, entry, gimli::DW_AT_linkage_name);
        let place = match entry.attr_value(gimli::DW_AT_location) {
            Some(AttributeValue::Exprloc(gimli::Expression(bytes))) if is_address(bytes.slice()) => {
                let start = bytes.offset_from(*self.dwarf.debug_info.reader());
                self.addresses.get(&(start + 1)).copied()
            }
            _ => None,
        };
        // A definition that refers to its declaration has its place, and the declaration the name.
        let declared = self.reference(unit, entry, gimli::DW_AT_specification).and_then(|declared| {
            let offset = usize::try_from(declared).ok()?;
            let offset = gimli::DebugInfoOffset(offset).to_unit_offset(&unit.header)?;
            let entry = unit.entry(offset).ok()?;
            let name = self.text(unit, &entry, gimli::DW_AT_name);
            Some((name, self.reference(unit, &entry, gimli::DW_AT_type)))
        });
        let (other_name, other_type) = declared.unwrap_or((None, None));
        if let (Some(name), Some(of)) = (name.or(other_name), of.or(other_type)) {
            let is_external = entry.attr(gimli::DW_AT_external).is_some();
            facts.variables.push(Variable { name, function, of, place, symbol, is_external });
        }
    }

    fn id(&self, unit: &Unit<'a>, entry: &Entry<'a>) -> TypeId {
        entry.offset().to_debug_info_offset(&unit.header).map_or(0, |offset| offset.0 as u64)
    }

    fn reference(&self, unit: &Unit<'a>, entry: &Entry<'a>, name: gimli::DwAt) -> Option<TypeId> {
        match entry.attr_value(name)? {
            AttributeValue::UnitRef(offset) => {
                offset.to_debug_info_offset(&unit.header).map(|offset| offset.0 as u64)
            }
            AttributeValue::DebugInfoRef(offset) => Some(offset.0 as u64),
            _ => None,
        }
    }

    fn text(&self, unit: &Unit<'a>, entry: &Entry<'a>, name: gimli::DwAt) -> Option<String> {
        let value = self.dwarf.attr_string(unit, entry.attr_value(name)?).ok()?;
        Some(value.to_string_lossy().into_owned())
    }
}

/// True where a location is an address, or that in a thread's own data. The address of something, which a local variable
/// holds, is not where the variable is.
fn is_address(location: &[u8]) -> bool {
    const ADDRESSES: [gimli::DwOp; 3] = [gimli::DW_OP_addr, gimli::DW_OP_const4u, gimli::DW_OP_const8u];
    let begins_so = location.first().is_some_and(|first| ADDRESSES.iter().any(|one| one.0 == *first));
    begins_so && location.last() != Some(&gimli::DW_OP_stack_value.0)
}

/// Makes an array of arrays of one with several dimensions; the last one varies fastest.
fn add_dimensions(facts: &mut Facts, array: TypeId, counts: &[(TypeId, Option<u64>)]) {
    let Some(Type::Array { of: element, .. }) = facts.types.get(&array) else { return };
    let mut of = *element;
    for (index, (id, count)) in counts.iter().enumerate().rev() {
        let id = if index == 0 { array } else { *id };
        facts.types.insert(id, Type::Array { of, count: *count });
        of = id;
    }
}
