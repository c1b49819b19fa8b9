//! `lineup study --code`: code in another order, made by an installed llvm-bolt from Lineup's counts, and proven.

use crate::installed;
use crate::schema;

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Output;

/// Functions on a hot path, each with much in it that no run executes, and cold ones between them.
fn program() -> String {
    let mut text = String::from(
        "#include <stdio.h>\n#include <stdlib.h>\nstatic long seed;\n\
         #define COLD(x) do { for (int j = 0; j < 9; j++) fprintf(stderr, \"odd %d %ld\\n\", (x) + j, seed); \
         seed = seed * 31 + strtol(\"12\", 0, (x) & 7); } while (0)\n",
    );
    for number in 0..16 {
        text += &format!(
            "__attribute__((noinline)) unsigned step{number}(unsigned x) {{ if (x == {}u) COLD({number}); \
             x = x * 2654435761u + {number}; if ((x & 0xfffffff) == {number}) COLD(1); x ^= x >> {}; \
             if (x == {}u) COLD(2); return x + (x & 3 ? 1 : 2); }}\n\
             __attribute__((noinline)) void cold{number}(int x) {{ COLD(x); COLD(x + 1); COLD(x + 2); }}\n",
            1_000_003 + number,
            5 + number % 9,
            77 + number
        );
    }
    let each = |of: &str| (0..16).map(|number| of.replace('#', &number.to_string())).collect::<String>();
    text += &format!(
        "__attribute__((noinline)) unsigned round_of(unsigned x) {{ {} return x; }}\n\
         int main(int count, char **words) {{ unsigned x = 1; int rounds = count > 1 ? atoi(words[1]) : 9; \
         if (count > 7) {{ {} }} for (int i = 0; i < rounds; i++) x = round_of(x); printf(\"%u\\n\", x); }}\n",
        each("x = step#(x); "),
        each("cold#(count); ")
    );
    text
}

/// Functions that one caller runs often, with all of their code, and `seldom` now and then, with little of it.
fn shared_program() -> String {
    let each = |of: &str| (0..8).map(|number| of.replace('#', &number.to_string())).collect::<String>();
    let work = "x = x * 2654435761u + #; x ^= x >> 7; x += x << 3; x ^= x >> 11; ".repeat(8);
    each(&format!(
        "__attribute__((noinline)) unsigned shared#(unsigned x, unsigned whole) {{ if (whole) {{ {work} }} return x + #; }}\n"
    )) + &format!(
        "#include <stdio.h>\n#include <stdlib.h>\n\
         __attribute__((noinline)) unsigned often(unsigned x) {{ {} return x; }}\n\
         __attribute__((noinline)) unsigned seldom(unsigned x) {{ {} return x; }}\n\
         int main(int count, char **words) {{ unsigned x = 1; int rounds = count > 1 ? atoi(words[1]) : 9; \
         for (int i = 0; i < rounds; i++) {{ x = often(x); if (i % 10 == 0) x = seldom(x); }} printf(\"%u\\n\", x); }}\n",
        each("x = shared#(x, 1); "),
        each("x = shared#(x, 0); ")
    )
}

/// Studies the program of many steps, linked so.
fn study(folder: &Path, link: &str, more: &[&str]) -> Output {
    study_of(folder, &program(), link, more)
}

/// Studies this program, linked so.
fn study_of(folder: &Path, program: &str, link: &str, more: &[&str]) -> Output {
    let source = folder.join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("steps.c"), program).expect("a file");
    let build = format!("gcc -O2 -g {link} -o steps steps.c");
    let out = folder.join("out");
    let mut lineup = installed::lineup();
    lineup.args(["study", "--code", "--json", "--max-time", "1", "--margin", "1000%", "--calls", "40"]);
    lineup.args(["--cache", "l1i=4K,4,64", "--cache", "l1d=32K,8,64", "--cache", "l2=256K,8,64"]);
    lineup.args(["--build", &build]).arg("--source").arg(&source).arg("--out").arg(&out).args(more);
    let output = lineup.args(["--", "./steps", "300"]).output().expect("lineup runs");
    let left: Vec<_> = fs::read_dir(&source).expect("the folder").collect();
    assert_eq!(left.len(), 1, "the user's folder was changed: {left:?}");
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_in_the_new_order_does_the_same_with_fewer_lines_pages_and_misses() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), "", &["--region", "round_of", "--test-arguments", "500"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    assert_eq!(report["not_proven"], Value::Null);
    assert_eq!(report["proof"]["output"]["outcome"], "equal");
    let conclusion = report["proof"]["conclusion"].as_str().expect("a conclusion");
    assert!(conclusion.starts_with("fewer lines of code (") && conclusion.ends_with("of this one link"));
    let code = &report["code"];
    assert_eq!((&code["is_held_out"], &code["ways_estimated"]), (&true.into(), &0.into()));
    assert_eq!((&code["training"], &code["test"]), (&"steps 300".into(), &"steps 500".into()));
    let figure = |what: &str| {
        let figures = code["whole_run"].as_array().expect("figures");
        let figure = figures.iter().find(|one| one["what"].as_str().is_some_and(|name| name.contains(what)));
        let figure = figure.unwrap_or_else(|| panic!("no {what}: {code}"));
        ["before", "after"].map(|side| figure[side].as_u64().expect("a count"))
    };
    for what in ["lines of 64", "pages", "L1I misses"] {
        let [before, after] = figure(what);
        assert!(after < before, "{what}: {before} before, {after} after");
    }
    assert!(figure("iTLB misses")[0] > 0 && figure("L2 misses")[0] > 0);
    let call = &code["calls"][0];
    assert_eq!(call["region"], "round_of");
    for kind in ["lines", "pages"] {
        let [before, after] = [0, 1].map(|side| call[kind][side].as_f64().expect("a mean"));
        assert!(after < before, "{kind}: {before} before, {after} after");
    }
    let out = folder.path().join("out");
    let page = fs::read_to_string(out.join("report.html")).expect("the page");
    assert!(page.contains("Code in another order") && page.contains("modelled iTLB misses"));
    assert!(out.join("steps.fdata").is_file() && out.join("after/steps").is_file());
    for program in ["before", "after"] {
        let map = fs::read_to_string(out.join(program).join("code.html")).expect("the map");
        assert!(map.contains(" code</title>") && map.contains("round_of"), "{map}");
        assert!(page.contains(&format!("{program}/code.html")), "{program}");
    }
    assert!(!said(&output).contains("does not show the calls"), "{}", said(&output));
}

/// A loop over computed addresses, which llvm-bolt fails at in a position-independent program.
const INTERPRETER: &str = "static const unsigned char code[] = {0,1,2,1,0,2,3};\n\
    __attribute__((noinline)) unsigned interpret(unsigned n) {\n\
    static const void *const table[] = { &&add, &&shift, &&loop, &&end };\n\
    unsigned a = 1; const unsigned char *pc = code; goto *table[*pc++];\n\
    add: a += n; goto *table[*pc++];\n\
    shift: a = a << 3 ^ a >> 5; goto *table[*pc++];\n\
    loop: if (n-- > 1) pc = code; goto *table[*pc++];\n\
    end: return a; }\n";

#[test]
fn a_function_that_cannot_be_moved_stays_and_the_rest_is_put_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = program().replace("x = round_of(x);", "x = round_of(x) + interpret(5);");
    let whole = whole.replace("static long seed;", &format!("static long seed;\n{INTERPRETER}"));
    let output = study_of(folder.path(), &whole, "-fPIE -pie", &["--region", "round_of"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    assert_eq!(report["proof"]["output"]["outcome"], "equal", "{}", report["not_proven"]);
    let code = &report["code"];
    assert_eq!(code["not_ordered"], serde_json::json!(["interpret"]));
    assert!(code["optimiser_command"].as_str().is_some_and(|words| words.contains("-skip-funcs=interpret")));
    assert!(said(&output).contains("llvm-bolt cannot move these functions, which stay: interpret"));
    let lines = [0, 1].map(|side| code["calls"][0]["lines"][side].as_f64().expect("a mean"));
    assert!(lines[1] < lines[0], "{lines:?}");
}

/// In the order by counts, frequent code lies together; in the one for rare calls, their code does.
#[test]
fn rare_calls_fetch_fewer_lines_in_an_order_made_for_them_than_in_one_by_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let cold = ["--cold", "--region", "seldom", "--test-arguments", "400"];
    let output = study_of(folder.path(), &shared_program(), "", &cold);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
    assert_eq!(report["not_proven"], Value::Null);
    let cold = &report["code"]["cold"];
    assert_eq!(cold["recorded_calls"], 30);
    let call = &cold["regions"][0];
    assert_eq!(call["region"], "seldom");
    let three = |what: &str| [0, 1, 2].map(|order: usize| call[what][order].as_f64().expect("a mean"));
    // The linker may have put their code side by side by chance; the order by counts puts the rest between.
    let [_, by_counts, by_calls] = three("lines");
    assert!(by_calls < by_counts, "{call}");
    assert!(three("pages")[2] <= three("pages")[1], "{call}");
    let times = call["time"].as_array().expect("two");
    let is_timed = |time: &Value| time["typical_ns"].as_array().is_some_and(|both| both.len() == 2);
    assert!(times.iter().all(is_timed) || !cold["not_timed"].as_array().expect("words").is_empty(), "{cold}");
    let out = folder.path().join("out");
    let order = fs::read_to_string(out.join("steps.cold.order")).expect("the order");
    assert!(order.starts_with("shared") || order.starts_with("seldom"), "{order}");
    assert!(order.lines().position(|name| name == "seldom") < order.lines().position(|name| name == "often"));
    assert!(out.join("steps.cold.fdata").is_file() && out.join("counts/steps").is_file());
}

/// No count shows which calls are meant.
#[test]
fn an_order_for_rare_calls_asks_for_their_function() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), "", &["--cold"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--region"), "{}", said(&output));
}

/// The functions whose instructions missed most are taken, and a message says that a run is judged by itself.
#[test]
fn without_regions_and_another_run_it_says_what_it_takes_instead() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), "", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("their instructions missed most"), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    assert_eq!(report["code"]["is_held_out"], false);
    assert_eq!(report["regions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_program_without_relocations_and_a_machine_without_bolt_are_told_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), "-s", &[]);
    assert_eq!(output.status.code(), Some(2));
    let words = said(&output);
    assert!(
        words.contains("linked steps without relocations") && words.contains("-Wl,--emit-relocs"),
        "{words}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), "", &["--bolt", "/nowhere/llvm-bolt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("cannot run /nowhere/llvm-bolt"), "{}", said(&output));
}

/// Every link is put in the same order by itself.
#[test]
fn a_verdict_about_code_is_over_several_links_of_both_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let output =
        study(folder.path(), "", &["--region", "round_of", "--test-arguments", "500", "--links", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    let proof = &report["proof"];
    assert_eq!((&report["not_proven"], &proof["output"]["outcome"]), (&Value::Null, &"equal".into()));
    assert_eq!(proof["time"]["links"], 3, "{proof}");
    let conclusion = proof["conclusion"].as_str().expect("a conclusion");
    assert!(conclusion.contains("over 3 links of each") && !conclusion.contains("one link"), "{conclusion}");
    assert!(proof["blocks"].as_u64().is_some_and(|blocks| blocks >= 3), "{proof}");
}

/// One table has the program by six optimisers, and each has the effects of the program as linked.
#[test]
fn other_optimisers_are_held_against_the_result_in_one_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let peers = ["--region", "round_of", "--test-arguments", "300000", "--against-optimisers"];
    let output = study(folder.path(), "-no-pie", &peers);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    let table = &report["code"]["optimisers"];
    assert_eq!(table["not_observed"].as_array().map(Vec::len), Some(0), "{table:#}");
    let rows = table["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let expected = [
        "as linked",
        "functions in Lineup's order",
        "BOLT from its own instrumented run",
        "BOLT from Lineup's counts",
        "GCC PGO",
        "GCC PGO, BOLT from Lineup's counts",
    ];
    assert_eq!(names, expected);
    assert!(rows[0]["effects"].is_null() && rows[0]["user"].is_null());
    for row in &rows[1..] {
        let effects = row["effects"].as_str().expect("words");
        assert!(effects.starts_with("compared and equal: ") && effects.contains("standard output"), "{row}");
        assert!(row["elapsed"]["low"].as_f64() < row["elapsed"]["high"].as_f64(), "{row}");
    }
    let lines = |row: &Value| {
        let figures = row["figures"].as_array().expect("figures");
        let lines = figures.iter().find(|one| one["what"] == "the program's lines of 64 bytes");
        lines.and_then(|one| one["count"].as_u64()).expect("lines")
    };
    let [linked, functions, own, counts, pgo, both] = [0, 1, 2, 3, 4, 5].map(|at: usize| lines(&rows[at]));
    assert_eq!(linked, report["code"]["whole_run"][1]["before"], "the same program");
    assert!(functions <= linked && own < functions && counts < functions, "{table:#}");
    assert!(pgo < linked && both < linked, "{table:#}");
    assert_eq!(table["pairs"].as_array().map(Vec::len), Some(2));
    assert!(table["together"]["if_added"].is_number(), "{table:#}");
    assert!(
        fs::read_to_string(folder.path().join("out/report.html"))
            .expect("a page")
            .contains("Against the optimisers")
    );
}

/// Clang has its own form of profile, which is not used; BOLT's version of the program is in the table all the same.
#[test]
fn what_the_build_is_not_made_with_is_named_in_the_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("steps.c"), program()).expect("a file");
    let out = folder.path().join("out");
    let mut lineup = installed::lineup();
    lineup.args(["study", "--code", "--json", "--max-time", "1", "--margin", "1000%", "--calls", "40"]);
    lineup.args([
        "--build",
        "clang -O2 -g -no-pie -o steps steps.c",
        "--region",
        "round_of",
        "--against-optimisers",
    ]);
    lineup.arg("--source").arg(&source).arg("--out").arg(&out).args(["--", "./steps", "30000"]);
    let output = lineup.output().expect("lineup runs");
    let report: Value = schema::checked(&output.stdout);
    let table = &report["code"]["optimisers"];
    let why: Vec<(&str, &str)> = table["not_observed"]
        .as_array()
        .expect("an array")
        .iter()
        .filter_map(|one| Some((one["name"].as_str()?, one["why"].as_str()?)))
        .collect();
    let compiles_nothing =
        |name: &str| why.iter().any(|(one, why)| *one == name && why.contains("compiles nothing by GCC"));
    assert!(compiles_nothing("GCC PGO") && compiles_nothing("functions in Lineup's order"), "{table:#}");
    assert_eq!(table["rows"].as_array().map(Vec::len), Some(3), "{table:#}");
    assert!(table["together"].is_null());
}

const SPREAD: &str =
    "struct thing { unsigned first; char between[60]; unsigned second; char more[60]; unsigned third; };";
const TOGETHER: &str =
    "struct thing { unsigned first; unsigned second; unsigned third; char between[60]; char more[60]; };";

/// The program of many steps, whose rounds read three members of an object, which lie on lines of their own.
fn program_with_data() -> String {
    let uses = "unsigned round_of(unsigned x) { struct thing *t = things + x % 4096; \
                x += t->first + t->second + t->third; t->first = x;";
    let text = program().replace("unsigned round_of(unsigned x) {", uses);
    format!("{SPREAD}\nstatic struct thing things[4096];\n{text}")
}

/// A patch of its first line.
fn patch_to(line: &str) -> String {
    format!(
        "--- a/steps.c\n+++ b/steps.c\n@@ -1,2 +1,2 @@\n-{SPREAD}\n+{line}\n static struct thing things[4096];\n"
    )
}

/// A patch of data and an order of code go through the gates together, and the report also has the effect of each
/// alone.
#[test]
fn a_patch_and_the_order_of_code_are_proven_together_and_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let patch = folder.path().join("fix.patch");
    fs::write(&patch, "thing: members together\n\n".to_owned() + &patch_to(TOGETHER)).expect("a file");
    let patch = patch.to_str().expect("a path");
    let more = ["--region", "round_of", "--test-arguments", "300000", "--patch", patch];
    let output = study_of(folder.path(), &program_with_data(), "", &more);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    assert_eq!(
        (&report["not_proven"], &report["proof"]["output"]["outcome"]),
        (&Value::Null, &"equal".into())
    );
    let code = &report["code"];
    assert!(code["patch"].as_str().is_some_and(|patch| patch.ends_with("which changes steps.c")), "{code}");
    let [before, after] = [0, 1].map(|side: usize| code["calls"][0]["lines"][side].as_f64().expect("a mean"));
    assert!(after < before, "lines of code: {before} before, {after} after");
    let table = &code["optimisers"];
    assert_eq!(table["not_observed"].as_array().map(Vec::len), Some(0), "{table:#}");
    let rows = table["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let result = "the patch, BOLT from Lineup's counts";
    assert_eq!(names, ["as linked", "BOLT from Lineup's counts", "the patch", result]);
    assert_eq!(table["pairs"].as_array().map(Vec::len), Some(2), "{table:#}");
    assert_eq!(
        table["patch_together"]["names"],
        serde_json::json!(["the patch", "BOLT from Lineup's counts"])
    );
    let page = fs::read_to_string(folder.path().join("out/report.html")).expect("a page");
    assert!(
        page.contains("The patch and the order, alone and together") && page.contains("changed first by")
    );
    let footprints = report["regions"][0]["footprints"].as_array().expect("footprints");
    let data = footprints
        .iter()
        .find(|one| one["kind"] == "data" && one["line_bytes"] == 64)
        .expect("lines of data");
    let [before, after] = ["before", "after"].map(|side| data[side]["mean"].as_f64().expect("a mean"));
    assert!(after < before, "{data:#}");
}

/// A patch that does not fit the sources is reported before anything is built, and a program with other effects is not
/// proven.
#[test]
fn a_patch_that_does_not_fit_or_changes_what_the_program_does_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let patch = folder.path().join("fix.patch");
    let more = ["--region", "round_of", "--patch", patch.to_str().expect("a path")];
    fs::write(&patch, patch_to(TOGETHER).replace("first; char", "other; char")).expect("a file");
    let output = study_of(folder.path(), &program_with_data(), "", &more);
    assert_eq!(output.status.code(), Some(2));
    let words = said(&output);
    assert!(words.contains("fix.patch") && words.contains("does not fit steps.c"), "{words}");
    fs::remove_dir_all(folder.path().join("source")).expect("removed");
    let narrow = TOGETHER.replace("unsigned first", "unsigned char first");
    fs::write(&patch, patch_to(&narrow)).expect("a file");
    let output = study_of(folder.path(), &program_with_data(), "", &more);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    assert!(report["not_proven"].is_string(), "{}", report["not_proven"]);
    assert!(report["code"].is_null());
}

#[test]
fn the_order_of_code_is_a_lever_of_a_study_without_regions() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("source");
    fs::create_dir(&source).expect("a folder");
    fs::write(source.join("steps.c"), program()).expect("a file");
    let mut lineup = installed::lineup();
    lineup.args(["study", "--json", "--only", "code", "--max-time", "1", "--calls", "40"]);
    lineup.args(["--build", "gcc -O2 -g -o steps steps.c", "--test-arguments", "500"]);
    lineup.arg("--source").arg(&source).arg("--out").arg(folder.path().join("out"));
    let output = lineup.args(["--", "./steps", "300"]).output().expect("lineup runs");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report: Value = schema::checked(&output.stdout);
    let levers = report["levers"].as_array().expect("levers");
    let code = levers.iter().find(|one| one["lever"] == "code order").expect("the order of code");
    assert_eq!(code["page"], "code/report.html", "{code:#}");
    assert!(code["elapsed"]["ratio"].is_number() && code["result"].as_str().is_some(), "{code:#}");
    assert!(folder.path().join("out/code/report.html").exists());
    let left: Vec<_> = fs::read_dir(&source).expect("the folder").collect();
    assert_eq!(left.len(), 1, "the user's folder was changed: {left:?}");
}
