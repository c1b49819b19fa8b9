//! The command as it is installed: its recorders lie beside it.

use std::path::Path;
use std::process::Command;
use std::sync::Once;

static BUILT: Once = Once::new();

/// `lineup`, with all that the workspace builds beside it, of the same state of the sources: the recorders, and examples
/// in the folder `examples`.
pub(crate) fn lineup() -> Command {
    let command = Path::new(env!("CARGO_BIN_EXE_lineup"));
    BUILT.call_once(|| build_beside(command.parent().expect("a folder")));
    Command::new(command)
}

/// Of the whole workspace, as it is built for its tests: asked for some packages, cargo would choose other features of what
/// they share, and compile that a second time.
fn build_beside(profile: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--workspace", "--lib", "--examples", "--target-dir"]);
    cargo.arg(profile.parent().expect("cargo's folder for what it builds"));
    if let Some(linted) = std::env::var_os("LINEUP_LINTED") {
        cargo.arg("--config").arg(linted);
    }
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().expect("cargo runs");
    assert!(status.success(), "the workspace does not build");
}
