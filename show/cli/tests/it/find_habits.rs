//! `lineup find` of habits that a person changes by hand: pairs of allocations, large objects on stacks and arrays with one
//! index. Each is beside programs that look alike and are not.

use crate::place::Place;
use crate::schema;
use serde_json::{Value, json};

/// The findings of a program that the native engine records.
fn found(source: &str) -> Value {
    let place = Place::new(source, &[]);
    let arguments = ["find", "--json", "--no-clock", "--engine", "native", "--", "./program"];
    let output = place.lineup(&arguments).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::checked(&output.stdout)
}

fn none(found: &Value, list: &str) {
    assert_eq!(found[list], json!([]), "{list}");
}

/// A list of items that each own a text. With EARLY a text is freed as soon as it was read, with LATER all texts are
/// freed long before the items.
const ITEMS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct item { struct item *next; char *text; long size; };
static struct item *head;
__attribute__((noinline)) static void add(long i)
{
	struct item *one = malloc(sizeof *one);
	one->text = malloc(24);
	one->size = i;
	one->text[0] = (char)i;
#ifdef EARLY
	one->size += one->text[0];
	free(one->text);
#endif
	one->next = head;
	head = one;
}
__attribute__((noinline)) static long walk(void)
{
	long sum = 0;
	for (struct item *one = head; one; one = one->next) {
		sum += one->size;
#if !defined(EARLY) && !defined(LATER)
		sum += one->text[0];
#endif
	}
	return sum;
}
int main(void)
{
	long sum = 0;
	for (long i = 0; i < 5000; i++) add(i);
#ifdef LATER
	for (struct item *one = head; one; one = one->next) { one->size += one->text[0]; free(one->text); }
#endif
	for (int turn = 0; turn < 20; turn++) sum += walk();
	while (head) {
		struct item *one = head;
		head = one->next;
#if !defined(EARLY) && !defined(LATER)
		free(one->text);
#endif
		free(one);
	}
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn an_object_and_its_text_that_live_and_are_read_together_are_a_pair() {
    let findings = found(ITEMS);
    let pair = &findings["allocation_pairs"][0];
    assert_eq!(pair["function"], "add", "{pair}");
    let objects: Vec<&Value> = [0, 1].map(|side| &pair["sites"][side]["objects"]).to_vec();
    assert_eq!(objects, [&json!(5000), &json!(5000)]);
    let line = |side: usize| {
        pair["sites"][side]["line"].as_str().and_then(|line| line.rsplit(':').next()?.parse::<u32>().ok())
    };
    assert_eq!((line(0), line(1)), (Some(8), Some(9)), "{pair}");
    assert!(pair["together"].as_f64() > Some(0.9), "{pair}");
    none(&findings, "stack_objects");
    none(&findings, "parallel_arrays");
}

#[test]
fn objects_with_another_lifetime_are_no_pair() {
    for define in ["#define EARLY\n", "#define LATER\n"] {
        none(&found(&format!("{define}{ITEMS}")), "allocation_pairs");
    }
}

/// Both sides of a tree come from one call, on two ways.
const TREE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *left, *right; long key; };
__attribute__((noinline)) static struct node *new_node(long key) { struct node *one = malloc(sizeof *one); one->key = key; one->left = one->right = 0; return one; }
__attribute__((noinline)) static struct node *build(int depth)
{
	struct node *one = new_node(depth);
	if (depth) { one->left = build(depth - 1); one->right = build(depth - 1); }
	return one;
}
__attribute__((noinline)) static long sum(struct node *one) { return one ? one->key + sum(one->left) + sum(one->right) : 0; }
int main(void)
{
	struct node *root = build(13);
	long s = 0;
	for (int i = 0; i < 10; i++) s += sum(root);
	printf("%ld\n", s);
	return 0;
}
"#;

#[test]
fn both_sides_of_a_tree_are_no_pair() {
    none(&found(TREE), "allocation_pairs");
}

/// A result of 16 KiB, of which at most 31 elements are used; with PHASES all of them between, and with CLEARED each call
/// clears it.
const RESULT: &str = r#"
#include <stdio.h>
#include <string.h>
struct result { int count; int size; int slots[4000]; int *more; };
__attribute__((noinline)) static void fill(struct result *r, int n, int many)
{
	r->count = many;
	r->size = 4000;
	r->more = r->slots;
	for (int i = 0; i < r->count; i++) r->slots[i] = i * n;
}
__attribute__((noinline)) static long once(int n, int many)
{
	struct result r;
#ifdef CLEARED
	memset(&r, 0, sizeof r);
#endif
	fill(&r, n, many);
	long sum = 0;
	for (int i = 0; i < r.count; i++) sum += r.more[i];
	return sum;
}
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 400; i++) sum += once(i, i & 31);
#ifdef PHASES
	for (int i = 0; i < 4; i++) sum += once(i, 4000);
#endif
	for (int i = 0; i < 400; i++) sum += once(i, i & 31);
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn a_large_object_on_the_stack_of_which_little_is_used_is_found() {
    let findings = found(RESULT);
    let object = &findings["stack_objects"][0];
    assert_eq!((&object["name"], &object["size_bytes"]), (&json!("result"), &json!(16_016)), "{object}");
    // Two numbers, 31 elements and a pointer.
    assert_eq!(object["used_bytes"], 8 + 4 * 31 + 8, "{object}");
}

#[test]
fn an_object_that_is_used_whole_in_another_phase_or_cleared_is_none() {
    for define in ["#define PHASES\n", "#define CLEARED\n"] {
        none(&found(&format!("{define}{RESULT}")), "stack_objects");
    }
}

/// Two arrays with one random index; with ALONE another loop uses one of them at other indices, with IN_ORDER the index
/// counts up, with SET_UP most accesses set up one element after the other.
const ARRAYS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
enum { N = 1 << 16 };
static int *price, *count;
static unsigned next(unsigned seed) { return seed * 1664525u + 1013904223u; }
__attribute__((noinline)) static long both(unsigned seed, int times)
{
	long sum = 0;
	for (int i = 0; i < times; i++) {
		seed = next(seed);
#ifdef IN_ORDER
		unsigned at = i & (N - 1);
#else
		unsigned at = (seed >> 8) & (N - 1);
#endif
		sum += (long)price[at] * count[at];
	}
	return sum;
}
__attribute__((noinline)) static long alone(unsigned seed, int times)
{
	long sum = 0;
	for (int i = 0; i < times; i++) { seed = next(seed ^ 77u); sum += price[(seed >> 8) & (N - 1)]; }
	return sum;
}
__attribute__((noinline)) static void set_up(int at)
{
	for (int i = 0; i < 8; i++) { ((volatile int *)price)[at] += i; ((volatile int *)count)[at] ^= i; }
}
int main(void)
{
	long sum = 0;
	price = calloc(N, sizeof *price);
	count = calloc(N, sizeof *count);
#ifdef SET_UP
	for (int at = 0; at < N; at++) set_up(at);
#endif
	for (int i = 0; i < 10; i++) {
		sum += both(i, 20000);
#ifdef ALONE
		sum += alone(i, 20000);
#endif
	}
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn arrays_that_are_used_with_one_index_are_found_with_the_lines_of_one_array() {
    for define in ["", "#define SET_UP\n"] {
        let findings = found(&format!("{define}{ARRAYS}"));
        are_grouped(&findings);
    }
}

fn are_grouped(findings: &Value) {
    let group = &findings["parallel_arrays"][0];
    let mut names: Vec<&str> =
        group["names"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["int[] behind count", "int[] behind price"], "{group}");
    assert_eq!((&group["function"], &group["size_bytes"]), (&json!("both"), &json!(8)), "{group}");
    assert_eq!((&group["lines"], &group["lines_after"]), (&json!(2.0), &json!(1.0625)), "{group}");
    let reasons = findings["without_finding"].as_array().expect("reasons");
    assert!(reasons.iter().all(|one| !names.iter().any(|name| one["name"] == *name)), "{reasons:?}");
}

#[test]
fn arrays_with_one_index_in_one_of_two_loops_or_in_order_are_none() {
    for define in ["#define ALONE\n", "#define IN_ORDER\n"] {
        none(&found(&format!("{define}{ARRAYS}")), "parallel_arrays");
    }
}
