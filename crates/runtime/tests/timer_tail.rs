//! The study `timer-tail`: the explanation must name the planted cause first, and its interval must hold the planted
//! share. The truth comes from the marks that the program leaves before each tick; the explanation does not use them.

use lineup_trace::attribution::{Cause, attribute};
use lineup_trace::bootstrap::{Sample, Tail};
use lineup_trace::{Arm, Kind, Trace};
use std::path::Path;
use std::process::Command;

/// Two CPUs may be shared with anything: a tail without its slowest part is the program's own.
const TAIL: Tail = Tail { from: 0.90, to: 0.98 };
/// A prefetch of code does not reach the first level, and giving up takes its bound: the removal is not perfect.
const IMPERFECTION: f64 = 0.05;

fn build(folder: &Path) -> std::path::PathBuf {
    let library = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join("timer_tail");
    let output = Command::new("gcc")
        .args(["-g", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("include"))
        .arg(root.join("../../studies/timer-tail/timer_tail.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .args(["-llineup_runtime", "-lpthread"])
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .output()
        .expect("gcc; apt install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Shares of the tail's excess that calls with each plant make up, among calls of no arm.
fn planted_shares(trace: &Trace) -> [f64; 4] {
    let planted = trace.names.iter().find(|name| name.text == "planted").unwrap().index;
    let tick = trace.region("tick").unwrap().index;
    let mut calls: Vec<(u64, f64)> = Vec::new();
    for thread in &trace.threads {
        let mut plant = 0;
        for event in &thread.events {
            if event.name == planted {
                plant = event.argument;
            } else if event.name == tick && event.kind == Kind::Region && event.arm == Arm::None {
                calls.push((plant, event.duration_ns as f64));
            }
        }
    }
    let without = |cause: u64| {
        let left = calls.iter().filter(|(plant, _)| *plant != cause).map(|(_, duration)| *duration);
        left.collect::<Sample>().shape(TAIL).unwrap()
    };
    let all = without(u64::MAX);
    std::array::from_fn(|cause| (all.tail_mean - without(cause as u64).tail_mean) / all.excess())
}

#[test]
fn the_planted_cause_is_named_first_and_its_share_is_inside_the_interval() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path());
    let file = folder.path().join("tail.trace");
    let cases = [
        (["80", "0", "0"], Cause::CodeMisses, 1),
        (["0", "80", "0"], Cause::DataMisses, 2),
        (["0", "0", "80"], Cause::LockWaiting, 3),
        (["0", "60", "30"], Cause::DataMisses, 2),
    ];
    for (per_thousand, cause, plant) in cases {
        let status = Command::new(&program)
            .env_remove("LD_LIBRARY_PATH")
            .arg(&file)
            .arg("12000")
            .args(per_thousand)
            .status()
            .unwrap();
        assert!(status.success());
        let trace = Trace::parse(&std::fs::read(&file).unwrap()).unwrap();
        let truth = planted_shares(&trace)[plant];
        let found = attribute(&trace, "tick", TAIL).unwrap();
        let share = found.findings[0].tail_share().unwrap();
        println!(
            "{per_thousand:?}: {cause:?} planted {truth:.3}, found {share:.3?}, left {:?}",
            found.unexplained_tail_share
        );
        assert_eq!(found.first_cause, Some(cause), "{found:#?}");
        assert_eq!(found.findings[0].cause, cause);
        assert!(
            share.low - IMPERFECTION <= truth && truth <= share.high + IMPERFECTION,
            "{cause:?}: planted {truth}, found {share:?}"
        );
        assert!(found.findings.iter().any(|finding| finding.cause == Cause::MoreInstructions));
    }
}
