//! Functions that the loader chooses (IFUNC): a name means the chosen one.

use super::program::{Program, Recorded, X86_64, build, c, lineup_record};
use serde_json::Value;
use std::process::{Command, Output};

/// Functions of the program's own, with their choosers, and of the C library.
const PROGRAM: &str = r#"
    #define _GNU_SOURCE
    #include <string.h>
    #include <unistd.h>
    static volatile long sink;
    __attribute__((noinline)) static long fast(long x) { sink += x; return x * 3 + 1; }
    __attribute__((noinline)) static long slow(long x) { sink -= x; return x * 3 + 1; }
    static int is_slow;
    static void *chooses_work(void) { return is_slow ? slow : fast; }
    long work(long x) __attribute__((ifunc("chooses_work")));
    static char one[4096], other[4096], line[] = "sum 0000000000000000\n";
    int main(void) {
        long sum = 0;
        for (int i = 0; i < 1000; i++) sum += work(i);
        for (volatile int i = 0; i < 500; i++) memcpy(one, other, i * 7 % 4096);
        for (volatile int i = 0; i < 50; i++) sum += (char *)mempcpy(one, other, i) - one;
        for (volatile int i = 0; i < 30; i++) sum += memset(one, 0, i) == one;
        // printf of glibc 2.41 calls memcpy.
        for (int i = 19; i > 3; i--, sum >>= 4) line[i] = "0123456789abcdef"[sum & 15];
        return write(1, line, 21) != 21;
    }
"#;
const SUM: u64 = 3 * 499_500 + 1000 + 1225 + 30;

/// A library whose function needs values that the loader writes first, and a program that loads it twice.
const LIBRARY: &str = r#"
    static volatile long sink;
    __attribute__((noinline)) static long fast(long x) { sink += x; return x * 3 + 1; }
    __attribute__((noinline)) static long slow(long x) { sink -= x; return x * 3 + 1; }
    static int is_fast = 1;
    static int *const place = &is_fast;
    static void *chooses(void) { return *place ? fast : slow; }
    long chosen(long x) __attribute__((ifunc("chooses")));
    long plug(long x) { return chosen(x) + chosen(x + 1); }
"#;
const LOADS: &str = r#"
    #include <dlfcn.h>
    #include <stdio.h>
    #include <stdlib.h>
    __attribute__((noinline)) long outer(long (*call)(long), long x) { return call(x) + 1; }
    int main(void) {
        long sum = 0;
        for (int round = 0; round < 2; round++) {
            void *library = dlopen("./plug.so", getenv("AT_ONCE") ? RTLD_NOW : RTLD_LAZY);
            long (*plug)(long) = (long (*)(long))dlsym(library, "plug");
            for (int i = 0; i < 100; i++) sum += outer(plug, i);
            dlclose(library);
        }
        printf("sum %lx\n", sum);
    }
"#;

fn loads() -> Program {
    let program = c(X86_64, LOADS, &["-ldl"]);
    build(X86_64, program.folder.path(), "plug.c", LIBRARY, "plug.so", &["-shared", "-fPIC"]);
    program
}

fn native(program: &Program, regions: &[&str], options: &[&str]) -> Recorded {
    let regions: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
    program.record(&[&["--engine", "native"], &regions[..], options].concat())
}

fn time(program: &Program, region: &str) -> Output {
    lineup_record(program.folder.path(), &["--region", "main", "--", "./nothing"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.args(["time", "--json", "--region", region, "--", "./program"]);
    command.current_dir(program.folder.path()).output().expect("running lineup")
}

fn timed_calls(output: &Output) -> u64 {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["regions"][0]["calls"].as_u64().expect("calls")
}

#[test]
fn calls_of_what_the_loader_chose_in_a_program_are_recorded_and_timed() {
    let program = c(X86_64, PROGRAM, &["-fno-builtin"]);
    let recorded = native(&program, &["work"], &[]);
    assert_eq!((recorded.calls().len(), recorded.value("sum")), (1000, SUM), "{}", recorded.said);
    assert!(recorded.said.contains("work (chosen: fast of program)"), "{}", recorded.said);
    let output = time(&program, "work");
    assert_eq!(timed_calls(&output), 1000);
}

#[test]
fn calls_of_the_c_librarys_functions_for_memory_are_recorded() {
    let program = c(X86_64, PROGRAM, &["-fno-builtin"]);
    // The engine's own calls of them are no calls of the program's; mempcpy jumps behind the first instruction of
    // memcpy.
    let recorded = native(&program, &["memcpy", "memset"], &["--calls", "10000"]);
    assert_eq!(recorded.value("sum"), SUM);
    assert!(recorded.said.contains("memcpy: 500 calls recorded of 500 made"), "{}", recorded.said);
    assert!(recorded.said.contains("memset: 30 calls recorded of 30 made"), "{}", recorded.said);
    assert!(!recorded.said.contains("signal handler"), "{}", recorded.said);
    assert!(recorded.said.contains("memcpy (chosen: "), "{}", recorded.said);
    // The processor decides whether their returns have room.
    let output = time(&program, "memcpy");
    match output.status.success() {
        true => assert_eq!(timed_calls(&output), 500),
        false => assert!(
            String::from_utf8_lossy(&output.stderr).contains("cannot watch memcpy: one of its returns")
        ),
    }
}

#[test]
fn what_a_library_that_is_loaded_late_chooses_is_recorded_and_timed() {
    let program = loads();
    // Bound at the first call, natively and inside a recorded call, and when it is loaded.
    for (regions, options) in
        [(&["chosen"][..], &[][..]), (&["chosen", "outer"], &[]), (&["chosen"], &["--env", "AT_ONCE=1"])]
    {
        let recorded = native(&program, regions, options);
        let calls = recorded.calls().iter().filter(|call| call.region.0 == 0).count();
        assert_eq!((calls, recorded.value("sum")), (400, 2 * (6 * 4950 + 600)), "{}", recorded.said);
        assert!(recorded.said.contains("chosen (chosen: fast of plug.so)"), "{}", recorded.said);
    }
    assert_eq!(timed_calls(&time(&program, "chosen")), 400);
}

#[test]
fn what_cannot_mean_one_function_is_refused_and_the_emulator_says_what_it_records() {
    let program = c(X86_64, PROGRAM, &["-fno-builtin"]);
    let said = |regions: &[&str]| {
        let output = lineup_record(
            program.folder.path(),
            &[&["--out", "c.rec", "--engine", "native"], regions, &["--", "./program"]].concat(),
        );
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let both = said(&["--region", "fast", "--region", "work"]);
    assert!(both.contains("the loader chose the code for it that is another watched function's"), "{both}");
    // The chooser is requested by its own name; the loader has called it before the program begins.
    let chooses = said(&["--region", "chooses_work"]);
    assert!(chooses.contains("without a call of chooses_work"), "{chooses}");
    let emulated = program.record(&["--engine", "qemu", "--region", "work"]);
    assert_eq!(emulated.calls().len(), 1);
    assert!(emulated.said.contains("under the emulator its name means the function that chooses"));
}
