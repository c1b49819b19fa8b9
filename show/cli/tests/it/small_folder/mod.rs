//! A disk that is soon full.

use std::path::Path;
use std::process::{Command, Output};

/// Runs a command with a file system of this many KiB at `folder`, in a namespace of its own. `None`, with a message,
/// where this system does not allow that. After `command` ends, a shell runs `and_then` there.
pub(crate) fn with_small_folder(
    folder: &Path,
    kib: u32,
    command: &Command,
    and_then: &str,
) -> Option<Output> {
    let script = format!(
        "mount -t tmpfs -o size={kib}k none \"$0\" || exit 77; \"$@\"; status=$?; {and_then}; exit $status"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script]).arg(folder);
    unshare.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        unshare.env(name, value.expect("a value"));
    }
    if let Some(directory) = command.get_current_dir() {
        unshare.current_dir(directory);
    }
    let output = unshare.output().expect("cannot run unshare; install it: apt install util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || said.contains("unshare: ") {
        assert!(std::env::var_os("CI").is_none(), "no small file system can be mounted: {said}");
        eprintln!("skipped: no small file system can be mounted here: {said}");
        return None;
    }
    Some(output)
}
