//! The time of a command.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// The time of a run.
#[derive(Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall: Duration,
    /// User and system time of the command and of the processes that it waited for.
    pub(crate) processor: Duration,
}

/// Times one run, whose output is thrown away. `package` provides the command.
pub(crate) fn measure(command: &[&str], folder: &Path, package: &str) -> Took {
    let begun = Instant::now();
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| {
            panic!("cannot run {}: {error}; install it: apt install {package}", command[0])
        });
    let run = child.wait4().expect("waiting for a command");
    assert!(run.status.success(), "{command:?} failed");
    Took { wall: begun.elapsed(), processor: run.rusage.utime + run.rusage.stime }
}

/// In seconds.
pub(crate) fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}
