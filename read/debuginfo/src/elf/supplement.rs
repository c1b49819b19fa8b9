//! Links to the supplementary file, to which dwz moves the debug information that several files share.
//!
//! GNU's form is `.gnu_debugaltlink`: a name, and the build id of the file. DWARF 5 has `.debug_sup` (section 7.3.6) in
//! both files: the one that is shared says so, and both hold the same checksum.

use object::{Object, ObjectSection};
use std::borrow::Cow;

/// The contents of `.debug_sup`.
struct DebugSup<'s> {
    is_supplement: bool,
    name: &'s [u8],
    checksum: &'s [u8],
}

/// The name and id of the supplementary file of a file.
pub(super) fn link<'data>(elf: &impl Object<'data>) -> Option<(String, Vec<u8>)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Ok(Some((name, id))) = elf.gnu_debugaltlink() {
        return Some((text(name), id.to_vec()));
    }
    let section = section(elf)?;
    let sup = parse(&section).filter(|sup| !sup.is_supplement)?;
    Some((text(sup.name), sup.checksum.to_vec()))
}

/// The id of a supplementary file of DWARF 5.
pub(super) fn own_id<'data>(elf: &impl Object<'data>) -> Option<Vec<u8>> {
    let section = section(elf)?;
    parse(&section).filter(|sup| sup.is_supplement).map(|sup| sup.checksum.to_vec())
}

fn section<'data>(elf: &impl Object<'data>) -> Option<Cow<'data, [u8]>> {
    elf.section_by_name(".debug_sup")?.uncompressed_data().ok()
}

fn parse(bytes: &[u8]) -> Option<DebugSup<'_>> {
    let (version, rest) = bytes.split_first_chunk::<2>()?;
    let (is_supplement, rest) = rest.split_first()?;
    let name_end = rest.iter().position(|byte| *byte == 0)?;
    let (name, rest) = (rest.get(..name_end)?, rest.get(name_end + 1..)?);
    // LEB128; no checksum has 128 bytes.
    let (len, rest) = rest.split_first().filter(|(len, _)| **len < 0x80)?;
    let checksum = rest.get(..usize::from(*len))?;
    (u16::from_le_bytes(*version) == 5).then_some(DebugSup {
        is_supplement: *is_supplement != 0,
        name,
        checksum,
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_link_has_a_name_and_a_checksum() {
        let bytes = [5, 0, 0, b'a', b'.', b'd', 0, 3, 7, 8, 9, 0];
        let sup = parse(&bytes).unwrap();
        assert!(!sup.is_supplement);
        assert_eq!((sup.name, sup.checksum), (&b"a.d"[..], &[7, 8, 9][..]));
        assert!(parse(&[5, 0, 1, 0, 1, 9]).unwrap().is_supplement);
        for damaged in [&bytes[..2], &bytes[..6], &bytes[..9], &[4, 0, 0, 0, 0]] {
            assert!(parse(damaged).is_none(), "{damaged:?}");
        }
    }
}
