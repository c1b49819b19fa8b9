//! The cost of recording a kernel: `cargo bench -p lineup --bench kernel`.
//!
//! Three workloads on Debian's cloud kernel: booted bare, recorded without caches (goal: at most 1.5 times the
//! workload), and with all three caches modelled (goal: at most 2.5 times). The commands take turns; medians of the
//! whole time, boot included, and of the workload alone are printed.

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
    for workload in ["busy", "wakeup", "net"] {
        side_by_side(&lineup, kernel, workload, folder.path());
    }
}

/// Runs one workload in three ways, in turn, and prints their times.
fn side_by_side(lineup: &Path, kernel: &str, workload: &str, folder: &Path) {
    let bare = ["kernel", kernel, "--boot", "--workload", workload, "--json"];
    let full = ["record", "--kernel", kernel, "--region", "timer", "--workload", workload, "--json"];
    let without = [&full[..], &["--no-caches"]].concat();
    let ways = [("bare", &bare[..], "boot"), ("without caches", &without, "guest"), ("all", &full, "guest")];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for ((_, arguments, guest), times) in ways.iter().zip(&mut times) {
            times.push(time(lineup, arguments, folder, guest));
        }
    }
    println!("{workload}: the cloud kernel, {ROUNDS} rounds, medians");
    for (what, part) in [("with its boot", 0), ("the workload", 1)] {
        let of = |times: &[[f64; 2]]| median(times.iter().map(|time| time[part]).collect());
        let bare = of(&times[0]);
        for ((way, ..), times) in ways.iter().zip(&times) {
            println!("  {what:13} {way:14} {:8.3} s {:5.2} times bare", of(times), of(times) / bare);
        }
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
