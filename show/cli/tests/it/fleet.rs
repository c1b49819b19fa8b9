//! The arguments that `lineup fleet` passes to the program that it starts, and its message when that program is
//! missing.

use crate::place::Place;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>

struct task { long id; char name[56]; long state; };
static long served;

__attribute__((noinline)) void serve(const struct task *task) { served += task->id + task->state; }

int main(void)
{
    struct task *tasks = aligned_alloc(64, 8 * 128);
    for (int at = 0; at < 8; at++) {
        tasks[at].id = at;
        tasks[at].state = 1;
    }
    for (int at = 0; at < 8; at++)
        serve(&tasks[at]);
    printf("%ld\n", served);
}
"#;

/// A program with a recording of eight calls.
fn recorded() -> Place {
    let place = Place::new(PROGRAM, &[]);
    let record = ["record", "--region", "serve", "--out", "calls.rec", "--", "./program"];
    let output = place.lineup(&record).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    place
}

#[test]
fn a_missing_program_is_told_with_the_command_that_installs_it() {
    let place = Place::new("int main(void) { return 0; }", &[]);
    let output =
        place.lineup(&["fleet", "query", "SELECT 1"]).env("PATH", "/nowhere").output().expect("lineup runs");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("lineup-fleet is a program of its own, which is not installed"), "{said}");
    assert!(said.contains("cargo install --locked --path fleet"), "{said}");
}

#[test]
fn what_calls_used_is_told_with_what_else_a_fleet_needs_of_it() {
    let place = recorded();
    let output = place.lineup(&["explain", "calls.rec", "--usage"]).output().expect("lineup runs");
    let usage: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(usage["schema"], "lineup.usage/1");
    assert!(usage["program"].as_str().is_some_and(|program| program.ends_with("/source/program")), "{usage}");
    assert_eq!((&usage["machine"], &usage["data_model"]), (&"x86_64".into(), &"LP64".into()));
    assert_eq!(usage["content_sha256"].as_str().map(str::len), Some(64));
    let region = &usage["regions"][0];
    assert_eq!(
        (&region["name"], &region["calls"], &region["calls_made"]),
        (&"serve".into(), &8.into(), &8.into())
    );
    let task = &usage["types"][0];
    assert_eq!(
        (&task["name"], &task["size_bytes"], &task["align_bytes"]),
        (&"task".into(), &72.into(), &8.into())
    );
    assert_eq!(task["members"][2]["offset_bits"], 512);
    let pattern = &usage["uses"][0]["patterns"][0];
    let offsets: Vec<_> =
        pattern["bytes"].as_array().expect("bytes").iter().map(|bytes| &bytes["offset"]).collect();
    assert_eq!(offsets, [&Value::from(0), &Value::from(64)], "one call touches both together");
    assert_eq!(usage["variables"][0]["name"], "served");
}

#[test]
fn recordings_are_explained_for_the_program_and_damaged_ones_refused_by_name() {
    let place = recorded();
    let whole = fs::read(place.source().join("calls.rec")).expect("the recording");
    fs::write(place.source().join("cut.rec"), &whole[..whole.len() - 9]).expect("a file");
    let other = place.source().join("lineup-fleet");
    fs::write(&other, "#!/bin/sh\nshift\ncat \"$1\"\nshift\necho \"$@\"\nexit $STATUS\n").expect("a script");
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).expect("a program");
    let path = format!("{}:{}", place.source().display(), std::env::var("PATH").expect("PATH"));
    let add = |file: &str, status: &str| {
        let arguments = ["fleet", "add", file, "cut.rec", "--store", "here"];
        place.lineup(&arguments).env("PATH", &path).env("STATUS", status).output().expect("lineup runs")
    };
    let output = add("calls.rec", "0");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(out.starts_with("{\"schema\":\"lineup.usage/1\",\"file\":\"calls.rec\""), "{out}");
    assert!(out.ends_with("}--store here\n"), "the cut one is not among the arguments: {out}");
    assert!(error.contains("refused: cut.rec: ") && error.contains("the rest went in"), "{error}");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(add("calls.rec", "1").status.code(), Some(1), "the program's own exit code");
    let none = add("cut.rec", "0");
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no file is left to add"));
    place.assert_clean();
}
