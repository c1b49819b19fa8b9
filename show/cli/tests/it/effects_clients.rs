//! Servers under observation: answers to clients are compared connection by connection in any order, ids and times are
//! left out by their place, and a byte that does not vary by itself is found.

use crate::installed;
use crate::schema;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// `programs/answering.c` in four forms, and its client.
fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = PROGRAMS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let build = |name: &str, source: &str, more: &[&str]| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs").join(source);
            let mut compiler = Command::new("cc");
            compiler
                .args(["-O1", "-w", "-pthread", "-o"])
                .arg(folder.path().join(name))
                .arg(source)
                .args(more);
            assert!(compiler.status().expect("cc runs").success());
        };
        build("loop", "answering.c", &[]);
        build("loop-swapped", "answering.c", &["-DSWAPPED"]);
        build("threads", "answering.c", &["-DTHREADS"]);
        build("threads-swapped", "answering.c", &["-DTHREADS", "-DSWAPPED"]);
        build("asking", "asking.c", &[]);
        folder
    });
    folder.path()
}

fn path(name: &str) -> PathBuf {
    programs().join(name)
}

/// Compares two servers under the same client; `None` where the system does not allow tracing.
fn compared(before: &str, after: &str, client: &str) -> Option<Value> {
    let drive = format!("{} at {client}", path("asking").display());
    let mut lineup = installed::lineup();
    lineup.args(["effects", "--json", "--drive", &drive, "--against"]).arg(path(after)).arg("--");
    lineup.arg(path(before)).arg("at").stdin(Stdio::null());
    let output = lineup.output().expect("lineup runs");
    let message = String::from_utf8_lossy(&output.stderr);
    if message.contains("does not allow tracing") || message.contains("refuses a filter") {
        println!("skipped: {message}");
        assert!(std::env::var_os("CI").is_none(), "{message}");
        return None;
    }
    assert!(matches!(output.status.code(), Some(0 | 1)), "{message}");
    Some(schema::checked(&output.stdout))
}

/// Asserts that the server agrees with itself, and that nothing but ids and times is left out of its answers.
fn assert_equal(server: &str, client: &str, keyed: &str) {
    let Some(found) = compared(server, server, client) else { return };
    assert!(found["difference"].is_null(), "{found}");
    let compared = found["check"]["compared"].to_string();
    assert!(compared.contains(&format!("30 of 30 answers on 6 connections, {keyed}")), "{found}");
    let left_out = found["check"]["not_compared"].as_array().expect("a list").iter();
    let answers =
        left_out.filter(|one| one["effect"].as_str().is_some_and(|effect| effect.contains("answers to")));
    let shares: Vec<&str> = answers.filter_map(|one| one["share"].as_str()).collect();
    // The id and the time.
    assert!(!shares.is_empty(), "{found}");
    for share in shares {
        assert_eq!(share, "bytes 13 to 20 and 25 to 44 of 54", "{found}");
    }
}

const BY_PLACE: &str = "each by its place in what a client asked";

#[test]
fn a_server_with_one_loop_agrees_with_itself() {
    assert_equal("loop", "", BY_PLACE);
}

#[test]
fn a_server_with_threads_agrees_with_itself() {
    assert_equal("threads", "", BY_PLACE);
}

#[test]
fn requests_that_take_other_connections_in_each_run_are_compared_by_request() {
    assert_equal("loop", "any", "by request, on any connection");
    assert_equal("threads", "any", "by request, on any connection");
}

#[test]
fn a_member_that_is_sent_from_another_place_is_found() {
    for (server, client) in [("loop", ""), ("threads", ""), ("loop", "any"), ("threads", "any")] {
        let Some(found) = compared(server, &format!("{server}-swapped"), client) else { return };
        let effect = found["difference"]["effect"].as_str().unwrap_or_default();
        assert!(effect.starts_with("answers to `ask "), "{server} {client}: {found}");
        let how = found["difference"]["how"].as_str().unwrap_or_default();
        assert!(how.starts_with("offset 46: "), "{server} {client}: {found}");
    }
}
