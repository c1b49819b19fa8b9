//! Findings that depend on the build as a whole: other units, units that cannot be read, shared libraries.

use crate::program::Program;
use lineup_sources::{Freedom, Verdict};

const HEADER: &str = "struct t { long a; int b; char c; }; void f(struct t *); long g(struct t *);\n";

#[test]
fn a_function_of_another_unit_is_compiled_here() {
    let files = [
        ("t.h", HEADER),
        ("a.c", "#include \"t.h\"\nvoid f(struct t *x) { x->b = (int)g(x); }"),
        ("b.c", "#include \"t.h\"\nlong g(struct t *x) { return x->a; }"),
    ];
    let both = Program::of(&files, &["cc -c a.c", "cc -c b.c"]).check();
    assert_eq!(both.summary(), "checked with clang: 2 of 2 units");
    assert_eq!(both.named("t").next().expect("t").freedom(), Freedom::Movable);
    let alone = Program::of(&files, &["cc -c a.c"]).check();
    let ty = alone.named("t").next().expect("t");
    assert_eq!(ty.freedom(), Freedom::Refused, "{:#?}", ty.uses);
    assert_eq!((ty.uses[0].path.as_str(), ty.uses[0].line), ("a.c", 2));
    assert!(ty.uses[0].text.contains("g(x)"), "{:?}", ty.uses[0]);
}

#[test]
fn what_an_unread_unit_names_does_not_move() {
    let files = [
        ("t.h", HEADER),
        ("a.c", "#include \"t.h\"\nvoid f(struct t *x) { x->b = 1; } struct u { int p; long q; } other;"),
        ("b.c", "#include \"t.h\"\n#include \"not_there.h\"\nlong g(struct t *x) { return x->a; }"),
    ];
    let checked = Program::of(&files, &["cc -c a.c", "cc -c b.c"]).try_check(&[]).expect("libclang is there");
    assert_eq!(checked.summary(), "checked with clang: 1 of 2 units");
    assert!(checked.unread[0].1.contains("not_there.h"), "{:?}", checked.unread);
    assert_eq!(checked.named("t").next().expect("t").freedom(), Freedom::Refused);
    assert_eq!(checked.named("u").next().expect("u").freedom(), Freedom::Movable);
}

#[test]
fn a_shared_library_shows_the_types_of_its_headers() {
    let files = [
        ("t.h", HEADER),
        ("inner.h", "struct s { int x; long y; }; int h(struct s *);\n"),
        (
            "a.c",
            "#include \"t.h\"\n#include \"inner.h\"\nvoid f(struct t *x) { x->b = 1; } int h(struct s *x) { return x->x; }\n\
                 struct own { int p; long q; }; static int k(struct own *o) { return o->p; } int l(void) { struct own o = {0}; return k(&o); }",
        ),
    ];
    let commands = ["cc -fPIC -c a.c", "cc -shared -o libt.so a.o"];
    let program = Program::of(&files, &commands);
    let all = program.try_check(&[]).expect("libclang is there");
    let freedom =
        |checked: &lineup_sources::Checked, name: &str| checked.named(name).next().expect("known").freedom();
    assert_eq!(freedom(&all, "t"), Freedom::Refused);
    assert_eq!(freedom(&all, "s"), Freedom::Refused, "nothing says that inner.h is not installed");
    assert_eq!(freedom(&all, "own"), Freedom::Movable);
    let some = program.try_check(&["t.h"]).expect("libclang is there");
    assert_eq!((freedom(&some, "t"), freedom(&some, "s")), (Freedom::Refused, Freedom::Movable));
    let reasons = &some.named("t").next().expect("t").uses;
    assert!(
        reasons.iter().any(|found| found.verdict == Verdict::Refuse && found.reason.contains("f()")),
        "{reasons:?}"
    );
}

#[test]
fn flags_of_the_build_decide_what_is_read() {
    let files = [(
        "a.c",
        "#ifdef WIDE\nstruct t { long a; long b; long c; };\n#else\n#error no\n#endif\nlong f(struct t *x) { return x->b; }",
    )];
    let checked = Program::of(&files, &["cc -DWIDE -mno-such-option -c a.c"]).check();
    assert_eq!(checked.named("t").next().expect("t").members.len(), 3);
}

/// Clang has pragmas that crash it: in the preprocessor, in the parser, by a fatal error.
#[test]
fn a_unit_that_crashes_clang_does_not_end_the_check() {
    for crash in ["crash", "parser_crash", "llvm_fatal_error"] {
        let bad = format!(
            "#include \"t.h\"\n#pragma clang __debug {crash}\nlong g(struct t *x) {{ return x->a; }}"
        );
        let files = [
            ("t.h", HEADER),
            ("a.c", "#include \"t.h\"\nvoid f(struct t *x) { x->b = 1; } struct u { int p; long q; } other;"),
            ("b.c", &bad),
        ];
        let checked =
            Program::of(&files, &["cc -c a.c", "cc -c b.c"]).try_check(&[]).expect("libclang is there");
        assert_eq!(checked.summary(), "checked with clang: 1 of 2 units", "{crash}");
        assert!(
            checked.unread[0].0.ends_with("b.c") && checked.unread[0].1.contains("crashed"),
            "{crash}: {:?}",
            checked.unread
        );
        assert_eq!(checked.named("t").next().expect("t").freedom(), Freedom::Refused);
        assert_eq!(checked.named("u").next().expect("u").freedom(), Freedom::Movable);
    }
}

/// The verdicts about `one` of the type `t`, in a file that these calls compile.
fn follows(one: &str, call: &str) -> Vec<Verdict> {
    let text = format!(
        "#define NONE ((void *)0)\n#define BOTH 1, 2\n#define ALL {{ 1, 2, NONE }}
        struct t {{ int a; long b; char *c; }}; static struct t one = {one}; long f(void) {{ return one.b; }}"
    );
    let checked = Program::of(&[("a.c", &text)], &[call]).check();
    let ty = checked.named("t").next().expect("the type t");
    ty.uses.iter().map(|used| used.verdict.clone()).collect()
}

#[test]
fn values_change_places_where_the_compiler_takes_no_names() {
    let strict = "cc -std=c89 -pedantic -Werror -c a.c";
    let names = |count: usize| ["a", "b", "c"][..count].iter().map(|name| name.to_string()).collect();
    assert_eq!(follows("{ 1, 2, NONE }", strict), [Verdict::Exchanged(names(3))]);
    assert_eq!(follows("{ 1, 2, NONE }", "cc -std=gnu89 -Werror -c a.c"), [Verdict::Named(names(3))]);
    assert_eq!(follows("{ 0 }", strict), []);
    assert_eq!(follows("{ 1, 2 }", strict), [Verdict::Keep(names(2))], "one has no value to exchange");
    for (one, count) in [("{ BOTH, NONE }", 3), ("ALL", 3), ("{ 1 }", 1)] {
        assert_eq!(follows(one, strict), [Verdict::Keep(names(count))], "{one}");
    }
}

#[test]
fn values_of_an_array_without_braces_hold_all_of_them() {
    let text = "#define ONE 1\nstruct t { int a[2]; int b; int c; }; static struct t one = { ONE, ONE, 3 };
        int f(void) { return one.b; }";
    for call in ["cc -std=c89 -pedantic -Werror -c a.c", "cc -c a.c"] {
        let checked = Program::of(&[("a.c", text)], &[call]).check();
        let ty = checked.named("t").next().expect("the type t");
        let is_kept =
            |used: &lineup_sources::Use| matches!(&used.verdict, Verdict::Keep(names) if names.len() == 2);
        assert!(ty.uses.iter().any(is_kept), "{call} {:#?}", ty.uses);
    }
}

#[test]
fn a_header_is_in_the_language_of_the_units_that_read_it() {
    let files = [
        ("both.h", "struct t { int a; long b; };"),
        ("own.h", "struct u { int a; long b; };"),
        ("a.c", "#include \"both.h\"\nlong f(struct t *x) { return x->b; }"),
        ("b.cc", "#include \"both.h\"\n#include \"own.h\"\nint g(t *x, u *y) { return x->a + y->a; }"),
    ];
    let checked = Program::of(&files, &["cc -c a.c", "c++ -c b.cc"]).check();
    assert_eq!(checked.only_cpp.iter().map(String::as_str).collect::<Vec<_>>(), ["b.cc", "own.h"]);
}

#[test]
fn a_type_in_a_copied_header_is_refused() {
    let header = "struct t { int a; long b; };";
    let files = [
        ("src/own.h", header),
        ("out/own.h", header),
        ("src/a.c", "#include \"own.h\"\nlong f(struct t *x) { return x->b; }"),
        ("b.c", "#include <own.h>\nint g(struct t *x) { return x->a; }"),
    ];
    let checked = Program::of(&files, &["cc -c src/a.c", "cc -Iout -c b.c"]).check();
    let ty = checked.named("t").next().expect("the type t");
    assert_eq!(ty.freedom(), Freedom::Refused);
    assert!(ty.uses.iter().any(|used| used.reason.contains("an edit changes one")), "{:#?}", ty.uses);
    let checked = Program::of(&files, &["cc -c src/a.c", "cc -Isrc -c b.c"]).check();
    assert_eq!(checked.named("t").next().expect("the type t").freedom(), Freedom::Movable);
}
