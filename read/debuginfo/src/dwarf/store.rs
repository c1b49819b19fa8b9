//! The debug sections of a file and of its companions, and the list of their units.

use super::kind::type_kind;
use super::name::is_merged;
use super::reference::Die;
use super::{Dwarf, Slice, Unit, Value};
use crate::elf::Elf;
use crate::{Bytes, Companion, Companions, Error};
use gimli::{
    DebugInfoOffset, DwarfFileType, IndexSectionId, LittleEndian, Section as _, SectionId, UnitType,
};
use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;

/// Sections that belong together: the file's own, its supplementary file's, or one split unit's.
#[derive(Debug)]
struct Source {
    sections: Sections,
    file_type: DwarfFileType,
}

impl Source {
    fn dwarf(&self) -> Dwarf<'_> {
        let mut dwarf = dwarf(&self.sections);
        dwarf.file_type = self.file_type;
        dwarf
    }
}

/// Debug sections by their id; absent ones are empty.
type Sections = HashMap<SectionId, Bytes>;

fn dwarf(sections: &Sections) -> Dwarf<'_> {
    let load = |id| {
        let bytes: &[u8] = sections.get(&id).map_or(&[], |bytes| bytes);
        Ok::<_, std::convert::Infallible>(Slice::new(bytes, LittleEndian))
    };
    let Ok(dwarf) = gimli::Dwarf::load(load);
    dwarf
}

/// One unit and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnitEntry {
    /// The index of the [`Source`].
    source: u32,
    /// Offset in `.debug_info` or `.debug_types`.
    offset: u64,
    /// Length with the header.
    len_bytes: u64,
    in_types_section: bool,
    /// The split unit that continues this skeleton.
    pub(crate) split: Option<u32>,
    /// The skeleton of this split unit.
    skeleton: Option<u32>,
    pub(crate) is_type_unit: bool,
}

/// All sections and units of a program's debug information.
#[derive(Debug, Default)]
pub(crate) struct Store {
    sources: Vec<Source>,
    /// Index of the supplementary file among the sources.
    supplement: Option<usize>,
    pub(crate) units: Vec<UnitEntry>,
    /// Units in `.debug_info` per source, by offset.
    by_offset: Vec<Vec<(u64, u32)>>,
    signatures: HashMap<u64, Die>,
    /// Signatures that an earlier source has too, by source: compilers do not make them from the whole type, and units
    /// that are not linked together may mean different types.
    repeated: HashMap<(u32, u64), Die>,
    /// Companions asked for and not found.
    pub(crate) missing: Vec<Companion>,
    /// Lists of units that broke off.
    pub(crate) damaged: u64,
}

impl Store {
    /// Loads the DWARF sections of `elf` and of the files they refer to.
    pub(crate) fn load(elf: &Elf, companions: &mut dyn Companions) -> Result<Store, Error> {
        let mut store = Store::default();
        let sections = load_sections(elf, "")?;
        if is_without_units(&sections) && store.add_split_file(elf)? {
            return Ok(store);
        }
        store.add(Source { sections, file_type: DwarfFileType::Main });
        if let Some((name, build_id)) = &elf.alt_link {
            store.add_supplement(
                Companion::AltLink { name: name.clone(), build_id: build_id.clone() },
                companions,
            );
        }
        store.add_split_units(companions);
        Ok(store)
    }

    /// Length of a unit in bytes, 0 when there is no such unit.
    pub(crate) fn len_bytes(&self, unit: u32) -> u64 {
        self.units.get(unit as usize).map_or(0, |entry| entry.len_bytes)
    }

    /// Marks the entries of a unit, and of the units before it in its section, as not needed for now.
    pub(crate) fn release_up_to(&self, unit: u32) {
        let Some(entry) = self.units.get(unit as usize) else { return };
        let section = if entry.in_types_section { SectionId::DebugTypes } else { SectionId::DebugInfo };
        let source = self.sources.get(entry.source as usize);
        if let Some(bytes) = source.and_then(|source| source.sections.get(&section)) {
            bytes.release(0..(entry.offset + entry.len_bytes) as usize);
        }
    }

    /// True when no unit is in another file.
    pub(crate) fn is_one_file(&self) -> bool {
        self.sources.len() == 1
    }

    /// True for a unit of the supplementary file.
    pub(crate) fn is_in_supplement(&self, unit: u32) -> bool {
        let source = self.units.get(unit as usize).map(|entry| entry.source as usize);
        self.supplement.is_some_and(|supplement| source == Some(supplement))
    }

    /// True when there is no unit at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Readers over the sections.
    pub(crate) fn view(&self) -> View<'_> {
        let mut dwarfs: Vec<Dwarf<'_>> = self.sources.iter().map(Source::dwarf).collect();
        if let Some(supplement) = self.supplement.and_then(|index| self.sources.get(index)) {
            for dwarf in &mut dwarfs {
                dwarf.set_sup(supplement.dwarf());
            }
        }
        let merged = dwarfs.iter().map(|_| OnceLock::new()).collect();
        View { store: self, dwarfs, merged }
    }

    /// Adds a source and lists its units.
    fn add(&mut self, source: Source) -> usize {
        let index = self.sources.len();
        let first = self.units.len() as u32;
        let first_of_source = self.units.len();
        let (headers, is_whole) = headers(&source.dwarf());
        self.damaged += u64::from(!is_whole);
        let mut by_offset = Vec::new();
        for (unit, header) in (first..).zip(headers) {
            if let Some((signature, offset)) = header.signature {
                let die = Die { unit, offset };
                let first = *self.signatures.entry(signature).or_insert(die);
                if (first.unit as usize) < first_of_source {
                    self.repeated.entry((index as u32, signature)).or_insert(die);
                }
            }
            if !header.in_types_section {
                by_offset.push((header.offset, unit));
            }
            self.units.push(UnitEntry {
                source: index as u32,
                offset: header.offset,
                len_bytes: header.len_bytes,
                in_types_section: header.in_types_section,
                split: None,
                skeleton: None,
                is_type_unit: header.signature.is_some(),
            });
        }
        self.by_offset.push(by_offset);
        self.sources.push(source);
        index
    }

    fn add_supplement(&mut self, wanted: Companion, companions: &mut dyn Companions) {
        let is_wanted = |elf: &Elf| {
            let own = [elf.build_id.as_ref(), elf.supplement_id.as_ref()];
            matches!(&wanted, Companion::AltLink { build_id, .. } if own.contains(&Some(build_id)))
        };
        let found = companions.find(&wanted).and_then(|bytes| Elf::parse(bytes).ok()).filter(is_wanted);
        match found.and_then(|elf| load_sections(&elf, "").ok()) {
            Some(sections) => {
                let source = Source { sections, file_type: DwarfFileType::Main };
                self.supplement = Some(self.add(source));
            }
            None => self.missing.push(wanted),
        }
    }

    /// Adds the units of a file that holds only split units, a `.dwo` or `.dwp`; false for any other file.
    fn add_split_file(&mut self, elf: &Elf) -> Result<bool, Error> {
        let sections = load_sections(elf, ".dwo")?;
        if is_without_units(&sections) {
            return Ok(false);
        }
        let package = Package::load(elf)?;
        let mut of_units = package.type_units(Sections::new());
        of_units.extend(package.compilation_units());
        if of_units.is_empty() {
            of_units.push(sections);
        }
        for sections in of_units {
            self.add(Source { sections, file_type: DwarfFileType::Dwo });
        }
        Ok(true)
    }

    /// Finds the split unit of every skeleton.
    fn add_split_units(&mut self, companions: &mut dyn Companions) {
        let skeletons = self.view().skeletons();
        if skeletons.is_empty() {
            return;
        }
        let package = companions.find(&Companion::Dwp).and_then(|bytes| Elf::parse(bytes).ok());
        let mut package = package.and_then(|elf| Package::load(&elf).ok());
        if let Some(package) = &mut package {
            for sections in package.type_units(self.main_sections()) {
                self.add(Source { sections, file_type: DwarfFileType::Dwo });
            }
        }
        for (skeleton, wanted) in skeletons {
            let Companion::DwoFile { dwo_id, .. } = &wanted else { continue };
            let packaged = package.as_ref().and_then(|package| package.unit(*dwo_id, self.main_sections()));
            let sections = packaged.or_else(|| self.load_dwo(&wanted, companions));
            let Some(sections) = sections else {
                self.missing.push(wanted);
                continue;
            };
            let first = self.units.len();
            self.add(Source { sections, file_type: DwarfFileType::Dwo });
            let split = (first..self.units.len()).find(|&unit| !self.units[unit].is_type_unit);
            for unit in self.units.iter_mut().skip(first) {
                unit.skeleton = Some(skeleton);
            }
            if let Some(entry) = self.units.get_mut(skeleton as usize) {
                entry.split = split.map(|unit| unit as u32);
            }
        }
    }

    /// The sections of the main file that its split units use too.
    fn main_sections(&self) -> Sections {
        let main = self.sources.first().map(|source| &source.sections);
        let wanted = [SectionId::DebugAddr, SectionId::DebugRanges];
        main.into_iter()
            .flat_map(|main| wanted.into_iter().filter_map(|id| Some((id, main.get(&id)?.clone()))))
            .collect()
    }

    fn load_dwo(&self, wanted: &Companion, companions: &mut dyn Companions) -> Option<Sections> {
        let elf = Elf::parse(companions.find(wanted)?).ok()?;
        let mut sections = load_sections(&elf, ".dwo").ok()?;
        sections.extend(self.main_sections());
        let Companion::DwoFile { dwo_id, .. } = wanted else { return None };
        let dwarf = dwarf(&sections);
        let mut units = dwarf.units();
        let mut is_right = false;
        while let Ok(Some(header)) = units.next() {
            let id = dwarf.unit(header).ok().and_then(|unit| unit.dwo_id);
            is_right |= id.is_some_and(|id| id.0 == *dwo_id);
        }
        is_right.then_some(sections)
    }
}

/// A unit's header, as far as the list of units needs it.
struct Header {
    offset: u64,
    len_bytes: u64,
    in_types_section: bool,
    /// Signature of a type unit, and where its type is in the unit.
    signature: Option<(u64, u32)>,
}

/// The headers of all units, and whether both lists were sound to their end.
fn headers(dwarf: &Dwarf<'_>) -> (Vec<Header>, bool) {
    let mut found = Vec::new();
    let mut list = |header: &gimli::UnitHeader<Slice<'_>>, in_types_section: bool| {
        let signature = match header.type_() {
            UnitType::Type { type_signature, type_offset }
            | UnitType::SplitType { type_signature, type_offset } => {
                u32::try_from(type_offset.0).ok().map(|offset| (type_signature.0, offset))
            }
            _ => None,
        };
        found.push(Header {
            offset: header.offset().0 as u64,
            len_bytes: header.length_including_self() as u64,
            in_types_section,
            signature,
        });
    };
    let (mut units, mut types) = (dwarf.units(), dwarf.type_units());
    let units_are_whole = loop {
        match units.next() {
            Ok(Some(header)) => list(&header, false),
            end => break end.is_ok(),
        }
    };
    let types_are_whole = loop {
        match types.next() {
            Ok(Some(header)) => list(&header, true),
            end => break end.is_ok(),
        }
    };
    (found, units_are_whole && types_are_whole)
}

/// True when no section holds a unit.
fn is_without_units(sections: &Sections) -> bool {
    let is_empty = |id| sections.get(&id).is_none_or(|bytes| bytes.is_empty());
    is_empty(SectionId::DebugInfo) && is_empty(SectionId::DebugTypes)
}

/// Loads all DWARF sections, with a suffix for split files.
fn load_sections(elf: &Elf, suffix: &str) -> Result<Sections, Error> {
    const WANTED: [SectionId; 13] = [
        SectionId::DebugAbbrev,
        SectionId::DebugAddr,
        SectionId::DebugInfo,
        SectionId::DebugLine,
        SectionId::DebugLineStr,
        SectionId::DebugLoc,
        SectionId::DebugLocLists,
        SectionId::DebugRanges,
        SectionId::DebugRngLists,
        SectionId::DebugStr,
        SectionId::DebugStrOffsets,
        SectionId::DebugTypes,
        SectionId::DebugAranges,
    ];
    WANTED.into_iter().map(|id| Ok((id, elf.section(&format!("{}{suffix}", id.name()))?))).collect()
}

/// A `.dwp` file: the split units of a whole program.
struct Package {
    sections: Sections,
    units: Bytes,
    types: Bytes,
}

impl Package {
    fn load(elf: &Elf) -> Result<Package, Error> {
        Ok(Package {
            sections: load_sections(elf, ".dwo")?,
            units: elf.section(SectionId::DebugCuIndex.name())?,
            types: elf.section(SectionId::DebugTuIndex.name())?,
        })
    }

    /// The sections of the unit with this id.
    fn unit(&self, dwo_id: u64, main: Sections) -> Option<Sections> {
        let index = gimli::DebugCuIndex::from(Slice::new(&self.units, LittleEndian)).index().ok()?;
        self.row(&index, index.find(dwo_id)?, main)
    }

    /// The sections of every type unit.
    fn type_units(&self, main: Sections) -> Vec<Sections> {
        let table = gimli::DebugTuIndex::from(Slice::new(&self.types, LittleEndian));
        table.index().map_or_else(|_| Vec::new(), |index| self.rows(&index, self.types.len(), &main))
    }

    /// The sections of every unit that is no type unit, without those of the main file.
    fn compilation_units(&self) -> Vec<Sections> {
        let table = gimli::DebugCuIndex::from(Slice::new(&self.units, LittleEndian));
        table
            .index()
            .map_or_else(|_| Vec::new(), |index| self.rows(&index, self.units.len(), &Sections::new()))
    }

    /// The sections of all units of an index of this length.
    fn rows(&self, index: &gimli::UnitIndex<Slice<'_>>, len_bytes: usize, main: &Sections) -> Vec<Sections> {
        let rows = index.unit_count().min(len_bytes as u32);
        (1..=rows).filter_map(|row| self.row(index, row, main.clone())).collect()
    }

    fn row(&self, index: &gimli::UnitIndex<Slice<'_>>, row: u32, main: Sections) -> Option<Sections> {
        let mut sections = main;
        for part in index.sections(row).ok()? {
            let id = section_id(part.section);
            let end = part.offset.saturating_add(part.size);
            if let Some(all) = self.sections.get(&id) {
                sections.insert(id, all.slice(part.offset as usize..end as usize)?);
            }
        }
        sections.insert(SectionId::DebugStr, self.sections.get(&SectionId::DebugStr)?.clone());
        Some(sections)
    }
}

fn section_id(part: IndexSectionId) -> SectionId {
    match part {
        IndexSectionId::DebugAbbrev => SectionId::DebugAbbrev,
        IndexSectionId::DebugInfo => SectionId::DebugInfo,
        IndexSectionId::DebugLine => SectionId::DebugLine,
        IndexSectionId::DebugLoc => SectionId::DebugLoc,
        IndexSectionId::DebugLocLists => SectionId::DebugLocLists,
        IndexSectionId::DebugMacinfo => SectionId::DebugMacinfo,
        IndexSectionId::DebugMacro => SectionId::DebugMacro,
        IndexSectionId::DebugRngLists => SectionId::DebugRngLists,
        IndexSectionId::DebugStrOffsets => SectionId::DebugStrOffsets,
        IndexSectionId::DebugTypes => SectionId::DebugTypes,
    }
}

/// Readers over a [`Store`].
pub(crate) struct View<'a> {
    pub(crate) store: &'a Store,
    dwarfs: Vec<Dwarf<'a>>,
    /// Per source, whether its `.debug_str` holds each text once.
    merged: Vec<OnceLock<bool>>,
}

impl<'a> View<'a> {
    /// The sections that a unit belongs to.
    pub(crate) fn dwarf(&self, unit: u32) -> Option<&Dwarf<'a>> {
        self.dwarfs.get(self.store.units.get(unit as usize)?.source as usize)
    }

    /// The sections that the names of a unit's files are in: a split unit uses the line table of its skeleton, whose
    /// strings are in the main file. Split type units have a line table of their own.
    pub(crate) fn file_names_of(&self, unit: u32) -> Option<&Dwarf<'a>> {
        let entry = self.store.units.get(unit as usize)?;
        self.dwarf(entry.skeleton.filter(|_| !entry.is_type_unit).unwrap_or(unit))
    }

    /// The number of the `.debug_str` that a unit uses, when it holds each text once.
    pub(crate) fn merged_strings(&self, unit: u32) -> Option<u32> {
        let source = self.store.units.get(unit as usize)?.source;
        let dwarf = self.dwarfs.get(source as usize)?;
        let merged = self.merged.get(source as usize)?;
        merged.get_or_init(|| is_merged(dwarf.debug_str.reader().slice())).then_some(source)
    }

    /// `.debug_str` of the file itself.
    pub(crate) fn strings(&self) -> Option<&'a [u8]> {
        Some(self.dwarfs.first()?.debug_str.reader().slice())
    }

    /// A unit with its abbreviations, ready to be read.
    pub(crate) fn unit(&self, index: u32) -> Result<Unit<'a>, gimli::Error> {
        let missing = gimli::Error::MissingUnitDie;
        let entry = self.store.units.get(index as usize).ok_or(missing)?;
        let dwarf = self.dwarfs.get(entry.source as usize).ok_or(missing)?;
        let offset = entry.offset as usize;
        let header = if entry.in_types_section {
            let section = dwarf.debug_types.reader().slice();
            let rest = section.get(offset..).ok_or(missing)?;
            gimli::DebugTypes::new(rest, LittleEndian).units().next()?.ok_or(missing)?
        } else {
            dwarf.debug_info.header_from_offset(DebugInfoOffset(offset))?
        };
        let mut unit = dwarf.unit(header)?;
        if let Some(skeleton) = entry.skeleton
            && let Ok(skeleton) = self.unit(skeleton)
        {
            unit.copy_relocated_attributes(&skeleton);
            if unit.line_program.is_none() {
                unit.line_program = skeleton.line_program;
            }
            if unit.comp_dir.is_none() {
                unit.comp_dir = skeleton.comp_dir;
            }
        }
        Ok(unit)
    }

    /// The entry that a reference in unit `from` leads to.
    pub(crate) fn die_of(&self, from: u32, value: Value<'_>) -> Option<Die> {
        match value {
            Value::UnitRef(offset) => Some(Die { unit: from, offset: u32::try_from(offset.0).ok()? }),
            Value::DebugInfoRef(offset) => self.in_section(from, offset.0),
            Value::DebugInfoRefSup(offset) => self.in_supplement(offset.0),
            Value::DebugTypesRef(signature) => self.signature(from, signature.0),
            _ => None,
        }
    }

    /// The entry at an offset of the `.debug_info` section that `from` is in.
    pub(crate) fn in_section(&self, from: u32, offset: usize) -> Option<Die> {
        let source = self.store.units.get(from as usize)?.source;
        self.in_source(source as usize, offset)
    }

    /// The entry at an offset of the supplementary file's `.debug_info`.
    pub(crate) fn in_supplement(&self, offset: usize) -> Option<Die> {
        self.in_source(self.store.supplement?, offset)
    }

    /// The type with a signature, as unit `from` knows it.
    pub(crate) fn signature(&self, from: u32, signature: u64) -> Option<Die> {
        let source = self.store.units.get(from as usize)?.source;
        let own = self.store.repeated.get(&(source, signature));
        own.or_else(|| self.store.signatures.get(&signature)).copied()
    }

    fn in_source(&self, source: usize, offset: usize) -> Option<Die> {
        let offset = offset as u64;
        let units = self.store.by_offset.get(source)?;
        let after = units.partition_point(|&(start, _)| start <= offset);
        let &(start, unit) = units.get(after.checked_sub(1)?)?;
        Some(Die { unit, offset: u32::try_from(offset - start).ok()? })
    }

    /// The skeleton units of the main file, with the files that continue them.
    fn skeletons(&self) -> Vec<(u32, Companion)> {
        let mut found = Vec::new();
        let Some(main) = self.dwarfs.first() else { return found };
        if main.debug_addr.reader().is_empty() {
            return found;
        }
        for index in 0..self.store.units.len() as u32 {
            let Ok(unit) = self.unit(index) else { continue };
            let (Some(id), Ok(Some(name))) = (unit.dwo_id, unit.dwo_name()) else { continue };
            let Ok(name) = main.attr_string(&unit, name) else { continue };
            let wanted = Companion::DwoFile {
                name: super::text(name.slice()),
                comp_dir: unit.comp_dir.map(|dir| super::text(dir.slice())),
                dwo_id: id.0,
            };
            found.push((index, wanted));
        }
        found
    }

    /// The file that each unit was compiled from, as the compiler recorded it: folder, and the name in it.
    pub(crate) fn unit_files(&self) -> Vec<(String, String)> {
        let file = |index: u32| {
            let unit = self.unit(index).ok()?;
            let folder = unit.comp_dir.map(|dir| super::text(dir.slice())).unwrap_or_default();
            Some((folder, super::text(unit.name?.slice())))
        };
        (0..self.store.units.len() as u32).filter_map(file).collect()
    }

    /// True when a unit describes a type, or refers to a unit that does, as units of code that was optimised at link
    /// time do; `None` when it cannot be read.
    pub(crate) fn has_types(&self, index: u32) -> Option<bool> {
        if self.describes_types(index)? {
            return Some(true);
        }
        let (mut seen, mut open) = (BTreeSet::from([index]), self.origins(index));
        while let Some(unit) = open.pop_first() {
            if self.describes_types(unit) == Some(true) {
                return Some(true);
            }
            seen.insert(unit);
            open.extend(self.origins(unit).difference(&seen));
        }
        Some(false)
    }

    fn describes_types(&self, index: u32) -> Option<bool> {
        let unit = self.unit(index).ok()?;
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            if type_kind(entry.tag()).is_some() {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The units that declare the functions and variables of which this one has the code.
    fn origins(&self, index: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        let Ok(unit) = self.unit(index) else { return found };
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
            found.extend(origin.and_then(|value| self.die_of(index, value)).map(|die| die.unit));
        }
        found.remove(&index);
        found
    }

    /// The code ranges of all units, by start. A skeleton's ranges belong to its split unit.
    pub(crate) fn code_ranges(&self) -> Vec<(std::ops::Range<u64>, u32)> {
        let mut found = Vec::new();
        for (index, entry) in (0..).zip(&self.store.units) {
            if entry.is_type_unit || entry.skeleton.is_some() {
                continue;
            }
            let (Some(dwarf), Ok(unit)) = (self.dwarf(index), self.unit(index)) else { continue };
            let mut entries = unit.entries();
            let Ok(Some(root)) = entries.next_dfs() else { continue };
            let ranges = super::extent::ranges(dwarf, &unit, root);
            found.extend(ranges.into_iter().map(|range| (range, entry.split.unwrap_or(index))));
        }
        found.sort_by_key(|(range, unit)| (range.start, *unit));
        found
    }
}
