//! Two engines, one recording: what the native engine records is what the emulator records, access by access.

use super::program::{Program, Recorded, X86_64, c, cpp};
use lineup_model::access::{AccessKind, Call, CallEnd};
use lineup_model::image::LoadedImage;
use lineup_recording::MOST_ACCESSES;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The C library chooses its string functions by what the processor can do; so both run the same ones.
pub(crate) const SAME_LIBRARY: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=\
     -AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX512CD,-AVX512DQ,-ERMS,-FSRM,-RTM,-Prefer_No_VZEROUPPER";

/// A call without what differs between runs: where files, stacks and heaps lie.
#[derive(PartialEq, Eq)]
struct Shape {
    end: CallEnd,
    sequence: u64,
    depth: u32,
    instructions: u64,
    code: Vec<(String, u64)>,
    accesses: Vec<(String, u64, AccessKind, u32)>,
}

impl Shape {
    /// The facts that few lines show.
    fn facts(&self) -> (CallEnd, u64, u32, u64, &[(String, u64)]) {
        (self.end, self.sequence, self.depth, self.instructions, &self.code)
    }
}

fn place(images: &[LoadedImage], address: u64) -> (String, u64) {
    let image = images.iter().find(|image| image.contains(address));
    image.map_or((String::new(), address), |image| (image.path.clone(), image.to_link(address)))
}

fn shape(images: &[LoadedImage], call: &Call) -> Shape {
    let access = |access: &lineup_model::access::Access| {
        let (path, pc) = place(images, access.pc);
        (path, pc, access.kind, access.size_bytes)
    };
    let mut code: Vec<_> = call.code_granules.iter().map(|granule| place(images, *granule)).collect();
    code.sort_unstable();
    Shape {
        end: call.end,
        sequence: call.sequence,
        depth: call.depth,
        instructions: call.instructions,
        code,
        accesses: call.accesses.iter().map(access).collect(),
    }
}

/// Asserts that both recordings hold the same calls: the same instructions access the same places, when each file,
/// stack and heap is moved as a whole.
fn assert_equal(native: &Recorded, emulated: &Recorded) {
    let (one, other) = (&native.recording, &emulated.recording);
    assert!(
        !other.calls.is_empty() && one.calls.len() == other.calls.len(),
        "{} {}",
        one.calls.len(),
        other.calls.len()
    );
    // How far each line of the emulator's lies from the native one.
    let mut distances: BTreeMap<u64, u64> = BTreeMap::new();
    for (native, emulated) in one.calls.iter().zip(&other.calls) {
        let (left, right) = (shape(&one.images, native), shape(&other.images, emulated));
        let first = left.accesses.iter().zip(&right.accesses).position(|(one, other)| one != other);
        assert_eq!(
            first.map(|at| (at, &left.accesses[at..at + 1], &right.accesses[at..at + 1])),
            None,
            "call {}",
            left.sequence
        );
        assert_eq!(left.facts(), right.facts());
        assert!(
            left == right,
            "call {}: {} and {}",
            left.sequence,
            left.accesses.len(),
            right.accesses.len()
        );
        for (native, emulated) in native.accesses.iter().zip(&emulated.accesses) {
            let distance = native.address.wrapping_sub(emulated.address);
            let known = *distances.entry(emulated.address >> 6).or_insert(distance);
            assert_eq!(distance, known, "{native:x?} {emulated:x?}");
        }
    }
    let mut moved: Vec<u64> = distances.into_values().collect();
    moved.sort_unstable();
    moved.dedup();
    // Files, stacks, heaps and blocks of threads.
    assert!(moved.len() < 16, "{} parts of memory were moved differently", moved.len());
}

fn both(program: &Program, options: &[&str]) -> (Recorded, Recorded) {
    let with = |engine: &'static str| {
        let mut all = vec!["--engine", engine, "--env", SAME_LIBRARY];
        all.extend(options);
        program.record(&all)
    };
    (with("native"), with("qemu"))
}

pub(crate) fn assert_engines_agree(program: &Program, options: &[&str]) {
    let (native, emulated) = both(program, options);
    assert_equal(&native, &emulated);
}

#[test]
fn loops_calls_recursion_and_the_c_library() {
    let source = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        static int table[1000];
        __attribute__((noinline)) int leaf(int x) { table[x % 1000] += x; return table[(x * 7) % 1000]; }
        __attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
        __attribute__((noinline)) int hot(int x) {
            // Where it lies at the end of a page, the C library takes another way, and the stack begins elsewhere in each run.
            char text[64] __attribute__((aligned(64)));
            int sum = 0;
            for (int i = 0; i < 10; i++) sum += leaf(x + i);
            snprintf(text, sizeof text, "%d %s %5.2f", sum, "some text", x / 3.0);
            char *copy = strdup(text);
            memset(text, x, sizeof text);
            sum += strlen(copy) + fib(x % 7) + text[x % 64];
            free(copy);
            return sum;
        }
        int main(void) {
            long total = 0;
            for (int i = 0; i < 40; i++) total += hot(i);
            printf("total %lx\n", total);
        }
    "#;
    assert_engines_agree(&c(X86_64, source, &[]), &["--region", "hot", "--region", "fib"]);
}

#[test]
fn jump_tables_string_instructions_and_vectors() {
    let source = r#"
        #include <stdio.h>
        #include <string.h>
        static char from[4096], to[4096];
        static double numbers[256];
        __attribute__((noinline)) int hot(int x) {
            int result = 0;
            switch (x % 8) {
            case 0: result = 5; break;
            case 1: { void *d = to; const void *s = from; size_t n = 100 + x; __asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) :: "memory"); break; }
            case 2: { void *d = to; size_t n = 30; __asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(7L) : "memory"); break; }
            case 3: { void *d = to + 800; const void *s = from + 800; size_t n = 50; __asm__ volatile("std; rep movsw; cld" : "+D"(d), "+S"(s), "+c"(n) :: "memory"); break; }
            case 4: for (int i = 0; i < 256; i++) numbers[i] = numbers[i] * 1.5 + i; break;
            case 5: { const void *a = to, *b = from; size_t n = 200; __asm__ volatile("repe cmpsb" : "+S"(a), "+D"(b), "+c"(n) :: "memory"); result = n; break; }
            case 6: { size_t n = 0; void *d = to; __asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(7) : "memory"); break; }
            default: { long n = 5; __asm__ volatile("1: incl %1; loop 1b" : "+c"(n), "+m"(result)); __asm__ volatile("lock xaddl %0, %1" : "+r"(x), "+m"(result)); }
            }
            return result;
        }
        int main(void) {
            long total = 0;
            for (int i = 0; i < 64; i++) total += hot(i);
            printf("total %lx\n", total);
        }
    "#;
    assert_engines_agree(&c(X86_64, source, &["-O2", "-fno-strict-aliasing"]), &["--region", "hot"]);
}

/// The emulator lists an instruction that lies across pages twice, and executes it once.
#[test]
fn instructions_across_pages_are_counted_once() {
    let instructions =
        ["leaq 0x200(%rdi), %rax", "movabsq $0x123456789abcdef0, %rdx", "addl $77777, table(%rip)"];
    let mut code = String::from(".text\n.globl hot\n.type hot,@function\nhot: nop\n");
    for (number, instruction) in instructions.iter().enumerate() {
        for before in 1..10 {
            let label = 10 * number + before;
            let _ = writeln!(code, "jmp .Lnext{label}\n.p2align 12\n.skip 4093 - {before}, 0x90");
            let _ = writeln!(code, ".Lnext{label}: nop\nnop\nnop\n{instruction}\nnop");
        }
    }
    code.push_str("ret\n.size hot,.-hot\n.data\ntable: .long 1\n");
    let source = format!(
        "#include <stdio.h>\nextern long hot(long);\n__asm__({code:?});\n\
         int main(void) {{ printf(\"total %lx\\n\", hot(1)); }}\n"
    );
    let program = c(X86_64, &source, &[]);
    let (native, emulated) = both(&program, &["--region", "hot"]);
    assert_equal(&native, &emulated);
    // Three that fill, the instruction, one more and a jump, 27 times; one and the return.
    assert_eq!(native.calls()[0].instructions, 6 * 27 + 2);
}

#[test]
fn exceptions_and_jumps_out_of_calls() {
    let source = r#"
        #include <csetjmp>
        #include <cstdio>
        #include <stdexcept>
        #include <string>
        static std::jmp_buf place;
        __attribute__((noinline)) int inner(int x) {
            if (x % 3 == 0) throw std::runtime_error("three " + std::to_string(x));
            if (x % 5 == 0) std::longjmp(place, 1);
            return x;
        }
        __attribute__((noinline)) int hot(int x) {
            try { return inner(x); } catch (const std::runtime_error &error) { if (x % 2) throw; return error.what()[0]; }
        }
        int main() {
            volatile int total = 0;
            for (volatile int i = 1; i < 31; i++) {
                if (setjmp(place)) { total += 100; continue; }
                try { total += hot(i); } catch (...) { total += 1000; }
            }
            std::printf("total %x\n", total);
        }
    "#;
    let (native, emulated) = both(&cpp(X86_64, source, &[]), &["--region", "hot", "--region", "inner"]);
    assert_eq!(native.ends(), emulated.ends());
    // The unwinder asks the loader for the file of an address, which has one file more to look through: the engine.
    let is_loaders = |access: &(String, u64, AccessKind, u32)| access.0.contains("/ld-linux");
    for (native_call, emulated_call) in native.calls().iter().zip(emulated.calls()) {
        let mut one = shape(&native.recording.images, native_call);
        let mut other = shape(&emulated.recording.images, emulated_call);
        one.accesses.retain(|access| !is_loaders(access));
        other.accesses.retain(|access| !is_loaders(access));
        assert_eq!((one.depth, one.sequence, one.accesses), (other.depth, other.sequence, other.accesses));
    }
}

#[test]
fn signal_handlers_see_the_program_as_it_is_natively() {
    let source = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <setjmp.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/mman.h>
        #include <sys/time.h>
        #include <ucontext.h>
        #include <unistd.h>
        extern char __executable_start, etext;
        static volatile sig_atomic_t ticks, elsewhere, inside;
        static sigjmp_buf place;
        static char *page;
        static int is_ours(void *context) {
            char *pc = (char *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
            return pc >= &__executable_start && pc < &etext;
        }
        static void tick(int signal, siginfo_t *info, void *context) { ticks++; if (inside && !is_ours(context)) elsewhere++; }
        static void fault(int signal, siginfo_t *info, void *context) {
            if (!is_ours(context)) elsewhere++;
            char *at = info->si_addr;
            if (at < page || at >= page + 4096) siglongjmp(place, 1);
            mprotect(page, 4096, PROT_READ | PROT_WRITE);
        }
        static void skip(int signal, siginfo_t *info, void *context) { ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2; }
        __attribute__((noinline)) long busy(long n) {
            inside = 1;
            long sum = 0;
            for (long i = 0; i < n; i++) { sum += i * i % 7; if (i % 3 == 0) sum ^= page[i % 4096]; }
            inside = 0;
            return sum;
        }
        __attribute__((noinline)) long faulty(int k) {
            mprotect(page, 4096, PROT_NONE);
            page[k] = k;
            if (k % 5 == 4) *(volatile int *)8 = 1;
            return page[k];
        }
        __attribute__((noinline)) int skipped(int k) { __asm__ volatile("nop; ud2; nop" ::: "memory"); return k + 1; }
        __attribute__((noinline)) void *blocked(void *argument) { for (;;) sleep(100); }
        static void handle(int signal, void (*with)(int, siginfo_t *, void *)) {
            struct sigaction action = {.sa_sigaction = with, .sa_flags = SA_SIGINFO | SA_RESTART}, known;
            sigaction(signal, &action, 0);
            sigaction(signal, 0, &known);
            if (known.sa_sigaction != with) elsewhere += 100;
        }
        int main(void) {
            page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            handle(SIGALRM, tick);
            handle(SIGSEGV, fault);
            handle(SIGILL, skip);
            struct itimerval often = {{0, 500}, {0, 500}}, never = {};
            setitimer(ITIMER_REAL, &often, 0);
            long sum = 0;
            volatile int i, jumps = 0;
            for (i = 0; i < 10; i++) sum += busy(20000);
            for (i = 0; i < 50; i++) if (!sigsetjmp(place, 1)) sum += faulty(i); else jumps++;
            for (i = 0; i < 10; i++) sum += skipped(i);
            setitimer(ITIMER_REAL, &never, 0);
            pthread_t thread;
            void *result;
            pthread_create(&thread, 0, blocked, 0);
            usleep(50000);
            pthread_cancel(thread);
            pthread_join(thread, &result);
            printf("sum %lx\njumps %x\nelsewhere %x\ncancelled %x\nticked %x\n", sum, jumps, elsewhere, result == PTHREAD_CANCELED, ticks > 0);
        }
    "#;
    let regions = ["busy", "faulty", "skipped", "blocked"];
    let options: Vec<&str> = regions.iter().flat_map(|region| ["--region", region]).collect();
    let program = c(X86_64, source, &[]);
    let native = program.record(&[&["--engine", "native"], options.as_slice()].concat());
    assert_eq!(["jumps", "elsewhere", "cancelled", "ticked"].map(|name| native.value(name)), [10, 0, 1, 1]);
    assert_eq!(
        native.calls().iter().filter(|call| call.region.0 < 2 && call.end == CallEnd::Returned).count(),
        50
    );
}

#[test]
fn of_a_call_that_is_too_large_both_keep_the_same_first_accesses() {
    let source = r#"
        #include <stdio.h>
        static long numbers[4096], locked;
        __attribute__((noinline)) long hot(long n) {
            for (long i = 0; i < n; i++) {
                numbers[i * 7 % 4096] += numbers[i * i % 4096] + i;
                if (i % 16 == 0) __sync_fetch_and_add(&locked, i);
            }
            return numbers[n % 4096];
        }
        int main(void) {
            long total = 0;
            for (int i = 0; i < 100; i++) total += hot(i);
            total += hot(144000) + hot(10);
            printf("total %lx\n", total);
        }
    "#;
    let (mut native, mut emulated) = both(&c(X86_64, source, &[]), &["--region", "hot"]);
    let counts = [&native, &emulated].map(|own| own.calls().iter().map(|call| call.accesses.len()).collect());
    let [ours, theirs]: [Vec<usize>; 2] = counts;
    assert_eq!((ours.iter().max(), &ours), (Some(&MOST_ACCESSES), &theirs));
    // The last of those that are kept tell whether they are the same.
    for call in native.recording.calls.iter_mut().chain(&mut emulated.recording.calls) {
        call.accesses.drain(..call.accesses.len().saturating_sub(500));
    }
    assert_equal(&native, &emulated);
}

#[test]
fn short_functions_and_those_that_begin_with_a_call_are_recorded() {
    let source = r#"
        #include <stdio.h>
        extern int nothing(int x), begins(int x);
        __asm__(".text\n.balign 16\n.globl nothing\n.type nothing,@function\nnothing: mov %edi,%eax\nret\n.size nothing,.-nothing\n"
                ".balign 16\n.globl begins\n.type begins,@function\nbegins: call nothing\nadd $1,%eax\nret\n.size begins,.-begins\n.balign 16\n");
        int main(void) {
            int total = 0;
            for (int i = 0; i < 10; i++) total += nothing(i) + begins(i);
            printf("total %x\n", total);
        }
    "#;
    let program = c(X86_64, source, &["-fcf-protection=none"]);
    let regions = ["--region", "nothing", "--region", "begins"];
    let (native, emulated) = both(&program, &regions);
    assert_equal(&native, &emulated);
    assert_eq!((native.calls().len(), native.value("total")), (30, 100));
}
