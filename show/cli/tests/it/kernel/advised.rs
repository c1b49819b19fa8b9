//! From a recorded kernel to objects of its own sources, compiled with the proposals: `make kernel-study` in small.

use super::guests::{QUICK, kernel};
use super::record::{bench, printed};
use crate::fetched;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the tick's sources.
const PART: &str = "kernel/time/";

/// The sources of Debian's 6.1 kernel in the version of an image, with this part prepared for kbuild.
fn sources(version: &str) -> PathBuf {
    let cache = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kernels").display().to_string();
    fetched::by("kernel-tree", &["6.1", version, &cache, PART])
}

/// The package's version, from the kernel's banner.
fn package_version(banner: &str) -> &str {
    let (_, rest) = banner.split_once(" Debian ").expect("Debian's kernel");
    rest.split(' ').next().expect("a version")
}

#[test]
#[ignore = "boots a kernel and compiles some of its sources; make test-kernel runs it"]
fn objects_compiled_with_the_proposed_order_have_it_where_it_was_predicted() {
    let bench = bench();
    let image = kernel("cloud");
    let known = printed(&bench, &["kernel", &image.display().to_string()]);
    let tree = sources(package_version(known["banner"].as_str().expect("the kernel's version")));
    let wanted =
        ["--region", "tick_sched_timer", "--region", "hrtimer_interrupt", "--calls", "200", "--no-caches"];
    let cmdline = format!("nohz=off {QUICK}");
    let guest = ["--workload", "busy", "--cmdline", &cmdline, "--timeout", "1500", "--out", "tick.rec"];
    let output = bench.run(&image, &[&wanted[..], &guest].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let tree_name = tree.display().to_string();
    let rules =
        ["--least-share", "0.5", "--most-moved", "3", "--no-clang", "--patch", "tick.not-built.patch"];
    let advice = printed(&bench, &[&["advise", "tick.rec", "--source", &tree_name], &rules[..]].concat());
    let path = |name: &str| bench.folder.path().join(name);
    let patch = std::fs::read_to_string(path("tick.not-built.patch")).expect("a patch");
    assert!(patch.starts_with("NOT BUILT"), "a stock image was not built with it: {patch}");
    assert!(moved(&advice).contains(&"tick_sched"), "{:?}", moved(&advice));
    for order in advice["orders"].as_array().expect("orders") {
        let lines = order["lines"].as_array().expect("lines");
        let figure = |line: &Value, side: &str| line[side].as_f64().expect("a mean");
        assert!(lines.iter().any(|line| figure(line, "after") < figure(line, "before")), "{order:#}");
    }

    std::fs::write(path("advice.json"), advice.to_string()).expect("writes");
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/kernel-advice/check");
    let mut check = Command::new(check);
    check.arg(&tree).args([path("tick.not-built.patch"), path("advice.json")]);
    let output = check.output().expect("python3");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for name in moved(&advice) {
        let places = said.lines().filter(|line| line.starts_with(&format!("{name} in {PART}")));
        let is_so = |line: &str| line.contains(" members where they were predicted; ");
        let (so, all) = places.fold((0, 0), |(so, all), line| (so + usize::from(is_so(line)), all + 1));
        assert!(all > 0 && so == all, "{name}: {said}");
    }
}

/// The types that a proposal reorders.
fn moved(advice: &Value) -> Vec<&str> {
    let orders = advice["orders"].as_array().expect("orders").iter();
    orders.map(|order| order["type"].as_str().expect("a type")).collect()
}
