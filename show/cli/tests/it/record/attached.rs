//! `--pid`: a running process is recorded and timed, and continues as if nothing had happened.
//!
//! `LINEUP_ATTACHMENTS=N` sets the number of attachments.

use super::program::{Program, X86_64, c};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A program that is ended when the test is.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Running {
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Running(pipes.spawn().expect("starting a program"))
    }

    /// Ends it by a line, and returns its output.
    pub(crate) fn ended(mut self) -> String {
        self.0.stdin.take().expect("a pipe").write_all(b"\n").expect("telling it to end");
        let mut printed = String::new();
        self.0.stdout.take().expect("a pipe").read_to_string(&mut printed).expect("its output");
        assert!(self.0.wait().expect("its end").success(), "{printed}");
        printed
    }

    pub(crate) fn maps(&self) -> String {
        std::fs::read_to_string(format!("/proc/{}/maps", self.0.id())).expect("its maps")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn lineup(folder: &Path, command: &str, process: u32, options: &[&str]) -> Output {
    // Builds the engine.
    super::program::lineup_record(folder, &["--region", "main", "--", "./nothing"]);
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.args([command, "--json", "--pid", &process.to_string()]).args(options);
    lineup.current_dir(folder).output().expect("running lineup")
}

pub(crate) fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn server() -> (Program, Running) {
    let program = c(X86_64, include_str!("attached.c"), &[]);
    let running = Running::start(&mut Command::new(program.folder.path().join("program")));
    (program, running)
}

#[test]
fn nothing_is_lost_however_often_a_process_under_load_is_attached_to() {
    let (program, running) = server();
    let rounds = std::env::var("LINEUP_ATTACHMENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(8);
    let (folder, process) = (program.folder.path(), running.0.id());
    let mut recorded = 0;
    for round in 0..rounds {
        if round % 4 == 3 {
            let drawn = ["--intervene", "flush_both", "--intervene-every", "3"];
            let options = [&["--region", "work", "--stop-after", "100"][..], &drawn].concat();
            let timed = report(&lineup(folder, "time", process, &options));
            let region = &timed["regions"][0];
            let (calls, drawn) = (region["calls"].as_u64(), region["interventions"]["drawn"].as_u64());
            assert!(drawn > Some(0) && calls.zip(drawn).is_some_and(|(a, b)| a + b >= 100), "{timed}");
            continue;
        }
        let calls = ["--region", "work", "--region", "spin", "--calls", "50", "--first"];
        let report = report(&lineup(folder, "record", process, &calls));
        // Some of the fifty may have been made just before the engine counted.
        assert!(report["regions"][0]["seen"].as_u64() > Some(0), "{report}");
        recorded += report["regions"][0]["recorded"].as_u64().unwrap_or_default();
        assert_eq!(report["exit_status"], Value::Null);
    }
    assert!(recorded > 0);
    let maps = running.maps();
    assert!(!maps.contains("lineup"), "{maps}");
    let printed = running.ended();
    eprintln!("{rounds} attachments: {printed}");
    for none in ["wrong 0\n", "interrupted 0\n", "early 0\n", "lost signals 0\n"] {
        assert!(printed.contains(none), "{none}: {printed}");
    }
}

#[test]
fn calls_of_an_attached_process_are_those_of_one_that_is_started() {
    let source = r#"
        #include <stdio.h>
        static volatile long table[64];
        __attribute__((noinline)) long hot(long x) { long sum = 0; for (int i = 0; i < 5; i++) sum += table[(x + i) & 7]; return sum; }
        int main(int count, char **words) { volatile long sum = 0; puts("runs"); fflush(stdout); for (long i = 0; count > 1 || i < 1000; i++) sum += hot(i & 1); }
    "#;
    let program = c(X86_64, source, &[]);
    let started = program.record(&["--engine", "native", "--region", "hot", "--calls", "20"]);
    let mut running = Running::start(Command::new(program.folder.path().join("program")).arg("on"));
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("its first line");
    let folder = program.folder.path();
    let options = ["--region", "hot", "--calls", "20", "--first", "--warmup", "7"];
    report(&lineup(folder, "record", running.0.id(), &options));
    let bytes = std::fs::read(folder.join("lineup.rec")).expect("the recording");
    let recording = lineup_recording::read_all(&bytes).expect("a readable recording");
    let sizes = |calls: &[lineup_model::access::Call]| {
        let mut all: Vec<_> = calls.iter().map(|call| (call.instructions, call.accesses.len())).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    assert_eq!(sizes(&recording.calls), sizes(started.calls()));
    assert!(recording.calls.len() >= 19, "{}", recording.calls.len());
}

#[test]
fn only_so_many_calls_a_second_are_recorded_spread_over_all() {
    let (program, running) = server();
    let (folder, process) = (program.folder.path(), running.0.id());
    let options = ["--region", "work", "--calls-per-second", "200", "--stop-after", "5000"];
    let begun = std::time::Instant::now();
    let report = report(&lineup(folder, "record", process, &options));
    let region = &report["regions"][0];
    let (recorded, seen) = (region["recorded"].as_u64().unwrap_or(0), region["seen"].as_u64().unwrap_or(0));
    // The attachment lasted no longer than all of this. An unused allowance is kept for a moment.
    let most = 200.0 * begun.elapsed().as_secs_f64() + 11.0;
    assert!(seen >= 5000 && recorded > 0 && recorded as f64 <= most, "{most}: {report}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("at most 200 calls of each function were recorded in a second"), "{notes}");
    assert!(notes.contains("no thread of the process stood still for longer than"), "{notes}");
    let bytes = std::fs::read(folder.join("lineup.rec")).expect("the recording");
    let calls = lineup_recording::read_all(&bytes).expect("a readable recording").calls;
    // Not only the first ones: others were passed over in between. Their number depends on the machine's load.
    let last = calls.iter().map(|call| call.sequence).max().unwrap_or(0);
    assert!(last > recorded + 10, "{last} of {seen}, {recorded} recorded");
    let printed = running.ended();
    assert!(printed.contains("wrong 0\n"), "{printed}");
}

/// Once the memory of an engine that a process could not be rid of was unmapped by a later attachment, which ended the
/// process.
#[test]
fn a_process_that_could_not_be_left_is_not_attached_to_again_and_goes_on() {
    let source = r#"
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <unistd.h>
        static void on_signal(int signal) { for (;;) usleep(1000); }
        static void *sleeps(void *nothing) { for (;;) pause(); }
        __attribute__((noinline)) int work(int x) { raise(SIGUSR1); return x + 1; }
        int main(void) {
            signal(SIGUSR1, on_signal);
            pthread_t sleeper;
            pthread_create(&sleeper, 0, sleeps, 0);
            puts("runs");
            fflush(stdout);
            // The first byte of the jump that leads to the engine.
            while (*(volatile unsigned char *)work != 0xe9) usleep(1000);
            usleep(500000);
            return work(1);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let mut running = Running::start(&mut Command::new(program.folder.path().join("program")));
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("its first line");
    let (folder, process) = (program.folder.path(), running.0.id());
    let first = report(&lineup(folder, "record", process, &["--region", "work", "--max-seconds", "3"]));
    assert!(first["notes"].to_string().contains("stay mapped in it, and nothing leads there"), "{first}");
    let mapped = running.maps().lines().count();
    for _ in 0..3 {
        let again = lineup(folder, "record", process, &["--region", "work", "--max-seconds", "0.1"]);
        let said = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(again.status.code() == Some(2) && said.contains("from the time before"), "{said}");
    }
    assert_eq!(running.maps().lines().count(), mapped, "{}", running.maps());
    assert!(running.0.try_wait().expect("its state").is_none());
}

/// A server's manager may leave it so for a while.
#[test]
fn a_process_that_ends_and_is_not_waited_for_has_ended() {
    let source = r#"
        #include <stdio.h>
        #include <unistd.h>
        __attribute__((noinline)) int work(int x) { return x * 13 % 7 + 1; }
        int main(void) {
            puts("runs");
            fflush(stdout);
            // The first byte of the jump that leads to the engine.
            while (*(volatile unsigned char *)work != 0xe9) usleep(1000);
            usleep(500000);
            return work(2);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let mut running = Running::start(&mut Command::new(program.folder.path().join("program")));
    let mut line = String::new();
    BufReader::new(running.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("its first line");
    let (folder, process) = (program.folder.path(), running.0.id());
    let report = report(&lineup(folder, "record", process, &["--region", "work", "--max-seconds", "60"]));
    assert!(report["notes"].to_string().contains("the process ended while it was watched"), "{report}");
    assert_eq!(report["regions"][0]["seen"], 1);
    assert_eq!(running.0.wait().expect("its end").code(), Some(6));
}

#[test]
fn what_cannot_be_attached_to_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let source =
        "#include <unistd.h>\n#include <signal.h>\nint main(void) { signal(SIGSEGV, SIG_IGN); pause(); }";
    let ignores = c(X86_64, source, &[]);
    let waits = "#include <unistd.h>\nint main(void) { for (;;) pause(); }";
    let is_static = c(X86_64, waits, &["-static"]);
    let plain = c(X86_64, waits, &[]);
    let start = |program: &Program| {
        let running = Running::start(&mut Command::new(program.folder.path().join("program")));
        let exe = format!("/proc/{}/stat", running.0.id());
        // It has begun when it waits.
        while !std::fs::read_to_string(&exe).is_ok_and(|stat| stat.contains("(program) S")) {}
        running
    };
    let refused = |process: u32, why: &str| {
        let output = lineup(folder.path(), "record", process, &["--region", "main"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains(why)), (Some(2), true), "{said}");
    };
    refused(start(&is_static).0.id(), "linked statically");
    refused(start(&ignores).0.id(), "ignores SIGSEGV");
    refused(u32::MAX >> 2, "there is no process");
    let stopped = start(&plain);
    let pid = rustix::process::Pid::from_child(&stopped.0);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopping it");
    while !std::fs::read_to_string(format!("/proc/{}/stat", stopped.0.id()))
        .is_ok_and(|stat| stat.contains(") T"))
    {}
    refused(stopped.0.id(), "it is stopped");
    let quiet = start(&plain);
    let output = lineup(folder.path(), "record", quiet.0.id(), &["--region", "main", "--max-seconds", "0.1"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("made no call of main"), "{said}");
    let output = lineup(folder.path(), "time", quiet.0.id(), &["--region", "nowhere"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("nowhere"), "{said}");
    let maps = quiet.maps();
    assert!(!maps.contains("lineup"), "{maps}");
}
