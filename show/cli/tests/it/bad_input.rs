//! The answers of `lineup study`, `explain` and `advise` to input that they cannot use, or only in part: a clear
//! message, exit code 2 when there is no result, and nothing lost.

use crate::installed;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

/// A program whose region `hot` reads two distant members.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
struct record { long first; char name[120]; long last; };
static struct record records[64];
static inline long folded(const struct record *record) { return record->first * 3; }
__attribute__((noinline)) long hot(struct record *record) { return record->first + record->last++; }
__attribute__((noinline)) long hotter(struct record *record) { return folded(record) + 1; }
__attribute__((noinline)) void never(void) { puts("never"); }
int main(int argc, char **argv)
{
	long sum = 0;
	for (int i = 0; i < 200; i++)
		sum += hot(&records[i % 64]) + hotter(&records[i % 64]);
	if (argc > 4)
		never();
	if (argc > 3)
		printf("%d\n", (int)getpid());
	if (argc == 2)
		raise(atoi(argv[1]));
	printf("%ld\n", sum);
	return 0;
}
"#;

const BUILD: &str = "cc -g -O2 -o program main.c";

/// A folder with the program's source.
struct Folder {
    root: tempfile::TempDir,
}

impl Folder {
    fn new() -> Folder {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("source")).expect("a folder");
        fs::write(root.path().join("source/main.c"), PROGRAM).expect("a file");
        Folder { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Runs `lineup` in the folder.
    fn lineup(&self, arguments: &[&str]) -> Output {
        installed::lineup().current_dir(self.root.path()).args(arguments).output().expect("lineup runs")
    }

    fn study(&self, region: &str, build: &str, more: &[&str]) -> Output {
        let given = ["study", "--region", region, "--source", "source", "--build", build, "--out", "out"];
        let limits = ["--max-time", "1", "--calls", "50"];
        self.lineup(&[&given[..], &limits, more].concat())
    }

    /// The message of a study that cannot continue.
    fn refused(&self, region: &str, build: &str, more: &[&str]) -> String {
        let message = refusal(&self.study(region, build, more));
        assert!(!self.path("out/fix.patch").exists(), "a patch without a proof");
        assert_eq!(fs::read_to_string(self.path("source/main.c")).expect("the source"), PROGRAM);
        message
    }
}

/// The message of a command that gave no result.
fn refusal(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(!message.contains("panicked"), "{message}");
    message
}

fn holds(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

/// Standard output of a command that gave a result, and its other messages.
fn result(output: &Output) -> (String, String) {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    (stdout, stderr)
}

#[test]
fn a_missing_program_or_recording_is_named() {
    let folder = Folder::new();
    for command in ["layout", "explain", "advise"] {
        let message = refusal(&folder.lineup(&[command, "no-such-file"]));
        holds(&message, &["no-such-file"]);
        assert_eq!(message.matches("No such file").count(), 1, "the cause is said once: {message}");
    }
}

/// The kernel's numbers are signed: those beyond would be taken for all processes, or a group of them.
#[test]
fn a_number_that_no_process_has_is_refused() {
    let folder = Folder::new();
    for command in ["record", "time"] {
        for number in ["0", "2147483648", "4294967295"] {
            let output = folder.lineup(&[command, "--pid", number, "--region", "hot"]);
            holds(&refusal(&output), &[number, "--pid", "1..=2147483647"]);
        }
    }
}

#[test]
fn a_build_that_fails_shows_its_last_lines() {
    let message =
        Folder::new().refused("hot", "echo begun; echo went wrong here >&2; exit 3", &["--", "program"]);
    holds(&message, &["failed", "exit status: 3", "went wrong here"]);
}

#[test]
fn a_build_that_makes_no_program_is_told_from_one_that_fails() {
    holds(&Folder::new().refused("hot", "true", &["--", "program"]), &["the build `true` made no program"]);
}

#[test]
fn a_program_without_debug_info_asks_for_it() {
    for build in ["cc -O2 -o program main.c", "cc -O2 -g -s -o program main.c"] {
        let message = Folder::new().refused("hot", build, &["--", "program"]);
        holds(&message, &["no debug info", "-g"]);
    }
}

#[test]
fn a_pin_that_names_nothing_is_refused_with_near_names() {
    for (pin, parts) in [
        ("record.frist", ["record has no member frist", "near names: first"]),
        ("recrod.first", ["there is no type recrod", "near names: record"]),
    ] {
        let folder = Folder::new();
        holds(&folder.refused("hot", BUILD, &["--pin", pin, "--", "program"]), &parts);
    }
}

#[test]
fn an_earlier_study_keeps_its_results_and_one_that_fails_leaves_none() {
    let folder = Folder::new();
    result(&folder.study("hot", BUILD, &["--", "program"]));
    let earlier = std::fs::read(folder.path("out/report.json")).expect("a report");
    let message = refusal(&folder.study("hot", "false", &["--", "program"]));
    holds(&message, &["holds results of an earlier study", "out-2", "--overwrite"]);
    assert_eq!(std::fs::read(folder.path("out/report.json")).expect("a report"), earlier);
    for name in ["report.html", "report.json", "fix.patch", "rejected.patch"] {
        assert!(!folder.path(&format!("out-2/{name}")).exists(), "{name} is of no study that ended");
    }
    folder.refused("hot", "false", &["--overwrite", "--", "program"]);
    assert!(!folder.path("out/report.json").exists(), "it was to be overwritten");
}

/// Rust opens the null device in the place of an output that was closed.
#[test]
fn a_report_that_a_closed_output_loses_is_an_error() {
    let folder = Folder::new();
    let built =
        std::process::Command::new("sh").args(["-c", BUILD]).current_dir(folder.path("source")).status();
    assert!(built.expect("cc runs").success());
    let run = |to: &str| {
        let line = format!("exec \"$0\" layout source/program record {to}");
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(line).arg(installed::lineup().get_program()).current_dir(folder.root.path());
        shell.output().expect("sh runs")
    };
    holds(&refusal(&run(">&-")), &["standard output", "it is closed"]);
    for to in ["", ">/dev/null", "1<>/dev/null"] {
        assert!(run(to).status.success(), "{to}");
    }
}

#[test]
fn values_that_would_do_nothing_are_refused() {
    let folder = Folder::new();
    for given in [
        &["compare", "--until-width", "0%", "true", "true"][..],
        &["shuffle", "--seeds", "0", "--test", "true", "source/program"],
    ] {
        holds(&refusal(&folder.lineup(given)), &["invalid value '0", given[1]]);
    }
}

#[test]
fn an_unknown_region_brings_near_names() {
    let message = Folder::new().refused("hottr", BUILD, &["--", "program"]);
    holds(&message, &["there is no function hottr", "near names", "hotter"]);
}

#[test]
fn a_region_inlined_everywhere_names_its_callers() {
    let message = Folder::new().refused("folded", BUILD, &["--", "program"]);
    holds(&message, &["folded", "inlined", "hotter"]);
}

#[test]
fn a_region_that_is_never_called_is_named() {
    let message = Folder::new().refused("never", BUILD, &["--", "program"]);
    holds(&message, &["never", "without a call"]);
}

#[test]
fn a_program_that_crashes_or_is_killed_leaves_what_was_recorded() {
    for (signal, name) in [("11", "SIGSEGV"), ("9", "SIGKILL")] {
        let folder = Folder::new();
        let given = ["--one-pass", "--", "program", signal];
        let message = folder.refused("hot", BUILD, &given);
        holds(&message, &[name]);
    }
    let folder = Folder::new();
    let message = folder.refused("hot", BUILD, &["--", "program", "11"]);
    holds(&message, &["SIGSEGV", "out/before/calls.rec", "lineup explain"]);
    let (explained, _) = result(&folder.lineup(&["explain", "out/before/calls.rec"]));
    holds(&explained, &["hot", "records[].first", "records[].last"]);
}

#[test]
fn an_output_folder_that_cannot_be_written_is_refused_before_any_work() {
    let folder = Folder::new();
    let given = ["study", "--region", "hot", "--source", "source", "--build", "touch built; false"];
    let more = ["--out", "source/main.c/out", "--", "program"];
    holds(&refusal(&folder.lineup(&[&given[..], &more].concat())), &["output folder", "source/main.c/out"]);
}

#[test]
fn a_program_outside_the_source_folder_is_refused() {
    for program in ["../program", "/bin/true"] {
        holds(&Folder::new().refused("hot", BUILD, &["--", program]), &[program, "inside --source"]);
    }
}

#[test]
fn a_file_that_is_no_recording_is_refused() {
    let folder = Folder::new();
    for command in ["explain", "advise"] {
        holds(&refusal(&folder.lineup(&[command, "source/main.c"])), &["source/main.c", "recording"]);
    }
}

#[test]
fn a_cut_off_recording_is_used_up_to_its_last_whole_record() {
    let folder = Folder::new();
    result(&folder.study("hot", BUILD, &["--", "program"]));
    let whole = fs::read(folder.path("out/before/calls.rec")).expect("the recording");
    let cut = folder.path("out/before/cut.rec");
    fs::write(&cut, &whole[..whole.len() - 4]).expect("a file");
    let (stdout, stderr) = result(&folder.lineup(&["explain", "out/before/cut.rec"]));
    holds(&stdout, &["hot"]);
    holds(&stderr, &["cut.rec", "what stands before is used"]);
    fs::write(&cut, &whole[..12]).expect("a file");
    for command in ["explain", "advise"] {
        holds(&refusal(&folder.lineup(&[command, "out/before/cut.rec"])), &["cut.rec"]);
    }
}

#[test]
fn an_output_that_does_not_repeat_proves_footprints_only() {
    let folder = Folder::new();
    let (stdout, _) = result(&folder.study("hot", BUILD, &["--", "program", "a", "b", "c"]));
    holds(&stdout, &["fewer lines", "time not claimed: output not repeatable", "standard output"]);
    assert!(folder.path("out/fix.patch").is_file());
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    let folder = Folder::new();
    // A name that would colour a terminal and run a script in a browser, as sed and the assembler take it.
    let name = r"<script>alert(1)<\/script>\\033[31m";
    let renamed = ["record", "records", "last", "hot"].map(|old| format!("s/\"{old}\"/\"{old}{name}\"/"));
    let build =
        format!("cc -g -O2 -S main.c && sed -i '{}' main.s && cc -o program main.s", renamed.join(";"));
    let (stdout, stderr) = result(&folder.study("hot", &build, &["--", "program"]));
    let (explained, _) = result(&folder.lineup(&["explain", "out/before/calls.rec"]));
    let (laid_out, _) = result(&folder.lineup(&["layout", "out/before/program"]));
    for text in [&stdout, &stderr, &explained, &laid_out] {
        assert!(!text.contains('\x1b'), "an escape character reaches the terminal: {text:?}");
    }
    holds(&laid_out, &["record<script>"]);
    let page = fs::read_to_string(folder.path("out/report.html")).expect("the page");
    assert!(!page.contains("<script>alert") && !page.contains('\x1b') && page.contains("&lt;script&gt;"));
    let report = fs::read_to_string(folder.path("out/report.json")).expect("the report");
    assert!(!report.contains('\x1b') && report.contains("last<script>"));
}

#[test]
fn a_region_inlined_everywhere_does_not_end_a_study_of_others() {
    let folder = Folder::new();
    let (stdout, stderr) =
        result(&folder.study("hot", BUILD, &["--region", "folded", "--json", "--", "program"]));
    holds(&stderr, &["folded is not studied", "inlined into hotter"]);
    let report: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
    let regions = report["regions"].as_array().expect("regions");
    assert_eq!(regions.iter().map(|region| &region["name"]).collect::<Vec<_>>(), ["hot"]);
    holds(&report["setting"].to_string(), &["folded is not studied"]);
}

/// Numbers of options that mean nothing: none is taken for another, and no command begins its work.
#[test]
fn numbers_that_mean_nothing_are_refused_with_their_option() {
    const OF_ALL: [&str; 5] = ["-1", "1e400", "NaN", "99999999999999999999", ""];
    const OPTIONS: [(&str, &[&str], &[&str]); 19] = [
        ("compare", &["--blocks"], &["0", "1000001"]),
        ("compare", &["--warm-up"], &["1000001"]),
        ("compare", &["--until-width"], &["0", "0%", "inf", "1e-400"]),
        ("compare", &["--margin"], &["100001%"]),
        ("compare", &["--max-time"], &["inf"]),
        ("measure", &["--repeat"], &["0", "1000001"]),
        ("measure", &["--warm-up"], &["1000001"]),
        ("time", &["--region", "f", "--max-seconds"], &["0", "inf"]),
        ("time", &["--region", "f", "--stop-after"], &["0"]),
        ("record", &["--region", "f", "--calls"], &["0"]),
        ("record", &["--region", "f", "--calls-per-second"], &["0"]),
        ("record", &["--region", "f", "--calls-per-thread"], &["0"]),
        ("record", &["--region", "f", "--line-size"], &["0", "48"]),
        ("find", &["--windows"], &["0", "1025"]),
        ("find", &["--overhead"], &["0", "5%"]),
        ("find", &["--seconds"], &["0", "5"]),
        ("study", &["--region", "f", "--calls"], &["0"]),
        ("study", &["--region", "f", "--links"], &["0", "1"]),
        ("study", &["--budget"], &["0"]),
    ];
    for (command, before, own) in OPTIONS {
        for value in OF_ALL.iter().chain(own) {
            let (option, before) = before.split_last().expect("an option");
            let given = format!("{option}={value}");
            let program = if command == "compare" { ["true", "true"] } else { ["--", "true"] };
            let mut lineup = installed::lineup();
            let output =
                lineup.arg(command).args(before).arg(&given).args(program).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {given}: {said}");
            assert!(said.contains(option), "{command} {given}: {said}");
        }
    }
}
