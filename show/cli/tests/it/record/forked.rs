//! `--whole-program --children`: processes that are forked off and programs that are started are counted as well.

use super::program::{Program, X86_64, c, cpp, lineup_record};
use super::whole::{BY_INTEGERS, SIGNALS};
use serde_json::Value;

const OPTIONS: [&str; 3] = ["--whole-program", "--children", "--json"];

fn recorded(program: &Program, options: &[&str]) -> Value {
    let output = lineup_record(
        program.folder.path(),
        &[&OPTIONS[..], options, &["--", program.folder.path().join("program").to_str().expect("a path")]]
            .concat(),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A function's counts, over all processes: instructions, loads and stores.
fn counts(report: &Value, name: &str) -> [u64; 3] {
    let functions = report["functions"].as_array().expect("functions").iter();
    let own = functions.filter(|function| function["function"] == name);
    let mut sums = [0; 3];
    for function in own {
        for (sum, field) in sums.iter_mut().zip(["instructions", "loads", "stores"]) {
            *sum += function[field].as_u64().expect("a number");
        }
    }
    sums
}

fn processes<'a>(report: &'a Value, origin: &str) -> Vec<&'a Value> {
    let all = report["processes"].as_array().expect("processes").iter();
    all.filter(|process| process["origin"] == origin).collect()
}

/// Processes that each make two more; with `TOGETHER` set, one process does the work of all.
const TREE: &str = r#"
    #include <stdlib.h>
    #include <sys/wait.h>
    #include <unistd.h>
    static volatile long cells[64];
    static char *together;
    __attribute__((noinline)) static void work(long n) { for (long i = 0; i < n; i++) cells[i & 63] += i; }
    __attribute__((noinline)) static long deep(long n) { return n < 2 ? cells[n] : deep(n - 1) + deep(n - 2); }
    static void tree(int depth) {
        work(1000 + depth);
        for (int i = 0; depth > 0 && i < 2; i++) {
            pid_t child = together ? 0 : fork();
            if (child == 0) { tree(depth - 1); cells[9] = deep(7 + depth); if (!together) _exit(0); }
            else waitpid(child, 0, 0);
        }
    }
    int main(void) { together = getenv("TOGETHER"); tree(4); return 0; }
"#;

#[test]
fn processes_of_a_tree_count_what_one_process_counts_that_does_it_all() {
    // Bound at the start: each process would look functions up for itself.
    let program = c(X86_64, TREE, &[BY_INTEGERS, &["-Wl,-z,now"]].concat());
    let (apart, together) = (recorded(&program, &[]), recorded(&program, &["--env", "TOGETHER=1"]));
    for name in ["work", "deep"] {
        assert_eq!(counts(&apart, name), counts(&together, name), "{name}: {apart}");
    }
    assert!(counts(&apart, "work")[2] > 31 * 1000);
    assert_eq!((processes(&apart, "forked").len(), processes(&together, "forked").len()), (30, 0));
    assert_eq!((apart["forks"].as_u64(), apart["threads"].as_u64()), (Some(30), Some(31)));
    // Each process counts its own, and they add up.
    let all = apart["processes"].as_array().expect("processes");
    let own = |process: &Value| process["instructions"].as_u64().expect("a number");
    assert_eq!(Some(all.iter().map(own).sum::<u64>()), apart["total_instructions"].as_u64());
    // Two children of the first, and so on: processes of one depth do the same.
    let of = |parents: &[u64]| -> Vec<&Value> {
        let has = |parent: &Value| parent.as_u64().is_some_and(|number| parents.contains(&number));
        all.iter().filter(|process| has(&process["parent"])).collect()
    };
    let mut parents = vec![0];
    for count in [2, 4, 8, 16] {
        let next = of(&parents);
        assert_eq!(next.len(), count, "{apart}");
        assert!(next.iter().all(|process| own(process) == own(next[0])), "{apart}");
        parents = next.iter().map(|process| process["number"].as_u64().expect("a number")).collect();
    }
}

/// The expected counts from `forks.c`, in the order of its functions: stores of `work`, `killed` and `orphan`.
const FORETOLD: [(&str, u64); 3] = [
    (
        "work",
        15 * 20
            + (1000 + 3 * 2000 + 7 + 11)
            + (500 + 600 + 700)
            + 20 * (100 + 10)
            + (300 + 900)
            + 3 * (50 + 5)
            + (50 + 2 * 40),
    ),
    ("killed", 12345 + 54321),
    ("orphan", 4321),
];

fn assert_foretold(report: &Value) {
    for (name, stores) in FORETOLD {
        assert_eq!(counts(report, name)[2], stores, "{name}: {report}");
    }
    assert_eq!(report["exit_status"], 0, "{report}");
    let forked = processes(report, "forked").len() as u64;
    assert_eq!(report["forks"].as_u64(), Some(forked + 1), "one is made in the way that is not counted");
}

#[test]
fn processes_are_counted_in_whatever_way_they_come_to_be_and_end() {
    let program = c(X86_64, include_str!("forks.c"), BY_INTEGERS);
    let report = recorded(&program, &[]);
    assert_foretold(&report);
    assert_eq!(report["unfollowed"], Value::Array(Vec::new()));
    // Started by the shell, by the library twice, and by a process that was forked off.
    let own = |process: &&&Value| process["program"].as_str().is_some_and(|path| path.ends_with("/program"));
    let started = processes(&report, "executed");
    let parents: Vec<&Value> = started.iter().filter(own).map(|process| &process["parent"]).collect();
    assert_eq!(parents.len(), 4, "{report}");
    let text = lineup_record(program.folder.path(), &["--whole-program", "--children", "--", "./program"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("processes forked off, not counted: 1"), "{text}");
    assert!(text.contains("0 forked") && text.contains("executed"), "{text}");
}

#[test]
fn processes_of_a_program_that_is_linked_statically_are_counted() {
    let options = [BY_INTEGERS, &["-static", "-DALONE", "-Wno-unused-value"]].concat();
    let program = c(X86_64, include_str!("forks.c"), &options);
    let report = recorded(&program, &[]);
    // The program starts itself, and the engine is not injected there.
    let missed = 1000 + 3 * 2000;
    assert_eq!(counts(&report, "work")[2] + missed, FORETOLD[0].1, "{report}");
    assert_eq!(counts(&report, "killed")[2], FORETOLD[1].1, "{report}");
}

/// Handlers that fork, and much else at once, do the same when all processes are counted.
#[test]
fn hard_programs_do_the_same_when_their_processes_are_counted() {
    let program = c(X86_64, SIGNALS, &[]);
    let native = program.record(&["--whole-program", "--children"]);
    let counts = ["returned", "nested", "jumped", "skipped", "forked"].map(|name| native.value(name));
    assert_eq!(counts, [90, 30, 30, 30, 3], "{}", native.said);
    let program = cpp(X86_64, include_str!("torture.cpp"), &["-ldl"]);
    let library = "static long t[100];\n\
                   long plug(long x) { for (int i = 0; i < 50; i++) t[(x + i) % 100] += i * x; return t[x % 100]; }\n";
    super::program::build(X86_64, program.folder.path(), "plug.c", library, "plug.so", &["-shared", "-fPIC"]);
    let seconds = std::env::var("LINEUP_ENGINE_TORTURE_SECONDS").unwrap_or_else(|_| "2".into());
    let seconds = format!("TORTURE_SECONDS={seconds}");
    let native = program.record(&["--whole-program", "--children", "--env", &seconds]);
    assert_eq!(["bad", "ticked", "faulted"].map(|name| native.value(name)), [0, 1, 1], "{}", native.said);
}
