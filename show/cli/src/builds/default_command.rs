//! The build command when none was typed.

use lineup_study::error::{BuildError, Error};
use lineup_study::source::build_system;
use std::path::Path;

/// The build command of a program without `--build` where no file shows another.
const COMMAND: &str = "make";

/// The typed command, or that of the build system which the files around the program show for this source folder.
pub(crate) fn of(typed: Option<String>, program: &Path, source: &Path) -> String {
    let is_source = |found: &Path| source.canonicalize().is_ok_and(|source| source == found);
    let found = || build_system::around(program, source).filter(|found| is_source(&found.source));
    typed.or_else(|| found().map(|found| found.command)).unwrap_or_else(|| COMMAND.to_owned())
}

/// The error of a build, with the option that is missing where plain `make` was tried because no other command was
/// named.
pub(crate) fn explain(error: Error, build: &str, program: &Path) -> anyhow::Error {
    let is_of_build = matches!(error, Error::Build(BuildError::Rejected { .. } | BuildError::Failed { .. }));
    let error = anyhow::Error::from(error);
    if !is_of_build || build != COMMAND {
        return error;
    }
    let here = std::env::current_dir().unwrap_or_default();
    let found = build_system::around(program, &here).filter(|found| found.command != COMMAND);
    let such_as = match found {
        Some(found) => format!(
            "--source {} --build {}",
            shell_words::quote(&found.source.to_string_lossy()),
            shell_words::quote(&found.command)
        ),
        None => "--build 'cmake -S . -B build && cmake --build build'".to_owned(),
    };
    error.context(format!(
        "plain `make`, which is tried when no --build names another command, does not build the program; name the command that \
         does, such as {such_as}"
    ))
}
