//! What two CPUs of a kernel do to each other's caches.

use crate::guests::{Bench, kernel};
use serde_json::Value;
use std::process::{Command, Output};

fn threads(bench: &Bench, file: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.current_dir(bench.folder.path()).env("XDG_CACHE_HOME", bench.folder.path().join("cache"));
    command.args(["threads", file, "--json"]).output().expect("lineup runs")
}

#[test]
#[ignore = "takes a minute: make test-kernel"]
fn the_locks_of_two_run_queues_are_named_and_what_both_cpus_write_is_for_the_same_bytes() {
    let bench = Bench::new(&["record", "--kernel"]);
    let image = bench.copy(&kernel("cloud"));
    let pipes =
        "for i in 1 2 3 4; do (dd if=/dev/zero bs=64 count=500 2>/dev/null | cat > /dev/null) & done; wait";
    let arguments = ["--cpus", "2", "--region", "kernel", "--calls", "40", "--workload", pipes];
    bench.json(&image, &[&arguments[..], &["--out", "k.rec"]].concat());
    let output = threads(&bench, "k.rec");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["of"], report["threads"].as_array().map(Vec::len)), (&"cpus".into(), Some(2)));
    let locks = report["locks"].as_array().expect("locks");
    let run_queues = locks.iter().filter(|lock| lock["name"] == "rq.__lock of runqueues");
    let held: Vec<&Value> = run_queues.map(|lock| &lock["data_on_its_line"]).collect();
    assert_eq!(held.len(), 2, "{locks:#?}");
    assert!(held.iter().all(|data| data.to_string().contains("runqueues.nr_running")), "{held:#?}");
    let lines = report["lines"].as_array().expect("lines");
    let is_jiffies = |line: &&Value| line["parts"].to_string().contains("jiffies_64");
    let jiffies = lines.iter().find(is_jiffies).expect("both CPUs read the time");
    assert_eq!(jiffies["waits"]["recorded"]["of_line_alone"], 0, "{jiffies:#}");
}

#[test]
#[ignore = "takes a minute: make test-kernel"]
fn calls_of_functions_alone_tell_no_order_and_the_message_says_what_does() {
    let bench = Bench::new(&["record", "--kernel"]);
    let image = bench.copy(&kernel("cloud"));
    bench.json(&image, &["--cpus", "2", "--region", "timer", "--calls", "20", "--out", "k.rec"]);
    let output = threads(&bench, "k.rec");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--cpus 2 (or more) --region kernel"), "{said}");
}
