//! `lineup find` of programs whose hot objects stay in the first level: lines count there too, and each type with much
//! time has a finding or a reason.

use crate::installed;
use crate::place::Place;
use crate::schema;
use serde_json::{Value, json};
use std::process::Command;

/// Caches that hold all of these programs.
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

fn reason<'v>(found: &'v Value, name: &str) -> &'v Value {
    let all = found["without_finding"].as_array().expect("reasons");
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"));
    &one["reason"]
}

/// One object whose three used members lie on three lines, and elements of three numbers of which all are used.
const RESIDENT: &str = r#"
#include <stdio.h>
struct state { long position; char name[56]; long length; char path[56]; long hash; char note[56]; };
struct full { long a, b, c; };
static struct state one __attribute__((aligned(64)));
static struct full all[100] __attribute__((aligned(64)));
__attribute__((noinline)) static void step(struct state *s, long by) { s->position += by; s->length ^= s->position; s->hash = s->hash * 31 + s->length; }
__attribute__((noinline)) static long sum(struct full *all) { long s = 0; for (int i = 0; i < 100; i++) { s += all[i].a ^ all[i].b; all[i].c += s; } return s; }
int main(void)
{
	long s = 0;
	for (int turn = 0; turn < 500; turn++) { for (long i = 0; i < 400; i++) step(&one, i & 7); s += sum(all); }
	printf("%ld %ld\n", one.hash, s);
	return 0;
}
"#;

#[test]
fn a_type_that_never_leaves_the_first_level_is_found_by_its_lines() {
    let (findings, text) = found(RESIDENT);
    assert_eq!((&findings["time_source"], &findings["findings"]), (&json!("model"), &json!([])));
    let first = &findings["footprints"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("state"), &json!("order")), "{first}");
    assert_eq!(findings["ranking"], json!([{"list": "footprints", "index": 0}]));
    let lines = &first["lines"][0];
    assert_eq!((&lines["function"], &lines["per"]), (&json!("step"), &json!("call")), "{first}");
    assert_eq!((&lines["lines"], &lines["lines_after"]), (&json!(3.0), &json!(1.0)), "{first}");
    assert!(
        first["time"].as_f64() > Some(0.3) && first["bound"].as_f64() < first["time"].as_f64(),
        "{first}"
    );
    assert!(
        first["next"].as_str().is_some_and(|next| next.ends_with("--region step -- ./program")),
        "{first}"
    );
    // A type without a stall that is worth a word is in the table of data.
    let owners = findings["owners"].as_array().expect("owners");
    let own = owners.iter().find(|owner| owner["name"] == "state").expect("the type");
    assert_eq!(own["time"], first["time"]);
    assert_eq!(reason(&findings, "full"), &json!({"kind": "full", "size_bytes": 24}));
    assert!(
        text.contains(
            "of the modelled cycles; lines 3 → 1 per call of step, at best, with members in the order"
        ),
        "{text}"
    );
    assert!(text.contains("these are no stalls"), "{text}");
}

/// Elements of which one instruction loads two members, as GCC 14 and later do for two neighbours.
const WIDE: &str = r#"
#include <emmintrin.h>
#include <stdio.h>
struct full { long a, b, c; };
static struct full all[100] __attribute__((aligned(64)));
__attribute__((noinline)) static long sum(struct full *all)
{
	long s = 0;
	for (int i = 0; i < 100; i++) {
		__m128i both = _mm_loadu_si128((__m128i *)&all[i].a);
		__asm__ volatile("" : "+x"(both));
		s += _mm_cvtsi128_si64(both) ^ _mm_cvtsi128_si64(_mm_unpackhi_epi64(both, both));
		all[i].c += s;
	}
	return s;
}
int main(void)
{
	long s = 0;
	for (int turn = 0; turn < 2000; turn++) s += sum(all);
	printf("%ld\n", s);
	return 0;
}
"#;

#[test]
fn a_wide_access_uses_each_member_that_it_covers() {
    let (findings, text) = found(WIDE);
    assert_eq!(findings["footprints"], json!([]), "{text}");
    let all = findings["findings"].as_array().expect("findings");
    let full = all.iter().find(|one| one["subject"] == "full").unwrap_or_else(|| panic!("{text}"));
    let used = full["evidence"]["used"].as_array().expect("members").iter();
    let mut used: Vec<&str> = used.filter_map(Value::as_str).collect();
    used.sort_unstable();
    assert_eq!(used, ["a", "b", "c"], "{text}");
    assert_eq!(full["evidence"]["unused"], 0, "{text}");
}

/// Parts of half a line. `rare` uses the first and second one, `often` the second and third: on any two lines, one of the
/// functions needs both. Of `apart` each function uses one member, which is one line in any order.
const CONFLICT: &str = r#"
#include <stdio.h>
struct parts { long first[4], second[4], third[4]; };
struct apart { long one; char between[120]; long other; };
static struct parts parts __attribute__((aligned(64)));
static struct apart apart __attribute__((aligned(64)));
__attribute__((noinline)) static long rare(struct parts *p, long by) { for (int i = 0; i < 4; i++) { p->first[i] += by; p->second[i] += by; } return p->first[3]; }
__attribute__((noinline)) static long often(struct parts *p, long by) { for (int i = 0; i < 4; i++) { p->second[i] += by; p->third[i] += by; } return p->third[3]; }
__attribute__((noinline)) static long left(struct apart *p, long by) { return p->one += by; }
__attribute__((noinline)) static long right(struct apart *p, long by) { return p->other += by; }
int main(void)
{
	long s = 0;
	for (long turn = 0; turn < 60000; turn++) s += rare(&parts, turn) + often(&parts, turn) + often(&parts, -turn) + left(&apart, turn) + right(&apart, turn);
	printf("%ld\n", s);
	return 0;
}
"#;

#[test]
fn a_layout_that_costs_another_function_lines_is_no_finding() {
    let (findings, text) = found(CONFLICT);
    assert_eq!(findings["footprints"], json!([]), "{findings}");
    assert_eq!(reason(&findings, "parts")["kind"], "full");
    assert_eq!(reason(&findings, "apart")["kind"], "one_line");
    assert!(text.contains("apart, ") && text.contains("has no finding: a call of "), "{text}");
}

/// A struct that is a variable of its function: both members in use lie on lines of their own.
const LOCAL: &str = r#"
#include <stdio.h>
struct tally { long first; char note[72]; long last; };
__attribute__((noinline)) static long count(long turns, long by)
{
	struct tally tally;
	volatile long *first = &tally.first, *last = &tally.last;
	*first = *last = by;
	for (long i = 0; i < turns; i++) { *first = *first + i; *last = *last ^ *first; }
	return tally.first + tally.last;
}
int main(void)
{
	long s = 0;
	for (long i = 0; i < 2000; i++) s += count(100, i);
	printf("%ld\n", s);
	return 0;
}
"#;

#[test]
fn a_struct_on_the_stack_counts_as_its_type() {
    let (findings, _) = found(LOCAL);
    let owners = findings["owners"].as_array().expect("owners");
    let time = |name: &str| {
        let owner = owners.iter().find(|owner| owner["name"] == name);
        owner.and_then(|owner| owner["time"].as_f64()).unwrap_or_default()
    };
    assert!(time("tally") > 0.3 && time("tally") > 10.0 * time("(stack)"), "{owners:?}");
    let first = &findings["footprints"][0];
    assert_eq!((&first["subject"], &first["kind"]), (&json!("tally"), &json!("order")), "{first}");
}

/// A loop that works in registers or, with PAGES, one that touches a page each time.
const COMPUTING: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
struct state { long sum; char pad[72]; long last; };
static struct state one;
__attribute__((noinline)) static void mix(struct state *s, long turns)
{
	long sum = s->sum;
	for (long turn = 0; turn < turns; turn++) sum = sum * 31 + (turn ^ sum >> 7);
	s->sum = sum;
	s->last = turns;
}
__attribute__((noinline)) static long touch(volatile char *pages, long bytes)
{
	long sum = 0;
	for (long at = 0; at < bytes; at += 4096) sum += pages[at]++;
	return sum;
}
int main(void)
{
#ifdef PAGES
	long bytes = 32 << 20;
	one.sum = touch(mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), bytes);
#else
	mix(&one, 8000000);
#endif
	printf("%ld\n", one.sum);
	return 0;
}
"#;

#[test]
fn a_program_that_computes_has_no_time_of_data_and_little_to_win() {
    let (findings, text) = found(COMPUTING);
    let owners = findings["owners"].as_array().expect("owners");
    let own = owners.iter().find(|owner| owner["name"] == "state").and_then(|owner| owner["time"].as_f64());
    assert!(own.unwrap_or(0.0) < 0.01, "{own:?}");
    assert!(text.contains(" of the modelled cycles stall, with one cycle for each instruction"), "{text}");
    assert!(text.contains("nothing is worth fixing by a layout"), "{text}");
    assert_eq!(findings["huge_pages"], json!(null));
}

#[test]
fn a_program_that_waits_for_pages_is_sent_to_huge_ones() {
    let (findings, text) = found(&format!("#define PAGES\n{COMPUTING}"));
    let pages = &findings["huge_pages"];
    assert!(
        pages["share"].as_f64() > Some(0.5) && pages["gain"].as_f64() <= pages["share"].as_f64(),
        "{pages}"
    );
    assert_eq!(pages["next"], "lineup study --placement -- ./program");
    assert!(text.contains("with huge pages for all memory"), "{text}");
}

/// A struct of the program's own that a map's nodes hold as bytes.
const STORED: &str = r#"
#include <cstdio>
#include <map>
#include <unordered_map>
struct Value { char name[100]; int hot; long rest[10]; int last; };
template <class Map> __attribute__((noinline)) long look(const Map &all)
{
	long sum = 0;
	for (int key = 0; key < 3000; key++) { auto found = all.find(key * 7 % 3000); sum += found->second.hot + found->second.last; }
	return sum;
}
int main()
{
	MAP<int, Value> all;
	for (int key = 0; key < 3000; key++) all[key].hot = key;
	long sum = 0;
	for (int turn = 0; turn < 10; turn++) sum += look(all);
	printf("%ld\n", sum);
}
"#;

#[test]
fn a_struct_that_a_map_stores_is_the_programs_own() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("main.cc"), STORED).expect("a file");
    for map in ["std::map", "std::unordered_map"] {
        let mut built = Command::new("g++");
        built.args(["-g", "-O2", &format!("-DMAP={map}"), "-o", "program", "main.cc"]);
        assert!(built.current_dir(folder.path()).status().expect("g++ runs").success());
        let output = installed::lineup()
            .args(["find", "--no-clock", "--json", "--", "./program"])
            .current_dir(folder.path())
            .output();
        let findings = schema::checked(&output.expect("lineup runs").stdout);
        let owners = findings["owners"].as_array().expect("owners");
        let own = owners.iter().find(|owner| owner["name"] == "Value").expect("the stored struct");
        assert!(own["accesses"].as_f64() > Some(5000.0), "{map}: {own}");
    }
}
