//! A linker's arguments: the program's objects among them, and the output.

use crate::error::{Doing, Error, Result};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// Words by which a linker makes no program: a library, or an object of several.
pub(crate) const NO_PROGRAM: [&str; 7] =
    ["-r", "-i", "-Ur", "--relocatable", "-shared", "--shared", "-Bshareable"];

/// The words with those in the place of files that hold words, `@FILE`.
pub(crate) fn expanded(words: &[OsString]) -> Result<Vec<OsString>> {
    let mut all = Vec::new();
    for word in words {
        match word.to_str().and_then(|word| word.strip_prefix('@')) {
            None => all.push(word.clone()),
            Some(file) => {
                let text = fs::read_to_string(file).doing_with(|| format!("cannot read {file}"))?;
                let held = shell_words::split(&text);
                let held = held.map_err(|error| Error::file(file, format!("holds no words: {error}")))?;
                all.extend(held.into_iter().map(OsString::from));
            }
        }
    }
    Ok(all)
}

/// The program that is linked; `None` when it is a library or an object.
pub(crate) fn program_of(words: &[OsString]) -> Option<PathBuf> {
    if words.iter().any(|word| NO_PROGRAM.iter().any(|other| word == other)) {
        return None;
    }
    let at = words.iter().position(|word| word == "-o");
    Some(at.and_then(|at| words.get(at + 1)).map_or_else(|| "a.out".into(), PathBuf::from))
}

/// True when a word is the value of the option before it.
fn is_value(words: &[OsString], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| words[before] == "-o" || words[before] == "-T")
}

/// The positions of the program's own objects.
pub(crate) fn own_objects(words: &[OsString]) -> Vec<usize> {
    (0..words.len()).filter(|at| is_own_object(&words[*at]) && !is_value(words, *at)).collect()
}

/// The words of a link of the same elsewhere, without a map.
pub(crate) fn with_output(words: &[OsString], to: &Path) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if is_value(words, at) && words[at - 1] == "-o" {
            all.push(to.into());
        } else if !word.to_string_lossy().trim_start_matches('-').starts_with("Map=") {
            all.push(word.clone());
        }
    }
    if !words.iter().any(|word| word == "-o") {
        all.extend(["-o".into(), to.into()]);
    }
    all
}

/// True for an object of the program, but not for one of those that start and end every program.
fn is_own_object(word: &OsStr) -> bool {
    const STARTS: [&str; 6] = ["crt", "Scrt1", "gcrt1", "Mcrt1", "rcrt1", "grcrt1"];
    let path = Path::new(word);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".o") && !name.starts_with('-') && !STARTS.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_joined_objects_are_not_linked_again() {
        assert_eq!(program_of(&words("-shared -o l.so a.o")), None);
        assert_eq!(program_of(&words("a.o -r -o b.o")), None);
        assert_eq!(program_of(&words("a.o -o dir/p")), Some("dir/p".into()));
        assert_eq!(program_of(&words("a.o")), Some("a.out".into()));
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }
}
