//! Programs that go to the background in ways that leave no trace of their origin: their work there is waited for or
//! ended all the same.

use crate::children::{Place, calls, said};
use serde_json::Value;
use std::fs;

/// Calls `work`, ends, and continues in the background: in a process at the end of a chain, where each makes the next
/// and ends at once. The last has a session of its own, an empty environment, no open file, and writes a file.
const DAEMON: &str = r#"
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
volatile long cell;
__attribute__((noinline)) void work(long n) { cell += n; }
static long seconds(void) { struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now); return now.tv_sec; }
int main(int count, char **arguments) {
    if (!strcmp(arguments[1], "last")) {
        int file = open(arguments[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        return write(file, "done", 4) != 4;
    }
    for (long n = 0; n < 10; n++) work(n);
    if (fork()) return 0;
    setsid();
    for (int file = 0; file < 64; file++) close(file);
    if (!strcmp(arguments[1], "endless")) {
        for (long begun = seconds(); seconds() - begun < 60;) if (fork()) _exit(0);
        return 0;
    }
    for (long left = atol(arguments[1]); left > 0; left--) if (fork()) _exit(0);
    char *last[] = {arguments[0], "last", arguments[2], 0}, *nothing[] = {0};
    pid_t made;
    if (strcmp(arguments[3], "spawn")) return execve(last[0], last, nothing);
    return posix_spawn(&made, last[0], 0, 0, last, nothing);
}
"#;

#[test]
fn a_daemon_is_waited_for_however_it_came_to_be() {
    let place = Place::new(&[("daemon", DAEMON)]);
    let ways: [&[&str]; 4] = [
        &["record", "--engine", "native", "--region", "work"],
        &["record", "--engine", "native", "--children", "--region", "work"],
        &["time", "--region", "work"],
        &["find", "--no-clock", "--engine", "native", "--out", "find.rec"],
    ];
    for (number, way) in ways.iter().enumerate() {
        for (how, chain) in [("exec", "0"), ("spawn", "1"), ("exec", "100")] {
            let file = format!("{number}{how}{chain}");
            let rest = ["--leftovers", "wait", "--", "./daemon", chain, &file, how];
            let output = place.lineup(&[*way, &rest[..]].concat());
            assert!(output.status.success(), "{way:?}: {}", said(&output));
            assert_eq!(
                fs::read(place.folder().join(&file)).ok().as_deref(),
                Some(&b"done"[..]),
                "{way:?} {how}"
            );
        }
    }
    place.assert_clean();
}

#[test]
fn a_chain_of_processes_that_never_ends_is_ended() {
    let place = Place::new(&[("daemon", DAEMON)]);
    for rule in [&["--leftovers", "end"][..], &["--leftovers", "wait", "--max-seconds", "1"]] {
        let rest = ["--region", "work", "--engine", "native"];
        let report = place.record(&[&rest, rule, &["--", "./daemon", "endless"]].concat());
        assert_eq!(calls(&report), (10, 10));
        assert_eq!(report["exit_status"], 0);
        place.assert_clean();
    }
}

/// A script that removes the variable by which the engine is loaded loses its programs; whichever way it does so, they
/// are named.
#[test]
fn a_program_that_the_engine_did_not_come_to_is_named() {
    let worker = r#"
        volatile long cell;
        __attribute__((noinline)) void work(long n) { cell += n; }
        int main(void) { for (long n = 0; n < 10; n++) work(n); return 0; }
    "#;
    let place =
        Place::new(&[("worker", worker), ("shim", "int main(void) { return 0; } void nothing(void) {}")]);
    place.run("gcc", &["-shared", "-fPIC", "-o", "shim.so", "shim.c"]);
    let scripts = [
        ("set.sh", "#!/bin/sh\nLD_PRELOAD=./shim.so exec ./worker\n", "worker"),
        ("cleared.sh", "#!/bin/sh\nexec env -i ./worker\n", "worker"),
        ("unset.sh", "#!/bin/sh\nunset LD_PRELOAD\n./worker\n", "worker"),
        ("outer.sh", "#!/bin/sh\nexec env -i ./plain.sh\n", "plain.sh"),
    ];
    place.write("plain.sh", "#!/bin/sh\n./worker\n");
    for (name, text, lost) in scripts {
        place.write(name, text);
        let script = format!("./{name}");
        for way in [&["record", "--engine", "native", "--children"][..], &["time", "--children"]] {
            let output = place.lineup(&[way, &["--region", "work", "--", &script]].concat());
            let said = said(&output);
            assert_eq!(output.status.code(), Some(2), "{way:?} {name}: {said}");
            assert!(said.contains(lost) && said.contains("LD_PRELOAD"), "{way:?} {name}: {said}");
        }
    }
    let kept = "#!/bin/sh\nLD_PRELOAD=$LD_PRELOAD:./shim.so exec ./worker\n";
    place.write("kept.sh", kept);
    let report: Value =
        place.record(&["--engine", "native", "--children", "--region", "work", "--", "./kept.sh"]);
    assert_eq!(calls(&report), (10, 10));
}
