//! The files of `lineup explain` for compilers, compared with LLVM's own tools.

use crate::installed;
use lineup_find::Recorded;
use lineup_recording::Reader;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A loop that is vectorised, copies that are inlined within others, several blocks on a line, a branch never taken.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static unsigned seed = 1;
static unsigned next(void) { seed = seed * 1103515245u + 12345u; return seed >> 16; }
static inline int scaled(int x) {
    if (x % 7 == 0) return x / 7;
    return x * 3;
}
static inline int twice(int x) { return scaled(x) + scaled(x + 1); }
__attribute__((noinline)) int step(int x) {
    if (x == 123456789) { puts("never"); abort(); }
    if (x % 16 == 0)
        return twice(x) + 1;
    return x & 1 ? 3 * x + 1 : x / 2;
}
__attribute__((noinline)) long sum_of(const int *values, int count) {
    long sum = 0;
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}
int main(int argc, char **argv) {
    int n = 3000, *values = malloc(n * sizeof *values);
    (void)argv;
    if (argc > 9) puts("odd");
    for (int i = 0; i < n; i++)
        values[i] = scaled(next() % 1000);
    long sum = 0;
    for (int i = 0; i < n; i++)
        sum += step(values[i]);
    printf("%ld %ld\n", sum, sum_of(values, n));
}
"#;

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; make setup-test installs it"));
    assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    installed::lineup().args(arguments).current_dir(folder).output().expect("lineup runs")
}

/// Compiles the program, counts a run of it, and has `lineup explain` write `program.prof`.
fn profile(folder: &Path, source: &str, compiler: &[&str]) -> Output {
    fs::write(folder.join("program.c"), source).expect("a file");
    let how = ["-O2", "-g", "-o", "program", "program.c"];
    run(folder, compiler[0], &[&compiler[1..], &how].concat());
    let record =
        ["record", "--whole-program", "--engine", "native", "--out", "program.rec", "--", "./program"];
    let recorded = lineup(folder, &record);
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    lineup(folder, &["explain", "program.rec", "--sample-profile", "program.prof"])
}

/// LLVM's tool counts addresses from where code is mapped, which is 0 without a segment of its own.
const CLANG: [&str; 3] = ["clang", "-fdebug-info-for-profiling", "-Wl,-z,noseparate-code"];

/// The result of LLVM's own tool from the same counts: it reads the number of executions of address ranges.
fn by_llvm(folder: &Path) -> String {
    let file = fs::File::open(folder.join("program.rec")).expect("the recording");
    let recorded = Recorded::read(Reader::new(std::io::BufReader::new(file)).expect("a recording"));
    let program = folder.join("program");
    let mut images = recorded.images.iter().filter(|image| Path::new(&image.path).ends_with("program"));
    let image = images.next().unwrap_or_else(|| panic!("{} was mapped", program.display()));
    let runs: Vec<_> = recorded.runs.iter().filter(|run| image.contains(run.pc)).collect();
    let mut ranges = format!("{}\n", runs.len());
    for run in runs {
        let start = image.to_link(run.pc);
        writeln!(ranges, "{start:x}-{:x}:{}", start + u64::from(run.size_bytes) - 1, run.executions)
            .expect("a text");
    }
    fs::write(folder.join("ranges"), ranges + "0\n").expect("a file");
    let how = ["--binary=program", "--unsymbolized-profile=ranges", "--output=theirs.prof", "--format=text"];
    // Of the compiler's version; not every distribution has one without a version in its name.
    let version = text(&run(folder, "clang", &["--version"]).stdout);
    let version = version.split("clang version ").nth(1).and_then(|rest| rest.split('.').next());
    run(folder, &format!("llvm-profgen-{}", version.expect("clang says its version")), &how);
    fs::read_to_string(folder.join("theirs.prof")).expect("their profile")
}

/// Counts by function and by place in it, with the names of the copies that are nested there.
fn counts(profile: &str) -> BTreeMap<String, u64> {
    let mut nested: Vec<String> = Vec::new();
    let mut counts = BTreeMap::new();
    for line in profile.lines() {
        let depth = line.len() - line.trim_start().len();
        nested.truncate(depth);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [place, count, ..] if count.bytes().all(|byte| byte.is_ascii_digit()) => {
                counts.insert(format!("{} {place}", nested.join(" ")), count.parse().expect("a count"));
            }
            [place, copy] => nested.push(format!("{place}{}", copy.split(':').next().expect("a name"))),
            [function] => nested.push(function.split(':').next().expect("a name").to_owned()),
            _ => panic!("{line}"),
        }
    }
    counts
}

#[test]
fn counts_by_line_are_those_that_llvm_gives_to_the_same_instructions() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let said = profile(folder, PROGRAM, &CLANG);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let ours = fs::read_to_string(folder.join("program.prof")).expect("our profile");
    let (ours, theirs) = (counts(&ours), counts(&by_llvm(folder)));
    assert!(ours.len() > 25 && ours.keys().any(|place| place.contains("twice") && place.contains("scaled")));
    // They leave out code at a function's beginning or end that never ran.
    for (place, count) in ours.iter().filter(|(place, count)| **count > 0 || theirs.contains_key(*place)) {
        assert_eq!(theirs.get(place), Some(count), "{place}\n{ours:#?}\n{theirs:#?}");
    }
    // Code of no line is a line before the function's first to them.
    let of_no_line = |place: &str| place.rsplit([' ', ':']).any(|word| word.starts_with("655"));
    let is_ours = |place: &String| ours.contains_key(place) || of_no_line(place);
    assert!(theirs.keys().all(is_ours), "{ours:#?}\n{theirs:#?}");
}

/// Clang's branch weights are one more than the counts, as the other compiler passes expect.
#[test]
fn clang_takes_the_counts_for_functions_and_branches() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let said = profile(folder, PROGRAM, &CLANG);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let merged = run(folder, "llvm-profdata", &["merge", "--sample", "program.prof", "-o", "program.bin"]);
    assert_eq!(text(&merged.stderr), "");
    let shown = text(&run(folder, "llvm-profdata", &["show", "--sample", "program.bin"]).stdout);
    assert!(shown.contains("Function: step: "), "{shown}");
    for profile in ["program.prof", "program.bin"] {
        let by = format!("-fprofile-sample-use={profile}");
        let compiled =
            run(folder, "clang", &["-O2", "-g", "-Werror", &by, "-S", "-emit-llvm", "-o", "-", "program.c"]);
        let code = text(&compiled.stdout);
        assert!(code.contains("!\"function_entry_count\", i64 3001}"), "{profile}: {code}");
        // The branch that was never taken, against all calls.
        assert!(code.contains("!{!\"branch_weights\", i32 1, i32 3001}"), "{profile}: {code}");
    }
    let expected = run(folder, "./program", &[]).stdout;
    run(folder, "clang", &["-O2", "-g", "-fprofile-sample-use=program.prof", "-o", "tuned", "program.c"]);
    assert_eq!(run(folder, "./tuned", &[]).stdout, expected);
}

#[test]
fn what_another_compiler_made_is_refused_and_functions_of_one_name_are_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let said = profile(folder, PROGRAM, &["gcc"]);
    assert_eq!(said.status.code(), Some(2));
    let words = text(&said.stderr);
    assert!(words.contains("compiled by Clang") && words.contains("-fdebug-info-for-profiling"), "{words}");
    assert!(!folder.join("program.prof").exists());
    let other = "#include <stdio.h>\n\n__attribute__((noinline)) static int step(int x) { return printf(\"%d\\n\", x); }\n\
                 int other(int x) { return step(x) + step(x + 1); }\n";
    fs::write(folder.join("other.c"), other).expect("a file");
    let source = PROGRAM
        .replace("__attribute__((noinline)) int step", "__attribute__((noinline)) static int step")
        .replace("int main(", "int other(int);\nint main(")
        .replace("argc > 9", "other(argc) > 9");
    let said = profile(folder, &source, &[&CLANG[..], &["other.c"]].concat());
    assert!(
        said.status.success() && text(&said.stderr).contains("several functions are named step;"),
        "{said:?}"
    );
    let ours = fs::read_to_string(folder.join("program.prof")).expect("our profile");
    assert!(ours.contains("main:") && !ours.lines().any(|line| line.starts_with("step:")), "{ours}");
}
