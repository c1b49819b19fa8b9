//! Objects that a link takes out of archives, as files of their own: a linker puts those of an archive where it finds
//! the first use of each, and so no order of words moves them.

use crate::error::{Doing, Result};
use crate::recorder::on_path;
use crate::source::link::arguments::with_output;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The systems' folders of archives that are not part of a program.
const OF_SYSTEMS: [&str; 3] = ["/usr", "/lib", "/lib64"];

/// A link's arguments, with the objects that it takes from the program's own archives named as files in `folder`,
/// before the archives. The arguments are unchanged where it takes none, or where the linker then makes no program.
///
/// # Errors
/// When the folder cannot be written.
pub(crate) fn opened(linker: &OsStr, words: &[OsString], folder: &Path) -> Result<Vec<OsString>> {
    fs::create_dir(folder).doing_with(|| format!("cannot make {}", folder.display()))?;
    let map = folder.join("map");
    let probe = folder.join("probe");
    let mut asked = with_output(words, &probe);
    asked.push(format!("-Map={}", map.display()).into());
    let Some(map) = is_content(linker, &asked).then(|| fs::read(&map).ok()).flatten() else {
        return Ok(words.to_vec());
    };
    let taken = taken(&String::from_utf8_lossy(&map));
    let objects = taken.into_iter().filter(|(archive, _)| is_own(archive)).enumerate();
    let objects =
        objects.flat_map(|(number, (archive, members))| extracted(&archive, &members, folder, number));
    let objects: Vec<OsString> = objects.map(PathBuf::into_os_string).collect();
    let named = with_objects(words, objects);
    let is_program = named.len() > words.len() && is_content(linker, &with_output(&named, &probe));
    Ok(if is_program { named } else { words.to_vec() })
}

/// True when a linker accepts these words. Its messages appeared before.
fn is_content(linker: &OsStr, words: &[OsString]) -> bool {
    let status = Command::new(linker).args(words).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// The members of archives that a map names, as all linkers write them: `ARCHIVE(MEMBER)`.
fn taken(map: &str) -> BTreeMap<PathBuf, BTreeSet<String>> {
    let mut taken: BTreeMap<PathBuf, BTreeSet<String>> = BTreeMap::new();
    for word in map.split_whitespace() {
        let Some((archive, rest)) = word.split_once('(') else { continue };
        let Some((member, _)) = rest.split_once(')') else { continue };
        let is_archive = [".a", ".rlib"].iter().any(|ending| archive.ends_with(ending));
        if is_archive && member.ends_with(".o") {
            taken.entry(archive.into()).or_default().insert(member.into());
        }
    }
    taken
}

/// True when an archive is the program's own, and not a library of the system.
fn is_own(archive: &Path) -> bool {
    archive.canonicalize().is_ok_and(|path| !OF_SYSTEMS.iter().any(|folder| path.starts_with(folder)))
}

/// Extracts members of an archive as files. Members whose name occurs twice stay in it.
fn extracted(archive: &Path, members: &BTreeSet<String>, folder: &Path, number: usize) -> Vec<PathBuf> {
    let Some(ar) = on_path(Path::new("ar")) else { return Vec::new() };
    let print = |word: &str, member: &[&str]| {
        let output = Command::new(&ar).arg(word).arg(archive).args(member).output().ok()?;
        output.status.success().then_some(output.stdout)
    };
    let Some(listed) = print("t", &[]) else { return Vec::new() };
    let listed = String::from_utf8_lossy(&listed);
    let is_one = |member: &&String| listed.lines().filter(|name| name == member).count() == 1;
    let written = members.iter().filter(is_one).enumerate().filter_map(|(place, member)| {
        let path = folder.join(format!("{number}-{place}.o"));
        fs::write(&path, print("p", &[member])?).ok()?;
        Some(path)
    });
    written.collect()
}

/// The arguments with these objects before the first archive, whether it is named by its file or as a library.
fn with_objects(words: &[OsString], objects: Vec<OsString>) -> Vec<OsString> {
    let is_archive = |word: &OsString| {
        let word = word.to_string_lossy();
        !word.starts_with('-') && (word.ends_with(".a") || word.ends_with(".rlib"))
            || word.starts_with("-l")
            || ["--start-group", "-("].contains(&&*word)
    };
    let at = words.iter().position(is_archive).unwrap_or(words.len());
    [&words[..at], &objects, &words[at..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_by_the_maps_of_all_linkers() {
        let of_bfd = "Archive member included to satisfy reference by file (symbol)\n\n\
                      lib/libx.a(a.o)               main.o (a)\n\
                      /usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a(_divdi3.o)\n";
        let of_lld = "   1660   1660   14 1    lib/libx.a(a.o):(.text)\n   1700 1700 8 1   target/libc.rlib(c.rcgu.o):(.text.c)\n";
        let expected = |archives: &[(&str, &str)]| -> BTreeMap<PathBuf, BTreeSet<String>> {
            let one = |(archive, member): &(&str, &str)| {
                (PathBuf::from(archive), BTreeSet::from([member.to_string()]))
            };
            archives.iter().map(one).collect()
        };
        assert_eq!(
            taken(of_bfd),
            expected(&[("lib/libx.a", "a.o"), ("/usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a", "_divdi3.o")])
        );
        assert_eq!(taken(of_lld), expected(&[("lib/libx.a", "a.o"), ("target/libc.rlib", "c.rcgu.o")]));
        assert!(!is_own(Path::new("/usr/lib/x86_64-linux-gnu/libc_nonshared.a")));
    }

    #[test]
    fn objects_stand_before_what_may_need_no_more_of_them() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        let with = |line| with_objects(&words(line), words("1.o 2.o"));
        assert_eq!(with("-o p main.o libx.a -lc"), words("-o p main.o 1.o 2.o libx.a -lc"));
        assert_eq!(with("main.o -L. -lx"), words("main.o -L. 1.o 2.o -lx"));
        assert_eq!(with("main.o --start-group a.a b.a"), words("main.o 1.o 2.o --start-group a.a b.a"));
    }
}
