//! Statically linked programs: the engine is injected, and records the same as in others.

use super::engines::assert_engines_agree;
use super::program::{Program, X86_64, build, c, cpp, lineup_record};
use super::whole::{by_address, whole};
use std::process::Command;

/// Thread-local variables with initial values, one of them an address; strings, numbers, memory, recursion.
const PLAIN: &str = r#"
    #include <errno.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    static int table[1000];
    static __thread long counted = 0x100;
    static __thread int *own = table + 3;
    #ifdef __GLIBC__
    #define COPY strdup
    #define FREE free
    #else // The other one gives out memory at random places.
    static char copied[64];
    #define COPY(text) strcpy(copied, text)
    #define FREE(copy)
    #endif
    extern char __start_own[], __stop_own[];
    #define OWN __attribute__((noinline, section("own")))
    OWN int leaf(int x) { table[x % 1000] += x; counted++; return own[x % 7]; }
    OWN int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
    OWN int hot(int x) {
        char text[64] __attribute__((aligned(64)));
        int sum = 0;
        for (int i = 0; i < 10; i++) sum += leaf(x + i);
        snprintf(text, sizeof text, "%d %s %d", sum, "some text", x / 3);
        char *copy = COPY(text);
        memset(text, x, sizeof text);
        sum += strlen(copy) + fib(x % 7) + text[x % 64];
        FREE(copy);
        return sum;
    }
    int main(void) {
        long total = 0;
        FREE(COPY("first"));
        for (int i = 0; i < 30; i++) total += hot(i);
        errno = 0;
        printf("total %lx\ncounted %lx\nerrno %x\n", total, counted, errno);
        printf("from %lx\nto %lx\n", (long)__start_own, (long)__stop_own);
        return 0;
    }
"#;

/// The program's output without the engine.
fn alone(program: &Program) -> String {
    let path = program.folder.path().join("program");
    let output = Command::new(path).output().expect("running it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Compiles C with another C library.
fn musl(source: &str) -> Program {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::write(folder.path().join("main.c"), source).expect("writing a source file");
    let made = Command::new("musl-gcc")
        .current_dir(folder.path())
        .args(["-g", "-O2", "-static", "-pthread", "-o", "program", "main.c"])
        .output()
        .expect("running musl-gcc; install it: apt install musl-tools");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Program { folder }
}

#[test]
fn both_engines_record_the_same_calls_of_static_programs() {
    for program in [c(X86_64, PLAIN, &["-static"]), c(X86_64, PLAIN, &["-static-pie"]), musl(PLAIN)] {
        assert_engines_agree(&program, &["--region", "hot", "--region", "fib"]);
    }
}

#[test]
fn both_engines_count_the_same_on_every_line_of_static_programs() {
    for program in [c(X86_64, PLAIN, &["-static", "-no-pie"]), musl(PLAIN)] {
        let (native, emulated) = (whole(&program, "native", &[]), whole(&program, "qemu", &[]));
        let own = native.value("from")..native.value("to");
        let (one, other) = (by_address(&native, own.clone()), by_address(&emulated, own));
        assert!(one.len() > 4, "{one:?}");
        assert_eq!(one, other);
        assert!(native.said.starts_with(&alone(&program)), "{}", native.said);
    }
}

#[test]
fn a_program_without_thread_local_variables_gets_a_part_for_them() {
    let source = r#"
        #include <unistd.h>
        static long table[100];
        __attribute__((noinline)) long hot(long x) { table[x % 100] += x; return table[x % 7]; }
        int main(void) {
            long total = 0;
            for (long i = 0; i < 50; i++) total += hot(i);
            write(1, "done\n", 5);
            return total != 0xc4;
        }
    "#;
    let program = musl(source);
    let bytes = std::fs::read(program.folder.path().join("program")).expect("the program");
    let headers = bytes[64..].chunks(56).take(usize::from(bytes[56]));
    assert!(headers.map(|header| header[0]).all(|kind| kind != 7), "it has a thread-local part");
    let recorded = program.record(&["--engine", "native", "--region", "hot"]);
    assert_eq!(recorded.calls().len(), 50, "{}", recorded.said);
}

/// Threads one after the other and side by side, signals, faults, processes and exceptions: the same output, and all
/// calls.
#[test]
fn static_programs_with_threads_signals_and_forks_do_the_same() {
    const SOURCE: &str = r#"
        #include <pthread.h>
        #include <setjmp.h>
        #include <signal.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/time.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static __thread long own = 5;
        static volatile int ticks, faults;
        static sigjmp_buf back;
        static void tick(int signal) { (void)signal; ticks++; }
        static void fault(int signal) { (void)signal; faults++; siglongjmp(back, 1); }
        __attribute__((noinline)) long hot(long x) { own += x; for (volatile int i = 0; i < 20; i++) own += i; return own; }
        static void *run(void *n) { long s = 0; for (int i = 0; i < 10; i++) s += hot((long)n); return (void *)s; }
        static long mapped(void) {
            char line[4096]; long lines = 0; FILE *maps = fopen("/proc/self/maps", "r");
            while (fgets(line, sizeof line, maps)) lines++;
            fclose(maps);
            return lines;
        }
        int main(void) {
            long total = 0, forked = 0, before = 0;
            for (int round = 0; round < 300; round++) {
                pthread_t threads[3]; void *sum;
                for (long i = 0; i < 3; i++) pthread_create(&threads[i], 0, run, (void *)i);
                for (int i = 0; i < 3; i++) { pthread_join(threads[i], &sum); total += (long)sum; }
                if (round == 150) before = mapped();
            }
            long grown = mapped() - before;
            signal(SIGPROF, tick); signal(SIGSEGV, fault);
            struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
            setitimer(ITIMER_PROF, &often, 0);
            while (ticks < 50) total += hot(0) & 0;
            setitimer(ITIMER_PROF, &never, 0);
            for (int i = 0; i < 50; i++) if (!sigsetjmp(back, 1)) { hot(1); *(volatile int *)8 = 1; }
            for (int i = 0; i < 3; i++) {
                int status; pid_t child = fork();
                if (child == 0) { hot(1); _exit(7); }
                waitpid(child, &status, 0);
                forked += WEXITSTATUS(status);
            }
            printf("total %lx\nfaults %x\nforked %lx\ngrown %x\n", total, faults, forked, grown > 40);
            return 0;
        }
    "#;
    for program in [c(X86_64, SOURCE, &["-static"]), musl(SOURCE)] {
        let alone = alone(&program);
        let recorded = program.record(&["--engine", "native", "--region", "hot", "--calls", "200"]);
        assert!(recorded.said.starts_with(&alone), "{alone}{}", recorded.said);
        assert_eq!(recorded.calls().len(), 200, "{}", recorded.said);
        let in_forks = "3 processes were forked off; calls of these functions there, not recorded: 3";
        assert!(recorded.said.contains(in_forks), "{}", recorded.said);
        let counted = program.record(&["--engine", "native", "--whole-program"]);
        assert!(counted.said.starts_with(&alone), "{alone}{}", counted.said);
        let times = Command::new(env!("CARGO_BIN_EXE_lineup"))
            .current_dir(program.folder.path())
            .args(["time", "--region", "hot", "--", "./program"])
            .output()
            .expect("running lineup");
        let said = String::from_utf8_lossy(&times.stdout).into_owned();
        assert!(times.status.success() && said.starts_with(&alone), "{alone}{said}");
        // Each of 900 threads got a table.
        assert!(!said.contains("too many at a time"), "{said}");
    }
}

#[test]
fn hard_programs_that_are_linked_statically_do_the_same() {
    let program = cpp(X86_64, include_str!("odd.cpp"), &["-static"]);
    let alone = alone(&program);
    let recorded = program.record(&["--engine", "native", "--region", "sorts", "--region", "threads"]);
    assert!(recorded.said.starts_with(&alone), "{alone}{}", recorded.said);
}

#[test]
fn what_the_engine_cannot_be_brought_to_is_refused_before_it_does_anything() {
    let source = r#"
        static long call(long number, long one, long two, long three) {
            long result;
            __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(one), "S"(two), "d"(three) : "rcx", "r11", "memory");
            return result;
        }
        __attribute__((noinline)) int hot(int x) { volatile int y = x * 3; return y; }
        void _start(void) { hot(1); call(1, 1, (long)"said\n", 5); call(60, 0, 0, 0); }
    "#;
    let program = c(X86_64, source, &["-nostdlib", "-static"]);
    let folder = program.folder.path();
    let refused = |more: &[&str], why: &str| {
        let output = lineup_record(folder, &[&["--region", "hot"], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains(why)), (Some(2), true), "{said}");
        assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    };
    refused(
        &["--engine", "native", "--", "./program"],
        "makes system call 1 before its first thread is set up",
    );
    let ignores = "trap '' SEGV; exec \"$0\" record --engine native --region hot -- ./program";
    let output = Command::new("sh")
        .current_dir(folder)
        .args(["-c", ignores, env!("CARGO_BIN_EXE_lineup")])
        .output()
        .expect("running a shell");
    assert!(String::from_utf8_lossy(&output.stderr).contains("it ignores SIGSEGV"), "{output:?}");
    std::fs::write(folder.join("start.sh"), "#!/bin/sh\n./program\n").expect("a script");
    let script = ["--engine", "native", "--program", "./program", "--", "/bin/sh", "start.sh"];
    refused(&script, "is started by another program");
    let go = b"\xff Go buildinf:";
    let plain = std::fs::read(folder.join("program")).expect("the program");
    std::fs::write(folder.join("program"), [&plain, &go[..]].concat()).expect("a Go program");
    refused(&["--engine", "native", "--", "./program"], "is written in Go");
    // It names a loader, and needs no library.
    let bare = "int hot(int x) { return x; } void _start(void) { for (;;) hot(1); }";
    build(X86_64, folder, "bare.c", bare, "bare", &["-nostdlib", "-pie", "-fPIE"]);
    let bytes = std::fs::read(folder.join("bare")).expect("the program");
    std::fs::write(folder.join("bare"), [&bytes, &go[..]].concat()).expect("a Go program");
    refused(&["--engine", "native", "--", "./bare"], "is written in Go without cgo");
    // The emulator runs the first program only once.
    lineup_fixtures::require_plugins("qemu-x86_64");
    std::fs::write(folder.join("program"), &plain).expect("the program");
    let output = lineup_record(folder, &["--region", "hot", "--", "./program"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.starts_with("said\n") && said.matches("said").count() == 1, "{said}");
    assert!(said.contains("recorded under the emulator: the program is linked statically"), "{said}");
}
