//! `lineup explain` compared with the tools that take its files: BOLT's own counts of edges, and the linkers' own orders.

use crate::schema;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

/// A few hot functions among cold ones, with a loop, a `switch`, a tail call and a callback. Some calls are left by
/// `longjmp`; BOLT counts only those that return.
const PROGRAM: &str = r#"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#define COLD(n) __attribute__((noinline)) int cold##n(int x) { \
    for (int i = 0; i < x; i++) x = x * 31 + (x >> (i & 7)) - printf("%d", i * n); \
    puts("cold" #n); return x * n; }
COLD(1) COLD(2) COLD(3) COLD(4)
static unsigned seed = 1;
static unsigned next(void) { seed = seed * 1103515245u + 12345u; return seed >> 16; }
static __attribute__((noinline)) int step(int x) {
    if (x % 3 == 0) return x / 3;
    if (x == 123456789) { puts("never"); abort(); }
    if (x & 1) return 3 * x + 1;
    return x / 2;
}
COLD(5) COLD(6) COLD(7) COLD(8)
static jmp_buf place;
static __attribute__((noinline)) void leave(int i) { if (i % 5 == 0) longjmp(place, 1); }
__attribute__((noinline)) int leaves(int n) {
    volatile int done = 0, i = 0;
    setjmp(place);
    while (i < n) { i = i + 1; leave(i); done = done + 1; }
    return done;
}
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
COLD(9) COLD(10) COLD(11) COLD(12)
__attribute__((noinline)) int kind(int x) {
    switch (x % 9) {
    case 0: return 4;
    case 1: return 8;
    case 2: return next();
    case 3: return 1;
    case 4: return 7;
    case 5: return 0;
    case 6: return step(x);
    default: return 77;
    }
}
COLD(13) COLD(14) COLD(15) COLD(16)
int main(int argc, char **argv) {
    int n = 3000, *values = malloc(n * sizeof *values);
    long sum = 0;
    if (argc > 9)
        return cold1(1) + cold2(2) + cold3(3) + cold4(4) + cold5(5) + cold6(6) + cold7(7) + cold8(8) + cold9(9)
            + cold10(1) + cold11(2) + cold12(3) + cold13(4) + cold14(5) + cold15(6) + cold16(7);
    for (int i = 0; i < n; i++) {
        int x = values[i] = next() % 1000;
        while (x > 1 && sum < 1000000000) {
            x = step(x);
            sum++;
            if (x > 100000 || sum % 64 == 0) break;
        }
        sum += kind(i);
    }
    qsort(values, n, sizeof *values, compare);
    for (int i = 0; i < n; i += 7) sum += values[i];
    printf("%ld %d\n", sum, leaves(n));
}
"#;

/// Its functions that are executed.
const EXECUTED: [&str; 4] = ["main", "step", "kind", "compare"];

fn run(folder: &Path, program: &str, arguments: &[&str]) -> Output {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; make setup-test installs it"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    output
}

fn build(folder: &Path, out: &str, options: &[&str]) {
    std::fs::write(folder.join("program.c"), PROGRAM).expect("writing the source");
    let how = ["-O2", "-g", "-fcf-protection=none", "-fno-pie", "-no-pie", "-o", out, "program.c"];
    run(folder, "gcc", &[&how[..], options].concat());
}

/// Records `./NAME` and looks at its code.
fn code(folder: &Path, name: &str, options: &[&str]) -> Value {
    let lineup = env!("CARGO_BIN_EXE_lineup");
    let (recording, program) = (format!("{name}.rec"), format!("./{name}"));
    run(
        folder,
        lineup,
        &["record", "--whole-program", "--engine", "native", "--out", &recording, "--", &program],
    );
    let output = run(folder, lineup, &[&["explain", &recording, "--json"], options].concat());
    // Messages tell the use of each file, except for the page, which is only viewed.
    let said = String::from_utf8_lossy(&output.stderr);
    let uses = said.lines().filter(|line| line.starts_with("lineup: use: ")).count();
    assert_eq!(uses, if options.contains(&"--html") { 0 } else { options.len() / 2 }, "{said}");
    schema::checked(&output.stdout)
}

/// Debian gives each version a name of its own, and the program finds its version's library next to it.
fn bolt() -> &'static str {
    "/usr/lib/llvm-19/bin/llvm-bolt"
}

/// Times by function, place that is left, function and place that is entered.
type Edges = BTreeMap<(String, u64, String, u64), u64>;

/// The edges of a profile that leave one of our functions, but those to the stubs of other files.
fn edges(profile: &Path) -> Edges {
    let text = std::fs::read_to_string(profile).expect("a profile");
    let offset = |word: &str| u64::from_str_radix(word, 16).expect("an offset");
    let edge = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, from, leaves, "1", to, enters, "0", times] = words[..] else { return None };
        let is_ours = EXECUTED.contains(&from.trim_end_matches("/1")) && !to.contains("@PLT");
        is_ours.then(|| {
            let key = (from.to_owned(), offset(leaves), to.to_owned(), offset(enters));
            (key, times.parse().expect("a count"))
        })
    };
    text.lines().filter_map(edge).collect()
}

#[test]
fn edges_and_calls_are_those_that_bolt_counts_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder, "program", &["-Wl,--emit-relocs"]);
    let counted = folder.join("counted.fdata");
    let to = format!("--instrumentation-file={}", counted.display());
    let library = "--runtime-instrumentation-lib=libbolt_rt_instr.a";
    run(folder, bolt(), &["program", "-instrument", "-o", "instrumented", &to, library]);
    run(folder, "./instrumented", &[]);
    let summary = code(folder, "program", &["--bolt", "ours.fdata"]);
    assert_eq!(summary["edges_estimated"], 0);
    let (theirs, ours) = (edges(&counted), edges(&folder.join("ours.fdata")));
    assert!(ours.len() > 25, "{ours:?}");
    // Where a block only reaches the next, one tool may see a block where the other sees two.
    let reaches = |(from, leaves, to, enters): &(String, u64, String, u64)| {
        from == to && (leaves + 1..leaves + 16).contains(enters)
    };
    for (edge, times) in ours.iter().filter(|(edge, _)| !reaches(edge) || theirs.contains_key(edge)) {
        assert_eq!(theirs.get(edge), Some(times), "{edge:?}");
    }
    for (edge, times) in theirs.iter().filter(|(edge, _)| !ours.contains_key(edge)) {
        assert!(reaches(edge), "{edge:?} {times}");
    }
}

#[test]
fn bolt_takes_the_profile_and_the_program_needs_fewer_lines_of_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder, "program", &["-Wl,--emit-relocs"]);
    let before = code(folder, "program", &["--bolt", "ours.fdata"]);
    let how =
        ["-data=ours.fdata", "-reorder-blocks=ext-tsp", "-split-functions", "-reorder-functions=cdsort"];
    let said = run(folder, bolt(), &[&["program", "-o", "bolted"][..], &how].concat());
    let said = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    assert!(!said.contains("invalid") && said.contains("have non-empty execution profile"), "{said}");
    let outputs = ["./program", "./bolted"].map(|program| run(folder, program, &[]).stdout);
    assert_eq!(outputs[0], outputs[1]);
    let after = code(folder, "bolted", &[]);
    let lines = |summary: &Value| summary["code"]["lines"].as_u64().expect("lines");
    assert!(lines(&after) < lines(&before), "{} {}", lines(&after), lines(&before));
}

/// The distance of a file's functions: from the first's beginning to the last's.
fn span(folder: &Path, program: &str, functions: &[&str]) -> u64 {
    let symbols = run(folder, "nm", &[program]).stdout;
    let symbols = String::from_utf8_lossy(&symbols).into_owned();
    let addresses: Vec<u64> = symbols
        .lines()
        .filter_map(|line| {
            let [address, _, name] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
            functions.contains(&name).then(|| u64::from_str_radix(address, 16).expect("an address"))
        })
        .collect();
    assert_eq!(addresses.len(), functions.len(), "{symbols}");
    addresses.iter().max().expect("one") - addresses.iter().min().expect("one")
}

#[test]
fn each_linker_puts_executed_functions_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // GCC puts main elsewhere when it may order functions itself.
    let sections: [&str; 3] = ["-ffunction-sections", "-fno-toplevel-reorder", "-fno-reorder-functions"];
    build(folder, "program", &sections);
    code(
        folder,
        "program",
        &[
            ["--symbol-order", "symbols"],
            ["--call-graph", "calls"],
            ["--section-order", "sections"],
            ["--linker-script", "script.ld"],
        ]
        .concat(),
    );
    let lld = ["-fuse-ld=lld", "-B/usr/lib/llvm-19/bin"];
    // A function called through a pointer has no known caller.
    let called = &EXECUTED[..3];
    let linkers: [(&[&str], &str, &[&str]); 4] = [
        (&lld, "-Wl,--symbol-ordering-file=symbols", &EXECUTED),
        (&lld, "-Wl,--call-graph-ordering-file=calls", called),
        (&["-fuse-ld=gold"], "-Wl,--section-ordering-file=sections", &EXECUTED),
        (&["-fuse-ld=bfd"], "-Wl,-T,script.ld", &EXECUTED),
    ];
    let expected = run(folder, "./program", &[]).stdout;
    for (linker, order, functions) in linkers {
        build(folder, "plain", &[&sections[..], linker].concat());
        build(folder, "ordered", &[&sections[..], linker, &[order]].concat());
        assert_eq!(run(folder, "./ordered", &[]).stdout, expected, "{order}");
        let (before, after) = (span(folder, "plain", functions), span(folder, "ordered", functions));
        assert!(before > 2 * after, "{order}: {before} bytes before, {after} after");
    }
}

/// The error message.
fn refusal(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_lineup")).args(arguments).current_dir(folder).output();
    let output = output.expect("lineup");
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_map_has_a_box_for_each_line_of_each_function_and_says_who_fetches_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder, "program", &[]);
    let lineup = env!("CARGO_BIN_EXE_lineup");
    let record =
        ["record", "--engine", "native", "--region", "kind", "--region", "step", "--out", "calls.rec"];
    run(folder, lineup, &[&record[..], &["--", "./program"]].concat());
    let summary = code(folder, "program", &["--html", "map.html", "--calls", "calls.rec"]);
    let page = std::fs::read_to_string(folder.join("map.html")).expect("the page");
    let functions = summary["functions"].as_array().expect("functions");
    let lines: u64 = functions.iter().map(|one| one["code"]["lines"].as_u64().expect("lines")).sum();
    assert_eq!(page.matches("class=\"code-line\"").count() as u64, lines);
    let row = |name: &str| {
        let from = page.find(&format!("aria-label=\"{name}: ")).unwrap_or_else(|| panic!("{name}: {page}"));
        page[from..].split("</article>").next().expect("a function").to_owned()
    };
    // Calls of kind fetch all of its first line and some of step; no fetches of compare were recorded.
    assert!(row("kind").contains("; A\"") && !row("compare").contains("; A"), "{}", row("kind"));
    assert!(row("step").contains("; B") && row("step").contains("; A "), "{}", row("step"));
    build(folder, "other", &["-O1"]);
    run(
        folder,
        lineup,
        &["record", "--engine", "native", "--region", "kind", "--out", "o.rec", "--", "./other"],
    );
    let said = refusal(folder, &["explain", "program.rec", "--html", "o.html", "--calls", "o.rec"]);
    assert!(said.contains("program was not mapped in it"), "{said}");
    let said = refusal(folder, &["explain", "program.rec", "--html", "o.html", "--calls", "program.rec"]);
    assert!(said.contains("holds no recorded calls"), "{said}");
    assert!(!folder.join("o.html").exists());
}

#[test]
fn what_holds_no_counts_or_is_another_file_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    build(folder, "program", &[]);
    code(folder, "program", &[]);
    let said = refusal(folder, &["explain", "program.rec", "--image", "libm.so.6"]);
    assert!(said.contains("libm.so.6 was not mapped") && said.contains("libc.so.6"), "{said}");
    let lineup = env!("CARGO_BIN_EXE_lineup");
    run(
        folder,
        lineup,
        &["record", "--engine", "native", "--region", "kind", "--out", "calls.rec", "--", "./program"],
    );
    let said = refusal(folder, &["explain", "calls.rec", "--bolt", "calls.fdata"]);
    assert!(said.contains("holds no counts of a whole program"), "{said}");
    build(folder, "program", &["-O1"]);
    let said = refusal(folder, &["explain", "program.rec"]);
    assert!(said.contains("is not the file that was recorded"), "{said}");
    run(folder, "strip", &["program"]);
    run(
        folder,
        lineup,
        &["record", "--whole-program", "--engine", "native", "--out", "s.rec", "--", "./program"],
    );
    let said = refusal(folder, &["explain", "s.rec"]);
    assert!(said.contains("has no symbols of functions"), "{said}");
}
