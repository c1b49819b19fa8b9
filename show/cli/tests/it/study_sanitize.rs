//! `--sanitize`: a change under which AddressSanitizer finds a new fault is refused, and others say that nothing is new.

use crate::place::Place;
use crate::schema;
use serde_json::Value;

/// `next` reads behind the member that it is given: in the order of the declaration the object has a member there. The
/// value changes nothing.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct item {
    int key;
    int spare;
    char name[96];
    int rest;
};
static volatile int sink;
__attribute__((noinline)) static int next(const int *of) { return of[1]; }
__attribute__((noinline)) long work(struct item **all, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) { sum += all[i]->key + all[i]->rest; if (READS) sink = next(&all[i]->key); }
    return sum;
}
int main(void) {
    enum { COUNT = 2000 };
    static struct item *all[COUNT];
    for (int i = 0; i < COUNT; i++) { all[i] = calloc(1, sizeof *all[i]); all[i]->key = i; }
    long sum = 0;
    for (int turn = 0; turn < 20; turn++) sum += work(all, COUNT);
    printf("%ld\n", sum);
    return 0;
}
"#;

fn studied(reads: &str, more: &[&str]) -> (Value, String, bool) {
    let place = Place::new(&PROGRAM.replace("READS", reads), &[]);
    let orders = place.source().join("orders").display().to_string();
    std::fs::write(&orders, "item:\n  spare, name, rest, key\n").expect("a file");
    let own = [
        "study",
        "--json",
        "--region",
        "work",
        "--sanitize",
        "--max-time",
        "1",
        "--no-clang",
        "--calls",
        "20",
    ];
    let arguments = [&own[..], more, &["--order", &orders, "--", "./program"]].concat();
    let output = place.lineup(&arguments).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let has_patch = place.source().join("lineup-study/fix.patch").exists();
    (schema::checked(&output.stdout), said, has_patch)
}

/// The report's fact of that name.
fn fact(report: &Value, name: &str) -> Option<String> {
    let facts = report["setting"].as_array().expect("facts");
    let fact = facts.iter().find(|fact| fact["name"] == name)?;
    fact["value"].as_str().map(str::to_owned)
}

#[test]
fn a_change_with_a_new_fault_is_refused_and_another_says_that_nothing_is_new() {
    let (report, said, has_patch) = studied("1", &[]);
    let is_named = report.to_string().contains("AddressSanitizer: heap-buffer-overflow in next");
    assert!(!has_patch && is_named, "{said}");
    let (report, said, has_patch) = studied("0", &["--audit", "./program"]);
    let words = fact(&report, "sanitizers");
    assert_eq!(words.as_deref(), Some("nothing new in 2 runs of each program"), "{said}");
    assert!(has_patch, "{said}");
}
