//! Logged runs: a replayed log gives the same counts as the native engine, and a log that was cut off is readable up to
//! its last whole part.

use super::engines::SAME_LIBRARY;
use super::program::{Program, Recorded, X86_64, build, c, cpp, lineup_record};
use super::whole::{BY_INTEGERS, MISSES, PROGRAM, SIGNALS, THREADS, by_line, misses_by_line, whole};
use crate::small_folder::with_small_folder;
use lineup_recording::log::{Log, LogEntry, LogPart};
use lineup_recording::{Event, Reader, read_all};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const CACHES: [&str; 6] = ["--cache", "l1i=4K,2,64", "--cache", "l1d=4K,2,64", "--cache", "l2=64K,8,64"];

fn log(program: &Program, more: &[&str]) -> Recorded {
    program.record(&[&["--whole-program", "--log", "lineup.rec"], more].concat())
}

fn replay(folder: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.current_dir(folder).arg("find").args(options);
    command.output().expect("running lineup")
}

/// The counts from replaying the log of a program's run.
fn replayed(program: &Program, caches: &[&str]) -> Recorded {
    let folder = program.folder.path();
    let output = replay(folder, &[&["lineup.rec", "--out", "counts.rec"], caches].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!said.contains("note:"), "{said}");
    let bytes = std::fs::read(folder.join("counts.rec")).expect("the counts");
    Recorded { recording: read_all(&bytes).expect("a recording"), printed: Default::default(), said }
}

/// The number of times that the log has functions of the program begin.
fn executed<const N: usize>(program: &Program, symbols: [&str; N]) -> [u64; N] {
    let listed = Command::new("nm").arg(program.folder.path().join("program")).output().expect("running nm");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let links = symbols.map(|symbol| {
        let line = listed.lines().find(|line| line.ends_with(&format!(" {symbol}"))).expect("the symbol");
        u64::from_str_radix(line.split(' ').next().unwrap_or_default(), 16).expect("an address")
    });
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    let (mut log, mut bias, mut times) = (Log::default(), None, [0; N]);
    for event in Reader::new(bytes.as_slice()).expect("a recording") {
        log.learn(&event);
        match event {
            Event::Image(image) if image.path.ends_with("/program") => bias = bias.or(Some(image.bias)),
            Event::LogPart(part) => {
                let places = links.map(|link| link.wrapping_add(bias.unwrap_or_default()));
                let read = log.each(&part, |entry| {
                    let LogEntry::Executed(execution) = entry else { return };
                    let mut first = 0;
                    for part in &execution.superblock.parts {
                        for (place, times) in places.iter().zip(&mut times) {
                            let is_begun = part.start == *place && execution.instructions.contains(&first);
                            *times += u64::from(is_begun);
                        }
                        first += part.lengths.len();
                    }
                });
                read.expect("a whole part");
            }
            _ => {}
        }
    }
    times
}

/// Loops with unpredictable branches, with calls in them, one of which returns to another place than its call.
const TURNS: &str = r#"
#include <stdio.h>
static unsigned char cells[4096];
__attribute__((noinline)) static unsigned next(unsigned x) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; return x; }
__attribute__((noinline)) static unsigned chosen(unsigned x) { if (x & 1) { cells[x >> 20] += 1; return x >> 3; } return x & 2 ? x * 5 : x + 7; }
__attribute__((noinline)) static unsigned elsewhere(unsigned x) {
    __asm__ volatile("test $16, %0; call 1f; add $3, %0; jmp 3f; 1: jz 2f; lea 4f(%%rip), %%rax; mov %%rax, (%%rsp);"
                     "2: ret; 4: add $5, %0; 3:" : "+r"(x) : : "rax", "cc", "memory");
    return x;
}
int main(void) {
    unsigned x = 2463534242u, sum = 0;
    for (int i = 0; i < 30000; i++) {
        x = next(x);
        if (x & 4) sum += chosen(x);
        if ((x & 24) == 8) continue;
        for (unsigned n = x >> 5 & 7; n; n--) { if (cells[n] > sum) break; sum ^= cells[(sum + n) & 4095]; }
        if (x & 64) sum = elsewhere(sum);
        cells[sum & 4095] = i;
    }
    printf("total %x\n", sum);
    return 0;
}
"#;

#[test]
fn a_log_comes_to_the_counts_of_the_program() {
    let turns = &["-O2", "-mno-red-zone"];
    for (source, more) in [(PROGRAM, &[][..]), (THREADS, &["-Wl,-z,now"][..]), (TURNS, &turns[..])] {
        let program = c(X86_64, source, &[BY_INTEGERS, more].concat());
        let logged = log(&program, &["--env", SAME_LIBRARY]);
        let replayed = replayed(&program, &CACHES);
        let counted = whole(&program, "native", &[]);
        assert_eq!(logged.value("total"), counted.value("total"));
        let (one, other) = (by_line(&replayed, "/program"), by_line(&counted, "/program"));
        assert!(one.len() > 5, "{one:?}");
        assert_eq!(one, other);
        let threads = |recorded: &Recorded| recorded.recording.summary.as_ref().map(|own| own.threads);
        assert_eq!(threads(&logged), threads(&counted));
    }
}

#[test]
fn one_log_is_replayed_in_different_caches() {
    let options = &[BY_INTEGERS, &["-no-pie", "-fno-pie", "-O2"]].concat();
    let program = c(X86_64, MISSES, options);
    let all = [
        ["l1i=1K,2,64", "l1d=4K,2,64", "l2=64K,8,64"],
        ["l1i=2K,4,128", "l1d=8K,4,128", "l2=64K,8,128"],
        ["l1i=512,2,32", "l1d=2K,1,32", "l2=16K,4,32"],
    ];
    let named = all.map(|caches| caches.map(|cache| ["--cache", cache]).concat());
    let options = ["--whole-program", "--engine", "native", "--env", SAME_LIBRARY];
    let counted =
        named.each_ref().map(|named| misses_by_line(&program.record(&[&options[..], named].concat())));
    log(&program, &["--env", SAME_LIBRARY]);
    for (caches, mut counted) in named.iter().zip(counted) {
        let mut replayed = misses_by_line(&replayed(&program, caches));
        for lines in [&mut replayed, &mut counted] {
            // Code before and after it runs elsewhere in between.
            lines.retain(|_, misses| misses.iter().sum::<u64>() > 40);
        }
        assert!(!replayed.is_empty() && replayed.keys().eq(counted.keys()), "{replayed:?} {counted:?}");
        for ((line, one), other) in replayed.iter().zip(counted.values()) {
            let is_alike = one.iter().zip(other).all(|(one, other)| one.abs_diff(*other) <= 3);
            assert!(is_alike, "{caches:?}, line {line}: {one:?} {other:?}");
        }
    }
}

/// Addresses that follow from one word by all kinds of instructions, and by some that are not followed.
const MADE: &str = r#"
unsigned char cells[1 << 16];
#define AT(code) __asm__ volatile("mov %0, %%rax; " code "; and $0xffff, %%eax; movb cells(%%rax), %%cl" \
                                  : : "r"(x) : "rax", "rcx", "rdx", "r15", "cc", "memory");
#define SAME "mov %%eax, %%edx; "
__attribute__((noinline, noclone)) void made(unsigned long x) {
    AT("add $77, %%rax") AT("add $-3, %%eax; shr $20, %%rax") AT("sub $0x12345678, %%rax; shr $30, %%rax")
    AT("inc %%eax; shr $17, %%rax") AT("dec %%rax; shr $17, %%rax") AT("neg %%rax; shr $45, %%rax")
    AT("neg %%eax; shr $24, %%rax") AT("not %%rax; shr $47, %%rax") AT("not %%eax; shr $24, %%rax")
    AT("shl $5, %%rax; shr $34, %%rax") AT("shl $7, %%eax; shr $24, %%rax") AT("shl %%rax") AT("shr $9, %%eax")
    AT("sar $40, %%rax; shr $11, %%rax") AT("sar $20, %%eax; shr $23, %%rax") AT(SAME "add %%rdx, %%rax")
    AT("movslq %%eax, %%rdx; xor %%rdx, %%rax; shr $30, %%rax") AT("cltq; shr $25, %%rax") AT("cwtl; shr $9, %%eax")
    AT("movzbl %%al, %%edx; shl $3, %%edx; sub %%edx, %%eax; shr $18, %%rax") AT("movzwl %%ax, %%eax; imul %%rax, %%rax")
    AT("movsbl %%al, %%eax; shr $4, %%rax") AT("movsbq %%al, %%rax; shr $50, %%rax") AT("movswq %%ax, %%rax; shr $8, %%rax")
    AT("imul $-7, %%eax, %%edx; or %%edx, %%eax; shr $11, %%rax") AT("imul $1000003, %%rax, %%rax; shr $40, %%rax")
    AT("lea 5(%%rax,%%rax,4), %%edx; mov %%rdx, %%rax; shr $20, %%rax") AT("lea -9(,%%rax,8), %%rax; shr $6, %%rax")
    AT("lea 3(%%rax,%%rax,2), %%rax; shr $45, %%rax") AT("lea 3(%%eax), %%edx; mov %%rdx, %%rax; shr $19, %%rax")
    AT(SAME "sub %%rdx, %%rax; shr $32, %%rax") AT("xor %%edx, %%edx; sub %%eax, %%edx; mov %%rdx, %%rax; shr $17, %%rax")
    AT("movzbl %%ah, %%eax") AT("movb $7, %%al") AT("movw $5, %%ax; shr $3, %%rax") AT("xchg %%al, %%ah") AT("bswap %%eax")
    AT("rol $3, %%rax") AT("and $-16, %%rax; shr $2, %%rax") AT("or $-256, %%rax") AT("xor %%rax, %%rax; add $3, %%rax")
    AT("test %%al, %%al; mov $9, %%edx; cmovs %%rdx, %%rax") AT("mov %%rax, %%r15; add $9, %%r15; lea (%%r15,%%rax), %%rax")
    AT("movb %%al, %%cl; movzbl %%cl, %%ecx; shl %%cl, %%rax") AT("movl $1, %%edx; xadd %%rdx, %%rax; add %%rdx, %%rax")
}
int main(void) {
    unsigned long x = 88172645463325252;
    for (int n = 0; n < 300; n++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; made(x); }
    return 0;
}
"#;

/// Computations in registers are not logged: the reader must arrive at the addresses that are recorded otherwise.
#[test]
fn addresses_that_are_worked_out_are_those_of_the_program() {
    let program = c(X86_64, MADE, &["-no-pie", "-fno-pie"]);
    let listed = Command::new("nm").arg(program.folder.path().join("program")).output().expect("running nm");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let line = listed.lines().find(|line| line.ends_with(" cells")).expect("the symbol");
    let cells = u64::from_str_radix(line.split(' ').next().unwrap_or_default(), 16).expect("an address");
    let cells = cells..cells + (1 << 16);
    let recorded = program.record(&["--engine", "native", "--region", "made", "--calls", "1000"]);
    let accesses = recorded.calls().iter().flat_map(|call| &call.accesses).map(|access| access.address);
    let expected: Vec<u64> = accesses.filter(|address| cells.contains(address)).collect();
    assert_eq!(expected.len(), 300 * MADE.matches("AT(\"").count() + 300 * MADE.matches("AT(SAME").count());
    log(&program, &[]);
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    let (mut log, mut found) = (Log::default(), Vec::new());
    for event in Reader::new(bytes.as_slice()).expect("a recording") {
        log.learn(&event);
        let Some(part) = LogPart::of(&event) else { continue };
        let read = log.each(part, |entry| {
            if let LogEntry::Executed(execution) = entry {
                execution
                    .each_access(|_, address, _| found.extend(Some(address).filter(|at| cells.contains(at))));
            }
        });
        read.expect("a whole part");
    }
    assert!(found == expected, "{} of {}", found.len(), expected.len());
    let derived = log.blocks().iter().flat_map(|block| &block.superblock.derived);
    let operations: BTreeSet<String> = derived.map(|derived| format!("{:?}", derived.operation)).collect();
    assert_eq!(operations.len(), 10, "{operations:?}");
}

/// The log of a handler's blocks lies between the records of the block that it interrupted.
#[test]
fn signal_handlers_are_in_the_log_whichever_way_they_end() {
    let program = c(X86_64, SIGNALS, &["-fno-inline", "-DTICKS=3"]);
    let logged = log(&program, &[]);
    let alone = Command::new(program.folder.path().join("program")).output().expect("running it");
    let alone = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(logged.said.starts_with(&alone), "{alone}{}", logged.said);
    let [counts @ .., ticks] = executed(&program, ["returns", "nested", "jumps", "skips", "forks", "ticks"]);
    assert_eq!(counts, [90, 30, 30, 30, 3], "{}", logged.said);
    assert!(ticks >= 3);
    assert!(!logged.said.contains("ended there"), "{}", logged.said);
}

/// Handlers that run at any instruction, while addresses are logged: the work's counts are as without them.
#[test]
fn a_block_that_was_interrupted_is_logged_once_and_whole() {
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <stdio.h>
        #include <sys/time.h>
        static volatile long ticks, own[256];
        static _Thread_local volatile long mine[8];
        static void on_tick(int signal) { ticks++; for (int i = 0; i < 40; i++) own[(ticks + i) & 255] += i; }
        __attribute__((noinline, noclone)) long work(long x) {
            static volatile long cells[512];
            for (int i = 0; i < 200; i++) { x = x * 25214903917 + 11; cells[x >> 20 & 511] += x; mine[i & 7] += cells[i]; }
            return x;
        }
        int main(void) {
            struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
            sigaction(SIGALRM, &action, 0);
            struct itimerval often = {{0, 2000}, {0, 2000}};
            setitimer(ITIMER_REAL, &often, 0);
            long total = 0, rounds = 0;
            while (ticks < 40 || rounds < 500) { total += work(rounds++); }
            setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, 0);
            printf("rounds %lx\nticks %lx\n", rounds, ticks);
        }
    "#;
    let program = c(X86_64, source, BY_INTEGERS);
    let logged = log(&program, &[]);
    assert_eq!(executed(&program, ["work", "on_tick"]), ["rounds", "ticks"].map(|name| logged.value(name)));
    // Each round of the loop stores twice, and all of these accesses must have their real addresses.
    let listed = Command::new("nm").args(["-S", "program"]).current_dir(program.folder.path()).output();
    let listed = String::from_utf8_lossy(&listed.expect("nm").stdout).into_owned();
    let place = |name: &str| {
        let line = listed.lines().find(|line| line.contains(name)).expect("a symbol");
        let mut numbers = line.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap_or_default());
        (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
    };
    let (cells, cells_bytes) = place(" cells");
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    let (mut log, mut image, mut stores) = (Log::default(), None, 0);
    for event in Reader::new(bytes.as_slice()).expect("a recording") {
        log.learn(&event);
        match &event {
            Event::Image(own) if own.path.ends_with("/program") => image = image.or(Some(own.clone())),
            _ => {}
        }
        let (Some(part), Some(image)) = (LogPart::of(&event), &image) else { continue };
        let read = log.each(part, |entry| {
            if let LogEntry::Executed(execution) = entry {
                execution.each_access(|access, address, _| {
                    let within = address.wrapping_sub(image.bias).wrapping_sub(cells) < cells_bytes;
                    stores += u64::from(access.is_store && within);
                });
            }
        });
        read.expect("a whole part");
    }
    assert_eq!(stores, 200 * logged.value("rounds"));
}

#[test]
fn programs_that_are_hard_to_follow_do_the_same_when_all_of_them_is_logged() {
    let program = cpp(X86_64, include_str!("odd.cpp"), &["-rdynamic"]);
    let logged = log(&program, &[]);
    let alone = Command::new(program.folder.path().join("program"))
        .current_dir(program.folder.path())
        .output()
        .expect("running it");
    let alone = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(logged.said.starts_with(&alone), "{alone}{}", logged.said);
    replayed(&program, &CACHES);
}

#[test]
fn signals_threads_forks_libraries_exceptions_and_jumps_at_once_are_logged() {
    let program = cpp(X86_64, include_str!("torture.cpp"), &["-ldl"]);
    let library = "static long t[100];\n\
                   long plug(long x) { for (int i = 0; i < 50; i++) t[(x + i) % 100] += i * x; return t[x % 100]; }\n";
    build(X86_64, program.folder.path(), "plug.c", library, "plug.so", &["-shared", "-fPIC"]);
    let logged = log(&program, &["--env", "TORTURE_SECONDS=2"]);
    assert_eq!(["bad", "ticked", "faulted"].map(|name| logged.value(name)), [0, 1, 1], "{}", logged.said);
    replayed(&program, &CACHES);
}

/// Its log is some megabytes, however well it is packed: the base of its addresses is loaded anew each time.
const LONG: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
static volatile unsigned cells[1 << 16];
static volatile unsigned long state = 88172645463325252;
int main(int argc, char **argv) {
    for (int n = 0; n < 2000000; n++) {
        unsigned long x = state;
        x ^= x << 13; x ^= x >> 7; x ^= x << 17;
        cells[x >> 40 & 0xffff] += n;
        state = x;
    }
    close(open("ready", O_CREAT | O_WRONLY, 0600));
    if (argc > 1 && !strcmp(argv[1], "pause")) pause();
    close(open("done", O_CREAT | O_WRONLY, 0600));
    printf("whole %x\n", 1);
    return 0;
}
"#;

/// The content of the log is replayed, and a message says that the rest is missing.
fn assert_cut_off(folder: &Path, file: &str) -> u64 {
    let output = replay(folder, &[file, "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(said["damage"].is_string(), "{said}");
    said["instructions"].as_u64().expect("a count")
}

#[test]
fn a_log_that_is_cut_off_is_replayed_to_its_last_whole_part() {
    let program = c(X86_64, LONG, &[]);
    log(&program, &[]);
    let folder = program.folder.path();
    let bytes = std::fs::read(folder.join("lineup.rec")).expect("the recording");
    let mut last = 0;
    for share in [30, 60, 99] {
        std::fs::write(folder.join("cut.rec"), &bytes[..bytes.len() * share / 100]).expect("writing");
        let instructions = assert_cut_off(folder, "cut.rec");
        assert!(instructions > last, "{share}: {instructions}");
        last = instructions;
    }
    std::fs::write(folder.join("cut.rec"), &bytes[..200]).expect("writing");
    let output = replay(folder, &["cut.rec"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("lineup: cut.rec"), "{said}");
}

#[test]
fn a_full_disk_ends_the_log_in_good_order_and_the_program_goes_on() {
    let program = c(X86_64, LONG, &[]);
    let folder = program.folder.path();
    lineup_record(folder, &["--whole-program", "--log", "lineup.rec", "--", "./nothing"]);
    let small = folder.join("small");
    std::fs::create_dir(&small).expect("a folder");
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.args(["record", "--whole-program", "--log", "small/x.rec", "--", "./program"]).current_dir(folder);
    let Some(output) = with_small_folder(&small, 1100, &lineup, "cp small/x.rec lineup.rec") else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(folder.join("done").exists(), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("whole 1"), "{said}");
    assert!(assert_cut_off(folder, "lineup.rec") > 1_000_000);
}

#[test]
fn a_log_whose_command_was_killed_is_whole_up_to_there() {
    let program = c(X86_64, LONG, &[]);
    let folder = program.folder.path();
    lineup_record(folder, &["--whole-program", "--log", "lineup.rec", "--", "./nothing"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.args(["record", "--whole-program", "--log", "lineup.rec", "--", "./program", "pause"]);
    let mut child = command.current_dir(folder).stdout(Stdio::null()).spawn().expect("running lineup");
    let begun = Instant::now();
    while !folder.join("ready").exists() {
        assert!(begun.elapsed() < Duration::from_secs(300), "the program never came so far");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("killing lineup");
    child.wait().expect("the end of lineup");
    assert!(assert_cut_off(folder, "lineup.rec") > 1_000_000);
}

#[test]
fn what_has_no_log_is_not_replayed() {
    let program = c(X86_64, THREADS, &[]);
    whole(&program, "native", &[]);
    let output = replay(program.folder.path(), &["lineup.rec"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("record with --whole-program --log"), "{said}");
    let output = lineup_record(
        program.folder.path(),
        &["--whole-program", "--log", "x.rec", "--engine", "qemu", "--", "./program"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("--log is the native engine's"), "{said}");
}
