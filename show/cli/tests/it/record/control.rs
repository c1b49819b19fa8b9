//! Control flow other than a plain call and return.

use super::program::{AArch64, I386, MACHINES, Machine, Recorded, X86_64, c, cpp, lineup_record};
use lineup_model::access::Call;
use lineup_model::access::CallEnd::{Abandoned, ProcessEnded, Returned, ThreadEnded};

/// Compiles and records `region` statically and dynamically linked, and checks each.
fn each(source: &str, is_cpp: bool, options: &[&str], check: impl Fn(Machine, &Recorded)) {
    // The tests do not install Debian's C++ compiler for 32-bit Arm.
    for machine in
        MACHINES.into_iter().filter(|machine| !is_cpp || matches!(machine, X86_64 | I386 | AArch64))
    {
        for link in ["-static", "-pie"] {
            let all = [options, &[link, "-fPIE"]].concat();
            let program = if is_cpp { cpp(machine, source, &all) } else { c(machine, source, &all) };
            for record in [&["--region", "region"][..], &["--region", "region", "--one-pass"]] {
                let recorded = program.record(record);
                eprintln!("{machine:?} {link} {record:?}: {:?}", recorded.ends());
                check(machine, &recorded);
            }
        }
    }
}

const RECURSION: &str = r#"
#include <stdio.h>
volatile unsigned cell[8];
__attribute__((noinline, noclone)) unsigned region(unsigned n) {
    cell[n] = n;
    unsigned below = n ? region(n - 1) + 1 : 0;
    return below + cell[7];
}
int main(void) { region(3); region(1); printf("cell %p\n", (void *)cell); return 0; }
"#;

#[test]
fn recursion_makes_a_call_of_each_depth_and_the_outer_hold_the_inner() {
    each(RECURSION, false, &["-fno-optimize-sibling-calls", "-fno-inline"], |machine, recorded| {
        let depths: Vec<u32> = recorded.calls().iter().map(|call| call.depth).collect();
        assert_eq!(depths, [0, 1, 2, 3, 0, 1], "{machine:?}");
        assert_eq!(recorded.ends(), [Returned; 6], "{machine:?}");
        let cell = recorded.value("cell");
        let counts: Vec<usize> = (0..6).map(|call| recorded.touched(call, cell, 32).len()).collect();
        assert_eq!(counts, [8, 6, 4, 2, 4, 2], "{machine:?}");
    });
}

const TAIL: &str = r#"
#include <stdio.h>
volatile unsigned cell[8];
__attribute__((noinline, noclone)) unsigned last(unsigned n) { cell[1] = n; return cell[2]; }
__attribute__((noinline, noclone)) unsigned region(unsigned n) { cell[0] = n; return last(n + 1); }
__attribute__((noinline, noclone)) unsigned into(unsigned n) { cell[5] = n; return region(n + 1); }
int main(void) {
    unsigned sum = 0;
    for (unsigned n = 0; n < 3; n++) { sum += into(n); cell[6] = sum; sum += region(n); cell[7] = sum; }
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

#[test]
fn tail_calls_into_and_out_of_the_region_end_where_the_last_function_returns() {
    each(TAIL, false, &[], |machine, recorded| {
        assert_eq!(recorded.ends(), [Returned; 6], "{machine:?}");
        let cell = recorded.value("cell");
        for call in 0..6 {
            let touched = recorded.touched(call, cell, 32);
            assert_eq!(touched, [(0, 4, 'S'), (4, 4, 'S'), (8, 4, 'L')], "{machine:?} call {call}");
        }
    });
}

const LONGJMP: &str = r#"
#include <setjmp.h>
#include <stdio.h>
volatile unsigned cell[8];
static jmp_buf out, within;
__attribute__((noinline, noclone)) void deepest(int n) { cell[1] = n; if (n % 3 == 1) longjmp(out, 1); if (n % 3 == 2) longjmp(within, 1); cell[2] = n; }
__attribute__((noinline, noclone)) void deeper(int n) { deepest(n); cell[3] = n; }
__attribute__((noinline, noclone)) void region(int n) {
    cell[0] = n;
    if (!setjmp(within)) deeper(n);
    cell[4] = n;
}
__attribute__((noinline, noclone)) void nested(int n) { volatile char room[300]; room[0] = n; region(n); cell[5] = room[0]; }
int main(void) {
    for (volatile int n = 0; n < 9; n++) {
        if (!setjmp(out)) { if (n & 1) nested(n); else region(n); }
        cell[6] = n;
    }
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

#[test]
fn longjmp_out_abandons_the_call_and_longjmp_within_does_not() {
    each(LONGJMP, false, &[], |machine, recorded| {
        let ends: Vec<_> = (0..9).map(|n| if n % 3 == 1 { Abandoned } else { Returned }).collect();
        assert_eq!(recorded.ends(), ends, "{machine:?}");
        let cell = recorded.value("cell");
        for call in 0..9 {
            let places: Vec<u64> = recorded.touched(call, cell, 32).iter().map(|(at, _, _)| at / 4).collect();
            let expected: &[u64] = [&[0, 1, 2, 3, 4][..], &[0, 1], &[0, 1, 4]][call % 3];
            assert_eq!(places, expected, "{machine:?} call {call}");
        }
    });
}

const EXCEPTIONS: &str = r#"
#include <cstdio>
volatile unsigned cell[8];
struct Guard { unsigned at; ~Guard() { cell[at] = at; } };
__attribute__((noinline, noclone)) void deepest(int n) { cell[1] = n; if (n % 3) throw n; cell[2] = n; }
__attribute__((noinline, noclone)) void deeper(int n) { Guard guard{3}; deepest(n); }
__attribute__((noinline, noclone)) void region(int n) {
    cell[0] = n;
    try { deeper(n); } catch (int caught) { cell[4] = caught; if (caught % 3 == 1) throw; }
    cell[5] = n;
}
int main() {
    // The first throw of a static program sorts its unwind tables, in more accesses than are kept of one call.
    try { throw 0; } catch (int caught) { cell[6] = caught; }
    for (int n = 0; n < 9; n++) {
        try { region(n); } catch (int caught) { cell[6] = caught; }
        cell[7] = n;
    }
    std::printf("cell %p\n", (void *)cell);
}
"#;

#[test]
fn an_exception_through_the_region_abandons_it_and_one_caught_inside_does_not() {
    each(EXCEPTIONS, true, &[], |machine, recorded| {
        let ends: Vec<_> = (0..9).map(|n| if n % 3 == 1 { Abandoned } else { Returned }).collect();
        assert_eq!(recorded.ends(), ends, "{machine:?}");
        let cell = recorded.value("cell");
        for call in 0..9 {
            let places: Vec<u64> = recorded.touched(call, cell, 32).iter().map(|(at, _, _)| at / 4).collect();
            let expected: &[u64] = [&[0, 1, 2, 3, 5][..], &[0, 1, 3, 4], &[0, 1, 3, 4, 5]][call % 3];
            assert_eq!(places, expected, "{machine:?} call {call}");
        }
    });
}

const SIGNALS: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
volatile unsigned cell[8];
__attribute__((noinline, noclone)) void in_handler(void) { cell[7] = cell[6]; }
static void handler(int signal) { (void)signal; in_handler(); }
__attribute__((noinline, noclone)) void region(int n) {
    cell[0] = n;
    if (n & 1) raise(SIGUSR1);
    cell[1] = n;
}
int main(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
#ifdef ALTERNATE
    stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
    sigaltstack(&stack, 0);
    action.sa_flags = SA_ONSTACK;
#endif
    sigaction(SIGUSR1, &action, 0);
    for (int n = 0; n < 6; n++) { region(n); cell[2] = n; }
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

#[test]
fn what_a_signal_handler_touches_is_not_the_calls() {
    for define in ["-DOWN", "-DALTERNATE"] {
        each(SIGNALS, false, &[define], |machine, recorded| {
            assert_eq!(recorded.ends(), [Returned; 6], "{machine:?} {define}");
            let cell = recorded.value("cell");
            for call in 0..6 {
                let touched = recorded.touched(call, cell, 32);
                assert_eq!(touched, [(0, 4, 'S'), (4, 4, 'S')], "{machine:?} {define} call {call}");
            }
        });
    }
}

const ENDINGS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
volatile unsigned cell[8];
static __attribute__((noinline, noclone)) void leave(int n) {
    cell[1] = n;
    if (n == 2) pthread_exit(0);
    if (n == 4) LAST;
}
__attribute__((noinline, noclone)) void region(int n) { cell[0] = n; leave(n); cell[2] = n; }
static void *work(void *unused) { (void)unused; for (int n = 0; n < 3; n++) region(n); return 0; }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
    for (int n = 3; n < 6; n++) region(n);
    return 0;
}
"#;

#[test]
fn a_call_that_ends_its_thread_or_its_process_is_said_to_do_so() {
    for machine in MACHINES {
        for last in ["-DLAST=exit(0)", "-DLAST=_exit(0)"] {
            let program = c(machine, ENDINGS, &["-static", last]);
            for record in [&["--region", "region"][..], &["--region", "region", "--one-pass"]] {
                let ends = program.record(record).ends();
                let expected = [Returned, Returned, ThreadEnded, Returned, ProcessEnded];
                assert_eq!(ends, expected, "{machine:?} {last} {record:?}");
            }
        }
    }
}

#[test]
fn the_ends_of_calls_are_told_in_words() {
    let program = c(X86_64, ENDINGS, &["-DLAST=abort()"]);
    let output = lineup_record(program.folder.path(), &["--region", "region", "--", "./program"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("region: 5 calls recorded of 5 made"), "{said}");
    assert!(
        said.contains("1 ended with their thread inside them") && said.contains("1 ended their process"),
        "{said}"
    );
    assert!(!said.contains("longjmp"), "{said}");
}

const LAZY: &str = r#"
#include <stdio.h>
#include <string.h>
volatile char cell[64];
__attribute__((noinline, noclone)) void region(unsigned long n) { cell[n % 64] = 1; cell[0] = strlen((const char *)cell + n % 8) + 1; }
int main(void) {
    for (unsigned n = 0; n < 32; n++) cell[n] = 'a';
    for (unsigned long n = 0; n < 50; n++) region(n % 2);
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

/// The first call of a function in a library goes through the dynamic linker, which has to find it.
#[test]
fn the_dynamic_linkers_work_is_told_apart_from_the_calls() {
    for machine in MACHINES {
        let options = ["-fno-builtin", "-Wl,-z,lazy", "-Wl,--hash-style=gnu"];
        let program = c(machine, LAZY, &options);
        for record in [&["--region", "region"][..], &["--region", "region", "--one-pass"]] {
            let recorded = program.record(record);
            let binding: Vec<u64> = recorded.calls().iter().map(|call| call.binding_instructions).collect();
            assert!(
                binding[0] > 100 && binding[1..].iter().all(|binding| *binding == 0),
                "{machine:?} {binding:?}"
            );
            // Except for the dynamic linker's work, the first call did the same as every second one.
            let (first, third) = (&recorded.calls()[0], &recorded.calls()[2]);
            assert_eq!(first.instructions, third.instructions, "{machine:?} {record:?}");
            // The word that holds the function's address has another value by then.
            let places = |call: &Call| -> Vec<(u64, u64, u32)> {
                call.accesses.iter().map(|access| (access.pc, access.address, access.size_bytes)).collect()
            };
            assert_eq!(places(first), places(third), "{machine:?} {record:?}");
        }
    }
    let program = c(X86_64, LAZY, &["-fno-builtin", "-Wl,-z,lazy"]);
    let output = lineup_record(program.folder.path(), &["--region", "region", "--", "./program"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("1 call includes lazy binding: "), "{said}");
}
