//! How much of what a kernel does has a name: `cargo bench -p lineup --bench naming`.
//!
//! Calls of four sets of regions on Debian's cloud kernel, explained with the DWARF of its debug package (goal: at least 95 %
//! of the data accesses off the stack named) and with the BTF that the image itself holds (goal: at least 85 %). Where
//! the rest is, by function, is listed. LINEUP_BENCH_KERNEL and LINEUP_BENCH_VMLINUX name other files to use.

mod setup;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Sets of regions, each with a workload that makes their calls.
const SETS: [(&str, &str); 4] =
    [("timer", "busy"), ("clockevents", "busy"), ("net-rx", "net"), ("tcp", "net")];

fn main() {
    let lineup = setup::release_build();
    let kernel = setup::kernel();
    let vmlinux = setup::vmlinux();
    println!("data accesses with a name, on {}", kernel.display());
    for (set, workload) in SETS {
        for (from, debug, goal) in [("DWARF", Some(&*vmlinux), 0.95), ("BTF alone", None, 0.85)] {
            print(set, from, goal, &explained(&lineup, &kernel, debug, (set, workload)));
        }
    }
}

/// Records a set of regions and has its accesses named.
fn explained(lineup: &Path, kernel: &Path, debug: Option<&Path>, (set, workload): (&str, &str)) -> Value {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(lineup);
        command.args(arguments).current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path());
        command
    };
    let mut record =
        command(&["record", "--region", set, "--workload", workload, "--out", "calls", "--kernel"]);
    record.arg(kernel);
    if let Some(debug) = debug {
        record.arg("--debug").arg(debug);
    }
    setup::shown(&mut record);
    let explanation = setup::shown(&mut command(&["explain", "calls", "--json"]));
    serde_json::from_str(&explanation).expect("JSON")
}

fn print(set: &str, from: &str, goal: f64, explanation: &Value) {
    let coverage = &explanation["coverage"];
    let share = |key: &str| coverage[key].as_f64().expect("a share");
    let accesses = coverage["accesses"].as_u64().expect("accesses");
    println!(
        "  {set:<12} {from:<10} {:6.2} % of {accesses} ({:.2} % of those outside stacks); goal {:.0} %: {}",
        100.0 * share("named"),
        100.0 * share("named_off_stack"),
        100.0 * goal,
        if share("named_off_stack") >= goal { "met" } else { "NOT met" },
    );
    let mut unnamed: BTreeMap<&str, u64> = BTreeMap::new();
    let regions = explanation["regions"].as_array().expect("regions");
    for function in regions.iter().filter_map(|region| region["unnamed"].as_array()).flatten() {
        let name = function["function"].as_str().expect("a function");
        *unnamed.entry(name).or_default() += function["accesses"].as_u64().expect("accesses");
    }
    let mut unnamed: Vec<(&str, u64)> = unnamed.into_iter().collect();
    unnamed.sort_by_key(|(_, accesses)| std::cmp::Reverse(*accesses));
    for (function, without) in unnamed {
        println!("    {:6.3} % unnamed in {function}", 100.0 * without as f64 / accesses as f64);
    }
}
