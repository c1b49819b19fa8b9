//! Threads, processes, libraries.

use super::program::{AArch64, MACHINES, Recorded, X86_64, build, c, cpp, lineup_record};
use lineup_model::access::CallEnd::{Abandoned, Returned};
use lineup_model::access::{Call, ProcessId};
use lineup_model::process::Origin;
use lineup_model::region::RegionId;
use std::collections::{BTreeMap, BTreeSet};

const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
volatile unsigned cell[64];
__attribute__((noinline, noclone)) void region(unsigned me) { cell[me * 8] = me; cell[me * 8 + 1] = cell[me * 8]; }
static void *work(void *argument) {
    unsigned me = (unsigned)(unsigned long)argument;
    for (unsigned turn = 0; turn < 200 * (me + 1); turn++) { region(me); cell[me * 8 + 4] = turn; }
    return 0;
}
int main(void) {
    pthread_t threads[4];
    for (unsigned long me = 0; me < 4; me++) pthread_create(&threads[me], 0, work, (void *)me);
    for (int me = 0; me < 4; me++) pthread_join(threads[me], 0);
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

#[test]
fn every_threads_calls_are_its_own() {
    for machine in MACHINES {
        let recorded = c(machine, THREADS, &["-static"]).record(&["--region", "region", "--engine", "qemu"]);
        let cell = recorded.value("cell");
        let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
        for (index, call) in recorded.calls().iter().enumerate() {
            assert_eq!((call.end, call.missed_blocks), (Returned, 0), "{machine:?}");
            *calls.entry(call.thread.0).or_default() += 1;
            let touched = recorded.touched(index, cell, 256);
            assert_eq!(touched.len(), 3, "{machine:?}");
            let own = touched[0].0 / 32;
            assert_eq!(
                touched,
                [(own * 32, 4, 'S'), (own * 32, 4, 'L'), (own * 32 + 4, 4, 'S')],
                "{machine:?}"
            );
        }
        let mut counts: Vec<usize> = calls.into_values().collect();
        counts.sort_unstable();
        assert_eq!(counts, [200, 400, 600, 800], "{machine:?}");
        assert_eq!(recorded.recording.summary.as_ref().map(|summary| summary.threads), Some(5));
    }
}

const FORKS: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned cell[8];
__attribute__((noinline, noclone)) void region(int n) {
    cell[0] = n;
    if (n == 2) { int child = fork(); if (!child) { cell[5] = 1; _exit(0); } waitpid(child, 0, 0); }
    cell[1] = n;
}
int main(void) {
    if (!fork()) { region(0); region(1); _exit(0); }
    wait(0);
    for (int n = 0; n < 4; n++) region(n);
    printf("cell %p\n", (void *)cell);
    fflush(stdout);
#ifdef EXEC
    execl("/bin/true", "true", (char *)0);
#endif
    return 0;
}
"#;

#[test]
fn calls_in_a_forked_process_are_recorded_and_told_apart() {
    for machine in MACHINES {
        let program = c(machine, FORKS, &["-static"]);
        for options in [&["--region", "region"][..], &["--region", "region", "--one-pass"]] {
            let recorded = program.record(options);
            assert_eq!(recorded.ends(), [Returned; 6], "{machine:?} {options:?}");
            let cell = recorded.value("cell");
            for call in 0..6 {
                let touched = recorded.touched(call, cell, 32);
                assert_eq!(touched, [(0, 4, 'S'), (4, 4, 'S')], "{machine:?} {options:?} call {call}");
            }
            // The first child's calls come first; the second child's only call began in its parent.
            let of: Vec<(u32, u64)> =
                recorded.calls().iter().map(|call| (call.process.0, call.sequence)).collect();
            assert_eq!(of, [(1, 0), (1, 1), (0, 2), (0, 3), (0, 4), (0, 5)], "{machine:?} {options:?}");
            let summary = recorded.recording.summary.as_ref().expect("a summary");
            assert_eq!((summary.forks, summary.threads), (2, 3), "{machine:?} {options:?}");
            assert_eq!((summary.regions[0].seen, summary.regions[0].recorded), (6, 6), "{machine:?}");
        }
    }
}

const WORKERS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
volatile unsigned cell[64];
static unsigned odd(unsigned n) { return n * 7 + cell[n % 64]; }
__attribute__((noinline, noclone)) void region(unsigned n) { cell[n % 64] = n % 5 == 4 ? odd(n) : n; }
int main(void) {
    for (int worker = 0; worker < 4; worker++)
        if (!fork()) { for (unsigned n = 0; n < 3000; n++) region(n); exit(0); }
    while (wait(0) > 0) {}
    return 0;
}
"#;

/// Four processes write one recording at the same time.
#[test]
fn processes_that_run_at_the_same_time_write_one_recording() {
    let recorded = c(X86_64, WORKERS, &[]).record(&["--region", "region"]);
    let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
    recorded.calls().iter().for_each(|call| *calls.entry(call.process.0).or_default() += 1);
    assert_eq!(calls.into_iter().collect::<Vec<_>>(), [(1, 3000), (2, 3000), (3, 3000), (4, 3000)]);
    let sequences: BTreeSet<u64> = recorded.calls().iter().map(|call| call.sequence).collect();
    assert_eq!(sequences.len(), 12_000, "numbers are given over all processes");
}

#[test]
fn what_ran_before_exec_stays_recorded_and_the_program_is_followed() {
    lineup_fixtures::require_plugins("qemu-x86_64");
    let recorded = c(X86_64, FORKS, &["-DEXEC"]).record(&["--region", "region"]);
    assert_eq!(recorded.ends(), [Returned; 6]);
    let summary = recorded.recording.summary.as_ref().expect("a summary");
    assert_eq!(summary.unfollowed, []);
    let last = recorded.recording.processes.last().expect("processes");
    assert_eq!(last.origin, Origin::Executed(ProcessId(0)));
    assert!(last.program.ends_with("/true"), "{}", last.program);
}

/// Work that is the same on every thread and in every run, through libraries, locks and exceptions. The part that
/// differs from run to run, waiting for a lock, is outside the region.
const STEADY: &str = r#"
#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static std::mutex lock;
static volatile long sum;
__attribute__((noinline)) long deep(long n) {
    if (n % 4 == 3) throw std::runtime_error("odd");
    return n * 3;
}
__attribute__((noinline)) long region(long n) {
    std::string text;
    for (long i = 0; i < n % 8; i++) text += char('a' + i);
    std::vector<long> numbers(n % 16, n);
    long found = text.size() + numbers.size();
    try { found += deep(n); } catch (const std::exception &caught) { found += caught.what()[0]; }
    if (n % 16 == 15) throw n;
    return found;
}
static void work(long me) {
    for (long n = 0; n < 160; n++) {
        long found = 0;
        try { found = region(n); } catch (long thrown) { found = thrown + me; }
        std::lock_guard<std::mutex> guard(lock);
        sum = sum + found;
    }
}
int main() {
    // Each thread's first allocation and first exception set things up for the process.
    try { region(15); } catch (long) {}
    std::vector<std::thread> threads;
    for (long me = 0; me < 4; me++) threads.emplace_back(work, me);
    for (auto &thread : threads) thread.join();
    std::printf("%ld\n", sum);
}
"#;

#[test]
fn two_passes_record_what_one_does_in_a_program_with_threads() {
    let program = cpp(X86_64, STEADY, &["-Wl,-z,now"]);
    let two = program.record(&["--region", "region", "--engine", "qemu"]);
    let one = program.record(&["--region", "region", "--engine", "qemu", "--one-pass"]);
    let ends = |recorded: &Recorded| -> Vec<usize> {
        [Returned, Abandoned]
            .map(|end| recorded.calls().iter().filter(|call| call.end == end).count())
            .to_vec()
    };
    assert_eq!((ends(&one), ends(&two)), (vec![600, 41], vec![600, 41]));
    assert!(two.calls().iter().all(|call| call.missed_blocks == 0));
    // By thread, each call's instructions, accesses and code, in order. The first calls of a thread set up its part of
    // the heap, and how depends on the threads before it.
    let shapes = |recorded: &Recorded| {
        let mut threads: BTreeMap<u32, Vec<(u64, usize, usize)>> = BTreeMap::new();
        for call in recorded.calls() {
            let shape = (call.instructions, call.accesses.len(), call.code_granules.len());
            threads.entry(call.thread.0).or_default().push(shape);
        }
        threads
            .into_values()
            .map(|mut calls| calls.split_off(calls.len().saturating_sub(128)))
            .collect::<Vec<_>>()
    };
    assert_eq!(shapes(&one), shapes(&two));
}

/// Only the first run does this: a file tells later runs.
const FICKLE: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
volatile unsigned cell[64];
static __attribute__((noinline, noclone)) void rare(unsigned n) { cell[n % 64] += cell[(n + 1) % 64]; cell[3] = n; }
__attribute__((noinline, noclone)) void region(unsigned n, int is_first) { cell[1] = n; if (!is_first) rare(n); cell[2] = n; }
int main(void) {
    int is_first = access("seen", F_OK) != 0;
    close(open("seen", O_CREAT | O_WRONLY, 0600));
    rare(0); // Known to the emulator before it runs inside the region.
    for (unsigned n = 0; n < 20; n++) region(n, is_first);
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

#[test]
fn ways_that_the_first_run_did_not_go_are_recorded_in_a_third() {
    for machine in MACHINES {
        let program = c(machine, FICKLE, &["-static"]);
        let arguments = ["--engine", "qemu", "--region", "region", "--json", "--", "./program"];
        let output = lineup_record(program.folder.path(), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(
            (report["runs"].as_u64(), report["regions"][0]["missed_blocks"].as_u64()),
            (Some(3), Some(0))
        );
        assert!(report["notes"].to_string().contains("the program ran three times"), "{machine:?} {report}");
        let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
        let two = lineup_recording::read_all(&bytes).expect("a readable recording");
        let one = program.record(&["--region", "region", "--one-pass"]);
        let shape = |calls: &[Call]| -> Vec<_> {
            calls.iter().map(|call| (call.instructions, call.accesses.clone(), call.end)).collect()
        };
        assert_eq!(shape(&two.calls), shape(one.calls()), "{machine:?}");
    }
}

const LIBRARY: &str = r#"
volatile unsigned cell[8];
__attribute__((noinline, noclone)) void library_region(int n) { cell[0] = n; cell[1] = cell[0]; }
volatile unsigned *library_cell(void) { return cell; }
"#;

const USER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(void) {
    void *library = dlopen("./liblibrary.so", RTLD_NOW);
    if (!library) { fprintf(stderr, "%s\n", dlerror()); return 1; }
    void (*region)(int) = (void (*)(int))dlsym(library, "library_region");
    void *(*cell)(void) = (void *(*)(void))dlsym(library, "library_cell");
    for (int n = 0; n < 4; n++) region(n);
    printf("cell %p\n", cell());
    return 0;
}
"#;

#[test]
fn a_region_may_lie_in_a_library_loaded_late() {
    for machine in MACHINES {
        let program = c(machine, USER, &["-ldl"]);
        build(machine, program.folder.path(), "library.c", LIBRARY, "liblibrary.so", &["-shared", "-fPIC"]);
        let recorded = program.record(&["--region", "library_region"]);
        assert_eq!(recorded.ends(), [Returned; 4], "{machine:?}");
        let cell = recorded.value("cell");
        for call in 0..4 {
            assert_eq!(
                recorded.touched(call, cell, 32),
                [(0, 4, 'S'), (0, 4, 'L'), (4, 4, 'S')],
                "{machine:?} {call}"
            );
        }
    }
}

const TWO_REGIONS: &str = r#"
#include <cstdio>
namespace a { volatile unsigned cell[8];
[[gnu::noinline]] void inner(int n) { cell[1] = n; }
[[gnu::noinline]] void outer(int n) { cell[0] = n; inner(n); cell[2] = n; } }
int main() {
    for (int n = 0; n < 3; n++) { a::outer(n); a::inner(n); }
    std::printf("cell %p\n", (void *)a::cell);
}
"#;

#[test]
fn a_region_inside_a_region_is_recorded_in_both() {
    for machine in [X86_64, AArch64] {
        let recorded = cpp(machine, TWO_REGIONS, &["-static"]).record(&[
            "--region",
            "a::outer=3",
            "--region",
            "a::inner",
        ]);
        let cell = recorded.value("cell");
        let regions: Vec<u16> = recorded.calls().iter().map(|call| call.region.0).collect();
        assert_eq!(regions, [0, 1, 1, 0, 1, 1, 0, 1, 1], "{machine:?}");
        assert_eq!(recorded.ends(), [Returned; 9], "{machine:?}");
        assert_eq!(recorded.touched(0, cell, 32), [(0, 4, 'S'), (4, 4, 'S'), (8, 4, 'S')], "{machine:?}");
        assert_eq!(recorded.touched(1, cell, 32), [(4, 4, 'S')], "{machine:?}");
        assert_eq!(recorded.recording.header.regions[RegionId(0)].weight, 3.0);
    }
}

/// More threads at a time than the log has chunks, all with a stack of their own.
const CROWD: &str = r#"
#include <pthread.h>
#include <stdio.h>
enum { CROWD = 2000 };
volatile unsigned long cell;
static pthread_barrier_t all;
static pthread_t threads[CROWD];
__attribute__((noinline, noclone)) void region(unsigned long me) { cell = me; }
static void *work(void *argument) {
    pthread_barrier_wait(&all);
    for (int turn = 0; turn < 3; turn++) region((unsigned long)argument);
    pthread_barrier_wait(&all);
    return 0;
}
int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all, 0, CROWD);
    for (unsigned long me = 0; me < CROWD; me++) if (pthread_create(&threads[me], &small, work, (void *)me)) return 1;
    for (int me = 0; me < CROWD; me++) pthread_join(threads[me], 0);
    printf("cell %p\n", (void *)&cell);
    return 0;
}
"#;

#[test]
fn two_thousand_threads_at_a_time_are_recorded() {
    let recorded = c(X86_64, CROWD, &["-pthread"]).record(&["--region", "region", "--engine", "native"]);
    let mut calls: BTreeMap<u32, usize> = BTreeMap::new();
    for call in recorded.calls() {
        assert_eq!(call.end, Returned);
        *calls.entry(call.thread.0).or_default() += 1;
    }
    assert_eq!((calls.len(), calls.values().filter(|own| **own == 3).count()), (2000, 2000));
}
