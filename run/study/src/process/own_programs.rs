//! Lineup's own programs next to its executable.

use crate::error::{Doing, Error, Result};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The program of this name: next to this executable, else on PATH.
///
/// # Errors
/// When it is in neither place; `install` is the command that puts it there.
pub fn find(name: &str, install: &str) -> Result<PathBuf> {
    let own = env::current_exe().ok().and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(env::split_paths(&path));
    found(folders, name).ok_or_else(|| Error::Tool {
        tool: name.into(),
        what: "is a program of its own, which is not installed".into(),
        next: format!("install it: {install}"),
    })
}

fn found(mut folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file()))
}

/// Runs it with our input and output, and waits for its end.
///
/// # Errors
/// When it cannot be started.
pub fn run(program: &Path, arguments: &[OsString]) -> Result<ExitStatus> {
    Command::new(program)
        .args(arguments)
        .status()
        .doing_with(|| format!("cannot start {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_folder_that_has_it_counts() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths = || folders.iter().map(|folder| folder.path().to_owned());
        assert_eq!(found(paths(), "lineup-fleet"), None);
        std::fs::create_dir(folders[0].path().join("lineup-fleet")).unwrap();
        std::fs::write(folders[1].path().join("lineup-fleet"), "").unwrap();
        assert_eq!(found(paths(), "lineup-fleet"), Some(folders[1].path().join("lineup-fleet")));
    }

    #[test]
    fn what_is_missing_is_told_with_the_command_that_installs_it() {
        let error = find("lineup-nothing", "cargo install --path nothing").unwrap_err().to_string();
        let told = "lineup-nothing is a program of its own, which is not installed; install it: cargo install --path nothing";
        assert_eq!(error, told);
    }
}
