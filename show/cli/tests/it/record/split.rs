//! Functions that the compiler has split: a call whose beginning jumps to the rest is one call.

use super::program::{Program, X86_64, c};
use super::times::{counts, timed_with};

/// GCC inlines the check of this function into others and leaves the rest as `work.part.0`.
const SPLIT: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    static int table[64];
    static volatile int sink;
    struct item { int kind, count; long sum; int seen[8]; };
    int work(struct item *item, int x) {
        if (__builtin_expect(item == 0 || x == 0, 1)) return -1;
        for (int i = 0; i < 8; i++) {
            item->seen[i] += x * i;
            item->sum += item->seen[i] ^ table[(x + i) & 63];
            if (item->sum & 1) { table[i] += x; item->count++; sink = x; } else item->kind ^= i;
            if (item->count > 1000000) abort();
        }
        return item->count + item->kind;
    }
    __attribute__((noinline)) int direct(struct item *item, int x) { return work(item, x) + 1; }
    __attribute__((noinline)) int tail(struct item *item, int x) { sink++; return work(item, x); }
    int (*volatile through)(struct item *, int) = work;
    int main(void) {
        struct item item = {0};
        long total = 0;
        for (int n = 0; n < 300; n++) {
            total += through(&item, n % 3);
            total += direct(n % 5 ? &item : 0, n % 2);
            total += tail(&item, n % 4);
        }
        printf("total %lx\n", total);
    }
"#;

/// Parts, named as functions of one name, whose beginnings jump to the rest: among the first bytes, by short jumps,
/// under a condition, and back from the rest.
const BY_HAND: &str = r#"
    #include <stdio.h>
    long cell[4];
    long work(long x) __asm__("_Z4workl"), again(long x) __asm__("_Z5againl"), other(long x);
    #define RETURN " ret\n nop\n nop\n nop\n nop\n"
    __asm__(".text\n.balign 16\n.type _Z4worki,@function\n"
        "_Z4worki: lea 3(%rdi),%rax\n add %rax,cell(%rip)\n test $4,%dil\n jne 1f\n" RETURN
        "1: sub $1,%rdi\n sub $3,%rdi\n jmp _Z4workl\n.size _Z4worki,.-_Z4worki\n"
        ".balign 16\n.globl _Z4workl\n.type _Z4workl,@function\n"
        "_Z4workl: test %rdi,%rdi\n je 2f\n mov %rdi,%rax\n and $3,%eax\n cmp $1,%eax\n je _Z4worki\n"
        "cmp $2,%eax\n je 3f\n add $1,%rax\n cmp $4,%eax\n je 4f\n"
        "2: mov $7,%eax\n" RETURN
        "3: mov $9,%eax\n add $1,%rax\n jmp _Z4worki\n"
        "4: mov $11,%eax\n .byte 0xe9\n .long _Z4worki - . - 4\n.size _Z4workl,.-_Z4workl\n"
        ".balign 16\n.type _Z5againi,@function\n"
        "_Z5againi: add %rdi,cell+8(%rip)\n mov %rdi,%rax\n" RETURN ".size _Z5againi,.-_Z5againi\n"
        ".balign 16\n.globl _Z5againl\n.type _Z5againl,@function\n"
        "_Z5againl: test $1,%dil\n jne _Z5againi\n mov $1,%eax\n" RETURN ".size _Z5againl,.-_Z5againl\n"
        ".balign 16\n.type other,@function\n"
        "other: test %rdi,%rdi\n jne _Z4worki\n" RETURN ".size other,.-other\n.balign 16\n");
    int main(void) {
        long total = 0;
        for (long n = 0; n < 400; n++) {
            total += work(n % 13) + again(n);
            if (n % 3 == 0) total += other(n % 5);
        }
        printf("total %lx\n", total ^ cell[0] ^ cell[1]);
    }
"#;

/// Both engines make as many calls of each, however many they record, and all are timed.
fn assert_one_call_each(program: &Program, regions: &[&str]) -> Vec<u64> {
    let named: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
    let made = |engine: &str, calls: &str| -> Vec<u64> {
        let recorded = program.record(&[&["--engine", engine, "--calls", calls], named.as_slice()].concat());
        let summary = recorded.recording.summary.as_ref().expect("a summary");
        let made: Vec<u64> = summary.regions.iter().map(|region| region.seen).collect();
        let most: u64 = calls.parse().expect("a number");
        for (number, made) in made.iter().enumerate() {
            let own = recorded.calls().iter().filter(|call| usize::from(call.region.0) == number);
            assert_eq!(own.count() as u64, most.min(*made), "{engine}, {calls}");
        }
        made
    };
    let all = made("qemu", "1000");
    for (engine, calls) in [("native", "1000"), ("native", "60"), ("qemu", "60")] {
        assert_eq!(made(engine, calls), all, "{engine}, {calls}");
    }
    let (report, _) = timed_with(program, regions, &[]);
    let timed: Vec<u64> = (0..regions.len()).map(|number| counts(&report, number)[0]).collect();
    assert_eq!(timed, all);
    all
}

#[test]
fn calls_of_a_function_that_gcc_has_split_are_counted_once() {
    let program = c(X86_64, SPLIT, &[]);
    let code = std::fs::read(program.folder.path().join("program")).expect("the program");
    assert!(code.windows(11).any(|name| name == b"work.part.0"), "GCC splits nothing");
    assert_one_call_each(&program, &["work"]);
}

#[test]
fn however_a_beginning_jumps_to_the_rest_it_is_one_call() {
    assert_eq!(assert_one_call_each(&c(X86_64, BY_HAND, &[]), &["work", "again"]), [507, 400]);
}
