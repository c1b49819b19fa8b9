//! `--calls-per-thread`: each thread has as many calls recorded, at the same times.

use crate::program::{Recorded, X86_64, c};
use lineup_model::access::ThreadId;
use std::collections::BTreeMap;
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
    // Calls inside recorded ones are recorded with them, and others besides, up to as many.
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
