//! Files that the project's scripts fetch or build, once.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path that a script in `scripts` prints. The script reports its steps on standard error.
pub(crate) fn by(script: &str, arguments: &[&str]) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts").join(script);
    let output = Command::new(path).args(arguments).stderr(Stdio::inherit()).output();
    let output = output.unwrap_or_else(|error| panic!("scripts/{script}: {error}"));
    assert!(output.status.success(), "scripts/{script} {} failed", arguments.join(" "));
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
}
