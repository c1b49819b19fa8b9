//! Programs that are hard to follow do the same when the native engine records their calls.

use super::program::{Program, X86_64, build, c, cpp, lineup_record};
use lineup_model::access::CallEnd;
use std::process::{Command, Output};

fn alone(program: &Program, argument: &str) -> String {
    let mut command = Command::new(program.folder.path().join("program"));
    said(&command.arg(argument).current_dir(program.folder.path()).output().expect("running the program"))
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn coroutines_exceptions_through_c_threads_commands_and_cancellation() {
    let program = cpp(X86_64, include_str!("odd.cpp"), &["-rdynamic"]);
    let regions = [
        "coroutines",
        "heap_coroutines",
        "sorts",
        "traces",
        "commands",
        "sums",
        "streams",
        "threads",
        "leaves",
        "stacks",
        "clocks",
        "spins",
        "exits",
        "instructions",
    ];
    let options: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
    let recorded = program.record(&[&["--engine", "native"], options.as_slice()].concat());
    let alone = alone(&program, "");
    assert!(recorded.said.starts_with(&alone), "{alone}{}", recorded.said);
    let count = |region: usize, end| {
        let calls = recorded.calls().iter();
        calls.filter(|call| usize::from(call.region.0) == region && call.end == end).count()
    };
    let counts: Vec<usize> = (0..regions.len()).map(|region| count(region, CallEnd::Returned)).collect();
    assert_eq!(counts[..8], [6, 6, 6, 6, 2, 6, 6, 6]);
    assert_eq!((count(8, CallEnd::Abandoned), count(12, CallEnd::ThreadEnded)), (6, 4));
}

#[test]
fn signals_threads_forks_libraries_exceptions_and_jumps_at_once() {
    let program = cpp(X86_64, include_str!("torture.cpp"), &["-ldl"]);
    let library = "static long t[100];\n\
                   long plug(long x) { for (int i = 0; i < 50; i++) t[(x + i) % 100] += i * x; return t[x % 100]; }\n";
    let options = ["-shared", "-fPIC"];
    build(X86_64, program.folder.path(), "plug.c", library, "plug.so", &options);
    let seconds = std::env::var("LINEUP_ENGINE_TORTURE_SECONDS").unwrap_or_else(|_| "2".into());
    let regions = ["work_exceptions", "work_jumps", "work_faults", "work_loads", "leaf", "thrower", "plug"];
    let options: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
    let environment = format!("TORTURE_SECONDS={seconds}");
    let more = ["--engine", "native", "--calls", "300", "--env", &environment];
    let recorded = program.record(&[&more[..], &options].concat());
    assert_eq!(["bad", "ticked", "faulted"].map(|name| recorded.value(name)), [0, 1, 1], "{}", recorded.said);
    assert!((0..3).all(|region| recorded.calls().iter().any(|call| call.region.0 == region)));
}

/// A recorded function may be all that a thread does.
#[test]
fn a_thread_that_is_one_recorded_call_is_recorded_to_its_end() {
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        __attribute__((noinline)) void *whole(void *argument) { long sum = 0; for (volatile long i = 0; i < 1000; i++) sum += i; return (void *)sum; }
        int main(void) {
            long total = 0;
            for (int i = 0; i < 300; i++) { pthread_t thread; void *sum; pthread_create(&thread, 0, whole, 0); pthread_join(thread, &sum); total += (long)sum; }
            printf("total %lx\n", total);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let recorded = program.record(&["--engine", "native", "--region", "whole"]);
    assert_eq!(recorded.value("total"), 300 * 499_500);
    assert_eq!(recorded.ends(), vec![CallEnd::Returned; 300]);
}

/// Calls that end soon after each other, each with all accesses of those inside it, are more than a block of the file.
#[test]
fn a_deep_recursion_is_recorded_to_its_end() {
    let source = r#"
        #include <stdio.h>
        static volatile long table[100000];
        __attribute__((noinline)) long deep(long depth) {
            if (depth == 0) { long sum = 0; for (long i = 0; i < 100000; i++) sum += table[i]; return sum; }
            return deep(depth - 1) + table[depth];
        }
        int main(void) { printf("sum %lx\n", deep(79) + deep(1)); }
    "#;
    let program = c(X86_64, source, &["-fno-optimize-sibling-calls"]);
    let recorded = program.record(&["--engine", "native", "--region", "deep"]);
    assert_eq!(recorded.ends(), vec![CallEnd::Returned; 82]);
    assert!(recorded.calls()[..80].iter().all(|call| call.accesses.len() > 100_000));
    assert!(!recorded.said.contains("cut"), "{}", recorded.said);
}

#[test]
fn handlers_run_on_a_stack_of_the_usual_size() {
    // Below the stack lies a page without access.
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <stdio.h>
        #include <sys/mman.h>
        #include <sys/time.h>
        enum { PAGE = 4096, STACK = 8192 };
        static volatile long handled;
        static volatile double sum;
        static void handler(int signal) { handled += signal == SIGALRM; }
        __attribute__((noinline)) double work(long n) {
            double own = 0;
            for (long i = 0; i < n; i++) own += i * 0.5;
            return own;
        }
        int main(void) {
            char *memory = mmap(0, PAGE + STACK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            stack_t stack = { .ss_sp = memory + PAGE, .ss_size = STACK };
            struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART };
            struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
            if (mprotect(memory + PAGE, STACK, PROT_READ | PROT_WRITE) || sigaltstack(&stack, 0)) return 1;
            if (sigaction(SIGALRM, &action, 0) || setitimer(ITIMER_REAL, &often, 0)) return 2;
            while (handled < 50) sum += work(1000);
            puts("handled");
            return 0;
        }
    "#;
    let program = c(X86_64, source, &[]);
    let ways: [&[&str]; 3] = [
        &["--whole-program"],
        &["--engine", "native", "--region", "work"],
        &["--engine", "native", "--region", "handler"],
    ];
    for way in ways {
        let output = lineup_record(program.folder.path(), &[way, &["--", "./program"]].concat());
        assert_eq!(said(&output).lines().next(), Some("handled"), "{way:?}");
    }
}

/// Signals that C programs cannot name are the defaults before `lineup` starts; then the program's own.
const SIGNALS: &str = r#"
    #include <stdio.h>
    #include <string.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    volatile int steps;
    __attribute__((noinline)) void step(int x) { steps += x; }
    int main(int count, char **words) {
        if (count > 2 && !strcmp(words[1], "run")) {
            unsigned long defaults[4] = { 0, 0, 0, 0 };
            for (int signal = 32; signal <= 33; signal++) syscall(SYS_rt_sigaction, signal, defaults, 0, 8);
            execvp(words[2], words + 2);
            return 1;
        }
        step(count);
        char line[400];
        for (FILE *status = fopen("/proc/self/status", "r"); fgets(line, sizeof line, status); )
            if (!strncmp(line, "Sig", 3)) fputs(line, stdout);
    }
"#;

#[test]
fn a_started_program_has_the_signals_that_it_has_alone() {
    let program = c(X86_64, SIGNALS, &[]);
    let run = |words: &[&str]| {
        let mut command = Command::new(program.folder.path().join("program"));
        command.arg("run").args(words).current_dir(program.folder.path());
        let output = command.output().expect("running the program");
        let said = said(&output) + &String::from_utf8_lossy(&output.stderr);
        said.lines().filter(|line| line.starts_with("SigB") || line.starts_with("SigI")).collect::<String>()
    };
    let alone = run(&["./program"]);
    assert!(alone.contains("SigIgn:\t0000000000000000"), "{alone}");
    let lineup = env!("CARGO_BIN_EXE_lineup");
    let native = ["record", "--engine", "native", "--region", "step", "--out", "x.rec", "--", "./program"];
    for words in [&native[..], &["time", "--region", "step", "--", "./program"]] {
        assert_eq!(run(&[&[lineup], words].concat()), alone, "{words:?}");
    }
    assert_eq!(run(&[lineup, "measure", "-r", "1", "--show-output", "--", "./program"]), alone);
}
