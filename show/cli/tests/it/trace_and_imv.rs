//! `lineup trace` and `lineup imv` against a program that uses the runtime.

use crate::schema;
use crate::served;

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

fn lineup(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lineup")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn values_of_a_running_program_are_shown_and_changed_and_its_trace_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.trace");
    let mut child = Command::new(served::program(folder.path()))
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");

    let listed = text(&lineup(&["imv", "list", &pid]));
    assert!(listed.contains("threshold") && listed.contains("signed32") && listed.contains("-5"), "{listed}");
    let set = lineup(&["imv", "set", &pid, "threshold", "42"]);
    assert!(set.status.success() && text(&set).contains("42"), "{}", text(&set));
    let shown: serde_json::Value =
        schema::checked(&lineup(&["imv", "--json", "get", &pid, "threshold"]).stdout);
    assert_eq!(shown["schema"], "lineup.imv/1");
    assert_eq!(shown["values"][0]["value"], "42");
    for (arguments, reason) in [
        (["imv", "set", &pid, "threshold", "99999999999"], "is no value"),
        (["imv", "set", &pid, "nothing", "1"], "no immediate value is named"),
        (["imv", "set", &pid, "two words", "1"], "no spaces"),
    ] {
        let refused = lineup(&arguments);
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused).contains(reason), "{}", text(&refused));
    }
    drop(child.stdin.take());
    assert_eq!(lines.next().unwrap().unwrap(), "threshold 42");
    assert!(child.wait().unwrap().success());
    let gone = lineup(&["imv", "list", &pid]);
    assert_eq!(gone.status.code(), Some(2));

    let file = file.to_str().unwrap();
    let report = text(&lineup(&["trace", "report", "--full", file]));
    assert!(report.contains("turn") && report.contains("#mark") && report.contains("lost: "), "{report}");
    let summary: serde_json::Value =
        schema::checked(&lineup(&["trace", "report", "--format", "json", file]).stdout);
    assert_eq!(summary["schema"], "lineup.trace/1");
    let csv = text(&lineup(&["trace", "report", "--format", "csv", file]));
    assert!(csv.lines().count() > 1000, "{}", csv.lines().count());
    let html = text(&lineup(&["trace", "report", "--format", "html", file, file]));
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("peaks laid over each other"));
    assert!(!html.contains("http:") && !html.contains("https:") && !html.contains("<script"));
    assert!(!lineup(&["trace", "report", "--format", "perfetto", file]).stdout.is_empty());
    let log = text(&lineup(&["trace", "report", "--format", "hdr", file]));
    assert!(log.contains("Tag=turn,0.000,") && log.contains("HISTF"), "{log}");
    assert!(text(&lineup(&["trace", "report", "--format", "hdr-percentiles", file])).contains("Percentile"));
    let explained = text(&lineup(&["trace", "explain", file]));
    assert!(explained.contains("data misses") && explained.contains("not observed"), "{explained}");
    let explained: serde_json::Value = schema::checked(&lineup(&["trace", "explain", "--json", file]).stdout);
    assert_eq!(explained["schema"], "lineup.explain-trace/1");
}

#[test]
fn bad_input_is_refused_with_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no.trace");
    std::fs::write(&path, "not a trace").unwrap();
    let path = path.to_str().unwrap();
    for (arguments, reason) in [
        (vec!["trace", "report", "/nonexistent"], "cannot read the trace"),
        (vec!["trace", "report", path], "not a trace"),
        (vec!["trace", "explain", path, "--tail", "0.9..0.1"], "quantiles"),
        (vec!["imv", "list", "4194999"], "there is no process"),
    ] {
        let refused = lineup(&arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        assert!(text(&refused).contains(reason), "{arguments:?}: {}", text(&refused));
    }
}
