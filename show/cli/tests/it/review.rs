//! `lineup review` on a repository with ten changes: five break a layout, a promise or a call's lines, five do not.

use crate::installed;
use crate::schema;

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Packets of two lines: the members read for each lie on the first.
const HEADER: &str = "\
#include <stdint.h>
struct packet {
    uint64_t key;
    uint32_t length;
    uint32_t flags;
    uint64_t hits;
    char name[32];
    uint64_t expires;
    /* The second line. */
    uint64_t created;
    uint64_t owner;
    char comment[40];
};
";

const PROGRAM: &str = "\
#include \"packet.h\"
#include <stdio.h>
#include <stdlib.h>
struct packet *packets;
__attribute__((noinline)) uint64_t look_up(uint64_t key) {
    struct packet *packet = &packets[key % 64];
    packet->hits += packet->key == key;
    return packet->length + packet->flags;
}
int main(void) {
    packets = aligned_alloc(64, 64 * sizeof *packets);
    for (uint64_t n = 0; n < 64; n++) packets[n] = (struct packet) { .key = n, .length = 3, .owner = n };
    uint64_t sum = 0;
    for (uint64_t n = 0; n < 1000; n++) sum += look_up(n * 7);
    printf(\"%lu\\n\", (unsigned long) sum);
    return 0;
}
";

const LOCK: &str = "\
schema = \"lineup.lock/1\"

[[group]]
type = \"packet\"
line_bytes = 64
data_model = \"LP64\"
members = [\"key\", \"length\", \"flags\", \"hits\"]
";

const MAKEFILE: &str = "out/program: program.c packet.h\n\tmkdir -p out && gcc -g -O2 -o $@ program.c\n";

/// A repository with the program, and a branch for each change.
struct Repository {
    root: TempDir,
}

impl Repository {
    fn new() -> Repository {
        let repository = Repository { root: tempfile::tempdir().expect("a folder") };
        fs::create_dir(repository.tree()).expect("a folder");
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        let files =
            [("packet.h", HEADER), ("program.c", PROGRAM), ("lineup.lock", LOCK), ("Makefile", MAKEFILE)];
        for (file, text) in files {
            fs::write(repository.tree().join(file), text).expect("a file");
        }
        repository.git(&["add", "--all"]);
        repository.git(&["commit", "--quiet", "--message", "packets"]);
        repository
    }

    fn tree(&self) -> PathBuf {
        self.root.path().join("tree")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.current_dir(self.tree()).args(arguments);
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "a").env(format!("GIT_{role}_EMAIL"), "a@localhost");
        }
        let output = git.output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A branch off main with one commit; main stays where it is.
    fn change(&self, change: &Change) {
        let Change { name, file, from, to, .. } = change;
        self.git(&["checkout", "--quiet", "-b", name, "main"]);
        let path = self.tree().join(file);
        let text = fs::read_to_string(&path).expect("a file");
        assert!(text.contains(from), "{name}");
        fs::write(&path, text.replace(from, to)).expect("a file");
        self.git(&["commit", "--quiet", "--all", "--message", name]);
        self.git(&["checkout", "--quiet", "main"]);
    }

    /// Reviews a branch, recorded or not; its builds stay for the next review.
    fn review(&self, head: &str, more: &[&str], workload: &[&str]) -> Output {
        let mut lineup = installed::lineup();
        lineup.current_dir(self.tree()).stdin(Stdio::null());
        lineup.args(["review", "--base", "main", "--head", head, "--build", "make -s"]).arg("--dir");
        lineup.arg(self.root.path().join("kept")).args(more);
        if !workload.is_empty() {
            lineup.arg("--").args(workload);
        }
        lineup.output().expect("lineup runs")
    }

    fn json(&self, head: &str, more: &[&str], workload: &[&str]) -> (Value, Option<i32>) {
        let output = self.review(head, &[&["--json"], more].concat(), workload);
        assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let value = schema::checked(&output.stdout);
        assert_eq!(value["schema"], "lineup.review/1");
        (value, output.status.code())
    }
}

/// A change, by the name of its branch: a replacement in a file, and the rule that this breaks.
struct Change {
    name: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    breaks: Option<&'static str>,
}

/// A change to the header.
const fn header(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    breaks: Option<&'static str>,
) -> Change {
    Change { name, file: "packet.h", from, to, breaks }
}

/// A change to the program.
const fn program(
    name: &'static str,
    from: &'static str,
    to: &'static str,
    breaks: Option<&'static str>,
) -> Change {
    Change { name, file: "program.c", from, to, breaks }
}

const HITS_AWAY: Change = header(
    "hits-away",
    "    uint64_t hits;\n    char name[32];\n    uint64_t expires;\n",
    "    char name[32];\n    uint64_t expires, spare;\n    uint64_t hits;\n",
    Some("guard"),
);
const IN_FRONT: Change =
    header("in-front", "    uint64_t key;\n", "    char tag[56];\n    uint64_t key;\n", Some("guard"));
const LARGER: Change = header("larger", "char comment[40]", "char comment[56]", Some("growth"));
const SPLIT: Change = header(
    "split",
    "char name[32];\n    uint64_t expires;",
    "char name[36];\n    char expires[8];",
    Some("split"),
);
const OWNER_READ: Change =
    program("owner-read", "packet->length +", "packet->owner + packet->length +", Some("lines"));
const COMMENT: Change = header("comment", "/* The second line. */", "/* Seldom used. */", None);
const RENAMED: Change = header("renamed", "    uint64_t created;", "    uint64_t born;", None);
const COLD_SWAPPED: Change =
    header("cold-swapped", "created;\n    uint64_t owner;", "owner;\n    uint64_t created;", None);
const NEW_TYPE: Change =
    header("new-type", "#include <stdint.h>", "#include <stdint.h>\nstruct queue { int n; };", None);
const FEWER_CALLS: Change = program("fewer-calls", "n < 1000", "n < 900", None);

const CHANGES: [Change; 10] =
    [HITS_AWAY, IN_FRONT, LARGER, SPLIT, OWNER_READ, COMMENT, RENAMED, COLD_SWAPPED, NEW_TYPE, FEWER_CALLS];

const FAIL_IF: [&str; 8] =
    ["--fail-if", "guard", "--fail-if", "growth", "--fail-if", "split", "--fail-if", "lines > +2%"];

#[test]
fn of_ten_changes_the_five_that_break_something_fail() {
    let repository = Repository::new();
    let schema = sarif_schema();
    for change in &CHANGES {
        repository.change(change);
        let Change { name, breaks, .. } = change;
        let sarif = repository.root.path().join("found.sarif");
        let more =
            [&FAIL_IF[..], &["--region", "look_up", "--sarif", sarif.to_str().expect("a path")]].concat();
        let (found, status) = repository.json(name, &more, &["./out/program"]);
        let failing: Vec<&Value> =
            array(&found["findings"]).iter().filter(|finding| finding["fails"] == true).collect();
        match breaks {
            Some(rule) => {
                assert!(failing.iter().any(|finding| finding["rule"] == *rule), "{name}: {found:#}")
            }
            None => assert_eq!(failing, [&Value::Null; 0], "{name}"),
        }
        assert_eq!(status, Some(i32::from(breaks.is_some())), "{name}");
        let log = fs::read_to_string(&sarif).expect("a file");
        let log: Value = serde_json::from_str(&log).expect("JSON");
        let errors: Vec<String> = schema.iter_errors(&log).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0], "{name}");
        let shown = array(&log["runs"][0]["results"]);
        assert_eq!(shown.len(), array(&found["findings"]).len(), "{name}");
    }
}

#[test]
fn a_finding_names_the_line_where_what_it_is_about_is_declared() {
    let repository = Repository::new();
    repository.change(&SPLIT);
    let sarif = repository.root.path().join("found.sarif");
    let more = ["--fail-if", "split", "--sarif", sarif.to_str().expect("a path"), "--file", "out/program"];
    let comment = repository.review(SPLIT.name, &more, &[]);
    let comment = String::from_utf8(comment.stdout).expect("text");
    let line = 1 + fs::read_to_string(repository.tree().join("packet.h"))
        .expect("a file")
        .lines()
        .position(|line| line.contains("expires"))
        .expect("the member");
    assert!(comment.contains(&format!("| `packet.h:{line}` |")), "{comment}");
    let log: Value = serde_json::from_slice(&fs::read(&sarif).expect("a file")).expect("JSON");
    let result = &log["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!((&result["ruleId"], &result["level"]), (&"split".into(), &"error".into()));
    assert_eq!(place["artifactLocation"]["uri"], "packet.h");
    assert_eq!(place["region"]["startLine"], line);
}

#[test]
fn a_function_that_only_one_side_has_is_told_and_no_error() {
    let repository = Repository::new();
    repository.change(&program("other-name", "look_up", "find_packet", None));
    let more = ["--region", "look_up", "--region", "find_packet"];
    let (found, status) = repository.json("other-name", &more, &["./out/program"]);
    assert_eq!(status, Some(0));
    assert_eq!(array(&found["regions"]).len(), 0);
    let told: Vec<&str> = array(&found["not_observed"]).iter().filter_map(Value::as_str).collect();
    assert_eq!(
        told,
        [
            "find_packet was not recorded: the base has no such function",
            "look_up was not recorded: the head has no such function"
        ]
    );
}

#[test]
fn what_cannot_be_reviewed_is_refused_in_a_sentence_and_the_repository_stays_as_it_is() {
    let repository = Repository::new();
    repository.change(&program("broken", "int main(void)", "int main(void", None));
    let before = (repository.git(&["for-each-ref"]), repository.git(&["status", "--porcelain", "--ignored"]));
    for (head, more, says) in [
        ("broken", &["--file", "out/program"][..], "the head, "),
        ("nowhere", &["--file", "out/program"], "\"nowhere\" names no commit"),
        ("main", &["--file", "out/other"], "the base: the build makes no out/other"),
        ("main", &["--file", "out/program", "--guard", "other.lock"], "the head has no other.lock"),
        ("main", &[], "--file"),
    ] {
        let output = repository.review(head, more, &[]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(says), "{head} {more:?}: {said}");
    }
    let after = (repository.git(&["for-each-ref"]), repository.git(&["status", "--porcelain", "--ignored"]));
    assert_eq!(before, after);
}

/// A folder of its own for a step of continuous integration, with a clone of the repository in it.
fn clean_clone(repository: &Repository) -> PathBuf {
    let clone = repository.root.path().join("clone");
    let tree = repository.tree();
    repository.git(&["clone", "--quiet", &tree.to_string_lossy(), &clone.to_string_lossy()]);
    clone
}

/// A shell as a runner starts it: with only these variables and the search path for programs.
fn step(clone: &Path, script: &str, variables: &[(&str, &str)]) -> Output {
    let command = installed::lineup();
    let programs = Path::new(command.get_program()).parent().expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    let mut shell = Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c", script]).current_dir(clone).stdin(Stdio::null()).env_clear();
    shell.env("PATH", format!("{}:{path}", programs.display())).env("HOME", clone);
    shell.envs(variables.iter().copied()).output().expect("bash runs")
}

/// The commands of a list that stands in a file for a runner: the text behind `mark` on its line.
fn commands(file: &str, mark: &str) -> Vec<String> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = fs::read_to_string(top.join(file)).expect("a file");
    text.lines().filter_map(|line| line.trim().strip_prefix(mark)).map(str::to_owned).collect()
}

#[test]
fn the_action_for_github_leaves_a_summary_and_fails_as_the_review_does() {
    let repository = Repository::new();
    for (change, fails) in [(&LARGER, true), (&COMMENT, false)] {
        repository.change(change);
        let clone = clean_clone(&repository);
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let head = format!("origin/{}", change.name);
        let variables = [
            ("GITHUB_ACTION_PATH", top.to_str().expect("a path")),
            ("GITHUB_OUTPUT", "output"),
            ("GITHUB_STEP_SUMMARY", "summary"),
            ("LINEUP_BASE", "origin/main"),
            ("LINEUP_HEAD", &head),
            ("LINEUP_BUILD", "make -s"),
            ("LINEUP_OPTIONS", "--file out/program --fail-if growth --fail-if 'lines > +2%'"),
        ];
        let steps = commands("action.yml", "run: ");
        assert_eq!(steps.len(), 2);
        let ended: Vec<Output> = steps.iter().map(|script| step(&clone, script, &variables)).collect();
        let said = String::from_utf8_lossy(&ended[1].stderr);
        assert_eq!(ended[1].status.code(), Some(i32::from(fails)), "{said}");
        let summary = fs::read_to_string(clone.join("summary")).expect("a summary");
        assert_eq!(summary.contains("**fails** growth"), fails, "{summary}");
        let output = fs::read_to_string(clone.join("output")).expect("outputs");
        let sarif = output.lines().find_map(|line| line.strip_prefix("sarif=")).expect("an output");
        assert!(Path::new(sarif).exists());
        fs::remove_dir_all(clone).expect("it goes");
    }
}

#[test]
fn the_template_for_gitlab_reviews_a_merge_request() {
    let repository = Repository::new();
    repository.change(&LARGER);
    let clone = clean_clone(&repository);
    let (base, head) = (repository.git(&["rev-parse", "main"]), repository.git(&["rev-parse", LARGER.name]));
    let variables = [
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.as_str()),
        ("CI_COMMIT_SHA", &head),
        ("LINEUP_BUILD", "make -s"),
        ("LINEUP_OPTIONS", "--file out/program --fail-if growth"),
    ];
    let steps = commands("ci/gitlab-review.yml", "- ");
    let ended: Vec<Option<i32>> = steps
        .iter()
        .filter(|script| !script.starts_with("if:"))
        .map(|script| step(&clone, script, &variables).status.code())
        .collect();
    assert_eq!(ended, [Some(0), Some(1), Some(0)], "{steps:?}");
    let comment = fs::read_to_string(clone.join("lineup-review.md")).expect("a comment");
    assert!(comment.contains("**fails** growth"), "{comment}");
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// OASIS's schema of SARIF 2.1.0.
fn sarif_schema() -> jsonschema::Validator {
    let schema = include_str!("sarif-schema-2.1.0.json");
    jsonschema::validator_for(&serde_json::from_str(schema).expect("JSON")).expect("a schema")
}
