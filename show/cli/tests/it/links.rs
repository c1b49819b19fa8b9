//! `lineup compare --links N`: verdicts over several links of each program.

use crate::schema;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A program whose "cost" is a function's place within a page: it has no cost of its own, and differs by its layout
/// alone.
const MAIN: &str = r#"
#include <stdint.h>
#include <stdio.h>
void placed(void);
int main(void) { printf("lineup-metric cost %d units\n", 1000 + (int)((uintptr_t)placed / 16 % 256)); }
"#;

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    let all = [&["compare", "--primary", "cost", "--same-environment"], arguments].concat();
    Command::new(env!("CARGO_BIN_EXE_lineup")).args(all).current_dir(folder).output().expect("lineup runs")
}

/// The sources, and a build of two programs that differ by an object that nobody uses.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("main.c", MAIN);
    write("placed.c", "void placed(void) {}\n");
    write("other.c", "int other(int x) { return x * 3; }\n");
    write("unused.c", "int unused(int x) { for (int i = 0; i < x; i++) x ^= x << i; return x % 91; }\n");
    write(
        "build.sh",
        "set -e\nfor f in main placed other unused; do gcc -O2 -c $f.c; done\n\
         gcc -o one main.o other.o placed.o\ngcc -o two main.o unused.o other.o placed.o\n",
    );
    let built = Command::new("sh").arg("build.sh").current_dir(folder.path()).status().expect("sh");
    assert!(built.success());
    folder
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::checked(&output.stdout)
}

fn contrast(result: &Value) -> &Value {
    let metrics = result["metrics"].as_array().expect("metrics");
    let cost = metrics.iter().find(|metric| metric["name"] == "cost").expect("the metric");
    &cost["contrasts"][0]
}

/// A program of one object and an archive, which "costs" how far apart two functions of the archive are.
#[test]
fn what_comes_from_an_archive_moves_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write(
        "main.c",
        "#include <stdint.h>\n#include <stdio.h>\nvoid a(void); void c(void);\n\
         int main(void) { a(); c(); printf(\"lineup-metric cost %d units\\n\", \
         1000 + (int)(((uintptr_t)c - (uintptr_t)a) / 16 % 512)); }\n",
    );
    for name in ["a", "b", "c", "d"] {
        let next = if name == "a" { "void b(void), d(void);\n" } else { "" };
        let calls = if name == "a" { "b(); d();" } else { "" };
        write(&format!("{name}.c"), &format!("{next}void {name}(void) {{ {calls} }}\n"));
    }
    write(
        "build.sh",
        "set -e\nfor f in main a b c d; do gcc -O2 -c $f.c; done\nrm -f libx.a\nar rc libx.a a.o b.o c.o d.o\n\
         gcc -o one main.o -L. -lx\ngcc -o two main.o libx.a\n",
    );
    let built = Command::new("sh").arg("build.sh").current_dir(folder.path()).status().expect("sh");
    assert!(built.success());
    let links = ["--links", "6", "--build", "sh build.sh", "-n", "12", "--json", "./one", "./two"];
    let output = lineup(folder.path(), &links);
    let result = json(&output);
    for variant in result["metrics"][0]["variants"].as_array().expect("variants") {
        let costs = variant["values"].as_array().expect("values").iter();
        let costs: BTreeSet<String> = costs.map(Value::to_string).collect();
        assert!(costs.len() > 3, "the links are alike: {costs:?}");
    }
    assert!(!String::from_utf8_lossy(&output.stderr).contains("another order"), "{output:?}");
}

#[test]
fn links_of_few_objects_are_said_to_differ_by_little() {
    let folder = folder();
    let build = "gcc -O2 -o one main.o placed.o && gcc -O2 -o two main.o placed.o";
    let output = lineup(folder.path(), &["--links", "2", "--build", build, "-n", "4", "./one", "./two"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("one has 2 objects that a link can put in another order"), "{said}");
}

/// A certain result of one link says nothing about the sources.
#[test]
fn what_differs_by_layout_alone_is_changed_of_one_link_and_not_over_several() {
    let folder = folder();
    let of_one = json(&lineup(folder.path(), &["-n", "4", "--json", "./one", "./two"]));
    assert_eq!((contrast(&of_one)["verdict"].as_str(), &of_one["links"]), (Some("changed"), &1.into()));
    assert_eq!(contrast(&of_one)["link_share"], Value::Null);
    let links = ["--links", "8", "--build", "sh build.sh", "-n", "16", "--json", "./one", "./two"];
    let over_links = json(&lineup(folder.path(), &links));
    assert_eq!(over_links["links"], 8);
    assert_ne!(contrast(&over_links)["verdict"], "changed");
    // Nothing else differs.
    assert_eq!(contrast(&over_links)["link_share"], 1.0);
    let runs = over_links["metrics"][0]["variants"][0]["values"].as_array().expect("values").clone();
    let mut costs: Vec<i64> = runs.iter().map(|cost| cost.as_f64().expect("a cost") as i64).collect();
    costs.sort_unstable();
    costs.dedup();
    assert!(costs.len() > 3, "the links are alike: {costs:?}");
}

#[test]
fn text_and_page_say_over_how_many_links_and_what_share_of_the_spread_they_are() {
    let folder = folder();
    let arguments = [
        "--links",
        "2",
        "--build",
        "sh build.sh",
        "-n",
        "4",
        "--full",
        "--html",
        "page.html",
        "./one",
        "./two",
    ];
    let output = lineup(folder.path(), &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("over 2 links of each, which are 100 % of the spread"), "{text}{said}");
    assert!(text.contains("fewer than ten links") && !text.contains("of this one link"), "{text}");
    let page = fs::read_to_string(folder.path().join("page.html")).expect("the page");
    assert!(page.contains("over 2 links of each") && page.contains("of the spread of blocks"));
}

#[test]
fn a_build_that_links_nothing_or_fails_is_told() {
    let folder = folder();
    let refused = |build: &str| {
        let output = lineup(folder.path(), &["--links", "2", "--build", build, "./one", "./two"]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let words = refused("true");
    assert!(words.contains("was not linked by the build") && words.contains("make -B"), "{words}");
    let words = refused("gcc -o one main.o missing.o");
    assert!(words.contains("missing.o") && words.contains("exit status 1"), "{words}");
}
