//! System calls that a program makes without the C library's function for them: processes, programs in memory, and a
//! limit of the address space are seen and noticed by nobody but Lineup.

use super::program::{Program, X86_64, c, lineup_record};
use crate::installed::lineup;
use serde_json::Value;

/// Calls `work` here, and where the argument says so in a process, or in a program that lies in memory.
const SOURCE: &str = r#"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <linux/sched.h>
    #include <signal.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/resource.h>
    #include <sys/syscall.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static volatile long cell;
    __attribute__((noinline)) void work(long n) { cell += n; }
    static void times(long calls) { for (long n = 0; n < calls; n++) work(n); }
    extern char **environ;
    int main(int count, char **words) {
        if (!strcmp(words[1], "memory")) {
            char bytes[4096], *last[] = { words[0], "here", 0 };
            int from = open(words[0], O_RDONLY), to = memfd_create("copy", 0);
            for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;) if (write(to, bytes, got) != got) return 1;
            return fexecve(to, last, environ);
        }
        if (!strcmp(words[1], "limit")) {
            struct rlimit wanted = { 300 << 20, 300 << 20 }, seen;
            if (setrlimit(RLIMIT_AS, &wanted) || getrlimit(RLIMIT_AS, &seen)) return 2;
            volatile char *large = malloc(64 << 20);
            if (!large) return 3;
            for (long at = 0; at < 64 << 20; at += 1 << 20) large[at] = 1;
            printf("limit %lu\n", (unsigned long)seen.rlim_cur);
        }
        times(50);
        if (!strcmp(words[1], "clone3")) {
            struct clone_args how = { .exit_signal = SIGCHLD };
            long made = syscall(SYS_clone3, &how, sizeof how);
            times(made ? 0 : 20);
            if (!made) _exit(0);
        }
        if (!strcmp(words[1], "clone")) {
            long made = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
            times(made ? 0 : 20);
            if (!made) _exit(0);
        }
        while (wait(0) > 0);
        printf("done %ld\n", (long)cell);
        return 0;
    }
"#;

fn program() -> Program {
    c(X86_64, SOURCE, &[])
}

#[test]
fn processes_that_a_program_makes_by_the_function_for_any_call_are_counted() {
    let program = program();
    for how in ["clone", "clone3"] {
        let options = ["--json", "--engine", "native", "--region", "work", "--", "./program", how];
        let output = lineup_record(program.folder.path(), &options);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let notes = report["notes"].to_string();
        let right = "a process was forked off; calls of these functions there, not recorded: 20";
        assert!(notes.contains(right), "{how}: {notes}");
        assert_eq!(report["regions"][0]["seen"], 50, "{how}: {report}");
    }
}

#[test]
fn a_program_in_memory_is_named() {
    let program = program();
    let output = lineup_record(
        program.folder.path(),
        &["--engine", "native", "--region", "work", "--", "./program", "memory"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("it started /memfd:copy (deleted), which is not recorded"), "{said}");
}

#[test]
fn findings_say_that_processes_were_forked_off() {
    let program = program();
    let mut find = lineup();
    find.current_dir(program.folder.path()).args([
        "find",
        "--no-clock",
        "--engine",
        "native",
        "--",
        "./program",
        "clone3",
    ]);
    let output = find.output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let right = "a process was forked off and is not counted, and waits between processes for memory that they share are not seen";
    assert_eq!(said.matches(right).count(), 1, "{said}");
    let (before, _) = said.split_once(right).expect("the note");
    assert!(!before.contains("instructions;"), "it comes first: {said}");
}

#[test]
fn a_limit_of_the_address_space_is_of_the_programs_own_memory() {
    let program = program();
    let ways: [&[&str]; 4] = [
        &["record", "--whole-program"],
        &["record", "--engine", "native", "--region", "work"],
        &["find", "--no-clock", "--engine", "native"],
        &["time", "--region", "work"],
    ];
    for way in ways {
        let mut command = lineup();
        command.current_dir(program.folder.path()).args(way).args(["--", "./program", "limit"]);
        let output = command.output().expect("lineup runs");
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{way:?}: {said}");
        assert!(said.contains("limit 314572800\n") && said.contains("done 1225\n"), "{way:?}: {said}");
    }
}

#[test]
fn a_region_is_named_once() {
    let program = program();
    let refused = |regions: &[&str]| {
        let names = regions.iter().flat_map(|name| ["--region", name]);
        let options: Vec<&str> = names.chain(["--", "./program", "here"]).collect();
        let output = lineup_record(program.folder.path(), &options);
        assert_eq!(output.status.code(), Some(2), "{regions:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["work", "work"]).contains("the region work is named twice; name it once"));
    assert!(refused(&["work", ""]).contains("a region has no name; --region FUNCTION gives one"));
}
