//! What runs in a guest: a script, a command with the files it names, or one that Lineup brings.

use crate::companions;
use crate::error::{Doing, Error, Result};
use crate::recorder::on_path;
use lineup_kernel::guest::{APPLETS, BuiltIn};
use lineup_kernel::initramfs::{Entry, Tree, needed_by};
use lineup_model::abi::Machine;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Between two of these marks in a line of shell stands one command.
const SEPARATORS: [&str; 7] = ["|", "||", "&&", ";", "&", "(", "{"];

/// File systems of the guest's own kernel.
const VIRTUAL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A workload, ready to be put into a guest.
#[derive(Debug)]
pub struct Workload {
    /// A line, or lines, of shell.
    pub script: String,
    /// Where it starts, when it was given as a command.
    pub directory: Option<String>,
    /// Whether it needs the loopback interface.
    pub loopback: bool,
    files: BTreeMap<String, Entry>,
}

impl Workload {
    /// Does nothing: for a guest that is booted to be asked.
    pub fn nothing() -> Workload {
        Workload { script: "true".into(), directory: None, loopback: false, files: BTreeMap::new() }
    }

    /// Takes the name of a built-in workload, the name of a script, or a line of shell, in this order; `folder` is
    /// where relative names begin.
    pub fn new(text: &str, folder: &Path, machine: Machine) -> Result<Workload> {
        if let Ok(built_in) = text.parse::<BuiltIn>() {
            let (script, loopback) = (built_in.script().to_owned(), built_in.needs_loopback());
            return Ok(Workload { script, directory: None, loopback, files: BTreeMap::new() });
        }
        let directory = folder.to_str().ok_or_else(|| not_utf8(folder))?;
        let mut workload = Workload {
            script: text.into(),
            directory: Some(directory.into()),
            loopback: false,
            files: BTreeMap::from([(directory.to_owned(), Entry::Directory)]),
        };
        let words = shell_words::split(text)
            .map_err(|error| Error::argument(format!("--workload {text:?}"), error.to_string()))?;
        let mut packer = Packer { folder, machine, files: &mut workload.files };
        packer.commands(&words)?;
        packer.files_in(text)?;
        if let [script] = words.as_slice()
            && let Some(line) = packer.script(script)?
        {
            workload.script = line;
        }
        Ok(workload)
    }

    /// Puts the workload's files into a guest's tree.
    pub fn pack(&self, tree: &mut Tree) -> Result<()> {
        for (path, entry) in self.files.iter().filter(|(path, _)| *path != "/") {
            // A folder of the host may be one of the guest's own.
            if *entry == Entry::Directory && tree.get(path).is_some() {
                continue;
            }
            tree.put(path, entry.clone())?;
        }
        Ok(())
    }
}

/// Collects files of the host.
struct Packer<'a> {
    folder: &'a Path,
    machine: Machine,
    files: &'a mut BTreeMap<String, Entry>,
}

impl Packer<'_> {
    /// Packs every file that a word names, and every program that busybox does not have.
    fn commands(&mut self, words: &[String]) -> Result<()> {
        let mut begins = true;
        for word in words {
            if SEPARATORS.contains(&word.as_str()) {
                begins = true;
                continue;
            }
            let word = word.trim_end_matches(';');
            if let Some(file) = self.file(word) {
                self.pack(&file)?;
            } else if begins && !word.contains(['/', '=', '$']) && !APPLETS.contains(&word) {
                self.program(word)?;
            }
            begins = false;
        }
        Ok(())
    }

    /// Packs every file that is named anywhere in lines of shell, also inside quotes and substitutions.
    fn files_in(&mut self, text: &str) -> Result<()> {
        for word in text.split(|letter: char| letter.is_whitespace() || "\"'`;|&()<>=".contains(letter)) {
            if let Some(file) = self.file(word) {
                self.pack(&file)?;
            }
        }
        Ok(())
    }

    /// The host's file of a name, unless the guest's kernel provides it.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let path = plain(&self.folder.join(name));
        let is_virtual = VIRTUAL.iter().any(|root| path.starts_with(root));
        (!name.is_empty() && !is_virtual && path.is_file()).then_some(path)
    }

    fn program(&mut self, name: &str) -> Result<()> {
        match on_path(name) {
            Some(path) => self.pack(&plain(&path)),
            // A builtin of the shell, or a function: the guest's shell knows.
            None => Ok(()),
        }
    }

    /// Packs a file at its own path, with the libraries that it needs.
    fn pack(&mut self, path: &Path) -> Result<()> {
        let name = path.to_str().ok_or_else(|| not_utf8(path))?;
        if self.files.contains_key(name) {
            return Ok(());
        }
        let contents = companions::read(path).doing_with(|| format!("{name} goes into the guest"))?.to_vec();
        let mode = std::fs::metadata(path).map_or(0o755, |metadata| metadata.permissions().mode() & 0o777);
        let mut read = |path: &str| std::fs::read(path).ok();
        let needed =
            if mode & 0o111 == 0 { Vec::new() } else { needed_by(name, &contents, self.machine, &mut read)? };
        for library in needed {
            self.files.insert(library.path, Entry::File { mode: 0o755, contents: library.contents });
        }
        self.files.insert(name.into(), Entry::File { mode, contents });
        Ok(())
    }

    /// When the only word is a script: packs what runs it and the files it names, and gives the line that starts it.
    fn script(&mut self, word: &str) -> Result<Option<String>> {
        let Some(path) = self.file(word) else { return Ok(None) };
        let contents = companions::read(&path)?;
        let Ok(text) = std::str::from_utf8(&contents) else { return Ok(None) };
        let name = shell_words::quote(path.to_str().ok_or_else(|| not_utf8(&path))?).into_owned();
        self.files_in(text)?;
        let Some(line) = text.strip_prefix("#!") else { return Ok(Some(format!("sh {name}"))) };
        let words: Vec<&str> = line.lines().next().unwrap_or_default().split_whitespace().collect();
        let (interpreter, options) = match words.as_slice() {
            ["/usr/bin/env", interpreter, options @ ..] => (*interpreter, options),
            [interpreter, options @ ..] => (interpreter.rsplit('/').next().unwrap_or(interpreter), options),
            [] => return Err(Error::file(word, "names no interpreter in its first line")),
        };
        if !APPLETS.contains(&interpreter) {
            let known = on_path(interpreter);
            let known = known.ok_or_else(|| Error::Tool {
                tool: interpreter.to_owned(),
                what: "is not installed".into(),
                next: format!("it is what runs {word}"),
            })?;
            self.pack(&plain(&known))?;
            let known = known.display().to_string();
            return Ok(Some([&[known.as_str()], options, &[&name]].concat().join(" ")));
        }
        Ok(Some([&[interpreter], options, &[&name]].concat().join(" ")))
    }
}

/// The refusal of a path that a guest cannot be given.
pub(super) fn not_utf8(path: &Path) -> Error {
    Error::file(path, "has a name that is not UTF-8; rename it")
}

/// A path without `.` and `..`, as the guest's kernel resolves it: links of the host are not followed.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(text: &str, folder: &Path) -> (String, Vec<String>) {
        let workload = Workload::new(text, folder, Machine::X86_64).unwrap();
        let files = workload.files.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
        (workload.script.clone(), files.map(|(path, _)| path.clone()).collect())
    }

    #[test]
    fn files_that_a_command_names_are_packed_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "1\n").unwrap();
        let name = folder.path().join("data").display().to_string();
        for line in ["sort ./data | gzip -c && cat /proc/cpuinfo no-such-file", "test \"$(sort data)\" = 1"] {
            assert_eq!(packed(line, folder.path()), (line.to_owned(), vec![name.clone()]));
        }
    }

    #[test]
    fn a_script_is_run_by_its_interpreter_with_the_files_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data").display().to_string();
        let script = folder.path().join("run.sh").display().to_string();
        std::fs::write(&data, "1\n").unwrap();
        std::fs::write(&script, format!("#!/bin/sh -e\nsort <\"{data}\"\n")).unwrap();
        assert_eq!(packed("run.sh", folder.path()), (format!("sh -e {script}"), vec![data, script.clone()]));
    }

    #[test]
    fn built_in_names_come_first_and_only_net_needs_the_loopback() {
        let net = Workload::new("net", Path::new("/"), Machine::Arm).unwrap();
        assert!(net.loopback && net.files.is_empty());
        assert!(!Workload::new("idle", Path::new("/"), Machine::Arm).unwrap().loopback);
    }

    #[test]
    fn a_program_for_another_machine_is_refused() {
        let own = std::env::current_exe().unwrap();
        let error = Workload::new(own.to_str().unwrap(), Path::new("/"), Machine::Arm).unwrap_err();
        assert!(error.to_string().contains("the guest is arm"), "{error}");
    }
}
