//! The arithmetic without the standard library: the crate is compiled as such a user would.

use std::process::Command;

/// The compiler gets no other crate and no feature. With `#![no_std]` in force any mention of std is an error.
#[test]
fn without_its_features_the_crate_needs_neither_std_nor_any_other_crate() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compiler = Command::new("rustc");
    compiler.args([
        "--crate-type",
        "lib",
        "--crate-name",
        "lineup_sched",
        "--edition",
        "2024",
        "--emit",
        "metadata",
    ]);
    compiler.arg("--out-dir").arg(folder.path()).arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs"));
    let output = compiler.output().expect("rustc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
