//! A study whose patch changes the program's effects proves nothing, though the program prints the same. A study that
//! proves something names the compared effects.

use crate::installed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Three hot members of `item` lie on three lines. The further use of the objects' bytes is not seen in this file.
const MAIN: &str = r#"
#include <stdio.h>
void keep(const void *bytes);
struct item { long a; char b[56]; long c; char d[56]; long e; };
static struct item items[4];
__attribute__((noinline)) long work(int n) {
    struct item *item = &items[n % 4];
    item->a += n; item->c += item->a; item->e ^= item->c;
    return item->e;
}
int main(void) {
    long sum = 0;
    for (int n = 0; n < 400; n++) sum += work(n);
    for (int n = 0; n < 4; n++) keep(&items[n]);
    printf("%ld\n", sum);
    return 0;
}
"#;

/// Writes an object's bytes to a file, without a word about its type.
const KEEPS_BYTES: &str = r#"
#include <fcntl.h>
#include <unistd.h>
void keep(const void *bytes) {
    int out = open("kept.bin", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(out, bytes, 136) != 136) _exit(1);
    close(out);
}
"#;

/// Writes a file that does not depend on the object, and the time.
const KEEPS_NOTHING: &str = r#"
#include <stdio.h>
#include <time.h>
void keep(const void *bytes) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    FILE *out = fopen("kept.txt", "w");
    fprintf(out, "a line\n%010ld\n", now.tv_nsec);
    fclose(out);
    (void)bytes;
}
"#;

/// Studies `work` of a program built from both texts.
fn study(folder: &Path, main: &str, keep: &str) -> Output {
    study_timed(&["--max-time", "1", "--margin", "1000%"], folder, main, keep)
}

/// The same with these options for timed runs.
fn study_timed(timing: &[&str], folder: &Path, main: &str, keep: &str) -> Output {
    let source = folder.join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("main.c"), main).expect("a file");
    fs::write(source.join("keep.c"), keep).expect("a file");
    let makefile = "program: main.c keep.c\n\tgcc -g -O2 -o program main.c keep.c\n";
    fs::write(source.join("Makefile"), makefile).expect("a file");
    let mut lineup: Command = installed::lineup();
    lineup
        .args(["study", "--no-clang", "--json", "--region", "work"])
        .args(timing)
        .arg("--source")
        .arg(source);
    lineup.arg("--out").arg(folder.join("out")).args(["--", "program"]).stdin(Stdio::null());
    lineup.output().expect("lineup runs")
}

/// True where one process may trace another. In CI it must be so.
fn can_trace() -> bool {
    let output = installed::lineup().args(["effects", "--", "true"]).stdin(Stdio::null()).output();
    let is_allowed = output.expect("lineup runs").status.success();
    if !is_allowed {
        println!("skipped: this system does not allow tracing");
        assert!(std::env::var_os("CI").is_none());
    }
    is_allowed
}

#[test]
fn a_patch_that_changes_the_bytes_of_a_file_is_rejected_and_the_file_is_named() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), MAIN, KEEPS_BYTES);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let reason = report["not_proven"].as_str().expect("a reason");
    assert!(
        reason.contains("the variants do not do the same: file kept.bin (changed by openat, write)"),
        "{reason}"
    );
    assert!(reason.contains("bytes of item leave the program"), "{reason}");
    assert!(report["proof"].is_null());
    let out = folder.path().join("out");
    assert!(out.join("rejected.patch").exists());
    assert!(!out.join("fix.patch").exists());
}

/// Takes its time when `a` and `c` do not lie on two lines any more, which no check of the sources looks for here.
const SLOW_WHEN_CHANGED: &str = r#"
#include <unistd.h>
void keep(const void *bytes) {
    const long *words = bytes;
    if (!words[0] || !words[8]) usleep(20000);
}
"#;

/// The order that is proposed needs fewer lines and makes the program far slower.
#[test]
fn a_patch_with_more_time_beyond_doubt_is_rejected_with_exit_code_1() {
    let folder = tempfile::tempdir().expect("a folder");
    // The time to notice eighty milliseconds on a machine that does much else.
    let output = study_timed(&["--max-time", "8"], folder.path(), MAIN, SLOW_WHEN_CHANGED);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let reason = report["not_proven"].as_str().expect("a reason");
    assert!(reason.contains("the changed program is worse") && reason.contains("more time"), "{reason}");
    let out = folder.path().join("out");
    assert!(!out.join("fix.patch").exists());
    let rejected = fs::read_to_string(out.join("rejected.patch")).expect("what was tried");
    assert!(rejected.contains("struct item"), "{rejected}");
}

/// Of two types, the one whose bytes are written is refused with the call, and the other is changed.
#[test]
fn the_type_whose_bytes_are_written_is_refused_and_the_rest_goes_on() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let other =
        "struct other { long f; char g[56]; long h; char i[56]; long j; };\nstatic struct other others[4];\n";
    let main = MAIN
        .replace("__attribute__((noinline))", &format!("{other}__attribute__((noinline))"))
        .replace("    return item->e;", "    struct other *o = &others[n % 4];\n    o->f += n; o->h += o->f; o->j ^= o->h;\n    return item->e + o->j;");
    let output = study(folder.path(), &main, KEEPS_BYTES);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let refusals = report["refusals"].as_array().expect("refusals");
    let refused = refusals.iter().find(|refused| refused["target"] == "item").expect("a refusal");
    let words = refused.to_string();
    assert!(words.contains("bytes of item leave the program"), "{words}");
    assert!(words.contains("file kept.bin (changed by openat, write)"), "{words}");
    let patch = fs::read_to_string(folder.path().join("out/fix.patch")).expect("a patch of the rest");
    assert!(patch.contains(" struct other") || patch.contains("+struct other"), "{patch}");
    assert!(report["proof"]["effects"]["compared"].to_string().contains("file"), "{report}");
}

#[test]
fn a_proof_says_which_effects_were_compared_and_which_were_not() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), MAIN, KEEPS_NOTHING);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let effects = &report["proof"]["effects"];
    let compared: Vec<&str> =
        effects["compared"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(compared, ["standard output", "1 file left behind", "exit status"]);
    assert_eq!(effects["not_compared"][0]["effect"], "file kept.txt");
    assert_eq!(effects["not_compared"][0]["share"], "1 of 2 lines or pieces");
    assert!(folder.path().join("out/fix.patch").exists());
}

/// The number of calls depends on the clock, as that of a program does which takes a seed from it. The output does not.
#[test]
fn a_number_of_calls_that_differs_from_run_to_run_by_itself_is_compared_within_what_recordings_show() {
    let main = MAIN
        .replace("void keep(", "#include <time.h>\nvoid keep(")
        .replace(
            "n < 400; n++) sum += work(n);",
            "n < 4000; n++) sum += work(n);\n    struct timespec now;\n    clock_gettime(CLOCK_REALTIME, &now);\n    for (int n = now.tv_nsec / 1000 % 3 * 10; n > 0; n--) work(n);",
        )
        .replace("printf(\"%ld\\n\", sum);", "if (!sum) puts(\"nothing\");");
    let studied = || -> (TempDir, Value) {
        let folder = tempfile::tempdir().expect("a folder");
        let output = study(folder.path(), &main, "void keep(const void *bytes) { (void)bytes; }\n");
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{message}");
        (folder, serde_json::from_slice(&output.stdout).expect("a report"))
    };
    // Five recordings show one of the three numbers alone, and the changed program another one, in one of 120 studies.
    let mut reports = std::iter::repeat_with(studied).take(3);
    let is_proven = |(_, report): &(TempDir, Value)| report["not_proven"].is_null();
    let (folder, report) = reports.find(is_proven).expect("a proof in one of three studies");
    assert!(!report["proof"].is_null(), "{report}");
    let within = report["proof"]["calls_within"].as_array().expect("a list");
    let says =
        |one: &Value| one.as_str().is_some_and(|one| one.contains("5 recordings of the unchanged program"));
    assert!(within.iter().all(says), "{report}");
    assert!(folder.path().join("out/fix.patch").exists());
}

/// The number of calls depends on the bytes of an object, which no check of the sources looks for here: the changed
/// program does other work and prints the same.
const ASKS_FOR_WORK: &str = r#"
void keep(const void *bytes) { (void)bytes; }
int more(const void *bytes) { return ((const long *)bytes)[8] ? 8 : 1; }
"#;

#[test]
fn a_patch_whose_recordings_are_of_other_work_is_written_as_unproven() {
    let folder = tempfile::tempdir().expect("a folder");
    let main = MAIN
        .replace("void keep(", "int more(const void *bytes);\nvoid keep(")
        .replace(
            "n < 400; n++) sum += work(n);",
            "n < 400; n++) sum += work(n);\n    for (int n = more(&items[0]); n > 0; n--) work(n);",
        )
        .replace("printf(\"%ld\\n\", sum);", "if (!sum) puts(\"nothing\");");
    let output = study(folder.path(), &main, ASKS_FOR_WORK);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let reason = report["not_proven"].as_str().expect("a reason");
    let counts = "calls of work made: 408 before the change, 401 after it; 3 recordings of the unchanged program made 408 to 408. \
                  The two";
    assert!(reason.contains(counts), "{reason}");
    assert!(report["proof"].is_null());
    let out = folder.path().join("out");
    let patch = fs::read_to_string(out.join("unproven.patch")).expect("the patch that was not proven");
    assert!(patch.contains("struct item"), "{patch}");
    assert!(!out.join("fix.patch").exists() && !out.join("rejected.patch").exists());
    let commands = report["commands"].to_string();
    assert!(commands.contains("unproven.patch") && commands.contains("which is not proven"), "{commands}");
}
