//! Whole programs: the native engine's counts are the emulator's, on every line of code.

use super::engines::SAME_LIBRARY;
use super::program::{Program, Recorded, X86_64, build, c, cpp};
use std::collections::BTreeMap;
use std::ops::Range;

/// Instructions, loads and stores by file and line of code. Blocks are cut elsewhere by each engine, and never across
/// lines.
pub(crate) fn by_line(recorded: &Recorded, file: &str) -> BTreeMap<u64, [u64; 3]> {
    let images = &recorded.recording.images;
    let mut lines = BTreeMap::new();
    for run in &recorded.recording.profile {
        let Some(image) = images.iter().find(|image| image.contains(run.pc)) else { continue };
        if image.path.ends_with(file) {
            let sums: &mut [u64; 3] = lines.entry(image.to_link(run.pc) / 64).or_default();
            sums.iter_mut().zip([run.instructions, run.loads, run.stores]).for_each(|(sum, own)| *sum += own);
        }
    }
    lines
}

/// As [`by_line`], of code that lies in no file, by its own address.
pub(crate) fn by_address(recorded: &Recorded, range: Range<u64>) -> BTreeMap<u64, [u64; 3]> {
    let mut places = BTreeMap::new();
    for run in recorded.recording.profile.iter().filter(|run| range.contains(&run.pc)) {
        let sums: &mut [u64; 3] = places.entry(run.pc / 64).or_default();
        sums.iter_mut().zip([run.instructions, run.loads, run.stores]).for_each(|(sum, own)| *sum += own);
    }
    places
}

pub(crate) fn whole(program: &Program, engine: &str, more: &[&str]) -> Recorded {
    let options = ["--whole-program", "--engine", engine, "--env", SAME_LIBRARY];
    let caches = ["--cache", "l1i=4K,2,64", "--cache", "l1d=4K,2,64", "--cache", "l2=64K,8,64"];
    program.record(&[&options[..], &caches, more].concat())
}

/// The same lines of the program's own code, with the same counts.
pub(crate) fn assert_same_counts(program: &Program) -> (Recorded, Recorded) {
    let (native, emulated) = (whole(program, "native", &[]), whole(program, "qemu", &[]));
    let (one, other) = (by_line(&native, "/program"), by_line(&emulated, "/program"));
    assert!(one.len() > 5, "{one:?}");
    assert_eq!(one, other);
    (native, emulated)
}

/// Code that uses integers only, and no string instructions that repeat: the emulator counts a vector's access as several,
/// and each element of such an instruction.
pub(crate) const BY_INTEGERS: &[&str] =
    &["-mgeneral-regs-only", "-fno-tree-vectorize", "-mstringop-strategy=loop"];

/// Lists, switches, recursion, locked instructions, constructors and handlers at exit.
pub(crate) const PROGRAM: &str = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        struct node { struct node *next; int value; };
        static struct node *head;
        static long counted[8];
        __attribute__((noinline)) static long sum(void) { long s = 0; for (struct node *n = head; n; n = n->next) s += n->value; return s; }
        __attribute__((noinline)) static long chosen(long x) {
            switch (x & 7) {
                case 0: return x + 1; case 1: return x * 3; case 2: return x - 7; case 3: return x ^ 5;
                case 4: return x << 2; case 5: return x >> 1; case 6: return ~x; default: return x;
            }
        }
        __attribute__((noinline)) static long deep(long n) { return n < 2 ? n : deep(n - 1) + deep(n - 2); }
        static int compare(const void *one, const void *other) { counted[0]++; return *(const int *)one - *(const int *)other; }
        static void at_exit(void) { counted[7] = sum(); }
        __attribute__((constructor)) static void early(void) { counted[6] = deep(9); }
        int main(void) {
            static int numbers[500];
            char copy[300], *grown = 0;
            atexit(at_exit);
            for (int i = 0; i < 2000; i++) { struct node *n = malloc(sizeof *n); n->value = i; n->next = head; head = n; }
            for (int i = 0; i < 500; i++) numbers[i] = (int)(i * 7919L % 503);
            qsort(numbers, 500, sizeof *numbers, compare);
            long total = deep(17);
            for (long i = 0; i < 4000; i++) total += chosen(i) + (i % 50 == 0 ? sum() : 0);
            for (int i = 0; i < 100; i++) {
                for (long at = 0; at < i * 3 % 300; at++) copy[at] = ((volatile char *)numbers)[at];
                grown = realloc(grown, 100 + 10 * i);
                grown[i] = copy[i % 300];
                asm volatile("lock incq %0\n\tpushq %0\n\tpopq %0" : "+m"(counted[3]) : : "memory");
                asm volatile("xchgq %0, %1\n\tcmpxchgq %0, %1" : "+r"(total), "+m"(counted[4]) : : "rax", "memory");
            }
            printf("total %lx\n", total + numbers[7] + grown[50]);
            return 0;
        }
    "#;

#[test]
fn both_engines_count_the_same_on_every_line_of_a_program() {
    let program = c(X86_64, PROGRAM, BY_INTEGERS);
    let (native, emulated) = assert_same_counts(&program);
    assert_eq!(native.value("total"), emulated.value("total"));
    let misses = |recorded: &Recorded| -> u64 {
        recorded.recording.profile.iter().map(|run| run.load_misses.l1 + run.store_misses.l1).sum()
    };
    assert!(misses(&native) > 1000);
    assert!(native.said.contains("by native engine"), "{}", native.said);
    let lines = |recorded: &Recorded| by_line(recorded, "/libc.so.6");
    let (one, other) = (lines(&native), lines(&emulated));
    let of = |lines: &BTreeMap<u64, [u64; 3]>| lines.values().map(|counts| counts[0]).sum::<u64>();
    // The engine starts only after the C library's own beginning.
    assert!(of(&one) > 10_000 && of(&one) <= of(&other), "{} {}", of(&one), of(&other));
}

/// Misses by line of code: of fetches, loads and stores, each in both levels.
pub(crate) fn misses_by_line(recorded: &Recorded) -> BTreeMap<u64, [u64; 6]> {
    let images = &recorded.recording.images;
    let mut lines = BTreeMap::new();
    for run in &recorded.recording.profile {
        let Some(image) = images.iter().find(|image| image.contains(run.pc)) else { continue };
        if image.path.ends_with("/program") {
            let sums: &mut [u64; 6] = lines.entry(image.to_link(run.pc) / 64).or_default();
            let own = [run.fetch_misses, run.load_misses, run.store_misses];
            let own = own.iter().flat_map(|misses| [misses.l1, misses.l2]);
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
    }
    lines
}

/// Misses some caches in many ways. When linked so, it lies at its linked address, and so does its data.
pub(crate) const MISSES: &str = r#"
        static volatile unsigned char bytes[1 << 17] __attribute__((aligned(4096)));
        __attribute__((noinline, aligned(4096))) static unsigned long work(unsigned long x, unsigned long rounds) {
            for (unsigned long i = 0; i < sizeof bytes; i += 64) x += bytes[i];
            while (rounds--) {
                x = x * 6364136223846793005UL + 1442695040888963407UL;
                volatile unsigned char *at = bytes + (x >> 33) % (sizeof bytes - 256);
                switch (x >> 60) {
                    case 0: x += *(volatile unsigned long *)at; break;
                    case 1: *(volatile unsigned long *)at = x; break;
                    case 2: *(volatile unsigned *)(at + 3) += x; break;
                    case 3: x += at[0] + at[60] + at[63] + at[64] + at[120]; break;
                    case 4: at[64] = x; at[0] = x; at[130] = x; break;
                    case 5: *(volatile unsigned short *)(bytes + 63) = x; x += bytes[4096]; break;
                    case 6: { const volatile unsigned char *from = bytes + (x >> 20 & 0xfff); long n = x >> 56 & 0x7f;
                        for (long i = 0; i < n; i++) at[i] = from[i];
                        break; }
                    default: x += at[x & 255];
                }
            }
            return x;
        }
        int main(void) { return work(12345, 30000) == 7; }
    "#;

#[test]
fn both_engines_find_the_same_misses_whatever_the_caches_are() {
    let options = &[BY_INTEGERS, &["-no-pie", "-fno-pie", "-O2"]].concat();
    let program = c(X86_64, MISSES, options);
    for caches in [
        ["l1i=1K,2,64", "l1d=4K,2,64", "l2=64K,8,64"],
        ["l1i=512,8,64", "l1d=512,8,64", "l2=16K,4,64"],
        ["l1i=2K,4,128", "l1d=8K,4,128", "l2=64K,8,128"],
        ["l1i=512,2,32", "l1d=2K,1,32", "l2=16K,4,32"],
        ["l1i=64K,1,64", "l1d=128K,4,64", "l2=256K,8,64"],
    ] {
        let named: Vec<&str> = caches.iter().flat_map(|cache| ["--cache", cache]).collect();
        let misses = |engine| {
            let options =
                [&["--whole-program", "--engine", engine, "--env", SAME_LIBRARY], &named[..]].concat();
            let mut lines = misses_by_line(&program.record(&options));
            // Code before and after it runs elsewhere in between.
            lines.retain(|_, misses| misses.iter().sum::<u64>() > 40);
            lines
        };
        let (native, emulated) = (misses("native"), misses("qemu"));
        assert!(!native.is_empty());
        assert!(native.keys().eq(emulated.keys()), "{caches:?}: {native:?} {emulated:?}");
        for ((line, native), emulated) in native.iter().zip(emulated.values()) {
            // The function saves registers on the stack once, which is not at the same place.
            let is_alike = native.iter().zip(emulated).all(|(one, other)| one.abs_diff(*other) <= 3);
            assert!(is_alike, "{caches:?}, line {line}: {native:?} {emulated:?}");
        }
    }
}

/// Starts 160 threads.
pub(crate) const THREADS: &str = r#"
        #include <pthread.h>
        #include <stdio.h>
        static long cells[64];
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        __attribute__((noinline)) static long turns(long n) { volatile long own[16] = {0}; for (long i = 0; i < n; i++) own[i & 15] += i; return own[3]; }
        static void *work(void *argument) {
            long sum = turns(2000 + (long)argument);
            for (int i = 0; i < 20; i++) { pthread_mutex_lock(&lock); cells[(long)argument & 63] += sum; pthread_mutex_unlock(&lock); }
            return (void *)sum;
        }
        int main(void) {
            long total = 0;
            for (int round = 0; round < 40; round++) {
                pthread_t threads[4];
                for (long i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, (void *)(i + round));
                for (int i = 0; i < 4; i++) { void *sum; pthread_join(threads[i], &sum); total += (long)sum; }
            }
            printf("total %lx\n", total + cells[7]);
            return 0;
        }
    "#;

#[test]
fn threads_are_counted_from_their_beginning_to_their_end() {
    // Bound at the start: two threads that call a function for the first time may both look it up, or one.
    let program = c(X86_64, THREADS, &[BY_INTEGERS, &["-Wl,-z,now"]].concat());
    let (native, emulated) = assert_same_counts(&program);
    assert_eq!(native.value("total"), emulated.value("total"));
    assert_eq!(native.recording.summary.as_ref().map(|summary| summary.threads), Some(161));
}

/// The engine's data of an ended thread is reused: four thousand threads need no more memory than a few.
#[test]
fn threads_leave_nothing_behind() {
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        #include <string.h>
        static void *work(void *argument) { volatile long own[8] = {0}; for (long i = 0; i < 50; i++) own[i & 7] += i; return (void *)own[3]; }
        static long mapped(void) {
            long kilobytes = 0;
            char line[256];
            FILE *status = fopen("/proc/self/status", "r");
            while (fgets(line, sizeof line, status)) if (!strncmp(line, "VmSize:", 7)) sscanf(line + 7, "%ld", &kilobytes);
            fclose(status);
            return kilobytes;
        }
        static long threads(int many) { long total = 0; for (int i = 0; i < many; i++) { pthread_t thread; void *sum; pthread_create(&thread, 0, work, 0); pthread_join(thread, &sum); total += (long)sum; } return total; }
        int main(void) {
            long total = threads(100), before = mapped();
            total += threads(4000);
            printf("total %lx\ngrown %lx\n", total, mapped() - before);
            return 0;
        }
    "#;
    let program = c(X86_64, source, &[]);
    let native = whole(&program, "native", &[]);
    // Some 1,300 kilobytes each otherwise.
    assert!(native.value("grown") < 100_000, "{}", native.said);
    assert_eq!(native.recording.summary.as_ref().map(|summary| summary.threads), Some(4101));
}

/// Has signal handlers that return, are interrupted, jump out, change where the program continues, fork, and come
/// often.
pub(crate) const SIGNALS: &str = r#"
        #ifndef TICKS
        #define TICKS 200
        #endif
        #define _GNU_SOURCE
        #include <setjmp.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/mman.h>
        #include <sys/time.h>
        #include <sys/wait.h>
        #include <ucontext.h>
        #include <unistd.h>
        static volatile long counts[8];
        static sigjmp_buf there;
        static char stack[1 << 16];
        __attribute__((noinline)) static void note(int which) { counts[which]++; }
        static void returns(int signal) { note(0); if (counts[0] % 3 == 0) raise(SIGUSR2); }
        static void nested(int signal) { note(1); }
        static void jumps(int signal) { note(2); siglongjmp(there, 1); }
        static void skips(int signal, siginfo_t *info, void *context) {
            note(3);
            // A byte of five that store, and two that divide.
            ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += signal == SIGFPE ? 2 : 3;
        }
        static void forks(int signal) { int status; pid_t made = fork(); if (made == 0) _exit(7); waitpid(made, &status, 0); if (WEXITSTATUS(status) == 7) note(4); }
        static void ticks(int signal) { note(5); }
        __attribute__((noinline)) static long work(long n) { long x = n; for (int i = 0; i < 300; i++) { x ^= x << 13; x ^= (unsigned long)x >> 7; x ^= x << 17; } return x; }
        int main(void) {
            stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
            sigaltstack(&alternate, 0);
            struct sigaction action = {.sa_handler = returns, .sa_flags = SA_ONSTACK};
            sigaction(SIGUSR1, &action, 0);
            action.sa_handler = nested; sigaction(SIGUSR2, &action, 0);
            action.sa_handler = jumps; sigaction(SIGSEGV, &action, 0);
            action.sa_handler = forks; action.sa_flags = 0; sigaction(SIGALRM, &action, 0);
            action.sa_sigaction = skips; action.sa_flags = SA_SIGINFO; sigaction(SIGFPE, &action, 0); sigaction(SIGBUS, &action, 0);
            action.sa_handler = ticks; action.sa_flags = SA_RESTART; sigaction(SIGPROF, &action, 0);
            long total = 0;
            for (int i = 0; i < 90; i++) { raise(SIGUSR1); total += work(i); }
            for (int i = 0; i < 30; i++) { if (sigsetjmp(there, 1) == 0) *(volatile int *)8 = i; total += work(i); }
            for (long i = 0; i < 30; i++) { long high = 0, low = i; asm volatile("xor %%ecx, %%ecx\n\tdiv %%ecx" : "+a"(low), "+d"(high) : : "rcx", "cc"); total += work(i) + low; }
            for (int i = 0; i < 3; i++) { raise(SIGALRM); total += work(i); }
            struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
            setitimer(ITIMER_PROF, &often, 0);
            while (counts[5] < TICKS) total += work(1) & 0;
            setitimer(ITIMER_PROF, &never, 0);
            printf("total %lx\nreturned %lx\nnested %lx\njumped %lx\nskipped %lx\nforked %lx\n", total, counts[0], counts[1], counts[2], counts[3], counts[4]);
            return 0;
        }
    "#;

/// Handlers run in the copies of the code as well: those that return, that are left by a jump, that change where the
/// program continues, that are interrupted themselves, and that fork.
#[test]
fn signal_handlers_are_counted_whichever_way_they_end() {
    let program = c(X86_64, SIGNALS, &[]);
    let native = whole(&program, "native", &[]);
    let counts = ["returned", "nested", "jumped", "skipped", "forked"].map(|name| native.value(name));
    assert_eq!(counts, [90, 30, 30, 30, 3], "{}", native.said);
    let alone =
        std::process::Command::new(program.folder.path().join("program")).output().expect("running it");
    let alone = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(native.said.starts_with(&alone), "{alone}{}", native.said);
    // All execution was counted, including each handler's.
    let note = native.recording.profile.iter().map(|run| run.instructions).sum::<u64>();
    assert!(note > 90 * 300, "{note}");
    assert!(!native.said.contains("ended there"), "{}", native.said);
}

/// The same hard programs as with regions.
#[test]
fn programs_that_are_hard_to_follow_do_the_same_when_all_of_them_is_counted() {
    let program = cpp(X86_64, include_str!("odd.cpp"), &["-rdynamic"]);
    let native = whole(&program, "native", &[]);
    let alone = std::process::Command::new(program.folder.path().join("program"))
        .current_dir(program.folder.path())
        .output()
        .expect("running it");
    let alone = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(native.said.starts_with(&alone), "{alone}{}", native.said);
}

#[test]
fn signals_threads_forks_libraries_exceptions_and_jumps_at_once_are_counted() {
    let program = cpp(X86_64, include_str!("torture.cpp"), &["-ldl"]);
    let library = "static long t[100];\n\
                   long plug(long x) { for (int i = 0; i < 50; i++) t[(x + i) % 100] += i * x; return t[x % 100]; }\n";
    build(X86_64, program.folder.path(), "plug.c", library, "plug.so", &["-shared", "-fPIC"]);
    let seconds = std::env::var("LINEUP_ENGINE_TORTURE_SECONDS").unwrap_or_else(|_| "2".into());
    let native = whole(&program, "native", &["--env", &format!("TORTURE_SECONDS={seconds}")]);
    assert_eq!(["bad", "ticked", "faulted"].map(|name| native.value(name)), [0, 1, 1], "{}", native.said);
}
