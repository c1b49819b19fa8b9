//! A study takes objects from blocks in the sources, says how each type did, and why others stay where they are. Whether
//! it gains is the clock's to say: no test asks for it.

use crate::place::Place;
use crate::schema;
use serde_json::Value;
use std::fs;

/// A tree that nothing ends, and a list whose objects a function ends that only the run knows.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct tree { int value; struct tree *left, *right; };
struct link { long key; struct link *next; long weight; };
static void (*end)(void *) = free;
static struct tree *grown(int levels) {
    if (levels == 0) return NULL;
    struct tree *made = malloc(sizeof *made);
    made->value = levels;
    made->left = grown(levels - 1);
    made->right = grown(levels - 1);
    return made;
}
__attribute__((noinline)) static long sum(const struct tree *of) {
    return of ? of->value + sum(of->left) + sum(of->right) : 0;
}
__attribute__((noinline)) static long walked(const struct link *from) {
    long all = 0;
    for (; from; from = from->next) all += from->key ^ from->weight;
    return all;
}
int main(void) {
    struct tree *root = grown(17);
    struct link *first = NULL;
    for (long number = 0; number < 100000; number++) {
        struct link *made = malloc(sizeof *made);
        *made = (struct link){ number, first, number * 3 };
        first = made;
    }
    long all = 0;
    for (int round = 0; round < 5; round++) all += sum(root) + walked(first);
    while (first) {
        struct link *next = first->next;
        end(first);
        first = next;
    }
    printf("%ld\n", all);
    return 0;
}
"#;

#[test]
fn objects_come_from_blocks_and_types_that_other_code_ends_have_a_reason() {
    let place = Place::new(PROGRAM, &[]);
    let arguments = ["study", "--only", "pools", "--json", "--max-time", "3", "--", "./program"];
    let output = place.lineup(&arguments).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = schema::checked(&output.stdout);
    let levers = report["levers"].as_array().expect("levers");
    let pools = levers.iter().find(|one| one["lever"] == "pools").unwrap_or_else(|| panic!("{levers:#?}"));
    let details = pools["details"].as_array().expect("details").iter().filter_map(Value::as_str);
    let details: Vec<&str> = details.collect();
    let has =
        |begin: &str, part: &str| details.iter().any(|one| one.starts_with(begin) && one.contains(part));
    assert!(has("a pool for tree (24 of 32 bytes, upper bound", "in the rounds"), "{details:#?}");
    assert!(
        has("a pool for link (24 of 32 bytes", "no pool, since objects cannot come from blocks"),
        "{details:#?}"
    );
    assert!(pools["elapsed"]["ratio"].is_number(), "{pools:#}");
    let folder = place.source().join("lineup-study");
    let text = fs::read_to_string(folder.join("pools/pools.txt")).expect("the details");
    assert!(text.contains("a pool for link"), "{text}");
    let is_gain = pools["is_gain"] == true;
    assert_eq!(folder.join("pools/fix.patch").exists(), is_gain);
    assert_eq!(folder.join("series/0001-pools.patch").exists(), is_gain);
    if is_gain {
        let patch = fs::read_to_string(folder.join("pools/fix.patch")).expect("a patch");
        assert!(patch.starts_with("take objects of tree from blocks\n"), "{patch}");
        assert!(patch.contains("+    struct tree *made = tree_new();\n"), "{patch}");
    }
}
