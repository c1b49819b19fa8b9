//! Programs that forbid themselves system calls (seccomp): they do the same as alone.

use super::program::{Program, X86_64, c};
use crate::installed::lineup;
use serde_json::Value;
use std::process::{Command, Output};

/// Calls `parse` before it limits itself, and after. The argument is the kind of limit.
const SOURCE: &str = r#"
    #define _GNU_SOURCE
    #include <linux/audit.h>
    #include <linux/filter.h>
    #include <linux/seccomp.h>
    #include <pthread.h>
    #include <signal.h>
    #include <stddef.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/prctl.h>
    #include <sys/syscall.h>
    #include <unistd.h>
    struct message { int id, length; long sum; char text[48]; };
    static struct message queue[256];
    __attribute__((noinline)) long parse(struct message *m) {
        for (int i = 0; i < m->length; i++) m->sum += m->text[i] + m->id;
        return m->sum;
    }
    #define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    static volatile sig_atomic_t taken;
    static void take(int number) { taken += number; }
    static void limit(const char *how) {
        unsigned other = strstr(how, "errno") ? SECCOMP_RET_ERRNO | 1 : SECCOMP_RET_KILL_PROCESS;
        struct sock_filter few[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_exit), ALLOW(SYS_read), ALLOW(SYS_newfstatat),
            ALLOW(SYS_brk), ALLOW(SYS_getrandom), ALLOW(SYS_futex), ALLOW(SYS_rt_sigreturn),
            BPF_STMT(BPF_RET | BPF_K, other),
        };
        struct sock_filter most[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1), BPF_STMT(BPF_RET | BPF_K, other),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { sizeof few / sizeof *few, few };
        if (strstr(how, "most")) program = (struct sock_fprog){ sizeof most / sizeof *most, most };
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if (strstr(how, "strict"))
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
        else if (strstr(how, "prctl"))
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        else
            syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, strstr(how, "all") ? SECCOMP_FILTER_FLAG_TSYNC : 0, &program);
    }
    static long work(void) {
        long sum = 0;
        for (int k = 0; k < 100; k++)
            for (int i = 0; i < 256; i++) sum += parse(&queue[i]);
        return sum;
    }
    static volatile int has_begun, may_work, is_done;
    static void *beside(void *sum) {
        has_begun = 1;
        while (!may_work) __builtin_ia32_pause();
        *(long *)sum = work();
        is_done = 1;
        for (;;) __builtin_ia32_pause();
    }
    int main(int count, char **words) {
        const char *how = count > 1 ? words[1] : "";
        for (int i = 0; i < 256; i++) queue[i] = (struct message){ i, i % 48, 0, "text" };
        long sum = work(), other = 0;
        if (strstr(how, "handles")) {
            signal(SIGUSR1, take);
            raise(SIGUSR1);
        }
        pthread_t thread;
        if (strstr(how, "all")) {
            pthread_create(&thread, 0, beside, &other);
            while (!has_begun) __builtin_ia32_pause();
        }
        limit(how);
        may_work = 1;
        if (strstr(how, "all"))
            while (!is_done) __builtin_ia32_pause();
        sum += work();
        char text[64];
        int length = snprintf(text, sizeof text, "sum %d\n", count > 1 && sum != 0);
        write(1, text, length);
        if (strstr(how, "strict")) syscall(SYS_exit, 0);
        _exit(0);
    }
"#;

const HOWS: [&str; 8] = ["kill", "errno", "prctl", "most", "strict", "all", "handles", "prctl handles errno"];
const CALLS: u64 = 51_200;

fn run(program: &Program, words: &[&str], how: &str) -> (Output, String) {
    let mut command = lineup();
    command.current_dir(program.folder.path()).args(words).args(["--", "./program", how]);
    let output = command.output().expect("lineup runs");
    let said = [&output.stdout[..], &output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output, said)
}

fn assert_ends(program: &Program, words: &[&str], how: &str) -> String {
    let alone = Command::new(program.folder.path().join("program")).arg(how).output().expect("it runs");
    assert!(alone.status.success() && alone.stdout == b"sum 1\n", "{how}: {alone:?}");
    let (output, said) = run(program, words, how);
    assert!(output.status.success(), "{words:?} {how}: {said}");
    assert!(said.lines().any(|line| line == "sum 1"), "{words:?} {how}: {said}");
    said
}

#[test]
fn a_program_that_forbids_itself_system_calls_does_as_alone() {
    let program = c(X86_64, SOURCE, &[]);
    let record = ["record", "--engine", "native", "--region", "parse", "--calls", "100", "--out", "r.rec"];
    for how in HOWS {
        let said = assert_ends(&program, &record, how);
        let forbids = said.contains("seccomp filter forbids")
            || said.contains("forbids itself the processor's counter");
        assert_eq!(forbids, how != "most", "{how}: {said}");
        assert_ends(&program, &["record", "--whole-program", "--out", "w.rec"], how);
    }
    assert_ends(&program, &["find", "--no-clock"], "kill");
}

#[test]
fn all_calls_are_timed_in_a_program_that_forbids_itself_system_calls() {
    let program = c(X86_64, SOURCE, &[]);
    for how in HOWS {
        let words = ["time", "--json", "--region", "parse"];
        let (output, said) = run(&program, &words, how);
        assert!(output.status.success(), "{how}: {said}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let calls = report["regions"][0]["calls"].as_u64().expect("calls");
        // The other thread's first call may come too late to be timed.
        // Strict mode forbids the counter of cycles as well.
        assert_eq!(calls, if how == "strict" { CALLS / 2 } else { CALLS }, "{how}: {said}");
    }
}

#[test]
fn a_program_that_dies_while_it_is_recorded_is_no_success() {
    let source = r#"
        #include <signal.h>
        #include <stdio.h>
        static int cells[100];
        __attribute__((noinline)) int step(int x) { return cells[x % 100]++; }
        int main(void) {
            int sum = 0;
            for (int x = 0; x < 1000; x++) sum += step(x);
            printf("sum %d\n", sum != 0);
            fflush(stdout);
            raise(SIGSYS);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let commands: [&[&str]; 4] = [
        &["find", "--no-clock"],
        &["find", "--no-clock", "--json"],
        &["record", "--engine", "native", "--region", "step", "--out", "r.rec"],
        &["time", "--region", "step"],
    ];
    for words in commands {
        let (output, said) = run(&program, words, "");
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("was ended by SIGSYS"), "{words:?}: {said}");
    }
}

#[test]
fn recording_ends_before_a_program_gives_a_thread_another_base() {
    let source = r#"
        #define _GNU_SOURCE
        #include <asm/prctl.h>
        #include <stdio.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int cells[100];
        __attribute__((noinline)) int step(int x) { return cells[x % 100]++; }
        int main(void) {
            long sum = 0;
            unsigned long base = 0;
            for (int x = 0; x < 1000; x++) sum += step(x);
            syscall(SYS_arch_prctl, ARCH_GET_FS, &base);
            syscall(SYS_arch_prctl, ARCH_SET_FS, base);
            for (int x = 0; x < 1000; x++) sum += step(x);
            printf("sum %d\n", sum > 0);
        }
    "#;
    let program = c(X86_64, source, &[]);
    let commands: [&[&str]; 3] = [
        &["record", "--engine", "native", "--region", "step", "--out", "r.rec"],
        &["record", "--whole-program", "--out", "w.rec"],
        &["time", "--region", "step"],
    ];
    for words in commands {
        let (output, said) = run(&program, words, "");
        assert!(output.status.success(), "{words:?}: {said}");
        assert!(said.lines().any(|line| line == "sum 1"), "{words:?}: {said}");
        assert!(said.contains("sets the base of a thread by itself"), "{words:?}: {said}");
    }
}

#[test]
fn a_strict_mode_before_every_call_is_named_as_the_reason() {
    let source = r#"
        #include <linux/seccomp.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static int cells[100];
        __attribute__((noinline)) int parse(int x) { return cells[x % 100]++; }
        int main(void) {
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
            for (int x = 0; x < 1000; x++) parse(x);
            syscall(SYS_exit, 0);
        }
    "#;
    let program = c(X86_64, source, &[]);
    for words in [&["record", "--engine", "native", "--region", "parse"][..], &["time", "--region", "parse"]]
    {
        let (output, said) = run(&program, words, "");
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("forbids itself the processor's counter"), "{words:?}: {said}");
        assert!(!said.contains("do its arguments lead there"), "{words:?}: {said}");
    }
}
