//! The share of a kernel's accesses that have a name: `cargo bench -p lineup --bench naming`.
//!
//! It explains calls of four sets of regions, by two workloads, on a guest with one CPU and with two. It uses the DWARF
//! of the kernel's debug package (goal: at least 95 % of the data accesses off the stack named) and the BTF that the
//! image itself holds (goal: at least 85 %). It prints a row for each, as the manual has them, and below it the
//! functions with the most unnamed accesses. LINEUP_BENCH_KERNELS names other kernels than Debian's cloud kernel, as
//! `scripts/kernel-fetch` names them: "cloud cloud-6.12 rt arm64".

mod setup;

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sets of regions, and the workload that makes their calls.
const SETS: [([&str; 2], &str); 2] = [(["timer", "clockevents"], "busy"), (["net-rx", "tcp"], "net")];
/// Functions listed of each explanation.
const UNNAMED_SHOWN: usize = 5;

/// A kernel, and the source of its names.
struct Kernel {
    name: String,
    image: PathBuf,
    vmlinux: PathBuf,
}

fn main() {
    let lineup = setup::release_build();
    let names = std::env::var("LINEUP_BENCH_KERNELS").unwrap_or_else(|_| "cloud".to_owned());
    println!("| kernel | CPUs | regions | accesses off the stack | with DWARF | with BTF alone |");
    println!("|---|---|---|---|---|---|");
    for name in names.split_whitespace() {
        let image = setup::fetched::by("kernel-fetch", &[name]);
        let kernel = Kernel {
            name: release(&image).to_owned(),
            image,
            vmlinux: setup::fetched::by("kernel-fetch", &["--debug", name]),
        };
        for cpus in ["1", "2"] {
            for set in SETS {
                survey(&lineup, &kernel, cpus, set);
            }
        }
    }
}

fn release(image: &Path) -> &str {
    let name = image.file_name().and_then(|name| name.to_str()).expect("a UTF-8 name");
    name.strip_prefix("vmlinuz-").expect("an image named as Debian names it")
}

/// Records and explains once with each kind of names, and prints a row.
fn survey(lineup: &Path, kernel: &Kernel, cpus: &str, set: ([&str; 2], &str)) {
    let [by_dwarf, by_btf] =
        [Some(&*kernel.vmlinux), None].map(|debug| explained(lineup, &kernel.image, debug, cpus, set));
    let share = |explanation: &Value, goal: f64| {
        let share = explanation["coverage"]["named_off_stack"].as_f64().expect("a share");
        format!("{:.2} %{}", 100.0 * share, if share >= goal { "" } else { " (goal NOT met)" })
    };
    println!(
        "| {} | {cpus} | `{}` | {} | {} | {} |",
        kernel.name,
        set.0.join("`, `"),
        off_stack(&by_dwarf),
        share(&by_dwarf, 0.95),
        share(&by_btf, 0.85),
    );
    for (from, explanation) in [("DWARF", &by_dwarf), ("BTF", &by_btf)] {
        print_unnamed(from, explanation);
    }
}

/// Records sets of regions and has their accesses named.
fn explained(
    lineup: &Path,
    kernel: &Path,
    debug: Option<&Path>,
    cpus: &str,
    (sets, workload): ([&str; 2], &str),
) -> Value {
    let folder = tempfile::tempdir().expect("a scratch folder");
    let command = |arguments: &[&str]| {
        let mut command = Command::new(lineup);
        command.args(arguments).current_dir(folder.path()).env("XDG_CACHE_HOME", folder.path());
        command
    };
    // Names do not depend on cache misses.
    let mut record = command(&["record", "--workload", workload, "--no-caches", "--calls", "200"]);
    for set in sets {
        record.args(["--region", set]);
    }
    record.args(["--cpus", cpus, "--timeout", "1500", "--out", "calls", "--kernel"]).arg(kernel);
    if let Some(debug) = debug {
        record.arg("--debug").arg(debug);
    }
    // Fetched with a kernel for another machine.
    let busybox = kernel.ancestors().nth(2).expect("the kernel's folder").join("bin/busybox");
    if busybox.exists() {
        record.arg("--busybox").arg(busybox);
    }
    setup::shown(&mut record);
    let explanation = setup::shown(&mut command(&["explain", "calls", "--json"]));
    serde_json::from_str(&explanation).expect("JSON")
}

fn off_stack(explanation: &Value) -> u64 {
    let coverage = &explanation["coverage"];
    let accesses = coverage["accesses"].as_u64().expect("accesses");
    accesses - coverage["by_class"]["stack"].as_u64().unwrap_or_default()
}

fn print_unnamed(from: &str, explanation: &Value) {
    let all = off_stack(explanation);
    let mut unnamed: BTreeMap<&str, u64> = BTreeMap::new();
    let regions = explanation["regions"].as_array().expect("regions");
    for function in regions.iter().filter_map(|region| region["unnamed"].as_array()).flatten() {
        let name = function["function"].as_str().expect("a function");
        *unnamed.entry(name).or_default() += function["accesses"].as_u64().expect("accesses");
    }
    let mut unnamed: Vec<(&str, u64)> = unnamed.into_iter().collect();
    unnamed.sort_by_key(|(_, accesses)| std::cmp::Reverse(*accesses));
    let shares =
        unnamed.iter().map(|(name, without)| format!("{name} {:.2} %", 100.0 * *without as f64 / all as f64));
    let shares: Vec<String> = shares.take(UNNAMED_SHOWN).collect();
    eprintln!("  {from}: without a name in {}", shares.join(", "));
}
