//! A program that uses the runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The runtime's archive, built by cargo into a folder of this test's own, and a program linked with it.
pub(crate) fn program(folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "lineup-runtime", "--target-dir"])
        .arg(&target)
        .current_dir(&root)
        .status()
        .unwrap();
    assert!(built.success());
    let out = folder.join("served");
    let output = Command::new("gcc")
        .args(["-O2", "-Wall", "-Werror", "-I"])
        .arg(root.join("crates/runtime/include"))
        .arg(root.join("crates/cli/tests/it/programs/served.c"))
        .arg(target.join("debug/liblineup_runtime.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&out)
        .output()
        .expect("gcc; apt install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    out
}
