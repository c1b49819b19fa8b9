//! Functions with room for one byte alone: a trap stands there, and neither the recording nor the program differs.

use super::attached::{Running, lineup, report};
use super::engines::assert_engines_agree;
use super::program::{Program, Recorded, X86_64, build, c, lineup_record};
use super::times::{alone, time};
use lineup_model::access::CallEnd;
use std::io::Read;
use std::process::Command;

const FUNCTIONS: [&str; 7] = ["nothing", "same", "loads", "turns", "through", "member", "onward"];

/// Compiles a program that includes the functions.
fn program(source: &str) -> Program {
    program_with(source, &[])
}

fn program_with(source: &str, options: &[&str]) -> Program {
    let source = source.replace("#include \"traps.h\"", include_str!("traps.h"));
    c(X86_64, &source, options)
}

fn named(functions: &[&'static str]) -> Vec<&'static str> {
    functions.iter().flat_map(|function| ["--region", function]).collect()
}

/// Calls of each function.
fn seen(recorded: &Recorded) -> Vec<u64> {
    let summary = recorded.recording.summary.as_ref().expect("a summary");
    summary.regions.iter().map(|region| region.seen).collect()
}

fn notes(recorded: &Recorded) -> Vec<String> {
    recorded.recording.summary.as_ref().expect("a summary").notes.clone()
}

const PLAIN: &str = r#"
    #include "traps.h"
    int main(void) {
        long sum = 0;
        for (int x = 1; x <= 40; x++) sum += all(x);
        for (int x = 0; x < 16; x++) cells[x] = x;
        for (int x = 1; x <= 40; x++) sum += all(x);
        printf("sum %lx\n", sum);
    }
"#;

#[test]
fn functions_without_room_for_a_jump_are_recorded_as_by_the_emulator() {
    let program = program(PLAIN);
    assert_engines_agree(&program, &named(&FUNCTIONS));
    let recorded = program.record(&[&["--engine", "native"][..], &named(&FUNCTIONS)].concat());
    let of_traps = notes(&recorded).iter().filter(|note| note.contains("meets a trap")).count();
    assert_eq!(of_traps, FUNCTIONS.len(), "{:?}", notes(&recorded));
}

#[test]
fn calls_that_are_not_recorded_go_on_behind_the_trap_and_none_is_met_when_it_was_taken_out() {
    let program = program(PLAIN);
    for calls in ["1", "7", "1000"] {
        let recorded =
            program.record(&[&["--engine", "native", "--calls", calls][..], &named(&FUNCTIONS)].concat());
        assert_eq!(recorded.value("sum"), 0);
        assert_eq!(seen(&recorded), [80, 160, 80, 80, 80, 80, 80], "{calls}");
        assert!(recorded.ends().iter().all(|end| *end == CallEnd::Returned));
    }
    let first = ["--engine", "native", "--calls", "7", "--first"];
    let recorded = program.record(&[&first[..], &named(&FUNCTIONS)].concat());
    assert_eq!(recorded.value("sum"), 0);
    let untouched = notes(&recorded).iter().filter(|note| note.contains("ran untouched")).count();
    assert_eq!(untouched, FUNCTIONS.len(), "{:?}", notes(&recorded));
}

/// Handlers of its own, masks, threads, processes, coroutines.
#[test]
fn a_program_that_uses_sigtrap_does_as_it_does_alone() {
    does_as_alone(&program(include_str!("traps.c")));
}

#[test]
fn so_does_one_that_is_linked_statically() {
    does_as_alone(&program_with(include_str!("traps.c"), &["-static"]));
}

fn does_as_alone(program: &Program) {
    let alone = alone(program);
    assert!(alone.contains("wrong 0\n") && alone.contains("children 7 105 105 7 105 105 105 0\n"), "{alone}");
    for calls in ["1000000", "50"] {
        let options = ["--engine", "native", "--calls", calls];
        let recorded = program.record(&[&options[..], &named(&FUNCTIONS)].concat());
        assert!(recorded.said.starts_with(&alone), "{alone}{}", recorded.said);
        let seen = seen(&recorded);
        assert!(seen[0] > 4 * 20 * 20 && seen[1] == 2 * seen[0], "{seen:?}");
        assert!(seen[2..].iter().all(|calls| *calls == seen[0]), "{seen:?}");
    }
    let first = ["--engine", "native", "--calls", "50", "--first"];
    let recorded = program.record(&[&first[..], &named(&FUNCTIONS)].concat());
    assert!(recorded.said.starts_with(&alone), "{alone}{}", recorded.said);
}

/// System calls in it that set masks are found then, too.
#[test]
fn a_trap_may_stand_in_a_library_that_is_loaded_while_there_is_one_thread() {
    let library = r#"
        #include "traps.h"
        #include <signal.h>
        __attribute__((noinline)) static long mask(unsigned long *set, unsigned long *old) {
            register long size __asm__("r10") = 8;
            long result = 14;
            __asm__ volatile("syscall" : "+a"(result) : "D"(SIG_SETMASK), "S"(set), "d"(old), "r"(size) : "rcx", "r11", "memory");
            return result;
        }
        int blocked(int x) {
            unsigned long everything = ~0ul, old;
            mask(&everything, &old);
            int sum = same(x);
            mask(&old, 0);
            return sum;
        }
    "#;
    let host = r#"
        #include <dlfcn.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        static void *sleeps(void *nothing) { for (;;) pause(); }
        int main(void) {
            pthread_t thread;
            if (getenv("THREADS")) pthread_create(&thread, 0, sleeps, 0);
            long sum = 0;
            for (int round = 0; round < 3; round++) {
                void *handle = dlopen("./plug.so", RTLD_NOW);
                int (*blocked)(int) = (int (*)(int))dlsym(handle, "blocked");
                for (int x = 0; x < 10; x++) sum += blocked(x);
                dlclose(handle);
            }
            printf("sum %lx\n", sum);
        }
    "#;
    let program = c(X86_64, host, &[]);
    let library = library.replace("#include \"traps.h\"", include_str!("traps.h"));
    build(X86_64, program.folder.path(), "plug.c", &library, "plug.so", &["-shared", "-fPIC"]);
    for calls in ["3", "100"] {
        let recorded = program.record(&["--engine", "native", "--region", "same", "--calls", calls]);
        assert_eq!((recorded.value("sum"), seen(&recorded)), (135, vec![30]));
    }
    let options = ["--engine", "native", "--env", "THREADS=1", "--region", "same", "--", "./program"];
    let output = lineup_record(program.folder.path(), &options);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && said.contains("when the program had several threads"),
        "{said}"
    );
}

/// One of its threads blocks SIGTRAP, and none dies of a trap or blocks something else afterwards.
const SERVES: &str = r#"
    #include "traps.h"
    #include <pthread.h>
    #include <signal.h>
    #include <unistd.h>
    static volatile int is_over, wrong, trapped, begun;
    static void on_trap(int signal) { (void)signal; trapped++; all(3); }
    static void *serves(void *blocks) {
        sigset_t set, now;
        sigfillset(&set);
        if (blocks) pthread_sigmask(SIG_SETMASK, &set, 0);
        __sync_fetch_and_add(&begun, 1);
        for (int x = 1; !is_over; x = x % 1000 + 1) if (all(x)) wrong++;
        pthread_sigmask(SIG_SETMASK, 0, &now);
        if (sigismember(&now, SIGTRAP) != (blocks != 0) || sigismember(&now, SIGUSR1) != (blocks != 0)) wrong++;
        return 0;
    }
    int main(void) {
        struct sigaction action = {0}, now;
        action.sa_handler = on_trap;
        action.sa_flags = SA_RESTART;
        sigaction(SIGTRAP, &action, 0);
        pthread_t threads[3];
        for (long n = 0; n < 3; n++) pthread_create(&threads[n], 0, serves, (void *)(n & 1));
        while (begun < 3) usleep(1000);
        puts("runs"); fflush(stdout);
        getchar();
        is_over = 1;
        for (int n = 0; n < 3; n++) pthread_join(threads[n], 0);
        sigaction(SIGTRAP, 0, &now);
        if (now.sa_handler != on_trap || now.sa_flags & SA_SIGINFO) wrong++;
        int before = trapped;
        raise(SIGTRAP);
        if (trapped != before + 1) wrong++;
        if (*(unsigned char *)nothing != 0xc3 || *(unsigned char *)turns != 0x31) wrong++;
        printf("wrong %d\n", wrong);
    }
"#;

/// The signals that the threads of a process block.
fn blocked(process: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let status = |path: std::path::PathBuf| std::fs::read_to_string(path.join("status")).expect("its status");
    let mut all: Vec<String> = threads
        .map(|thread| status(thread.expect("a thread").path()))
        .map(|status| status.lines().find(|line| line.starts_with("SigBlk")).expect("a mask").to_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn a_process_that_was_attached_to_handles_and_blocks_sigtrap_as_before() {
    let program = program(SERVES);
    let folder = program.folder.path();
    let mut running = Running::start(&mut Command::new(folder.join("program")));
    let mut line = [0; 5];
    running.0.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("its first line");
    let process = running.0.id();
    let before = blocked(process);
    assert_eq!(before.len(), 4);
    for round in 0..6 {
        let how: [&[&str]; 2] =
            [&["--calls", "20", "--first"], &["--calls-per-second", "300", "--max-seconds", "0.5"]];
        let options = [&named(&["nothing", "turns", "member"]), how[round % 2]].concat();
        let sends = Command::new("sh").args(["-c", &format!("sleep 0.3; kill -TRAP {process}")]).spawn();
        let report = report(&lineup(folder, "record", process, &options));
        assert!(report["regions"][1]["seen"].as_u64() > Some(0), "{report}");
        assert!(report["notes"].to_string().contains("meets a trap"), "{report}");
        sends.expect("a shell").wait().expect("its end");
        assert_eq!(blocked(process), before);
        assert!(!running.maps().contains("lineup"), "{}", running.maps());
    }
    let printed = running.ended();
    assert!(printed.contains("wrong 0\n"), "{printed}");
}

/// A trap takes longer than the timed call, and its effects on the caches are part of the call.
#[test]
fn calls_that_only_a_trap_would_tell_are_not_timed_unless_the_function_can_be_moved() {
    let program = program(PLAIN);
    let timed = time(&program, &["turns"], &[]);
    assert!(timed.status.success(), "{}", String::from_utf8_lossy(&timed.stderr));
    let output = time(&program, &["same"], &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && said.contains("shorter than the five bytes of a jump"),
        "{said}"
    );
}
