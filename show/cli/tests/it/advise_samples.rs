//! `lineup advise --samples`: regions count by the time that samples saw in them, and the order follows.

use crate::installed;

use crate::planted::{PROCESS, Program};
use lineup_samples::writer::{EventSpec, SampleSpec, kind};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// `first` and `second` do as much, with members of which two fit into a line with `both`, and three do not.
const JOB: &str = r#"
struct job { char one[40]; char gap[88]; char two[40]; char rest[88]; char both[24]; };
static struct job job __attribute__((aligned(64)));
__attribute__((noinline)) int first(struct job *j) { return j->one[0] + j->one[39] + j->both[0] + j->both[23]; }
__attribute__((noinline)) int second(struct job *j) { return j->two[0] + j->two[39] + j->both[0] + j->both[23]; }
__attribute__((noinline)) int outer(struct job *j) { return first(j) + second(j); }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 100; i++) { sum += first(&job); sum += second(&job); }
    return sum;
}
"#;

/// The program, with a recording of both functions.
fn recorded() -> Program {
    let program = Program::of(JOB, "-O1");
    let make = "program: program.c\n\tgcc -g -O1 -o program program.c\n";
    fs::write(program.path().join("Makefile"), make).expect("written");
    let record = ["record", "--region", "first", "--region", "second", "--out", "job.rec", "--", "./program"];
    let output = lineup(program.path(), &record);
    assert!(output.status.success(), "{output:?}");
    program
}

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    installed::lineup().current_dir(folder).env("HOME", folder).args(arguments).output().expect("lineup runs")
}

/// Writes samples: in which functions, the innermost first, and how many.
fn sample(program: &Program, event: &str, samples: &[(&[&str], u64)]) {
    // A caller is identified by its calls' return address, which lies behind its first instruction.
    let at = |(depth, name): (usize, &&str)| program.at(name) + u64::from(depth > 0);
    let sample_type = kind::IP | kind::TID | kind::TIME | kind::CALLCHAIN | kind::PERIOD;
    let event = EventSpec { name: event.to_owned(), sample_type, ..EventSpec::default() };
    let mut writer = program.writer("perf.data", &event);
    for (functions, count) in samples {
        let chain: Vec<u64> = functions.iter().enumerate().map(at).collect();
        for turn in 0..*count {
            let sample = SampleSpec {
                instruction: chain[0],
                process: PROCESS,
                thread: PROCESS,
                time_ns: 1000 + turn,
                period: 1,
                call_chain: chain.clone(),
                ..SampleSpec::default()
            };
            writer.sample(&sample).expect("written");
        }
    }
    writer.finish().expect("written");
}

fn advice(folder: &Path) -> (String, String) {
    let output = lineup(folder, &["advise", "job.rec", "--samples", "perf.data", "--patch", "fix.patch"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    (text, fs::read_to_string(folder.join("fix.patch")).expect("the patch"))
}

#[test]
fn the_order_follows_where_the_samples_saw_time() {
    let program = recorded();
    let folder = program.path();
    for (busy, idle, near) in [("first", "second", "one"), ("second", "first", "two")] {
        sample(&program, "cycles", &[(&[busy, "main"], 990), (&[idle, "main"], 10)]);
        let (text, patch) = advice(folder);
        let said = text.lines().find(|line| line.starts_with("Weights")).expect("weights");
        for part in ["perf.data".to_owned(), format!("{busy} 1.000"), format!("{idle} 0.010")] {
            assert!(said.contains(&part), "{part}: {said}");
        }
        let lines = lines_after(folder, &patch);
        assert_eq!(lines[near], lines["both"], "{patch}");
    }
}

/// The line of each member after the patch.
fn lines_after(folder: &Path, patch: &str) -> BTreeMap<String, u64> {
    let copy = tempfile::tempdir().expect("a folder");
    fs::copy(folder.join("program.c"), copy.path().join("program.c")).expect("copied");
    fs::write(copy.path().join("fix.patch"), patch).expect("written");
    let done = Command::new("patch")
        .args(["-p1", "-i", "fix.patch"])
        .current_dir(copy.path())
        .output()
        .expect("patch");
    assert!(done.status.success(), "{done:?}\n{patch}");
    let text = fs::read_to_string(copy.path().join("program.c")).expect("patched");
    let body = text.split("struct job {").nth(1).and_then(|rest| rest.split("};").next()).expect("the type");
    let mut offset = 0;
    let mut lines = BTreeMap::new();
    for member in body.split(';').filter_map(|member| member.split("char ").nth(1)) {
        let (name, size) = member.trim_end().trim_end_matches(']').split_once('[').expect("an array");
        lines.insert(name.to_owned(), offset / 64);
        offset += size.parse::<u64>().expect("a size");
    }
    lines
}

/// Time in a region's callees is time spent in it.
#[test]
fn time_in_what_a_region_calls_is_its_own() {
    let program = recorded();
    let folder = program.path();
    sample(&program, "cpu-clock", &[(&["first", "main"], 100), (&["outer", "second", "main"], 300)]);
    let (text, _) = advice(folder);
    let said = text.lines().find(|line| line.starts_with("Weights")).expect("weights");
    assert!(said.contains("first 0.333") && said.contains("second 1.000"), "{said}");
}

#[test]
fn samples_that_tell_nothing_of_the_regions_are_refused() {
    let program = recorded();
    let folder = program.path();
    let refusal = || {
        let output = lineup(folder, &["advise", "job.rec", "--samples", "perf.data"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    sample(&program, "mem-loads", &[(&["first", "main"], 10)]);
    assert!(refusal().contains("samples of mem-loads do not measure time"), "{}", refusal());
    sample(&program, "cycles", &[(&["main"], 10)]);
    assert!(refusal().contains("no sample is in a recorded region; most are in main"), "{}", refusal());
}
