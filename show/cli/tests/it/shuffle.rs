//! `lineup shuffle` on small programs: movable members are moved and pass the test; hidden dependences are found.

use crate::schema;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// `hidden` is read at an offset from an address that was text in between, which reading the sources does not follow.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct plain { long first; int second; char third; struct plain *next; };
struct hidden { long head; int tag; int count; };
struct sent { int a; long b; };
static int peek(const char *at, unsigned long offset) { return *(int *)(strtoul(at, NULL, 10) + offset); }
static long sum(struct plain *p) { long s = 0; for (; p; p = p->next) s += p->first + p->second + p->third; return s; }
int main(int argc, char **argv) {
    struct plain two = { .first = 3, .second = 4, .third = 5, .next = NULL };
    struct plain one = { .first = 1, .second = 2, .third = 3, .next = &two };
    struct hidden h = { .head = 7, .tag = 42, .count = 9 };
    struct sent out = { .a = 1, .b = 2 };
    unsigned long offset = argc * 8ul;
    char at[32];
    snprintf(at, sizeof at, "%lu", (unsigned long)&h);
    if (argc > 5) fwrite(&out, sizeof out, 1, stdout);
    printf("%ld %d %d %s\n", sum(&one), peek(at, offset), h.count, argv[0] ? "" : "no name");
    return 0;
}
"#;

const TEST: &str = "test \"$(./program)\" = '18 42 9 '";

struct Folder(tempfile::TempDir);

/// A macro stands before the type of two tables, and one list of values is a macro's: no edit reaches that.
const TABLES: &str = r#"
#include <stdio.h>
#define local static
#define PAIR(x) { x, x + 1, x * 2.0 }
typedef struct config_s { short good; long lazy; int (*func)(int); } config;
typedef struct desc_s { char first; long second; short third; } desc;
struct made { char one; long two; double three; };
local int twice(int x) { return 2 * x; }
local const config table[2] = { {1, 2, twice}, {3, 4, twice} };
local const desc one_desc =
{5, 6, 7};
static struct made made[] = { PAIR(1), PAIR(2) };
int main(int argc, char **argv) {
    const config *c = &table[argc - 1];
    printf("%d %ld %d %d %ld %d %ld\n", c->good, c->lazy, c->func(4), one_desc.first, one_desc.second,
        one_desc.third, made[0].two + (argv[0] == NULL));
    return 0;
}
"#;

impl Folder {
    fn new() -> Folder {
        Folder::of(PROGRAM)
    }

    fn of(program: &str) -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("program.c"), program).expect("writes");
        std::fs::write(
            folder.path().join("Makefile"),
            "program: program.c\n\tcd . && /usr/bin/cc -g -O1 -o program program.c\n",
        )
        .expect("writes");
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn shuffle(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lineup"))
            .args(["shuffle", "--json"])
            .args(arguments)
            .arg("program")
            .current_dir(self.path())
            .output()
            .expect("lineup runs")
    }
}

fn json(output: &Output) -> Value {
    assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::checked(&output.stdout)
}

fn types(json: &Value, kind: &str) -> Vec<String> {
    let types = json[kind].as_array().expect("types");
    types.iter().map(|ty| ty["type"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn the_list_says_what_may_move_and_why_the_rest_may_not() {
    let output = Folder::new().shuffle(&["--list"]);
    let json = json(&output);
    assert_eq!(json["sources"], "checked with clang: 1 of 1 units");
    assert_eq!(types(&json, "movable"), ["hidden", "plain"]);
    assert_eq!(types(&json, "refused"), ["sent"]);
    assert!(json["refused"][0]["constraints"].to_string().contains("fwrite()"), "{json}");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn types_that_may_move_stand_the_test_in_every_order() {
    let output = Folder::new().shuffle(&["--test", TEST, "--type", "plain", "--seeds", "3"]);
    let json = json(&output);
    let seeds = json["seeds"].as_array().expect("seeds");
    assert_eq!(seeds.len(), 3);
    assert!(
        seeds.iter().all(|seed| seed["shuffled"] == 1 && seed["failures"] == Value::Array(vec![])),
        "{json}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_hidden_order_is_found_kept_and_obeyed() {
    let folder = Folder::new();
    let arguments = ["--test", TEST, "--seeds", "6", "--constraints", "held.toml"];
    let output = folder.shuffle(&arguments);
    let found = json(&output);
    assert_eq!(output.status.code(), Some(1), "{found}");
    let failures: Vec<&Value> = found["seeds"]
        .as_array()
        .expect("seeds")
        .iter()
        .flat_map(|seed| seed["failures"].as_array())
        .flatten()
        .collect();
    assert!(!failures.is_empty());
    for failure in &failures {
        assert_eq!(failure["type"], "hidden");
        assert_eq!(failure["pair"].as_array().map(Vec::len), Some(2), "{failure}");
    }
    let held = std::fs::read_to_string(folder.path().join("held.toml")).expect("the constraints are kept");
    assert!(held.contains("type = \"hidden\"") && held.contains("rule = \"order\""), "{held}");
    let again = folder.shuffle(&arguments);
    assert_eq!(again.status.code(), Some(0), "{}", json(&again));
}

#[test]
fn what_a_test_teaches_of_a_type_in_a_namespace_is_obeyed() {
    let folder = Folder::of("");
    let text = PROGRAM
        .replace("struct hidden {", "namespace n { struct hidden {")
        .replace("int count; };", "int count; }; }");
    let text = text.replace(
        "struct hidden h = { .head = 7, .tag = 42, .count = 9 };",
        "n::hidden h; h.head = 7; h.tag = 42; h.count = 9;",
    );
    std::fs::write(folder.path().join("program.cpp"), text).expect("writes");
    let build = "/usr/bin/c++ -std=c++20 -g -O1 -o program program.cpp";
    let arguments = [
        "--build",
        build,
        "--test",
        TEST,
        "--type",
        "n::hidden",
        "--seeds",
        "6",
        "--constraints",
        "held.toml",
    ];
    let found = folder.shuffle(&arguments);
    assert_eq!(found.status.code(), Some(1), "{}", json(&found));
    let again = json(&folder.shuffle(&["--build", build, "--list", "--constraints", "held.toml"]));
    assert_eq!(types(&again, "movable"), Vec::<String>::new(), "{again}");
}

#[test]
fn tables_of_values_by_position_follow_the_members_or_hold_them() {
    let test = "test \"$(./program)\" = '1 2 8 5 6 7 2'";
    let output = Folder::of(TABLES).shuffle(&["--test", test, "--seeds", "4"]);
    let json = json(&output);
    assert_eq!(types(&json, "movable"), ["config_s", "desc_s"], "{json}");
    assert_eq!(types(&json, "refused"), ["made"], "{json}");
    let seeds = json["seeds"].as_array().expect("seeds");
    assert!(seeds.iter().all(|seed| seed["failures"] == Value::Array(vec![])), "{json}");
    assert!(seeds.iter().any(|seed| seed["shuffled"] == 2), "{json}");
}

/// A build's copy of a header is read before the header itself, and debug info names the header.
#[test]
fn a_type_in_a_copied_header_is_held_wherever_debug_info_finds_it() {
    let folder = Folder::of("");
    let header = "struct copied { long a; int b; int c; };\nlong sum(struct copied *x);\n";
    let files = [
        ("copy/t.h", header),
        ("src/t.h", header),
        (
            "app.c",
            "#include \"copy/t.h\"\nint main(void) { struct copied x = { 0 }; x.b = 2; return sum(&x) != 2; }\n",
        ),
        ("src/lib.c", "#include \"t.h\"\nlong sum(struct copied *x) { return x->a + x->b + x->c; }\n"),
    ];
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("makes");
        std::fs::write(path, text).expect("writes");
    }
    let build = "/usr/bin/cc -g -O0 -c src/lib.c && /usr/bin/cc -g -O0 -c app.c && /usr/bin/cc -o program lib.o app.o";
    let output = folder.shuffle(&["--list", "--build", build]);
    let json = json(&output);
    assert_eq!(types(&json, "refused"), ["copied"], "{json}");
    assert!(json["refused"][0]["constraints"].to_string().contains("an edit changes one"), "{json}");
}

/// Instances of a template, a class with one member of its own behind its base's, and a lambda that keeps two values.
const CLASSES: &str = r#"
template <class T> struct pair_of { T one; long two; T three; };
struct base { long id; int kind; };
struct derived : base { long more; };
int main(int argc, char **) {
    pair_of<int> a = pair_of<int>(); pair_of<char> b = pair_of<char>(); derived d = derived(); base e = base();
    auto sum = [argc, &d](long x) { return x + argc + d.more; };
    return sum(a.two + b.two + d.id + e.id) == 1 ? 0 : 1;
}
"#;

#[test]
fn a_template_is_one_type_and_what_has_no_two_members_of_its_own_is_none() {
    let folder = Folder::of("");
    std::fs::write(folder.path().join("program.cpp"), CLASSES).expect("writes");
    let build = "/usr/bin/c++ -g -O0 -o program program.cpp";
    let output = folder.shuffle(&["--list", "--build", build]);
    let json = json(&output);
    assert_eq!(types(&json, "movable"), ["base"], "{json}");
    let refused = types(&json, "refused");
    assert!(matches!(&refused[..], [one] if one.starts_with("pair_of<")), "{json}");
}

/// Fails only when neither type begins as it is declared.
const TOGETHER: &str = r#"
#include <stddef.h>
struct one { long a; int b; };
struct two { long c; int d; };
struct one x; struct two y;
static const unsigned long places[] = { offsetof(struct one, a), offsetof(struct two, c) };
int main(void) { return places[0] && places[1] && x.a + y.c == 0; }
"#;

#[test]
fn types_that_fail_only_together_are_named_as_that() {
    let folder = Folder::of(TOGETHER);
    let output = folder.shuffle(&["--test", "./program", "--seeds", "12"]);
    let json = json(&output);
    let seeds = json["seeds"].as_array().expect("seeds");
    let failures: Vec<&Value> = seeds.iter().flat_map(|seed| seed["failures"].as_array()).flatten().collect();
    assert_eq!(failures.len(), 2, "{json}");
    for (failure, other) in failures.iter().zip(["two", "one"]) {
        assert_eq!(failure["together"], serde_json::json!([other]), "{failure}");
        assert_eq!(failure["pair"], serde_json::json!([]), "{failure}");
    }
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_test_that_fails_by_itself_tells_nothing() {
    let output = Folder::new().shuffle(&["--test", "echo broken; false"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("fails with the unchanged program") && words.contains("broken"), "{words}");
}
