//! The arithmetic without the standard library: the crate is built as such a user would.

use std::path::Path;
use std::process::Command;

#[test]
fn without_its_features_the_crate_needs_neither_std_nor_any_other_crate() {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no_std");
    let cargo = |args: &[&str]| {
        let output = Command::new(env!("CARGO"))
            .args(args)
            .args(["--manifest-path", manifest, "--no-default-features", "--offline"])
            .env("CARGO_TARGET_DIR", &target)
            .output()
            .expect("cargo runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{message}");
        String::from_utf8(output.stdout).expect("text")
    };
    // With `#![no_std]` in force any mention of std is an error.
    cargo(&["check", "--lib"]);
    let needed = cargo(&["tree", "--edges", "normal", "--prefix", "none"]);
    assert_eq!(needed.lines().count(), 1, "{needed}");
}
