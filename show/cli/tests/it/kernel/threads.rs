//! The effects of two CPUs of a kernel on each other's caches.

use super::guests::{Bench, kernel};
use super::record::read;
use super::table::shows;
use serde_json::Value;
use std::collections::HashSet;
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
    let regions = ["--region", "kernel", "--region", "timer"];
    let arguments = [&["--cpus", "2", "--calls", "40", "--workload", pipes][..], &regions].concat();
    bench.json(&image, &[&arguments[..], &["--out", "k.rec"]].concat());
    let output = threads(&bench, "k.rec");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&report["of"], report["threads"].as_array().map(Vec::len)), (&"cpus".into(), Some(2)));
    shows(
        &read(&bench.folder.path().join("k.rec")),
        "x86-64, two CPUs",
        "the_locks_of_two_run_queues_are_named_and_what_both_cpus_write_is_for_the_same_bytes",
    );
    let locks = report["locks"].as_array().expect("locks");
    let run_queues = locks.iter().filter(|lock| lock["name"] == "rq.__lock of runqueues");
    let held: Vec<&Value> = run_queues.map(|lock| &lock["data_on_its_line"]).collect();
    assert_eq!(held.len(), 2, "{locks:#?}");
    assert!(held.iter().all(|data| data.to_string().contains("runqueues.nr_running")), "{held:#?}");
    let lines = report["lines"].as_array().expect("lines");
    let is_jiffies = |line: &&Value| line["parts"].to_string().contains("jiffies_64");
    let jiffies = lines.iter().find(is_jiffies).expect("both CPUs read the time");
    assert_eq!(jiffies["waits"]["recorded"]["of_line_alone"], 0, "{jiffies:#}");
    let of_tasks = ["kernel_mutex", "kernel_read_write_semaphore"];
    let of_tasks =
        locks.iter().filter(|lock| lock["kind"].as_str().is_some_and(|kind| of_tasks.contains(&kind)));
    assert!(of_tasks.count() > 2, "{locks:#?}");
    tasks_have_names_and_numbers(&report);
    ticks_wait_for_what_the_other_cpu_wrote(&report);
}

/// Each waits for lines that another took, and all waits are somebody's.
fn tasks_have_names_and_numbers(report: &Value) {
    let tasks = report["tasks"].as_array().expect("tasks");
    for name in ["dd", "cat", "interrupts of CPU 0", "interrupts of CPU 1"] {
        assert!(
            tasks.iter().any(|task| task["name"].as_str().is_some_and(|own| own.starts_with(name))),
            "{tasks:#?}"
        );
    }
    let pids: Vec<u64> =
        tasks.iter().filter_map(|task| task["pid"].as_u64()).filter(|pid| *pid > 0).collect();
    assert!(pids.len() > 4 && pids.iter().collect::<HashSet<_>>().len() == pids.len(), "{pids:?}");
    let sum = |rows: &Value| -> u64 {
        let rows = rows.as_array().expect("a matrix").iter();
        rows.filter_map(|row| {
            Some(row["waits"]["of_same_bytes"].as_u64()? + row["waits"]["of_line_alone"].as_u64()?)
        })
        .sum()
    };
    assert_eq!(sum(&report["task_matrix"]), sum(&report["matrix"]));
}

fn ticks_wait_for_what_the_other_cpu_wrote(report: &Value) {
    let calls = report["calls_in_windows"].as_array().expect("functions");
    let tick =
        calls.iter().find(|calls| calls["region"] == "hrtimer_interrupt").expect("ticks are in the windows");
    let of = |kind: &str| (&tick[kind]["calls"], &tick[kind]["waits"]["recorded"]["of_same_bytes"]);
    let (calls, waits) =
        [of("usual"), of("tail")].into_iter().fold((0, 0), |(calls, waits), (more, needed)| {
            (calls + more.as_u64().expect("calls"), waits + needed.as_u64().expect("waits"))
        });
    // A busy host lets each CPU run alone for several ticks, which then wait for nothing.
    assert!(calls > 5 && waits > 0, "{tick:#}");
}

#[test]
#[ignore = "takes a minute: make test-kernel"]
fn calls_of_functions_alone_tell_no_order_and_the_message_says_what_does() {
    let bench = Bench::new(&["record", "--kernel"]);
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--cpus", "2", "--workload", "sleep 1", "--out", "k.rec"];
    bench.json(&image, &[&["--region", "timer", "--calls", "20"], &guest[..]].concat());
    let output = threads(&bench, "k.rec");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--cpus 2 (or more) --region kernel"), "{said}");
}
