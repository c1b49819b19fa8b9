//! Compilers, linkers and the like, which build the tests' inputs.

use std::path::Path;
use std::process::Command;

/// Runs a tool; fails with its errors, or with the package to install.
pub(crate) fn run(program: &str, package: &str, folder: &Path, arguments: &[&str]) {
    let output =
        Command::new(program).args(arguments).current_dir(folder).output().unwrap_or_else(|error| {
            panic!("cannot run {program}: {error}; install it: apt install {package}")
        });
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
