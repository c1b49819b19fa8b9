//! The server from a client's side: JSON-RPC, one message a line, over standard input and output.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running server with a stand-in for `lineup` that prints its arguments.
struct Server {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    last: u64,
}

/// A stand-in for `lineup`: prints its arguments as JSON. A first positional argument named `broken` is an
/// error.
const LINEUP: &str = r#"#!/bin/sh
case "$*" in
*broken*) echo '{"schema":"lineup.error/1","code":"not-found","message":"a; b","what":"a","next":"b"}'; exit 2 ;;
*mute*) echo "it says nothing" >&2; exit 3 ;;
*finding*) echo '{"schema":"lineup.check/1"}'; exit 1 ;;
*endless*) exec sleep 600 ;;
*large*) head -c 5000000 /dev/zero | tr '\0' 1; exit 0 ;;
esac
printf '{"arguments":['
separator=
for argument in "$@"; do printf '%s"%s"' "$separator" "$argument"; separator=,; done
printf ']}\n'
"#;

impl Server {
    /// Starts it and exchanges the first messages.
    fn start(folder: &Path, options: &[&str]) -> Server {
        let lineup = folder.join("lineup");
        std::fs::write(&lineup, LINEUP).expect("writes");
        std::fs::set_permissions(&lineup, PermissionsExt::from_mode(0o755)).expect("may be run");
        let mut child = Command::new(env!("CARGO_BIN_EXE_lineup-mcp"))
            .arg("--lineup")
            .arg(&lineup)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut server = Server { child, to, from, last: 0 };
        let hello = server.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "lineup", "{hello}");
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        assert!(hello["result"]["capabilities"]["tools"].is_object(), "{hello}");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.to.as_mut().expect("a pipe"), "{message}").expect("the server reads");
    }

    /// The next message of the server.
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("the server answers");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The answer to a request.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.next();
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(id)), "{answer}");
        answer
    }

    /// A tool's result: its document, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (Value, bool) {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let document: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(result["structuredContent"], document, "both forms of an answer are one");
        (document, result["isError"] == json!(true))
    }

    /// Closes the pipe, as clients do, and waits for the end.
    fn end(mut self) {
        drop(self.to.take());
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn tools_are_listed_with_what_they_take() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &[]);
    let answer = server.ask("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["layout", "explain", "find", "advise", "study"]);
    for tool in tools {
        let reads = ["layout", "explain"].contains(&tool["name"].as_str().expect("a name"));
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 40));
    }
    server.end();
}

#[test]
fn every_tool_is_a_command() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &["--allow-write"]);
    let study = json!({ "source": "s", "build": "make x", "regions": ["f", "g"], "command": ["./a", "--b"], "out": "o" });
    for (tool, arguments, command) in [
        ("layout", json!({ "file": "a b", "types": ["t"] }), &["layout", "--json", "--", "a b", "t"][..]),
        ("explain", json!({ "recording": "c.rec" }), &["explain", "--json", "--", "c.rec"]),
        ("find", json!({ "command": ["./a", "-x"] }), &["find", "--json", "--", "./a", "-x"]),
        (
            "advise",
            json!({ "recording": "c.rec", "source": ".", "build": "make" }),
            &["advise", "--json", "--source=.", "--build=make", "--", "c.rec"],
        ),
        (
            "study",
            study,
            &[
                "study",
                "--json",
                "--source=s",
                "--build=make x",
                "--out=o",
                "--region=f",
                "--region=g",
                "--",
                "./a",
                "--b",
            ],
        ),
    ] {
        let (document, is_error) = server.call(tool, arguments);
        assert_eq!((&document["arguments"], is_error), (&json!(command), false), "{tool}");
    }
    server.end();
}

#[test]
fn what_writes_or_runs_is_refused_until_it_is_allowed() {
    let folder = folder();
    let study = json!({ "source": "s", "build": "b", "regions": ["f"], "command": ["./a"], "out": "o" });
    let run = json!({ "command": ["./a"] });
    let build = json!({ "recording": "c.rec", "source": ".", "build": "make" });
    for (options, tool, arguments, next) in [
        (&[][..], "find", &run, "--allow-run"),
        (&[], "advise", &build, "--allow-run"),
        (&[], "study", &study, "--allow-write"),
        (&["--allow-run"], "study", &study, "--allow-write"),
    ] {
        let mut server = Server::start(folder.path(), options);
        let (document, is_error) = server.call(tool, arguments.clone());
        assert!(is_error && document["code"] == "not-allowed", "{document}");
        assert!(document["next"].as_str().is_some_and(|text| text.contains(next)), "{document}");
        let (_, is_error) = server.call("advise", json!({ "recording": "c.rec" }));
        assert!(!is_error, "advice without a build only reads");
        server.end();
    }
    let mut server = Server::start(folder.path(), &["--allow-run"]);
    assert!(!server.call("find", run).1);
}

#[test]
fn bad_calls_are_told_apart() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &[]);
    let error =
        |answer: Value| answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    assert_eq!(error(server.ask("tools/call", call("format", json!({})))), "there is no tool `format`");
    assert_eq!(error(server.ask("tools/call", call("layout", json!({})))), "layout: `file` is missing");
    let unknown = call("layout", json!({ "file": "a", "colour": "red" }));
    assert_eq!(error(server.ask("tools/call", unknown)), "layout: there is no argument `colour`");
    assert!(error(server.ask("no/such/method", json!({}))).contains("no/such/method"));
    // The server still answers after all of them.
    let (document, is_error) = server.call("layout", json!({ "file": "broken" }));
    assert!(is_error && document["code"] == "not-found", "{document}");
    let (document, is_error) = server.call("layout", json!({ "file": "mute" }));
    assert!(
        is_error && document["what"].as_str().is_some_and(|what| what.contains("it says nothing")),
        "{document}"
    );
    let (document, is_error) = server.call("layout", json!({ "file": "large" }));
    assert!(is_error && document["code"] == "too-much", "{document}");
    let (document, is_error) = server.call("layout", json!({ "file": "finding" }));
    assert!(!is_error && document["schema"] == "lineup.check/1", "a finding is an answer: {document}");
    server.end();
}

#[test]
fn a_call_that_is_given_up_ends_its_command() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &[]);
    let params = json!({ "name": "layout", "arguments": { "file": "endless" } });
    server.send(&json!({ "jsonrpc": "2.0", "id": "e", "method": "tools/call", "params": params }));
    let ours = server.child.id();
    wait_until(|| has_children(ours));
    let cancelled = json!({ "requestId": "e", "reason": "enough" });
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled }));
    wait_until(|| !has_children(ours));
    let (document, _) = server.call("layout", json!({ "file": "a" }));
    assert_eq!(document["arguments"][0], "layout");
    server.end();
}

/// True while a process has children.
fn has_children(process: u32) -> bool {
    let parent = |status: String| status.lines().find_map(|line| line.strip_prefix("PPid:\t")?.parse().ok());
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut statuses =
        processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("status")).ok());
    statuses.any(|status| parent(status) == Some(process))
}

/// Waits for an event that comes soon.
fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("it did not come");
}

#[test]
fn without_lineup_it_is_told_what_to_do() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &[]);
    std::fs::remove_file(folder.path().join("lineup")).expect("removes");
    let (document, is_error) = server.call("layout", json!({ "file": "a" }));
    assert!(is_error && document["code"] == "missing-tool", "{document}");
}
