//! A recorded program and all that it starts: forked, by `exec`, in the background, as a daemon.

use crate::installed;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Serves on the Unix socket that its first argument names, a call of `handle` for each byte, until a `q`. The members
/// that a call needs lie on three lines.
const SERVER: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
struct session { long hits; char name[56]; long bytes; char peer[56]; long last; };
static struct session *sessions;
__attribute__((noinline)) long handle(int n) {
    struct session *session = &sessions[n % 8];
    session->hits++; session->bytes += n; session->last = session->hits ^ session->bytes;
    return session->last;
}
int main(int count, char **arguments) {
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    int end = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte;
    sessions = calloc(8, sizeof *sessions);
    unlink(at.sun_path);
    if (count > 2 && daemon(1, 1)) return 2;
    if (bind(end, (void *)&at, sizeof at) || listen(end, 4)) return 3;
    for (int n = 0;;) {
        int peer = accept(end, 0, 0);
        while (read(peer, &byte, 1) == 1) {
            if (byte == 'q') return 0;
            handle(n++);
            if (write(peer, &byte, 1) != 1) break;
        }
        close(peer);
    }
}
"#;

/// Sends 50 bytes to the socket that its first argument names, as soon as there is one, and then its second argument.
const CLIENT: &str = r#"
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
int main(int count, char **arguments) {
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    for (int attempt = 0; attempt < 1000; attempt++) {
        int end = socket(AF_UNIX, SOCK_STREAM, 0);
        char byte = 'x';
        if (connect(end, (void *)&at, sizeof at)) { close(end); usleep(20000); continue; }
        for (int n = 0; n < 50; n++) if (write(end, &byte, 1) != 1 || read(end, &byte, 1) != 1) return 2;
        if (count > 2) write(end, arguments[2], 1);
        return 0;
    }
    return 1;
}
"#;

/// Calls `work` as often as its argument says.
const WORKER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
volatile long cell;
__attribute__((noinline)) void work(long n) { cell += n; }
int main(int count, char **arguments) {
    for (long n = atol(arguments[1]); n > 0; n--) work(n);
    return 0;
}
"#;

/// A folder with programs, and a folder for temporary files.
pub(crate) struct Place {
    root: TempDir,
}

impl Place {
    /// Programs by name, from sources in C.
    pub(crate) fn new(programs: &[(&str, &str)]) -> Place {
        let place = Place { root: tempfile::tempdir().expect("a folder") };
        fs::create_dir(place.folder()).expect("a folder");
        fs::create_dir(place.temporary()).expect("a folder");
        let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
        let mut makefile = format!("all: {}\n", names.join(" "));
        for (name, source) in programs {
            place.write(&format!("{name}.c"), source);
            makefile += &format!("{name}: {name}.c\n\tgcc -g -O2 -o {name} {name}.c\n");
        }
        place.write("Makefile", &makefile);
        let made = Command::new("make").arg("-s").current_dir(place.folder()).status().expect("make runs");
        assert!(made.success());
        place
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.root.path().join("source")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.path().join("temporary")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.folder().join(name);
        fs::write(&path, text).expect("a file");
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("rights");
    }

    pub(crate) fn run(&self, program: &str, arguments: &[&str]) {
        let status = Command::new(program).args(arguments).current_dir(self.folder()).status();
        assert!(status.expect("it runs").success(), "{program} {arguments:?}");
    }

    pub(crate) fn lineup(&self, arguments: &[&str]) -> Output {
        let mut lineup = installed::lineup();
        lineup.args(arguments).current_dir(self.folder()).env("TMPDIR", self.temporary());
        lineup.stdin(Stdio::null()).output().expect("lineup runs")
    }

    /// Records and returns the summary.
    pub(crate) fn record(&self, arguments: &[&str]) -> Value {
        json(&self.lineup(&[&["record", "--json"], arguments].concat()))
    }

    /// The folder for temporary files is empty, and no process of this place runs.
    pub(crate) fn assert_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left = fs::read_dir(self.temporary()).expect("the folder").count();
            let processes = processes_in(self.root.path());
            if left == 0 && processes.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "{left} files and {processes:?} left behind");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Command lines of processes that name the folder or are in it.
fn processes_in(folder: &Path) -> Vec<String> {
    let name = folder.to_str().expect("a name");
    let processes = fs::read_dir("/proc").expect("/proc").flatten().filter_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let is_in = fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        (!line.is_empty() && (is_in || line.contains(name))).then_some(line)
    });
    processes.collect()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Calls of the first region, and those recorded.
pub(crate) fn calls(report: &Value) -> (u64, u64) {
    let region = &report["regions"][0];
    (region["seen"].as_u64().expect("a number"), region["recorded"].as_u64().expect("a number"))
}

/// The processes that recorded calls: file name of the program, origin, and calls recorded.
fn with_calls(report: &Value) -> Vec<(String, String, u64)> {
    let processes = report["processes"].as_array().expect("processes").iter().filter_map(|process| {
        let text = |name: &str| process[name].as_str().expect("a text").to_owned();
        let program = text("program").rsplit('/').next().unwrap_or_default().to_owned();
        let recorded = process["regions"][0]["recorded"].as_u64().expect("a number");
        (recorded > 0).then(|| (program, text("origin"), recorded))
    });
    processes.collect()
}

fn executed(program: &str, calls: u64) -> (String, String, u64) {
    (program.into(), "executed".into(), calls)
}

const RUN: &str = "#!/bin/sh\n./server at & server=$!\n./client at\n./client at q\nwait $server\n";

#[test]
fn a_script_that_starts_a_server_and_a_client_is_recorded_with_both() {
    let place = Place::new(&[("server", SERVER), ("client", CLIENT)]);
    place.write("run.sh", RUN);
    for command in [&["sh", "run.sh"][..], &["./run.sh"], &["--one-pass", "--", "sh", "run.sh"]] {
        let options = if command[0] == "--one-pass" { vec![] } else { vec!["--"] };
        let report = place.record(&[&["--region", "handle"], &options[..], command].concat());
        assert_eq!(calls(&report), (100, 100), "{command:?}");
        assert_eq!(with_calls(&report), [executed("server", 100)], "{command:?}");
    }
    let text = place.lineup(&["record", "--region", "handle", "--", "sh", "run.sh"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("executed") && text.contains("/server"), "{text}");
    let explained = String::from_utf8_lossy(&place.lineup(&["explain", "lineup.rec"]).stdout).into_owned();
    for member in ["session line 0: hits", "session line 1: bytes", "session line 2: last"] {
        assert!(explained.contains(member), "{member}: {explained}");
    }
    place.assert_clean();
}

#[test]
fn calls_of_a_server_that_its_script_kills_are_kept() {
    let place = Place::new(&[("server", SERVER), ("client", CLIENT)]);
    let script = "./server at & server=$!; ./client at; kill $server; wait $server; true";
    let report = place.record(&["--region", "handle", "--", "sh", "-c", script]);
    assert_eq!(calls(&report), (50, 50));
    assert_eq!(with_calls(&report), [executed("server", 50)]);
    place.assert_clean();
}

#[test]
fn programs_with_functions_of_one_name_are_told_apart() {
    let place = Place::new(&[("one", WORKER), ("two", WORKER)]);
    let script = "./one 3; ./two 5; exec ./one 7";
    let report = place.record(&["--region", "work", "--", "sh", "-c", script]);
    assert_eq!(calls(&report), (15, 15));
    assert_eq!(with_calls(&report), [executed("one", 3), executed("two", 5), executed("one", 7)]);
    let pids: Vec<&Value> = report["processes"].as_array().unwrap().iter().map(|one| &one["pid"]).collect();
    assert_eq!(pids.first(), pids.last(), "a shell that becomes a program keeps its number");
    let named = place.record(&["--region", "work", "--program", "./two", "--", "sh", "-c", script]);
    assert_eq!(with_calls(&named), [executed("two", 5)]);
}

#[test]
fn a_name_that_only_debug_information_has_is_found_in_what_is_started() {
    let place = Place::new(&[]);
    place.write(
        "app.cc",
        "namespace app { volatile long cell; __attribute__((noinline)) void work(long n) { cell = cell + n; } }\n\
         int main() { for (long n = 0; n < 9; n++) app::work(n); }\n",
    );
    place.run("g++", &["-g", "-O2", "-o", "app", "app.cc"]);
    let report = place.record(&["--region", "app::work", "--", "sh", "-c", "./app; ./app"]);
    assert_eq!(with_calls(&report), [executed("app", 9), executed("app", 9)]);
    let unknown = place.lineup(&["record", "--region", "app::wrok", "--", "sh", "-c", "./app"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(said(&unknown).contains("app::wrok") && said(&unknown).contains("/app"), "{}", said(&unknown));
}

/// Looks like a shell's tools do to the emulated program: arguments, its own name, an empty environment,
/// `/proc/self/exe`.
const WITNESS: &str = r#"
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
volatile long cell;
__attribute__((noinline)) void work(long n) { cell += n; }
int main(int count, char **arguments) {
    int variables = 0;
    while (environ[variables]) variables++;
    printf("%s", arguments[0]);
    for (int n = 1; n < count; n++) printf("|%s", arguments[n]);
    printf(" %d\n", variables);
    fflush(stdout);
    work(1);
    char *again[] = { "other name", "a b", "", "$x*", 0 }, *none[] = { 0 };
    if (count == 1) execve("/proc/self/exe", again, none);
    return 0;
}
"#;

#[test]
fn a_program_that_is_started_sees_what_it_would_see_alone() {
    // Without its environment, the native engine does not get into it.
    lineup_fixtures::require_plugins("qemu-x86_64");
    let place = Place::new(&[("witness", WITNESS)]);
    let alone = Command::new("./witness").env_clear().current_dir(place.folder()).output().expect("it runs");
    let alone = String::from_utf8(alone.stdout).expect("text");
    assert_eq!(alone, "./witness 0\nother name|a b||$x* 0\n");
    let recorded = place.lineup(&["record", "--region", "work", "--", "/usr/bin/env", "-i", "./witness"]);
    let text = String::from_utf8_lossy(&recorded.stdout).into_owned();
    assert!(text.starts_with(&alone), "{text} {}", said(&recorded));
    assert!(text.contains("2 calls recorded of 2 made"), "{text}");
}

/// Closes every descriptor that it does not know, puts a file of its own in the place of others, and continues.
const CLOSER: &str = r#"
#include <fcntl.h>
#include <unistd.h>
volatile long cell;
__attribute__((noinline)) void work(long n) { cell += n; }
int main(void) {
    work(1);
    int own = open("own", O_CREAT | O_TRUNC | O_WRONLY, 0644);
    for (int number = 3; number < 1100; number++) if (number != own) close(number);
    for (int number = 20; number < 1020; number++) dup2(own, number);
    if (!fork()) { for (int n = 0; n < 40; n++) work(n); _exit(0); }
    for (int n = 0; n < 40; n++) { work(n); usleep(10000); }
    return write(own, "mine", 4) != 4;
}
"#;

#[test]
fn a_program_that_closes_all_descriptors_loses_no_call_and_finds_its_files_as_it_wrote_them() {
    // Half of the calls are in a process that is forked off.
    lineup_fixtures::require_plugins("qemu-x86_64");
    let place = Place::new(&[("closer", CLOSER)]);
    let report = place.record(&["--region", "work", "--", "./closer"]);
    assert_eq!(calls(&report), (81, 81));
    assert_eq!(report["failure"], Value::Null);
    assert_eq!(fs::read_to_string(place.folder().join("own")).expect("a file"), "mine");
}

#[test]
fn what_cannot_be_followed_runs_and_is_named_with_the_reason() {
    let place = Place::new(&[("worker", WORKER)]);
    place.run("gcc", &["-g", "-O2", "-fsanitize=address", "-o", "checked", "worker.c"]);
    let report = place.record(&[
        "--region",
        "work",
        "--program",
        "./worker",
        "--",
        "sh",
        "-c",
        "./checked 3; ./worker 4",
    ]);
    assert_eq!(with_calls(&report), [executed("worker", 4)]);
    let unfollowed = report["unfollowed"].as_array().expect("programs");
    assert_eq!(unfollowed.len(), 1);
    assert!(unfollowed[0]["program"].as_str().is_some_and(|program| program.ends_with("/checked")));
    assert!(unfollowed[0]["why"].as_str().is_some_and(|why| why.contains("-fsanitize=address")));
    let refused = place.lineup(&["record", "--region", "work", "--", "sh", "-c", "./checked 3"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("-fsanitize=address"), "{}", said(&refused));
}

#[test]
fn a_study_of_a_program_with_a_sanitizer_is_refused_and_does_not_hang() {
    let place = Place::new(&[]);
    place.write("worker.c", WORKER);
    let build = "gcc -g -O2 -fsanitize=address -o worker worker.c";
    let out = place.root.path().join("out");
    let out = out.to_str().expect("a name");
    let study =
        place.lineup(&["study", "--region", "work", "--build", build, "--out", out, "--", "worker", "3"]);
    assert_eq!(study.status.code(), Some(2));
    assert!(said(&study).contains("-fsanitize=address"), "{}", said(&study));
    place.assert_clean();
}

/// Leaves a child behind, which calls `work` after this many milliseconds of sleep, or of work.
const PARENT: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
volatile long cell;
__attribute__((noinline)) void work(long n) { cell += n; }
int main(int count, char **arguments) {
    long wait_ms = atol(arguments[2]);
    if (fork()) { work(0); return 0; }
    if (!strcmp(arguments[1], "busy")) {
        struct timespec begin, now;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do clock_gettime(CLOCK_MONOTONIC, &now);
        while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < wait_ms);
    } else usleep(wait_ms * 1000);
    for (int n = 0; n < 10; n++) work(n);
    return 0;
}
"#;

#[test]
fn children_that_outlive_the_first_process_are_waited_for_by_the_rule() {
    let place = Place::new(&[("parent", PARENT)]);
    let record = |rule: &[&str], how: &str, ms: &str| {
        place.record(&[&["--region", "work", "--one-pass"], rule, &["--", "./parent", how, ms]].concat())
    };
    // It works longer than idle ones are given.
    assert_eq!(calls(&record(&[], "busy", "3000")), (11, 11));
    assert_eq!(calls(&record(&["--leftovers", "wait"], "idle", "4000")), (11, 11));
    for (rule, how, ms) in [(&[][..], "idle", "600000"), (&["--leftovers", "end"], "busy", "600000")] {
        let report = record(rule, how, ms);
        assert_eq!(calls(&report), (1, 1), "{rule:?}");
        let notes = report["notes"].to_string();
        assert!(notes.contains("1 process still ran") && notes.contains("--leftovers"), "{notes}");
    }
    let limited = ["--leftovers", "wait", "--max-seconds", "2"];
    assert_eq!(calls(&record(&limited, "idle", "600000")), (1, 1), "the limit of time holds for them, too");
    place.assert_clean();
}

/// Starts a daemon in a session of its own, which keeps a lock as long as it lives; fails when there already is one.
const DAEMON: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>
volatile long cell;
__attribute__((noinline)) void work(long n) { cell += n; }
int main(void) {
    int lock = open("lock", O_CREAT | O_RDWR, 0644);
    if (flock(lock, LOCK_EX | LOCK_NB)) return 7;
    work(1);
    if (daemon(1, 1)) return 1;
    work(2);
    for (;;) pause();
}
"#;

#[test]
fn a_daemon_ends_with_the_run_that_started_it() {
    let place = Place::new(&[("starter", DAEMON)]);
    // Two runs: the second finds no daemon of the first.
    let report = place.record(&["--region", "work", "--", "./starter"]);
    assert_eq!(report["exit_status"], 0, "{report}");
    assert_eq!(calls(&report), (2, 2));
    place.assert_clean();
}

#[test]
fn a_client_drives_a_server_that_a_script_starts_and_one_that_becomes_a_daemon() {
    let place = Place::new(&[("server", SERVER), ("client", CLIENT)]);
    for command in [&["sh", "-c", "./server at & wait"][..], &["./server", "at", "daemon"]] {
        let drive = ["--region", "handle", "--drive", "./client at", "--"];
        let report = place.record(&[&drive, command].concat());
        assert_eq!(calls(&report), (50, 50), "{command:?}");
    }
    let stopped = place.record(&[
        "--region",
        "handle",
        "--stop-after",
        "20",
        "--",
        "sh",
        "-c",
        "./server at & ./client at; wait",
    ]);
    assert!(calls(&stopped).0 >= 20);
    place.assert_clean();
}

/// A study of the server: the three members of its sessions get adjacent places.
fn study(place: &Place, options: &[&str], command: &[&str]) -> Value {
    let out = place.root.path().join("out");
    let common = [
        "study",
        "--json",
        "--region",
        "handle",
        "--max-time",
        "2",
        "--margin",
        "1000%",
        "--out",
        out.to_str().expect("a name"),
    ];
    let report = json(&place.lineup(&[&common, options, &["--"], command].concat()));
    let patch = fs::read_to_string(out.join("fix.patch")).unwrap_or_else(|error| panic!("{error}: {report}"));
    assert!(patch.contains("server.c"), "{patch}");
    fs::remove_dir_all(out).expect("the results");
    report
}

/// True when a study's comparison led to a proof.
fn is_proven(report: &Value) -> bool {
    report["not_proven"].is_null() && !report["proof"].is_null()
}

#[test]
fn a_study_of_a_server_that_a_script_starts_proves_a_patch() {
    let place = Place::new(&[("server", SERVER), ("client", CLIENT)]);
    place.write("run.sh", RUN);
    let report = study(&place, &[], &["sh", "run.sh"]);
    assert!(is_proven(&report), "{report}");
    assert_eq!(report["title"], "server");
    place.assert_clean();
}

#[test]
fn a_study_of_a_driven_server_proves_a_patch() {
    let place = Place::new(&[("server", SERVER), ("client", CLIENT)]);
    let report = study(&place, &["--drive", "./client at"], &["server", "at"]);
    assert!(is_proven(&report), "{report}");
    place.assert_clean();
}

/// The server with a loop over its clients that also calls `handle` each time when nothing came in for a while, and a
/// log that begins with the time: neither repeats.
fn timed_server() -> String {
    SERVER
        .replace("#include <signal.h>", "#include <poll.h>\n#include <signal.h>\n#include <stdio.h>\n#include <time.h>")
        .replace("    for (int n = 0;;) {", "    struct timespec now;\n    clock_gettime(CLOCK_REALTIME, &now);\n    printf(\"%ld.%09ld ready\\n\", now.tv_sec, now.tv_nsec);\n    fflush(stdout);\n    for (int n = 0;;) {")
        .replace(
            "        while (read(peer",
            "        struct pollfd in = { .fd = peer, .events = POLLIN };\n        while (poll(&in, 1, 2) >= 0 && !in.revents) handle(0);\n        while (read(peer",
        )
}

/// The client, which waits before it asks: sometimes a little longer.
fn waiting_client() -> String {
    CLIENT
        .replace("#include <unistd.h>", "#include <time.h>\n#include <unistd.h>")
        .replace(
            "        for (int n = 0; n < 50; n++)",
            "        struct timespec now;\n        clock_gettime(CLOCK_REALTIME, &now);\n        usleep(60000 + now.tv_nsec / 1000 % 60000);\n        for (int n = 0; n < 50; n++)",
        )
}

#[test]
fn calls_of_a_driven_server_that_depend_on_the_time_are_compared_within_what_its_own_runs_show() {
    let place = Place::new(&[("server", &timed_server()), ("client", &waiting_client())]);
    let report = study(&place, &["--drive", "./client at"], &["server", "at"]);
    assert!(is_proven(&report), "{report}");
    let effects = &report["proof"]["effects"]["compared"];
    assert!(effects.to_string().contains("50 of 50 answers on 1 connections"), "{report}");
    // The log differs from run to run, and the time is claimed all the same.
    assert_eq!(report["proof"]["output"]["outcome"], "not-repeatable", "{report}");
    assert!(!report["proof"]["time"].is_null(), "{report}");
    let within = report["proof"]["calls_within"].as_array().expect("a list");
    let is_told =
        |one: &Value| one.as_str().is_some_and(|one| one.contains("5 recordings of the unchanged program"));
    assert!(within.iter().all(is_told), "{report}");
    place.assert_clean();
}
