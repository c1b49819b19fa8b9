//! Every command's output with `--json` matches its schema in docs/schema, no field more and none less; errors are
//! objects with a code then. Commands that need more than a small program are checked against their schemas by their
//! own tests.

use crate::place::Place;
use crate::schema;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Output;

const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
struct counter { long mine; long theirs; char rest[240]; unsigned late : 3; long last; };
static struct counter counters[64];
__attribute__((noinline)) long work(struct counter *counter, int which)
{
	if (which) counter->theirs++; else counter->mine++;
	return counter->last + counter->late;
}
static void *run(void *which)
{
	long sum = 0;
	for (int i = 0; i < 400; i++)
		sum += work(&counters[i % 64], which != 0);
	return (void *)sum;
}
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, run, counters);
	run(0);
	pthread_join(other, 0);
	printf("done\n");
	return 0;
}
"#;

const TABLE: &str = "cycles,base,1171186635,0.08%,200\ncycles,patched,1175215649,0.08%,200\n";

const LOCK: &str = r#"schema = "lineup.lock/1"
[[group]]
type = "counter"
line_bytes = 64
data_model = "LP64"
members = ["mine", "theirs"]
"#;

/// A document that a command printed, with its exit code.
fn printed(place: &Place, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = place.lineup(arguments).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{arguments:?}: {error}: {said}{}", String::from_utf8_lossy(&output.stdout))
    });
    (document, output.status.code())
}

/// Runs commands that each print a document of a schema, in this order.
fn all_print(place: &Place, commands: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (schema, arguments) in commands {
        let (document, _) = printed(place, arguments);
        match document["schema"] == *schema {
            true => {
                wrong.extend(schema::faults(&document).into_iter().map(|fault| format!("{schema}: {fault}")))
            }
            false => wrong.push(format!("{arguments:?} gave {document:#}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn commands_on_files_and_figures_print_what_their_schemas_say() {
    let place = Place::new(PROGRAM, &["-pthread"]);
    fs::write(place.source().join("table.csv"), TABLE).expect("writes");
    fs::write(place.source().join("lineup.lock"), LOCK).expect("writes");
    fs::copy(place.source().join("program"), place.source().join("other")).expect("copies");
    let group = "web:shares=2,tasks=3,busy=~100ms,sleep=~100ms";
    let sched = ["sched", "--cpus", "2", "--group", group, "--seeds", "2", "--time", "1s", "--json"];
    all_print(
        &place,
        &[
            ("lineup.layout/1", &["layout", "program", "--json"]),
            ("lineup.layout/1", &["layout", "program", "counter", "--json"]),
            ("lineup.layout-diff/1", &["layout", "program", "--diff", "other", "--json"]),
            ("lineup.check/1", &["layout", "program", "--check", "lineup.lock", "--json"]),
            ("lineup.measure/1", &["measure", "-r", "3", "--json", "--", "./program"]),
            ("lineup.compare/1", &["compare", "-n", "4", "--json", "./program", "./other"]),
            ("lineup.printed/1", &["compare", "--from-table", "table.csv", "--json"]),
            (
                "lineup.derive/1",
                &["measure", "--derive", "2*(mem-hit)", "--json", "mem=644.09±11.39", "hit=88.16±1.35"],
            ),
            ("lineup.sched/1", &sched),
            (
                "lineup.sched-sweep/1",
                &[&sched[..], &["--sweep", "shares=2,64", "--sweep", "tasks=2,3"]].concat(),
            ),
            ("lineup.doctor/1", &["doctor", "--json"]),
            ("lineup.effects/1", &["effects", "--json", "--", "./program"]),
            ("lineup.effects-check/1", &["effects", "--json", "--against", "./other", "--", "./program"]),
        ],
    );
}

#[test]
fn commands_that_record_print_what_their_schemas_say() {
    let place = Place::new(PROGRAM, &["-pthread"]);
    let caches = ["--cache", "l1i=32K,8,64", "--cache", "l1d=32K,8,64", "--cache", "l2=1M,16,64"];
    let find = [&["find", "--json", "--least", "0"][..], &caches, &["--", "./program"]].concat();
    let whole = ["record", "--json", "--whole-program", "--out", "run.rec"];
    let whole = [&whole[..], &caches, &["--", "./program"]].concat();
    let log = ["record", "--json", "--whole-program", "--log", "run.log"];
    let log = [&log[..], &["--", "./program"]].concat();
    all_print(
        &place,
        &[
            (
                "lineup.record/1",
                &["record", "--json", "--region", "work", "--out", "calls.rec", "--", "./program"],
            ),
            ("lineup.explain/1", &["explain", "--json", "calls.rec"]),
            ("lineup.usage/1", &["explain", "--usage", "calls.rec"]),
            ("lineup.threads/1", &["threads", "--json", "calls.rec"]),
            ("lineup.advice/2", &["advise", "--json", "calls.rec", "--source", ".", "--build", "make"]),
            ("lineup.find/1", &find),
            ("lineup.record/1", &whole),
            ("lineup.code/1", &["explain", "run.rec", "--json"]),
            ("lineup.record/1", &log),
            ("lineup.replay/1", &["find", "run.log", "--json"]),
            ("lineup.time/1", &["time", "--json", "--region", "work", "--", "./program"]),
        ],
    );
    place.assert_clean();
}

/// A field that nobody described is a fault, and so is one that is missing.
#[test]
fn schemas_know_every_field() {
    let place = Place::new(PROGRAM, &["-pthread"]);
    let (document, _) = printed(&place, &["layout", "program", "counter", "--json"]);
    assert!(schema::faults(&document).is_empty());
    for change in [
        |document: &mut Value| document["types"][0]["members"][0]["colour"] = json!("red"),
        |document: &mut Value| document["types"][0]["lines"] = json!("five"),
        |document: &mut Value| drop(document["types"][0].as_object_mut().expect("an object").remove("holes")),
        |document: &mut Value| document["extra"] = json!(1),
    ] {
        let mut changed = document.clone();
        change(&mut changed);
        assert!(!schema::faults(&changed).is_empty(), "{changed:#}");
    }
}

/// Every schema is JSON Schema of 2020-12, closed wherever it names fields, and described in docs/json.md.
#[test]
fn schemas_are_closed_and_documented() {
    let documented = fs::read_to_string(schema::folder().join("../json.md")).expect("docs/json.md");
    let names: BTreeSet<_> = fs::read_dir(schema::folder())
        .expect("schemas")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let text = fs::read_to_string(schema::folder().join(&name)).expect("a schema");
        let schema: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{name}");
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        let of =
            schema["properties"]["schema"]["const"].as_str().unwrap_or_else(|| panic!("{name}: no name"));
        assert_eq!(schema::file(of).file_name().and_then(|file| file.to_str()), Some(name.as_str()));
        assert!(documented.contains(&format!("## {of}\n")), "{of} has no section in docs/json.md");
        assert_closed(&schema, &name);
    }
}

fn assert_closed(schema: &Value, at: &str) {
    if let Some(object) = schema.as_object() {
        let is_open =
            object.contains_key("properties") && object.get("type").is_some_and(|kind| kind != "string");
        assert!(
            !is_open || object.get("additionalProperties") == Some(&json!(false)),
            "{at} takes any field"
        );
        object.iter().for_each(|(name, below)| assert_closed(below, &format!("{at}/{name}")));
    }
    for below in schema.as_array().into_iter().flatten() {
        assert_closed(below, at);
    }
}

/// The error of a command, with its exit code, and the message for a person.
fn refused(output: &Output) -> (Value, String) {
    assert_eq!(output.status.code(), Some(2));
    let error = schema::checked(&output.stdout);
    assert_eq!(error["schema"], "lineup.error/1");
    (error, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn errors_are_objects_with_a_code() {
    let place = Place::new(PROGRAM, &["-pthread"]);
    fs::write(place.source().join("damaged"), b"\x7fELF and no more").expect("writes");
    fs::write(place.source().join("text"), "no program").expect("writes");
    fs::write(place.source().join("bare.c"), "int main(void) { return 0; }").expect("writes");
    let mut bare = std::process::Command::new("gcc");
    let bare = bare.args(["-s", "bare.c", "-o", "bare"]).current_dir(place.source()).status();
    assert!(bare.expect("gcc runs").success());
    let cases: &[(&str, &[&str], Option<&str>)] = &[
        ("usage", &["layout", "--json"], Some("lineup layout")),
        ("usage", &["layout", "program", "--json", "--line-size", "63"], None),
        ("usage", &["layout", "--json", "--colour", "program"], Some("--colour")),
        ("usage", &["--json", "no-such-command"], None),
        ("not-found", &["layout", "nowhere", "--json"], None),
        ("not-found", &["explain", "nowhere.rec", "--json"], None),
        ("bad-input", &["layout", "damaged", "--json"], None),
        ("bad-input", &["explain", "text", "--json"], None),
        ("no-debug-info", &["layout", "bare", "--json"], None),
        ("unknown-name", &["layout", "program", "countr", "--json"], Some("did you mean counter?")),
        ("unknown-name", &["record", "--json", "--region", "wrk", "--out", "x.rec", "--", "./program"], None),
    ];
    for (code, arguments, next) in cases {
        let output = place.lineup(arguments).output().expect("lineup runs");
        let (error, said) = refused(&output);
        assert_eq!(error["code"], *code, "{arguments:?}: {error:#}");
        let message = error["message"].as_str().expect("a message");
        let line = message.lines().next().expect("a line");
        assert!(said.contains(line), "a person is told the same: {said} and {message}");
        assert!(message.starts_with(error["what"].as_str().expect("what")), "{error:#}");
        let told = error["next"].as_str().unwrap_or_default();
        assert!(next.is_none_or(|next| told.contains(next)), "{arguments:?}: {error:#}");
    }
    let output = place.lineup(&["layout", "nowhere"]).output().expect("lineup runs");
    assert!(output.stdout.is_empty() && output.status.code() == Some(2), "text alone without --json");
    let output = place.lineup(&["layout", "--json", "--help"]).output().expect("lineup runs");
    assert!(output.status.success() && output.stdout.starts_with(b"Shows how types lie"));
}

/// A finding is no error: the document is the command's own.
#[test]
fn a_finding_is_printed_as_always() {
    let place = Place::new(PROGRAM, &["-pthread"]);
    let broken = LOCK.replace("\"theirs\"", "\"last\"");
    fs::write(place.source().join("lineup.lock"), broken).expect("writes");
    let (document, code) = printed(&place, &["layout", "program", "--check", "lineup.lock", "--json"]);
    schema::check(&document);
    assert_eq!((&document["schema"], code), (&json!("lineup.check/1"), Some(1)));
}
