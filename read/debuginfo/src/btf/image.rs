//! The parts of a BTF image: header, sections, strings and records of types.

use super::words::{LAYOUT_HEADER_BYTES, Words};
use crate::Error;

const HEADER_BYTES: usize = 24;

/// The average size of a type's record in bytes, in kernels, rounded down: used to reserve room.
pub(super) const RECORD_BYTES: usize = 24;
/// The fixed part of a type's record.
pub(super) struct Record {
    pub(super) id: u32,
    pub(super) name: u32,
    pub(super) kind: u32,
    pub(super) has_flag: bool,
    pub(super) count: usize,
    /// Size in bytes or another type's id.
    pub(super) size_or_type: u32,
}

impl Record {
    pub(super) fn next(id: u32, words: &mut Words<'_>) -> Result<Record, Error> {
        let (name, info, size_or_type) = (words.next()?, words.next()?, words.next()?);
        Ok(Record {
            id,
            name,
            kind: info >> 24 & 0x7f,
            has_flag: info >> 31 == 1,
            count: (info & 0x00ff_ffff) as usize,
            size_or_type,
        })
    }

    /// The number of bytes after the fixed part. For a kind unknown here, the image gives the sizes: of the part that
    /// occurs once, and of each element.
    pub(super) fn rest_bytes(&self, shapes: &[u8]) -> Result<usize, Error> {
        let (once, each) = match self.kind {
            1 | 14 | 17 => (4, 0),
            3 => (12, 0),
            4 | 5 | 15 | 19 => (0, 12),
            6 | 13 => (0, 8),
            2 | 7..=12 | 16 | 18 => (0, 0),
            kind => {
                let at = kind as usize * 4;
                let (Some(&once), Some(&each)) = (shapes.get(at), shapes.get(at + 1)) else {
                    let why = format!(
                        "type {} is of kind {kind}, which this version does not know and the image does not describe",
                        self.id
                    );
                    return Err(Error::UnsupportedBtf { why });
                };
                (usize::from(once), usize::from(each))
            }
        };
        Ok(self.count.saturating_mul(each).saturating_add(once))
    }
}

/// The bytes of the string at an offset in sections that run on; `None` outside, and where its end is missing.
pub(super) fn string_at<'a>(sections: impl IntoIterator<Item = &'a [u8]>, offset: u32) -> Option<&'a [u8]> {
    let mut at = offset as usize;
    for section in sections {
        match section.get(at..) {
            Some(rest) if !rest.is_empty() => return rest.get(..memchr::memchr(0, rest)?),
            _ => at = at.checked_sub(section.len())?,
        }
    }
    None
}

/// The parts of an image.
pub(super) struct Sections<'a> {
    pub(super) types: &'a [u8],
    pub(super) strings: &'a [u8],
    /// Shapes of all kinds: four bytes each, size once, size per element, flags. Empty where the image gives none.
    pub(super) shapes: &'a [u8],
}

pub(super) fn sections(bytes: &[u8]) -> Result<Sections<'_>, Error> {
    let header = header(bytes)?;
    let section = |(offset, len): (u32, u32)| {
        let start = header.len.checked_add(offset as usize);
        let bytes = start.and_then(|start| bytes.get(start..start.checked_add(len as usize)?));
        bytes.ok_or_else(|| Error::damaged("BTF", "a section lies outside the image"))
    };
    Ok(Sections {
        types: section(header.types)?,
        strings: section(header.strings)?,
        shapes: header.shapes.map_or(Ok(&[][..]), section)?,
    })
}

struct Header {
    len: usize,
    types: (u32, u32),
    strings: (u32, u32),
    shapes: Option<(u32, u32)>,
}

fn header(bytes: &[u8]) -> Result<Header, Error> {
    match bytes.get(..2) {
        Some([0x9f, 0xeb]) => {}
        _ => return Err(Error::NotBtf),
    }
    let version = bytes.get(2).copied().unwrap_or(0);
    if version != 1 {
        return Err(Error::UnsupportedBtf { why: format!("version {version}; version 1 is known") });
    }
    let mut words = Words { bytes, at: 4 };
    let len = words.next()? as usize;
    if len < HEADER_BYTES || len > bytes.len() {
        return Err(Error::damaged("BTF", "the header's length is impossible"));
    }
    let types = (words.next()?, words.next()?);
    let strings = (words.next()?, words.next()?);
    let shapes = if len >= LAYOUT_HEADER_BYTES { Some((words.next()?, words.next()?)) } else { None };
    Ok(Header { len, types, strings, shapes })
}
