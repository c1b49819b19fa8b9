//! Room for the engine in every thread's block of thread-local variables, in a statically linked program.
//!
//! The program's C library lays out these blocks by the program's table of parts, which it finds through the kernel's
//! auxiliary vector. A copy with a larger thread-local part replaces the table. The engine's variables lie below the
//! program's own, which stay at the same distance from the base. A mark above the engine's variables shows, when the
//! first base is set, whether the library has followed the copy.

use super::program_part::Part;
use crate::error::{Doing, Result};
use crate::recorder::native::inject::layout::Library;
use crate::recorder::native::tracee::caller::Caller;
use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::ptrace::Tid;
use crate::recorder::native::tracee::refusals::of_injection;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// The kernel's keys in a program's auxiliary vector.
const TABLE: u64 = 3;
const TABLE_ENTRY_BYTES: u64 = 4;
const TABLE_COUNT: u64 = 5;
const ENTRY: u64 = 9;
/// Kinds of parts.
const THREAD_LOCAL: u32 = 7;
const TABLE_ITSELF: u32 = 6;
const MARK: [u8; 16] = *b"lineup thread\0\0\x01";
const PAGE_BYTES: u64 = 4096;
/// The part of the initial stack that is searched.
const MOST_STACK_BYTES: usize = 8 << 20;

/// The program's table of parts.
pub(super) struct Parts {
    parts: Vec<Part>,
    /// The distance of the program from its linked addresses.
    bias: u64,
    /// The addresses on the stack of the auxiliary vector's entries for the table's address and length.
    table_at: u64,
    count_at: u64,
}

/// The engine's part of each thread's block.
pub(super) struct Block {
    /// From the base to where it begins.
    pub(super) distance: i64,
    image: Vec<u8>,
    own: Variables,
}

/// The initial content of the program's own variables.
struct Variables {
    /// Its address in the program, and the address of the copy that threads get.
    from: u64,
    copy: u64,
    bytes: u64,
    /// Bytes from where they begin in a thread's block to the base.
    before_base: u64,
}

/// The layout of a thread's block with room for the engine: the bytes below the base in all, and those below the
/// program's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sizes {
    all: u64,
    added: u64,
    align: u64,
}

impl Sizes {
    /// `None` when no C library would place the program's variables so.
    fn of(own: &Part, engine_bytes: u64, engine_align: u64) -> Option<Sizes> {
        let own_align = own.align.max(1);
        let align = own_align.max(engine_align);
        let is_plain = own_align.is_power_of_two()
            && align <= PAGE_BYTES
            && own.address.is_multiple_of(own_align)
            && own.file_bytes <= own.memory_bytes;
        // Variables are reached by their distance from the base, which the linker has counted from the rounded size.
        let own_bytes = own.memory_bytes.checked_next_multiple_of(own_align)?;
        let all = own_bytes.checked_add(engine_bytes)?.checked_next_multiple_of(align)?;
        (is_plain && all < 1 << 30).then_some(Sizes { all, added: all - own_bytes, align })
    }
}

impl Parts {
    /// Reads the parts of a program that has not begun and stands still.
    pub(super) fn read(tid: Tid, memory: &File) -> Result<Parts> {
        let told = fs::read(format!("/proc/{tid}/auxv"))
            .doing("reading the values that the kernel gives the program")?;
        let told: Vec<u64> = told.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let value = |key: u64| told.chunks_exact(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
        let of_kernel = || {
            let bytes = value(TABLE_ENTRY_BYTES).filter(|bytes| *bytes == Part::BYTES as u64)?;
            Some((value(TABLE)?, value(TABLE_COUNT)?.min(PAGE_BYTES / bytes), value(ENTRY)?))
        };
        let unknown = || of_injection("the kernel does not report where its parts lie".into());
        let (table, count, entry) = of_kernel().ok_or_else(unknown)?;
        let mut bytes = vec![0; count as usize * Part::BYTES];
        memory.read_exact_at(&mut bytes, table).doing("reading the program's table of parts")?;
        let parts = bytes.chunks_exact(Part::BYTES).filter_map(Part::read).collect();
        let file = File::open(format!("/proc/{tid}/exe")).doing("opening the program's file")?;
        let mut linked = [0; 8];
        const ENTRY_AT: u64 = 24;
        file.read_exact_at(&mut linked, ENTRY_AT).doing("reading the program's file")?;
        let rsp = ptrace::registers(tid).doing("reading the program's registers")?.rsp;
        let mut stack = vec![0; MOST_STACK_BYTES];
        let read = memory.read_at(&mut stack, rsp).doing("reading the program's stack")?;
        let words: Vec<u64> =
            stack[..read].as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let first = told_at(&words).ok_or_else(unknown)?;
        let place = |key: u64| {
            let pairs = words[first..].chunks_exact(2).take_while(|pair| pair[0] != 0);
            let at = pairs.enumerate().find(|(_, pair)| pair[0] == key)?.0;
            Some(rsp + 8 * (first + 2 * at + 1) as u64)
        };
        Ok(Parts {
            parts,
            bias: entry.wrapping_sub(u64::from_le_bytes(linked)),
            table_at: place(TABLE).ok_or_else(unknown)?,
            count_at: place(TABLE_COUNT).ok_or_else(unknown)?,
        })
    }

    /// Has the C library in the program make room for the engine.
    pub(super) fn extend(mut self, library: &Library, caller: &mut Caller, memory: &File) -> Result<Block> {
        let known = self.parts.iter().position(|part| part.kind == THREAD_LOCAL);
        let own = known.map_or(Part { kind: THREAD_LOCAL, flags: 4, align: 1, ..Part::default() }, |place| {
            self.parts[place]
        });
        let mut image = library.thread_local.clone();
        let mark_at = image.len().next_multiple_of(MARK.len());
        image.resize(mark_at, 0);
        image.extend(MARK);
        let sizes = Sizes::of(&own, image.len() as u64, library.thread_local_align);
        let sizes = sizes.ok_or_else(|| {
            of_injection("its thread-local variables lie as the engine does not know it".into())
        })?;
        let mut whole = image.clone();
        whole.resize(sizes.added as usize, 0);
        whole.resize(sizes.added as usize + own.file_bytes as usize, 0);
        let room = PAGE_BYTES + whole.len() as u64;
        let table = caller.map(room)?;
        let at = table + PAGE_BYTES;
        let variables = Variables {
            from: own.address.wrapping_add(self.bias),
            copy: at + sizes.added,
            bytes: own.file_bytes,
            before_base: sizes.all - sizes.added,
        };
        let extended = Part {
            offset: 0,
            address: at.wrapping_sub(self.bias),
            physical: at.wrapping_sub(self.bias),
            file_bytes: whole.len() as u64,
            memory_bytes: sizes.added + own.memory_bytes,
            align: sizes.align,
            ..own
        };
        match known {
            Some(place) => self.parts[place] = extended,
            None => self.parts.push(extended),
        }
        for part in self.parts.iter_mut().filter(|part| part.kind == TABLE_ITSELF) {
            part.address = table.wrapping_sub(self.bias);
        }
        let count = self.parts.len() as u64;
        let bytes: Vec<u8> = self.parts.iter().flat_map(Part::bytes).collect();
        let write = |bytes: &[u8], at: u64| {
            memory.write_all_at(bytes, at).doing("writing the program's table of parts")
        };
        write(&bytes, table)?;
        write(&whole, at)?;
        write(&table.to_le_bytes(), self.table_at)?;
        write(&count.to_le_bytes(), self.count_at)?;
        Ok(Block { distance: -(sizes.all as i64), image, own: variables })
    }
}

impl Block {
    /// Writes the initial content of the program's variables to the copy that threads get. The program may lie anywhere,
    /// and has relocated the addresses in it when its first base is set.
    pub(super) fn relocate(&self, memory: &File) -> Result<()> {
        self.write_variables(self.own.copy, memory)
    }

    /// False while the thread with this base has no content yet. The library of GNU fills the first thread's block before
    /// it sets the base, and from release 2.41 on some system calls later: until then it is zero.
    pub(super) fn is_filled(&self, base: u64, memory: &File) -> bool {
        let mut block = vec![0; self.image.len()];
        let read = memory.read_exact_at(&mut block, base.wrapping_add_signed(self.distance));
        read.is_err() || block.iter().any(|byte| *byte != 0)
    }

    /// Checks that the thread with this base has the engine's part, and that its own variables begin as they should.
    pub(super) fn settle(&self, base: u64, memory: &File) -> Result<()> {
        self.check(base, memory)?;
        self.write_variables(base - self.own.before_base, memory)
    }

    fn write_variables(&self, at: u64, memory: &File) -> Result<()> {
        let mut variables = vec![0; self.own.bytes as usize];
        memory
            .read_exact_at(&mut variables, self.own.from)
            .doing("reading the program's thread-local variables")?;
        memory.write_all_at(&variables, at).doing("writing the program's thread-local variables")
    }

    fn check(&self, base: u64, memory: &File) -> Result<()> {
        let read = |bytes: &mut [u8], at: u64| memory.read_exact_at(bytes, at).is_ok();
        let (mut own, mut word) = (vec![0; self.image.len()], [0; 8]);
        let has_part = read(&mut own, base.wrapping_add_signed(self.distance)) && own == self.image;
        // The engine finds the base by the word that lies there.
        let tells_base = read(&mut word, base) && u64::from_le_bytes(word) == base;
        match has_part && tells_base {
            true => Ok(()),
            false => Err(of_injection("it does not set up its threads' variables as C libraries do".into())),
        }
    }
}

/// The index of the auxiliary vector among the words of a fresh stack: behind the arguments and the environment.
fn told_at(words: &[u64]) -> Option<usize> {
    let arguments = usize::try_from(*words.first()?).ok()?;
    let environment = arguments.checked_add(2)?;
    let length = words.get(environment..)?.iter().position(|word| *word == 0)?;
    Some(environment + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_variables_stay_where_they_were_from_the_base() {
        let part = |memory_bytes, align| Part { memory_bytes, align, address: 0x1000, ..Part::default() };
        for (own, bytes, align) in [(0, 0x300, 64), (1, 0x300, 64), (0x68, 0x300, 64), (0x1081, 0x300, 64)] {
            for own_align in [0, 1, 8, 32, 256] {
                let sizes = Sizes::of(&part(own, own_align), bytes, align).unwrap();
                let own_bytes = own.next_multiple_of(own_align.max(1));
                assert_eq!(sizes.all - sizes.added, own_bytes);
                // The C library's rounding must give the same total.
                assert_eq!((sizes.added + own).next_multiple_of(sizes.align), sizes.all);
                assert!(sizes.added >= bytes && sizes.align == own_align.max(64));
            }
        }
        assert_eq!(Sizes::of(&Part { address: 4, ..part(8, 8) }, 0x300, 64), None);
        assert_eq!(Sizes::of(&part(8, 3), 0x300, 64), None);
        assert_eq!(Sizes::of(&part(8, 8192), 0x300, 64), None);
        assert_eq!(Sizes::of(&part(u64::MAX, 8), 0x300, 64), None);
    }

    #[test]
    fn parts_are_written_as_they_were_read() {
        let part = Part {
            kind: 7,
            flags: 4,
            offset: 1,
            address: 2,
            physical: 3,
            file_bytes: 4,
            memory_bytes: 5,
            align: 8,
        };
        assert_eq!(part.bytes().len(), Part::BYTES);
        assert_eq!(Part::read(&part.bytes()), Some(part));
        assert_eq!(Part::read(&[0; 55]), None);
    }

    #[test]
    fn what_the_kernel_tells_lies_behind_the_environment() {
        assert_eq!(told_at(&[2, 11, 12, 0, 21, 22, 0, 3, 99]), Some(7));
        assert_eq!(told_at(&[0, 0, 0, 3]), Some(3));
        assert_eq!(told_at(&[1 << 62, 0]), None);
        assert_eq!(told_at(&[]), None);
    }
}
