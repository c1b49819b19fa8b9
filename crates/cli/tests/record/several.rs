//! Threads, processes, libraries.

use crate::program::{AArch64, MACHINES, X86_64, build, c, cpp};
use lineup_model::access::CallEnd::Returned;
use lineup_model::region::RegionId;
use std::collections::BTreeMap;

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
        let recorded = c(machine, THREADS, &["-static"]).record(&["--region", "region"]);
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
fn a_forked_process_is_counted_and_not_recorded() {
    for machine in MACHINES {
        let recorded = c(machine, FORKS, &["-static"]).record(&["--region", "region"]);
        assert_eq!(recorded.ends(), [Returned; 4], "{machine:?}");
        let cell = recorded.value("cell");
        for call in 0..4 {
            assert_eq!(
                recorded.touched(call, cell, 32),
                [(0, 4, 'S'), (4, 4, 'S')],
                "{machine:?} call {call}"
            );
        }
        assert_eq!(recorded.recording.summary.as_ref().map(|summary| summary.forks), Some(2), "{machine:?}");
    }
}

#[test]
fn what_ran_before_exec_stays_recorded() {
    let recorded = c(X86_64, FORKS, &["-DEXEC"]).record(&["--region", "region"]);
    assert_eq!(recorded.ends(), [Returned; 4]);
    assert!(recorded.recording.summary.is_some());
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
