//! `lineup shuffle` on small programs: what may move is moved and stands its test; what the sources hide is found.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// `hidden` is read at an offset from an address that was text in between, which reading the sources does not follow.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct plain { long first; int second; char third; struct plain *next; };
struct hidden { long head; int tag; int count; };
struct sent { int a; long b; };
static int peek(const char *at, unsigned long offset) { return *(int *)(strtoul(at, NULL, 10) + offset); }
static long sum(struct plain *p) { long s = 0; for (; p; p = p->next) s += p->first + p->second + p->third; return s; }
int main(int argc, char **argv) {
    struct plain two = { .first = 3, .second = 4, .third = 5, .next = NULL };
    struct plain one = { .first = 1, .second = 2, .third = 3, .next = &two };
    struct hidden h = { .head = 7, .tag = 42, .count = 9 };
    struct sent out = { .a = 1, .b = 2 };
    unsigned long offset = argc * 8ul;
    char at[32];
    snprintf(at, sizeof at, "%lu", (unsigned long)&h);
    if (argc > 5) fwrite(&out, sizeof out, 1, stdout);
    printf("%ld %d %d %s\n", sum(&one), peek(at, offset), h.count, argv[0] ? "" : "no name");
    return 0;
}
"#;

const TEST: &str = "test \"$(./program)\" = '18 42 9 '";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("program.c"), PROGRAM).expect("writes");
        std::fs::write(
            folder.path().join("Makefile"),
            "program: program.c\n\tcd . && /usr/bin/cc -g -O1 -o program program.c\n",
        )
        .expect("writes");
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn shuffle(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lineup"))
            .args(["shuffle", "--json"])
            .args(arguments)
            .arg("program")
            .current_dir(self.path())
            .output()
            .expect("lineup runs")
    }
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn types(json: &Value, kind: &str) -> Vec<String> {
    let types = json[kind].as_array().expect("types");
    types.iter().map(|ty| ty["type"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn the_list_says_what_may_move_and_why_the_rest_may_not() {
    let output = Folder::new().shuffle(&["--list"]);
    let json = json(&output);
    assert_eq!(json["sources"], "checked with clang: 1 of 1 units");
    assert_eq!(types(&json, "movable"), ["hidden", "plain"]);
    assert_eq!(types(&json, "refused"), ["sent"]);
    assert!(json["refused"][0]["constraints"].to_string().contains("fwrite()"), "{json}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn types_that_may_move_stand_the_test_in_every_order() {
    let output = Folder::new().shuffle(&["--test", TEST, "--type", "plain", "--seeds", "3"]);
    let json = json(&output);
    let seeds = json["seeds"].as_array().expect("seeds");
    assert_eq!(seeds.len(), 3);
    assert!(
        seeds.iter().all(|seed| seed["shuffled"] == 1 && seed["failures"] == Value::Array(vec![])),
        "{json}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_hidden_order_is_found_kept_and_obeyed() {
    let folder = Folder::new();
    let arguments = ["--test", TEST, "--seeds", "6", "--constraints", "held.toml"];
    let output = folder.shuffle(&arguments);
    let found = json(&output);
    assert_eq!(output.status.code(), Some(1), "{found}");
    let failures: Vec<&Value> = found["seeds"]
        .as_array()
        .expect("seeds")
        .iter()
        .flat_map(|seed| seed["failures"].as_array())
        .flatten()
        .collect();
    assert!(!failures.is_empty());
    for failure in &failures {
        assert_eq!(failure["type"], "hidden");
        assert_eq!(failure["pair"].as_array().map(Vec::len), Some(2), "{failure}");
    }
    let held = std::fs::read_to_string(folder.path().join("held.toml")).expect("the constraints are kept");
    assert!(held.contains("type = \"hidden\"") && held.contains("rule = \"order\""), "{held}");
    let again = folder.shuffle(&arguments);
    assert_eq!(again.status.code(), Some(0), "{}", json(&again));
}

#[test]
fn a_test_that_fails_by_itself_tells_nothing() {
    let output = Folder::new().shuffle(&["--test", "echo broken; false"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("fails with the program as it is") && words.contains("broken"), "{words}");
}
