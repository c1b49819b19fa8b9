//! `lineup time --intervene`: every call is counted once, with any intervention before it, and the program notices
//! nothing.

use super::program::{Program, X86_64, c, cpp, lineup_record};
use super::times::{WAYS, alone, counts, time, timed_with};
use serde_json::Value;

const ARMS: [&str; 4] = ["none", "flush_code", "flush_data", "flush_both"];
const ALL: &str = "flush_code,flush_data,flush_both";

/// Sampled calls of a region, and those of them that have a time, by arm.
fn drawn(report: &Value, number: usize) -> (u64, Vec<(String, u64)>) {
    let drawn = &report["regions"][number]["interventions"];
    let arms = drawn["arms"].as_array().expect("arms").iter();
    let arm = |arm: &Value| {
        (arm["arm"].as_str().expect("a name").to_owned(), arm["calls"].as_u64().expect("calls"))
    };
    (drawn["drawn"].as_u64().expect("a count"), arms.map(arm).collect())
}

#[test]
fn all_arms_are_drawn_and_every_call_is_counted_once() {
    let program = cpp(X86_64, WAYS, &[]);
    let regions = ["leaf", "pick", "busy", "fib", "throws", "jumps", "deep"];
    let options = ["--intervene", ALL, "--intervene-every", "40"];
    let (report, printed) = timed_with(&program, &regions, &options);
    assert!(printed.contains(&alone(&program)), "{printed}");
    assert_eq!(report["interventions"]["every"], 40, "{report}");
    // As in the test of the same program without interventions: calls that return, those that are left, inner calls.
    let made = [
        (24_000, 0, 0),
        (20_000, 0, 0),
        (2600, 0, 0),
        (2, 0, 478),
        (2000, 1000, 0),
        (300, 100, 0),
        (10, 0, 0),
    ];
    for (number, (returning, left, inner)) in made.into_iter().enumerate() {
        let (drawn, arms) = drawn(&report, number);
        let timed: u64 = arms.iter().map(|(_, calls)| calls).sum();
        assert_eq!(arms.iter().map(|(arm, _)| arm.as_str()).collect::<Vec<_>>(), ARMS);
        let [calls, was_left, was_inner, _] = counts(&report, number);
        assert_eq!(
            (calls + timed, was_left, was_inner),
            (returning, left, inner),
            "{}: {arms:?}",
            regions[number]
        );
        assert!(timed <= drawn && drawn <= timed + left, "{}: {drawn} {arms:?}", regions[number]);
        // One in forty: some six hundred, and of throws some of those that are left.
        assert!(number > 1 || (drawn > 300 && arms.iter().all(|(_, calls)| *calls > 30)), "{arms:?}");
        assert!(regions[number] != "throws" || drawn > timed, "{drawn} {arms:?}");
    }
    let text = time(&program, &["leaf"], &["--intervene", "flush_code", "--intervene-every", "30"]).stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains("before the call") && text.contains("flush_code"), "{text}");
    assert!(!text.contains("flush_data") && text.contains("random choices began at --seed"), "{text}");
}

const LOOP: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    static volatile long cell[8];
    __attribute__((noinline)) long step(long x) { cell[x & 7] += x; return cell[3] * 5 + x; }
    int main(int count, char **words) { long sum = 0; for (long i = 0; i < 6000; i++) sum ^= step(i); printf("sum %lx\n", sum); }
"#;

#[test]
fn a_seed_gives_its_lots_again_and_another_gives_others() {
    let program = c(X86_64, LOOP, &[]);
    let lots = |seed: &str| {
        let options = ["--intervene", ALL, "--intervene-every", "10", "--seed", seed];
        let (report, _) = timed_with(&program, &["step"], &options);
        assert_eq!(report["interventions"]["seed"].to_string(), seed);
        let (drawn, arms) = drawn(&report, 0);
        assert_eq!(counts(&report, 0)[0] + drawn, 6000);
        (drawn, arms)
    };
    let first = lots("7");
    assert_eq!(first, lots("7"));
    assert_ne!(first, lots("8"));
}

/// Without a rate the time limits the number: all calls are counted as well, and arms that were not requested are not
/// sampled.
#[test]
fn unless_told_how_often_a_share_of_the_time_is_spent() {
    let source = LOOP.replace("6000", "400000");
    let program = c(X86_64, &source, &[]);
    let (report, _) = timed_with(&program, &["step"], &["--intervene", "none,flush_data"]);
    assert_eq!(report["interventions"]["rest"], 19, "{report}");
    assert!(report["interventions"]["swept_bytes"].as_u64() > Some(0), "{report}");
    let (drawn, arms) = drawn(&report, 0);
    assert_eq!(arms.iter().map(|(arm, _)| arm.as_str()).collect::<Vec<_>>(), ["none", "flush_data"]);
    assert!(drawn > 0 && counts(&report, 0)[0] + drawn == 400_000, "{report}");
}

/// A caller of functions that lie elsewhere, with much code that no call executes.
const CALLS: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    #define NOP64 __asm__ volatile (".skip 64, 0x90")
    #define NOPS NOP64; NOP64; NOP64; NOP64; NOP64; NOP64; NOP64; NOP64
    static volatile long cell[8];
    __attribute__((noinline)) long far_off(long x) { if (cell[7] > 0) { NOPS; NOPS; } cell[x & 3] += x; return x * 5 + 1; }
    __attribute__((noinline)) long outer(long x) { cell[x & 3] += x; return far_off(x) * 3 + cell[2]; }
    int main(int count, char **words) { long sum = 0; for (long i = 0; i < 6000; i++) sum ^= outer(i); printf("sum %lx\n", sum); }
"#;

/// The program does the same, and every call is counted once. The flushed code is the recording's, of this build.
#[test]
fn the_lines_that_recorded_calls_executed_can_be_flushed() {
    let program = c(X86_64, CALLS, &[]);
    let recording =
        ["--region", "outer", "--calls", "50", "--engine", "native", "--out", "calls.rec", "--", "./program"];
    let recorded = lineup_record(program.folder.path(), &recording);
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let options = [
        "--intervene",
        "flush_code",
        "--flush-recorded",
        "calls.rec",
        "--intervene-every",
        "10",
        "--seed",
        "9",
    ];
    let (report, printed) = timed_with(&program, &["outer"], &options);
    assert!(printed.contains(&alone(&program)), "{printed}");
    assert_eq!(report["interventions"]["flushes_recorded"], true, "{report}");
    let (drawn, arms) = drawn(&report, 0);
    assert_eq!(counts(&report, 0)[0] + drawn, 6000);
    assert!(arms.iter().all(|(_, calls)| *calls > 100), "{arms:?}");
    let of_another = time(&program, &["far_off"], &options);
    let said = String::from_utf8_lossy(&of_another.stderr).into_owned();
    assert!(!of_another.status.success() && said.contains("has no calls of far_off"), "{said}");
    let rebuilt = c(X86_64, &CALLS.replace("x * 5 + 1", "x * 7 + 1"), &[]);
    std::fs::copy(program.folder.path().join("calls.rec"), rebuilt.folder.path().join("calls.rec"))
        .expect("copies");
    let of_another = time(&rebuilt, &["outer"], &options);
    let said = String::from_utf8_lossy(&of_another.stderr).into_owned();
    assert!(!of_another.status.success() && said.contains("it was recorded from another"), "{said}");
}

#[test]
fn with_few_draws_no_effect_is_told_but_what_to_do() {
    let program = c(X86_64, LOOP, &[]);
    let told = |every: &str| {
        let text =
            time(&program, &["step"], &["--intervene", "flush_code", "--intervene-every", every]).stdout;
        String::from_utf8_lossy(&text).contains("too few calls were sampled for an effect")
    };
    // Some six calls of 6,000; and some 1,500 of each arm.
    assert!(told("1000"));
    assert!(!told("2"));
}

#[test]
fn words_that_mean_nothing_are_refused() {
    let program = c(X86_64, LOOP, &[]);
    for (options, why) in [
        (&["--intervene", "flush_everything"][..], "none, flush_code, flush_data, flush_both"),
        (&["--intervene", "flush_code,"], "none, flush_code, flush_data, flush_both"),
        (&["--intervene", "flush_code", "--intervene-every", "0"], "0 is not in"),
        (&["--intervene-every", "5"], "--intervene"),
        (&["--seed", "5"], "--intervene"),
        (&["--flush-recorded", "a.rec"], "--intervene"),
    ] {
        let output = time(&program, &["step"], options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{options:?}: {said}");
        assert!(output.stdout.is_empty(), "the program ran");
    }
}

/// The callee keeps its values in all registers but the stack pointer, and leaves other values in them; the caller
/// checks the values that arrive.
const REGISTERS: &str = r#"
    #include <stdio.h>
    #include <string.h>
    typedef struct { long all[15]; long flags; } Registers;
    Registers given, seen, left, got;
    __attribute__((aligned(16))) char given_vectors[512], seen_vectors[512], got_vectors[512];
    extern void echo(void);
    extern void round_trip(void);
    #define EACH(what, to) \
        what(rax, 0, to) what(rcx, 8, to) what(rdx, 16, to) what(rbx, 24, to) what(rbp, 32, to) what(rsi, 40, to) \
        what(rdi, 48, to) what(r8, 56, to) what(r9, 64, to) what(r10, 72, to) what(r11, 80, to) what(r12, 88, to) \
        what(r13, 96, to) what(r14, 104, to) what(r15, 112, to)
    #define STORE(name, at, to) "mov %" #name ", " #to "+" #at "(%rip)\n"
    #define LOAD(name, at, to) "mov " #to "+" #at "(%rip), %" #name "\n"
    __asm__(".text\n.p2align 4\n.globl echo\n.type echo,@function\necho:\n"
            EACH(STORE, seen) "pushfq\npopq seen+120(%rip)\nfxsave seen_vectors(%rip)\n"
            "pushq left+120(%rip)\npopfq\n" EACH(LOAD, left) "ret\n.size echo,.-echo\n"
            ".p2align 4\n.globl round_trip\n.type round_trip,@function\nround_trip:\n"
            "push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\nfxrstor given_vectors(%rip)\n"
            "pushq given+120(%rip)\npopfq\n" EACH(LOAD, given) "call echo\n" EACH(STORE, got)
            "pushfq\npopq got+120(%rip)\npushq $0x202\npopfq\nfxsave got_vectors(%rip)\n"
            "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n.size round_trip,.-round_trip\n");
    int main(void) {
        /* carry, parity, adjust, zero, sign, direction, overflow, nested task */
        static const long bits[] = {1, 4, 16, 64, 128, 1024, 2048, 16384};
        long wrong = 0;
        unsigned long random = 1;
        double values[3] = {1.5, -2.25, 1e300};
        __asm__ volatile("fldl %0\nfldl %1\nfldl %2" :: "m"(values[0]), "m"(values[1]), "m"(values[2]));
        __asm__ volatile("fxsave %0\nemms" : "=m"(given_vectors));
        for (long i = 0; i < 3000; i++) {
            Registers *both[] = {&given, &left};
            for (int which = 0; which < 2; which++) {
                for (int k = 0; k < 15; k++) both[which]->all[k] = (long)(random = random * 6364136223846793005UL + 1442695040888963407UL);
                both[which]->flags = 0x202;
                for (int k = 0; k < 8; k++) if (random >> (40 + k) & 1) both[which]->flags |= bits[k];
            }
            for (int k = 160; k < 416; k++) given_vectors[k] = (char)(random >> (k & 31));
            round_trip();
            __asm__ volatile("emms");
            wrong += memcmp(&given, &seen, sizeof given) != 0;
            wrong += memcmp(&left, &got, sizeof left) != 0;
            wrong += memcmp(given_vectors, seen_vectors, 416) != 0;
            wrong += memcmp(given_vectors, got_vectors, 416) != 0;
        }
        printf("wrong %ld\n", wrong);
    }
"#;

fn registers(program: &Program, options: &[&str]) -> u64 {
    let (report, printed) = timed_with(program, &["echo"], options);
    assert!(printed.contains("wrong 0\n"), "{printed}");
    let drawn = report["regions"][0]["interventions"]["drawn"].as_u64().unwrap_or_default();
    assert_eq!(counts(&report, 0)[0] + drawn, 3000, "{report}");
    drawn
}

#[test]
fn registers_flags_and_vectors_are_the_programs_own() {
    let program = c(X86_64, REGISTERS, &[]);
    assert_eq!(alone(&program), "wrong 0\n");
    assert_eq!(registers(&program, &[]), 0);
    assert!(registers(&program, &["--intervene", ALL, "--intervene-every", "4"]) > 300);
    assert!(registers(&program, &["--intervene", "flush_code", "--intervene-every", "1"]) > 2900);
}
