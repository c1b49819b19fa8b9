//! Reads the parts of ELF files that the recorder needs of a program's mapped files: segments, the build id, and
//! function symbols. Little endian, both classes. The parser does not trust the file: `None` is malformed.

use lineup_model::machine::Machine;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Source of a file's bytes.
pub(crate) trait Source {
    /// The `length` bytes at `offset`, or `None` when the file has not that many.
    fn bytes(&self, offset: u64, length: u64) -> Option<Vec<u8>>;
}

impl Source for File {
    fn bytes(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(length)?;
        if end > self.metadata().ok()?.len() {
            return None;
        }
        let mut out = vec![0; usize::try_from(length).ok()?];
        self.read_exact_at(&mut out, offset).ok()?;
        Some(out)
    }
}

impl Source for [u8] {
    fn bytes(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        Some(self.get(start..start.checked_add(usize::try_from(length).ok()?)?)?.to_vec())
    }
}

/// A `PT_LOAD` segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) address: u64,
    pub(crate) memory_bytes: u64,
}

/// A function symbol. The Thumb bit is cleared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FunctionSymbol {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size_bytes: u64,
    /// The loader calls it, and it returns the function that the name then means (IFUNC).
    pub(crate) is_chooser: bool,
}

/// The machine that a file is for and the bytes of a pointer, where the machine is known; `None` when it is no ELF
/// file.
pub fn machine_of(file: &File) -> Option<Option<(Machine, u8)>> {
    Elf::open(file).map(|elf| elf.machine())
}

/// An open ELF file.
pub(crate) struct Elf<'a, S: Source + ?Sized> {
    source: &'a S,
    is_64: bool,
    is_arm: bool,
    head: Vec<u8>,
    program_headers: Vec<Vec<u8>>,
    section_headers: Vec<Vec<u8>>,
}

const EM_ARM: u64 = 40;
const PT_LOAD: u64 = 1;
const PT_NOTE: u64 = 4;
const SHT_SYMTAB: u64 = 2;
const SHT_DYNSYM: u64 = 11;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const NT_GNU_BUILD_ID: u64 = 3;

/// The little-endian integer of `width` bytes at `at`.
fn int(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

impl<'a, S: Source + ?Sized> Elf<'a, S> {
    pub(crate) fn open(source: &'a S) -> Option<Self> {
        let head = source.bytes(0, 52)?;
        if head.get(..4)? != b"\x7fELF" || head[5] != 1 {
            return None;
        }
        let is_64 = head[4] == 2;
        let head = source.bytes(0, if is_64 { 64 } else { 52 })?;
        let (phoff, shoff, counts) = if is_64 {
            (int(&head, 32, 8)?, int(&head, 40, 8)?, 54)
        } else {
            (int(&head, 28, 4)?, int(&head, 32, 4)?, 42)
        };
        let field = |index: usize| int(&head, counts + 2 * index, 2);
        let table = |offset: u64, entry: u64, count: u64| {
            let bytes = source.bytes(offset, entry.checked_mul(count)?)?;
            Some(bytes.chunks_exact(usize::try_from(entry.max(1)).ok()?).map(<[u8]>::to_vec).collect())
        };
        Some(Elf {
            source,
            is_64,
            is_arm: int(&head, 18, 2)? == EM_ARM,
            program_headers: table(phoff, field(0)?, field(1)?)?,
            // A file without its sections still has segments.
            section_headers: table(shoff, field(2)?, field(3)?).unwrap_or_default(),
            head,
        })
    }

    /// One field of a program header: offset and width in the 64-bit and in the 32-bit layout.
    fn field(&self, bytes: &[u8], wide: (usize, usize), narrow: (usize, usize)) -> Option<u64> {
        let (at, width) = if self.is_64 { wide } else { narrow };
        int(bytes, at, width)
    }

    /// The machine that it is for and the bytes of a pointer; `None` for one that is not known.
    pub(crate) fn machine(&self) -> Option<(Machine, u8)> {
        let machine = Machine::of_elf(u16::try_from(int(&self.head, 18, 2)?).ok()?)?;
        Some((machine, if self.is_64 { 8 } else { 4 }))
    }

    pub(crate) fn segments(&self) -> Vec<Segment> {
        self.program_headers
            .iter()
            .filter(|header| int(header, 0, 4) == Some(PT_LOAD))
            .filter_map(|header| {
                Some(Segment {
                    offset: self.field(header, (8, 8), (4, 4))?,
                    address: self.field(header, (16, 8), (8, 4))?,
                    memory_bytes: self.field(header, (40, 8), (20, 4))?,
                })
            })
            .collect()
    }

    pub(crate) fn build_id(&self) -> Option<Vec<u8>> {
        let notes = self.program_headers.iter().filter(|header| int(header, 0, 4) == Some(PT_NOTE));
        notes
            .filter_map(|header| {
                let offset = self.field(header, (8, 8), (4, 4))?;
                let length = self.field(header, (32, 8), (16, 4))?;
                build_id_in(&self.source.bytes(offset, length)?)
            })
            .next()
    }

    /// The function symbols of `.symtab` and `.dynsym`.
    pub(crate) fn functions(&self) -> Vec<FunctionSymbol> {
        let kind = |header: &Vec<u8>| int(header, 4, 4);
        self.section_headers
            .iter()
            .filter(|header| matches!(kind(header), Some(SHT_SYMTAB | SHT_DYNSYM)))
            .filter_map(|header| self.functions_of(header))
            .flatten()
            .collect()
    }

    /// Addresses of the stubs of functions in other files: the common one first.
    pub(crate) fn stubs(&self) -> Option<Range<u64>> {
        let names = self.field(&self.head, (62, 2), (50, 2))?;
        let names = self.section(self.section_headers.get(usize::try_from(names).ok()?)?)?;
        let is_stubs = |header: &&Vec<u8>| {
            let name = int(header, 0, 4).and_then(|at| names.get(usize::try_from(at).ok()?..));
            name.is_some_and(|name| name.starts_with(b".plt\0"))
        };
        let header = self.section_headers.iter().find(is_stubs)?;
        let start = self.field(header, (16, 8), (12, 4))?;
        Some(start..start.checked_add(self.field(header, (32, 8), (20, 4))?)?)
    }

    fn section(&self, header: &[u8]) -> Option<Vec<u8>> {
        let offset = self.field(header, (24, 8), (16, 4))?;
        let length = self.field(header, (32, 8), (20, 4))?;
        self.source.bytes(offset, length)
    }

    fn functions_of(&self, header: &[u8]) -> Option<Vec<FunctionSymbol>> {
        let table = self.section(header)?;
        let link = self.field(header, (40, 4), (24, 4))?;
        let names = self.section(self.section_headers.get(usize::try_from(link).ok()?)?)?;
        let entry_bytes = if self.is_64 { 24 } else { 16 };
        let symbol = |entry: &[u8]| {
            let kind = *entry.get(if self.is_64 { 4 } else { 12 })? & 15;
            let section = self.field(entry, (6, 2), (14, 2))?;
            if !matches!(kind, STT_FUNC | STT_GNU_IFUNC) || section == 0 {
                return None;
            }
            let name = names.get(usize::try_from(int(entry, 0, 4)?).ok()?..)?;
            let name = &name[..name.iter().position(|byte| *byte == 0)?];
            let address = self.field(entry, (8, 8), (4, 4))?;
            Some(FunctionSymbol {
                name: String::from_utf8_lossy(name).into_owned(),
                address: if self.is_arm { address & !1 } else { address },
                size_bytes: self.field(entry, (16, 8), (8, 4))?,
                is_chooser: kind == STT_GNU_IFUNC,
            })
        };
        Some(table.chunks_exact(entry_bytes).filter_map(symbol).collect())
    }
}

fn build_id_in(mut notes: &[u8]) -> Option<Vec<u8>> {
    loop {
        let (name_bytes, value_bytes) = (int(notes, 0, 4)?, int(notes, 4, 4)?);
        let name_end = 12usize.checked_add(usize::try_from(name_bytes).ok()?)?;
        let value_start = name_end.checked_next_multiple_of(4)?;
        let value_end = value_start.checked_add(usize::try_from(value_bytes).ok()?)?;
        if int(notes, 8, 4)? == NT_GNU_BUILD_ID && notes.get(12..name_end)? == b"GNU\0" {
            return notes.get(value_start..value_end).map(<[u8]>::to_vec);
        }
        notes = notes.get(value_end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A 32-bit file of one segment, one note and one symbol table, put together by hand.
    fn small_arm_file() -> Vec<u8> {
        let words = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([3, 0, 40, 0]); // shared object, Arm
        file.extend(words(&[1, 0, 52, 160, 0]));
        file.extend([52, 0, 32, 0, 2, 0, 40, 0, 2, 0, 0, 0]); // header sizes and counts
        assert_eq!(file.len(), 52);
        file.extend(words(&[1, 0, 0x1_0000, 0x1_0000, 300, 400, 5, 0x1000])); // PT_LOAD
        file.extend(words(&[4, 116, 0, 0, 20, 20, 4, 4])); // PT_NOTE
        file.extend(words(&[4, 4, 3]));
        file.extend(b"GNU\0\xaa\xbb\xcc\xdd");
        file.extend([0; 24]);
        assert_eq!(file.len(), 160);
        file.extend(words(&[0, 2, 0, 0, 240, 16, 1, 0, 4, 16])); // symbol table
        file.extend(words(&[0, 3, 0, 0, 256, 6, 0, 0, 1, 0])); // its names
        file.extend(words(&[1, 0x1_0101, 8]));
        file.extend([2, 0, 1, 0]);
        file.extend(b"\0free\0");
        file
    }

    #[test]
    fn segments_notes_and_symbols_are_found() {
        let file = small_arm_file();
        let elf = Elf::open(&file[..]).unwrap();
        assert_eq!(elf.segments(), [Segment { offset: 0, address: 0x1_0000, memory_bytes: 400 }]);
        assert_eq!(elf.build_id(), Some(vec![0xaa, 0xbb, 0xcc, 0xdd]));
        let free =
            FunctionSymbol { name: "free".into(), address: 0x1_0100, size_bytes: 8, is_chooser: false };
        assert_eq!(elf.functions(), [free]);
    }

    #[test]
    fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
        let file = small_arm_file();
        for length in 0..file.len() {
            if let Some(elf) = Elf::open(&file[..length]) {
                elf.segments();
                elf.build_id();
                elf.stubs();
                assert_eq!(elf.functions(), []);
            }
        }
    }

    #[test]
    fn the_running_test_itself_reads_well() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::open(&file).unwrap();
        assert!(elf.segments().len() > 1);
        assert!(elf.functions().iter().any(|symbol| symbol.name.contains("the_running_test_itself")));
        assert!(elf.stubs().is_none_or(|stubs| stubs.start < stubs.end));
    }
}
