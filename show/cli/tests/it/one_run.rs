//! Every run of one program gets the same input and surroundings, ends when it is asked to, and leaves nothing behind.

use crate::place::{Place, processes_in};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Calls `work` once for each line that it reads; three hot members lie on three lines.
const READER: &str = r#"
#include <stdio.h>
struct item { long a; char b[56]; long c; char d[56]; long e; };
static struct item items[4];
__attribute__((noinline)) long work(int n) {
    struct item *item = &items[n % 4];
    item->a += n; item->c += item->a; item->e ^= item->c;
    return item->e;
}
int main(void) {
    char line[64];
    long sum = 0;
    int count = 0;
    while (fgets(line, sizeof line, stdin)) sum += work(count++);
    printf("%d %ld\n", count, sum);
    return 0;
}
"#;

/// Never ends by itself.
const ENDLESS: &str = r#"
#include <unistd.h>
volatile int cell;
__attribute__((noinline)) void work(void) { cell++; }
int main(void) { for (;;) { work(); usleep(100); } }
"#;

/// Serves on the Unix socket that its first argument names: a call of `work` for each byte, without end.
const SERVER: &str = r#"
#include <sys/socket.h>
#include <sys/un.h>
#include <string.h>
#include <unistd.h>
volatile int cell;
__attribute__((noinline)) void work(void) { cell++; }
int main(int count, char **arguments) {
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    strncpy(at.sun_path, arguments[1], sizeof at.sun_path - 1);
    int is_client = count > 2, end = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte = 'x';
    if (is_client) {
        if (connect(end, (void *)&at, sizeof at)) return 1;
        for (int n = 0; n < 50; n++) if (write(end, &byte, 1) != 1 || read(end, &byte, 1) != 1) return 2;
        return 0;
    }
    unlink(at.sun_path);
    if (bind(end, (void *)&at, sizeof at) || listen(end, 4)) return 3;
    for (;;) {
        int peer = accept(end, 0, 0);
        while (read(peer, &byte, 1) == 1) { work(); if (write(peer, &byte, 1) != 1) break; }
        close(peer);
    }
}
"#;

/// Passes input through a pipe, which can be read only once.
fn piped(mut command: Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).spawn().expect("lineup starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("input");
    child.wait_with_output().expect("lineup ends")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn lines(count: usize) -> String {
    "line\n".repeat(count)
}

#[test]
fn both_variants_of_a_study_read_all_of_a_piped_input_wherever_its_files_lie() {
    let place = Place::new(READER, &[]);
    let odd = place.root.path().join("a,b");
    fs::create_dir(&odd).expect("a folder");
    symlink(&odd, place.root.path().join("link")).expect("a link");
    let mut study = place.lineup(&[
        "study",
        "--region",
        "work",
        "--json",
        "--max-time",
        "1",
        "--margin",
        "1000%",
        "--out",
        "out dir",
    ]);
    study.env("TMPDIR", place.root.path().join("link")).args(["--", "./program"]);
    study.arg(OsStr::from_bytes(b"\xff\xfe"));
    let report = json(&piped(study, &lines(300)));
    let region = &report["regions"][0];
    assert_eq!(region["calls_recorded"], 300, "{region:#}");
    let mean = |when: &str| {
        let lines = region["footprints"].as_array().expect("footprints");
        let found = lines.iter().find(|found| found["kind"] == "data" && found["line_bytes"] == 64);
        found.expect("64-byte lines")[when]["mean"].as_f64().expect("a mean")
    };
    assert!(mean("after") >= 1.0 && mean("after") < mean("before"), "{region:#}");
    assert_eq!(report["proof"]["output"]["outcome"], "equal");
    let commands = report["commands"].as_array().expect("commands");
    let apply = commands.iter().find(|command| command["purpose"] == "apply the patch").expect("a patch");
    let line = apply["text"].as_str().expect("a line");
    let applied =
        Command::new("sh").args(["-c", line]).current_dir(place.source()).output().expect("sh runs");
    assert!(applied.status.success(), "`{line}`: {}", said(&applied));
    assert_eq!(fs::read_dir(&odd).expect("the folder").count(), 0, "temporary files stay");
    place.assert_clean();
}

#[test]
fn recordings_of_different_work_prove_nothing() {
    let by_the_clock = READER.replace(
        "while (fgets(line, sizeof line, stdin)) sum += work(count++);",
        r#"
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    for (long n = now.tv_nsec / 100 % 5000; n >= 0; n--) sum += work(n);
    sum = line[0] = 0;"#,
    );
    let place =
        Place::new(&by_the_clock.replace("#include <stdio.h>", "#include <stdio.h>\n#include <time.h>"), &[]);
    let study = [
        "study",
        "--region",
        "work",
        "--calls",
        "9000",
        "--max-time",
        "1",
        "--margin",
        "1000%",
        "--json",
        "--",
        "./program",
    ];
    let report = json(&place.lineup(&study).output().expect("lineup runs"));
    let reason = report["not_proven"].as_str().unwrap_or_else(|| panic!("{:#}", report["proof"]));
    assert!(reason.starts_with("calls of work made: "), "{reason}");
    assert!(report["proof"].is_null() && report["patch"].is_object());
}

#[test]
fn the_printed_patch_command_works_where_the_user_stands() {
    let place = Place::new(READER, &[]);
    let mut study = place.lineup(&[
        "study",
        "--region",
        "work",
        "--json",
        "--max-time",
        "1",
        "--margin",
        "1000%",
        "--source",
        "source",
    ]);
    study.current_dir(place.root.path()).args(["--out", "it's", "--", "./program"]);
    let report = json(&piped(study, &lines(20)));
    let line = report["commands"][1]["text"].as_str().expect("a line");
    let applied =
        Command::new("sh").args(["-c", line]).current_dir(place.root.path()).output().expect("sh runs");
    assert!(applied.status.success(), "`{line}`: {}", said(&applied));
    let edited = fs::read_to_string(place.source().join("main.c")).expect("the source");
    assert_ne!(edited, READER);
}

#[test]
fn both_runs_of_a_recording_read_the_whole_input_wherever_temporary_files_lie() {
    let place = Place::new(READER, &[]);
    fs::write(place.root.path().join("input"), lines(120)).expect("a file");
    let odd = place.root.path().join("a,b");
    fs::create_dir(&odd).expect("a folder");
    symlink(&odd, place.root.path().join("link")).expect("a link");
    let record = || place.lineup(&["record", "--json", "--region", "work"]);
    let mut through_pipe = record();
    through_pipe.env("TMPDIR", place.root.path().join("link")).args(["--out", "c,d.rec", "--", "./program"]);
    through_pipe.arg(OsStr::from_bytes(b"\xff\xfe"));
    let mut from_file = record();
    from_file.args(["--stdin", "../input", "--", "./program"]);
    for output in [piped(through_pipe, &lines(120)), from_file.output().expect("lineup runs")] {
        assert_eq!(json(&output)["regions"][0]["recorded"], 120);
        assert!(said(&output).contains("120 "), "the program's own output");
    }
    assert_eq!(fs::read_dir(&odd).expect("the folder").count(), 0, "temporary files stay");
}

#[test]
fn nothing_stays_behind_however_lineup_ends() {
    let place = Place::new(ENDLESS, &[]);
    let engines = [("native", "source/program"), ("qemu", "-plugin")];
    let signals = ["KILL", "INT", "TERM"];
    for ((engine, running), signal) in
        engines.iter().flat_map(|engine| signals.map(|signal| (engine, signal)))
    {
        if *engine == "qemu" {
            lineup_fixtures::require_plugins("qemu-x86_64");
        }
        let mut record =
            place.lineup(&["record", "--engine", engine, "--region", "work", "--out", "x.rec", "--"]);
        let mut child: Child = record.arg(place.source().join("program")).spawn().expect("lineup starts");
        let is_lineup = |line: &str| line.contains("record") || line.contains("launch-child");
        let is_running = || {
            let all = processes_in(place.root.path());
            all.iter().any(|line| line.contains(running) && !is_lineup(line))
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_running() {
            assert!(Instant::now() < deadline, "the program did not start under {engine}");
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().expect("kill").success());
        let ended = child.wait().expect("lineup ends");
        assert_eq!(ended.code(), if signal == "KILL" { None } else { Some(2) });
        place.assert_clean();
    }
}

#[test]
fn what_a_build_started_goes_too() {
    let place = Place::new(READER, &[]);
    let mark = place.root.path().join("sleeper");
    fs::write(&mark, "#!/bin/sh\nwhile :; do sleep 1; done\n").expect("a script");
    fs::set_permissions(&mark, fs::Permissions::from_mode(0o755)).expect("a mode");
    let build = format!("setsid {} & wait", mark.display());
    let mut study = place.lineup(&["study", "--region", "work", "--build", &build, "--", "./program"]);
    let mut child = study.spawn().expect("lineup starts");
    let sleeps = || processes_in(&mark).iter().any(|line| line.starts_with("/bin/sh"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !sleeps() {
        assert!(Instant::now() < deadline, "the build did not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("a signal");
    child.wait().expect("lineup ends");
    place.assert_clean();
}

#[test]
fn a_recording_replaces_nothing_but_a_recording() {
    let place = Place::new(READER, &[]);
    let program = place.source().join("program");
    fs::hard_link(&program, place.source().join("hard")).expect("a link");
    symlink(&program, place.source().join("soft")).expect("a link");
    let bytes = fs::read(&program).expect("the program");
    let record = |out: &str| {
        let mut record = place.lineup(&["record", "--region", "work", "--out", out, "--", "./program"]);
        record.stdin(Stdio::null());
        piped(record, &lines(3))
    };
    for (out, why) in [
        ("program", "is the program itself"),
        ("hard", "is the program itself"),
        ("soft", "is the program itself"),
        ("main.c", "is not a recording"),
        ("Makefile", "is not a recording"),
    ] {
        let output = record(out);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(why), "{out}: {}", said(&output));
    }
    assert_eq!(fs::read(&program).expect("the program"), bytes);
    assert_eq!(fs::read_to_string(place.source().join("main.c")).expect("the source"), READER);
    for _ in 0..2 {
        assert_eq!(record("again.rec").status.code(), Some(0));
    }
    let study = place.lineup(&["study", "--region", "work", "--out", ".", "--", "./program"]).output();
    assert!(said(&study.expect("lineup runs")).contains("is the source folder"));
}

#[test]
fn a_program_without_a_slash_is_looked_for_as_a_shell_does() {
    let place = Place::new(READER, &[]);
    let folder = place.source();
    let path = std::env::join_paths(
        [folder.clone()].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").expect("PATH"))),
    );
    let mut record =
        place.lineup(&["record", "--json", "--region", "work", "--out", "../x.rec", "--", "program"]);
    let path = path.expect("a path");
    record.env("PATH", &path).current_dir(place.temporary());
    let report = json(&piped(record, &lines(5)));
    assert_eq!(report["regions"][0]["recorded"], 5);
    let mut whole = place.lineup(&["record", "--whole-program", "--out", "../whole.rec", "--", "program"]);
    whole.env("PATH", &path).current_dir(place.temporary());
    let output = piped(whole, &lines(5));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let here = place.lineup(&["record", "--region", "work", "--", "program"]).output().expect("lineup runs");
    assert_eq!(here.status.code(), Some(2));
    assert!(said(&here).contains("write ./program"), "{}", said(&here));
}

#[test]
fn a_program_without_end_is_ended_when_its_time_is_over() {
    let place = Place::new(ENDLESS, &[]);
    let mut record = place.lineup(&["record", "--json", "--region", "work", "--calls", "5"]);
    record.args(["--max-seconds", "2", "--", "./program"]);
    let report = json(&record.output().expect("lineup runs"));
    assert_eq!(report["regions"][0]["recorded"], 5);
    place.assert_clean();
}

#[test]
fn a_program_without_end_is_ended_when_its_regions_have_their_calls() {
    let place = Place::new(ENDLESS, &[]);
    let mut record = place.lineup(&["record", "--json", "--region", "work", "--calls", "5"]);
    record.args(["--stop-after", "20", "--", "./program"]);
    let report = json(&record.output().expect("lineup runs"));
    assert_eq!(report["regions"][0]["recorded"], 5);
    assert!(report["regions"][0]["seen"].as_u64().expect("a number") >= 20);
    place.assert_clean();
}

#[test]
fn calls_between_the_last_one_that_was_asked_for_and_the_end_are_not_compared() {
    let endless = READER.replace("while (fgets(line, sizeof line, stdin))", "for (;; usleep(100))");
    let place =
        Place::new(&endless.replace("#include <stdio.h>", "#include <stdio.h>\n#include <unistd.h>"), &[]);
    let mut study =
        place.lineup(&["study", "--json", "--region", "work", "--max-time", "2", "--margin", "1000%"]);
    study.args(["--stop-after", "20", "--max-seconds", "1", "--", "./program"]);
    let report = json(&study.output().expect("lineup runs"));
    assert!(report["not_proven"].is_null() && !report["proof"].is_null(), "{:#}", report["not_proven"]);
    assert!(report["patch"].is_object());
    place.assert_clean();
}

#[test]
fn a_client_drives_a_server_to_its_end() {
    let place = Place::new(SERVER, &[]);
    let mut record =
        place.lineup(&["record", "--json", "--region", "work", "--drive", "./program at client"]);
    record.args(["--", "./program", "at"]);
    let report = json(&record.output().expect("lineup runs"));
    assert_eq!(report["regions"][0]["recorded"], 50);
    let mut failing = place.lineup(&["record", "--region", "work", "--drive", "echo no >&2; false"]);
    failing.args(["--", "./program", "at"]);
    let failed = failing.output().expect("lineup runs");
    assert_eq!(failed.status.code(), Some(2));
    assert!(said(&failed).contains("the client `echo no >&2; false` failed"), "{}", said(&failed));
    place.assert_clean();
}

#[test]
fn a_program_with_a_sanitizer_is_refused_at_once() {
    let place = Place::new(READER, &["-fsanitize=address"]);
    let output =
        place.lineup(&["record", "--region", "work", "--", "./program"]).output().expect("lineup runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("-fsanitize=address"), "{}", said(&output));
}
