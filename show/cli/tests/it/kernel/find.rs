//! Findings in a kernel, from a guest's whole work.

use super::guests::{Bench, kernel};
use serde_json::Value;

fn found(arguments: &[&str]) -> Value {
    Bench::new(&["find", "--kernel"]).json(&kernel("cloud-6.12"), arguments)
}

/// The types that a guest's work stalls for most, by name.
fn types(found: &Value) -> Vec<&str> {
    let owners = found["owners"].as_array().expect("owners").iter();
    owners.filter(|owner| owner["class"] == "member").filter_map(|owner| owner["name"].as_str()).collect()
}

/// The kernel works for a task or for an interrupt, except for the time before the first entry.
fn works_for_tasks_and_interrupts(found: &Value) {
    let contexts = found["contexts"].as_array().expect("contexts");
    let share = |is_interrupt: bool| -> f64 {
        let own = contexts.iter().filter(|one| one["is_interrupt"] == is_interrupt);
        own.filter_map(|one| one["share"].as_f64()).sum()
    };
    let (of_tasks, of_interrupts) = (share(false), share(true));
    assert!((0.98..1.001).contains(&(of_tasks + of_interrupts)), "{of_tasks} {of_interrupts}");
    assert!(of_interrupts > 0.005 && of_interrupts < of_tasks, "{of_tasks} {of_interrupts}");
    let tasks: Vec<&Value> = contexts.iter().filter(|one| one["stack"].is_string()).collect();
    assert!(tasks.len() > 3, "{contexts:?}");
    let is_named = |name: &str| tasks.iter().any(|task| task["task"] == name && task["pid"].is_u64());
    assert!(is_named("nc") && is_named("init"), "{contexts:?}");
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn a_guest_at_work_shows_the_types_that_its_kernel_stalls_for() {
    let net = found(&["--workload", "net"]);
    for expected in ["task_struct", "sk_buff", "rq"] {
        assert!(types(&net)[..20].contains(&expected), "{expected}: {net}");
    }
    let first = &net["findings"][0];
    assert!(first["next"].as_str().is_some_and(|next| next.contains("record --kernel")), "{first}");
    assert!(net["notes"].to_string().contains("programs executed"), "{}", net["notes"]);
    works_for_tasks_and_interrupts(&net);
    // The network is not used by processes that wake each other.
    let wakeup = found(&["--workload", "wakeup"]);
    assert!(!types(&wakeup)[..20].contains(&"sk_buff"), "{wakeup}");
    // A guest does the same each time.
    let idle = || found(&["--workload", "idle"])["stalls"].clone();
    assert_eq!(idle(), idle());
}
