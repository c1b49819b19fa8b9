//! The container: segments, sections, symbols, and links to companion files.

mod compressed;
mod other_format;
mod placement;
mod plt;
mod relocate;
mod supplement;
mod symbols;
mod thread_slots;

pub use placement::Placement;
pub use relocate::ModulePart;
pub use symbols::{Mapping, MappingSymbol};
pub(crate) use symbols::{Symbols, tidy};
pub use thread_slots::{SlotValue, ThreadSlot};

use crate::{Bytes, Error};
use lineup_model::abi::{Abi, Machine};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Object, ObjectKind, ObjectSection, ObjectSegment, SectionFlags};
use std::ops::Range;

/// The kind of ELF file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileKind {
    /// `ET_REL`: an object file or kernel module. Its sections are given addresses one after another.
    Relocatable,
    /// `ET_EXEC`: linked to a fixed address.
    Executable,
    /// `ET_DYN`: a position-independent executable or a shared library.
    Dynamic,
}

/// The kind of region that an address in a file lies in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Region {
    /// Instructions of the program itself.
    Code,
    /// A stub that jumps through the global offset table.
    Plt,
    /// Data that the program cannot write.
    ReadOnlyData,
    /// Data that the program can write, zero-initialised data included.
    Data,
    /// The image of thread-local data.
    ThreadLocal,
}

/// A section that occupies memory when the program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Name.
    pub name: String,
    /// Link addresses.
    pub addresses: Range<u64>,
    /// The kind of its contents.
    pub region: Region,
}

/// A loadable segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Link addresses.
    pub addresses: Range<u64>,
    /// Offsets in the file; shorter than `addresses` for zero-initialised data.
    pub file: Range<u64>,
    /// True when it can be executed.
    pub is_executable: bool,
}

/// The initial thread-local data, of which every thread gets a copy (`PT_TLS`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadLocalSegment {
    /// Link addresses of the image that copies start as; the part that starts as zero has none of its own.
    pub addresses: Range<u64>,
    /// Alignment of a copy, a power of two.
    pub align_bytes: u64,
}

/// One parsed ELF file, without its debug sections.
#[derive(Debug)]
pub(crate) struct Elf {
    pub(crate) bytes: Bytes,
    pub(crate) abi: Abi,
    pub(crate) kind: FileKind,
    pub(crate) is_pie: bool,
    pub(crate) entry: u64,
    pub(crate) segments: Vec<Segment>,
    pub(crate) thread_local: Option<ThreadLocalSegment>,
    pub(crate) sections: Vec<Section>,
    /// File offsets of the sections with the same index; `None` for sections without bytes.
    section_files: Vec<Option<Range<usize>>>,
    pub(crate) build_id: Option<Vec<u8>>,
    /// True when a linked file kept the relocations of its code.
    pub(crate) keeps_relocations: bool,
    /// True when GCC left the code to the linker, as `-flto` asks, and its debug information with it.
    pub(crate) is_left_to_linker: bool,
    pub(crate) debug_link: Option<(String, u32)>,
    pub(crate) alt_link: Option<(String, Vec<u8>)>,
    /// The id by which others link to a supplementary file of DWARF 5.
    pub(crate) supplement_id: Option<Vec<u8>>,
    /// Stub ranges with the names they jump to, sorted.
    pub(crate) plt: Vec<(Range<u64>, String)>,
    /// The places where the kernel puts the code of a relocatable file, when that is a module.
    pub(crate) module_parts: Vec<ModulePart>,
    /// Addresses given to the sections of a relocatable file, by section index.
    bases: Vec<u64>,
    /// The bytes of sections as a kernel has them in memory, with the same index as `sections`; empty for files of
    /// which no place is known.
    relocated: Vec<Option<Vec<u8>>>,
}

/// Runs the same expression on 32- and 64-bit files.
macro_rules! with_elf {
    ($bytes:expr, $elf:ident => $body:expr) => {
        if is_64($bytes) {
            let $elf = ElfFile::<object::elf::FileHeader64<object::LittleEndian>>::parse($bytes)
                .map_err(|error| Error::damaged("ELF", error))?;
            $body
        } else {
            let $elf = ElfFile::<object::elf::FileHeader32<object::LittleEndian>>::parse($bytes)
                .map_err(|error| Error::damaged("ELF", error))?;
            $body
        }
    };
}

impl Elf {
    pub(crate) fn parse(bytes: Bytes) -> Result<Elf, Error> {
        check_magic(&bytes)?;
        check_length(&bytes)?;
        let data: &[u8] = &bytes;
        with_elf!(data, elf => Ok(Elf { thread_local: thread_local(&elf), ..Self::read(&elf, bytes.clone())? }))
    }

    fn read<'data>(elf: &impl Object<'data>, bytes: Bytes) -> Result<Elf, Error> {
        let abi = abi(elf, &bytes)?;
        compressed::check(elf, bytes.len() as u64)?;
        let kind = match elf.kind() {
            ObjectKind::Relocatable => FileKind::Relocatable,
            ObjectKind::Executable => FileKind::Executable,
            ObjectKind::Dynamic => FileKind::Dynamic,
            ObjectKind::Core => {
                return Err(Error::damaged("ELF", "a core dump holds no program; give the program itself"));
            }
            _ => return Err(Error::damaged("ELF", "neither program, library nor object file")),
        };
        let bases = relocate::section_bases(elf, kind == FileKind::Relocatable);
        let (sections, section_files) = sections(elf, &bases);
        let plt = plt::stubs(elf, abi);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let has_interpreter = elf.section_by_name(".interp").is_some();
        Ok(Elf {
            abi,
            kind,
            is_pie: kind == FileKind::Dynamic && (has_interpreter || elf.entry() != 0),
            entry: elf.entry(),
            segments: segments(elf),
            thread_local: None,
            sections,
            section_files,
            module_parts: relocate::module_parts(elf, &bases),
            keeps_relocations: kind != FileKind::Relocatable && elf.section_by_name(".rela.text").is_some(),
            is_left_to_linker: elf
                .sections()
                .any(|section| section.name_bytes().is_ok_and(|name| name.starts_with(b".gnu.lto_"))),
            build_id: elf.build_id().ok().flatten().map(<[u8]>::to_vec),
            debug_link: elf.gnu_debuglink().ok().flatten().map(|(name, crc)| (text(name), crc)),
            alt_link: supplement::link(elf),
            supplement_id: supplement::own_id(elf),
            plt,
            bases,
            relocated: Vec::new(),
            bytes,
        })
    }

    /// Reads the tables of symbols: the slowest part of a large file except its debug sections.
    pub(crate) fn symbols(&self) -> Symbols {
        let data: &[u8] = &self.bytes;
        let read = || -> Result<Symbols, Error> {
            Ok(with_elf!(data, elf => symbols::read(&elf, &self.bases, self.abi.machine)))
        };
        // The file was sound when it was first parsed.
        read().unwrap_or_default()
    }

    /// The bytes of a section, decompressed and, in a relocatable file, relocated. Empty when there is
    /// no such section.
    pub(crate) fn section(&self, name: &str) -> Result<Bytes, Error> {
        let data: &[u8] = &self.bytes;
        with_elf!(data, elf => self.section_of(&elf, name))
    }

    fn section_of<'data>(&self, elf: &impl Object<'data>, name: &str) -> Result<Bytes, Error> {
        let Some(section) = elf.section_by_name(name) else { return Ok(Bytes::empty()) };
        if self.kind != FileKind::Relocatable {
            return self.section_bytes(elf, &section, name);
        }
        let is_of_group = |other: &_| is_debug_section(other, name);
        let mut parts = elf.sections().filter(is_of_group);
        let (Some(first), Some(second)) = (parts.next(), parts.next()) else {
            return self.section_bytes(elf, &section, name);
        };
        let mut all = Vec::new();
        for part in [first, second].into_iter().chain(parts) {
            all.extend_from_slice(&self.section_bytes(elf, &part, name)?);
        }
        Ok(all.into())
    }

    fn section_bytes<'data, 'file, F: Object<'data>>(
        &self,
        elf: &'file F,
        section: &F::Section<'file>,
        name: &str,
    ) -> Result<Bytes, Error> {
        let wrong =
            |error: object::Error| Error::Damaged { what: "section", why: format!("{name}: {error}") };
        let compressed = section.compressed_data().map_err(wrong)?;
        let is_plain = compressed.format == object::CompressionFormat::None;
        if is_plain && self.kind != FileKind::Relocatable {
            return Ok(self.shared(compressed.data).unwrap_or_default());
        }
        let mut data = compressed.decompress().map_err(wrong)?.into_owned();
        if self.kind == FileKind::Relocatable {
            relocate::apply(elf, section, &self.bases, &mut data);
        }
        Ok(data.into())
    }

    /// The words that the loader fills in for thread-local variables.
    pub(crate) fn thread_slots(&self) -> Vec<ThreadSlot> {
        let data: &[u8] = &self.bytes;
        let len = u64::from(self.abi.pointer_bytes);
        let word = |address: u64| {
            let bytes = self.memory(address..address.checked_add(len)?)?;
            Some(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
        };
        let read = || -> Result<Vec<ThreadSlot>, Error> {
            with_elf!(data, elf => Ok(thread_slots::read(&elf, self.abi.machine, word)))
        };
        read().unwrap_or_default()
    }

    /// A slice of the file's bytes as shared bytes.
    fn shared(&self, part: &[u8]) -> Option<Bytes> {
        let start = (part.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        self.bytes.slice(start..start.checked_add(part.len())?)
    }

    /// The section that holds a link address.
    pub(crate) fn section_at(&self, address: u64) -> Option<&Section> {
        self.sections.iter().find(|section| section.addresses.contains(&address))
    }

    /// The bytes that the file holds for a range of link addresses.
    pub(crate) fn memory(&self, range: Range<u64>) -> Option<&[u8]> {
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        for (number, (section, file)) in self.sections.iter().zip(&self.section_files).enumerate() {
            let Some(file) = file else { continue };
            if section.addresses.start <= range.start && range.end <= section.addresses.end {
                let skip = usize::try_from(range.start - section.addresses.start).ok()?;
                if let Some(Some(relocated)) = self.relocated.get(number) {
                    return relocated.get(skip..skip.checked_add(len)?);
                }
                let start = file.start + skip;
                return self.bytes.get(start..start.checked_add(len)?);
            }
        }
        let segment = self.segments.iter().find(|segment| segment.addresses.contains(&range.start))?;
        let skip = range.start - segment.addresses.start;
        let start = usize::try_from(segment.file.start.checked_add(skip)?).ok()?;
        let end = start.checked_add(len)?;
        if end as u64 > segment.file.end { None } else { self.bytes.get(start..end) }
    }
}

/// The bytes of a section of a file of any little-endian machine, decompressed. Empty when there is no such section.
pub(crate) fn raw_section(bytes: Bytes, name: &str) -> Result<Bytes, Error> {
    check_is_elf(&bytes)?;
    if !is_big_endian(&bytes) {
        check_length(&bytes)?;
    }
    match is_64(&bytes) {
        true => raw_section_of::<object::elf::FileHeader64<object::Endianness>>(&bytes, name),
        false => raw_section_of::<object::elf::FileHeader32<object::Endianness>>(&bytes, name),
    }
}

fn raw_section_of<H: FileHeader<Endian = object::Endianness>>(
    bytes: &[u8],
    name: &str,
) -> Result<Bytes, Error> {
    let elf = ElfFile::<H>::parse(bytes).map_err(|error| Error::damaged("ELF", error))?;
    compressed::check(&elf, bytes.len() as u64)?;
    let Some(section) = elf.section_by_name(name) else { return Ok(Bytes::empty()) };
    let data = section.uncompressed_data();
    data.map(|data| data.into_owned().into())
        .map_err(|error| Error::Damaged { what: "section", why: format!("{name}: {error}") })
}

/// True for a debug section with this name.
fn is_debug_section<'data>(section: &impl ObjectSection<'data>, name: &str) -> bool {
    name.as_bytes().starts_with(relocate::DEBUG_PREFIX) && section.name_bytes() == Ok(name.as_bytes())
}

fn is_64(bytes: &[u8]) -> bool {
    bytes.get(4) == Some(&2)
}

fn check_magic(bytes: &[u8]) -> Result<(), Error> {
    check_is_elf(bytes)?;
    if is_big_endian(bytes) {
        return Err(Error::UnsupportedMachine { machine: "a big-endian machine".to_owned() });
    }
    Ok(())
}

fn check_is_elf(bytes: &[u8]) -> Result<(), Error> {
    if !bytes.starts_with(b"\x7fELF") {
        return Err(other_format::refusal(bytes));
    }
    Ok(())
}

fn is_big_endian(bytes: &[u8]) -> bool {
    bytes.get(5) == Some(&2)
}

/// Refuses a file that ends before its table of sections, which linkers write last.
fn check_length(bytes: &[u8]) -> Result<(), Error> {
    let number = |at: usize, len: usize| {
        let field = bytes.get(at..at + len)?;
        Some(field.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
    };
    let (table, entry, count) = if is_64(bytes) {
        (number(40, 8), number(58, 2), number(60, 2))
    } else {
        (number(32, 4), number(46, 2), number(48, 2))
    };
    let (Some(table), Some(entry), Some(count)) = (table, entry, count) else { return Ok(()) };
    let needed = table.saturating_add(entry * count);
    if needed > bytes.len() as u64 {
        let why = format!(
            "it has {} bytes, and its table of sections ends at byte {needed}; the file was cut off, or a \
             copy did not finish",
            bytes.len()
        );
        return Err(Error::Damaged { what: "ELF", why });
    }
    Ok(())
}

/// A file of 32 bits for a machine of 64 is x32's, or none that is known.
fn abi<'data>(elf: &impl Object<'data>, bytes: &[u8]) -> Result<Abi, Error> {
    let number = bytes.get(18..20).and_then(|number| Some(u16::from_le_bytes(number.try_into().ok()?)));
    let pointer_bytes = if elf.is_64() { 8 } else { 4 };
    let is_known = |machine: &Machine| {
        *machine == Machine::X86_64 || machine.description().pointer_bytes == pointer_bytes
    };
    match number.and_then(Machine::of_elf).filter(is_known) {
        Some(machine) => Ok(Abi { machine, pointer_bytes }),
        None => Err(Error::UnsupportedMachine { machine: format!("{:?}", elf.architecture()) }),
    }
}

fn segments<'data>(elf: &impl Object<'data>) -> Vec<Segment> {
    elf.segments()
        .map(|segment| {
            let (file_start, file_len) = segment.file_range();
            let is_executable = segment.permissions().executable();
            Segment {
                addresses: segment.address()..segment.address().saturating_add(segment.size()),
                file: file_start..file_start.saturating_add(file_len),
                is_executable,
            }
        })
        .collect()
}

fn thread_local<H>(elf: &ElfFile<'_, H>) -> Option<ThreadLocalSegment>
where
    H: object::read::elf::FileHeader<Endian = object::LittleEndian>,
{
    let endian = object::LittleEndian;
    let is_one = |header: &&H::ProgramHeader| header.p_type(endian) == object::elf::PT_TLS;
    let header = elf.elf_program_headers().iter().find(is_one)?;
    let start: u64 = header.p_vaddr(endian).into();
    let align_bytes: u64 = header.p_align(endian).into();
    Some(ThreadLocalSegment {
        addresses: start..start.checked_add(header.p_memsz(endian).into())?,
        align_bytes: align_bytes.max(1).checked_next_power_of_two()?,
    })
}

fn sections<'data>(elf: &impl Object<'data>, bases: &[u64]) -> (Vec<Section>, Vec<Option<Range<usize>>>) {
    let mut sections = Vec::new();
    let mut files = Vec::new();
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if !sh_flags.contains(object::elf::SHF_ALLOC) {
            continue;
        }
        let base = bases.get(section.index().0).copied().unwrap_or(0);
        let start = section.address().wrapping_add(base);
        let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
        files.push(section.file_range().and_then(|(offset, len)| {
            Some(usize::try_from(offset).ok()?..usize::try_from(offset.checked_add(len)?).ok()?)
        }));
        sections.push(Section {
            region: region(&name, sh_flags),
            name,
            addresses: start..start.saturating_add(section.size()),
        });
    }
    (sections, files)
}

fn region(name: &str, flags: object::elf::SectionFlags) -> Region {
    if flags.contains(object::elf::SHF_EXECINSTR) {
        if name.starts_with(".plt") || name == ".iplt" { Region::Plt } else { Region::Code }
    } else if flags.contains(object::elf::SHF_TLS) {
        Region::ThreadLocal
    } else if flags.contains(object::elf::SHF_WRITE) {
        Region::Data
    } else {
        Region::ReadOnlyData
    }
}
