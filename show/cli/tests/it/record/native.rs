//! The native engine's own behaviour: its exceptions, and its messages.

use super::program::{X86_64, build, c};
use crate::installed;
use lineup_model::access::CallEnd;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn entries_are_as_they_were_when_the_first_calls_are_recorded() {
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        static unsigned char before, after;
        static volatile int over;
        __attribute__((noinline, aligned(4096))) long hot(long x) { return x * 3 + (x >> 2); }
        __attribute__((noinline, aligned(64))) long other(long x) { return x * 5 + (x >> 3); }
        static void *work(void *argument) {
            long sum = 0;
            for (long i = 0; i < 300000; i++) sum += hot(i) + (i % 100 ? 0 : other(i));
            return (void *)sum;
        }
        int main(void) {
            before = *(volatile unsigned char *)hot;
            unsigned char other_before = *(volatile unsigned char *)other;
            pthread_t threads[4];
            for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, work, 0);
            long total = 0;
            for (int i = 0; i < 4; i++) { void *sum; pthread_join(threads[i], &sum); total += (long)sum; }
            after = *(volatile unsigned char *)hot;
            printf("total %lx\njump %x\nleft %x\nkept %x\n", total, before == 0xe9, after != 0xe9,
                other_before == 0xe9 && *(volatile unsigned char *)other == 0xe9);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let regions = ["--region", "hot", "--engine", "native", "--first", "--calls", "50"];
    let alone = program.record(&regions);
    assert_eq!(alone.calls().len(), 50);
    assert_eq!(["jump", "left", "kept"].map(|name| alone.value(name)), [1, 1, 0]);
    assert!(alone.said.contains("ran untouched and were not counted"), "{}", alone.said);
    // Too few calls of the other: its entry, on the same page, stays.
    let both = program.record(&[&regions[..], &["--region", "other", "--warmup", "20000"]].concat());
    assert_eq!(["jump", "left", "kept"].map(|name| both.value(name)), [1, 1, 1]);
    assert_eq!(both.value("total"), alone.value("total"));
}

#[test]
fn processes_and_programs_that_are_started_run_untouched_and_are_told_of() {
    let source = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <signal.h>
        #include <spawn.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/wait.h>
        #include <unistd.h>
        extern char **environ;
        static volatile int over, handled;
        static void handler(int signal) { handled++; }
        __attribute__((noinline)) long hot(long x) {
            char *block = malloc(64 + x % 1000);
            block[x % 64] = x;
            signal(SIGUSR2, x % 2 ? handler : SIG_IGN);
            munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
            long result = block[x % 64] + x;
            free(block);
            return result;
        }
        static int child(void) {
            long sum = 0;
            for (long i = 0; i < 20; i++) sum += hot(i);
            signal(SIGUSR1, handler);
            raise(SIGUSR1);
            return handled == 1 && sum > 0 ? 7 : 8;
        }
        __attribute__((noinline)) int forks(int how) {
            int status = 0;
            pid_t made = fork();
            if (made == 0) _exit(child());
            waitpid(made, &status, 0);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
        }
        static void *work(void *argument) {
            long sum = 0;
            for (long i = 0; !over; i++) sum += hot(i);
            return (void *)sum;
        }
        static void from_handler(int signal) {
            if (fork() == 0) _exit(child());
        }
        __attribute__((noinline)) int interrupted(void) { raise(SIGALRM); return 5; }
        int main(void) {
            pthread_t threads[3];
            for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, 0);
            int good = 0;
            for (int i = 0; i < 60; i++) good += forks(i) == 7;
            signal(SIGALRM, from_handler);
            int status = 0, spawned = 0;
            good += interrupted() == 5 && wait(&status) > 0 && WEXITSTATUS(status) == 7;
            for (int i = 0; i < 5; i++) {
                char *arguments[] = {"true", 0};
                pid_t made;
                if (posix_spawn(&made, "/bin/true", 0, 0, arguments, environ) == 0 && waitpid(made, &status, 0) == made) spawned += status == 0;
            }
            pid_t made = vfork();
            if (made == 0) { execl("/bin/true", "true", (char *)0); _exit(1); }
            waitpid(made, &status, 0);
            spawned += status == 0;
            over = 1;
            for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
            printf("good %x\nspawned %x\n", good, spawned);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let regions = ["hot", "forks", "interrupted"].map(|region| ["--region", region]).concat();
    let recorded = program.record(&[&["--engine", "native", "--calls", "300"], regions.as_slice()].concat());
    assert_eq!(["good", "spawned"].map(|name| recorded.value(name)), [61, 6]);
    assert!(recorded.said.contains("61 processes were forked off"), "{}", recorded.said);
    assert!(
        recorded.said.contains("not recorded: /bin/true, started 6 times: it was started by exec"),
        "{}",
        recorded.said
    );
}

#[test]
fn libraries_that_come_and_go_are_recorded_whenever_they_are_there() {
    let library = |factor: &str| {
        format!(
            "__attribute__((noinline)) long plug(long x) {{ return x * {factor} + 1; }}\n\
                 long use(long x) {{ return plug(x) + plug(x + 1); }}\n"
        )
    };
    let source = r#"
        #include <dlfcn.h>
        #include <stdio.h>
        __attribute__((noinline)) long hot(long (*plug)(long), long x) { return plug(x) + 2; }
        int main(void) {
            long sum = 0, same = 0;
            void *last = 0;
            for (int i = 0; i < 40; i++) {
                void *library = dlopen(i % 2 ? "./one.so" : "./other.so", RTLD_NOW | RTLD_LOCAL);
                if (!library) return 9;
                long (*use)(long) = (long (*)(long))dlsym(library, "use");
                same += last == (void *)use;
                last = (void *)use;
                for (int j = 0; j < 3; j++) sum += hot(use, j);
                dlclose(library);
            }
            printf("sum %lx\nsame %lx\n", sum, same);
        }
    "#;
    let program = c(X86_64, source, &[]);
    for (name, factor) in [("one.so", "3"), ("other.so", "5")] {
        let options = ["-shared", "-fPIC", "-fno-semantic-interposition"];
        build(X86_64, program.folder.path(), &format!("{name}.c"), &library(factor), name, &options);
    }
    let recorded = program.record(&["--engine", "native", "--region", "hot", "--region", "plug"]);
    // Each library 20 times: (2x + 1) f + 2, and 2.
    let once = |factor: u64| (0..3).map(|x| (2 * x + 1) * factor + 4).sum::<u64>();
    assert_eq!(recorded.value("sum"), 20 * (once(3) + once(5)));
    assert!(recorded.value("same") > 0, "the libraries take each other's place");
    let calls = recorded.calls();
    let of = |region| calls.iter().filter(|call| call.region.0 == region).count();
    assert_eq!((of(0), of(1)), (120, 240));
    assert!(calls.iter().all(|call| call.end == CallEnd::Returned && call.missed_blocks == 0));
    // A name that no file has is refused when the program has ended.
    let refused = super::program::lineup_record(
        program.folder.path(),
        &["--engine", "native", "--region", "nowhere_at_all", "--", "./program"],
    );
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nowhere_at_all"));
}

#[test]
fn more_threads_than_the_log_has_parts_are_recorded() {
    let source = r#"
        #include <pthread.h>
        #include <stdio.h>
        static pthread_barrier_t all;
        __attribute__((noinline)) long hot(long x) { return x * 3; }
        static void *work(void *argument) {
            long sum = hot((long)argument);
            pthread_barrier_wait(&all);
            for (long i = 0; i < 5; i++) sum += hot(i);
            pthread_barrier_wait(&all);
            return (void *)sum;
        }
        int main(void) {
            enum { MANY = 200 };
            static pthread_t threads[MANY];
            pthread_attr_t small;
            pthread_attr_init(&small);
            pthread_attr_setstacksize(&small, 1 << 16);
            pthread_barrier_init(&all, 0, MANY);
            for (long i = 0; i < MANY; i++) pthread_create(&threads[i], &small, work, (void *)i);
            long total = 0;
            for (int i = 0; i < MANY; i++) { void *sum; pthread_join(threads[i], &sum); total += (long)sum; }
            printf("total %lx\n", total);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let recorded = program.record(&["--engine", "native", "--region", "hot"]);
    assert_eq!(recorded.calls().len(), 1200, "{}", recorded.said);
    assert_eq!(recorded.value("total"), 3 * (199 * 100 + 200 * 10));
}

#[test]
fn a_program_goes_on_when_its_log_is_not_read() {
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        #include <unistd.h>
        __attribute__((noinline)) long hot(long x) { volatile char b[64]; for (int i = 0; i < 64; i++) b[i] = x; return b[x & 63]; }
        int main(void) {
            long sum = 0, made = 0;
            for (; made < 1000; made++) sum += hot(made);
            close(open("ready", O_CREAT | O_WRONLY, 0600));
            while (access("stopped", F_OK)) sum += hot(made++);
            for (int i = 0; i < 2000000; i++) sum += hot(i);
            close(open("over", O_CREAT | O_WRONLY, 0600));
            return sum == 0;
        }
    "#;
    let program = c(X86_64, source, &[]);
    let folder = program.folder.path();
    // Builds the recorder.
    super::program::lineup_record(folder, &["--region", "hot", "--", "./nothing"]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.args(["record", "--engine", "native", "--region", "hot", "--", "./program"]);
    let child = command.current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.expect("running lineup");
    let wait_for = |name: &str| {
        let begun = Instant::now();
        while !folder.join(name).exists() {
            assert!(begun.elapsed() < Duration::from_secs(300), "{name}: the program never came so far");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("ready");
    let lineup = Pid::from_child(&child);
    kill_process(lineup, Signal::STOP).expect("a signal to lineup");
    std::fs::write(folder.join("stopped"), "").expect("a file");
    wait_for("over");
    kill_process(lineup, Signal::CONT).expect("a signal to lineup");
    let output = child.wait_with_output().expect("the end of lineup");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("recording ended before the program, and later calls were not counted"), "{said}");
    assert!(output.status.success());
}

/// An emulator that runs no program with the recorder in it.
const BROKEN_EMULATOR: &str = "#!/bin/sh\ncase \"$*\" in *-plugin*) exit 12;; esac\nexec \"$REAL\" \"$@\"\n";

#[test]
fn a_native_recording_stays_where_the_emulator_cannot_complete_it() {
    let source = "#include <sys/wait.h>\n#include <unistd.h>\nvolatile int cell;\n\
                  __attribute__((noinline)) void region(int n) { cell = n; }\n\
                  int main(void) { if (!fork()) { region(9); _exit(0); } wait(0); region(1); region(2); }\n";
    let program = c(X86_64, source, &[]);
    let real = lineup_study::recorder::on_path(Path::new("qemu-x86_64")).expect("the emulator");
    let broken = program.folder.path().join("qemu-x86_64");
    std::fs::write(&broken, BROKEN_EMULATOR).expect("a script");
    std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o755)).expect("sets");
    let path = std::env::var("PATH").expect("a path");
    let output = installed::lineup()
        .current_dir(program.folder.path())
        .env("PATH", format!("{}:{path}", program.folder.path().display()))
        .env("REAL", real)
        .args(["record", "--region", "region", "--", "./program"])
        .output()
        .expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("processes that were forked off: 1"), "{said}");
    assert!(said.contains("and neither does the emulator"), "{said}");
    let bytes = std::fs::read(program.folder.path().join("lineup.rec")).expect("the recording");
    assert_eq!(lineup_recording::read_all(&bytes).expect("whole").calls.len(), 2);
    assert!(!program.folder.path().join("lineup.rec.emulated").exists());
}

#[test]
fn what_the_native_engine_would_leave_out_goes_to_the_emulator_with_a_reason() {
    lineup_fixtures::require_plugins("qemu-x86_64");
    if std::env::var_os("LINEUP_TEST_ENGINE").is_some() {
        return;
    }
    let source = r#"
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        volatile int cell;
        __attribute__((noinline)) void region(int n) { cell = n; }
        int main(void) {
            printf("once 1\n");
            fflush(stdout);
            if (FORKS && !fork()) { region(9); _exit(0); }
            wait(0);
            for (int n = 0; n < 3; n++) region(n);
        }
    "#;
    let calls = |options: &[&str], more: &[&str]| {
        let program = c(X86_64, source, options);
        let recorded = program.record(&[&["--region", "region"], more].concat());
        assert_eq!(recorded.said.matches("once 1").count(), 1, "{}", recorded.said);
        (recorded.calls().len(), recorded.said)
    };
    let by = |said: &str| (said.contains("by native engine"), said.contains("recorded under the emulator: "));
    let (plain, said) = calls(&["-DFORKS=0"], &[]);
    assert_eq!((plain, by(&said)), (3, (true, false)), "{said}");
    let (linked, said) = calls(&["-DFORKS=0", "-static"], &[]);
    assert_eq!((linked, by(&said)), (3, (true, false)), "{said}");
    let (forked, said) = calls(&["-DFORKS=1"], &[]);
    assert_eq!((forked, by(&said)), (4, (false, true)), "{said}");
    assert!(said.contains("calls of region in processes that were forked off: 1"), "{said}");
    let (kept, said) = calls(&["-DFORKS=1"], &["--engine", "native"]);
    assert_eq!((kept, by(&said)), (3, (true, false)), "{said}");
    assert!(said.contains("calls of these functions there, not recorded: 1"), "{said}");
    // Nothing of the program runs when a function cannot be watched: its own code jumps to its beginning.
    let turns = "extern void region(int);\n__asm__(\".globl region\\n.type region,@function\\n\
                 region: dec %edi\\njne region\\nret\\n.size region,.-region\\n\");\n\
                 #include <stdio.h>\nint main(void) { printf(\"once 1\\n\"); region(1); region(1); }\n";
    let program = c(X86_64, turns, &[]);
    let refused = super::program::lineup_record(
        program.folder.path(),
        &["--engine", "native", "--region", "region", "--", "./program"],
    );
    assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0));
    let recorded = program.record(&["--region", "region"]);
    assert_eq!((recorded.calls().len(), by(&recorded.said)), (2, (false, true)), "{}", recorded.said);
}

#[test]
fn a_signal_to_a_child_that_borrows_memory_is_handled_there_and_blocks_nothing() {
    let source = r#"
        #define _GNU_SOURCE
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile int handled;
        static void handler(int signal) { handled++; }
        __attribute__((noinline)) int starts(int n) {
            int status = 0;
            pid_t made = vfork();
            if (made == 0) {
                syscall(SYS_kill, syscall(SYS_getpid), SIGUSR1);
                execl("/bin/sh", "sh", "-c", "test $(grep SigBlk /proc/self/status | cut -f 2) = 0000000000000000", (char *)0);
                _exit(99);
            }
            waitpid(made, &status, 0);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
        }
        int main(void) {
            signal(SIGUSR1, handler);
            int bad = 0;
            for (int i = 0; i < 10; i++) bad += starts(i) != 0;
            sigset_t blocked;
            sigprocmask(SIG_BLOCK, 0, &blocked);
            raise(SIGUSR1);
            printf("bad %x\nhandled %x\nblocked %x\n", bad, handled, sigismember(&blocked, SIGALRM));
        }
    "#;
    let program = c(X86_64, source, &[]);
    let recorded = program.record(&["--engine", "native", "--region", "starts"]);
    // The children share the counter with their parent.
    assert_eq!(
        ["bad", "handled", "blocked"].map(|name| recorded.value(name)),
        [0, 11, 0],
        "{}",
        recorded.said
    );
    assert_eq!(recorded.calls().len(), 10);
}

#[test]
fn threads_tell_the_time_at_each_instruction_that_synchronises_and_around_system_calls() {
    let source = r#"
        #include <pthread.h>
        #include <sched.h>
        #include <signal.h>
        #include <sys/time.h>
        #include <unistd.h>
        static _Atomic long turns[2], handled;
        static void handler(int signal) { handled++; }
        __attribute__((noinline)) void take_turns(long own) {
            for (long i = 0; i < 2000; i++) {
                turns[own]++;
                while (turns[!own] < turns[own] - 1) sched_yield();
            }
            // A handler would end the sleep.
            sigset_t alarm;
            sigemptyset(&alarm);
            sigaddset(&alarm, SIGALRM);
            pthread_sigmask(SIG_BLOCK, &alarm, 0);
            usleep(20000);
            pthread_sigmask(SIG_UNBLOCK, &alarm, 0);
            turns[own]++;
        }
        static void *work(void *own) { take_turns((long)own); return 0; }
        int main(void) {
            signal(SIGALRM, handler);
            struct itimerval often = {{0, 200}, {0, 200}};
            setitimer(ITIMER_REAL, &often, 0);
            pthread_t threads[2];
            for (long i = 0; i < 2; i++) pthread_create(&threads[i], 0, work, (void *)i);
            for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
            return turns[0] != 2001 || turns[1] != 2001;
        }
    "#;
    let program = c(X86_64, source, &[]);
    let recorded = program.record(&["--region", "take_turns", "--engine", "native"]);
    let calls = recorded.calls();
    assert_eq!(calls.len(), 2);
    for call in calls {
        let times = &call.times;
        assert!(times.len() > 2000 && times[0].access == 0, "one at each addition: {}", times.len());
        assert!(times.is_sorted_by(|a, b| a.access <= b.access && a.cycles <= b.cycles));
        // 20 ms have millions of cycles on every machine; the thread slept inside the call.
        let waits = times.windows(2).filter(|pair| pair[0].access == pair[1].access);
        let longest = waits.map(|pair| pair[1].cycles - pair[0].cycles).max();
        assert!(longest > Some(1_000_000), "{longest:?}");
    }
    let span = |call: &lineup_model::access::Call| {
        call.times.first().map(|time| time.cycles).zip(call.times.last().map(|time| time.cycles))
    };
    let [Some(first), Some(second)] = [span(&calls[0]), span(&calls[1])] else { panic!("both have times") };
    assert!(first.0 < second.1 && second.0 < first.1, "they ran together");
}
