//! Linkers for a build that do what this machine's do, and a little more.
//!
//! GCC and Clang look for the linker in the folders that `COMPILER_PATH` names before all others. A build that runs with
//! one more folder there is asked for nothing, whatever it is made of, as long as it links by a compiler.

use crate::error::{Doing, Result};
use crate::folder::TempFolder;
use crate::interrupt::Interrupts;
use crate::recorder::on_path;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The names by which compilers ask for a linker.
const NAMES: [&str; 5] = ["ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold"];

/// The folder of such linkers.
pub struct Linkers {
    folder: TempFolder,
}

impl Linkers {
    /// Linkers that keep relocations in programs (`--emit-relocs`). Libraries and joined objects are linked as ever, and
    /// so is what is stripped, since GNU ld refuses both together.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn that_keep_relocations(interrupts: &Interrupts) -> Result<Linkers> {
        let folder = interrupts.temporary_folder().doing("cannot make a folder for linkers")?;
        for name in NAMES {
            if let Some(linker) = on_path(Path::new(name)) {
                let path = folder.path().join(name);
                let write = || {
                    fs::write(&path, script(&linker))?;
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                };
                write().doing_with(|| format!("cannot write {}", path.display()))?;
            }
        }
        Ok(Linkers { folder })
    }

    /// The variable that leads compilers to them.
    pub(crate) fn variable(&self) -> (OsString, OsString) {
        const NAME: &str = "COMPILER_PATH";
        let mut value = self.folder.path().as_os_str().to_owned();
        if let Some(ours) = std::env::var_os(NAME).filter(|ours| !ours.is_empty()) {
            value.push(":");
            value.push(ours);
        }
        (NAME.into(), value)
    }
}

/// A script that stands for a linker.
fn script(linker: &Path) -> String {
    let linker = linker.to_string_lossy();
    let linker = shell_words::quote(&linker);
    format!(
        "#!/bin/sh\n\
         for word; do\n\
         case $word in -r|-i|-Ur|--relocatable|-shared|--shared|-Bshareable|-s|--strip-all) exec {linker} \"$@\";; esac\n\
         done\n\
         exec {linker} --emit-relocs \"$@\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool;
    use std::process::Command;

    #[test]
    fn programs_keep_relocations_and_libraries_do_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = folder.path().join("echo linker");
        fs::write(&said, "#!/bin/sh\necho \"$@\"\n").expect("a file");
        fs::set_permissions(&said, fs::Permissions::from_mode(0o755)).expect("sets");
        let linker = folder.path().join("ld");
        fs::write(&linker, script(&said)).expect("a file");
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
