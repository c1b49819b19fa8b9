//! Beside `perf stat -r` and `hyperfine` on one workload: the same means within error.

use serde_json::Value;
use std::process::Command;

const RUNS: &str = "12";

/// A mean with its standard error, in seconds.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    error: f64,
}

impl Mean {
    fn agrees(self, other: Mean) -> bool {
        let allowed = 4.0 * self.error.hypot(other.error) + 0.01 * self.mean;
        (self.mean - other.mean).abs() <= allowed
    }
}

fn run(program: &str, arguments: &[&str], package: &str) -> (String, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}: apt-get install {package}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{program}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

fn lineup() -> (Mean, Value) {
    let (out, _) =
        run(env!("CARGO_BIN_EXE_lineup"), &["measure", "-r", RUNS, "--json", "--", "sleep", "0.15"], "-");
    let result: Value = serde_json::from_str(&out).expect("JSON");
    let metrics = result["metrics"].as_array().expect("metrics");
    let elapsed = metrics.iter().find(|metric| metric["name"] == "elapsed").expect("elapsed");
    let seconds = |field: &str| elapsed[field].as_f64().expect("a number") / 1e9;
    (Mean { mean: seconds("mean"), error: seconds("standard_error") }, result)
}

/// The line `0.15123 +- 0.00012 seconds time elapsed`, and the mean of the page faults.
fn perf() -> (Mean, f64) {
    let (_, text) = run("perf", &["stat", "-r", RUNS, "sleep", "0.15"], "linux-perf");
    let words = |needle: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.contains(needle)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().map(str::to_owned).collect()
    };
    let elapsed = words("time elapsed");
    let number = |text: &str| text.replace(',', "").parse::<f64>().expect("a number");
    (Mean { mean: number(&elapsed[0]), error: number(&elapsed[2]) }, number(&words("page-faults")[0]))
}

fn hyperfine() -> Mean {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("a path");
    run("hyperfine", &["-N", "--runs", RUNS, "--export-json", path, "sleep 0.15"], "hyperfine");
    let result: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("a result")).expect("JSON");
    let field = |name: &str| result["results"][0][name].as_f64().expect("a number");
    let runs: f64 = RUNS.parse().expect("a number");
    Mean { mean: field("mean"), error: field("stddev") / runs.sqrt() }
}

#[test]
fn means_agree_with_perf_stat_and_hyperfine() {
    let ((ours, result), (perf, faults), hyperfine) = (lineup(), perf(), hyperfine());
    assert!(ours.agrees(perf), "lineup {ours:?}, perf {perf:?}");
    assert!(ours.agrees(hyperfine), "lineup {ours:?}, hyperfine {hyperfine:?}");
    let metrics = result["metrics"].as_array().expect("metrics");
    let own = metrics.iter().find(|metric| metric["name"] == "page-faults").expect("page faults");
    let own = own["mean"].as_f64().expect("a number");
    assert!((own - faults).abs() <= 0.1 * faults, "page faults: lineup {own}, perf {faults}");
}
