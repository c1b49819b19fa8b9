//! A study parts what threads fight over, and places threads where that shows.

mod installed;
mod place;

use place::Place;
use serde_json::Value;

/// Two threads add to neighbouring counters.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int together;
struct counters { atomic_long first, second; } counters;
__attribute__((noinline)) void count(atomic_long *own) {
    together++;
    while (together < 2) sched_yield();
    for (long i = 0; i < 20000; i++) atomic_fetch_add(own, 1);
}
static void *run(void *own) { count(own); return 0; }
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, run, &counters.first);
    pthread_create(&threads[1], 0, run, &counters.second);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld\n", counters.first + counters.second);
    return 0;
}
"#;

fn study(more: &[&str], status: i32) -> (Value, String) {
    let place = Place::new(COUNTERS, &["-pthread"]);
    let mut study =
        place.lineup(&["study", "--region", "count", "--engine", "native", "--json", "--no-clang"]);
    study.args(["--max-time", "1", "--margin", "1000%", "--out", "out"]).args(more).args(["--", "./program"]);
    let output = study.output().expect("lineup runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{told}");
    let patch = std::fs::read_to_string(place.source().join("out/fix.patch")).unwrap_or_default();
    place.assert_clean();
    (serde_json::from_slice(&output.stdout).expect("a report"), patch)
}

fn fact<'r>(report: &'r Value, name: &str) -> Option<&'r str> {
    let setting = report["setting"].as_array().expect("facts");
    setting.iter().find(|fact| fact["name"] == name)?["value"].as_str()
}

#[test]
fn counters_of_two_threads_are_parted_when_the_type_may_grow() {
    let (report, patch) = study(&["--allow-growth"], 0);
    let added: Vec<&str> = patch.lines().filter(|line| line.starts_with('+')).collect();
    assert!(
        patch.starts_with("counters: keep what different threads use on cache lines of its own"),
        "{patch}"
    );
    assert!(
        added
            .iter()
            .any(|line| line.contains("atomic_long first; int : 32") && line.contains("atomic_long second;")),
        "{patch}"
    );
    let proposal = &report["proposals"][0];
    assert_eq!((&proposal["kind"], &proposal["target"]), (&"part".into(), &"counters".into()), "{report:#}");
    assert_eq!(fact(&report, "timed runs"), Some("each thread on a CPU of its own"));
    assert!(report["proof"].is_object(), "both variants did the same and were timed: {report:#}");
}

#[test]
fn without_leave_to_grow_it_is_told_and_nothing_is_changed() {
    let (report, patch) = study(&[], 0);
    assert_eq!(patch, "");
    let proposals = report["proposals"].as_array().expect("proposals");
    let told = proposals.iter().find(|one| one["kind"] == "part").expect("it is told");
    assert!(
        told["summary"].as_str().is_some_and(|summary| summary.contains("(first) and (second)")),
        "{told:#}"
    );
    assert_eq!(fact(&report, "timed runs"), None);
}
