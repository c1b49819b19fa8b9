//! `lineup bisect` on scripted histories: a linear one, a change inside a merged branch, and one that
//! only the merge creates.

use crate::schema;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// A repository whose program prints its cost: 1000, plus the number in file `a`, plus 50 when both `p` and `q` are 1.
struct History {
    root: tempfile::TempDir,
}

const PROGRAM: &str = "#!/bin/sh\n\
    echo lineup-metric cost $((1000 + $(cat a) + 50 * $(cat p) * $(cat q))) units\n";

impl History {
    fn new() -> Self {
        let history = Self { root: tempfile::tempdir().expect("a directory") };
        std::fs::create_dir(history.tree()).expect("a directory");
        history.git(&["init", "--quiet", "--initial-branch=main"]);
        for (file, text) in [("program.sh", PROGRAM), ("a", "0"), ("p", "0"), ("q", "0")] {
            history.write(file, text);
        }
        history.commit("base");
        history.git(&["tag", "good"]);
        history
    }

    fn tree(&self) -> std::path::PathBuf {
        self.root.path().join("tree")
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.tree().join(file), text).expect("a file");
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = git(&self.tree(), arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn commit(&self, subject: &str) -> String {
        self.write(&format!("note-{subject}"), subject);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// A commit that sets a file.
    fn set(&self, file: &str, text: &str, subject: &str) -> String {
        self.write(file, text);
        self.commit(subject)
    }

    fn merge(&self, branch: &str) -> String {
        self.git(&["merge", "--quiet", "--no-ff", "--message", &format!("merge {branch}"), branch]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn bisect(&self, more: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lineup"))
            .current_dir(self.tree())
            .args(["bisect", "--good", "good", "--bad", "main", "--primary", "cost", "-n", "2", "--json"])
            .arg("--dir")
            .arg(self.root.path().join("scratch"))
            .args(more)
            .args(["--", "sh", "program.sh"])
            .output()
            .expect("lineup runs")
    }

    /// The culprit; also checks that tree and refs are as before.
    fn culprit(&self, more: &[&str]) -> Value {
        let before = self.fingerprint();
        let output = self.bisect(more);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(before, self.fingerprint());
        let result = schema::checked(&output.stdout);
        assert_eq!(result["schema"], "lineup.bisect/1");
        result["culprit"].clone()
    }

    /// Everything of the user's that bisection must leave alone.
    fn fingerprint(&self) -> (String, String, String, String) {
        (
            self.git(&["for-each-ref"]),
            self.git(&["status", "--porcelain", "--ignored"]),
            self.git(&["rev-parse", "HEAD"]),
            self.git(&["worktree", "list"]),
        )
    }
}

fn git(directory: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=tester", "-c", "user.email=tester@localhost"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git is there: apt-get install git")
}

#[test]
fn a_linear_history() {
    let history = History::new();
    for step in ["one", "two", "three"] {
        history.commit(step);
    }
    let slow = history.set("a", "100", "slow");
    for step in ["five", "six"] {
        history.commit(step);
    }
    let culprit = history.culprit(&[]);
    assert_eq!((&culprit["kind"], &culprit["commits"][0]), (&"commit".into(), &slow.into()));
}

#[test]
fn a_change_inside_a_merged_branch() {
    let history = History::new();
    history.commit("main-1");
    history.git(&["checkout", "--quiet", "-b", "topic", "good"]);
    history.commit("topic-1");
    let slow = history.set("a", "100", "topic-2");
    history.commit("topic-3");
    history.git(&["checkout", "--quiet", "main"]);
    history.commit("main-2");
    history.merge("topic");
    history.commit("main-3");
    let culprit = history.culprit(&[]);
    assert_eq!((&culprit["kind"], &culprit["commits"][0]), (&"commit".into(), &slow.into()));
}

/// A history in which main sets `p` and a merged branch sets `q`; only both together cost more.
fn crossed() -> (History, [String; 3]) {
    let history = History::new();
    history.commit("main-1");
    let main = history.set("p", "1", "main-2");
    history.commit("main-3");
    history.git(&["checkout", "--quiet", "-b", "topic", "good"]);
    history.commit("topic-1");
    history.commit("topic-2");
    let side = history.set("q", "1", "topic-3");
    history.commit("topic-4");
    history.git(&["checkout", "--quiet", "main"]);
    let merge = history.merge("topic");
    history.commit("main-4");
    (history, [merge, main, side])
}

#[test]
fn a_change_that_only_the_merge_creates_is_found_with_its_pair_of_commits() {
    let (history, [merge, main, side]) = crossed();
    let culprit = history.culprit(&[]);
    assert_eq!(culprit["kind"], "pair");
    assert_eq!(culprit["merge"], merge);
    assert_eq!(culprit["main"], serde_json::json!([main]));
    assert_eq!(culprit["side"], serde_json::json!([side]));
}

#[test]
fn a_finished_search_answers_again_without_measuring() {
    let (history, _) = crossed();
    let first = history.culprit(&[]);
    let scratch = history.root.path().join("scratch");
    let state = std::fs::read_to_string(scratch.join("state.json")).expect("kept verdicts");
    assert_eq!(history.culprit(&[]), first);
    assert_eq!(std::fs::read_to_string(scratch.join("state.json")).expect("kept verdicts"), state);
}

#[test]
fn commits_that_do_not_build_are_skipped() {
    let history = History::new();
    history.commit("one");
    let broken = history.set("broken", "yes", "broken");
    std::fs::remove_file(history.tree().join("broken")).expect("a file");
    let slow = history.set("a", "100", "slow");
    history.commit("four");
    let culprit = history.culprit(&["--build", "test ! -e broken"]);
    let commits = culprit["commits"].as_array().expect("commits");
    assert!(commits.contains(&slow.into()), "{culprit}");
    assert!(commits.len() == 1 || commits.contains(&broken.into()), "{culprit}");
}

#[test]
fn ends_that_do_not_differ_and_unknown_revisions_are_refused() {
    let history = History::new();
    history.commit("one");
    let output = history.bisect(&[]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("the two ends do not differ"), "{message}");
    history.git(&["branch", "--move", "main", "other"]);
    let output = history.bisect(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("names no commit"));
}

#[test]
fn an_interrupted_search_keeps_its_verdicts_and_resumes() {
    let history = History::new();
    for step in ["one", "two", "three", "four", "five"] {
        history.commit(step);
    }
    let slow = history.set("a", "100", "slow");
    history.commit("seven");
    let scratch = history.root.path().join("scratch");
    let state = scratch.join("state.json");
    let mut child = Command::new(env!("CARGO_BIN_EXE_lineup"))
        .current_dir(history.tree())
        .args(["bisect", "--good", "good", "--bad", "main", "--primary", "cost", "-n", "2", "--dir"])
        .arg(&scratch)
        .args(["--build", "sleep 0.2", "--", "sh", "program.sh"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("lineup starts");
    // The verdict on the bad end is the first to be kept.
    while !state.exists() {
        assert!(child.try_wait().expect("alive").is_none(), "ended before its first verdict");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
    assert_eq!(child.wait().expect("lineup ends").code(), Some(2));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&state).expect("kept")).expect("JSON");
    let kept = kept["verdicts"].as_object().expect("verdicts").clone();
    assert!(!kept.is_empty());
    let culprit = history.culprit(&["--build", "sleep 0.2"]);
    assert_eq!((&culprit["kind"], &culprit["commits"][0]), (&"commit".into(), &slow.into()));
}
