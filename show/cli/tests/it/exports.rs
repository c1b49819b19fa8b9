//! Recorded calls in forms that other tools open: Chrome's trace events and comma-separated values.

use crate::installed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// Two threads; `outer` calls `inner` twice, each with accesses of its own.
const PROGRAM: &str = "#include <pthread.h>
struct item { long a, b; char rest[112]; };
static struct item items[8];
__attribute__((noinline)) long inner(struct item *one) { return one->a += 2; }
__attribute__((noinline)) long outer(struct item *one) { one->b++; return inner(one) + inner(one + 1); }
static void *run(void *first) { for (int i = 0; i < 30; i++) outer(first); return first; }
int main(void)
{
	pthread_t other;
	pthread_create(&other, 0, run, items + 4);
	run(items);
	return pthread_join(other, 0);
}
";

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    installed::lineup().args(arguments).current_dir(folder).output().expect("lineup runs")
}

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = lineup(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("main.c"), PROGRAM).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-O2", "-pthread", "-o", "program", "main.c"]).current_dir(folder.path());
    assert!(compiler.status().expect("cc runs: apt install gcc").success());
    let regions =
        ["record", "--region", "outer", "--region", "inner", "--out", "calls.rec", "--", "./program"];
    printed(folder.path(), &regions);
    folder
}

/// Checks a trace against the structure that the format's document describes, and returns its slices.
fn slices(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(document["displayTimeUnit"], "ns", "\"ms\" or \"ns\"");
    assert!(document["otherData"]["tick"].is_string());
    let events = document["traceEvents"].as_array().expect("traceEvents");
    let mut names: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    let mut slices = Vec::new();
    for event in events {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"));
        assert!(event["name"].is_string() && event["args"].is_object(), "{event}");
        match event["ph"].as_str() {
            Some("M") => {
                assert!(["process_name", "thread_name"].contains(&event["name"].as_str().expect("a name")));
                assert!(event["args"]["name"].is_string(), "{event}");
                if event["name"] == "thread_name" {
                    *names.entry((number("pid"), number("tid"))).or_default() += 1;
                }
            }
            Some("X") => {
                assert!(event["cat"].is_string(), "{event}");
                assert!(
                    ["ts", "dur"].iter().all(|key| event[key].as_f64().is_some_and(|time| time >= 0.0)),
                    "{event}"
                );
                assert_eq!(
                    names.get(&(number("pid"), number("tid"))),
                    Some(&1),
                    "a track with one name before it"
                );
                slices.push(event.clone());
            }
            other => panic!("phase {other:?}"),
        }
    }
    slices
}

#[test]
fn recorded_calls_are_slices_that_lie_in_each_other_as_calls_do() {
    let folder = recorded();
    assert_eq!(printed(folder.path(), &["explain", "calls.rec", "--trace", "trace.json"]), "");
    let text = std::fs::read_to_string(folder.path().join("trace.json")).expect("a trace");
    let slices = slices(&text);
    let of = |name: &str| slices.iter().filter(|slice| slice["name"] == name).cloned().collect::<Vec<_>>();
    let (outer, inner) = (of("outer"), of("inner"));
    assert_eq!((outer.len(), inner.len()), (60, 120));
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["otherData"]["calls_left_out_without_time"], 0);
    assert_eq!(document["otherData"]["recorded"], "./program");
    let span = |slice: &Value| {
        let begin = slice["ts"].as_f64().expect("a time");
        (slice["tid"].as_u64(), begin, begin + slice["dur"].as_f64().expect("a time"))
    };
    for slice in &inner {
        let (thread, begin, end) = span(slice);
        let holds = |around: &&Value| {
            let (its, from, to) = span(around);
            its == thread && from <= begin && end <= to + 0.001
        };
        assert!(outer.iter().any(|around| holds(&around)), "{slice}");
        assert_eq!(slice["args"]["stores"], 1, "{slice}");
    }
    assert!(
        outer.iter().all(|slice| slice["args"]["loads"].as_u64() >= Some(3)),
        "its own and those of both calls"
    );
}

#[test]
fn tables_have_a_line_for_each_call_and_for_each_member() {
    let folder = recorded();
    let rows = |text: &str| -> Vec<BTreeMap<String, String>> {
        let mut lines = text.lines();
        let head: Vec<String> = lines.next().expect("a head").split(',').map(str::to_string).collect();
        lines
            .map(|line| {
                let fields: Vec<String> =
                    line.split(',').map(|field| field.trim_matches('"').to_string()).collect();
                assert_eq!(fields.len(), head.len(), "{line}");
                head.iter().cloned().zip(fields).collect()
            })
            .collect()
    };
    let calls = rows(&printed(folder.path(), &["explain", "calls.rec", "--csv", "calls"]));
    assert_eq!(calls.len(), 180);
    let outer = calls.iter().filter(|call| call["region"] == "outer").collect::<Vec<_>>();
    assert!(outer.iter().all(|call| {
        let cycles = |key: &str| call[key].parse::<u64>().expect("cycles");
        cycles("begun_cycles") <= cycles("ended_cycles") && call["end"] == "returned"
    }));
    let of_inner = printed(folder.path(), &["explain", "calls.rec", "--csv", "calls", "--region", "inner"]);
    assert_eq!(rows(&of_inner).len(), 120);

    let members = rows(&printed(folder.path(), &["explain", "calls.rec", "--csv", "members"]));
    let of_a = members.iter().filter(|row| row["region"] == "inner" && row["member"].ends_with(".a"));
    let stores: f64 = of_a.map(|row| row["stores_per_call"].parse::<f64>().expect("a number")).sum();
    assert!((stores - 1.0).abs() < 1e-9, "{stores} stores to `a` in a call of inner");
    let explained: Value =
        serde_json::from_str(&printed(folder.path(), &["explain", "calls.rec", "--json"])).expect("JSON");
    let parts = explained["regions"].as_array().expect("regions").iter().flat_map(|region| {
        region["map"]
            .as_array()
            .expect("lines")
            .iter()
            .flat_map(|line| line["parts"].as_array().expect("parts"))
    });
    assert_eq!(members.len(), parts.count(), "the lines of the JSON form");
}

#[test]
fn what_has_no_such_form_is_refused_with_what_has() {
    let folder = recorded();
    for (arguments, said) in [
        (
            &["explain", "calls.rec", "--csv", "calls", "--region", "nothing"][..],
            "region nothing is not in the recording",
        ),
        (&["explain", "calls.rec", "--trace", "no/such/folder"], "cannot write no/such/folder"),
        (&["explain", "calls.rec", "--trace", "a", "--csv", "calls"], "cannot be used with"),
        (&["trace", "report", "calls.rec", "--format", "chrome"], "not of a whole system"),
    ] {
        let output = lineup(folder.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{said} in {error}");
    }
}
