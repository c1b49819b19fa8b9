//! The engine's library, laid out in another process by hand, as a loader does it.

use crate::companions;
use crate::error::{Doing, Error, Result};
use crate::recorder::native::inject::program_part::Part;
use crate::recorder::native::tracee::caller::Caller;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const PAGE: u64 = 4096;
const LOADED: u32 = 1;
const DYNAMIC: u32 = 2;
const THREAD_LOCAL: u32 = 7;
const EXECUTABLE: u32 = 1;
const WRITABLE: u32 = 2;
/// Tags of the dynamic linking table.
const STRINGS: u64 = 5;
const SYMBOLS: u64 = 6;
const RELOCATIONS: [(u64, u64); 2] = [(7, 8), (23, 2)];
const PACKED_RELOCATIONS: u64 = 36;
/// Tables that linkers put next to the symbols: strings, both kinds of hashes, relocations, and versions.
const BESIDE_SYMBOLS: [u64; 7] = [STRINGS, 4, 0x6fff_fef5, 7, 23, 0x6fff_fff0, 0x6fff_fffe];
const RELOCATION_BYTES: usize = 24;
const SYMBOL_BYTES: u64 = 24;
/// The prefix of the engine's own replacements for the C library's functions.
const OWN: &str = "lineup_alone_";

/// The library's file.
pub(super) struct Library {
    parts: Vec<Part>,
    relocations: Vec<Relocation>,
    /// The bytes of parts that are written to, by the part's address.
    written: Vec<(u64, Vec<u8>)>,
    /// The initial content of each thread's block.
    pub(super) thread_local: Vec<u8>,
    pub(super) thread_local_align: u64,
    inject: u64,
}

/// The addresses of the library's functions in the process.
pub(super) struct Functions {
    pub(super) inject: u64,
}

/// A word that depends on where the library lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Relocation {
    at: u64,
    value: Value,
}

/// A relocation's value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// This, from where the library begins.
    Place(u64),
    /// A plain number.
    Number(u64),
    /// This, from where the thread-local variables begin, which lie at a distance from the base.
    FromBase(u64),
}

/// Reads a file's bytes, with checks.
struct Reader<'a> {
    bytes: &'a [u8],
    parts: Vec<Part>,
}

impl Reader<'_> {
    fn number(&self, at: u64, bytes: u64) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let field = self.bytes.get(at..at.checked_add(bytes as usize)?)?;
        Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The file offset of an address.
    fn offset(&self, address: u64) -> Option<u64> {
        let holds = |part: &&Part| {
            part.kind == LOADED && (part.address..part.address + part.file_bytes).contains(&address)
        };
        self.parts.iter().find(holds).map(|part| address - part.address + part.offset)
    }

    fn content(&self, part: &Part) -> Option<&[u8]> {
        let start = usize::try_from(part.offset).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(part.file_bytes).ok()?)?)
    }

    fn text(&self, at: u64) -> Option<&str> {
        let rest = self.bytes.get(usize::try_from(at).ok()?..)?;
        std::str::from_utf8(rest.split(|byte| *byte == 0).next()?).ok()
    }
}

impl Library {
    /// Reads it.
    pub(super) fn read(engine: &Path) -> Result<Library> {
        let bytes = companions::read(engine)?;
        let odd = || Error::Start(format!("{} is not laid out as the engine's library is", engine.display()));
        Library::of(&bytes).ok_or_else(odd)
    }

    fn of(bytes: &[u8]) -> Option<Library> {
        let mut reader = Reader { bytes, parts: Vec::new() };
        let (first, count) = (reader.number(0x20, 8)?, reader.number(0x38, 2)?);
        let of_table = bytes.get(usize::try_from(first).ok()?..)?.chunks_exact(Part::BYTES);
        reader.parts = of_table.take(count as usize).filter_map(Part::read).collect();
        let part = |kind: u32| reader.parts.iter().find(|part| part.kind == kind);
        let told: HashMap<u64, u64> = reader
            .content(part(DYNAMIC)?)?
            .chunks_exact(16)
            .map(|pair| (le(&pair[..8]), le(&pair[8..])))
            .collect();
        if told.contains_key(&PACKED_RELOCATIONS) {
            return None;
        }
        let symbols = Symbols::of(&reader, &told)?;
        let mut relocations = Vec::new();
        for (table, bytes) in RELOCATIONS {
            let (Some(table), Some(bytes)) = (told.get(&table), told.get(&bytes)) else { continue };
            let start = usize::try_from(reader.offset(*table)?).ok()?;
            let all = reader.bytes.get(start..start.checked_add(usize::try_from(*bytes).ok()?)?)?;
            for one in all.chunks_exact(RELOCATION_BYTES) {
                relocations.push(symbols.relocation(le(&one[..8]), le(&one[8..16]), le(&one[16..]))?);
            }
        }
        let variables = part(THREAD_LOCAL)?;
        let mut thread_local = reader.content(variables)?.to_vec();
        thread_local.resize(usize::try_from(variables.memory_bytes).ok()?, 0);
        let is_written = |part: &&Part| part.kind == LOADED && part.flags & WRITABLE != 0;
        let written = reader.parts.iter().filter(is_written);
        let written: Option<Vec<_>> =
            written.map(|part| Some((part.address, reader.content(part)?.to_vec()))).collect();
        Some(Library {
            written: written?,
            thread_local,
            thread_local_align: variables.align,
            inject: *symbols.named.get("lineup_engine_inject")?,
            relocations,
            parts: reader.parts,
        })
    }

    fn loaded(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| part.kind == LOADED)
    }

    /// Maps it into the process and binds it. `distance` leads from a thread's base to the engine's variables.
    pub(super) fn lay_out(
        &self,
        caller: &mut Caller,
        memory: &File,
        file: &Path,
        distance: i64,
    ) -> Result<Functions> {
        let end = self.loaded().map(|part| part.address + part.memory_bytes).max().unwrap_or(0);
        let path = caller.text(&file.to_string_lossy())?;
        let opened = caller.open(path)?;
        let start = caller.map(end.next_multiple_of(PAGE))?;
        for part in self.loaded() {
            map(part, start, opened, caller, memory)?;
        }
        caller.close(opened)?;
        for (address, mut bytes) in self.written.iter().cloned() {
            for one in &self.relocations {
                let Some(place) =
                    one.at.checked_sub(address).filter(|place| *place + 8 <= bytes.len() as u64)
                else {
                    continue;
                };
                let value = match one.value {
                    Value::Place(value) => start.wrapping_add(value),
                    Value::Number(value) => value,
                    Value::FromBase(value) => value.wrapping_add_signed(distance),
                };
                bytes[place as usize..place as usize + 8].copy_from_slice(&value.to_le_bytes());
            }
            memory.write_all_at(&bytes, start + address).doing("writing the engine's data")?;
        }
        Ok(Functions { inject: start + self.inject })
    }
}

/// Maps a part at its place, with zeros behind the file's content.
fn map(part: &Part, start: u64, file: u64, caller: &mut Caller, memory: &File) -> Result<()> {
    let from = part.address & !(PAGE - 1);
    let of_file = part.address + part.file_bytes;
    let end = part.address + part.memory_bytes;
    let (read, write, execute) = (libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC);
    let protection = match part.flags {
        flags if flags & WRITABLE != 0 => read | write,
        flags if flags & EXECUTABLE != 0 => read | execute,
        _ => read,
    };
    let offset = part.offset & !(PAGE - 1);
    caller.map_file(start + from, of_file - from, protection, (file, offset))?;
    if part.flags & WRITABLE == 0 {
        return Ok(());
    }
    let page_end = of_file.next_multiple_of(PAGE);
    let zeros = vec![0; (page_end - of_file) as usize];
    memory.write_all_at(&zeros, start + of_file).doing("writing the engine's data")?;
    // The rest is memory that was just mapped.
    debug_assert!(end >= of_file);
    Ok(())
}

/// The library's symbols.
struct Symbols<'a> {
    /// The offsets of the library's own symbols.
    named: HashMap<&'a str, u64>,
    /// Name, value, and binding, by number.
    all: Vec<(&'a str, u64, Binding)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Binding {
    Own,
    /// Imported; null where no library has it.
    Weak,
    Imported,
}

impl<'a> Symbols<'a> {
    fn of(reader: &'a Reader<'_>, told: &HashMap<u64, u64>) -> Option<Symbols<'a>> {
        let (table, strings) = (*told.get(&SYMBOLS)?, *told.get(&STRINGS)?);
        let (first, names) = (reader.offset(table)?, reader.offset(strings)?);
        // The table has no length of its own: the next table ends it.
        let most = reader.parts.iter().find(|part| part.kind == LOADED)?.file_bytes;
        let others = BESIDE_SYMBOLS.iter().filter_map(|tag| reader.offset(*told.get(tag)?));
        let end = others.filter(|other| *other > first).min().unwrap_or(most);
        let mut all = Vec::new();
        for at in (first..end.saturating_sub(SYMBOL_BYTES - 1)).step_by(SYMBOL_BYTES as usize) {
            let name = reader.text(names + reader.number(at, 4)?)?;
            let (info, section) = (reader.number(at + 4, 1)?, reader.number(at + 6, 2)?);
            const WEAK: u64 = 2;
            let binding = match (section, info >> 4) {
                (0, WEAK) => Binding::Weak,
                (0, _) => Binding::Imported,
                _ => Binding::Own,
            };
            all.push((name, reader.number(at + 8, 8)?, binding));
        }
        let own = all.iter().filter(|(_, _, binding)| *binding == Binding::Own);
        let named = own.map(|(name, value, _)| (*name, *value)).collect();
        Some(Symbols { named, all })
    }

    /// A relocation's effect; `None` for a kind that the engine's library does not use.
    fn relocation(&self, at: u64, info: u64, addend: u64) -> Option<Relocation> {
        const ABSOLUTE: u32 = 1;
        const OF_FUNCTION: u32 = 7;
        const OF_DATA: u32 = 6;
        const RELATIVE: u32 = 8;
        const THREAD_LOCALS: u32 = 16;
        const AMONG_THREAD_LOCALS: u32 = 17;
        const FROM_BASE: u32 = 18;
        let (name, value, binding) = *self.all.get((info >> 32) as usize)?;
        let value = match info as u32 {
            RELATIVE => Value::Place(addend),
            ABSOLUTE | OF_DATA | OF_FUNCTION => match (binding, self.named.get(&*format!("{OWN}{name}"))) {
                (Binding::Own, _) => Value::Place(value.wrapping_add(addend)),
                (_, Some(own)) => Value::Place(*own),
                (Binding::Weak, None) => Value::Number(0),
                (Binding::Imported, None) => Value::Place(*self.named.get(&*format!("{OWN}missing"))?),
            },
            // The engine's own function adds both words to the base.
            THREAD_LOCALS => Value::FromBase(0),
            AMONG_THREAD_LOCALS => Value::Number(value.wrapping_add(addend)),
            FROM_BASE => Value::FromBase(value.wrapping_add(addend)),
            _ => return None,
        };
        Some(Relocation { at, value })
    }
}

fn le(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
