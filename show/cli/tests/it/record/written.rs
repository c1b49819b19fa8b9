//! Code that a program writes while it runs, and rewrites: the recording has its content at each time.

use super::engines::assert_engines_agree;
use super::program::{Program, Recorded, X86_64, c, lineup_record};
use super::whole::{assert_same_counts, by_address};
use std::process::Command;

/// Two places for code: one that can be written and executed at once, and one that is either. The code written there
/// changes `*cell`: an addition, or a loop. A timer's handler runs meanwhile when there is an argument.
const WRITES_CODE: &str = r#"
    #define _GNU_SOURCE
    #include <signal.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <sys/time.h>
    static long cell[8];
    typedef long (*function)(long *);
    static unsigned char *both, *either;
    static volatile long ticks;
    static void tick(int signal) { ticks++; }
    /* add qword [rdi], number; mov rax, [rdi]; ret */
    static void addition(unsigned char *to, unsigned char number) {
        unsigned char code[] = {0x48, 0x83, 0x07, number, 0x48, 0x8b, 0x07, 0xc3};
        memcpy(to, code, sizeof code);
    }
    /* mov ecx, times; 1: add [rdi], rcx; dec ecx; jnz 1b; mov rax, [rdi]; ret */
    static void loop(unsigned char *to, unsigned char times) {
        unsigned char code[] = {0xb9, times, 0, 0, 0, 0x48, 0x01, 0x0f, 0xff, 0xc9, 0x75, 0xf9, 0x48, 0x8b, 0x07, 0xc3};
        memcpy(to, code, sizeof code);
    }
    static void write_either(int n) {
        mprotect(either, 4096, PROT_READ | PROT_WRITE);
        if (n % 2) addition(either, n); else loop(either, n + 1);
        mprotect(either, 4096, PROT_READ | PROT_EXEC);
    }
    __attribute__((noinline)) long work(int n) {
        long sum = 0;
        if (n % 3 == 0) addition(both, n % 50);
        if (n % 7 == 0) loop(both, n % 11 + 2);
        if (n % 20 == 0) write_either(n % 60);
        for (int i = 0; i < 3; i++) sum += ((function)both)(&cell[n & 3]) ^ ((function)either)(&cell[4]);
        return sum * 3 + cell[5];
    }
    int main(int count, char **words) {
        struct itimerval often = {{0, 300}, {0, 300}};
        int anyone = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        both = mmap((void *)0x21000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, anyone, -1, 0);
        either = mmap((void *)0x22000000, 4096, PROT_READ | PROT_WRITE, anyone, -1, 0);
        if (count > 1) { signal(SIGALRM, tick); setitimer(ITIMER_REAL, &often, 0); }
        long sum = 0;
        for (int n = 0; n < 400; n++) sum += work(n);
        /* Other code at the same place. */
        munmap(both, 4096);
        both = mmap((void *)0x21000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, anyone, -1, 0);
        for (int n = 3; n < 300; n += 3) sum += work(n);
        for (int n = 0; count > 1 && ticks < 200; n = (n + 1) % 400) { work(n); }
        cell[6] = sum;
        printf("sum %lx\n", sum);
        return 0;
    }
"#;

fn program() -> Program {
    c(X86_64, WRITES_CODE, &["-mgeneral-regs-only", "-fno-tree-vectorize"])
}

#[test]
fn calls_go_on_in_code_that_was_written_just_now() {
    assert_engines_agree(&program(), &["--region", "work", "--calls", "200"]);
}

#[test]
fn a_program_is_counted_to_its_end_when_it_writes_code() {
    let (native, emulated) = assert_same_counts(&program());
    assert_eq!(native.value("sum"), emulated.value("sum"));
    let written = |recorded: &Recorded| by_address(recorded, 0x2100_0000..0x2200_1000);
    assert!(written(&native).len() >= 2, "{:?}", written(&native));
    assert_eq!(written(&native), written(&emulated));
}

/// The second page of a function is replaced by a copy, in other memory: an instruction begins before it and ends in
/// it.
const REPLACES_CODE: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    long across(void);
    __asm__(".p2align 12\n.globl across\n.type across, @function\nacross: .fill 4090, 1, 0x90\n"
            "movabs $0x1122334455667788, %rax\nret\n.size across, . - across\n.p2align 12\n");
    __attribute__((noinline)) long work(int n) { return across() + n; }
    int main(void) {
        char *second = (char *)&across + 4096;
        void *copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(copy, second, 4096);
        mprotect(copy, 4096, PROT_READ | PROT_EXEC);
        if (mremap(copy, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, second) != second) return 1;
        long sum = 0;
        for (int n = 0; n < 20; n++) sum += work(n);
        printf("sum %lx\n", sum);
        return 0;
    }
"#;

#[test]
fn an_instruction_that_ends_in_other_memory_than_it_begins_is_recorded() {
    let program = c(X86_64, REPLACES_CODE, &["-mstringop-strategy=loop"]);
    assert_engines_agree(&program, &["--region", "work"]);
    let (native, emulated) = assert_same_counts(&program);
    assert_eq!(native.value("sum"), emulated.value("sum"));
}

/// The page of two watched functions, of which one calls the other, is copied to other memory while they are called: as
/// programs do that move their code to huge pages (`mmap`, `memfd`, `munmap` first), or change it by replacing pages
/// (`mremap`). In the end there is other code in its place when asked (`other`).
const COPIES_CODE: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #define PAGE __attribute__((noinline, section(".page"), aligned(64)))
    static long cell[64];
    PAGE long within(long n) { cell[n & 7] += n; return cell[(n + 1) & 7]; }
    PAGE long work(long n) { return within(n) + within(n + 3) * 2 + 1; }
    __asm__(".section .page, \"ax\"\n.p2align 12\n.text\n");
    static char *page(void *code) { return (char *)((unsigned long)code & ~4095ul); }
    static void by_mremap(char *to, const char *from) {
        void *copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(copy, from, 4096);
        mprotect(copy, 4096, PROT_READ | PROT_EXEC);
        if (mremap(copy, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to) __builtin_trap();
    }
    static void by_mmap(char *to, char way) {
        static char kept[4096];
        memcpy(kept, to, 4096);
        int file = way == 'e' ? memfd_create("code", 0) : -1;
        if (file >= 0 && ftruncate(file, 4096)) __builtin_trap();
        if (way == 'u') munmap(to, 4096);
        int own = MAP_PRIVATE | (way == 'e' ? 0 : MAP_ANONYMOUS) | (way == 'u' ? MAP_FIXED_NOREPLACE : MAP_FIXED);
        if (mmap(to, 4096, PROT_READ | PROT_WRITE, own, file, 0) != to) __builtin_trap();
        memcpy(to, kept, 4096);
        mprotect(to, 4096, PROT_READ | PROT_EXEC);
    }
    int main(int count, char **words) {
        char way = count > 1 ? words[1][1] : 'r';
        long sum = 0;
        for (int n = 0; n < 60; n++) {
            if (n % 20 == 10 && way == 'r') by_mremap(page(work), page(work));
            if (n % 20 == 10 && strchr("meu", way)) by_mmap(page(work), way);
            /* ret */
            static char returns[4096];
            memset(returns, 0xc3, sizeof returns);
            if (n == 50 && way == 't') by_mremap(page(work), returns);
            sum += work(n);
        }
        printf("way %c\n", way);
        if (way != 't') printf("sum %lx\n", sum);
        return 0;
    }
"#;

#[test]
fn calls_go_on_in_a_copy_of_the_code() {
    for way in ["mremap", "mmap", "memfd"] {
        let program = c(X86_64, COPIES_CODE, &["-falign-functions=64"]);
        let record = |engine: &str| {
            let options =
                ["--region", "work", "--region", "within", "--engine", engine, "--", "./program", way];
            let output = lineup_record(program.folder.path(), &options);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success() && said.contains("sum"), "{engine} {way}: {output:?}");
            (said, std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording"))
        };
        let [(native, recorded), (emulated, expected)] = ["native", "qemu"].map(record);
        let sum = |said: &str| said.lines().find(|line| line.starts_with("sum")).map(str::to_owned);
        assert_eq!(sum(&native), sum(&emulated), "{way}");
        let [recorded, expected] =
            [recorded, expected].map(|bytes| lineup_recording::read_all(&bytes).expect("whole"));
        assert_eq!(recorded.calls.len(), 180, "{way}");
        assert_eq!(recorded.calls.len(), expected.calls.len(), "{way}");
        for (call, other) in recorded.calls.iter().zip(&expected.calls) {
            assert_eq!(call.region, other.region, "{way}");
            assert_eq!(call.instructions, other.instructions, "{way}");
            assert_eq!(call.accesses.len(), other.accesses.len(), "{way}");
        }
    }
}

/// Unmapped code is forgotten, except for jumps to the engine in the copy: calls go through it and are recorded, or
/// not.
#[test]
fn calls_go_on_in_a_copy_of_code_that_was_unmapped() {
    let program = c(X86_64, COPIES_CODE, &["-falign-functions=64"]);
    let record = |more: &[&str]| {
        let watched = ["--region", "work", "--engine", "native"];
        let output =
            lineup_record(program.folder.path(), &[&watched, more, &["--", "./program", "munmap"]].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("sum"), "{output:?}");
        let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
        lineup_recording::read_all(&bytes).expect("whole").calls.len()
    };
    assert_eq!(record(&[]), 60);
    assert!(record(&["--calls-per-second", "1"]) < 60);
}

#[test]
fn a_watched_function_in_whose_place_other_code_is_put_is_told() {
    let program = c(X86_64, COPIES_CODE, &["-falign-functions=64"]);
    let options = ["--region", "work", "--engine", "native", "--", "./program", "other"];
    let output = lineup_record(program.folder.path(), &options);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("the program put other code at") && said.contains("are not recorded"), "{said}");
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    assert_eq!(lineup_recording::read_all(&bytes).expect("whole").calls.len(), 50);
}

#[test]
fn handlers_interrupt_code_that_was_written() {
    for what in [&["--region", "work"][..], &["--whole-program"]] {
        let program = program();
        let with = ["--engine", "native", "--", "./program", "ticks"];
        let output = lineup_record(program.folder.path(), &[what, &with].concat());
        let alone = Command::new(program.folder.path().join("program")).output().expect("the program");
        let (alone, said) = [&alone, &output].map(|output| String::from_utf8_lossy(&output.stdout)).into();
        assert!(output.status.success() && said.contains(alone.trim()), "{alone}: {said}");
    }
}

/// Code that writes the instruction behind the one that writes, and code that writes one further on.
const WRITES_ITSELF: &str = r#"
    #define _GNU_SOURCE
    #include <stdio.h>
    #include <string.h>
    #include <sys/mman.h>
    typedef int (*function)(char *);
    static unsigned char *code;
    /* mov byte [rip + 1], 42; mov eax, 7, of which the first byte is then 42; ret */
    static const unsigned char next[] = {0xc6, 0x05, 1, 0, 0, 0, 42, 0xb8, 7, 0, 0, 0, 0xc3};
    /* mov byte [rdi], 43; nop; nop; mov eax, 7; ret */
    static const unsigned char further[] = {0xc6, 0x07, 43, 0x90, 0x90, 0xb8, 7, 0, 0, 0, 0xc3};
    __attribute__((noinline)) long work(int n) {
        memcpy(code, next, sizeof next);
        memcpy(code + 256, further, sizeof further);
        return ((function)code)(0) * 1000 + ((function)(code + 256))((char *)code + 256 + 6) + n;
    }
    int main(void) {
        code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        long sum = 0;
        for (int n = 0; n < 50; n++) sum += work(n);
        printf("sum %ld\n", sum);
        return 0;
    }
"#;

#[test]
fn code_that_writes_its_next_instructions_does_as_it_does_alone() {
    let program = c(X86_64, WRITES_ITSELF, &[]);
    let expected = format!("sum {}", 50 * 42_043 + 49 * 50 / 2);
    for what in [&["--region", "work"][..], &["--whole-program"]] {
        let with = ["--engine", "native", "--", "./program"];
        let output = lineup_record(program.folder.path(), &[what, &with].concat());
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(&expected), "{what:?}: {said}");
    }
}
