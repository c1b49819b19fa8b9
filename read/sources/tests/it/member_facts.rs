//! Uses of members of structs of C, the values that they may have, and uses of objects that keep members as they are
//! declared.

use crate::program::Program;
use lineup_model::object_uses::{HeldPart, MemberAccess};
use lineup_sources::MemberFacts;

const STRUCT: &str = "#include <stdlib.h>
#include <stddef.h>
#include <string.h>
#include <stdio.h>
enum kind { NONE, LEAF, NODE };
struct t { int m; unsigned u; long l; enum kind k; char name[8]; struct t *next; };
struct t *first; int any(void); void take(void *p, size_t size);
";

fn facts(code: &str) -> MemberFacts {
    facts_of(&Program::c(&format!("{STRUCT}{code}\n")))
}

fn facts_of(program: &Program) -> MemberFacts {
    let checked = program.check();
    checked.named("t").next().expect("the type t").member_facts.clone().expect("facts")
}

/// The values that a member may have.
fn values(code: &str, member: &str) -> (i64, i64) {
    let values = &facts(code).values[member];
    (values.low, values.high)
}

/// `part member: reason` of each hold, `*` for all members.
fn holds(code: &str) -> Vec<String> {
    let holds = facts(code).holds;
    let hold = |hold: &lineup_sources::MemberHold| {
        format!("{:?} {}: {}", hold.part, hold.member.as_deref().unwrap_or("*"), hold.reason)
    };
    holds.iter().map(hold).collect()
}

#[track_caller]
fn held(code: &str, hold: &str) {
    let found = holds(code);
    assert!(found.iter().any(|one| one.starts_with(hold)), "{hold}: {found:#?}");
}

#[track_caller]
fn free(code: &str) {
    assert_eq!(holds(code), Vec::<String>::new(), "{code}");
}

/// The accesses of a member, in order.
fn accesses(code: &str, member: &str) -> Vec<MemberAccess> {
    let uses = facts(code).uses;
    uses.into_iter().filter(|used| used.member == member).map(|used| used.access).collect()
}

#[test]
fn constants_comparisons_masks_and_narrow_types_bound_a_member() {
    for (value, range) in [
        ("7", (0, 7)),
        ("-3", (-3, 0)),
        ("NODE", (0, 2)),
        ("p->u == 3", (0, 1)),
        ("!any() && p->m < 4", (0, 1)),
        ("any() & 15", (0, 15)),
        ("p->u % 10", (0, 9)),
        ("any() % 10", (-9, 9)),
        ("p->u >> 24", (0, 255)),
        ("(unsigned char)any()", (0, 255)),
        ("p->name[2]", (-128, 127)),
        ("any() ? 3 : 200", (0, 200)),
        ("(any() & 7) + 1", (0, 8)),
        ("(any() & 7) << 4", (0, 112)),
        ("(int)sizeof(p->name)", (0, 8)),
        ("p->l", (i64::from(i32::MIN), i64::from(i32::MAX))),
        ("any()", (i64::from(i32::MIN), i64::from(i32::MAX))),
        ("p->m + 1", (i64::from(i32::MIN), i64::from(i32::MAX))),
    ] {
        assert_eq!(values(&format!("void f(struct t *p) {{ p->m = {value}; }}"), "m"), range, "{value}");
    }
}

#[test]
fn copies_have_the_values_of_their_sources_in_every_unit() {
    let code = "static int level(int of) { if (of > 2) return 9; return of ? 3 : 4; }
static void set(struct t *p, int to) { int kept = to; p->m = kept; }
void f(struct t *p) { set(p, 5); set(p, level(any())); first->l = p->m; }";
    assert_eq!(values(code, "m"), (0, 9));
    assert_eq!(values(code, "l"), (0, 9));
    let header = "struct t { int m; long l; };\nvoid set(struct t *p, int to);\n";
    let one = "#include \"t.h\"\nvoid set(struct t *p, int to) { p->m = to; }\n";
    let other =
        |value: &str| format!("#include \"t.h\"\nvoid f(struct t *p, int any) {{ set(p, {value}); }}\n");
    let values = |value: &str| {
        let files = [("t.h", header), ("a.c", one), ("b.c", &other(value))];
        let facts = facts_of(&Program::of(&files, &["cc -c a.c", "cc -c b.c"]));
        (facts.values["m"].low, facts.values["m"].high, facts.values["m"].widest.clone())
    };
    assert_eq!(values("40"), (0, 40, Some(("a.c".into(), 2))));
    assert_eq!(values("any"), (i32::MIN.into(), i32::MAX.into(), Some(("a.c".into(), 2))));
}

#[test]
fn sources_that_change_otherwise_show_no_bound() {
    let unbounded = (i64::from(i32::MIN), i64::from(i32::MAX));
    for code in [
        "void f(struct t *p) { p->m = 1; p->m++; }",
        "void f(struct t *p) { p->m += 2; }",
        "void f(struct t *p) { int n = 0; n++; p->m = n; }",
        "void f(struct t *p) { int n = 0; scanf(\"%d\", &n); p->m = n; }",
        "void f(struct t *p) { scanf(\"%d\", &p->m); }",
        "int n; void f(struct t *p) { p->m = n; }",
        "static void f(struct t *p, int n) { p->m = n; } void (*g)(struct t *, int) = f;",
        "int main(int n, char **a) { first->m = n; return 0; }",
        "void f(struct t *p) { volatile int n = 3; p->m = n; }",
        "static int one(int a) { return a; } static int (*pick(void))(int) { return one; }
        void f(struct t *p) { p->m = pick()(7); }",
        "static int n = 3; void f(struct t *p) { __asm__(\"movl $700, n(%rip)\"); p->m = n; }",
        "static void set(struct t *p, int n) { p->m = n; } void f(struct t *p) { set(p, 1); }
        void other(struct t *, int) __attribute__((alias(\"set\")));",
        "void set(struct t *p, int n) __asm__(\"other\"); void set(struct t *p, int n) { p->m = n; }
        void f(struct t *p) { set(p, 1); }",
        "void *dlsym(void *, const char *); void set(struct t *p, int n) { p->m = n; }
        void f(struct t *p, const char *name) { set(p, 1); dlsym(0, name); }",
    ] {
        assert_eq!(values(code, "m"), unbounded, "{code}");
    }
}

#[test]
fn a_source_is_read_with_each_of_its_settings() {
    let text = "struct t { int m; };\nvoid f(struct t *p) { p->m = VALUE; }\n";
    let high = |calls: &[&str]| facts_of(&Program::of(&[("a.c", text)], calls)).values["m"].high;
    assert_eq!(high(&["cc -DVALUE=3 -c a.c -o one.o", "cc -DVALUE=700 -c a.c -o two.o"]), 700);
    assert_eq!(high(&["cc -D VALUE=3 -c a.c -o one.o", "cc -DPIC -D VALUE=3 -c a.c -o two.o"]), 3);
}

#[test]
fn flags_stay_within_their_bits() {
    let code = "void f(struct t *p) { p->m = 0; p->m |= 4; p->m &= ~2; p->m ^= 1; }";
    assert_eq!(values(code, "m"), (0, 7));
    let code = "void f(struct t *p) { p->m = -1; p->m &= any(); }";
    assert_eq!(values(code, "m"), (i32::MIN.into(), i32::MAX.into()));
}

#[test]
fn values_in_braces_count() {
    assert_eq!(values("struct t a = { 3, 4, .l = 1 };", "m"), (i32::MIN.into(), i32::MAX.into()));
    assert_eq!(values("struct t a = { 3, 4, 300 }; struct t b = { 0 };", "l"), (0, 300));
    assert_eq!(values("struct t a = { .m = 9 }; void f(void) { first->m = 2; }", "m"), (0, 9));
    assert_eq!(values("struct t a[2] = { 3, 4, 300 };", "m"), (i32::MIN.into(), i32::MAX.into()));
    held("struct t a = { 3, 4 };", "Presence *: values in braces");
    held("struct t a[2] = { 3, 4, 300 };", "Declaration *: values in braces");
    free("struct t a = { 0 }; struct t b[2] = { { .m = 1 }, { .u = 2 } };");
}

#[test]
fn reads_ask_for_a_cast_where_the_type_decides() {
    let cast = |code: &str, member: &str| {
        accesses(&format!("long f(struct t *p, int i, long w) {{ {code} }}"), member)
            .into_iter()
            .filter(|access| matches!(access, MemberAccess::Read { cast_at: Some(_) }))
            .count()
    };
    for (code, member, casts) in [
        ("return p->m - 1 < i;", "m", 0),
        ("return p->u - 1 < 2;", "u", 1),
        ("if (p->u) i = p->u; return !p->u;", "u", 0),
        ("return p->u < i;", "u", 1),
        ("return p->u < w;", "u", 0),
        ("return i ? p->u : -1;", "u", 1),
        ("return p->name[p->u];", "u", 0),
        ("printf(\"%u\", p->u); return 0;", "u", 1),
        ("switch (p->k) { case LEAF: return 1; default: return 0; }", "k", 0),
        ("return ~p->l;", "l", 1),
        ("return p->k - 1 < 2;", "k", 1),
        ("i = p->k; return p->k + w;", "k", 0),
        ("return i << p->u;", "u", 0),
        ("return any() + (int)p->l;", "l", 0),
    ] {
        assert_eq!(cast(code, member), casts, "{code}");
    }
}

#[test]
fn the_place_of_a_write_shows_whether_it_is_a_statement() {
    let written = |code: &str| {
        let all = accesses(&format!("void f(struct t *p, int i) {{ {code} }}"), "m");
        let [MemberAccess::Written(statement)] = all[..] else { panic!("{all:?}") };
        statement.map(|one| (one.is_in_block, one.has_effects))
    };
    assert_eq!(written("p->m = 3;"), Some((true, false)));
    assert_eq!(written("if (i) p->m += 3; else i = 2;"), Some((false, false)));
    assert_eq!(written("++p->m;"), Some((true, false)));
    assert_eq!(written("p->m = any();"), Some((true, true)));
    assert_eq!(written("p->m = -1 - i;"), Some((true, false)));
    assert_eq!(written("p->m = ++i;"), Some((true, true)));
    assert_eq!(written("__builtin_va_list a; p->m = __builtin_va_arg(a, int);"), Some((true, true)));
    assert_eq!(written("p->m = __atomic_fetch_add(&i, 1, 5);"), Some((true, true)));
    assert_eq!(written("_Atomic int n; p->m = n++;"), Some((true, true)));
    assert_eq!(written("volatile int *n = 0; p->m = *n;"), Some((true, true)));
    assert_eq!(written("volatile int *n = 0; p->m = n[1];"), Some((true, true)));
    assert_eq!(written("int n[2] = { 0 }; p->m = (int)n[1] + *n;"), Some((true, false)));
    assert_eq!(written("i = p->m = 3;"), None);
    assert_eq!(written("if ((p->m = 3)) i = 2;"), None);
    assert_eq!(written("for (p->m = 3; i; i--) {}"), None);
    assert_eq!(written("(p++)->m = 3;"), None);
    assert_eq!(written("i = ({ p->m = 3; });"), None);
}

#[test]
fn uses_that_an_edit_cannot_follow_keep_members() {
    held("int *f(struct t *p) { return &p->m; }", "Declaration m: its address");
    held("size_t f(struct t *p) { return sizeof p->m; }", "Declaration m: its address");
    held("void f(struct t *p) { __typeof__(p->m) x = 1; take(&x, 1); }", "Declaration m: its address");
    held("int f(struct t *p) { return _Generic(p->m, int: 1, default: 2); }", "Type m: its type");
    held("void f(struct t *p) { __auto_type x = p->m; take(&x, 1); }", "Type m: its type");
    held("int f(struct t *p) { return ({ p->m; }); }", "Type m: its type");
    held("#define M(p) ((p)->m)\nint f(struct t *p) { return M(p); }", "Presence m: a macro");
    held("#define SET(p, v) ((p)->m = (v))\nvoid f(struct t *p) { SET(p, 1); }", "Declaration m: a macro");
    held("size_t f(void) { return offsetof(struct t, m); }\n", "Declaration m: its offset");
    held("size_t f(void) { return sizeof(struct t); }", "Declaration *: its size");
    held("_Static_assert(sizeof(struct t) > 8, \"\");", "Declaration *: its size");
    held("void f(struct t *p) { take(p, sizeof *p); }", "Declaration *: take() is given");
    held("void f(struct t *p) { memset(p, 0, 48); }", "Declaration *: memset() is given a number");
    held("void f(struct t *p) { memset(p, 255, sizeof *p); }", "Declaration *: memset() writes");
    held("void f(struct t *p, char *b) { memcpy(p, b, sizeof *p); }", "Declaration *: memcpy() writes");
    held("int f(struct t *p, struct t *q) { return memcmp(p, q, sizeof *p); }", "Declaration *: memcmp() is");
    held("char *f(struct t *p) { return (char *)p; }", "Declaration *: a pointer to an object");
    held("union v { struct t one; long two; };", "Declaration *: it shares");
    free(
        "void f(struct t *p, struct t *q) { *p = *q; memset(p, 0, sizeof *p); memcpy(p, q, 2 * sizeof(struct t));
        first = malloc(9 * sizeof *first); first = realloc(first, sizeof(struct t) * 12); free(first); }
        static struct t all[9]; size_t n(void) { return sizeof all / sizeof all[0] + sizeof(struct t *); }",
    );
}

#[test]
fn declarations_keep_members() {
    let held = |members: &str, hold: &str| {
        let facts = facts_of(&Program::c(&format!("struct t {{ int x; {members} }};\n")));
        let found: Vec<String> = facts.holds.iter().map(|hold| hold.reason.clone()).collect();
        assert!(found.iter().any(|one| one.contains(hold)), "{members}: {found:?}");
        assert!(facts.holds.iter().all(|hold| hold.part == HeldPart::Declaration));
    };
    held("volatile int m;", "volatile");
    held("_Atomic int m;", "atomic");
    held("const int m;", "const");
    held("int m : 3;", "bit-field");
    held("int m __attribute__((aligned(16)));", "attribute");
}

#[test]
fn units_of_other_languages_show_no_facts() {
    let header = "struct t { int m; };\n";
    let files = [("t.h", header), ("a.c", "#include \"t.h\"\n"), ("b.cpp", "#include \"t.h\"\n")];
    let checked = Program::of(&files, &["cc -c a.c", "c++ -c b.cpp"]).check();
    assert!(checked.named("t").all(|ty| ty.member_facts.is_none()));
}
