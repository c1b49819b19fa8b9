//! A program that uses the runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program linked with the runtime's archive.
pub(crate) fn program(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let out = folder.join("served");
    let output = Command::new("gcc")
        .args(["-O2", "-Wall", "-Werror", "-I"])
        .arg(root.join("runtime/runtime/include"))
        .arg(root.join("show/cli/tests/it/programs/served.c"))
        .arg(lineup_fixtures::beside("liblineup_runtime.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&out)
        .output()
        .expect("gcc; apt install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}
