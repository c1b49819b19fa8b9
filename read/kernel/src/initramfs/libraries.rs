//! The files that a dynamically linked program needs: its loader and libraries, and theirs.

use crate::error::Error;
use crate::image::elf::E_MACHINE;
use crate::scan::u16_at;
use lineup_model::abi::Machine;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, Object};
use std::collections::HashSet;

/// A file that a program needs, at the path where it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Needed {
    /// Its absolute path.
    pub path: String,
    /// Its bytes.
    pub contents: Vec<u8>,
}

/// The loader and all libraries of an ELF program or library, found where the loader looks for them. `read` gives the
/// bytes of a file of the host, or nothing when it does not exist. A file that is no ELF file needs nothing.
///
/// # Errors
///
/// When the program is for another machine, is damaged, or a library is missing.
pub fn needed_by(
    path: &str,
    contents: &[u8],
    guest: Machine,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Result<Vec<Needed>, Error> {
    let mut found: Vec<Needed> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let mut wanted = links(path, contents, guest)?.wanted(path);
    while let Some(want) = wanted.pop() {
        if !seen.insert(want.name.clone()) {
            continue;
        }
        let place = want.places(guest).find_map(|place| Some((read(&place)?, place)));
        let (contents, place) = place.ok_or_else(|| Error::MissingLibrary {
            library: want.name.clone(),
            needed_by: want.needed_by.clone(),
        })?;
        wanted.extend(links(&place, &contents, guest)?.wanted(&place));
        found.push(Needed { path: place, contents });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// A file to be found.
struct Want {
    name: String,
    needed_by: String,
    folders: Vec<String>,
}

impl Want {
    /// The paths where it may be: a name with a slash is a path.
    fn places(&self, guest: Machine) -> impl Iterator<Item = String> {
        let triplet = guest.description().triplet;
        let usual = [
            "/lib/TRIPLET",
            "/usr/lib/TRIPLET",
            "/lib64",
            "/usr/lib64",
            "/lib",
            "/usr/lib",
            "/usr/local/lib",
        ];
        let usual = usual.map(|folder| folder.replace("TRIPLET", triplet));
        let folders = self.folders.iter().cloned().chain(usual);
        let name = self.name.clone();
        match self.name.starts_with('/') {
            true => vec![name],
            false => folders.map(|folder| format!("{folder}/{name}")).collect(),
        }
        .into_iter()
    }
}

/// The dependencies that a file names.
#[derive(Default)]
struct Links {
    loader: Option<String>,
    libraries: Vec<String>,
    run_paths: Vec<String>,
}

impl Links {
    fn wanted(self, path: &str) -> Vec<Want> {
        let origin = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folders: Vec<String> = self
            .run_paths
            .iter()
            .flat_map(|paths| paths.split(':'))
            .map(|folder| folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin))
            .filter(|folder| folder.starts_with('/') && !folder.contains("/../"))
            .collect();
        let names = self.loader.into_iter().chain(self.libraries);
        names.map(|name| Want { name, needed_by: path.into(), folders: folders.clone() }).collect()
    }
}

fn links(path: &str, contents: &[u8], guest: Machine) -> Result<Links, Error> {
    if !contents.starts_with(b"\x7fELF") {
        return Ok(Links::default());
    }
    let damaged = |error: object::Error| Error::Elf { what: path.into(), why: error.to_string() };
    let architecture = object::File::parse(contents).map_err(damaged)?.architecture();
    let fits = u16_at(contents, E_MACHINE).and_then(Machine::of_elf) == Some(guest);
    if !fits {
        let machine = format!("{architecture:?}");
        return Err(Error::ForeignProgram { program: path.into(), machine, guest });
    }
    match contents.get(4) {
        Some(2) => read_links::<FileHeader64<Endianness>>(contents).map_err(damaged),
        _ => read_links::<FileHeader32<Endianness>>(contents).map_err(damaged),
    }
}

fn read_links<Elf: FileHeader<Endian = Endianness>>(contents: &[u8]) -> object::Result<Links> {
    let header = Elf::parse(contents)?;
    let endian = header.endian()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut links = Links::default();
    for segment in header.program_headers(endian, contents)? {
        if let Some(loader) = segment.interpreter(endian, contents)? {
            links.loader = Some(text(loader));
        }
    }
    let sections = header.sections(endian, contents)?;
    let Some((entries, strings)) = sections.dynamic(endian, contents)? else { return Ok(links) };
    let strings = sections.strings(endian, contents, strings)?;
    for entry in entries {
        match entry.tag(endian) {
            DT_NEEDED => links.libraries.push(text(entry.string(endian, strings)?)),
            DT_RPATH | DT_RUNPATH => links.run_paths.push(text(entry.string(endian, strings)?)),
            _ => {}
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    /// A library for x86-64: a header, its strings, its dynamic entries, three section headers.
    fn elf(needed: &[&str], run_path: Option<&str>) -> Vec<u8> {
        const STRTAB: u32 = 3;
        const DYNAMIC: u32 = 6;
        let mut strings = vec![0];
        let mut entries: Vec<u64> = Vec::new();
        let tagged = needed.iter().map(|name| (1, *name)).chain(run_path.map(|path| (29, path)));
        for (tag, text) in tagged {
            entries.extend([tag, strings.len() as u64]);
            strings.extend(text.bytes().chain([0]));
        }
        entries.extend([0, 0]);
        strings.resize(strings.len().next_multiple_of(8), 0);
        let dynamic_at = 64 + strings.len() as u64;
        let sections_at = dynamic_at + 8 * entries.len() as u64;
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend([3, 0, 62, 0, 1, 0, 0, 0]);
        bytes.extend([0, 0, sections_at].into_iter().flat_map(u64::to_le_bytes));
        bytes.extend([0u16, 0, 64, 56, 0, 64, 3, 1].into_iter().flat_map(u16::to_le_bytes));
        bytes.resize(64, 0);
        bytes.extend(&strings);
        bytes.extend(entries.iter().copied().flat_map(u64::to_le_bytes));
        let mut section = |kind: u32, offset: u64, size: u64, link: u32, entry_bytes: u64| {
            bytes.extend([0, kind].into_iter().flat_map(u32::to_le_bytes));
            bytes.extend([0, 0, offset, size].into_iter().flat_map(u64::to_le_bytes));
            bytes.extend([link, 0].into_iter().flat_map(u32::to_le_bytes));
            bytes.extend([8, entry_bytes].into_iter().flat_map(u64::to_le_bytes));
        };
        section(0, 0, 0, 0, 0);
        section(STRTAB, 64, strings.len() as u64, 0, 0);
        section(DYNAMIC, dynamic_at, sections_at - dynamic_at, 1, 16);
        bytes
    }

    fn read(path: &str) -> Option<Vec<u8>> {
        match path {
            "/lib/x86_64-linux-gnu/libc.so.6" => Some(elf(&[], None)),
            "/opt/app/../lib/libnear.so" | "/opt/app/libs/libnear.so" => Some(elf(&["libc.so.6"], None)),
            _ => None,
        }
    }

    #[test]
    fn libraries_of_libraries_are_found_once_where_the_loader_looks() {
        let program = elf(&["libnear.so", "libc.so.6"], Some("/nowhere:$ORIGIN/libs"));
        let needed = needed_by("/opt/app/program", &program, Machine::X86_64, &mut read).unwrap();
        let paths: Vec<&str> = needed.iter().map(|needed| needed.path.as_str()).collect();
        assert_eq!(paths, ["/lib/x86_64-linux-gnu/libc.so.6", "/opt/app/libs/libnear.so"]);
    }

    #[test]
    fn a_script_needs_nothing() {
        assert_eq!(needed_by("/x", b"#!/bin/sh\n", Machine::Arm, &mut read).unwrap(), []);
    }

    #[test]
    fn what_is_missing_or_foreign_is_said() {
        let program = elf(&["libaway.so.1"], None);
        let said = |guest| needed_by("/bin/p", &program, guest, &mut read).unwrap_err().to_string();
        assert!(said(Machine::X86_64).contains("/bin/p needs libaway.so.1"));
        assert!(said(Machine::AArch64).contains("the guest is aarch64"));
        let cut = needed_by("/bin/p", &program[..70], Machine::X86_64, &mut read).unwrap_err();
        assert!(cut.to_string().contains("/bin/p is damaged"), "{cut}");
    }
}
