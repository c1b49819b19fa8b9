//! `lineup find` of objects that could take fewer bytes: holes that no order fills, classes of `malloc`, and members of
//! different functions.

use crate::place::Place;
use crate::schema;
use serde_json::{Value, json};

/// Caches that hold a part of the objects below.
const CACHES: [&str; 6] = ["--cache", "l1i=32K,8,64", "--cache", "l1d=32K,8,64", "--cache", "l2=256K,8,64"];

/// Findings as JSON and as text, by modelled cycles.
fn found(source: &str) -> (Value, String) {
    let place = Place::new(source, &[]);
    let run = |json: &[&str]| {
        let all = [&["find", "--no-clock"][..], json, &CACHES, &["--", "./program"]].concat();
        let output = place.lineup(&all).output().expect("lineup runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    (schema::checked(&run(&["--json"])), String::from_utf8(run(&[])).expect("text"))
}

/// Elements of two tagged values, of which all members are used at random indices. With FULL the tags are as wide as the
/// values.
const CELLS: &str = r#"
#include <stdio.h>
#ifdef FULL
typedef long tag;
#else
typedef char tag;
#endif
struct value { long v; tag tag; };
struct cell { struct value key, value; };
enum { N = 1 << 14 };
static struct cell cells[N];
static unsigned next(unsigned seed) { return seed * 1664525u + 1013904223u; }
__attribute__((noinline)) static long look(unsigned seed, int times)
{
	long sum = 0;
	for (int i = 0; i < times; i++) {
		seed = next(seed);
		struct cell *one = &cells[(seed >> 8) & (N - 1)];
		sum += one->key.v + one->key.tag + one->value.v + one->value.tag;
	}
	return sum;
}
int main(void)
{
	long sum = 0;
	for (int i = 0; i < N; i++) cells[i].key.v = i;
	for (int i = 0; i < 10; i++) sum += look(i, 40000);
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn holes_that_no_order_fills_are_a_finding_by_hand() {
    let (findings, text) = found(CELLS);
    let first = &findings["findings"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("cell"), &json!("no_holes")), "{first}");
    assert_eq!(
        (&first["evidence"]["size_bytes"], &first["evidence"]["hole_bytes"]),
        (&json!(32), &json!(14))
    );
    assert!(first["gain"].as_f64() > Some(0.2), "{first}");
    assert_eq!(first["map"]["size_bytes_after"], 18, "{first}");
    assert!(first["by_hand"].as_str().is_some_and(|edit| edit.contains("14 of the 32 bytes")), "{first}");
    assert!(text.contains("with its holes filled") && text.contains("14 of 32 bytes are holes"), "{text}");
}

#[test]
fn a_full_object_that_no_order_helps_is_a_finding_of_loads_ahead_and_of_smaller_members() {
    let (findings, text) = found(&format!("#define FULL\n{CELLS}"));
    let first = &findings["findings"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("cell"), &json!("prefetch")), "{first}");
    let narrow = first["trials"].as_array().expect("trials").iter().find(|trial| trial["kind"] == "narrow");
    let bound = narrow.and_then(|trial| trial["gain"].as_f64());
    assert!(bound > Some(0.2) && first["gain"].as_f64() > bound, "{first}");
    let by_hand = first["by_hand"].as_str().unwrap_or_default();
    assert!(by_hand.contains("of its 32, 32 are integers of 4 bytes or more"), "{first}");
    assert!(first["next"].as_str().is_some_and(|next| next.contains("--only prefetch")), "{first}");
    assert!(text.contains(by_hand) && text.contains("with its lines loaded ahead"), "{text}");
}

/// Objects inside larger ones, of which two members on different lines are used.
const HELD: &str = r#"
#include <stdio.h>
struct inner { long first, cold[15], last; };
struct outer { long id; struct inner inner; long rest[110]; };
enum { N = 1 << 10 };
static struct outer outers[N];
__attribute__((noinline)) static long look(struct inner *one) { return one->first++ + one->last; }
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 400000; i++) sum += look(&outers[(i * 7919u) & (N - 1)].inner);
	printf("%ld\n", sum + outers[0].id);
	return 0;
}
"#;

#[test]
fn a_struct_inside_another_has_a_layout_of_its_own() {
    let (findings, _) = found(HELD);
    let first = &findings["findings"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("inner"), &json!("split")), "{first}");
    assert!(
        first["trials"].as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "order")),
        "{first}"
    );
    assert_eq!(first["evidence"]["size_bytes"], 136, "{first}");
}

/// Objects that `malloc` makes one after the other. Without its holes `item` takes 40 bytes, for which `malloc` takes 48
/// instead of 64. With MORE it takes 48 instead of 56: 64 with the header, both times.
const ITEMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct item {
	int a; struct item *next; int b; long c; int d;
#ifdef MORE
	long e, f;
#else
	long e;
#endif
};
__attribute__((noinline)) static long walk(struct item *one)
{
	long sum = 0;
	for (; one; one = one->next)
		sum += one->a + one->b + one->c + one->d + one->e
#ifdef MORE
			+ one->f
#endif
			;
	return sum;
}
int main(void)
{
	struct item *head = 0;
	long sum = 0;
	for (int i = 0; i < 20000; i++) {
		struct item *one = calloc(1, sizeof *one);
		one->a = i;
		one->next = head;
		head = one;
	}
	for (int i = 0; i < 10; i++) sum += walk(head);
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn an_order_that_takes_a_smaller_class_of_malloc_is_found() {
    let (findings, _) = found(ITEMS);
    let first = &findings["findings"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("item"), &json!("order")), "{first}");
    assert!(first["gain"].as_f64() > Some(0.1), "{first}");
    assert_eq!(first["map"]["size_bytes_after"], 40, "{first}");
}

#[test]
fn an_order_that_takes_the_same_class_of_malloc_is_none() {
    let (findings, _) = found(&format!("#define MORE\n{ITEMS}"));
    let all = findings["findings"].as_array().expect("findings");
    let smaller = all.iter().find(|one| one["subject"] == "item" && one["kind"] == "order");
    assert!(smaller.is_none(), "{all:?}");
}

/// Members of two functions that take turns in the declaration, each used as often as the others.
const TURNS: &str = r#"
#include <stdio.h>
struct mixed { long a0, b0, a1, b1, a2, b2, a3, b3, a4, b4, a5, b5, a6, b6, a7, b7; };
static struct mixed mixed __attribute__((aligned(64)));
__attribute__((noinline)) static void left(struct mixed *m, long by) { m->a0 += by; m->a1 ^= by; m->a2 += by; m->a3 ^= by; m->a4 += by; m->a5 ^= by; m->a6 += by; m->a7 ^= by; }
__attribute__((noinline)) static void right(struct mixed *m, long by) { m->b0 += by; m->b1 ^= by; m->b2 += by; m->b3 ^= by; m->b4 += by; m->b5 ^= by; m->b6 += by; m->b7 ^= by; }
int main(void)
{
	for (long turn = 0; turn < 60000; turn++) { left(&mixed, turn); right(&mixed, turn); }
	printf("%ld\n", mixed.a7 + mixed.b7);
	return 0;
}
"#;

#[test]
fn members_of_each_function_get_a_line_of_their_own() {
    let (findings, _) = found(TURNS);
    let first = &findings["footprints"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("mixed"), &json!("order")), "{first}");
    for lines in first["lines"].as_array().expect("functions").iter().take(2) {
        assert_eq!((&lines["lines"], &lines["lines_after"]), (&json!(2.0), &json!(1.0)), "{first}");
    }
}
