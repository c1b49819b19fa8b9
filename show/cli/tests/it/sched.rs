//! `lineup sched` as it is run: its output, and its refusals with exit code 2.

use crate::schema;
use std::process::{Command, Output};

fn sched(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lineup")).arg("sched").args(args).output().expect("the binary runs")
}

const LOW: &str = "low:shares=2,tasks=50,busy=~100ms,sleep=~100ms";

fn assert_refused(args: &[&str], because: &str) {
    let output = sched(args);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    assert!(message.contains(because), "{args:?}: {message}");
}

#[test]
fn the_reference_experiment_as_json() {
    let args = ["--cpus", "16", "--domains", "2,8,16", "--group", LOW, "--resolution", "0,10"];
    let output = sched(&[&args[..], &["--seeds", "4", "--time", "10s", "--json"]].concat());
    let report: serde_json::Value = schema::checked(&output.stdout);
    assert_eq!(report["schema"], "lineup.sched/1");
    let idle = report["variants"][1]["figures"].as_array().expect("figures");
    let idle = idle.iter().find(|figure| figure["name"] == "idle").expect("idle");
    assert_eq!(idle["difference"]["excludes_zero"], true);
    assert!(idle["difference"]["mean"].as_f64().is_some_and(|lost| lost < -1.0));
}

#[test]
fn why_names_the_steps_that_lost_load() {
    let output = sched(&[
        "--cpus",
        "16",
        "--domains",
        "2,8,16",
        "--group",
        LOW,
        "--seeds",
        "1",
        "--time",
        "5s",
        "--why",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("a task was moved and the credit rounded to zero"), "{text}");
    assert!(text.contains("once both are truncated"), "{text}");
}

#[test]
fn a_sweep_prints_a_grid_for_each_variant() {
    let output = sched(&[
        "--cpus",
        "4",
        "--group",
        "g:shares=2,tasks=8,busy=~9ms,sleep=~9ms",
        "--seeds",
        "2",
        "--time",
        "1s",
        "--resolution",
        "0,10",
        "--sweep",
        "shares=2,64",
        "--sweep",
        "tasks=4,8,16",
    ]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("idle %").count(), 2, "{text}");
    assert_eq!(text.matches(" [").count(), 12, "{text}");
}

#[test]
fn a_trace_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.json");
    let path = file.to_str().expect("text");
    let output =
        sched(&["--cpus", "2", "--group", "g:tasks=3", "--seeds", "1", "--time", "1s", "--trace", path]);
    assert!(output.status.success());
    let trace: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 10));
}

#[test]
fn bad_scenarios_are_refused() {
    assert_refused(&["--cpus", "0", "--group", "a:tasks=1"], "0 is not in 1 to 65536");
    assert_refused(&["--cpus", "4", "--group", "a:shares=1"], "1 is not in 2 to 262144");
    assert_refused(&["--cpus", "4", "--group", "a:colour=1"], "unknown key");
    assert_refused(&["--cpus", "4", "--group", "a:parent=b", "--group", "b:parent=a"], "circle");
    assert_refused(&["--cpus", "16", "--domains", "3,16", "--group", "a:tasks=1"], "no multiple of 3");
    assert_refused(&["--cpus", "4"], "nothing to schedule");
    assert_refused(&["--cpus", "4", "--group", "a:tasks=1", "--set", "b:shares=3"], "no group is named `b`");
    assert_refused(&["--from-cgroup", "/nowhere"], "no control group");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "cpus = 4\nresolution = 10\ncolour = 1\n").expect("writable");
    assert_refused(&["--scenario", file.to_str().expect("text")], "line 3: unknown field `colour`");
}
