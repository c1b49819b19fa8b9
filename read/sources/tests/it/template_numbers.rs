//! Sizes that only a template's instances know, and numbers that are given to templates.

use crate::program::{Program, asks, keep, movable};
use lineup_sources::Verdict;

fn of(body: &str) -> Program {
    Program::cpp(&format!(
        "#include <cstddef>\n#include <cstdio>\n#include <cstdlib>\n#include <new>\n
        struct t {{ char a; int b; char c; long d; short e; }}; {body}"
    ))
}

#[test]
fn a_size_that_a_template_compares_stays() {
    for body in [
        "template <class T> int mode() { return sizeof(T) <= 24 ? 1 : 2; } int f() { return mode<t>(); }",
        "template <class T> int mode() { if constexpr (sizeof(T) > 24) return 1; else return 2; } int f() { return mode<t>(); }",
        "template <class T> struct slot { static constexpr bool is_inline = sizeof(T) <= 24; int kind() { return is_inline; } }; int f(slot<t> &s) { return s.kind(); }",
        "template <std::size_t N> int mode() { if (N <= 24) return 1; return 2; } int f() { return mode<sizeof(t)>(); }",
        "template <std::size_t N> struct room { void show() { std::printf(\"%zu\", N); } }; void f() { room<sizeof(t)> r; r.show(); }",
    ] {
        asks(&of(body), &keep(&["e"]), "so its size stays");
    }
    for body in [
        "template <class T> int mode() { return sizeof(T) <= 24 ? 1 : 2; } int f(t *x) { return mode<long>() + x->b; }",
        "template <class T> int mode() { return sizeof(T) <= 400 ? 1 : 2; } int f() { return mode<t>(); }",
        "template <class T> T *make() { return static_cast<T *>(std::malloc(sizeof(T))); } int f() { return make<t>()->b; }",
        "template <std::size_t N> struct pool { union node { node *next; alignas(8) unsigned char raw[N]; }; node *head; void *take() { node *n = head; head = n->next; return n; } };
        static pool<sizeof(t)> all; int f() { t *x = static_cast<t *>(all.take()); x->b = 1; return x->b; }",
    ] {
        movable(&of(body));
    }
}

#[test]
fn a_number_given_to_a_template_may_be_an_offset() {
    let reader = |number: &str| {
        of(&format!(
            "struct reader {{ const char *p; template <std::size_t N> int get() const {{ return *(const int *)(p + N); }} }};
            t *owner(long *d) {{ return (t *)((char *)d - offsetof(t, d)); }}
            int f(t *x) {{ reader r = {{ (const char *)x }}; return r.get<{number}>(); }}"
        ))
    };
    asks(&reader("4"), &keep(&["b"]), "a pointer to it is moved by 4");
    movable(&reader("offsetof(t, b)"));
    let shown = "template <std::size_t N> void show() { std::printf(\"%zu\", N); } void f() { show<offsetof(t, c)>(); }";
    asks(&of(shown), &keep(&["c"]), "the offset of c");
    let compared = "template <std::size_t N> bool is_third() { return N == 8; } bool f() { return is_third<offsetof(t, c)>(); }";
    asks(&of(compared), &Verdict::Keep(vec!["c".into()]), "an offset of its members is compared with 8");
}
