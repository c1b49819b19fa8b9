//! Every command that opens a file which somebody else made refuses what is not a regular file, at once, and never
//! asks for more memory than the file's size justifies.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a command may take: far less than the memory that the files here claim to need.
const MEMORY_BYTES: u64 = 3 << 30;
const SECONDS: &str = "60";

/// Every command with a place for a foreign file, written `%`.
const COMMANDS: [&[&str]; 12] = [
    &["layout", "%"],
    &["layout", "--base", "%", "%"],
    &["layout", "--check", "%", "/proc/self/exe"],
    &["kernel", "%"],
    &["explain", "%"],
    &["advise", "%"],
    &["trace", "report", "%"],
    &["trace", "explain", "%"],
    &["sched", "--scenario", "%"],
    &["compare", "--from-table", "%"],
    &["derive", "x", "--from", "%"],
    &["derive", "x", "x=@%"],
];

/// Runs `lineup` with little memory, and kills it when it hangs.
fn lineup(arguments: &[String]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["--signal", "KILL", SECONDS, "prlimit", &format!("--as={MEMORY_BYTES}")]);
    command.arg(env!("CARGO_BIN_EXE_lineup")).args(arguments);
    command.output().expect("timeout and prlimit, of coreutils and util-linux")
}

fn refusal(arguments: &[String]) -> String {
    let output = lineup(arguments);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {} {message}", output.status);
    assert!(!message.contains("panicked"), "{arguments:?}: {message}");
    message
}

fn refused_by_all(path: &Path, why: &str) {
    for command in COMMANDS {
        let given: Vec<String> =
            command.iter().map(|word| word.replace('%', path.to_str().expect("UTF-8"))).collect();
        let message = refusal(&given);
        assert!(message.contains(why) && message.contains(path.to_str().unwrap()), "{given:?}: {message}");
    }
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo, of coreutils");
    assert!(made.success());
    path
}

#[test]
fn a_device_is_refused() {
    refused_by_all(Path::new("/dev/zero"), "a device, not a regular file");
}

#[test]
fn a_pipe_is_refused_without_waiting_for_its_other_end() {
    let folder = tempfile::tempdir().expect("a folder");
    refused_by_all(&pipe(folder.path()), "a pipe, not a regular file");
}

#[test]
fn a_folder_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    refused_by_all(folder.path(), "a folder, not a regular file");
}

/// A file that claims terabytes and holds nothing costs no memory.
#[test]
fn a_sparse_file_of_terabytes_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sparse");
    // Like the Image of a 64-bit Arm kernel.
    let mut start = vec![0; 64];
    start[0x38..0x3c].copy_from_slice(b"ARM\x64");
    fs::write(&path, start).expect("a file");
    File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    for command in ["kernel", "layout", "explain", "advise"] {
        refusal(&[command.to_owned(), path.to_str().unwrap().to_owned()]);
    }
}
