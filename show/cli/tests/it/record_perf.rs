//! `lineup record --perf`: a program, and a running process, are sampled. The summary names the event, perf reads the
//! file as it was written, and `lineup explain` names the sampled code and data.

use crate::schema;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

// Nearly every instruction of the loop accesses `sum`: at which of them a clock finds the program is the processor's
// choice.
const BUSY: &str = r#"
#include <stdlib.h>
struct tally { long before; volatile long sum; };
struct tally tally;
__attribute__((noinline)) void spin(long count) {
	for (long i = 0; i < count; i += 64) {
#ifdef __x86_64__
		__asm__ volatile(".rept 64\n\taddq $1, %0\n\t.endr" : "+m"(tally.sum));
#else
		for (int j = 0; j < 64; j++) tally.sum += i ^ tally.before;
#endif
	}
}
int main(int count, char **words) { spin(count > 1 ? atol(words[1]) : 300000000); return 3; }
"#;

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.args(arguments).current_dir(folder).env("HOME", folder).output().expect("lineup runs")
}

fn said(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// A folder with the program.
fn built() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("busy.c"), BUSY).unwrap();
    let built = Command::new("gcc").args(["-g", "-O1", "-o", "busy", "busy.c"]).current_dir(&folder).output();
    assert!(built.unwrap().status.success());
    folder
}

fn count(value: &Value) -> u64 {
    value["events"].as_array().unwrap().iter().map(|event| event["samples"].as_u64().unwrap()).sum()
}

/// As many samples as perf itself finds in a file.
fn counted_by_perf(folder: &Path, file: &str) -> u64 {
    let done = Command::new("perf").args(["script", "-i", file, "-F", "ip,sym"]).current_dir(folder).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{}", said(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    // With call chains samples have an empty line between them, else each is a line.
    let has_chains = text.contains("\n\n");
    let separator = if has_chains { "\n\n" } else { "\n" };
    text.split(separator).filter(|sample| !sample.trim().is_empty()).count() as u64
}

/// The share of the samples that lie in a function, by `lineup explain`.
fn share(folder: &Path, file: &str, function: &str) -> f64 {
    let found = schema::checked(&lineup(folder, &["explain", "--json", file]).stdout);
    let all = found["functions"].as_array().unwrap();
    let own = all.iter().filter(|one| one["name"] == function && one["event"] == 0);
    own.map(|one| one["share"].as_f64().unwrap()).sum()
}

#[test]
fn a_program_is_sampled_and_it_is_said_by_what_and_what_was_not_to_be_had() {
    let folder = built();
    let folder = folder.path();
    let done = lineup(folder, &["record", "--perf", "--json", "--", "./busy"]);
    assert!(done.status.success(), "{}", said(&done));
    let told = schema::checked(&done.stdout);
    assert_eq!(
        (told["schema"].as_str(), told["file"].as_str()),
        (Some("lineup.record-perf/1"), Some("perf.data"))
    );
    assert_eq!(told["exit_status"], 3);
    let is_memory = told["events"][0]["basis"] == "memory";
    assert_eq!(told["not_sampled"].as_array().unwrap().is_empty(), is_memory, "{told:#}");
    assert!(count(&told) > 50, "{told:#}");
    assert_eq!(counted_by_perf(folder, "perf.data"), count(&told));
    assert!(share(folder, "perf.data", "spin") > 0.5);

    let found = schema::checked(&lineup(folder, &["explain", "--json", "perf.data"]).stdout);
    assert_eq!(count(&found), count(&told));
    assert_eq!(found["is_whole"], true);
    assert_eq!(found["command"][1], "record");
    let tally = found["data"].as_array().unwrap().iter().find(|data| data["name"] == "tally");
    if cfg!(target_arch = "x86_64") {
        let tally = tally.expect("its addresses are sampled, or worked out from registers");
        let sum = tally["members"].as_array().unwrap().iter().find(|member| member["path"] == "sum");
        assert!(sum.is_some(), "{tally:#}");
    }
}

#[test]
fn the_summary_names_the_event_the_file_and_the_next_command() {
    let folder = built();
    let done = lineup(folder.path(), &["record", "--perf", "--out", "own.data", "--", "./busy", "1000000"]);
    assert!(done.status.success(), "{}", said(&done));
    let text = String::from_utf8(done.stdout).unwrap();
    for part in ["by the event", "the program exited with status 3", "lineup explain own.data"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

#[test]
fn a_process_that_runs_is_sampled_and_left_running() {
    let folder = built();
    let folder = folder.path();
    let mut busy = Command::new("./busy").arg("100000000000").current_dir(folder).spawn().unwrap();
    let process = busy.id().to_string();
    let done = lineup(folder, &["record", "--perf", "--json", "--pid", &process, "--max-seconds", "0.5"]);
    let still_runs = busy.try_wait().unwrap().is_none();
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    assert!(still_runs);
    let told = schema::checked(&done.stdout);
    assert_eq!((&told["exit_status"], &told["signal"]), (&Value::Null, &Value::Null));
    assert!(count(&told) > 10, "{told:#}");
    assert_eq!(counted_by_perf(folder, "perf.data"), count(&told));
    assert!(share(folder, "perf.data", "spin") > 0.5);
}

#[test]
fn a_process_that_ends_is_told_to_have_ended() {
    let folder = built();
    let folder = folder.path();
    let mut busy = Command::new("./busy").arg("1000000000").current_dir(folder).spawn().unwrap();
    let done = lineup(folder, &["record", "--perf", "--json", "--pid", &busy.id().to_string()]);
    assert_eq!(busy.wait().unwrap().code(), Some(3));
    assert!(done.status.success(), "{}", said(&done));
    let told = schema::checked(&done.stdout);
    let notes: Vec<&str> =
        told["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    assert!(notes.iter().any(|note| note.contains("the process ended while it was watched")), "{notes:?}");
}

#[test]
fn samples_until_a_signal_ended_the_program_are_kept() {
    let folder = built();
    let folder = folder.path();
    let line = ["record", "--perf", "--", "sh", "-c", "./busy 100000000; kill -9 $$"];
    let done = lineup(folder, &line);
    assert_eq!(done.status.code(), Some(2));
    assert!(said(&done).contains("ended by SIGKILL; the samples until then are kept in perf.data"));
    assert!(share(folder, "perf.data", "spin") > 0.5, "what a program starts is sampled, too");
}

#[test]
fn what_is_no_perf_data_is_left_as_it_is_and_options_of_recordings_are_refused() {
    let folder = built();
    let folder = folder.path();
    std::fs::write(folder.join("notes"), "mine").unwrap();
    let refused = |arguments: &[&str]| {
        let done = lineup(folder, &[&["record", "--perf"], arguments].concat());
        assert_eq!(done.status.code(), Some(2), "{arguments:?}");
        said(&done)
    };
    assert!(refused(&["--out", "notes", "--", "./busy", "1000"]).contains("notes exists and is not"));
    assert_eq!(std::fs::read(folder.join("notes")).unwrap(), b"mine");
    assert!(refused(&["--region", "spin", "--", "./busy"]).contains("--region"));
    assert!(refused(&["--", "./nowhere"]).contains("nowhere"));
    assert!(refused(&["--pid", "2147483647"]).contains("there is no process 2147483647"));
    assert!(!folder.join("perf.data").exists());
}
