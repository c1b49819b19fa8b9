//! The mappings that exist before the kernel reports any: the kernel itself, its modules, and a running process's
//! mappings.

use lineup_samples::synthetic_records::{KERNEL_PROCESS, Maker, MappingSpec, SyntheticRecord};
use rustix::process::Pid;
use std::fs;
use std::path::Path;

/// Protection as `mmap` takes it.
const READ: u32 = 1;
const WRITE: u32 = 2;
const EXECUTE: u32 = 4;
const MODULES: &str = "/sys/module";

/// The kernel and its modules; nothing when it hides where it lies.
pub(super) fn kernel(maker: Maker) -> Vec<SyntheticRecord> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let build_id = fs::read("/sys/kernel/notes").ok().and_then(|notes| build_id_in(&notes));
    let Some((start, end)) = text_of(&symbols) else { return Vec::new() };
    let own = MappingSpec {
        process: KERNEL_PROCESS,
        start,
        size_bytes: end - start,
        // Perf takes this for the address of the symbol by which it names the mapping.
        file_offset: start,
        protection: READ | EXECUTE,
        path: "[kernel.kallsyms]_text",
        build_id: build_id.as_deref(),
    };
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let modules = modules.lines().filter_map(module);
    let modules = modules.map(|module| {
        let notes = Path::new(MODULES).join(module.name).join("notes/.note.gnu.build-id");
        let build_id = fs::read(notes).ok().and_then(|notes| build_id_in(&notes));
        maker.mapping(&MappingSpec {
            start: module.start,
            size_bytes: module.size_bytes,
            file_offset: 0,
            path: &format!("[{}]", module.name),
            build_id: build_id.as_deref(),
            ..own.clone()
        })
    });
    [maker.mapping(&own)].into_iter().chain(modules).collect()
}

/// From where to where the kernel's code lies, by its symbols.
fn text_of(symbols: &str) -> Option<(u64, u64)> {
    let address_of = |wanted: &str| {
        let line = symbols.lines().find(|line| line.ends_with(wanted))?;
        let (address, rest) = line.split_once(' ')?;
        // A kind of one letter, and the name.
        rest.get(2..).filter(|name| *name == wanted)?;
        u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)
    };
    let (start, end) = (address_of("_text")?, address_of("_etext")?);
    (start < end).then_some((start, end))
}

struct Module<'a> {
    name: &'a str,
    start: u64,
    size_bytes: u64,
}

/// A line of `/proc/modules`: name, size, uses, users, state, address.
fn module(line: &str) -> Option<Module<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let start = u64::from_str_radix(words.get(5)?.strip_prefix("0x")?, 16).ok().filter(|start| *start > 0)?;
    Some(Module { name: words.first()?, start, size_bytes: words.get(1)?.parse().ok()? })
}

/// The build id among notes of a file: length of the name, of the id, kind 3, the name, the id.
fn build_id_in(notes: &[u8]) -> Option<Vec<u8>> {
    let mut rest = notes;
    loop {
        let word = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let (name, size, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let id_at = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let id = rest.get(id_at..id_at.checked_add(size)?)?;
        if kind == 3 && rest.get(12..12 + name)? == b"GNU\0" {
            return Some(id.to_vec());
        }
        rest = rest.get(id_at.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
}

/// The names of a process's threads, and its mappings. Data mappings are included where samples have addresses.
pub(super) fn process(process: Pid, threads: &[Pid], maker: Maker, with_data: bool) -> Vec<SyntheticRecord> {
    let own = process.as_raw_nonzero().get().unsigned_abs();
    let mut all = Vec::new();
    for thread in threads {
        let number = thread.as_raw_nonzero().get().unsigned_abs();
        // It may have ended since; then it has no name.
        let name = fs::read_to_string(format!("/proc/{own}/task/{number}/comm")).unwrap_or_default();
        all.push(maker.name(own, number, name.trim_end()));
    }
    let maps = fs::read_to_string(format!("/proc/{own}/maps")).unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| mapping(line, own));
    let mapped = mapped.filter(|one| with_data || one.protection & EXECUTE != 0);
    all.extend(mapped.map(|one| maker.mapping(&one)));
    all
}

/// A line of `/proc/PID/maps`: addresses, rights, offset, device, inode, path.
fn mapping(line: &str, process: u32) -> Option<MappingSpec<'_>> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (rights, offset) = (words.next()?, words.next()?);
    let path = words.nth(2).map_or("", str::trim_start);
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    let right = |letter: char, bit: u32| if rights.contains(letter) { bit } else { 0 };
    Some(MappingSpec {
        process,
        start,
        size_bytes: end.checked_sub(start)?,
        file_offset: number(offset)?,
        protection: right('r', READ) | right('w', WRITE) | right('x', EXECUTE),
        path: if path.is_empty() { "//anon" } else { path },
        build_id: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernels_lists_are_read() {
        let symbols = "ffffffff81000000 T _text\nffffffff81000100 T not_text\nffffffff82000000 T _etext\n";
        assert_eq!(text_of(symbols), Some((0xffff_ffff_8100_0000, 0xffff_ffff_8200_0000)));
        assert_eq!(text_of("0000000000000000 T _text\n0000000000000000 T _etext\n"), None, "hidden");
        let one = module("ext4 1036288 2 jbd2,mbcache, Live 0xffffffffc0a00000").unwrap();
        assert_eq!((one.name, one.start, one.size_bytes), ("ext4", 0xffff_ffff_c0a0_0000, 1_036_288));
        assert!(module("ext4 1036288 2 - Live 0x0000000000000000").is_none(), "hidden");
    }

    #[test]
    fn mappings_of_a_process_are_read() {
        let line = "7f0000001000-7f0000003000 r-xp 00001000 fe:01 1234                       /usr/lib/a b.so";
        let one = mapping(line, 7).unwrap();
        assert_eq!((one.start, one.size_bytes, one.file_offset), (0x7f00_0000_1000, 0x2000, 0x1000));
        assert_eq!((one.protection, one.path), (READ | EXECUTE, "/usr/lib/a b.so"));
        assert_eq!(mapping("7f0000001000-7f0000003000 rw-p 00000000 00:00 0 ", 7).unwrap().path, "//anon");
        assert!(mapping("no mapping", 7).is_none());
    }

    #[test]
    fn the_build_id_among_notes_is_found() {
        let mut notes = Vec::new();
        for (kind, name, text) in [(1u32, &b"Linux\0"[..], &[1u8, 2, 3][..]), (3, b"GNU\0", &[7; 20])] {
            [name.len() as u32, text.len() as u32, kind]
                .iter()
                .for_each(|word| notes.extend_from_slice(&word.to_ne_bytes()));
            for part in [name, text] {
                notes.extend_from_slice(part);
                notes.resize(notes.len().next_multiple_of(4), 0);
            }
        }
        assert_eq!(build_id_in(&notes), Some(vec![7; 20]));
        assert_eq!(build_id_in(&notes[..notes.len() - 1]), None, "cut off");
        assert_eq!(build_id_in(&[0xff; 64]), None);
    }
}
