//! `--children`: programs that a program starts are recorded natively with it, each process by itself.

use super::program::{Program, X86_64, build, c, lineup_record};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

const SOURCE: &str = r#"
    #include <stdio.h>
    #include <stdlib.h>
    static volatile long table[64];
    __attribute__((noinline)) long hot(long x) { long sum = 0; for (int i = 0; i < 5; i++) sum += table[(x + i) & 7]; return sum; }
    int main(int count, char **words) {
        long sum = 0, calls = atoi(words[1]);
        for (long i = 0; i < calls; i++) sum += hot(i);
        printf("made %ld\n", calls);
        return sum != 0;
    }
"#;

/// The summary of a recording of a command with all that it starts.
fn recorded(program: &Program, command: &[&str]) -> Value {
    let options = ["--json", "--children", "--region", "hot", "--"];
    let output = lineup_record(program.folder.path(), &[&options, command].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Calls of each process with any, in ascending order.
fn calls(report: &Value) -> Vec<u64> {
    let processes = report["processes"].as_array().expect("processes").iter();
    let recorded = processes.filter_map(|process| process["regions"][0]["recorded"].as_u64());
    let mut calls: Vec<u64> = recorded.filter(|calls| *calls > 0).collect();
    calls.sort_unstable();
    calls
}

#[test]
fn a_script_and_all_that_it_starts_are_recorded() {
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    build(X86_64, folder, "same.c", SOURCE, "static", &["-static"]);
    let set_user = folder.join("setuid");
    std::fs::copy(folder.join("program"), &set_user).expect("a copy");
    let is_given = std::os::unix::fs::chown(&set_user, Some(65534), None).is_ok();
    std::fs::set_permissions(&set_user, std::fs::Permissions::from_mode(0o4755)).expect("its rights");
    let script = "./program 100\n./program 50 & ./program 60\nwait\n./static 10\n./setuid 11\nenv -i ./program 12\n\
                  sh -c './program 7; true'\ncd / && exec \"$OLDPWD/program\" 20\n";
    std::fs::write(folder.join("run.sh"), script).expect("a script");
    let report = recorded(&program, &["sh", "run.sh"]);
    // Without the right to give files away, its own file is no other user's.
    let own: &[u64] = if is_given { &[7, 20, 50, 60, 100] } else { &[7, 11, 20, 50, 60, 100] };
    assert_eq!(calls(&report), own, "{report}");
    let why = |name: &str| {
        let all = report["unfollowed"].as_array().expect("programs");
        let found = all.iter().find(|one| one["program"].as_str().is_some_and(|path| path.ends_with(name)));
        found.map(|one| one["why"].as_str().expect("a reason").to_owned())
    };
    assert!(why("/static").is_some_and(|why| why.contains("linked statically")), "{report}");
    assert_eq!(why("/setuid").is_some_and(|why| why.contains("gains rights")), is_given, "{report}");
    assert_eq!(report["regions"][0]["seen"].as_u64(), Some(own.iter().sum()));
    // Every process has calls of the same lines, in memory of its own.
    let bytes = std::fs::read(folder.join("lineup.rec")).expect("the recording");
    let recording = lineup_recording::read_all(&bytes).expect("a readable recording");
    assert_eq!(recording.damage, None);
    let spaces: std::collections::BTreeSet<u64> =
        recording.calls.iter().flat_map(|call| &call.accesses).map(|access| access.address >> 48).collect();
    assert_eq!(spaces.len(), own.len());
}

#[test]
fn each_process_says_how_many_calls_it_made_when_only_some_of_all_are_kept() {
    let program = c(X86_64, SOURCE, &[]);
    let command = ["sh", "-c", "./program 300; ./program 200; true"];
    for engine in ["native", "qemu"] {
        if engine == "qemu" {
            lineup_fixtures::require_plugins("qemu-x86_64");
        }
        let options = ["--json", "--children", "--region", "hot", "--calls", "50", "--engine", engine, "--"];
        let output = lineup_record(program.folder.path(), &[&options[..], &command].concat());
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let own = report["processes"].as_array().expect("processes").iter();
        let seen: Vec<u64> = own.filter_map(|own| own["regions"][0]["seen"].as_u64()).collect();
        let made: Vec<u64> = seen.into_iter().filter(|seen| *seen > 0).collect();
        assert_eq!(made, [300, 200], "{report}");
        let kept = calls(&report).iter().sum::<u64>();
        // Calls of two processes that have one position are both kept, or neither is.
        assert!((49..=50).contains(&kept), "{report}");
        assert_eq!(report["regions"][0]["seen"], 500);
        assert_eq!(report["regions"][0]["recorded"], kept);
    }
}

#[test]
fn a_tree_of_processes_that_run_at_once_is_recorded() {
    let program = c(X86_64, SOURCE, &[]);
    let targets: Vec<String> = (1..=24).map(|number| format!("t{number}")).collect();
    let rules: String = (1..=24)
        .map(|number| format!("t{number}:\n\t@./program {number}; ./program {}\n", 100 + number))
        .collect();
    let text = format!("all: {}\n{rules}", targets.join(" "));
    std::fs::write(program.folder.path().join("Makefile"), text).expect("a makefile");
    let report = recorded(&program, &["make", "-s", "-j6"]);
    let expected: Vec<u64> = (1..=24).chain(101..=124).collect();
    assert_eq!(calls(&report), expected, "{report}");
    assert_eq!(report["unfollowed"], Value::Array(Vec::new()));
}

/// A C++ function is named as in its source, wherever it is; equal messages of several processes appear once.
#[test]
fn functions_of_libraries_are_found_by_the_names_that_their_source_has() {
    let library = r#"
        namespace far {
            struct Store { long all[8]; long take(long x); long take(const char *text); };
            __attribute__((noinline)) long Store::take(long x) { if (x > 90) throw x; return all[x & 7] += x; }
            __attribute__((noinline)) long Store::take(const char *text) { return all[*text & 7]++; }
        }
        extern "C" long take(long x) { static far::Store store; try { return store.take(x) + store.take("a"); } catch (long) { return 0; } }
    "#;
    let source = r#"
        #include <cstdio>
        extern "C" long take(long);
        int main() { long sum = 0; for (long x = 0; x < 100; x++) sum += take(x); std::printf("sum %lx\n", sum); }
    "#;
    let program = c(X86_64, "int main(void) { return 0; }", &[]);
    let folder = program.folder.path();
    build(X86_64, folder, "far.cpp", library, "libfar.so", &["-shared", "-fPIC"]);
    build(X86_64, folder, "near.cpp", source, "near", &["-L.", "-lfar", "-Wl,-rpath,$ORIGIN"]);
    let options = ["--json", "--children", "--region", "far::Store::take", "--"];
    let output =
        lineup_record(folder, &[&options, ["sh", "-c", "./near && ./near; true"].as_slice()].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // In each process a hundred calls take a number, nine of which throw, and each of the others is followed by a call
    // with a text.
    assert_eq!(calls(&report), [191, 191], "{report}");
    assert_eq!(report["regions"][0]["abandoned"], 18, "{report}");
    let mut notes: Vec<&str> =
        report["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    let all = notes.len();
    notes.sort_unstable();
    notes.dedup();
    assert_eq!(notes.len(), all, "{report}");
}
