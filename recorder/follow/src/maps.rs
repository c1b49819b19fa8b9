//! Parses `/proc/self/maps`: the places of files and stacks of the *guest*.
//!
//! It lists the emulator's own files too. The emulator maps guest text without execute permission, so a file without
//! any executable mapping is the guest's.

use std::ops::Range;

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping<'a> {
    /// Its first address.
    pub start: u64,
    /// Address after its end.
    pub end: u64,
    /// Its permissions, as the kernel writes them.
    pub permissions: &'a str,
    /// The offset of the file that it maps.
    pub offset: u64,
    /// The file; empty where it maps none.
    pub path: &'a str,
}

/// Neighbouring mappings of one guest file, by its first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GuestFile {
    /// The file.
    pub path: String,
    /// Host address of the first mapping, and the offset of the file that it maps.
    pub start: u64,
    /// The offset of the file that it maps.
    pub offset: u64,
}

/// The lines that can be read.
pub fn mappings(text: &str) -> impl Iterator<Item = Mapping<'_>> {
    text.lines().filter_map(mapping)
}

fn mapping(line: &str) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let path = fields.nth(2).unwrap_or("").trim_start();
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        permissions,
        offset,
        path: path.strip_suffix(" (deleted)").unwrap_or(path),
    })
}

/// The greatest distance between segments of a file: the largest page that linkers for Arm align to, and some.
const MAX_GAP_BYTES: u64 = 0x2_0000;

/// Files that the guest mapped from their beginning, in order of address.
pub fn guest_files(text: &str) -> Vec<GuestFile> {
    files(text, |is_executable| !is_executable)
}

/// Files that a program mapped from their beginning and executes, in order of address: where it runs natively.
pub fn native_files(text: &str) -> Vec<GuestFile> {
    files(text, |is_executable| is_executable)
}

/// Files that were mapped from their beginning, in order of address; `is_wanted` gets whether any of their mappings can
/// be executed.
fn files(text: &str, is_wanted: impl Fn(bool) -> bool) -> Vec<GuestFile> {
    let mut files = Vec::new();
    let mut open: Option<(GuestFile, bool)> = None;
    let mut last_end = 0;
    for mapping in mappings(text).filter(|mapping| mapping.path.starts_with('/')) {
        let executable = mapping.permissions.contains('x');
        let is_near = mapping.start.saturating_sub(last_end) <= MAX_GAP_BYTES;
        last_end = mapping.end;
        match &mut open {
            // Mapped from its beginning again: far away a second copy (the emulator's next to the guest's), near by the
            // data of a file so small that they share its first page with the code.
            Some((file, any)) if file.path == mapping.path && (mapping.offset > 0 || is_near) => {
                *any |= executable
            }
            _ => {
                files.extend(open.take().filter(|(_, any)| is_wanted(*any)).map(|(file, _)| file));
                let file =
                    GuestFile { path: mapping.path.to_owned(), start: mapping.start, offset: mapping.offset };
                open = (mapping.offset == 0).then_some((file, executable));
            }
        }
    }
    files.extend(open.filter(|(_, any)| is_wanted(*any)).map(|(file, _)| file));
    files
}

/// True when eight bytes at a host address can be read.
pub fn is_readable(address: u64) -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let holds = |mapping: &Mapping<'_>| mapping.start <= address && address.saturating_add(8) <= mapping.end;
    mappings(&text).any(|mapping| holds(&mapping) && mapping.permissions.starts_with('r'))
}

/// The mapping that holds a host address.
pub fn mapping_around(text: &str, address: u64) -> Option<(u64, u64)> {
    mappings(text).find(|mapping| (mapping.start..mapping.end).contains(&address)).map(|m| (m.start, m.end))
}

/// Beginnings and ends of all mappings, in order of address.
pub fn ranges(text: &str) -> Vec<Range<u64>> {
    mappings(text).map(|mapping| mapping.start..mapping.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
00400000-00401000 r--p 00000000 08:01 11 /home/u/my prog
00401000-00402000 r--p 00001000 08:01 11 /home/u/my prog
00403000-00404000 rw-p 00002000 08:01 11 /home/u/my prog
00404000-00405000 rw-p 00000000 00:00 0
7f0000000000-7f0000020000 r--p 00000000 08:01 22 /lib/libc.so.6
7f0000020000-7f0000100000 r--p 00020000 08:01 22 /lib/libc.so.6
7f1000000000-7f1000020000 r--p 00000000 08:01 22 /lib/libc.so.6
7f1000020000-7f1000100000 r-xp 00020000 08:01 22 /lib/libc.so.6
7f2000000000-7f2000001000 r--p 00000000 08:01 33 /tmp/gone.so (deleted)
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0 [stack]
nonsense
";

    #[test]
    fn the_guests_files_are_told_from_the_emulators() {
        let files = guest_files(TEXT);
        let paths: Vec<(&str, u64)> = files.iter().map(|file| (file.path.as_str(), file.start)).collect();
        assert_eq!(
            paths,
            [
                ("/home/u/my prog", 0x40_0000),
                ("/lib/libc.so.6", 0x7f00_0000_0000),
                ("/tmp/gone.so", 0x7f20_0000_0000)
            ]
        );
    }

    #[test]
    fn data_on_the_first_page_of_a_small_file_are_no_second_copy() {
        let text = "\
40000000-40001000 r--p 00000000 08:01 11 /small
40001000-40002000 r--p 00000000 08:01 11 /small
40002000-40003000 rw-p 00001000 08:01 11 /small
50000000-50001000 r--p 00000000 08:01 11 /small
";
        let starts: Vec<u64> = guest_files(text).iter().map(|file| file.start).collect();
        assert_eq!(starts, [0x4000_0000, 0x5000_0000]);
    }

    #[test]
    fn an_address_is_found_in_its_mapping() {
        assert_eq!(mapping_around(TEXT, 0x7ffc_0000_1234), Some((0x7ffc_0000_0000, 0x7ffc_0002_1000)));
        assert_eq!(mapping_around(TEXT, 5), None);
    }
}
