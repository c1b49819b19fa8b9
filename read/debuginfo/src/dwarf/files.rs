//! File names of a unit's line table.

use super::{Dwarf, Slice, Unit};
use foldhash::quality::FixedState;
use gimli::{AttributeValue, LineProgramHeader};
use std::hash::BuildHasher;

/// A number for each file of a unit that stands for its path in all units.
pub(crate) type FileHashes = Vec<u64>;

/// The files that entries of a unit refer to by number.
pub(crate) struct Files<'u, 'a> {
    dwarf: &'u Dwarf<'a>,
    unit: &'u Unit<'a>,
}

impl<'u, 'a> Files<'u, 'a> {
    /// `dwarf` holds the strings of the unit's line table: see [`super::View::file_names_of`].
    pub(crate) fn new(dwarf: &'u Dwarf<'a>, unit: &'u Unit<'a>) -> Self {
        Files { dwarf, unit }
    }

    /// A number for each file that stands for its path in all units.
    pub(crate) fn hashes(&self) -> FileHashes {
        let count = self.header().map_or(0, |header| header.file_names().len() as u64 + 1);
        let mut path = Vec::new();
        let mut hash = |number| {
            self.join(number, &mut path);
            FixedState::default().hash_one(&path)
        };
        (0..count).map(&mut hash).collect()
    }

    fn header(&self) -> Option<&'u LineProgramHeader<Slice<'a>>> {
        self.unit.line_program.as_ref().map(|program| program.header())
    }

    /// The pieces of a file's path: compilation directory, directory, name.
    fn parts(&self, number: u64) -> Option<[&'a [u8]; 3]> {
        let header = self.header()?;
        if number == 0 && header.version() < 5 {
            return None;
        }
        let file = header.file(number)?;
        let string = |value: AttributeValue<Slice<'a>>| {
            self.dwarf.attr_string(self.unit, value).map(|text| text.slice()).unwrap_or_default()
        };
        // A folder alone is no file: a name that cannot be read is not known.
        let name = Some(string(file.path_name())).filter(|name| !name.is_empty())?;
        let mut directory: &'a [u8] = &[];
        // Directory 0 is the compilation directory, which version 4 leaves out of the table.
        if file.directory_index() != 0 || header.version() >= 5 {
            directory = file.directory(header).map(string).unwrap_or_default();
        }
        let compiled_in = self.unit.comp_dir.map(|dir| dir.slice()).unwrap_or_default();
        Some(match (name.first(), directory.first()) {
            (Some(b'/'), _) => [&[], &[], name],
            (_, Some(b'/')) => [&[], directory, name],
            _ => [compiled_in, directory, name],
        })
    }

    /// Puts a file's path into `path`, joined with the compilation directory when relative.
    fn join(&self, number: u64, path: &mut Vec<u8>) {
        path.clear();
        let Some(parts) = self.parts(number) else { return };
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if !path.is_empty() && !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(part);
        }
        if path.windows(2).any(|pair| pair == b"/.") {
            *path = without_dots(path);
        }
    }

    /// The path of a file, joined with the compilation directory when relative.
    pub(crate) fn path(&self, number: u64) -> Option<String> {
        let mut path = Vec::new();
        self.join(number, &mut path);
        (!path.is_empty()).then(|| super::text(&path))
    }
}

/// A path without `.` and `..` components, resolved by text alone: units reach one header by different paths.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"." => {}
            b".." if kept.last().is_some_and(|last| !matches!(*last, b"" | b"..")) => {
                kept.pop();
            }
            _ => kept.push(part),
        }
    }
    kept.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::without_dots;

    #[test]
    fn ways_to_one_header_become_one_path() {
        for (path, expected) in [
            ("/a/b/../c/x.h", "/a/c/x.h"),
            ("/a/./x.h", "/a/x.h"),
            ("../x.h", "../x.h"),
            ("/../x.h", "/../x.h"),
            ("a/../../x.h", "../x.h"),
        ] {
            assert_eq!(String::from_utf8(without_dots(path.as_bytes())).unwrap(), expected);
        }
    }
}
