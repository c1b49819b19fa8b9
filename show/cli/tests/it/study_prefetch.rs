//! A study tries prefetches in loops that stall, says how each did, and why the others have none. Whether one gains is
//! the clock's to say: no test asks for it.

use crate::place::Place;
use crate::schema;
use serde_json::Value;
use std::fs;

/// A loop that indexes by values in memory, one that might end before it reads them, and one that follows a list.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define ITEMS 400000
struct item { long key; struct item *next; long rest[6]; };
__attribute__((noinline)) static long gather(const long *values, const int *order, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        sum = 3 * sum + values[order[i]];
    }
    return sum;
}
__attribute__((noinline)) static long until(const long *values, const int *order, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        if (order[i] < 0) break;
        sum = 5 * sum + values[order[i]];
    }
    return sum;
}
__attribute__((noinline)) static long walk(const struct item *p) {
    long sum = 0;
    for (; p; p = p->next)
        sum = 3 * sum + p->key % 7;
    return sum;
}
int main(int count, char **arguments) {
    long *values = calloc(8 * ITEMS, sizeof *values);
    int *order = calloc(ITEMS, sizeof *order);
    struct item *items = calloc(ITEMS, sizeof *items);
    unsigned seed = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
    for (int i = 0; i < ITEMS; i++) {
        seed = seed * 1664525 + 1013904223;
        order[i] = (int)(seed % (8 * ITEMS));
        items[i].key = i;
        items[i].next = i ? &items[(long)i * 7919 % i] : NULL;
    }
    printf("%ld %ld %ld\n", gather(values, order, ITEMS), until(values, order, ITEMS), walk(&items[ITEMS - 1]));
    return 0;
}
"#;

/// The lever of prefetches in a report.
fn lever(report: &Value) -> &Value {
    let levers = report["levers"].as_array().expect("levers");
    levers.iter().find(|one| one["lever"] == "prefetch").unwrap_or_else(|| panic!("none: {levers:#?}"))
}

#[test]
fn prefetches_are_tried_at_each_distance_and_other_loops_have_a_reason() {
    let place = Place::new(PROGRAM, &[]);
    let arguments = [
        "study",
        "--only",
        "prefetch",
        "--json",
        "--max-time",
        "2",
        "--test-arguments",
        "3",
        "--",
        "./program",
    ];
    let output = place.lineup(&arguments).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = schema::checked(&output.stdout);
    let prefetch = lever(&report);
    let details: Vec<&str> =
        prefetch["details"].as_array().expect("details").iter().filter_map(Value::as_str).collect();
    for turns in [4, 16, 64] {
        let statement = format!("if (i < count - {turns}) __builtin_prefetch(&values[order[i + {turns}]]);");
        let tried = details.iter().find(|detail| detail.contains(&statement));
        let tried = tried.unwrap_or_else(|| panic!("{statement}: {details:#?}"));
        assert!(tried.contains("(gather)") && tried.contains("in the rounds"), "{tried}");
    }
    let refused = details.iter().find(|detail| detail.contains("(until)")).expect("the loop with a break");
    assert!(refused.contains("may end by `break`"), "{refused}");
    assert!(prefetch["elapsed"]["ratio"].is_number(), "{prefetch:#}");
    let folder = place.source().join("lineup-study");
    let text = fs::read_to_string(folder.join("prefetch/prefetch.txt")).expect("the details");
    assert!(text.contains("may end by `break`"), "{text}");
    let is_gain = prefetch["is_gain"] == true;
    assert_eq!(folder.join("prefetch/fix.patch").exists(), is_gain);
    assert_eq!(folder.join("series/0001-prefetch.patch").exists(), is_gain);
    if is_gain {
        let patch = fs::read_to_string(folder.join("prefetch/fix.patch")).expect("a patch");
        assert!(patch.contains("+") && patch.contains("__builtin_prefetch("), "{patch}");
        assert!(prefetch["actions"][0]["text"].as_str().is_some_and(|text| text.contains("fix.patch")));
    }
}

#[test]
fn a_study_without_readable_loops_says_so() {
    let place = Place::new(PROGRAM, &[]);
    let arguments = ["study", "--only", "prefetch", "--no-clang", "--json", "--", "./program"];
    let output = place.lineup(&arguments).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = schema::checked(&output.stdout);
    assert_eq!(lever(&report)["result"], "not tried: --no-clang leaves the loops unread");
}
