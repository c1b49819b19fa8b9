//! Members that are reached from the end of their object, or by sums of the sizes of those before them.

use crate::program::{Program, asks, movable};
use lineup_sources::Verdict;

const TYPES: &str = "#include <stdlib.h>\n#include <string.h>\nstruct t { long id; int kind; int crc; };\n";

#[test]
fn a_pointer_to_the_end_that_is_moved_back_reaches_the_last_members() {
    let of = |body: &str| Program::c(&format!("{TYPES} {body}"));
    let reason = "its last members are reached from its end";
    for body in [
        "int f(struct t *x, int n) { char *p = (char *)(x + 1); p -= n; return *(int *)p; }",
        "int f(struct t *x) { int *p = (int *)(x + 1); return *--p; }",
        "int f(struct t *x) { int *p = (int *)(x + 1); p--; return *p; }",
        "int f(struct t *x) { unsigned char *p = (unsigned char *)(x + 1); int n = 0;
            for (int i = 0; i < 4; i++) n = n << 8 | *--p; return n; }",
        "int f(struct t *x, int n) { unsigned long end = (unsigned long)(x + 1); end -= 4 * n; return *(int *)end; }",
        "static char *end_of(struct t *x) { return (char *)x + sizeof *x; }
            int f(struct t *x, int n) { int got; memcpy(&got, end_of(x) - n, 4); return got; }",
    ] {
        asks(&of(body), &Verdict::Refuse, reason);
    }
    for body in [
        // A header before what the user gets.
        "void *give(int n) { struct t *x = malloc(sizeof *x + n); x->crc = 7; return x + 1; }
            int f(void *p) { return ((struct t *)p)[-1].crc; }
            int g(char *p, int n) { struct t *x = (struct t *)(p - n); return x->kind; }
            int h(void) { return g(give(4), sizeof(struct t)); }",
        // A text behind the object.
        "int f(struct t *x) { char *p = (char *)(x + 1); char *end = p + x->id;
            while (end > p && end[-1] == ' ') end--; return end - p; }",
        "char *f(struct t *x) { char *p = (char *)(x + 1); while (*p) p++; p--; return p; }",
        // An array, from its end.
        "int f(struct t *all, int n) { int sum = 0; for (struct t *x = all + n; x-- > all;) sum += x->crc; return sum; }",
    ] {
        movable(&of(body));
    }
}

#[test]
fn sums_of_sizes_find_members() {
    let types = TYPES.replace("long id; int kind; int crc;", "int id; int x; short y; short z; long w;");
    let of = |body: &str| Program::c(&format!("{types} {body}"));
    let reason = "its members are reached by a sum of numbers";
    for body in [
        "static const size_t sizes[] = { sizeof(int), sizeof(int), sizeof(short) };
            void f(struct t *x, long *to) { size_t at = 0;
            for (int i = 0; i < 3; i++) { memcpy(&to[i], (char *)x + at, sizes[i]); at += sizes[i]; } }",
        "static size_t width(char kind) { return kind == 'i' ? sizeof(int) : sizeof(short); }
            static long dump(const void *object, const char *kinds) { const char *p = object; long v = 0;
            for (; *kinds; kinds++) { memcpy(&v, p, width(*kinds)); p += width(*kinds); } return v; }
            long f(struct t *x) { return dump(x, \"iih\"); }",
        "static long take(const unsigned char **at, int n) { long v = 0; memcpy(&v, *at, n); *at += n; return v; }
            long f(struct t *x) { const unsigned char *p = (const unsigned char *)x;
            return take(&p, 4) + take(&p, 4) + take(&p, 2); }",
        "static void put(void **at, const void *v, size_t n) { memcpy(*at, v, n); *at = (char *)*at + n; }
            void f(struct t *x, int one, short two) { void *p = x; put(&p, &one, sizeof one); put(&p, &two, sizeof two); }",
    ] {
        asks(&of(body), &Verdict::Refuse, reason);
    }
    for body in [
        // To a format of its own.
        "static char *put(char *at, const void *v, size_t n) { memcpy(at, v, n); return at + n; }
            int f(struct t *x, char *to) { char *p = put(to, &x->id, sizeof x->id); p = put(p, &x->w, sizeof x->w); return p - to; }",
        // A container of elements of any size.
        "struct list { void *items; size_t size; int count; };
            static void get(struct list *l, int i, void *to) { char *p = l->items; while (i--) p += l->size; memcpy(to, p, l->size); }
            int f(struct t *all) { struct list l = { .items = all, .size = sizeof *all, .count = 3 }; struct t one; get(&l, 2, &one); return one.z; }
            int g(int *all) { struct list l = { .items = all, .size = sizeof *all, .count = 3 }; int one; get(&l, 2, &one); return one; }",
    ] {
        movable(&of(body));
    }
}

#[test]
fn bytes_that_are_stepped_through_stay_side_by_side() {
    let of = |given: &str| {
        Program::c(&format!(
            "struct t {{ long z; unsigned char f0; unsigned char f1; int q; char name[8]; }};
            static int bit(const unsigned char *f, int n) {{ return f[n / 8] >> n % 8 & 1; }}
            int f(struct t *x, int n) {{ return bit({given}, n); }}"
        ))
    };
    let both = Verdict::Adjacent(["f0", "f1"].map(str::to_string).to_vec());
    asks(&of("&x->f0"), &both, "stepped through like an array of unsigned char");
    movable(&of("(unsigned char *)x->name"));
}

#[test]
fn an_array_that_shares_a_union_stands_for_the_members_under_it() {
    let of = |around: &str, other: &str| {
        Program::c(&format!(
            "struct t {{ int a, b, c; long d; }}; struct other {{ {other} long d; }};
            union one {{ struct t t; struct other o; }}; {around} long f(union one *x) {{ return x->t.b + x->o.d; }}"
        ))
    };
    asks(&of("", "int w[3];"), &Verdict::Refuse, "the union one lets w stand for its members");
    movable(&of("", "char name[12];"));
    movable(&of("struct value { int kind; union one of; };", "int w[3];"));
}

#[test]
fn an_address_in_a_number_is_followed_where_another_is_added_to_it() {
    let of = |sum: &str, read: &str| {
        Program::c(&format!(
            "#include <stdint.h>\n{TYPES} static void *all[4];
            int look(int i, int word) {{ uintptr_t at = {sum}; return {read}; }} void f(struct t *x) {{ all[1] = x; }}"
        ))
    };
    let reason = "int is read at an offset that is worked out";
    for sum in ["(uintptr_t)all[i] + 4 * word", "word + (uintptr_t)all[i]"] {
        asks(&of(sum, "*(int *)at"), &Verdict::Refuse, reason);
    }
    movable(&of("(uintptr_t)all[i] + 4 * word", "at != 0"));
    movable(&of("(uintptr_t)all[i]", "((struct t *)at)->crc"));
}
