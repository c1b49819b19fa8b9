//! `lineup advise` where calls also use data next to an object: it predicts exactly the lines that a call then saves.

use crate::installed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Tables as an interpreter's dictionaries: a head, with entries of another type behind it in the same block of memory.
/// Heads start 48 bytes into a line, so that all but `refs` and `size` of each lies on the line of its first entry.
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

/// A head with holes that ends 8 bytes into a line, which the entries behind it need in any case. An order that closes
/// the holes ends it with the line before, and saves nothing: the entries stay on theirs.
const HOLES: &str = r#"
#include <stdlib.h>
#include <string.h>
struct entry { long key, value; };
struct head { long refs; int kind; long size; int flags; long used; long mask; long spare; };
enum { COUNT = 16 };
static struct head *heads[COUNT];
__attribute__((noinline)) long work(void) {
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        struct entry *first = (struct entry *)(heads[i] + 1);
        sum += heads[i]->refs + heads[i]->kind + first->key + first->value;
    }
    return sum;
}
int main(void) {
    for (int i = 0; i < COUNT; i++) {
        char *block = memset(aligned_alloc(64, 256), 0, 256);
        heads[i] = (struct head *)(block + 16);
        heads[i]->mask = 7;
    }
    long sum = 0;
    for (int i = 0; i < 50; i++) { sum += work(); heads[0]->used = i; }
    return sum == 0;
}
"#;

/// Pairs of 96 bytes each, so that the end of the first of a pair and the beginning of the second lie on one line.
/// `across` uses what lies there; `within` uses both ends of the first, and would be better off with them on one line;
/// `all` does both.
const PAIRS: &str = r#"
#include <stdlib.h>
#include <string.h>
struct item { long first; long between[9]; long last; long spare; };
enum { COUNT = 16 };
static struct item *pairs[COUNT];
__attribute__((noinline)) long across(void) {
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        struct item *one = pairs[i], *two = one + 1;
        sum += one->last + two->first;
    }
    return sum;
}
__attribute__((noinline)) long within(void) {
    long sum = 0;
    for (int i = 0; i < COUNT; i++) sum += pairs[i]->first + pairs[i]->last;
    return sum;
}
__attribute__((noinline)) long all(void) {
    long sum = 0;
    for (int i = 0; i < COUNT; i++) {
        struct item *one = pairs[i], *two = one + 1;
        sum += one->first + one->last + two->first;
    }
    return sum;
}
int main(void) {
    for (int i = 0; i < COUNT; i++) pairs[i] = memset(aligned_alloc(64, 192), 0, 192);
    long sum = 0;
    for (int i = 0; i < 50; i++) { sum += across() + within() + all(); pairs[0]->between[0] = i; }
    return sum == 0;
}
"#;

/// Records these regions of the program in the folder.
fn record(folder: &Path, regions: &[&str], out: &str) {
    let regions = regions.iter().flat_map(|region| ["--region", region]);
    let arguments: Vec<&str> =
        ["record"].into_iter().chain(regions).chain(["--out", out, "--", "./p"]).collect();
    let output = lineup(folder, &arguments);
    assert!(output.status.success(), "{output:?}");
}

fn make(folder: &Path) {
    assert!(Command::new("make").arg("--silent").current_dir(folder).status().expect("make").success());
}

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    installed::lineup().current_dir(folder).env("HOME", folder).args(arguments).output().expect("lineup runs")
}

/// Data lines of 64 bytes in a call of a region.
fn lines(folder: &Path, recording: &str, region: &str) -> f64 {
    let output = lineup(folder, &["explain", recording, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("an explanation");
    let all = report["regions"].as_array().expect("regions").iter().find(|one| one["name"] == region);
    let all = all.expect("the region")["lines"].as_array().expect("lines");
    let of_size = all.iter().find(|lines| lines["line_bytes"] == 64).expect("the line size");
    of_size["data"]["mean"].as_f64().expect("a mean")
}

/// The proposed order of a type, if there is one. Its patch is applied.
fn order(folder: &Path, ty: &str) -> Option<Value> {
    let output = lineup(folder, &["advise", "before.rec", "--json", "--patch", "fix.patch"]);
    let advice: Value = serde_json::from_slice(&output.stdout).expect("advice");
    let order = advice["orders"].as_array().expect("orders").iter().find(|order| order["type"] == ty)?;
    let applied =
        Command::new("patch").args(["-p1", "-i", "fix.patch"]).current_dir(folder).output().expect("patch");
    assert!(applied.status.success(), "{applied:?}");
    Some(order.clone())
}

/// Lines of 64 bytes that an order is predicted to save in a call of a region.
fn predicted(order: &Value, region: &str) -> f64 {
    let rows = order["lines"].as_array().expect("lines").iter();
    let row = rows
        .clone()
        .find(|row| row["line_bytes"] == 64 && row["data_model"] == "LP64" && row["region"] == region);
    let row = row.unwrap_or_else(|| panic!("no row of {region}: {order}"));
    row["before"].as_f64().expect("before") - row["after"].as_f64().expect("after")
}

/// The predicted savings of a type's order in a call of each region equal those in a recording of the patched program;
/// zero where there is no order.
fn saved(program: &str, ty: &str, regions: &[&str]) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    fs::write(path.join("p.c"), program).expect("written");
    fs::write(path.join("Makefile"), "p: p.c\n\tgcc -g -O1 -fno-ipa-pure-const -o p p.c\n").expect("written");
    make(path);
    record(path, regions, "before.rec");
    let Some(order) = order(path, ty) else { return vec![0.0; regions.len()] };
    make(path);
    record(path, regions, "after.rec");
    let each = regions.iter().map(|region| {
        let seen = lines(path, "before.rec", region) - lines(path, "after.rec", region);
        assert_eq!(predicted(&order, region), seen, "{region}: {order}");
        seen
    });
    each.collect()
}

#[test]
fn heads_alone_lose_the_line_that_the_order_saves() {
    assert_eq!(saved(TABLES, "table", &["heads"]), [16.0]);
}

/// Moving `mask` to `refs` would save nothing here, since the other line is needed for the entries.
#[test]
fn members_move_to_the_line_that_is_needed_for_what_lies_behind() {
    assert_eq!(saved(TABLES, "table", &["entries"]), [16.0]);
}

#[test]
fn a_head_that_would_end_on_another_line_than_what_lies_behind_it_saves_nothing() {
    assert_eq!(saved(HOLES, "head", &["work"]), [0.0]);
}

#[test]
fn a_line_that_two_objects_of_a_type_share_is_not_saved_while_one_of_them_needs_it() {
    assert_eq!(saved(PAIRS, "item", &["all"]), [0.0]);
}

#[test]
fn an_order_that_parts_what_two_objects_have_on_one_line_costs_a_line() {
    // For `within` alone both ends of an item come together. Where `across` weighs as much, nothing is gained.
    assert_eq!(saved(PAIRS, "item", &["within"]), [16.0]);
    assert_eq!(saved(PAIRS, "item", &["within", "across"]), [0.0, 0.0]);
}
