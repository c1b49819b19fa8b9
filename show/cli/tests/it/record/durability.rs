//! Whatever ends a recording, it has the calls that had ended by then.

use super::program::{Program, X86_64, c, lineup_record};
use crate::small_folder::with_small_folder;
use lineup_recording::{Recording, read_all};
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: usize = 20_000;

const SOURCE: &str = r#"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
volatile unsigned cell[4096];
static unsigned random_place(void) { static unsigned long x = 88172645463325252; x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x % 4096; }
__attribute__((noinline, noclone)) void region(int n) { for (int i = 0; i < 20; i++) cell[random_place()] = n; }
int main(int argc, char **argv) {
    for (int n = 0; n < 20000; n++) region(n);
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "crash")) *(volatile int *)0 = 1;
    if (!strcmp(how, "pause")) pause();
    // It, or its emulator, is killed from outside.
    if (!strcmp(how, "killed")) { if (!fork()) { kill(getppid(), SIGKILL); _exit(0); } pause(); }
    return 0;
}
"#;

/// Ways to record in one run.
#[cfg(target_arch = "x86_64")]
const ONE_RUN: &[&[&str]] = &[&["--one-pass"], &["--engine", "native"]];
#[cfg(not(target_arch = "x86_64"))]
const ONE_RUN: &[&[&str]] = &[&["--one-pass"]];

fn recording(program: &Program) -> Recording {
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    read_all(&bytes).expect("a readable recording")
}

fn check(recording: &Recording) {
    assert_eq!(recording.damage, None);
    let sequences: Vec<u64> = recording.calls.iter().map(|call| call.sequence).collect();
    assert_eq!(sequences, (0..CALLS as u64).collect::<Vec<_>>());
    let summary = recording.summary.as_ref().expect("a summary");
    assert_eq!((summary.regions[0].seen, summary.regions[0].recorded), (CALLS as u64, CALLS as u64));
    assert!(recording.ending.is_some());
}

#[test]
fn a_crash_and_a_violent_death_keep_every_call_that_ended() {
    let program = c(X86_64, SOURCE, &[]);
    for how in ["crash", "killed"] {
        for mode in [&[&[][..]], ONE_RUN].concat() {
            let arguments = [&["--region", "region"], mode, &["--", "./program", how]].concat();
            let output = lineup_record(program.folder.path(), &arguments);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(2), "{how} {said}");
            assert!(said.contains("ended by SIG"), "{how} {said}");
            let summary = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(summary.contains("region: 20,000 calls recorded of 20,000 made"), "{how} {summary}");
            check(&recording(&program));
        }
    }
}

#[test]
fn an_interrupt_keeps_every_call_that_ended() {
    ONE_RUN.iter().for_each(|way| interrupt(way));
}

fn interrupt(way: &[&str]) {
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    // Builds the recorder.
    lineup_record(folder, &["--region", "region", "--", "./nothing"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.arg("record").args(way).args(["--region", "region", "--", "./program", "pause"]);
    let child = command.current_dir(folder).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.expect("running lineup");
    let begun = Instant::now();
    while !folder.join("ready").exists() {
        assert!(begun.elapsed() < Duration::from_secs(300), "the program never came so far");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a signal to lineup");
    let output = child.wait_with_output().expect("the end of lineup");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(said.contains("20000 calls were recorded until then and are kept in lineup.rec"), "{said}");
    check(&recording(&program));
}

#[test]
fn a_full_disk_is_told_and_what_was_written_is_kept() {
    [&[&[][..]], ONE_RUN].concat().into_iter().for_each(fill);
}

fn fill(way: &[&str]) {
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    lineup_record(folder, &["--region", "region", "--", "./nothing"]);
    let small = folder.join("small");
    std::fs::create_dir(&small).expect("a folder");
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup
        .arg("record")
        .args(way)
        .args(["--region", "region", "--out", "small/x.rec", "--", "./program"])
        .current_dir(folder);
    let Some(output) = with_small_folder(&small, 1100, &lineup, "cp small/x.rec lineup.rec") else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.contains("what was written until then is kept in small/x.rec"), "{said}");
    let kept = recording(&program);
    assert!(!kept.calls.is_empty() && kept.calls.len() < CALLS, "{said}");
    let sequences: Vec<u64> = kept.calls.iter().map(|call| call.sequence).collect();
    assert_eq!(sequences, (0..kept.calls.len() as u64).collect::<Vec<_>>());
}
