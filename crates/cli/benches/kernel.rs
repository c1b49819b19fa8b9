//! What recording a kernel costs: `cargo bench -p lineup --bench kernel`.
//!
//! The busy workload on Debian's cloud kernel, booted bare and recorded with all three caches modelled (goal: at most 4
//! times). The commands take turns; medians of the whole time, boot included, and of the workload alone are printed.

mod setup;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const ROUNDS: usize = 3;

fn main() {
    let kernel = setup::kernel();
    let kernel = kernel.to_str().expect("a UTF-8 path");
    let lineup = setup::release_build();
    let folder = tempfile::tempdir().expect("a scratch folder");
    let bare = [&["kernel", kernel][..], &["--boot", "--workload", "busy", "--json"]].concat();
    let record = ["record", "--kernel", kernel, "--region", "timer", "--workload", "busy", "--json"];
    let (mut bare_times, mut record_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare_times.push(time(&lineup, &bare, folder.path(), "boot"));
        record_times.push(time(&lineup, &record, folder.path(), "guest"));
    }
    println!("the cloud kernel's boot and the busy workload, {ROUNDS} rounds, medians");
    for (what, part) in [("all", 0), ("the workload", 1)] {
        let of = |times: &[[f64; 2]]| median(times.iter().map(|time| time[part]).collect());
        let (bare, record) = (of(&bare_times), of(&record_times));
        let goal = if part == 0 { " (goal 4)" } else { "" };
        println!("  {what:13} bare {bare:8.3} s, recorded {record:8.3} s  {:5.2} times{goal}", record / bare);
    }
}

/// Seconds of a run, and of its guest's workload.
fn time(lineup: &Path, arguments: &[&str], folder: &Path, guest: &str) -> [f64; 2] {
    let begun = Instant::now();
    let output = Command::new(lineup)
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .output()
        .expect("lineup runs");
    let all = begun.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    [all, report[guest]["workload_seconds"].as_f64().expect("seconds")]
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
