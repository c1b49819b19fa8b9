//! `lineup find --pid`: a running process is looked at in bursts, and continues as if nothing had happened.
//!
//! `LINEUP_BURST_SECONDS=N` sets for how long the program that checks itself is looked at.

use super::attached::{Running, lineup, report};
use super::program::{Program, X86_64, c};
use crate::schema;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output};

/// A program that has printed its first line.
struct Begun {
    program: Program,
    running: Running,
    output: BufReader<std::process::ChildStdout>,
}

impl Begun {
    fn new(source: &str) -> Begun {
        let program = c(X86_64, source, &["-lm"]);
        let mut running = Running::start(&mut Command::new(program.folder.path().join("program")));
        let mut output = BufReader::new(running.0.stdout.take().expect("a pipe"));
        output.read_line(&mut String::new()).expect("its first line");
        Begun { program, running, output }
    }

    fn find(&self, options: &[&str]) -> Output {
        lineup(self.program.folder.path(), "find", self.running.0.id(), options)
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.running.0.id()))
            .expect("a file of the process's")
    }

    fn names(&self, folder: &str) -> Vec<String> {
        let all = std::fs::read_dir(format!("/proc/{}/{folder}", self.running.0.id())).expect("a folder");
        let mut all: Vec<String> =
            all.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        all.sort();
        all
    }

    /// The traces that an attachment may leave: mappings, signals, threads, open files.
    fn traces(&self) -> (String, Vec<String>, Vec<String>, Vec<String>) {
        let status = self.file("status");
        let names = ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt", "TracerPid"];
        let signals = status.lines().filter(|line| names.iter().any(|name| line.starts_with(name)));
        (self.file("maps"), signals.map(str::to_owned).collect(), self.names("task"), self.names("fd"))
    }

    fn ended(mut self) -> String {
        self.running.0.stdin.take().expect("a pipe").write_all(b"\n").expect("telling it to end");
        let mut printed = String::new();
        self.output.read_to_string(&mut printed).expect("its output");
        assert!(self.running.0.wait().expect("its end").success(), "{printed}");
        printed
    }
}

fn number(report: &Value, name: &str) -> f64 {
    report["bursts"][name].as_f64().unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn results_stay_right_under_bursts() {
    let begun = Begun::new(include_str!("bursts.c"));
    let seconds = std::env::var("LINEUP_BURST_SECONDS").unwrap_or_else(|_| "6".into());
    let output = begun.find(&["--seconds", &seconds, "--overhead", "50", "--windows", "1"]);
    let report = report(&output);
    assert_eq!(schema::faults(&report), Vec::<String>::new());
    assert!(number(&report, "bursts") >= 20.0, "{}", report["bursts"]);
    assert!(number(&report, "threads") >= 2.0, "{}", report["bursts"]);
    // The last burst may be longer than those before it.
    assert!(number(&report, "cost") < 0.6, "{}", report["bursts"]);
    assert!(!begun.file("maps").contains("lineup"), "{}", begun.file("maps"));
    let printed = begun.ended();
    eprintln!("{} bursts: {printed}", number(&report, "bursts"));
    assert!(printed.starts_with("right"), "{printed}");
}

/// Walks a list of 20,000 nodes of 128 bytes, of which it needs two words, and a table that stays in the first level.
const LIST: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    struct node { struct node *next; char text[112]; long key; };
    struct entry { long value; } entries[64];
    volatile long sum;
    __attribute__((noinline)) void list(struct node *all) { for (; all; all = all->next) sum += all->key; }
    __attribute__((noinline)) void table(void) { for (int i = 0; i < 20000; i++) sum += entries[i & 63].value; }
    int main(void)
    {
        struct node *all = NULL;
        for (long i = 0; i < 20000; i++) {
            struct node *node = malloc(sizeof *node);
            node->next = all;
            node->key = i;
            all = node;
        }
        puts("runs");
        fflush(stdout);
        for (;;) { list(all); table(); }
    }
"#;

#[test]
fn data_is_named_and_nothing_is_left_behind() {
    let begun = Begun::new(LIST);
    let before = begun.traces();
    let report = report(&begun.find(&["--seconds", "5", "--overhead", "20"]));
    assert_eq!(begun.traces(), before);
    assert_eq!(schema::faults(&report), Vec::<String>::new());
    let owner = |name: &str| {
        let all = report["bursts"]["owners"].as_array().expect("owners");
        all.iter().find(|owner| owner["name"] == name).cloned().unwrap_or_default()
    };
    let node = owner("node");
    let of = |name: &str| node[name].as_f64().unwrap_or_else(|| panic!("{name}: {}", report["bursts"]));
    assert!(of("share") > 0.8 && of("low") <= of("share") && of("share") <= of("high"), "{node}");
    assert!(owner("entries")["share"].as_f64().unwrap_or(0.0) < 0.05, "{}", report["bursts"]["owners"]);
    assert_eq!(report["owners"][0]["name"], "node", "{}", report["owners"]);
    let finding = &report["findings"][0];
    assert_eq!(finding["subject"], "node", "{}", report["findings"]);
    let stalls =
        ["stall_cycles_if_hits", "stall_cycles", "stall_cycles_if_misses"].map(|name| number(&report, name));
    assert!(stalls.is_sorted(), "{stalls:?}");
}

#[test]
fn a_process_that_ends_or_becomes_another_program_is_let_go() {
    let source = |last: &str| {
        format!(
            r#"
            #include <stdio.h>
            #include <time.h>
            #include <unistd.h>
            int main(void)
            {{
                puts("runs");
                fflush(stdout);
                for (time_t end = time(NULL) + 3; time(NULL) < end;)
                    for (volatile long i = 0; i < 1000000; i++)
                        ;
                {last}
                return 0;
            }}
            "#
        )
    };
    for (last, says) in [
        ("", "the process ended while it was watched"),
        (
            r#"execl("/bin/sh", "sh", "-c", "read line; echo right", NULL);"#,
            "the process became another program (exec) while it was watched",
        ),
    ] {
        let begun = Begun::new(&source(last));
        let report = report(&begun.find(&["--seconds", "30", "--overhead", "20"]));
        assert!(report["notes"].to_string().contains(says), "{}", report["notes"]);
        assert!(number(&report, "watched_seconds") < 20.0, "{}", report["bursts"]);
        if !last.is_empty() {
            assert_eq!(begun.ended(), "right\n");
        }
    }
}

#[test]
fn a_process_that_waits_has_no_bursts() {
    let begun = Begun::new(
        r#"
        #include <stdio.h>
        int main(void) { puts("runs"); fflush(stdout); getchar(); return 0; }
        "#,
    );
    let before = begun.traces();
    let output = begun.find(&["--seconds", "1"]);
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("no burst was taken"), "{said}");
    assert_eq!(begun.traces(), before);
    begun.ended();
}
