//! Programs and files of the benches: the optimised command, Debian's cloud kernel, and the same kernel's vmlinux with
//! DWARF.

#[allow(dead_code, reason = "not every bench needs it")]
#[path = "../../tests/it/fetched/mod.rs"]
pub(crate) mod fetched;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds the optimised command and the recorder next to it.
pub(crate) fn release_build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace()).args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "lineup",
        "-p",
        "lineup-plugin",
        "-p",
        "lineup-engine",
    ]);
    assert!(cargo.status().expect("cargo").success(), "the build failed");
    // This very executable lies in the folder `deps` of the release profile.
    let own = std::env::current_exe().expect("this executable");
    let command = own.ancestors().map(|folder| folder.join("lineup")).find(|file| file.is_file());
    command.expect("the lineup command")
}

/// The cloud kernel's image, as distributed: the one that LINEUP_BENCH_KERNEL names, or Debian's from apt.
#[allow(dead_code, reason = "not every bench needs it")]
pub(crate) fn kernel() -> PathBuf {
    std::env::var_os("LINEUP_BENCH_KERNEL")
        .map_or_else(|| fetched::by("kernel-fetch", &["cloud"]), PathBuf::from)
}

/// That kernel's vmlinux with DWARF: the one that LINEUP_BENCH_VMLINUX names, or that of Debian's debug package, which
/// apt downloads once (282 MB).
#[allow(dead_code, reason = "not every bench needs it")]
pub(crate) fn vmlinux() -> PathBuf {
    std::env::var_os("LINEUP_BENCH_VMLINUX")
        .map_or_else(|| fetched::by("kernel-fetch", &["--debug", "cloud"]), PathBuf::from)
}

fn workspace() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the workspace")
}

/// A command's output; it must succeed.
#[allow(dead_code, reason = "not every bench needs it")]
pub(crate) fn shown(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
