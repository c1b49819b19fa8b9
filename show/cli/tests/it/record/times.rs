//! `lineup time`: every call is counted once, whichever way it ends, and the program notices nothing.

use super::program::{Program, X86_64, build, c, cpp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub(crate) fn time(program: &Program, regions: &[&str], options: &[&str]) -> Output {
    // Builds the engine.
    super::program::lineup_record(program.folder.path(), &["--region", "main", "--", "./nothing"]);
    let regions: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.arg("time").args(regions).args(options).args(["--", "./program"]);
    command.current_dir(program.folder.path()).output().expect("running lineup")
}

/// The report, and the program's output.
fn timed(program: &Program, regions: &[&str]) -> (Value, String) {
    timed_with(program, regions, &[])
}

pub(crate) fn timed_with(program: &Program, regions: &[&str], options: &[&str]) -> (Value, String) {
    let output = time(program, regions, &[options, &["--json"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    (serde_json::from_slice(&output.stdout).expect("JSON"), said)
}

pub(crate) fn alone(program: &Program) -> String {
    let output = Command::new(program.folder.path().join("program")).output().expect("the program");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Calls, those left, those inside others, and those that ended with a jump.
pub(crate) fn counts(report: &Value, number: usize) -> [u64; 4] {
    let region = &report["regions"][number];
    let calls: u64 =
        region["buckets"].as_array().expect("buckets").iter().filter_map(|one| one["calls"].as_u64()).sum();
    assert_eq!(region["calls"], calls);
    ["calls", "left", "inner", "jumped"].map(|name| region[name].as_u64().expect("a count"))
}

pub(crate) const WAYS: &str = r#"
#include <csetjmp>
#include <cstdio>
#include <execinfo.h>
#include <stdexcept>
#include <thread>
#include <vector>
static volatile long cell[64];
static std::jmp_buf place;
extern "C" {
__attribute__((noinline)) long leaf(long x) { return x * 3 + 1; }
__attribute__((noinline)) long busy(long n) { long s = 0; for (long i = 0; i < n; i++) s += cell[i & 63]; return s; }
__attribute__((noinline)) long fib(long n) { if (n < 2) return n; long one = fib(n - 1) ^ 5; return (fib(n - 2) | 1) % one; }
__attribute__((noinline)) long tail(long n) { cell[1] = n; return busy(n); }
__attribute__((noinline)) long pick(long n) {
    switch (n & 7) {
    case 0: cell[7] += n; return 9; case 1: cell[1]++; case 2: cell[2] += n; return 3; case 3: return cell[5]; case 4: cell[3] = n; break;
    case 5: return n * n; case 6: cell[9] -= n; return cell[8]; default: cell[4]++;
    }
    return cell[n & 3];
}
__attribute__((noinline)) long throws(long n) { if (n % 3 == 0) throw std::runtime_error("x"); return busy(n & 3) + 1; }
__attribute__((noinline)) long jumps(long n) { if (n % 4 == 0) std::longjmp(place, 1); return n + cell[2]; }
__attribute__((noinline)) long deep(long n) { void *all[64]; long found = backtrace(all, 64); return found + n - n; }
}
int main() {
    long sum = 0;
    for (long i = 0; i < 20000; i++) sum += leaf(i) + pick(i);
    for (long i = 0; i < 300; i++) sum += busy(500) + tail(100);
    sum += fib(12) + fib(5);
    for (long i = 0; i < 3000; i++) { try { sum += throws(i); } catch (std::exception &) { sum++; } }
    for (volatile long i = 0; i < 400; i++) { if (!setjmp(place)) sum += jumps(i); }
    for (long i = 0; i < 10; i++) sum += deep(i);
    std::vector<std::thread> threads;
    for (int k = 0; k < 40; k++) threads.emplace_back([] { for (int i = 0; i < 100; i++) cell[20] = leaf(i); });
    for (auto &thread : threads) thread.join();
    std::printf("sum %lx\n", sum);
}
"#;

#[test]
fn calls_are_counted_whichever_way_they_end() {
    let program = cpp(X86_64, WAYS, &[]);
    let expected = alone(&program);
    let (report, printed) = timed(&program, &["leaf", "pick", "busy", "fib", "throws", "jumps", "deep"]);
    assert_eq!((report["schema"].as_str(), report["exit_status"].as_i64()), (Some("lineup.time/1"), Some(0)));
    assert!(printed.contains(&expected), "{printed}");
    assert_eq!(counts(&report, 0), [24_000, 0, 0, 0]);
    assert_eq!(counts(&report, 1)[..3], [20_000, 0, 0]);
    assert_eq!(counts(&report, 2), [300 + 300 + 2000, 0, 0, 0]);
    // Each call of fib makes two, from 2 on.
    assert_eq!(counts(&report, 3), [2, 0, 464 + 14, 0]);
    // The last that throws is not followed by one that finds it out, unless one is.
    assert_eq!(counts(&report, 4)[..2], [2000, 1000]);
    assert_eq!(counts(&report, 5)[..2], [300, 100]);
    assert_eq!(counts(&report, 6)[..2], [10, 0]);
    for region in report["regions"].as_array().expect("regions") {
        let ns = |name: &str| region[name].as_f64().expect("a time");
        assert!(ns("min_ns") <= ns("p50_ns") && ns("p50_ns") <= ns("p99_ns") && ns("p99_ns") <= ns("max_ns"));
        let marks = region["high_water"].as_array().expect("marks");
        assert!(marks.windows(2).all(|pair| pair[0]["ns"].as_f64() <= pair[1]["ns"].as_f64()));
        assert_eq!(marks.last().expect("a mark")["ns"], region["max_ns"]);
    }
    let (report, _) = timed(&program, &["tail"]);
    assert_eq!(counts(&report, 0), [300, 0, 0, 300]);
    let text = String::from_utf8_lossy(&time(&program, &["fib"], &[]).stdout).into_owned();
    assert!(text.contains("478 inside a call of the same function"), "{text}");
}

#[test]
fn signals_forks_and_many_threads_change_nothing() {
    let source = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/time.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile long cell, ticks;
        __attribute__((noinline)) long hot(long x) { cell += x; return x * 5 - cell % 2 * 0; }
        __attribute__((noinline)) int forks(int n) { int status = 0, made = fork(); if (!made) { hot(n); return 1000; } waitpid(made, &status, 0); return WEXITSTATUS(status); }
        static void tick(int signal) { ticks++; hot(1); }
        static pthread_barrier_t all;
        static void *work(void *argument) {
            long sum = hot((long)argument);
            pthread_barrier_wait(&all);
            for (long i = 0; i < 50; i++) sum += hot(i);
            pthread_barrier_wait(&all);
            return (void *)sum;
        }
        int main(void) {
            struct itimerval often = {{0, 200}, {0, 200}}, never = {};
            signal(SIGALRM, tick);
            setitimer(ITIMER_REAL, &often, 0);
            long sum = 0;
            for (long i = 0; i < 3000000; i++) sum += hot(i);
            setitimer(ITIMER_REAL, &never, 0);
            for (int i = 0; i < 5; i++) { int got = forks(i); if (got == 1000) _exit(40 + i); sum += got; }
            enum { MANY = 150 };
            static pthread_t threads[MANY];
            pthread_barrier_init(&all, 0, MANY);
            for (long i = 0; i < MANY; i++) pthread_create(&threads[i], 0, work, (void *)i);
            for (int i = 0; i < MANY; i++) { void *part; pthread_join(threads[i], &part); sum += (long)part; }
            printf("sum %lx\n", sum);
            fprintf(stderr, "ticks %ld\n", ticks);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let expected = alone(&program);
    counts_of_signals_forks_and_threads(&expected, &timed(&program, &["hot", "forks"]));
    let drawing = ["--intervene", "flush_code,flush_data,flush_both", "--intervene-every", "10000"];
    counts_of_signals_forks_and_threads(&expected, &timed_with(&program, &["hot", "forks"], &drawing));
}

/// Calls left in every way, and deeper ones after that, which nothing shows to be outside but the places of their
/// frames.
const LEFT: &str = r#"
#include <pthread.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <ucontext.h>
#include <unistd.h>
static volatile long cell, is_waiting;
static std::jmp_buf place;
static sigjmp_buf from_signal;
static ucontext_t own, other;
extern "C" {
__attribute__((noinline)) long thrown(long n) { if (n < 0) throw std::runtime_error("x"); cell += n; return n; }
__attribute__((noinline)) long jumped(long n) { if (n < 0) std::longjmp(place, 1); cell += n; return n; }
__attribute__((noinline)) long signalled(long n) { if (n < 0) raise(SIGUSR1); cell += n; return n; }
__attribute__((noinline)) long recursive(long n) { if (n == 3) std::longjmp(place, 1); if (n <= 0) return 0; return recursive(n - 1) + cell; }
__attribute__((noinline)) long waits(long n) { if (n < 0) swapcontext(&other, &own); cell += n; return n; }
__attribute__((noinline)) long ends(long n) { if (n < 0) pthread_exit(nullptr); cell += n; return n; }
__attribute__((noinline)) long cancelled(long n) { if (n < 0) for (is_waiting = 1;;) pause(); cell += n; return n; }
__attribute__((noinline)) long last(long n) { if (n < 0) exit(0); cell += n; return n; }
}
/// A frame of which only the beginning is written.
__attribute__((noinline)) static long deeper(long (*call)(long), long n) { volatile char pad[4096]; pad[0] = 1; return call(n) + pad[0]; }
__attribute__((noinline)) static long through(long (*call)(long), long n) { volatile long pad = n; return call(pad) + pad; }
static void handler(int) { siglongjmp(from_signal, 1); }
static void coroutine() { cell += waits(-1); swapcontext(&other, &own); }
static void *ending(void *call) { deeper((long (*)(long))call, 5); return (void *)through((long (*)(long))call, -1); }
int main() {
    long sum = 0;
    std::signal(SIGUSR1, handler);
    for (int round = 0; round < 3; round++) {
        try { sum += through(thrown, -1); } catch (std::exception &) {}
        for (int i = 0; i < 1000; i++) sum += deeper(thrown, i);
        if (!setjmp(place)) sum += through(jumped, -1);
        for (int i = 0; i < 1000; i++) sum += deeper(jumped, i);
        if (!sigsetjmp(from_signal, 1)) sum += through(signalled, -1);
        for (int i = 0; i < 1000; i++) sum += deeper(signalled, i);
        if (!setjmp(place)) sum += recursive(6);
        for (int i = 0; i < 1000; i++) sum += deeper(recursive, 2);
        static char stack[1 << 16];
        getcontext(&other);
        other.uc_stack.ss_sp = stack;
        other.uc_stack.ss_size = sizeof stack;
        makecontext(&other, coroutine, 0);
        swapcontext(&own, &other);
        for (int i = 0; i < 100; i++) sum += waits(i);
        swapcontext(&own, &other);
    }
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, nullptr, ending, (void *)(i ? cancelled : ends));
        if (i) { while (!is_waiting) sched_yield(); pthread_cancel(thread); }
        pthread_join(thread, nullptr);
    }
    std::printf("sum %lx\n", sum & 0);
    std::fflush(stdout);
    last(1);
    last(-1);
}
"#;

#[test]
fn after_a_call_that_was_left_the_others_are_timed() {
    let program = cpp(X86_64, LEFT, &[]);
    let regions = ["thrown", "jumped", "signalled", "recursive", "waits", "last"];
    let (report, _) = timed(&program, &regions);
    for (number, region) in regions.iter().enumerate().take(3) {
        assert_eq!(counts(&report, number), [3000, 3, 0, 0], "{region}");
    }
    // recursive(6) is left with three inside it; recursive(2) holds two.
    let [calls, left, inner, _] = counts(&report, 3);
    assert_eq!((calls + left + inner, calls), (3 * 4 + 3 * 1000 * 3, 3000));
    let [calls, left, inner, _] = counts(&report, 4);
    assert_eq!((calls + inner, left), (3 * 101, 0), "a call that waits on another stack is not left");
    assert_eq!(counts(&report, 5), [1, 1, 0, 0], "the program ends in it");
    let (report, _) = timed(&program, &["ends", "cancelled"]);
    for number in 0..2 {
        assert_eq!(counts(&report, number), [1, 1, 0, 0]);
    }
}

/// The handler runs after every instruction, including those that time the calls.
#[test]
fn a_signal_may_come_between_any_two_instructions() {
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <stdio.h>
        #include <ucontext.h>
        enum { TRAPS = 0x100 };
        static volatile long cell, traps;
        static volatile int is_over;
        __attribute__((noinline)) long hot(long x) { cell += x; return x * 5 - cell % 2 * 0; }
        static void trap(int signal, siginfo_t *told, void *context) {
            traps++;
            hot(1);
            if (is_over) ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAPS;
        }
        int main(void) {
            struct sigaction action = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO};
            sigaction(SIGTRAP, &action, 0);
            hot(1);
            __asm__ volatile("sub $128, %%rsp; pushf; orl %0, (%%rsp); popf; add $128, %%rsp" : : "i"(TRAPS) : "memory", "cc");
            for (int i = 0; i < 20; i++) hot(i);
            is_over = 1;
            __asm__ volatile("nop; nop");
            printf("traps %ld\n", traps);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let (report, printed) = timed(&program, &["hot"]);
    let traps = printed.split("traps ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let traps: u64 = traps.and_then(|traps| traps.parse().ok()).expect("how often it was trapped");
    assert!(traps > 1000, "what times the calls was not trapped: {traps}");
    let [calls, left, inner, _] = counts(&report, 0);
    assert_eq!((calls + inner, left), (21 + traps, 0));
}

fn counts_of_signals_forks_and_threads(expected: &str, (report, printed): &(Value, String)) {
    assert!(printed.contains(expected), "{printed}");
    let ticks = printed.split("ticks ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let ticks: u64 = ticks.and_then(|ticks| ticks.parse().ok()).expect("how often it ticked");
    let [calls, left, inner, _] = counts(report, 0);
    let drawn = &report["regions"][0]["interventions"];
    let timed = drawn["arms"].as_array().into_iter().flatten().filter_map(|arm| arm["calls"].as_u64());
    let timed: u64 = timed.sum();
    assert_eq!(drawn["drawn"].as_u64().unwrap_or_default(), timed, "{drawn}");
    let calls = calls + timed;
    let notes = report["notes"].to_string();
    // The main thread has a table; of the others 127 have one.
    let passed = notes.split("too many at a time: ").nth(1).and_then(|rest| rest.split('"').next());
    let passed: u64 = passed.and_then(|passed| passed.parse().ok()).expect("threads without a table");
    assert!(passed >= 23, "{notes}");
    assert_eq!((calls + inner, left), (3_000_000 + ticks + 51 * (150 - passed), 0), "{notes}");
    assert_eq!(counts(report, 1)[..2], [5, 0]);
    assert!(notes.contains("forked off, whose calls are not timed: 5"), "{notes}");
}

#[test]
fn what_cannot_be_timed_is_refused_before_the_program_runs() {
    let source = r#"
        #include <stdio.h>
        extern long away(long), shared(long), into(long);
        long (*to)(long);
        __attribute__((noinline)) long leaf(long x) { return x + 1; }
        __asm__(".text\n.p2align 4\n.globl away\n.type away,@function\naway: nopl 0(%rax,%rax)\njmp *to(%rip)\n.size away,.-away\n"
                ".globl shared\n.type shared,@function\nshared: nopl 0(%rax,%rax)\nlea 1(%rdi),%rax\n2: nop\nret\n.size shared,.-shared\n"
                ".globl into\n.type into,@function\ninto: mov %rdi,%rax\njmp 2b\n.size into,.-into\n");
        int main(void) { to = leaf; printf("ran %lx\n", away(1) + shared(3) + into(4)); }
    "#;
    let program = c(X86_64, source, &[]);
    for (region, why) in
        [("away", "only the running program knows"), ("shared", "too close to code"), ("nowhere", "nowhere")]
    {
        let output = time(&program, &[region], &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(why), "{said}");
        assert!(region == "nowhere" || output.stdout.is_empty(), "the program ran");
    }
}

#[test]
fn calls_in_processes_that_were_forked_off_have_a_command_that_records_them() {
    lineup_fixtures::require_plugins("qemu-x86_64");
    let source = r#"
        #include <sys/wait.h>
        #include <unistd.h>
        volatile int cell;
        __attribute__((noinline)) void work(int n) { cell += n; }
        int main(void) {
            if (!fork()) { for (int n = 0; n < 20; n++) work(n); _exit(0); }
            return wait(0) < 0;
        }
    "#;
    let program = c(X86_64, source, &[]);
    let output = time(&program, &["work"], &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let shown = said.split('`').nth(1).expect("a command");
    assert!(shown.starts_with("lineup record --engine qemu --region work -- "), "{said}");
    let words: Vec<&str> = shown.split(' ').skip(2).collect();
    let output = super::program::lineup_record(program.folder.path(), &words);
    let recorded = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(recorded.contains("work: 20 calls recorded of 20 made"), "{recorded}");
}

#[test]
fn an_interruption_leaves_the_times_until_then() {
    let source = r#"
        #include <stdio.h>
        #include <unistd.h>
        volatile int cell;
        __attribute__((noinline)) void work(int n) { cell += n; }
        int main(void) {
            for (int n = 0; n < 1000; n++) work(n);
            fclose(fopen("ready", "w"));
            sleep(100);
        }
    "#;
    let program = c(X86_64, source, &[]);
    time(&program, &["main"], &["--max-seconds", "0.1"]);
    let ready = program.folder.path().join("ready");
    std::fs::remove_file(&ready).ok();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command
        .args(["time", "--json", "--region", "work", "--", "./program"])
        .current_dir(program.folder.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("lineup starts");
    while !ready.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("a signal to lineup");
    let output = child.wait_with_output().expect("lineup ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("interrupted by SIGINT"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(counts(&report, 0), [1000, 0, 0, 0]);
}

#[test]
fn functions_whose_returns_have_no_room_are_timed_when_they_call_nothing() {
    // A way around an instruction before the return; five bytes; rounds from the entry; a short jump to another
    // function.
    let source = r#"
        #include <stdio.h>
        extern long tight(long), five(long), rounds(long), turns(long);
        __asm__(".text\n.globl tight\n.type tight,@function\ntight: mov %rdi,%rax\ntest %rdi,%rdi\nje 1f\nnot %rax\n1: ret\n.size tight,.-tight\n"
                ".globl five\n.type five,@function\nfive: lea 1(%rdi),%rax\nret\n.size five,.-five\n"
                ".globl rounds\n.type rounds,@function\nrounds: dec %rdi\njg rounds\nlea -3(%rdi),%rax\nret\n.size rounds,.-rounds\n"
                ".globl turns\n.type turns,@function\nturns: test $1,%dil\njne five\nlea 2(%rdi),%rax\nret\n.size turns,.-turns\n"
                ".globl next\n.type next,@function\nnext: ret\n.size next,.-next\n");
        int main(void) {
            long sum = 0;
            for (long i = 0; i < 1000; i++) sum = sum * 3 + tight(i & 3) + five(i) + rounds(i & 15) + turns(i);
            printf("sum %lx\n", sum);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let expected = alone(&program);
    for (region, counted) in [
        ("tight", [1000, 0, 0, 0]),
        ("five", [1500, 0, 0, 0]),
        ("rounds", [1000, 0, 0, 0]),
        ("turns", [1000, 0, 0, 500]),
    ] {
        let (report, printed) = timed(&program, &[region]);
        assert!(printed.contains(&expected), "{region}: {printed}");
        assert_eq!(counts(&report, 0), counted, "{region}");
    }
}

#[test]
fn a_function_that_jumps_to_labels_of_its_own_is_timed() {
    let source = r#"
        #include <stdio.h>
        static volatile long cell[8];
        __attribute__((noinline)) long interpret(const unsigned char *code) {
            static void *const places[] = { &&add, &&twice, &&store, &&end };
            long value = cell[1];
            goto *places[*code++];
        add: value += cell[2] + 7; goto *places[*code++];
        twice: value = value * 2 + cell[3]; goto *places[*code++];
        store: cell[4] += value; goto *places[*code++];
        end: return (value + cell[5]) * 1000003 + cell[4];
        }
        int main(void) {
            static const unsigned char one[] = {0, 1, 2, 0, 3}, other[] = {1, 1, 0, 2, 2, 1, 3};
            long sum = 0;
            for (int i = 0; i < 4000; i++) sum ^= interpret(i % 3 ? one : other);
            printf("sum %lx\n", sum);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let expected = alone(&program);
    let (report, printed) = timed(&program, &["interpret"]);
    assert!(printed.contains(&expected), "{printed}");
    assert_eq!(counts(&report, 0), [4000, 0, 0, 0]);
}

#[test]
fn calls_in_programs_that_are_started_are_added_up() {
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static volatile long cell;
        __attribute__((noinline)) long work(long x) { cell += x; return cell * 1000003 + 5; }
        int main(int count, char **words) {
            int times = count > 1 ? atoi(words[1]) : 0;
            for (int i = 0; i < times; i++) work(i);
            if (count > 2) { execl("./program", "./program", words[2], (char *)0); return 1; }
            printf("done %d\n", times);
        }
    "#;
    let program = c(X86_64, source, &[]);
    time(&program, &["work"], &[]);
    // Calls of the program that it becomes are not timed without being asked for.
    let alone = Command::new(env!("CARGO_BIN_EXE_lineup"))
        .args(["time", "--region", "work", "--", "./program", "0", "3"])
        .current_dir(program.folder.path())
        .output()
        .expect("running lineup");
    let said = String::from_utf8_lossy(&alone.stderr).into_owned();
    assert_eq!(alone.status.code(), Some(2), "{said}");
    assert!(said.contains("/program, which is not recorded: add --children"), "{said}");
    let script = "./program 100 & ./program 20 3 & wait; ./program 4000";
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.args(["time", "--children", "--region", "work", "--json", "--", "sh", "-c", script]);
    let output = command.current_dir(program.folder.path()).output().expect("running lineup");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(counts(&report, 0), [100 + 20 + 3 + 4000, 0, 0, 0], "{report}");
    // The shell, and the program four times.
    assert_eq!(report["processes"], 5, "{report}");
    assert!(["done 100", "done 3", "done 4000"].iter().all(|line| said.contains(line)), "{said}");
}

#[test]
fn libraries_that_take_each_others_place_are_timed() {
    let library = |factor: &str| {
        format!(
            "static volatile long cell;\n\
             __attribute__((noinline)) long plug(long x) {{ cell += x; return cell * {factor} + 1; }}\n\
             long use(long x) {{ return plug(x) + plug(x + 1); }}\n"
        )
    };
    let source = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        int main(void) {
            long sum = 0, same = 0;
            void *last = 0;
            for (int i = 0; i < 20; i++) {
                void *library = dlopen(i % 2 ? "./one.so" : "./other.so", RTLD_NOW | RTLD_LOCAL);
                if (!library) return 9;
                long (*use)(long) = (long (*)(long))dlsym(library, "use");
                same += last == (void *)use;
                last = (void *)use;
                for (int j = 0; j < 3; j++) sum += use(j);
                dlclose(library);
            }
            printf("sum %lx\nsame %d\n", sum, same > 0);
        }
    "#;
    let program = c(X86_64, source, &[]);
    for (name, factor) in [("one.so", "3"), ("other.so", "5")] {
        let options = ["-shared", "-fPIC", "-fno-semantic-interposition"];
        build(X86_64, program.folder.path(), &format!("{name}.c"), &library(factor), name, &options);
    }
    let (report, printed) = timed(&program, &["plug"]);
    assert!(printed.contains("same 1"), "{printed}");
    assert_eq!(counts(&report, 0), [120, 0, 0, 0], "{report}");
}
