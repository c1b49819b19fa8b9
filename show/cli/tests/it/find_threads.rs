//! `lineup find` of programs whose threads take lines from each other, and of programs whose threads do not.

use crate::place::Place;
use serde_json::Value;

/// Two threads add to counters: of one object or, with APART, on lines of their own, and to neighbouring elements of an
/// array. With SHARED both add to the first counter, with IN_TURN the second thread begins when the first has ended.
const COUNTERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef APART
#define ALIGNED __attribute__((aligned(64)))
#else
#define ALIGNED
#endif
struct counters { long first ALIGNED; long second ALIGNED; };
static struct counters counters __attribute__((aligned(64)));
static long sums[2] __attribute__((aligned(64)));
static pthread_barrier_t together;
static void add(volatile long *sum, long turns) { for (long turn = 0; turn < turns; turn++) *sum += turn; }
__attribute__((noinline)) void count_first(void) { add(&counters.first, 400000); }
__attribute__((noinline)) void count_second(void) { add(&counters.second, 400000); }
#ifdef ARRAY
__attribute__((noinline)) void sum_up(int own) { add(&sums[own], 400000); }
#endif
#ifdef HEAP
static long *heap;
__attribute__((noinline)) void sum_up(int own) { add(&heap[16 + own], 400000); }
#endif
static void *count(void *argument)
{
	int own = argument != 0;
#ifndef IN_TURN
	pthread_barrier_wait(&together);
#endif
#if defined(ARRAY) || defined(HEAP)
	sum_up(own);
#elif defined(SHARED)
	count_first();
#else
	if (own) count_second(); else count_first();
#endif
	return 0;
}
int main(void)
{
	pthread_t threads[2];
#ifdef HEAP
	heap = calloc(100, sizeof *heap);
#endif
	pthread_barrier_init(&together, 0, 2);
	for (int i = 0; i < 2; i++) {
		pthread_create(&threads[i], 0, count, i ? &counters : 0);
#ifdef IN_TURN
		pthread_join(threads[i], 0);
#endif
	}
#ifndef IN_TURN
	for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
#endif
	printf("%d\n", counters.first + counters.second + sums[0] + sums[1] != 0);
	return 0;
}
"#;

/// Four threads that do all their work under one lock.
const LOCKED: &str = r#"
#include <pthread.h>
#include <stdio.h>
static struct store { pthread_mutex_t lock; long table[512]; long total; } store = { .lock = PTHREAD_MUTEX_INITIALIZER };
__attribute__((noinline)) void handle(long key)
{
	pthread_mutex_lock(&store.lock);
	for (int i = 0; i < 40; i++)
		store.table[(key * 31 + i * 7) & 511] += key;
	store.total++;
	pthread_mutex_unlock(&store.lock);
}
static void *run(void *own)
{
	for (long key = 0; key < 20000; key++)
		handle(key ^ (long)own);
	return 0;
}
int main(void)
{
	pthread_t threads[4];
	for (long own = 0; own < 4; own++)
		pthread_create(&threads[own], 0, run, (void *)own);
	for (int own = 0; own < 4; own++)
		pthread_join(threads[own], 0);
	printf("%ld\n", store.total);
	return 0;
}
"#;

/// Four threads that work under a lock that spins: by an exchange and a store, or with COMPARE by a comparison and an
/// exchange. With BESIDE the lock's line has what it guards. With COUNTED they take places of a ring instead, and count
/// what they did.
const SPINNING: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#ifdef BESIDE
static struct pool { atomic_int busy; long used; } pool;
#else
static struct pool { atomic_int busy; long used __attribute__((aligned(64))); } pool;
#endif
static struct stats { atomic_long served; } stats;
__attribute__((noinline)) void take(void)
{
#ifdef COUNTED
	atomic_fetch_add_explicit(&stats.served, 1, memory_order_relaxed);
#elif defined(COMPARE)
	for (int free = 0; !atomic_compare_exchange_weak(&pool.busy, &free, 1); free = 0)
		;
	pool.used++;
	atomic_exchange(&pool.busy, 0);
#else
	while (atomic_exchange_explicit(&pool.busy, 1, memory_order_acquire))
		;
	pool.used++;
	atomic_store_explicit(&pool.busy, 0, memory_order_release);
#endif
}
static void *run(void *own)
{
	for (int turn = 0; turn < 50000; turn++)
		take();
	return own;
}
int main(void)
{
	pthread_t threads[4];
	for (int own = 0; own < 4; own++)
		pthread_create(&threads[own], 0, run, 0);
	for (int own = 0; own < 4; own++)
		pthread_join(threads[own], 0);
	printf("%ld\n", pool.used + stats.served);
	return 0;
}
"#;

/// Findings as JSON, and as text, which is the same.
fn found(options: &[&str]) -> (Value, String) {
    found_in(COUNTERS, options)
}

fn found_in(program: &str, options: &[&str]) -> (Value, String) {
    let place = Place::new(program, &[&["-pthread"], options].concat());
    let run = |more: &[&str]| {
        let all = [&["find", "--no-clock"], more, &["--", "./program"]].concat();
        let output = place.lineup(&all).output().expect("lineup runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let found = (serde_json::from_str(&run(&["--json"])).expect("JSON"), run(&[]));
    place.assert_clean();
    found
}

/// Compared with these findings, the program with the counters apart has lost its waits.
fn assert_parted(old: &Value) {
    let place = Place::new(COUNTERS, &["-pthread", "-DAPART"]);
    let file = place.root.path().join("old.json");
    std::fs::write(&file, old.to_string()).expect("a file");
    let file = file.to_str().expect("a name");
    let output = place.lineup(&["find", "--no-clock", "--diff", file, "--", "./program"]).output();
    let said = String::from_utf8(output.expect("lineup runs").stdout).expect("text");
    let line = said.lines().find(|line| line.starts_with("waits of threads for lines alone: ")).expect(&said);
    let figures = line.rsplit(": ").next().and_then(|figures| figures.split_once(" → ")).expect(line);
    let figure = |text: &str| text.split(' ').next().map(|text| text.replace(',', "").parse::<f64>());
    let (before, after) = (figure(figures.0), figure(figures.1));
    let (before, after) = (before.expect(line).expect(line), after.expect(line).expect(line));
    assert!(before > 100_000.0 && after < 1_000.0, "{said}");
}

/// The findings of lines that threads fight over.
fn fights(found: &Value) -> Vec<&Value> {
    let all = found["findings"].as_array().expect("findings");
    all.iter().filter(|finding| finding["kind"] == "own_lines").collect()
}

/// The first word that several threads need.
fn shared(found: &Value) -> Option<&Value> {
    found["findings"].as_array().expect("findings").iter().find(|finding| finding["kind"] == "own_parts")
}

#[test]
fn members_that_threads_fight_over_are_the_first_finding_with_the_study_that_parts_them() {
    let (found, said) = found(&[]);
    let first = &found["findings"][0];
    assert_eq!((&first["kind"], &first["subject"]), (&"own_lines".into(), &"counters".into()), "{found}");
    let evidence = &first["evidence"];
    assert_eq!((&evidence["lines"], &evidence["threads"]), (&1.into(), &2.into()));
    assert_eq!(evidence["of_one_object"], true);
    let mut members: Vec<_> = evidence["members"].as_array().expect("members").iter().collect();
    members.sort_by_key(|member| member.to_string());
    assert_eq!(members, ["counters.first", "counters.second"]);
    assert!(first["gain"].as_f64().is_some_and(|gain| gain > 0.9), "{first}");
    let next = first["next"].as_str().expect("a command");
    assert!(next.starts_with("lineup study --allow-growth --region count_"), "{next}");
    assert!(next.contains("count_first") && next.contains("count_second"), "{next}");
    assert_parted(&found);
    // The type has the waits, each member its part: windows that overlap none of the other thread show no waits.
    let owner = found["owners"].as_array().expect("owners").iter().find(|owner| owner["name"] == "counters");
    let owner = owner.expect("the type that threads wait for");
    let waits = |of: &Value| of["thread_waits"]["of_line_alone"].as_f64().expect("waits");
    assert!(waits(owner) > 100_000.0, "{owner}");
    for member in owner["members"].as_array().expect("members") {
        assert!((waits(member) / waits(owner) - 0.5).abs() < 0.3, "{owner}");
    }
    assert!(said.contains("with data of each thread on lines of its own"), "{said}");
    assert!(said.contains("→ lineup study --allow-growth --region count_"), "{said}");
}

#[test]
fn elements_that_threads_fight_over_are_told_with_the_study_that_parts_them() {
    let (found, _) = found(&["-DARRAY"]);
    let first = fights(&found)[0];
    assert_eq!((&first["subject"], &first["evidence"]["lines"]), (&"sums".into(), &1.into()), "{found}");
    assert_eq!(first["next"], "lineup study --allow-growth --region sum_up -- ./program");
}

#[test]
fn of_memory_behind_pointers_the_command_that_looks_closer_is_told() {
    let (found, _) = found(&["-DHEAP"]);
    let first = fights(&found)[0];
    assert_eq!(
        (&first["subject"], &first["evidence"]["threads"]),
        (&"long int[] behind heap".into(), &2.into())
    );
    let next = "lineup record --engine native --out threads.rec --region sum_up -- ./program && \
                lineup threads threads.rec";
    assert_eq!(first["next"], next);
}

#[test]
fn a_lock_that_makes_threads_take_turns_has_the_command_that_shows_its_holders() {
    let (found, said) = found_in(LOCKED, &[]);
    let lock = &found["locks"][0];
    assert!(
        lock["name"].as_str().is_some_and(|name| ["store.lock", "pthread_mutex_t"].contains(&name)),
        "{found}"
    );
    assert_eq!(lock["functions"][0], "handle", "{lock}");
    assert!(lock["share"].as_f64().is_some_and(|share| share > 0.1 && share <= 1.0), "{lock}");
    let next = "lineup record --engine native --out threads.rec --region handle --calls 2000 --in-runs -- ./program && \
                lineup threads threads.rec";
    assert_eq!(lock["next"], next);
    assert!(said.contains("threads wait for this lock: no layout helps where they take turns"), "{said}");
    assert!(said.contains(&format!("    → {next}\n")), "{said}");
}

#[test]
fn a_lock_that_the_program_takes_by_itself_is_named_as_one() {
    for options in [&[][..], &["-DCOMPARE"]] {
        let (found, _) = found_in(SPINNING, options);
        assert_eq!(found["locks"][0]["name"], "pool.busy", "{options:?}: {found}");
        assert_eq!(found["locks"][0]["functions"][0], "take", "{options:?}");
        assert!(shared(&found).is_none(), "the memory that the lock hands over is no finding: {found}");
    }
}

#[test]
fn a_word_that_threads_add_to_is_a_finding_with_the_edit_by_hand() {
    for (program, options, name, functions) in [
        (SPINNING, "-DCOUNTED", "stats.served", ["take"]),
        (COUNTERS, "-DSHARED", "counters.first", ["count_first"]),
    ] {
        let (found, said) = found_in(program, &[options]);
        let word = shared(&found).unwrap_or_else(|| panic!("{found}"));
        let evidence = &word["evidence"];
        assert_eq!((&evidence["word"], &evidence["change"]), (&name.into(), &"adds".into()), "{word}");
        let threads = if program == COUNTERS { 2 } else { 4 };
        assert_eq!(
            (&evidence["writers"], &evidence["waiting"]),
            (&threads.into(), &threads.into()),
            "{word}"
        );
        assert_eq!(word["functions"], serde_json::json!(functions), "{word}");
        assert!(word["gain"].as_f64().is_some_and(|gain| gain > 0.5), "{word}");
        assert_eq!(found["locks"], serde_json::json!([]), "{found}");
        assert!(said.contains("if it counts, a part for each thread on a line of its own"), "{said}");
    }
}

#[test]
fn lines_of_their_own_bytes_of_both_and_threads_in_turn_are_no_fight() {
    let (apart, _) = found(&["-DAPART"]);
    assert!(fights(&apart).is_empty(), "{apart}");
    let of_lines_alone = apart["between_threads"]["waits"]["of_line_alone"].as_f64().expect("waits");
    assert!(of_lines_alone < 1_000.0, "{apart}");
    let (shared, said) = found(&["-DSHARED"]);
    assert!(fights(&shared).is_empty(), "{shared}");
    let of_same_bytes = shared["between_threads"]["waits"]["of_same_bytes"].as_f64().expect("waits");
    assert!(of_same_bytes > 100_000.0 && said.contains("thread waits"), "{said}");
    let (in_turn, _) = found(&["-DIN_TURN"]);
    assert!(fights(&in_turn).is_empty(), "{in_turn}");
}

#[test]
fn data_beside_a_lock_is_no_lock() {
    let (found, said) = found_in(SPINNING, &["-DBESIDE"]);
    let locks = found["locks"].as_array().expect("locks");
    let names: Vec<_> = locks.iter().map(|lock| &lock["name"]).collect();
    assert_eq!(names, ["pool.busy"], "{said}");
}
