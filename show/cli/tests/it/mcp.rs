//! The message of `lineup mcp` when the program that it starts is missing. The program itself is tested in its own
//! workspace.

use std::process::Command;

#[test]
fn a_missing_program_is_told_with_the_command_that_installs_it() {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    let output = lineup.args(["mcp", "--allow-run"]).env("PATH", "/nowhere").output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("lineup-mcp is a program of its own, which is not installed"), "{said}");
    assert!(said.contains("cargo install --locked --path mcp"), "{said}");
}
