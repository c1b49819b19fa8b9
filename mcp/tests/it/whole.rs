//! Every tool with the real `lineup`, built from the same sources, on a program of two threads' counters.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct device { long mode; char name[120]; long ticks; };
static struct device *devices;
__attribute__((noinline)) long walk(struct device *device) { return device->mode + device->ticks++; }
int main(void)
{
	long sum = 0;
	devices = calloc(20000, sizeof *devices);
	for (int i = 0; i < 100000; i++)
		sum += walk(&devices[i % 20000]);
	printf("%ld\n", sum);
	return 0;
}
"#;

/// The `lineup` built from the same sources, with its recorder in the same folder.
fn lineup() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    lineup_fixtures::lineup_folder(&root).join("lineup")
}

/// The server's answers to these calls, in their order: each document, and whether it is an error.
fn calls(lineup: &Path, folder: &Path, calls: &[(&str, Value)]) -> Vec<(Value, bool)> {
    let mut server = Command::new(env!("CARGO_BIN_EXE_lineup-mcp"))
        .arg("--lineup")
        .arg(lineup)
        .arg("--allow-write")
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut to = server.stdin.take().expect("a pipe");
    let mut from = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let client = json!({ "name": "test", "version": "1" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let mut ask = |id: usize, method: &str, params: Value| -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(to, "{request}").expect("the server reads");
        if id == 0 {
            let greeted = from.next().expect("an answer").expect("text");
            writeln!(to, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .expect("reads");
            return serde_json::from_str(&greeted).expect("JSON");
        }
        serde_json::from_str(&from.next().expect("an answer").expect("text")).expect("JSON")
    };
    ask(0, "initialize", hello);
    let answers = (1..).zip(calls).map(|(id, (tool, arguments))| {
        let answer = ask(id, "tools/call", json!({ "name": tool, "arguments": arguments }));
        (answer["result"]["structuredContent"].clone(), answer["result"]["isError"] == json!(true))
    });
    let answers = answers.collect();
    drop(to);
    assert!(server.wait().expect("it ends").success());
    answers
}

#[test]
fn every_tool_does_its_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let lineup = lineup();
    std::fs::write(folder.join("main.c"), PROGRAM).expect("writes");
    std::fs::write(folder.join("Makefile"), "program: main.c\n\tgcc -g -O2 -o program main.c\n")
        .expect("writes");
    let made = Command::new("make").arg("-s").current_dir(folder).status();
    assert!(made.expect("make runs").success());
    let record = ["record", "--region", "walk", "--calls", "200", "--out", "calls.rec", "--", "./program"];
    let recorded = Command::new(&lineup).args(record).current_dir(folder).output().expect("lineup runs");
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let study = json!({
        "source": ".", "build": "make", "regions": ["walk"], "command": ["./program"], "out": "out",
    });
    let given = [
        ("layout", json!({ "file": "program", "types": ["device"] })),
        ("layout", json!({ "file": "program", "types": ["devise"] })),
        ("explain", json!({ "recording": "calls.rec" })),
        ("find", json!({ "command": ["./program"] })),
        ("advise", json!({ "recording": "calls.rec", "source": ".", "build": "make" })),
        ("study", study),
    ];
    let answers = calls(&lineup, folder, &given);
    let schemas: Vec<&str> = answers.iter().filter_map(|(answer, _)| answer["schema"].as_str()).collect();
    let expected = ["layout/1", "error/1", "explain/1", "find/1", "advice/2", "study/1"];
    assert_eq!(schemas, expected.map(|name| format!("lineup.{name}")), "{answers:#?}");
    let errors: Vec<bool> = answers.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, true, false, false, false, false]);
    assert_eq!(answers[0].0["types"][0]["size_bytes"], 136);
    assert_eq!(answers[1].0["code"], "unknown-name");
    assert!(folder.join("out/report.html").is_file(), "a study leaves its report");
    assert_eq!(std::fs::read_to_string(folder.join("main.c")).expect("the source"), PROGRAM);
}
