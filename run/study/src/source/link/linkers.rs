//! Linkers for a build: they do what this machine's linkers do, and a little more.
//!
//! GCC and Clang look for the linker first in the folders of `COMPILER_PATH`. A build that runs with one more folder
//! there needs no changes, whichever build system it uses, as long as a compiler does the linking.

use crate::error::{Doing, Error, Result, failed_in};
use crate::process::child::{Streams, Waiting};
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use crate::recorder::on_path;
use crate::source::build_environment::Environment;
use crate::source::build_failure::last_lines;
use crate::source::link::arguments::NO_PROGRAM;
use crate::source::link::relink;
use crate::source::link::relink::ProgramLinks;
use lineup_prove::run::Ending;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The names by which compilers ask for a linker.
const NAMES: [&str; 5] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"];

/// The last lines of a failed build that the message shows.
const LAST_LINES: usize = 12;

/// The folder of links, in the folder of linkers.
const LINKS: &str = "links";

/// The folder of linkers that keep relocations, for those that link again.
const KEEPING: &str = "keeping";

/// The variable with the folder in which linkers keep links.
const INTO: &str = "LINEUP_LINKS";

/// The folder of such linkers.
pub struct Linkers {
    folder: TempFolder,
}

impl Linkers {
    /// Linkers that keep relocations in programs (`--emit-relocs`). Libraries and joined objects are linked as before,
    /// and so are stripped programs, since GNU ld refuses both options together.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn that_keep_relocations(interrupts: &Interrupts) -> Result<Linkers> {
        Linkers::of(interrupts, |_, linker| Ok(keeps_relocations(linker, "")))
    }

    /// Linkers that link every program `links` more times, each time in another layout; see [`relink`].
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn that_link_again(links: u64, seed: u64, interrupts: &Interrupts) -> Result<Linkers> {
        Linkers::again(links, seed, interrupts, |_, linker| Ok(linker.to_owned()))
    }

    /// The same, and all links keep relocations.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn that_link_again_and_keep_relocations(
        links: u64,
        seed: u64,
        interrupts: &Interrupts,
    ) -> Result<Linkers> {
        Linkers::again(links, seed, interrupts, |folder, linker| {
            let keeps = folder.join(KEEPING);
            fs::create_dir_all(&keeps).doing_with(|| format!("cannot make {}", keeps.display()))?;
            let path = keeps.join(linker.file_name().unwrap_or_default());
            write_script(&path, &keeps_relocations(linker, ""))?;
            Ok(path)
        })
    }

    fn again(
        links: u64,
        seed: u64,
        interrupts: &Interrupts,
        linker_of: impl Fn(&Path, &Path) -> Result<PathBuf>,
    ) -> Result<Linkers> {
        let ours = std::env::current_exe().doing("cannot find this program's own file")?;
        let ours = ours.to_string_lossy().into_owned();
        let ours = shell_words::quote(&ours);
        Linkers::of(interrupts, |folder, linker| {
            let linker = linker_of(folder, linker)?.to_string_lossy().into_owned();
            let linker = shell_words::quote(&linker);
            let command = relink::COMMAND;
            Ok(format!(
                "#!/bin/sh\nexec {ours} {command} --links {links} --seed {seed} --into \"${INTO}\" -- {linker} \"$@\"\n"
            ))
        })
    }

    /// A folder with a script for each linker that this machine has.
    pub(crate) fn of(
        interrupts: &Interrupts,
        script: impl Fn(&Path, &Path) -> Result<String>,
    ) -> Result<Linkers> {
        let folder = interrupts.temporary_folder().doing("cannot make a folder for linkers")?;
        for name in NAMES {
            if let Some(linker) = on_path(Path::new(name)) {
                let path = folder.path().join(name);
                write_script(&path, &script(folder.path(), &linker)?)?;
            }
        }
        Ok(Linkers { folder })
    }

    /// Runs a line of shell that links programs, where we stand.
    ///
    /// # Errors
    /// When it fails, with its last words.
    pub fn build(&self, line: &str, interrupts: &Interrupts) -> Result<()> {
        let environment = Environment::new(interrupts)?;
        let run = Run {
            command: ["sh", "-c", &format!("exec 2>&1\n{line}")].map(Into::into).into(),
            environment: environment.with(self.variables(Path::new(LINKS))?),
            ..Run::default()
        };
        let finished = Waiting::start(&run, Streams::Remembered, interrupts).and_then(Waiting::run);
        let finished = finished.map_err(failed_in("cannot run sh for the build"))?;
        interrupts.check()?;
        if finished.ending == Ending::Exited(0) {
            return Ok(());
        }
        let mut words = Vec::new();
        if let Some(mut file) = finished.stdout_file {
            file.read_to_end(&mut words).doing("cannot read what the build printed")?;
        }
        let said = last_lines(&String::from_utf8_lossy(&words), LAST_LINES);
        Err(Error::argument(
            format!("--build {line:?}"),
            format!("{}; its last lines:\n{said}", finished.ending),
        ))
    }

    /// The links of a program that a build made, or the reason why there are none.
    ///
    /// # Errors
    /// When the build linked no such program.
    pub fn links_of(&self, program: &Path) -> Result<ProgramLinks> {
        let none = || {
            let why = "was not linked by the build that --build names. It must link it anew, as `make -B` does, and by \
                       GCC or Clang, which look for their linker in COMPILER_PATH";
            Error::file(program, why)
        };
        let program = program.canonicalize().doing_with(|| format!("cannot find {}", program.display()))?;
        self.links_in(Path::new(LINKS), &program)?.ok_or_else(none)
    }

    /// The last links of a program of the builds that were made in this folder, by the path at which they saw it;
    /// `None` when they linked none.
    pub(crate) fn links_in(&self, built_in: &Path, program: &Path) -> Result<Option<ProgramLinks>> {
        let folder = self.folder_of(built_in);
        if !folder.is_dir() {
            return Ok(None);
        }
        relink::links_of(&folder, program)
    }

    /// The path of a file of this name in the folder.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a script that compilers find by this name.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        write_script(&self.path_of(name), text)
    }

    /// The folder of links for the builds in a folder.
    fn folder_of(&self, built_in: &Path) -> PathBuf {
        self.folder.path().join(LINKS).join(built_in.file_name().unwrap_or_default())
    }

    /// The variables that lead compilers to these linkers, and the linkers to the folder of links for this folder's
    /// builds.
    pub(crate) fn variables(&self, built_in: &Path) -> Result<Vec<(OsString, OsString)>> {
        let into = self.folder_of(built_in);
        fs::create_dir_all(&into).doing_with(|| format!("cannot make {}", into.display()))?;
        Ok(vec![self.path(), (INTO.into(), into.into())])
    }

    /// The variable that leads compilers to them.
    fn path(&self) -> (OsString, OsString) {
        const NAME: &str = "COMPILER_PATH";
        let mut value = self.folder.path().as_os_str().to_owned();
        if let Some(ours) = std::env::var_os(NAME).filter(|ours| !ours.is_empty()) {
            value.push(":");
            value.push(ours);
        }
        (NAME.into(), value)
    }
}

fn write_script(path: &Path, text: &str) -> Result<()> {
    let write = || {
        fs::write(path, text)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
    };
    write().doing_with(|| format!("cannot write {}", path.display()))
}

/// A script that stands for a linker, and keeps relocations in programs. `words` are added there too.
pub(crate) fn keeps_relocations(linker: &Path, words: &str) -> String {
    let linker = linker.to_string_lossy();
    let linker = shell_words::quote(&linker);
    let words = if words.is_empty() { String::new() } else { format!(" {words}") };
    format!(
        "#!/bin/sh\n\
         for word; do\n\
         case $word in {}|-s|--strip-all) exec {linker} \"$@\";; esac\n\
         done\n\
         exec {linker} --emit-relocs{words} \"$@\"\n",
        NO_PROGRAM.join("|")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tool;
    use std::process::Command;

    #[test]
    fn programs_keep_relocations_and_libraries_do_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = folder.path().join("echo linker");
        fs::write(&said, "#!/bin/sh\necho \"$@\"\n").expect("a file");
        fs::set_permissions(&said, fs::Permissions::from_mode(0o755)).expect("sets");
        let linker = folder.path().join("ld");
        fs::write(&linker, keeps_relocations(&said, "")).expect("a file");
        let told = |words: &[&str]| {
            let output = tool::output(Command::new("sh").arg(&linker).args(words)).expect("a shell");
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        assert_eq!(told(&["-o", "a b", "x.o"]), "--emit-relocs -o a b x.o");
        assert_eq!(told(&["-shared", "x.o"]), "-shared x.o");
        assert_eq!(told(&["x.o", "-r"]), "x.o -r");
        assert_eq!(told(&["-s", "x.o"]), "-s x.o");
    }
}
