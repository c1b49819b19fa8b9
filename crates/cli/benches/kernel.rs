//! What recording a kernel costs: `cargo bench -p lineup --bench kernel`.
//!
//! The busy workload on Debian's cloud kernel, booted bare and recorded with all three caches modelled (goal: at most 4
//! times). The commands take turns; medians of the whole time, boot included, and of the workload alone are printed.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 3;

fn main() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kernel = kernel(&workspace);
    let lineup = release_build(&workspace);
    let folder = tempfile::tempdir().expect("a scratch folder");
    let bare = [&["kernel", &kernel][..], &["--boot", "--workload", "busy", "--json"]].concat();
    let record = ["record", "--kernel", &kernel, "--region", "timer", "--workload", "busy", "--json"];
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

fn kernel(workspace: &Path) -> String {
    let mut fetch = Command::new(workspace.join("scripts/kernel-fetch"));
    let output = fetch.arg("cloud").stderr(Stdio::inherit()).output().expect("scripts/kernel-fetch runs");
    assert!(output.status.success(), "scripts/kernel-fetch failed");
    String::from_utf8(output.stdout).expect("a path").trim().to_owned()
}

/// The optimised command, with the recorder beside it.
fn release_build(workspace: &Path) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(workspace).args([
        "build",
        "--quiet",
        "--release",
        "-p",
        "lineup",
        "-p",
        "lineup-plugin",
    ]);
    assert!(cargo.status().expect("cargo").success(), "the build failed");
    // This very executable lies in the folder `deps` of the release profile.
    let own = std::env::current_exe().expect("this executable");
    let command = own.ancestors().map(|folder| folder.join("lineup")).find(|file| file.is_file());
    command.expect("the lineup command")
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
