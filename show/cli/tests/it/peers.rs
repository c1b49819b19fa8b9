//! Compared with `perf stat -r` and `hyperfine` on one workload, in turn: the same means within error.

use serde_json::Value;
use std::process::Command;

const ROUNDS: usize = 6;
const RUNS: &str = "2";

/// True when the mean difference, round by round, is within four standard errors, or a hundredth.
fn agree(ours: &[f64], theirs: &[f64]) -> bool {
    let differences: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let middle = mean(&differences);
    let squares: Vec<f64> = differences.iter().map(|value| (value - middle).powi(2)).collect();
    let error = (mean(&squares) / (differences.len() - 1) as f64).sqrt();
    middle.abs() <= 4.0 * error + 0.01 * mean(ours)
}

fn run(program: &str, arguments: &[&str], package: &str) -> (String, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}: apt-get install {package}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn lineup() -> (f64, f64) {
    let (out, _) =
        run(env!("CARGO_BIN_EXE_lineup"), &["measure", "-r", RUNS, "--json", "--", "sleep", "0.15"], "-");
    let result: Value = serde_json::from_str(&out).expect("JSON");
    let metrics = result["metrics"].as_array().expect("metrics");
    let mean = |name: &str| {
        let metric = metrics.iter().find(|metric| metric["name"] == name).expect(name);
        metric["mean"].as_f64().expect("a number")
    };
    (mean("elapsed") / 1e9, mean("page-faults"))
}

/// The line `0.15123 +- 0.00012 seconds time elapsed`, and the mean of the page faults.
fn perf() -> (f64, f64) {
    let (_, text) = run("perf", &["stat", "-r", RUNS, "sleep", "0.15"], "linux-perf");
    let first_word = |needle: &str| {
        let line = text.lines().find(|line| line.contains(needle)).unwrap_or_else(|| panic!("{text}"));
        let word = line.split_whitespace().next().expect("a word");
        word.replace(',', "").parse::<f64>().expect("a number")
    };
    (first_word("time elapsed"), first_word("page-faults"))
}

fn hyperfine() -> f64 {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path");
    run("hyperfine", &["-N", "--runs", RUNS, "--export-json", path, "sleep 0.15"], "hyperfine");
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a result")).expect("JSON");
    result["results"][0]["mean"].as_f64().expect("a number")
}

#[test]
fn means_agree_with_perf_stat_and_hyperfine() {
    let (mut ours, mut of_perf, mut of_hyperfine) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (elapsed, own_faults) = lineup();
        let (perf_elapsed, faults) = perf();
        ours.push(elapsed);
        of_perf.push(perf_elapsed);
        of_hyperfine.push(hyperfine());
        assert!(
            (own_faults - faults).abs() <= 0.1 * faults,
            "page faults: lineup {own_faults}, perf {faults}"
        );
    }
    assert!(agree(&ours, &of_perf), "seconds: lineup {ours:?}, perf {of_perf:?}");
    assert!(agree(&ours, &of_hyperfine), "seconds: lineup {ours:?}, hyperfine {of_hyperfine:?}");
}
