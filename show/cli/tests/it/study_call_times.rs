//! A study compares the times of its regions' calls, and names those that it cannot time.

use crate::place::Place;
use crate::schema;
use serde_json::Value;

/// `work` has three hot members on three lines, and room for the stamp before its return; `jump` goes to a place that
/// only the running program knows.
const PROGRAM: &str = r#"
#include <stdio.h>
struct item { long a; char b[56]; long c; char d[56]; long e; };
static struct item items[64];
__attribute__((noinline)) long work(int n) {
    long sum = 0;
    for (int i = 0; i < 64; i++) {
        struct item *item = &items[(n + i) % 64];
        item->a += n; item->c += item->a; item->e ^= item->c;
        sum += item->e;
    }
    return (sum ^ items[3].c) * 1000003 + items[5].e;
}
static long even(int n) { return n - items[2].a; }
static long (*volatile away)(int) = even;
__attribute__((noinline)) long jump(int n) { return away(n + 1); }
int main(void) {
    long sum = 0;
    for (int n = 0; n < 700; n++) sum += work(n) + jump(n);
    printf("%ld\n", sum);
    return 0;
}
"#;

#[test]
fn the_time_of_calls_is_compared_and_who_cannot_be_timed_is_named() {
    let place = Place::new(PROGRAM, &[]);
    let mut study =
        place.lineup(&["study", "--region", "work", "--region", "jump", "--calls", "50", "--json"]);
    study.args(["--max-time", "1", "--margin", "1000%", "--", "./program"]);
    let output = study.output().expect("lineup runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let report: Value = schema::checked(&output.stdout);
    let [work, jump] = report["regions"].as_array().expect("regions").as_slice() else {
        panic!("{report:#}")
    };
    let time = &work["time"];
    assert_eq!(time["calls_per_run"], 700, "{:#}", report["not_observed"]);
    let runs = |side: &str| time["all_calls"][side].as_array().map_or(0, Vec::len);
    assert!(runs("before_ns") >= 6 && runs("before_ns") == runs("after_ns"), "{time:#}");
    assert!(time["all_calls"]["ratio"].as_f64().expect("a ratio") > 0.0);
    assert!(jump["time"].is_null());
    let not_observed = report["not_observed"].as_array().expect("a list");
    let of_jump = not_observed.iter().find(|one| one["what"] == "time of calls of jump").expect("a reason");
    let why = of_jump["consequence"].as_str().expect("words");
    assert!(why.contains("jump"), "{why}");
    place.assert_clean();
}
