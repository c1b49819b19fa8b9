//! Pages, memory and placements of the heap in `lineup find`, of programs whose figures are known by arithmetic.

use crate::place::Place;
use crate::schema;
use serde_json::Value;

/// 2,000 fresh pages, each touched once; then 1,024 of them are walked through 100 times, a line of each: more than the
/// first level of translations has, and fewer than the second.
const PAGES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
enum { PAGES = 2000, WALKED = 1024, TURNS = 100 };
__attribute__((noinline)) static void touch(volatile char *at) { for (long i = 0; i < PAGES; i++) at[i * 4096] = 1; }
__attribute__((noinline)) static long walk(volatile char *at) {
    long sum = 0;
    for (long turn = 0; turn < TURNS; turn++) for (long i = 0; i < WALKED; i++) sum += at[i * 4096];
    return sum;
}
int main(void) {
    char *at = mmap(NULL, PAGES * 4096L, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) abort();
    touch(at);
    printf("%ld\n", walk(at));
    return 0;
}
"#;

/// Objects of 16 bytes on two lists, one visited in the order of allocation, the other in an order in which no two
/// neighbours were allocated one after the other. Both are visited in the same loop, so that each window of the run has
/// as much of one as of the other.
const LISTS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { OBJECTS = 20011, FACTOR = 7919 };
struct node { struct node *next; long value; };
static struct node *all[OBJECTS];
__attribute__((noinline)) static struct node *ordered(long value) {
    struct node *node = malloc(sizeof *node);
    if (!node) abort();
    node->value = value;
    return node;
}
__attribute__((noinline)) static struct node *scattered(long value) {
    struct node *node = malloc(sizeof *node);
    if (!node) abort();
    node->value = -value;
    return node;
}
__attribute__((noinline)) static long walk(struct node *one, struct node *other) {
    long sum = 0;
    for (; one && other; one = one->next, other = other->next) sum += one->value + 2 * other->value;
    return sum;
}
int main(void) {
    struct node *lists[2] = {NULL, NULL};
    for (long i = 0; i < OBJECTS; i++) { struct node *node = ordered(i); node->next = lists[0]; lists[0] = node; }
    for (long i = 0; i < OBJECTS; i++) all[i] = scattered(i);
    for (long i = 0; i < OBJECTS; i++) {
        struct node *node = all[i * FACTOR % OBJECTS];
        node->next = lists[1];
        lists[1] = node;
    }
    long sum = 0;
    for (int turn = 0; turn < 20; turn++) sum += walk(lists[0], lists[1]);
    printf("%ld\n", sum);
    return 0;
}
"#;

fn found(source: &str) -> Value {
    let place = Place::new(source, &[]);
    let caches = ["--cache", "l1i=32K,8,64", "--cache", "l1d=32K,8,64", "--cache", "l2=256K,8,64"];
    let costs = ["--page-cycles", "1000,7,30"];
    let all = [&["find", "--json", "--no-clock"][..], &caches, &costs, &["--", "./program"]].concat();
    let output = place.lineup(&all).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place.assert_clean();
    schema::checked(&output.stdout)
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} of {value}"))
}

/// The element of an array with this function.
fn of<'v>(all: &'v Value, name: &str) -> &'v Value {
    let all = all.as_array().expect("an array");
    let named = |one: &&Value| one["function"] == name || one["name"] == name;
    all.iter().find(named).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn first_touches_and_misses_of_translations_are_those_of_the_program() {
    let found = found(PAGES);
    let (touch, walk) = (of(&found["functions"], "touch"), of(&found["functions"], "walk"));
    assert_eq!(number(touch, "/pages/first_touches"), 2000.0, "{touch}");
    assert_eq!(number(touch, "/pages/dtlb_l2_misses"), 2000.0, "{touch}");
    assert_eq!(number(walk, "/pages/first_touches"), 0.0, "{walk}");
    // The lines of all pages are in one set of the first level: each access misses it, and the translation, too.
    assert_eq!(number(walk, "/pages/dtlb_l1_misses"), 102_400.0, "{walk}");
    assert!(number(walk, "/pages/dtlb_l2_misses") <= 1024.0, "{walk}");
    assert_eq!(number(touch, "/pages/stall_cycles"), 2000.0 * (1000.0 + 30.0), "{touch}");
    let costs = &found["page_costs"];
    assert_eq!((costs["source"].as_str(), number(costs, "/first_touch_cycles")), (Some("given"), 1000.0));
    // The program also needs its stack, its data and the C library's.
    let all = number(&found, "/pages/first_touches");
    assert!((2000.0..2100.0).contains(&all), "{all}");
}

#[test]
fn a_site_has_its_memory_its_background_and_the_order_of_its_visits() {
    let found = found(LISTS);
    // Both are visited once in the order of allocation, when they are made; the second one then 21 times in its own.
    for (name, in_order) in [("ordered", 0.99..=1.0), ("scattered", 0.0..=0.2)] {
        let site = of(&found["allocation_sites"], name);
        assert_eq!((number(site, "/objects"), number(site, "/bytes")), (20_011.0, 16.0 * 20_011.0));
        assert_eq!(number(site, "/taken_bytes"), 32.0 * 20_011.0, "{site}");
        let live = number(site, "/live_bytes_per_line");
        assert!((31.0..=32.5).contains(&live), "half of each line is headers and rounding: {site}");
        let share = number(site, "/visits_in_order");
        assert!(in_order.contains(&share), "{name}: {share}");
    }
    // All objects together take 1.25 MB, and 640 KB without headers.
    let placements = &found["placements"];
    let trials = placements["trials"].as_array().expect("trials");
    let by_size = trials.iter().find(|one| one["kind"] == "pools_by_size").expect("pools by size");
    let ratio = number(by_size, "/pages") / number(placements, "/as_is/pages");
    assert!((0.45..0.55).contains(&ratio), "{placements:#}");
    assert!(number(by_size, "/l1_misses") < 0.9 * number(placements, "/as_is/l1_misses"), "{placements:#}");
    assert!(number(by_size, "/more_bytes") < -400_000.0, "{by_size}");
    assert!(number(by_size, "/gain") > 0.1, "{placements:#}");
    assert_eq!(placements["next"], "lineup study --placement -- ./program");
    assert_eq!(
        placements["gains"].as_array().map(Vec::len),
        found["configurations"].as_array().map(Vec::len)
    );
}
