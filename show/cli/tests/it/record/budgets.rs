//! `--calls-per-thread`: each thread has as many calls recorded, at the same times.

use super::program::{Recorded, X86_64, c};
use lineup_model::access::ThreadId;
use lineup_recording::ThreadBudget;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn by_thread(recorded: &Recorded, region: u16) -> Vec<u64> {
    let mut threads: BTreeMap<ThreadId, u64> = BTreeMap::new();
    for call in recorded.calls().iter().filter(|call| call.region.0 == region) {
        *threads.entry(call.thread).or_default() += 1;
    }
    let mut counts: Vec<u64> = threads.into_values().collect();
    counts.sort_unstable();
    counts
}

#[test]
fn threads_that_begin_at_different_times_and_call_differently_often_have_as_many_calls_each() {
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        static struct { volatile long of[5]; } counts;
        __attribute__((noinline)) long inner(int which) { return counts.of[which]++; }
        __attribute__((noinline)) long work(int which) { return counts.of[which] += 3, which == 3 ? inner(which) : 0; }
        static const long calls[5] = { 200000, 30000, 60, 4000, 0 };
        static void *run(void *number) {
            int which = (long)number;
            usleep(which * 20000);
            for (long i = 0; i < calls[which]; i++) work(which);
            return 0;
        }
        int main(void) {
            pthread_t threads[5];
            for (long i = 0; i < 5; i++) pthread_create(&threads[i], 0, run, (void *)i);
            for (int i = 0; i < 5; i++) pthread_join(threads[i], 0);
            printf("sum %lx\n", counts.of[0] + counts.of[1] + counts.of[2] + counts.of[3]);
        }
    "#;
    let program = c(X86_64, source, &["-pthread"]);
    let regions = ["--region", "work", "--region", "inner", "--calls-per-thread", "100"];
    let recorded = program.record(&regions);
    assert_eq!(recorded.value("sum"), 3 * 234_060 + 4000);
    assert_eq!(by_thread(&recorded, 0), [60, 100, 100, 100], "{}", recorded.said);
    // Calls inside recorded ones are recorded with them, and others in addition, up to the same number.
    assert_eq!(by_thread(&recorded, 1), [100], "{}", recorded.said);
    assert!(recorded.said.contains("work: 360 calls recorded of 234,060 made"), "{}", recorded.said);
    let line = recorded.said.lines().find(|line| line.contains("calls of work that each thread made: "));
    let mut made: Vec<u64> = line
        .and_then(|line| line.rsplit_once(": "))
        .map(|(_, list)| list.split(", ").filter_map(|number| number.parse().ok()).collect())
        .unwrap_or_default();
    made.sort_unstable();
    assert_eq!(made, [60, 4000, 30_000, 200_000], "{}", recorded.said);
    let recording = program.folder.path().join("lineup.rec");
    let threads = Command::new(env!("CARGO_BIN_EXE_lineup")).arg("threads").arg(recording).output();
    let said = String::from_utf8_lossy(&threads.expect("running lineup").stdout).into_owned();
    assert!(said.starts_with("4 threads with "), "{said}");
}

/// A call is recorded, or not, by the stretch of time in which it begins, which the program notes, too: of stretches in
/// which two threads ran, both have recorded the same.
#[test]
fn threads_that_run_at_the_same_time_are_recorded_at_the_same_times() {
    const THREADS: usize = 3;
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        #include <x86intrin.h>
        enum { THREADS = 3, MOST = 200, SHIFT = 21 };
        static struct { volatile long calls; char rest[56]; } own[THREADS] __attribute__((aligned(64)));
        static unsigned long visited[THREADS][MOST];
        static pthread_barrier_t begin;
        __attribute__((noinline)) void work(int which) { own[which].calls++; }
        static void *run(void *number) {
            int which = (long)number, count = 0;
            pthread_barrier_wait(&begin);
            while (count < MOST) {
                unsigned long before = __rdtsc() >> SHIFT;
                work(which);
                /* A call between two stretches may belong to either. */
                if (__rdtsc() >> SHIFT == before && (count == 0 || visited[which][count - 1] != before))
                    visited[which][count++] = before;
            }
            return 0;
        }
        int main(void) {
            pthread_t threads[THREADS];
            pthread_barrier_init(&begin, 0, THREADS);
            for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, run, (void *)i);
            for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
            printf("own %lx\n", (unsigned long)own);
            for (int i = 0; i < THREADS; i++)
                for (int k = 0; k < MOST; k++) printf("visited %d %lu\n", i, visited[i][k]);
        }
    "#;
    let program = c(X86_64, source, &["-pthread"]);
    let recorded = program.record(&["--region", "work", "--calls-per-thread", "2000"]);
    assert_eq!(by_thread(&recorded, 0), [2000; THREADS]);
    let mut visited: [BTreeSet<u64>; THREADS] = Default::default();
    for line in recorded.said.lines().filter_map(|line| line.strip_prefix("visited ")) {
        let (thread, stretch) = line.split_once(' ').expect("two numbers");
        visited[thread.parse::<usize>().expect("a thread")].insert(stretch.parse().expect("a stretch"));
    }
    let mut taken: [BTreeMap<u64, u64>; THREADS] = Default::default();
    for (number, call) in recorded.calls().iter().enumerate() {
        let (at, ..) = recorded.touched(number, recorded.value("own"), 64 * THREADS as u64)[0];
        let stretch = call.times.first().expect("a time").cycles >> 21;
        *taken[at as usize / 64].entry(stretch).or_default() += 1;
    }
    let position = |stretch: &u64| ThreadBudget::default().position(stretch << 21);
    // A thread has every stretch before its last one. A thread that was interrupted in the middle of a beginning call
    // has a time of another stretch there.
    let last = taken.each_ref().map(|taken| {
        let sure = taken.iter().filter(|(_, calls)| **calls > 1);
        sure.map(|(stretch, _)| position(stretch)).max().expect("a stretch")
    });
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        let bound = last[one].min(last[other]);
        let both = visited[one].intersection(&visited[other]).filter(|stretch| position(stretch) < bound);
        let common: Vec<u64> = both.copied().collect();
        let is_in = |taken: &BTreeMap<u64, u64>| common.iter().all(|stretch| taken.contains_key(stretch));
        assert!(is_in(&taken[one]) && is_in(&taken[other]), "{common:?} {taken:?}");
        // On a machine that lets them run at the same time.
        let chances = visited[one].intersection(&visited[other]).count();
        assert!(chances < 80 || !common.is_empty(), "{chances}");
    }
}
