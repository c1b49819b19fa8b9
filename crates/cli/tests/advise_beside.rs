//! `lineup advise` where calls use what lies beside an object: as many lines fewer as a call then needs, no more.

mod installed;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Tables as an interpreter's dictionaries: a head, with entries of another type behind it in the same block of memory. Heads
/// start 48 bytes into a line, so that all but `refs` and `size` of each lies on the line of its first entry.
const TABLES: &str = r#"
#include <stdlib.h>
#include <string.h>
struct entry { long key, value; };
struct table { long refs, size, used, mask; };
enum { COUNT = 16 };
static struct table *tables[COUNT];
__attribute__((noinline)) long heads(void) {
    long sum = 0;
    for (int i = 0; i < COUNT; i++) sum += tables[i]->refs + tables[i]->mask;
    return sum;
}
__attribute__((noinline)) long entries(void) {
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        struct entry *first = (struct entry *)(tables[i] + 1);
        sum += tables[i]->refs + tables[i]->mask + first->key + first->value;
    }
    return sum;
}
int main(void) {
    for (int i = 0; i < COUNT; i++) {
        char *block = memset(aligned_alloc(64, 256), 0, 256);
        tables[i] = (struct table *)(block + 48);
        tables[i]->mask = 7;
    }
    long sum = 0;
    for (int i = 0; i < 50; i++) sum += heads() + entries();
    return sum == 0;
}
"#;

/// The program, recorded: the folder.
fn recorded(region: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("tables.c"), TABLES).expect("written");
    fs::write(path.join("Makefile"), "tables: tables.c\n\tgcc -g -O1 -o tables tables.c\n").expect("written");
    assert!(Command::new("make").arg("--silent").current_dir(path).status().expect("make").success());
    record(path, region, "before.rec");
    folder
}

fn record(folder: &Path, region: &str, out: &str) {
    let output = lineup(folder, &["record", "--region", region, "--out", out, "--", "./tables"]);
    assert!(output.status.success(), "{output:?}");
}

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    installed::lineup().current_dir(folder).env("HOME", folder).args(arguments).output().expect("lineup runs")
}

/// Data lines of 64 bytes in a call of a recording.
fn lines(folder: &Path, recording: &str) -> f64 {
    let output = lineup(folder, &["explain", recording, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("an explanation");
    let all = report["regions"][0]["lines"].as_array().expect("lines");
    let of_size = all.iter().find(|lines| lines["line_bytes"] == 64).expect("the line size");
    of_size["data"]["mean"].as_f64().expect("a mean")
}

/// Lines of 64 bytes that the order of `table` saves in a call, as it is told, if there is one. Its patch is applied.
fn predicted(folder: &Path) -> Option<f64> {
    let output = lineup(folder, &["advise", "before.rec", "--json", "--patch", "fix.patch"]);
    let advice: Value = serde_json::from_slice(&output.stdout).expect("advice");
    let order = advice["orders"].as_array().expect("orders").iter().find(|order| order["type"] == "table")?;
    let rows = order["lines"].as_array().expect("lines");
    let row = rows.iter().find(|row| row["line_bytes"] == 64 && row["data_model"] == "LP64").expect("a row");
    let applied =
        Command::new("patch").args(["-p1", "-i", "fix.patch"]).current_dir(folder).output().expect("patch");
    assert!(applied.status.success(), "{applied:?}");
    Some(row["before"].as_f64()? - row["after"].as_f64()?)
}

/// What the order of `table` is said to save in a call of the region is what a recording of the patched program shows.
fn saves(region: &str, lines_fewer: f64) {
    let folder = recorded(region);
    let before = lines(folder.path(), "before.rec");
    assert_eq!(predicted(folder.path()), Some(lines_fewer));
    assert!(Command::new("make").arg("--silent").current_dir(&folder).status().expect("make").success());
    record(folder.path(), region, "after.rec");
    assert_eq!(before - lines(folder.path(), "after.rec"), lines_fewer);
}

#[test]
fn heads_alone_lose_the_line_that_the_order_saves() {
    saves("heads", 16.0);
}

/// Moving `mask` to `refs` would save nothing here, since the other line is needed for the entries.
#[test]
fn members_move_to_the_line_that_is_needed_for_what_lies_behind() {
    saves("entries", 16.0);
}
