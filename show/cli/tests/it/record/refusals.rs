//! Programs and functions that cannot be recorded: a clear message, exit status 2, nothing lost.

use super::program::{Program, X86_64, c, lineup_record};
use crate::installed::lineup;
use lineup_recording::read_all;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const SOURCE: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile int cell[4];
static inline __attribute__((always_inline)) int folded(int n) { return n * cell[0]; }
__attribute__((noinline)) int region(int n) { cell[1] = n; return folded(n); }
int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "never")) return 0;
    for (int n = 0; n < 5; n++) region(n);
    if (argc > 1 && !strcmp(argv[1], "crash")) *(volatile int *)0 = 1;
    if (argc > 1 && !strcmp(argv[1], "abort")) abort();
    if (argc > 1 && !strcmp(argv[1], "kill")) raise(SIGKILL);
    return argc > 1 ? 3 : 0;
}
"#;

/// Runs, expects exit status 2, and returns the message.
fn refused(program: &Program, arguments: &[&str]) -> String {
    let output = lineup_record(program.folder.path(), arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

#[test]
fn a_program_that_is_not_there_stripped_or_foreign() {
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    assert!(
        refused(&program, &["--region", "region", "--", "./nothing"])
            .contains("cannot read the program ./nothing")
    );
    std::fs::write(folder.join("text"), "#!/bin/sh\n").expect("a file");
    assert!(refused(&program, &["--region", "region", "--", "./text"]).contains("chmod +x"));
    let strip = Command::new("strip").current_dir(folder).args(["-o", "stripped", "program"]).status();
    assert!(strip.expect("cannot run strip; install it: apt install binutils").success());
    let said = refused(&program, &["--region", "region", "--", "./stripped"]);
    assert!(said.contains("debug info"), "{said}");
    assert!(!folder.join("lineup.rec").exists());
}

#[test]
fn an_unknown_region_comes_with_near_names_and_an_inlined_one_with_its_callers() {
    let program = c(X86_64, SOURCE, &["-static"]);
    let said = refused(&program, &["--region", "regoin", "--", "./program"]);
    assert!(said.contains("no function regoin") && said.contains("region"), "{said}");
    let said = refused(&program, &["--region", "folded", "--", "./program"]);
    assert!(said.contains("inlined into region"), "{said}");
}

/// The message has the facts on a name, not the tools that could be installed.
#[test]
fn a_region_that_is_nowhere_is_explained_where_there_is_no_emulator() {
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    let script = folder.join("run.sh");
    std::fs::write(&script, "#!/bin/sh\n./program\n").expect("a file");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a script");
    let strip = Command::new("strip").current_dir(folder).args(["-o", "stripped", "program"]).status();
    assert!(strip.expect("cannot run strip; install it: apt install binutils").success());
    for (region, started, words) in [
        ("regoin", "./program", &["no function regoin", "near names: region"][..]),
        ("entirely_other", "./program", &["no function entirely_other in", "nm -C", "--children"]),
        ("region", "./run.sh", &["runs the script ./run.sh", "--children", "--program"]),
        ("region", "./stripped", &["no debug information", "-g", "--children"]),
    ] {
        let mut command = lineup();
        command
            .current_dir(folder)
            .env("PATH", "/nowhere")
            .args(["record", "--region", region, "--", started]);
        let output = command.output().expect("running lineup");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
        assert!(!said.contains("qemu"), "{said}");
    }
}

#[test]
fn a_region_without_a_call_leaves_the_summary_of_the_others() {
    let source = r#"
        #include <stdio.h>
        long untyped(long);
        __asm__(".text\nuntyped:\n lea 1(%rdi),%rax\n ret\n .balign 16\n");
        __attribute__((noinline)) void never(void) { puts("never"); }
        int main(int argc, char **argv) {
            long sum = 0;
            for (int n = 0; n < 7; n++) sum += untyped(n);
            if (argc > 5) never();
            return sum != 28;
        }
    "#;
    let program = c(X86_64, source, &[]);
    let output = lineup_record(
        program.folder.path(),
        &["--region", "untyped", "--region", "never", "--", "./program"],
    );
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{err}");
    assert!(out.contains("untyped: 7 calls recorded of 7 made"), "{out}");
    assert!(out.contains("note: the program ended without a call of never"), "{out}");
}

#[test]
fn a_region_that_is_never_called() {
    let program = c(X86_64, SOURCE, &[]);
    for mode in [&[][..], &["--one-pass"]] {
        let arguments = [&["--region", "region"], mode, &["--", "./program", "never"]].concat();
        let said = refused(&program, &arguments);
        assert!(said.contains("without a call of region"), "{said}");
    }
}

#[test]
fn a_call_that_was_inlined_or_that_the_time_did_not_reach_is_explained() {
    let source = r#"
        #include <unistd.h>
        volatile int cell;
        int copied(int n) { return n * cell; }
        __attribute__((noinline)) void late(void) { cell = 1; }
        int main(int argc, char **argv) {
            if (argc > 1) sleep(100);
            late();
            return copied(argc);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let forbids =
        "inlined into main, and such copies are not recorded: record main, or forbid inlining copied";
    let in_time = ["--engine", "native", "--max-seconds", "0.3"];
    for engine in [&["--engine", "native"][..], &["--engine", "qemu"]] {
        let said = refused(&program, &[engine, &["--region", "copied", "--", "./program"]].concat());
        assert!(said.contains("without a call of copied") && said.contains(forbids), "{said}");
    }
    let said = refused(&program, &[&in_time[..], &["--region", "late", "--", "./program", "wait"]].concat());
    assert!(
        said.contains("after the time of --max-seconds, before it called late; give it more time"),
        "{said}"
    );
    for (way, why) in
        [(&["--region", "copied"][..], forbids), (&["--region", "late", "--max-seconds", "0.3"], "give it")]
    {
        let mut time = lineup();
        time.current_dir(program.folder.path()).arg("time").args(way).args(["--", "./program"]);
        time.args((way.len() > 2).then_some("wait"));
        let output = time.output().expect("lineup runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
}

#[test]
fn limits_that_leave_nothing_to_record_are_refused() {
    let program = c(X86_64, SOURCE, &[]);
    let said = refused(&program, &["--region", "region", "--calls", "0", "--", "./program"]);
    assert!(said.contains("--calls"), "{said}");
    for engine in ["native", "qemu"] {
        let few = ["--engine", engine, "--region", "region", "--warmup", "100000", "--", "./program"];
        let said = refused(&program, &few);
        let why =
            "no call of region was recorded: the program made 5, and --warmup leaves the first 100,000 out";
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn an_output_that_cannot_be_written() {
    let program = c(X86_64, SOURCE, &[]);
    let said = refused(&program, &["--region", "region", "--out", "none/x.rec", "--", "./program"]);
    assert!(said.contains("cannot write the recording none/x.rec"), "{said}");
}

#[test]
fn a_refusal_leaves_an_older_recording_alone() {
    let program = c(X86_64, SOURCE, &["-static"]);
    let recording = program.folder.path().join("lineup.rec");
    std::fs::write(&recording, "older").expect("a file");
    refused(&program, &["--region", "regoin", "--", "./program"]);
    refused(&program, &["--region", "region", "--", "./program", "never"]);
    assert_eq!(std::fs::read(&recording).expect("the file"), b"older");
}

#[test]
fn what_was_recorded_before_a_crash_is_kept() {
    let program = c(X86_64, SOURCE, &[]);
    for (how, signal) in [("crash", "SIGSEGV"), ("abort", "SIGABRT"), ("kill", "SIGKILL")] {
        let said = refused(&program, &["--region", "region", "--", "./program", how]);
        assert!(said.contains(&format!("ended by {signal}")) && said.contains("lineup explain"), "{said}");
        let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
        assert_eq!(read_all(&bytes).expect("a readable recording").calls.len(), 5, "{how}");
        let mut explain = Command::new(env!("CARGO_BIN_EXE_lineup"));
        let explained = explain.current_dir(program.folder.path()).args(["explain", "lineup.rec"]).output();
        assert!(explained.expect("running lineup").status.success());
    }
}

#[test]
fn a_failing_program_is_recorded_and_its_status_told() {
    let program = c(X86_64, SOURCE, &[]);
    let output =
        lineup_record(program.folder.path(), &["--region", "region", "--json", "--", "./program", "other"]);
    assert!(output.status.success());
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema"], "lineup.record/1");
    assert_eq!(report["exit_status"], 3);
    assert_eq!(report["regions"][0]["recorded"], 5);
}

#[test]
fn a_recording_cut_at_any_byte_gives_what_stands_before() {
    let program = c(X86_64, SOURCE, &[]);
    program.record(&["--region", "region"]);
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    let whole = read_all(&bytes).expect("a readable recording");
    for length in 0..bytes.len() {
        // Too short for the header is an error that says so; anything else gives a beginning of the calls.
        if let Ok(part) = read_all(&bytes[..length]) {
            assert!(whole.calls.starts_with(&part.calls), "cut at {length}");
        }
    }
}

/// The state of Debian 13.
#[test]
fn an_emulator_without_plugins_is_named_before_anything_runs() {
    let program = c(X86_64, "int main(void) { return 0; }", &[]);
    let folder = program.folder.path();
    let emulator = folder.join("qemu-x86_64");
    std::fs::write(&emulator, "#!/bin/sh\necho 'qemu-x86_64 version 10.0.13'\n").expect("a script");
    std::fs::set_permissions(&emulator, std::fs::Permissions::from_mode(0o755)).expect("its rights");
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").expect("PATH"));
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.current_dir(folder).env("PATH", path);
    lineup.args(["record", "--engine", "qemu", "--region", "main", "--", "./program"]);
    let output = lineup.output().expect("running lineup");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.contains("qemu-x86_64 was built without plugins")),
        (Some(2), true),
        "{said}"
    );
}
