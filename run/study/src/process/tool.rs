//! Helpers that are started for an answer or an effect: git, a shell's line, a program's version.

use std::process::{Command, ExitStatus, Output, Stdio};

/// Runs a helper without input and waits for its output.
pub fn output(command: &mut Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).output()
}

/// Runs a line of shell that shares our input and output.
pub fn shell(line: &str) -> std::io::Result<ExitStatus> {
    Command::new("/bin/sh").arg("-c").arg(line).status()
}
