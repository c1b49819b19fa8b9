//! `lineup shuffle` where values in braces, declarators and headers have to follow the members: moved members pass the
//! test, and the nearest neighbours that an edit cannot follow stay.

use serde_json::Value;
use std::process::Command;

/// The output of `lineup shuffle` for a folder with these files, built and tested by these commands.
fn shuffle(files: &[(&str, &str)], build: &str, test: &str, seeds: u32) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("writes");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_lineup"))
        .args(["shuffle", "--json", "--build", build, "--test", test])
        .args(["--seeds", &seeds.to_string(), "program"])
        .current_dir(folder.path())
        .output()
        .expect("lineup runs");
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

fn types<'j>(json: &'j Value, kind: &str) -> Vec<&'j str> {
    let types = json[kind].as_array().expect("types");
    types.iter().map(|ty| ty["type"].as_str().expect("a name")).collect()
}

/// All types moved at some time, and no test failed.
fn stood(json: &Value, moved: u64) {
    let seeds = json["seeds"].as_array().expect("seeds");
    assert!(seeds.iter().all(|seed| seed["failures"] == Value::Array(vec![])), "{json}");
    assert!(seeds.iter().any(|seed| seed["shuffled"] == moved), "{json}");
}

/// C of 1989, to the letter: no member can be named in an initialiser.
const OLD_C: &str = r#"
#include <stdio.h>
#define NONE ((void *)0)
#define HERE __LINE__
#define WHERE HERE
#define TWO 1, 2
typedef struct { const char *name; long value; void *next; short flags; } entry;
struct outer { int n; entry inner; char text[6]; };
struct lined { int line; long other; int more; };
struct noted { int a; long b; char c; };
struct partly { int a; long b; char c; };
struct by_macro { int a; long b; char c; };
struct bare { int a[2]; int b; int c; };
static entry table[] = { { "one", 1, NONE, 'a' }, { "tw" "o", 2, &table[0], 'b' } };
static struct outer one = { 3, { "in,ner", 4, NONE, 'c' }, "text" };
static struct lined lined = { WHERE,
    2, 3 };
static struct noted noted = { 1, /* two */ 2, 3 };
static struct partly partly = { 1, 2 };
static struct by_macro by_macro = { TWO, 3 };
static struct bare bare = { 1, 2, 3, 4 };
int main(void)
{
    entry made = { "made", 5, NONE, 'd' };
    made.next = &table[1];
    printf("%s %ld %d %s %ld %c", table[1].name, table[1].value, table[1].next == &table[0], ((entry *)made.next)->name,
        made.value, made.flags);
    printf(" %d %s %ld %s", one.n, one.inner.name, one.inner.value, one.text);
    printf(" %ld %d %ld %ld %d\n", lined.other, noted.a, partly.b, by_macro.b, bare.b);
    return 0;
}
"#;

#[test]
fn values_change_places_where_no_member_can_be_named() {
    let json = shuffle(
        &[("program.c", OLD_C)],
        "/usr/bin/cc -g -std=c89 -pedantic -Wall -Werror -Wno-missing-braces -o program program.c",
        "test \"$(./program)\" = 'two 2 1 two 5 d 3 in,ner 4 text 2 1 2 2 3'",
        6,
    );
    assert_eq!(types(&json, "movable"), ["entry", "outer"], "{json}");
    assert_eq!(types(&json, "refused"), ["bare", "by_macro", "lined", "noted", "partly"], "{json}");
    stood(&json, 2);
}

/// C++ takes values in the order of the members only.
const CPP: &str = r#"
#include <cstdio>
struct entry { const char *name; long value; short flags; };
struct counted { int a; long b; int c; int d; };
struct turned { long first; long second; long third; };
static int count;
static struct counting { operator long() const { return ++count; } } one, two;
static int next() { return ++count; }
static const entry table[] = { { "one", 1, 'a' }, { "two", 2, 'b' } };
int main() {
    const entry made{ "made", 5, 'c' };
    counted in_order = { next(), count, next(), 7 };
    turned also{ one, two, 8 };
    std::printf("%s %ld %s %ld %c", table[1].name, table[0].value, made.name, entry{ "x", 6, 'd' }.value, made.flags);
    std::printf(" %d %ld %d %ld %ld\n", in_order.a, in_order.b, in_order.c, also.first, also.second);
    return 0;
}
"#;

/// The type of a list stands elsewhere or is a template's, another list begins in its line, and a base stands before
/// the members.
const CPP_ELSEWHERE: &str = r#"
#include <cstdio>
#include <vector>
struct listed { int a; long b; char c; };
struct returned { int a; long b; char c; int d; };
struct beside { int a; long b; char c; };
struct base { int k; };
struct derived : base { int a; long b; };
struct made { int a; long b; char c; int d; long e; };
template <class T> static T make() { T t{ 1, 2, 'x', 3, 4 }; return t.a ? t : T{ 1, 2, 'y', 3, 4 }; }
static returned give() { return { 1, 2, 'x', 3 }; }
static std::vector<listed> lists() { std::vector<listed> all = { { 1, 2, 'y' }, { 3, 4, 'z' } }; return all; }
int main() {
    beside one = { 1, 2, 'v' }; std::vector<beside> more = { { 3, 4, 'w' } };
    derived below = { { 7 }, 8, 9 };
    std::printf("%ld %ld %ld %ld %ld", give().b, lists()[1].b, one.b, more[0].b, below.b);
    std::printf(" %ld\n", make<made>().b);
    return 0;
}
"#;

#[test]
fn values_of_cpp_change_places_where_their_type_stands_beside_them() {
    let build = "/usr/bin/c++ -g -std=c++17 -Wall -o program program.cc";
    let test = "test \"$(./program)\" = 'two 1 made 6 c 1 1 2 3 4'";
    let json = shuffle(&[("program.cc", CPP)], build, test, 6);
    assert_eq!(types(&json, "movable"), ["counted", "entry", "turned"], "{json}");
    stood(&json, 3);
}

#[test]
fn values_of_cpp_whose_type_stands_elsewhere_hold_the_members() {
    let build = "/usr/bin/c++ -g -std=c++17 -Wall -o program program.cc";
    let test = "test \"$(./program)\" = '2 4 2 4 9 2'";
    let json = shuffle(&[("program.cc", CPP_ELSEWHERE)], build, test, 1);
    assert_eq!(types(&json, "refused"), ["beside", "derived", "listed", "made", "returned"], "{json}");
}

/// Members that are declared at once; where the type is a macro, the first is another type than the rest.
const DECLARED_AT_ONCE: &str = r#"
#include <stdio.h>
#define ADDRESS int *
struct span { struct span *start, *stop, *middle; };
struct mixed { ADDRESS a, b; };
int main(void) {
    struct span one = { 0, &one, 0 };
    int n = 5; struct mixed m = { &n, 6 };
    one.middle = one.stop;
    printf("%d %d %d %d\n", one.start == 0, one.middle == &one, *m.a, m.b);
    return 0;
}
"#;

#[test]
fn declarators_change_places_when_they_are_of_one_type() {
    let json = shuffle(
        &[("program.c", DECLARED_AT_ONCE)],
        "/usr/bin/cc -g -o program program.c",
        "test \"$(./program)\" = '1 1 5 6'",
        4,
    );
    assert_eq!(types(&json, "movable"), ["span"], "{json}");
    assert_eq!(types(&json, "refused"), ["mixed"], "{json}");
    stood(&json, 1);
}

/// A class in a header that C could read too, next to a file of C that does not.
#[test]
fn a_header_that_only_cpp_reads_is_read_as_cpp() {
    let header = "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint of_c(void);\n#ifdef __cplusplus\n}\n\
        class counter {\n public:\n  long twice() const { return 2 * second; }\n  int first = 1;\n  long second = 2;\n  char third = 3;\n};\n#endif\n";
    let main = "#include \"c.h\"\nint main() { counter c; return c.twice() == 4 && c.first == 1 && c.third == 3 ? of_c() : 1; }\n";
    let of_c = "int of_c(void) { return 0; }\n";
    let build = "/usr/bin/cc -g -c c.c && /usr/bin/c++ -g -o program main.cc c.o";
    let json = shuffle(&[("c.h", header), ("c.c", of_c), ("main.cc", main)], build, "./program", 2);
    assert_eq!(types(&json, "movable"), ["counter"], "{json}");
    stood(&json, 1);
}
