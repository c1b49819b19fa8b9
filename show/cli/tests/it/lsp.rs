//! `lineup lsp`, driven as an editor drives it: over its standard input and output, with programs that were built.

use crate::installed;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, SystemTime};

/// A type with two holes, which one thread writes and another one reads. On a busy machine, too, they take turns.
const PROGRAM: &str = "#include <pthread.h>
#include <stdlib.h>
#include \"lock.h\"
struct stats {
	char kind;
	long limit;
	int flags;
	long hits;
	struct lock lock;
	char name[40];
};
typedef struct { short low; } pair_t;
pair_t pair;
static struct stats *shared;
static long sink; static pthread_barrier_t both;
__attribute__((noinline)) void count(struct stats *s, long by) { s->hits += by; }
__attribute__((noinline)) long check(const struct stats *s) { return s->limit + s->flags; }
static void wait(int i) { if (i % 10 == 0) pthread_barrier_wait(&both); }
static void *writer(void *unused) { for (int i = 0; i < 2000; i++) { wait(i); count(shared, i); } return unused; }
static void *reader(void *unused) { for (int i = 0; i < 2000; i++) { wait(i); sink += check(shared); } return unused; }
int main(void)
{
	pthread_t a, b;
	pthread_barrier_init(&both, 0, 2); shared = aligned_alloc(64, 128);
	shared->limit = 4;
	pthread_create(&a, NULL, writer, NULL);
	pthread_create(&b, NULL, reader, NULL);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return sink == 3;
}
";
const HEADER: &str = "struct lock {\n\tint owner;\n};\n";

const LOCK: &str = "schema = \"lineup.lock/1\"\n[[group]]\ntype = \"stats\"\nline_bytes = 64\ndata_model = \"LP64\"\n\
                    members = [\"limit\", \"flags\"]\napart = [\"hits\"]\n";

/// A folder with a program that was built from its sources.
struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project { folder: tempfile::tempdir().expect("a folder") };
        project.write("stats.c", PROGRAM);
        project.write("lock.h", HEADER);
        project.build(&["-g"]);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    fn build(&self, flags: &[&str]) {
        let mut compiler = Command::new("cc");
        compiler
            .args(["-O2", "-pthread", "-o", "stats", "stats.c"])
            .args(flags)
            .current_dir(self.folder.path());
        assert!(compiler.status().expect("cc runs: apt install gcc").success());
    }

    /// Sets a file's time to this many seconds after the program.
    fn written_after(&self, name: &str, seconds: u64) {
        let built = std::fs::metadata(self.path("stats")).and_then(|one| one.modified()).expect("a program");
        self.set_time(name, built + Duration::from_secs(seconds));
    }

    fn set_time(&self, name: &str, time: SystemTime) {
        let file = std::fs::File::options().append(true).open(self.path(name)).expect("a file");
        file.set_modified(time).expect("a time");
    }

    fn record(&self) {
        let mut lineup = installed::lineup();
        lineup.args([
            "record",
            "--region",
            "count",
            "--region",
            "check",
            "--calls",
            "100",
            "--out",
            "calls.rec",
            "--",
        ]);
        let output = lineup.arg("./stats").current_dir(self.folder.path()).output().expect("lineup runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The server and the editor's end of its pipes.
struct Editor {
    server: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// The server's messages that nobody asked for yet.
    notes: Vec<Value>,
    next_id: u64,
}

impl Editor {
    fn start(folder: &Path, arguments: &[&str]) -> Editor {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
        command.arg("lsp").args(arguments).current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.stderr(Stdio::piped()).spawn().expect("lineup runs");
        let (input, output) = (server.stdin.take(), server.stdout.take().expect("a pipe"));
        Editor { server, input, output, notes: Vec::new(), next_id: 0 }
    }

    /// A server that looks at a project's program and has its source open.
    fn on(project: &Project, options: Value) -> Editor {
        let mut editor = Editor::start(project.folder.path(), &[]);
        editor.initialize(project, options);
        editor.open(project, "stats.c", PROGRAM);
        editor
    }

    fn initialize(&mut self, project: &Project, options: Value) -> Value {
        let root = format!("file://{}", project.folder.path().display());
        let params = json!({
            "processId": null,
            "capabilities": { "workspace": { "didChangeWatchedFiles": { "dynamicRegistration": true } } },
            "workspaceFolders": [{ "uri": root, "name": "project" }],
            "initializationOptions": options,
        });
        let answer = self.ask("initialize", params);
        self.tell("initialized", json!({}));
        answer
    }

    fn send(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("the pipe is open");
        input.write_all(bytes).expect("the server reads");
        input.flush().expect("the server reads");
    }

    fn message(&mut self, message: &Value) {
        let body = message.to_string();
        self.send(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.message(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks and waits for the answer; messages that come before it are kept.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.message(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.notes.push(message);
        }
    }

    fn read(&mut self) -> Value {
        let mut header = Vec::new();
        while !header.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.output.read_exact(&mut byte).expect("the server writes");
            header.push(byte[0]);
        }
        let header = String::from_utf8(header).expect("a header");
        let length = header.trim().strip_prefix("Content-Length: ").and_then(|length| length.parse().ok());
        let mut body = vec![0; length.expect("a length")];
        self.output.read_exact(&mut body).expect("the server writes");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn open(&mut self, project: &Project, name: &str, text: &str) {
        let language = match name.rsplit('.').next() {
            Some("rs") => "rust",
            Some("cc") => "cpp",
            _ => "c",
        };
        let item = json!({ "uri": project.uri(name), "languageId": language, "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": item }));
    }

    /// The hover at a name's first occurrence after another text.
    fn hover(
        &mut self,
        project: &Project,
        (file, text): (&str, &str),
        after: &str,
        name: &str,
    ) -> Option<String> {
        let start = text.find(after).expect("the text") + after.len();
        let at = start + text[start..].find(name).expect("the name");
        let line = text[..at].matches('\n').count();
        let character = at - text[..at].rfind('\n').map_or(0, |end| end + 1);
        let answer = self.ask(
            "textDocument/hover",
            json!({ "textDocument": { "uri": project.uri(file) }, "position": { "line": line, "character": character } }),
        );
        answer["result"]["contents"]["value"].as_str().map(str::to_string)
    }

    /// The last diagnostics of a file: severity, line from 1, message. It asks for something first, so that all earlier
    /// messages have been answered.
    fn diagnostics(&mut self, project: &Project, name: &str) -> Vec<(u64, u64, String)> {
        self.ask("textDocument/nothing", json!(null));
        let uri = project.uri(name);
        let is_its = |note: &&Value| {
            note["method"] == "textDocument/publishDiagnostics" && note["params"]["uri"] == uri.as_str()
        };
        let last = self.notes.iter().rev().find(is_its).expect("diagnostics of the file");
        let all = last["params"]["diagnostics"].as_array().expect("a list").iter();
        let number = |value: &Value| value.as_u64().expect("a number");
        all.map(|one| {
            let line = number(&one["range"]["start"]["line"]) + 1;
            (number(&one["severity"]), line, one["message"].as_str().expect("a message").to_string())
        })
        .collect()
    }

    fn shown(&self) -> Vec<&str> {
        let shown = self.notes.iter().filter(|note| note["method"] == "window/showMessage");
        shown.filter_map(|note| note["params"]["message"].as_str()).collect()
    }

    /// Ends the server as the protocol says.
    fn leave(mut self) {
        assert_eq!(self.ask("shutdown", json!(null))["result"], Value::Null);
        self.tell("exit", json!(null));
        assert_eq!(self.server.wait().expect("an end").code(), Some(0));
    }

    /// The server's exit, and its output on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let output = self.server.wait_with_output().expect("an end");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

#[test]
fn hover_tells_where_a_type_and_its_members_lie() {
    let project = Project::new();
    let mut editor = Editor::start(project.folder.path(), &["stats", "--stdio"]);
    let answer = editor.initialize(&project, json!(null));
    assert_eq!(answer["result"]["capabilities"]["hoverProvider"], true);
    assert_eq!(answer["result"]["serverInfo"]["name"], "lineup");
    editor.open(&project, "stats.c", PROGRAM);
    let source = ("stats.c", PROGRAM);
    assert_eq!(
        editor.hover(&project, source, "struct ", "stats").as_deref(),
        Some(
            "**struct `stats`** · 80 bytes, alignment 8, 2 lines of 64\n\n\
             2 holes, 11 bytes: 7 before `limit`, 4 before `hits`; 4 bytes of padding at the end; \
             on more lines than they need: `name`."
        )
    );
    assert_eq!(
        editor.hover(&project, source, "struct stats {", "hits").as_deref(),
        Some(
            "**`stats.hits`** `long int` · offset 24, 8 bytes, line 0 of 64 bytes\n\n4 unused bytes before it."
        )
    );
    assert_eq!(
        editor.hover(&project, source, "struct stats {", "name").as_deref(),
        Some("**`stats.name`** `char [40]` · offset 36, 40 bytes, lines 0 to 1 of 64 bytes")
    );
    assert_eq!(
        editor.hover(&project, source, "}", "pair_t").as_deref(),
        Some("**struct `pair_t`** · 2 bytes, alignment 2, 1 line of 64")
    );
    assert_eq!(editor.hover(&project, source, "int main", "void"), None);
    let holes = [
        (4, 4, "4 bytes of padding at the end"),
        (4, 6, "a hole of 7 bytes before limit, at offset 1"),
        (4, 8, "a hole of 4 bytes before hits, at offset 20"),
    ];
    let mut told = editor.diagnostics(&project, "stats.c");
    told.sort();
    assert_eq!(told, holes.map(|(severity, line, text)| (severity, line, text.to_string())));
    editor.tell("textDocument/didClose", json!({ "textDocument": { "uri": project.uri("stats.c") } }));
    assert_eq!(editor.diagnostics(&project, "stats.c"), []);
    editor.leave();
}

#[test]
fn a_recording_and_a_lock_tell_what_is_hot_what_is_shared_and_what_is_pinned() {
    let project = Project::new();
    project.record();
    project.write("lineup.lock", LOCK);
    let options = json!({ "binaries": ["stats"], "recording": "calls.rec", "lock": "lineup.lock" });
    let mut editor = Editor::on(&project, options);
    let source = ("stats.c", PROGRAM);
    let of_type = editor.hover(&project, source, "struct ", "stats").expect("a hover");
    for told in [
        "- `count`: `hits` 100 %",
        "- `check`: `limit` 50.0 %, `flags` 50.0 %",
        "lineup.lock holds 1 group: not kept.",
        "member hits of stats moved onto 64-byte line 0, which it must stay off",
    ] {
        assert!(of_type.contains(told), "{told} in:\n{of_type}");
    }
    let of_member = editor.hover(&project, source, "struct stats {", "hits").expect("a hover");
    // The numbers of the two threads depend on chance.
    let any = |text: &str| text.replace("thread 1", "thread N").replace("thread 0", "thread N");
    for told in [
        "- `count`: 100 % of its accesses to the type; 1.00 loads, 1.00 stores per call",
        "Read by thread N, written by thread N.",
        "- lineup.lock: not on the 64-byte line of `limit`, `flags`: other threads write it",
    ] {
        assert!(any(&of_member).contains(told), "{told} in:\n{of_member}");
    }
    let unused = editor.hover(&project, source, "struct stats {", "kind").expect("a hover");
    assert!(unused.ends_with("No recorded call used it (`calls.rec`)."), "{unused}");
    let informations: Vec<(u64, String)> = editor
        .diagnostics(&project, "stats.c")
        .into_iter()
        .filter(|(severity, ..)| *severity == 3)
        .map(|(_, line, message)| (line, any(&message)))
        .collect();
    let expected = [
        (6, "limit is only read (thread N) and lies on a line with hits, written by thread N"),
        (7, "flags is only read (thread N) and lies on a line with hits, written by thread N"),
        (8, "hits is written by thread N on a line with limit, flags, used by thread N"),
        (8, "member hits of stats moved onto 64-byte line 0, which it must stay off: other threads write it"),
    ];
    assert_eq!(informations, expected.map(|(line, message)| (line, message.to_string())));
    editor.leave();
}

#[test]
fn documents_made_from_a_recording_tell_the_same() {
    let project = Project::new();
    project.record();
    let mut lineup = installed::lineup();
    let output = lineup.args(["explain", "--json", "calls.rec"]).current_dir(project.folder.path()).output();
    std::fs::write(project.path("explain.json"), output.expect("lineup runs").stdout).expect("a file");
    let advice = json!({
        "schema": "lineup.advice/2", "orders": [], "refusals": [{ "owner": "stats", "constraints": [{
            "constraint": "positional-initialiser", "names": [], "at": { "path": "stats.c", "line": 3 }, "detail": null,
        }, { "constraint": "offsetof", "names": ["limit"], "at": null, "detail": "seen twice" }] }],
    });
    project.write("advice.json", &advice.to_string());
    let source = ("stats.c", PROGRAM);
    let mut editor = Editor::on(&project, json!({ "binaries": ["stats"], "recording": "explain.json" }));
    let told = editor.hover(&project, source, "struct stats {", "limit").expect("a hover");
    assert!(
        told.contains("- `check`: 50.0 % of its accesses to the type; 1.00 loads, 0.00 stores per call"),
        "{told}"
    );
    let shared = editor.diagnostics(&project, "stats.c");
    let expected = "hits is written on a line that several threads use, with limit, flags, only read";
    assert!(shared.iter().any(|(_, line, message)| (*line, message.as_str()) == (8, expected)), "{shared:?}");
    editor.leave();

    let mut editor = Editor::on(&project, json!({ "binaries": ["stats"], "recording": "advice.json" }));
    let told = editor.hover(&project, source, "struct stats {", "limit").expect("a hover");
    let pinned = "Pinned:\n- advice: the whole type: positional initialiser (stats.c:3)\n- advice: offsetof: seen twice";
    assert!(told.ends_with(pinned), "{told}");
    editor.leave();
}

#[test]
fn a_text_that_was_not_built_is_said_to_be_so() {
    let project = Project::new();
    let mut editor = Editor::on(&project, json!({ "binaries": ["stats"] }));
    assert_eq!(editor.diagnostics(&project, "stats.c").len(), 3);

    // Typed and not saved: the members are found where they are now, and nothing is claimed of holes.
    let typed = PROGRAM.replace("char kind;", "char kind;\n\tlong more;");
    let change = json!({ "textDocument": { "uri": project.uri("stats.c"), "version": 2 }, "contentChanges": [{ "text": typed }] });
    editor.tell("textDocument/didChange", change);
    let stale =
        |line, why: &str| vec![(4, line, format!("{why}: build it again to see holes and hot lines here"))];
    let not_saved = "this text is not saved, and stats was built from the file";
    assert_eq!(editor.diagnostics(&project, "stats.c"), stale(4, not_saved));
    let told = editor.hover(&project, ("stats.c", &typed), "struct stats {", "hits").expect("a hover");
    let warning = format!("**As built, not as written here**: {not_saved}.\n\n**`stats.hits`**");
    assert!(told.starts_with(&warning), "{told}");
    assert_eq!(editor.hover(&project, ("stats.c", &typed), "struct stats {", "more"), None);

    // Saved after the build.
    project.write("stats.c", &typed);
    project.written_after("stats.c", 5);
    editor.tell("textDocument/didSave", json!({ "textDocument": { "uri": project.uri("stats.c") } }));
    assert_eq!(
        editor.diagnostics(&project, "stats.c"),
        stale(4, "stats.c was changed after stats was built")
    );

    // Built again: the file's watcher reports it, and everything is right again.
    project.build(&["-g"]);
    project.written_after("stats.c", 0);
    editor.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(editor.diagnostics(&project, "stats.c").len(), 3);
    let told = editor.hover(&project, ("stats.c", &typed), "struct stats {", "more").expect("a hover");
    assert!(told.starts_with("**`stats.more`** `long int` · offset 8"), "{told}");

    // A checkout may give the text back an older time than the program's: then the members differ.
    let other = typed.replace("long more;", "long other;");
    project.write("stats.c", &other);
    project.set_time("stats.c", SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let change = json!({ "textDocument": { "uri": project.uri("stats.c"), "version": 3 }, "contentChanges": [{ "text": other }] });
    editor.tell("textDocument/didChange", change);
    assert_eq!(editor.diagnostics(&project, "stats.c"), stale(4, "stats was built with other members"));

    // A header that a member's type is declared in.
    project.write("stats.c", &typed);
    project.written_after("stats.c", 0);
    let change = json!({ "textDocument": { "uri": project.uri("stats.c"), "version": 4 }, "contentChanges": [{ "text": typed }] });
    editor.tell("textDocument/didChange", change);
    assert_eq!(editor.diagnostics(&project, "stats.c").len(), 3);
    project.write("lock.h", "struct lock {\n\tlong owner;\n};\n");
    project.written_after("lock.h", 5);
    editor.tell("textDocument/didSave", json!({ "textDocument": { "uri": project.uri("lock.h") } }));
    assert_eq!(editor.diagnostics(&project, "stats.c"), stale(4, "lock.h was changed after stats was built"));
    editor.leave();
}

#[test]
fn programs_that_cannot_be_read_are_named_with_what_to_do() {
    let project = Project::new();
    project.build(&["-s"]);
    let options = json!({ "binaries": ["stats", "missing"], "recording": "stats.c", "lock": "stats.c" });
    let mut editor = Editor::on(&project, options);
    let told = editor.hover(&project, ("stats.c", PROGRAM), "struct ", "stats").expect("a hover");
    assert!(told.contains("/stats: ") && told.contains("debug info"), "{told}");
    assert_eq!(editor.diagnostics(&project, "stats.c"), []);
    let shown = editor.shown().join("\n");
    for what in ["/stats: ", "/missing: there is no such file", "/stats.c: "] {
        assert!(shown.contains(what), "{what} in:\n{shown}");
    }
    // With debug information from now on.
    project.build(&["-g"]);
    editor.tell("workspace/didChangeWatchedFiles", json!({ "changes": [] }));
    assert_eq!(editor.diagnostics(&project, "stats.c").len(), 3);
    editor.leave();

    let mut editor = Editor::on(&project, json!({ "binary": "stats" }));
    assert_eq!(editor.hover(&project, ("stats.c", PROGRAM), "struct ", "stats"), None);
    let shown = editor.shown().join("\n");
    assert!(shown.contains("unknown field `binary`") && shown.contains("no program is named"), "{shown}");
    editor.leave();
}

#[test]
fn wrong_messages_are_refused_and_the_server_goes_on() {
    let project = Project::new();
    let mut editor = Editor::start(project.folder.path(), &["stats"]);
    assert_eq!(editor.ask("textDocument/hover", json!({}))["error"]["code"], -32002);
    editor.send(b"Content-Length: 5\r\n\r\n{not}");
    assert_eq!(editor.read()["error"]["code"], -32700);
    for wrong in [json!([]), json!(3), json!({ "id": 7 }), json!({ "id": 7, "method": 3 })] {
        editor.message(&wrong);
        assert_eq!(editor.read()["error"]["code"], -32600, "{wrong}");
    }
    editor.initialize(&project, json!({}));
    assert_eq!(editor.ask("initialize", json!({}))["error"]["code"], -32600);
    assert_eq!(editor.ask("textDocument/hover", json!({ "position": 3 }))["error"]["code"], -32602);
    assert_eq!(editor.ask("textDocument/rename", json!({}))["error"]["code"], -32601);
    editor.tell("textDocument/didOpen", json!({ "textDocument": 3 }));
    editor.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///x.c", "version": 1 }, "contentChanges": [] }),
    );
    editor.message(&json!({ "jsonrpc": "2.0", "id": "lineup-watch", "result": null }));
    editor.open(&project, "stats.c", PROGRAM);
    let far = json!({ "textDocument": { "uri": project.uri("stats.c") }, "position": { "line": 4_000_000_000_u32, "character": 9 } });
    assert_eq!(editor.ask("textDocument/hover", far)["result"], Value::Null);
    assert!(editor.hover(&project, ("stats.c", PROGRAM), "struct ", "stats").is_some());
    assert_eq!(editor.ask("shutdown", json!(null))["result"], Value::Null);
    assert_eq!(editor.ask("textDocument/hover", json!({}))["error"]["code"], -32600);
    editor.tell("exit", json!(null));
    assert_eq!(editor.end().0, Some(0));
}

#[test]
fn how_the_client_leaves_is_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let ended = |bytes: &[u8]| {
        let mut editor = Editor::start(folder.path(), &[]);
        editor.send(bytes);
        editor.end()
    };
    let exit = json!({ "jsonrpc": "2.0", "method": "exit" }).to_string();
    let framed = format!("Content-Length: {}\r\n\r\n{exit}", exit.len());
    assert_eq!(ended(framed.as_bytes()).0, Some(1), "without shutdown");
    assert_eq!(ended(b"").0, Some(1), "a pipe that is closed");
    for (wrong, said) in [
        (&b"Content-Length: 10\r\n\r\n{"[..], "closed the pipe within a message"),
        (b"Content-Length: many\r\n\r\n", "a length of \"many\""),
        (b"GET / HTTP/1.1\r\n\r\n", "a header without Content-Length"),
    ] {
        let (code, error) = ended(wrong);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(said), "{said} in {error}");
    }
}

#[test]
fn types_of_rust_are_found_by_their_names_and_members() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "mod inner {\n    pub struct Task<T> {\n        pub tag: u8,\n        pub value: T,\n        pub id: u32,\n    }\n}\n\
                fn main() {\n    let task = std::hint::black_box(inner::Task { tag: 1, value: 2u64, id: 3 });\n    \
                let other = std::hint::black_box(inner::Task { tag: 1, value: 2u8, id: 3 });\n    \
                println!(\"{} {} {}\", task.tag, task.value, task.id);\n    println!(\"{}\", other.value);\n}\n";
    std::fs::write(folder.path().join("main.rs"), text).expect("a file");
    let mut compiler = Command::new("rustc");
    let status = compiler
        .args(["-g", "--edition", "2021", "-o", "stats", "main.rs"])
        .current_dir(folder.path())
        .status();
    assert!(status.expect("rustc runs").success());
    let project = Project { folder };
    let mut editor = Editor::start(project.folder.path(), &[]);
    editor.initialize(&project, json!({ "binaries": ["stats"] }));
    editor.open(&project, "main.rs", text);
    let told = editor.hover(&project, ("main.rs", text), "pub struct ", "Task").expect("a hover");
    for part in
        ["::inner::Task<u64>`** · 16 bytes, alignment 8", "::inner::Task<u8>`** · 8 bytes, alignment 4"]
    {
        assert!(told.contains(part), "{part} in:\n{told}");
    }
    let member = editor.hover(&project, ("main.rs", text), "pub struct ", "value").expect("a hover");
    assert!(member.contains("::inner::Task<u64>.value`** `u64` · offset 0, 8 bytes"), "{member}");
    editor.leave();
}

const TEMPLATE: &str = "template <class T> struct Box {
	char c;
	T v;
	char end;
};
Box<int> ints; Box<double> doubles; Box<char> chars; struct Nothing {} nothing;
int main() { return ints.c + doubles.c + chars.c; }
";

/// Each instance has holes of its own: those of `int` and `double` before `v` differ, and `char` has none.
#[test]
fn diagnostics_of_a_template_are_those_of_all_its_instances() {
    let project = Project::new();
    project.write("box.cc", TEMPLATE);
    let mut compiler = Command::new("g++");
    compiler.args(["-g", "-o", "box", "box.cc"]).current_dir(project.folder.path());
    assert!(compiler.status().expect("g++ runs: apt install g++").success());
    let mut editor = Editor::start(project.folder.path(), &["box"]);
    editor.initialize(&project, json!(null));
    editor.open(&project, "box.cc", TEMPLATE);
    let mut shown = editor.diagnostics(&project, "box.cc");
    shown.sort();
    let expected = [
        (4, 1, "Box<double>: 7 bytes of padding at the end"),
        (4, 1, "Box<int>: 3 bytes of padding at the end"),
        (4, 3, "Box<double>: a hole of 7 bytes before v, at offset 1"),
        (4, 3, "Box<int>: a hole of 3 bytes before v, at offset 1"),
    ];
    assert_eq!(shown, expected.map(|(severity, line, text)| (severity, line, text.to_string())));
}
