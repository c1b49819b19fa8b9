//! The archive form newc: per entry a header of hexadecimal fields, the name, the contents, padded to four bytes.

use super::entry::InitramfsEntry;
use crate::error::Error;

const DIRECTORY: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

pub(super) fn write<'a>(
    entries: impl Iterator<Item = (&'a str, &'a InitramfsEntry)>,
) -> Result<Vec<u8>, Error> {
    let mut archive = Vec::new();
    for (number, (name, entry)) in entries.enumerate() {
        let inode = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let (mode, device, contents): (u32, (u32, u32), &[u8]) = match entry {
            InitramfsEntry::Directory => (DIRECTORY, (0, 0), &[]),
            InitramfsEntry::File { mode, contents } => (FILE | mode & 0o7777, (0, 0), contents),
            InitramfsEntry::Symlink { target } => (SYMLINK, (0, 0), target.as_bytes()),
            InitramfsEntry::Device { major, minor } => (CHARACTER_DEVICE, (*major, *minor), &[]),
        };
        let length = u32::try_from(contents.len())
            .map_err(|_| Error::GuestPath { path: name.into(), why: "it has 4 GiB or more" })?;
        header(&mut archive, inode, mode, length, device, name);
        archive.extend_from_slice(contents);
        pad(&mut archive);
    }
    header(&mut archive, 0, 0, 0, (0, 0), "TRAILER!!!");
    Ok(archive)
}

fn header(archive: &mut Vec<u8>, inode: u32, mode: u32, length: u32, device: (u32, u32), name: &str) {
    let links = if mode == DIRECTORY { 2 } else { 1 };
    let name_bytes = u32::try_from(name.len() + 1).unwrap_or(u32::MAX);
    let fields = [inode, mode, 0, 0, links, 0, length, 0, 0, device.0, device.1, name_bytes, 0];
    archive.extend_from_slice(b"070701");
    for field in fields {
        archive.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    archive.extend_from_slice(name.as_bytes());
    archive.push(0);
    pad(archive);
}

fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_written_to_the_byte() {
        let file = InitramfsEntry::File { mode: 0o755, contents: b"hello".to_vec() };
        let device = InitramfsEntry::Device { major: 5, minor: 1 };
        let archive =
            write([("d", &InitramfsEntry::Directory), ("d/f", &file), ("null", &device)].into_iter())
                .unwrap();
        let expected = concat!(
            "070701",
            "00000001",
            "000041ed",
            "00000000",
            "00000000",
            "00000002",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000002",
            "00000000",
            "d\0",
            "070701",
            "00000002",
            "000081ed",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000005",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000004",
            "00000000",
            "d/f\0\0\0",
            "hello\0\0\0",
            "070701",
            "00000003",
            "00002180",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000005",
            "00000001",
            "00000005",
            "00000000",
            "null\0\0",
            "070701",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000001",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "00000000",
            "0000000b",
            "00000000",
            "TRAILER!!!\0\0\0\0",
        );
        assert_eq!(String::from_utf8(archive).unwrap(), expected);
    }
}
