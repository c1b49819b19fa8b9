//! A guest's workload: a script, a command with the files it names, or one that comes with Lineup.

use super::rootfs::Rootfs;
use super::shell;
use crate::companions;
use crate::error::{Doing, Error, Result};
use crate::files::not_utf8;
use crate::recorder::on_path;
use lineup_kernel::guest::{APPLETS, BuiltIn, FILES};
use lineup_kernel::initramfs::{InitramfsEntry, Tree, needed_by};
use lineup_model::abi::Machine;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// File systems of the guest's own kernel.
const VIRTUAL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A workload, ready to be put into a guest.
#[derive(Debug)]
pub struct Workload {
    /// A line, or lines, of shell.
    pub script: String,
    /// The working directory of the command, when files of it are in the guest.
    pub directory: Option<String>,
    /// True when it needs the loopback interface.
    pub loopback: bool,
    /// Programs that its lines, or scripts that they name, seem to start, and that the guest lacks.
    pub unknown: BTreeSet<String>,
    /// True when the files go into a root.
    has_root: bool,
    files: BTreeMap<String, InitramfsEntry>,
}

impl Workload {
    /// Does nothing: for a guest that is booted to be asked.
    pub fn nothing() -> Workload {
        Workload {
            script: "true".into(),
            directory: None,
            loopback: false,
            unknown: BTreeSet::new(),
            has_root: false,
            files: BTreeMap::new(),
        }
    }

    /// Takes the name of a built-in workload, the name of a script, or a line of shell, in this order. Relative names
    /// begin at `folder`. With a root, files that it has are not taken from the host, and programs never are.
    pub fn new(text: &str, folder: &Path, machine: Machine, root: Option<&Rootfs>) -> Result<Workload> {
        if let Ok(built_in) = text.parse::<BuiltIn>() {
            let (script, loopback) = (built_in.script().to_owned(), built_in.needs_loopback());
            return Ok(Workload { script, loopback, has_root: root.is_some(), ..Workload::nothing() });
        }
        let directory = folder.to_str().ok_or_else(|| not_utf8(folder))?;
        let mut workload = Workload {
            script: text.into(),
            directory: Some(directory.into()),
            // Servers of a root talk to their clients.
            loopback: root.is_some(),
            unknown: BTreeSet::new(),
            has_root: root.is_some(),
            files: BTreeMap::from([(directory.to_owned(), InitramfsEntry::Directory)]),
        };
        let words = shell_words::split(text)
            .map_err(|error| Error::argument(format!("--workload {text:?}"), error.to_string()))?;
        let (files, unknown) = (&mut workload.files, &mut workload.unknown);
        let mut packer = Packer { folder, machine, root, files, unknown };
        packer.named(&words)?;
        let mut is_script = false;
        if let [script] = words.as_slice()
            && let Some(line) = packer.script(script)?
        {
            workload.script = line;
            is_script = true;
        }
        if !is_script {
            packer.lines(text)?;
        }
        workload.leave_unused(folder, root);
        Ok(workload)
    }

    /// Lets the guest start at its root when nothing of the working directory is in it: the same line is then the same
    /// guest, wherever it was given.
    fn leave_unused(&mut self, folder: &Path, root: Option<&Rootfs>) {
        let is_used = self.files.keys().map(Path::new).any(|path| path.starts_with(folder) && path != folder);
        if !is_used && !root.is_some_and(|root| root.on_host(folder).is_some_and(|own| own.is_dir())) {
            self.files.retain(|path, _| Path::new(path) != folder);
            self.directory = None;
        }
    }

    /// Puts the workload's files into a guest's tree.
    pub fn pack(&self, tree: &mut Tree) -> Result<()> {
        let before = if self.has_root { FILES } else { "" };
        for (path, entry) in self.files.iter().filter(|(path, _)| *path != "/") {
            let path = format!("{before}{path}");
            // A folder of the host may be one of the guest's own.
            if *entry == InitramfsEntry::Directory && tree.get(&path).is_some() {
                continue;
            }
            tree.put(&path, entry.clone())?;
        }
        Ok(())
    }
}

/// Collects files of the host.
struct Packer<'a> {
    folder: &'a Path,
    machine: Machine,
    root: Option<&'a Rootfs>,
    files: &'a mut BTreeMap<String, InitramfsEntry>,
    unknown: &'a mut BTreeSet<String>,
}

impl Packer<'_> {
    /// Packs every file that a word names.
    fn named(&mut self, words: &[String]) -> Result<()> {
        for word in words {
            if let Some(file) = self.file(word.trim_end_matches(';')) {
                self.pack(&file)?;
            }
        }
        Ok(())
    }

    /// Packs the programs that lines of shell start, and every file that is named anywhere in them, also inside quotes.
    fn lines(&mut self, text: &str) -> Result<()> {
        for name in shell::programs(text) {
            if self.file(&name).is_none() {
                self.program(&name)?;
            }
        }
        for word in text.split(|letter: char| letter.is_whitespace() || "\"'`;|&()<>=".contains(letter)) {
            if let Some(file) = self.file(word) {
                self.pack(&file)?;
            }
        }
        Ok(())
    }

    /// The host's file of a name, unless the root has it or the guest's kernel provides it.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let path = plain(&self.folder.join(name));
        let is_virtual = VIRTUAL.iter().any(|root| path.starts_with(root));
        let is_ours = !name.is_empty() && !is_virtual && path.is_file();
        (is_ours && !self.root.is_some_and(|root| root.holds(&path))).then_some(path)
    }

    /// Packs a program that is named without a folder, or notes that the guest will not have it.
    fn program(&mut self, name: &str) -> Result<()> {
        if APPLETS.contains(&name) {
            return Ok(());
        }
        let known = match self.root {
            Some(root) if root.program(name).is_some() => return Ok(()),
            Some(_) => None,
            None => on_path(name),
        };
        match known {
            Some(path) => self.pack(&plain(&path)),
            None => {
                self.unknown.insert(name.to_owned());
                Ok(())
            }
        }
    }

    /// Packs a file at its own path, with the libraries that it needs, or with the files it names when it is a shell
    /// script.
    fn pack(&mut self, path: &Path) -> Result<()> {
        let name = path.to_str().ok_or_else(|| not_utf8(path))?;
        if self.files.contains_key(name) {
            return Ok(());
        }
        let contents = companions::read(path).doing_with(|| format!("{name} goes into the guest"))?.to_vec();
        let mode = std::fs::metadata(path).map_or(0o755, |metadata| metadata.permissions().mode() & 0o777);
        if mode & 0o111 != 0 {
            let root = self.root;
            let mut read = |path: &str| match root.and_then(|root| root.on_host(Path::new(path))) {
                Some(own) => std::fs::read(own).ok(),
                None => std::fs::read(path).ok(),
            };
            for library in needed_by(name, &contents, self.machine, &mut read)? {
                if !root.is_some_and(|root| root.holds(Path::new(&library.path))) {
                    self.files.insert(
                        library.path,
                        InitramfsEntry::File { mode: 0o755, contents: library.contents },
                    );
                }
            }
        }
        self.files.insert(name.into(), InitramfsEntry::File { mode, contents: contents.clone() });
        match std::str::from_utf8(&contents) {
            Ok(text) if mode & 0o111 != 0 && is_shell(text) => {
                self.interpreter(path, text)?;
                self.lines(text)
            }
            _ => Ok(()),
        }
    }

    /// When the only word is a script: packs its interpreter and the files it names, and returns the line that starts
    /// it.
    fn script(&mut self, word: &str) -> Result<Option<String>> {
        let path = plain(&self.folder.join(word));
        let host = self.file(word).or_else(|| self.root?.on_host(&path).filter(|file| file.is_file()));
        let Some(host) = host else { return Ok(None) };
        let contents = companions::read(&host)?;
        let Ok(text) = std::str::from_utf8(&contents) else { return Ok(None) };
        let name = shell_words::quote(path.to_str().ok_or_else(|| not_utf8(&path))?).into_owned();
        self.lines_of(text)?;
        let line = self.interpreter(&path, text)?;
        Ok(Some(format!("{line} {name}")))
    }

    /// Packs the files that a script names: a script of another language has no lines of shell, but may name files.
    fn lines_of(&mut self, text: &str) -> Result<()> {
        if is_shell(text) || !text.starts_with("#!") {
            return self.lines(text);
        }
        for word in text.split(|letter: char| letter.is_whitespace() || "\"'`;|&()<>=,[]{}".contains(letter))
        {
            if let Some(file) = self.file(word) {
                self.pack(&file)?;
            }
        }
        Ok(())
    }

    /// Packs the interpreter in a script's first line, and returns its command.
    fn interpreter(&mut self, script: &Path, text: &str) -> Result<String> {
        let Some(line) = text.strip_prefix("#!") else { return Ok("sh".into()) };
        let words: Vec<&str> = line.lines().next().unwrap_or_default().split_whitespace().collect();
        let (given, options) = match words.as_slice() {
            ["/usr/bin/env", interpreter, options @ ..] => (*interpreter, options),
            [interpreter, options @ ..] => (*interpreter, options),
            [] => return Err(Error::file(script, "names no interpreter in its first line")),
        };
        let name = given.rsplit('/').next().unwrap_or(given);
        let missing = |place: &str| Error::Tool {
            tool: name.to_owned(),
            what: format!("is not {place}"),
            next: format!("it is what runs {}", script.display()),
        };
        let started = match self.root {
            Some(root) if given.starts_with('/') && root.holds(Path::new(given)) => given.to_owned(),
            Some(root) => match root.program(name) {
                Some(program) => program.display().to_string(),
                None if APPLETS.contains(&name) => name.to_owned(),
                None => return Err(missing("in the root")),
            },
            None if APPLETS.contains(&name) => name.to_owned(),
            None => {
                let known = on_path(name).ok_or_else(|| missing("installed"))?;
                self.pack(&plain(&known))?;
                known.display().to_string()
            }
        };
        Ok([&[started.as_str()], options].concat().join(" "))
    }
}

/// True when a script's first line names a shell.
fn is_shell(text: &str) -> bool {
    let line = text.strip_prefix("#!").and_then(|text| text.lines().next()).unwrap_or_default();
    let shells = ["sh", "ash", "dash", "bash"];
    line.split_whitespace().any(|word| shells.contains(&word.rsplit('/').next().unwrap_or(word)))
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
        let workload = Workload::new(text, folder, Machine::X86_64, None).unwrap();
        let files = workload.files.iter().filter(|(_, entry)| matches!(entry, InitramfsEntry::File { .. }));
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
    fn what_scripts_start_is_packed_or_noted_before_any_boot() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("outer.sh", "#!/bin/sh\n./inner.sh | sort\nno-such-program --now\n");
        write("inner.sh", "#!/bin/sh\nif true; then perl -e 1; fi\n");
        let workload = Workload::new("outer.sh", folder.path(), Machine::X86_64, None).unwrap();
        let files: Vec<&str> = workload.files.keys().map(String::as_str).collect();
        let perl = on_path("perl").unwrap();
        assert!(files.contains(&plain(&perl).to_str().unwrap()), "{files:?}");
        assert_eq!(workload.unknown.into_iter().collect::<Vec<_>>(), ["no-such-program"]);
    }

    #[test]
    fn with_a_root_its_own_files_are_not_brought_and_what_it_lacks_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("usr/bin")).unwrap();
        let server = root.join("usr/bin/server");
        std::fs::write(&server, "").unwrap();
        std::fs::set_permissions(&server, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(folder.path().join("load.py"), "#!/usr/bin/env server\n").unwrap();
        let interrupts = crate::process::interrupt::Interrupts::watch().unwrap();
        let given = [root];
        let rootfs = Rootfs::open(&given, &crate::progress::Silent, &interrupts).unwrap();
        let new = |text: &str| Workload::new(text, folder.path(), Machine::X86_64, Some(&rootfs));
        let workload = new("server load.py /etc/passwd; perl -e 1").unwrap();
        let load = folder.path().join("load.py").display().to_string();
        assert!(workload.files.contains_key(&load) && workload.files.contains_key("/etc/passwd"));
        assert_eq!(workload.unknown.into_iter().collect::<Vec<_>>(), ["perl"]);
        assert_eq!(new("load.py").unwrap().script, format!("/usr/bin/server {load}"));
        std::fs::write(&load, "#!/usr/bin/perl\n").unwrap();
        assert!(new("load.py").unwrap_err().to_string().contains("perl is not in the root"));
    }

    #[test]
    fn built_in_names_come_first_and_only_net_needs_the_loopback() {
        let net = Workload::new("net", Path::new("/"), Machine::Arm, None).unwrap();
        assert!(net.loopback && net.files.is_empty());
        assert!(!Workload::new("idle", Path::new("/"), Machine::Arm, None).unwrap().loopback);
    }

    #[test]
    fn the_working_directory_is_the_guests_when_files_of_it_are_there() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data"), "1\n").unwrap();
        let directory = |text: &str| {
            let workload = Workload::new(text, folder.path(), Machine::X86_64, None).unwrap();
            let has_folder = workload.files.keys().any(|path| Path::new(path) == folder.path());
            assert_eq!(has_folder, workload.directory.is_some());
            workload.directory
        };
        assert_eq!(directory("cat data"), Some(folder.path().display().to_string()));
        assert_eq!(directory("ls -R /bin > out"), None);
    }

    #[test]
    fn a_program_for_another_machine_is_refused() {
        let own = std::env::current_exe().unwrap();
        let error = Workload::new(own.to_str().unwrap(), Path::new("/"), Machine::Arm, None).unwrap_err();
        assert!(error.to_string().contains("the guest is arm"), "{error}");
    }
}
