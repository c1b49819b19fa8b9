//! Exact accesses, instructions, limits.

use super::program::{MACHINES, Machine, Recorded, X86_64, c, lineup_record};
use lineup_model::access::AccessKind;
use lineup_model::access::CallEnd::Returned;
use std::process::Command;

/// Three loads and two stores of an array whose address the program prints.
const ACCESSES: &str = r#"
#include <stdio.h>
volatile unsigned cell[32];
__attribute__((noinline)) void region(int turn) {
    unsigned a = cell[0];
    cell[1] = turn;
    unsigned b = cell[17];
    cell[31] = a + b;
    (void)cell[0];
}
__attribute__((noinline)) void beside(void) { cell[5] = cell[6]; }
int main(void) {
    for (int turn = 0; turn < 10; turn++) { beside(); region(turn); beside(); }
    printf("cell %p\n", (void *)cell);
    return 0;
}
"#;

const EXPECTED: [(u64, u32, char); 5] = [(0, 4, 'L'), (4, 4, 'S'), (68, 4, 'L'), (124, 4, 'S'), (0, 4, 'L')];

fn check_accesses(machine: Machine, link: &[&str], options: &[&str]) -> Recorded {
    let program = c(machine, ACCESSES, link);
    let recorded = program.record(&[&["--region", "region"], options].concat());
    let cell = recorded.value("cell");
    assert_eq!(recorded.ends(), [Returned; 10], "{machine:?} {link:?} {options:?}");
    for call in 0..10 {
        assert_eq!(
            recorded.touched(call, cell, 128),
            EXPECTED,
            "{machine:?} {link:?} {options:?} call {call}"
        );
        assert_eq!(recorded.calls()[call].missed_blocks, 0);
    }
    recorded
}

#[test]
fn every_access_of_a_call_is_recorded_and_none_beside_it() {
    for machine in MACHINES {
        check_accesses(machine, &["-static"], &[]);
        check_accesses(machine, &["-pie", "-fPIE"], &[]);
    }
}

#[test]
fn one_pass_and_two_passes_record_the_same() {
    for machine in MACHINES {
        let two = check_accesses(machine, &["-static"], &["--engine", "qemu"]);
        let one = check_accesses(machine, &["-static"], &["--one-pass"]);
        let shape = |recorded: &Recorded| {
            let call = |call: &lineup_model::access::Call| {
                (
                    call.instructions,
                    call.accesses.clone(),
                    call.code_granules.clone(),
                    call.sequence,
                    call.depth,
                )
            };
            recorded.calls().iter().map(call).collect::<Vec<_>>()
        };
        assert_eq!(shape(&one), shape(&two), "{machine:?}");
    }
}

#[test]
fn warm_up_and_limit_choose_which_calls_are_recorded() {
    let program = c(X86_64, ACCESSES, &[]);
    let limits = ["--region", "region", "--warmup", "2", "--calls", "5"];
    // The native engine does not count calls after the last that is wanted.
    for (engine, seen) in [("qemu", 10), ("native", 7)] {
        let recorded = program.record(&[&limits[..], &["--first", "--engine", engine]].concat());
        assert_eq!(sequences(&recorded), [2, 3, 4, 5, 6], "{engine}");
        let summary = recorded.recording.summary.as_ref().expect("a summary");
        assert_eq!((summary.regions[0].seen, summary.regions[0].recorded), (seen, 5), "{engine}");
    }
    let spread = sequences(&program.record(&limits));
    assert_eq!((spread.len(), spread[0] >= 2, spread[4] > 6), (5, true, true), "{spread:?}");
}

fn sequences(recorded: &Recorded) -> Vec<u64> {
    recorded.calls().iter().map(|call| call.sequence).collect()
}

/// A region whose calls grow: the first ones are not like the rest.
const GROWING: &str = r#"
volatile unsigned cell[64];
__attribute__((noinline, noclone)) void region(int n) { for (int i = 0; i < n; i++) cell[i % 64] = i; }
int main(void) { for (int n = 0; n < 3000; n++) region(n); return 0; }
"#;

#[test]
fn a_limit_spreads_the_calls_over_the_run_and_both_ways_keep_the_same() {
    let program = c(X86_64, GROWING, &["-static"]);
    let two = program.record(&["--region", "region", "--calls", "100", "--engine", "qemu"]);
    let one = program.record(&["--region", "region", "--calls", "100", "--one-pass"]);
    let kept = sequences(&two);
    assert_eq!(kept, sequences(&one));
    assert_eq!(kept.len(), 100);
    let gaps = kept.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(kept[0] < 60 && kept[99] > 2940 && gaps.max() < Some(90), "{kept:?}");
    for recorded in [&one, &two] {
        let summary = recorded.recording.summary.as_ref().expect("a summary");
        assert_eq!((summary.regions[0].seen, summary.regions[0].recorded), (3000, 100));
        assert_eq!(summary.all_calls[0].calls(), 3000);
    }
}

#[test]
fn recorded_calls_that_are_not_like_the_rest_are_told() {
    let program = c(X86_64, GROWING, &["-static"]);
    let said = |options: &[&str]| {
        let own = ["--engine", "qemu", "--region", "region", "--calls", "100"];
        let arguments = [&own[..], options, &["--", "./program"]].concat();
        let output = lineup_record(program.folder.path(), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let first = said(&["--first"]);
    assert!(first.contains("warning: the recorded calls are not like the rest: median"), "{first}");
    let spread = said(&[]);
    assert!(!spread.contains("warning") && spread.contains("over all 3,000 calls: median"), "{spread}");
}

/// A region with loops, callees, a switch and string instructions.
const TURNS: u64 = 20;
const COPIED: u64 = 4096;
const WORK: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static volatile char text[4096], copy[4096];
__attribute__((noinline)) int collatz(long n) { int steps = 0; while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; steps++; } return steps; }
__attribute__((noinline)) int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) long region(int turn) {
    int numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = collatz(turn * 100 + i + 1);
    qsort(numbers, 100, sizeof *numbers, order);
    for (int i = 0; i < 4095; i++) text[i] = 'a' + turn;
    unsigned long count = 4096;
    volatile char *from = text, *to = copy;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    return numbers[50] + copy[77];
}
int main(void) {
    long sum = 0;
    for (int turn = 0; turn < 20; turn++) { sum += region(turn); sum += collatz(turn + 27); }
    printf("%ld\n", sum);
    return 0;
}
"#;

#[test]
fn instructions_in_a_region_equal_those_callgrind_counts() {
    let program = c(X86_64, WORK, &["-static", "-fno-builtin"]);
    // Both choose the string functions of a processor without AVX-512.
    let recorded = program.record(&["--region", "region", "--engine", "qemu"]);
    let ours: u64 = recorded.calls().iter().map(|call| call.instructions).sum();
    let mut valgrind = Command::new("valgrind");
    valgrind.current_dir(program.folder.path());
    valgrind.args([
        "--tool=callgrind",
        "--toggle-collect=region",
        "--callgrind-out-file=callgrind.out",
        "./program",
    ]);
    let run = valgrind.output().expect("cannot run valgrind; install it: apt install valgrind");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let text =
        std::fs::read_to_string(program.folder.path().join("callgrind.out")).expect("callgrind's output");
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("a line of totals");
    // callgrind counts a repeated string instruction once for each element and for its end; the processor executes one.
    let theirs = totals.trim().parse::<u64>().expect("a count");
    assert_eq!(ours, theirs - TURNS * COPIED);
    for call in recorded.calls() {
        let copies = call.accesses.iter().filter(|access| u64::from(access.size_bytes) == COPIED);
        let kinds: Vec<AccessKind> = copies.map(|access| access.kind).collect();
        assert_eq!(
            kinds,
            [AccessKind::Load, AccessKind::Store],
            "one access each way, with the whole length"
        );
    }
}

/// String instructions: forwards, backwards, words, with a count of zero, and one that reads from two places.
const STRINGS: &str = r#"
#include <stdio.h>
volatile unsigned char cell[256];
__attribute__((noinline, noclone)) void region(void) {
    const volatile void *from = cell; volatile void *to = cell + 64; unsigned long count = 40;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory");
    to = cell + 128; count = 5;
    __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(7ul) : "memory");
    to = cell + 199; count = 8;
    __asm__ volatile("std\n rep stosb\n cld" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    to = cell; count = 0;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    from = cell; to = cell + 64; count = 10;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(count) : : "memory", "cc");
}
int main(void) { region(); printf("cell %p\n", (void *)cell); return 0; }
"#;

#[test]
fn a_repeated_string_instruction_is_one_instruction_with_one_access_for_each_side() {
    let recorded = c(X86_64, STRINGS, &["-static", "-fno-pie", "-no-pie"]).record(&["--region", "region"]);
    let cell = recorded.value("cell");
    let expected = [(0, 40, 'L'), (64, 40, 'S'), (128, 40, 'S'), (192, 8, 'S'), (64, 10, 'L'), (0, 10, 'L')];
    assert_eq!(recorded.touched(0, cell, 256), expected);
}

/// All sizes and both directions, in aligned memory: the numbers of lines are known.
const REPEATED: &str = r#"
#include <stdio.h>
__attribute__((aligned(4096))) char cells[16384];
__attribute__((naked, noinline)) void run(void) {
    asm("mov $100, %edx\n"
        "1: lea cells(%rip), %rdi\n mov $4096, %ecx\n xor %eax, %eax\n rep stosb\n"
        "lea cells(%rip), %rdi\n mov $2048, %ecx\n rep stosw\n"
        "lea cells(%rip), %rsi\n lea cells+8192(%rip), %rdi\n mov $1024, %ecx\n rep movsl\n"
        "lea cells+4088(%rip), %rsi\n lea cells+12280(%rip), %rdi\n mov $512, %ecx\n std\n rep movsq\n cld\n"
        "lea cells+60(%rip), %rdi\n mov $8, %ecx\n rep stosb\n"    // on two lines
        "lea cells(%rip), %rdi\n mov $1, %ecx\n rep stosb\n"
        "lea cells(%rip), %rdi\n xor %ecx, %ecx\n rep stosb\n"
        "lea cells(%rip), %rsi\n lea cells+8192(%rip), %rdi\n mov $4096, %ecx\n repe cmpsb\n"
        "lea cells(%rip), %rdi\n mov $4096, %ecx\n repe scasb\n"
        "dec %edx\n jnz 1b\n ret\n .skip 1024");
}
int main(void) { run(); printf("run %p\n", (void *)run); return 0; }
"#;

#[test]
fn a_repeated_string_instruction_counts_once_with_an_access_for_each_line() {
    let program = c(X86_64, REPEATED, &["-fno-pie", "-no-pie", "-fcf-protection=none"]);
    let whole = program.record(&["--whole-program", "--engine", "native"]);
    let calls = program.record(&["--region", "run", "--engine", "native"]);
    let run = whole.value("run");
    let own = whole.recording.profile.iter().filter(|one| (run..run + 1024).contains(&one.pc));
    let sums = own.map(|one| [one.instructions, one.loads, one.stores]);
    let sums = sums.fold([0; 3], |sum, own| std::array::from_fn(|at| sum[at] + own[at]));
    // Lines are 4096 / 64 for each copy, fill and search.
    let stores = 100 * (4 * 64 + 3);
    let loads = 100 * (2 + 3) * 64;
    assert_eq!(
        sums,
        [calls.calls()[0].instructions, loads + 1, stores],
        "one load more for the return address"
    );
}

/// Accesses whose addresses follow from others in their block, and some that do not, in one function without a C
/// library.
const CHAINED: &str = r#"
asm(".globl _start\n_start: lea stack+8192(%rip), %rsp\n call run\n mov $60, %eax\n xor %edi, %edi\n syscall");
__attribute__((aligned(64))) char stack[16384];
__attribute__((aligned(64))) long cells[64];
__attribute__((naked, noinline)) void leaf(void) { asm("push %rbp\n mov %rsp, %rbp\n sub $32, %rsp\n movq $1, -8(%rbp)\n leave\n ret"); }
void (*const pointer)(void) = leaf;
__attribute__((naked, noinline)) void run(void) {
    asm("push %rbx\n push %r12\n push %r13\n mov $1000, %ebx\n lea cells(%rip), %r12\n"
        "1: addq $1, (%r12)\n negl 60(%r12)\n"          // a load and a store each, the second across lines
        "pushq 8(%r12)\n popq 16(%r12)\n"               // two addresses each
        "mov 24(%r12), %rax\n mov %rax, 200(%r12)\n movzwl 26(%r12), %eax\n"
        "movsd 8(%r12), %xmm1\n call *pointer(%rip)\n call leaf\n"
        "mov %r12, %rdi\n lea 256(%r12), %rsi\n mov $5, %ecx\n rep movsb\n"
        "xchg %rax, (%r12)\n lock incq 32(%r12)\n"
        // Every kind of instruction whose accesses are taken to be made once, as one whole.
        "movss (%r12), %xmm0\n movss %xmm0, 8(%r12)\n movsd %xmm0, 8(%r12)\n addss (%r12), %xmm0\n mulss (%r12), %xmm0\n"
        "addsd (%r12), %xmm0\n subsd (%r12), %xmm0\n mulsd (%r12), %xmm0\n divsd 3(%r12), %xmm0\n ucomisd (%r12), %xmm0\n"
        "comisd (%r12), %xmm0\n cvtsi2sdl (%r12), %xmm0\n cvtsi2sdq (%r12), %xmm0\n movd (%r12), %xmm1\n movd %xmm1, 8(%r12)\n"
        "movq (%r12), %xmm1\n movq %xmm1, 8(%r12)\n movq (%r12), %mm1\n movq %mm1, 8(%r12)\n movd (%r12), %mm1\n emms\n"
        "imul (%r12), %rax\n imul $3, (%r12), %rax\n adcq $1, (%r12)\n sbb %rax, (%r12)\n sbb (%r12), %rax\n notq (%r12)\n"
        "incw (%r12)\n decl (%r12)\n movsbl (%r12), %eax\n movslq (%r12), %rax\n orb $1, (%r12)\n xorw $1, (%r12)\n"
        "andl $1, (%r12)\n subq $8, (%r12)\n testl $1, (%r12)\n cmpq %rax, (%r12)\n pushw (%r12)\n popw %ax\n push $1\n pop %rax\n"
        "mov (%r12,%rbx,0x1), %al\n mov 1(%r12,%rbx,1), %cl\n"
        "dec %ebx\n jnz 1b\n pop %r13\n pop %r12\n pop %rbx\n ret");
}
"#;

/// One callback for several accesses counts the same as one for each.
#[test]
fn a_whole_program_s_accesses_are_those_of_its_calls() {
    let program =
        c(X86_64, CHAINED, &["-nostdlib", "-static", "-fno-pie", "-no-pie", "-fcf-protection=none"]);
    let calls = program.record(&["--region", "run"]);
    let of_calls =
        |kind| calls.calls()[0].accesses.iter().filter(|access| access.kind == kind).count() as u64;
    let whole = program.record(&["--whole-program", "--cache", "l1d=1K,2,64", "--cache", "l1i=1K,2,64"]);
    let sum = |count: fn(&lineup_recording::ProfileRun) -> u64| -> u64 {
        whole.recording.profile.iter().map(count).sum()
    };
    // In addition, the call that begins all stores a return address.
    // The emulator executes a repeated string instruction once for each element.
    let elements = 1000 * (5 - 1);
    assert_eq!(sum(|run| run.loads), of_calls(AccessKind::Load) + elements);
    assert_eq!(sum(|run| run.stores), of_calls(AccessKind::Store) + elements + 1);
    // Counted by hand: each of the thousand turns, and four at both ends.
    assert_eq!((sum(|run| run.loads), sum(|run| run.stores)), (55_004, 34_004));
    assert!(sum(|run| run.load_misses.l1) > 0);
}
