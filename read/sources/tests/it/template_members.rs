//! Members of objects whose type only a template's instances know, and references to members.

use crate::program::{Program, asks, movable};
use lineup_sources::Verdict;

fn of(body: &str) -> Program {
    Program::cpp(&format!(
        "#include <algorithm>\n#include <cstddef>\n
        struct t {{ int a; short b; short c; long d; int e; }}; {body}"
    ))
}

fn both() -> Verdict {
    Verdict::Adjacent(vec!["b".into(), "c".into()])
}

#[test]
fn a_member_that_a_template_steps_from_stays_by_its_neighbours() {
    let reason = "a pointer to b is stepped through like an array of short";
    for body in [
        "template <class T> int nth(T &x, int i) { return (&x.b)[i]; } int f(t *x) { return nth(*x, 1); }",
        "template <class T> int nth(T *x, int i) { short *p = &x->b; return p[i]; } int f(t *x) { return nth(x, 1); }",
        "template <class T> int nth(T &x) { auto *p = &x.b; ++p; return *p; } int f(t *x) { return nth(*x); }",
        "template <class T> int in(T &x) { return (&x.b)[1]; } template <class T> int out(T *x) { return in(x[2]); } int f(t *x) { return out(x); }",
        "static int sum(const short *p, int n) { int s = 0; while (n--) s += *p++; return s; }
        template <class T> int total(T &x) { return sum(&x.b, 2); } int f(t *x) { return total(*x); }",
        "int f(t *x) { auto nth = [](auto &x, int i) { return (&x.b)[i]; }; return nth(*x, 1); }",
        "template <class T> struct view { T *x; short nth(int i) { return (&x->b)[i]; } }; int f(view<t> &v) { return v.nth(1); }",
    ] {
        asks(&of(body), &both(), reason);
    }
}

#[test]
fn so_does_one_that_a_pointer_to_members_names() {
    let reason = "a pointer to b is stepped through like an array of short";
    for body in [
        "template <class T, class M, M T::*P> int nth(T &x, int i) { return (&(x.*P))[i]; } int f(t *x) { return nth<t, short, &t::b>(*x, 1); }",
        "template <class T, class M> M nth(T &x, M T::*p, int i) { return *(&(x.*p) + i); } int f(t *x) { return nth(*x, &t::b, 1); }",
        "template <auto P> struct col { template <class T> static int nth(T &x, int i) { return (&(x.*P))[i]; } }; int f(t *x) { return col<&t::b>::nth(*x, 1); }",
        "template <class T> struct pool { T *all; int n; template <class M> void each(M T::*m) { for (int i = 0; i < n; i++) { M *p = &(all[i].*m); p[0] += p[1]; } } };
        void f(pool<t> &p) { p.each(&t::b); }",
    ] {
        asks(&of(body), &both(), reason);
    }
}

#[test]
fn a_class_template_that_moves_in_an_object_looks_at_its_bytes() {
    let reason = "at() of a class template that is made for it looks at its bytes";
    let view = |place: &str| {
        of(&format!(
            "template <class T> struct view {{ T *x; short at(int k) {{ return {place}; }} }};
            int f(view<t> &v) {{ return v.at(6); }}"
        ))
    };
    asks(&view("*reinterpret_cast<short *>(reinterpret_cast<char *>(x) + k)"), &Verdict::Refuse, reason);
    movable(&view("x[k].b"));
}

#[test]
fn a_reference_to_a_member_and_what_a_constructor_keeps_are_followed() {
    let refused = "short is read at an offset that is worked out";
    let reader = "struct reader { char *p; reader(char *from) : p(from) {} short at(int k) { return *(short *)(p + k); } };";
    asks(
        &of(&format!("{reader} int f(t *x) {{ reader r((char *)x); return r.at(6); }}")),
        &Verdict::Refuse,
        refused,
    );
    let reason = "a pointer to b is stepped through like an array of short";
    let program =
        of("static int next(short &first) { return *(&first + 1); } int f(t *x) { return next(x->b); }");
    asks(&program, &both(), reason);
    asks(
        &of(
            "template <class T> int nth(T &x) { short &first = x.b; return *(&first + 1); } int f(t *x) { return nth(*x); }",
        ),
        &both(),
        reason,
    );
}

#[test]
fn templates_that_only_use_members_hold_nothing() {
    for body in [
        "template <class T> int get(T &x) { auto *p = &x.b; auto v = *p; return *p + 1 + v + x.c; } int f(t *x) { return get(*x); }",
        "template <class T, class M> M *get(T &x, M T::*p) { return &(x.*p); } int f(t *x) { return *get(*x, &t::b); }",
        "static void set(short &m) { m = 3; } int f(t *x) { set(x->b); short &c = x->c; c = 4; return x->a; }",
        "int f(t *x, t *y) { std::swap(x->b, y->b); return std::max(x->b, x->c) + std::min(x->a, 3); }",
        "template <class T> struct list { T *items; int n; int sum() { int s = 0; for (int i = 0; i < n; i++) s += items[i].b + 1; auto *p = items; while (p != items + n) s += p++->c; return s; } };
        int f(list<t> &v) { return v.sum(); }",
        "template <class T> struct pool { T *all; int n; template <class M> void each(M T::*m, M v) { for (int i = 0; i < n; i++) { M *p = &(all[i].*m); *p += v; } } };
        void f(pool<t> &p) { p.each(&t::b, (short)3); }",
        "template <class T> struct list { T *data; operator T *() { return data; } }; struct u { unsigned k; long v; };
        int f(list<t> &v, list<unsigned> &w) { unsigned *k = w; t *x = v; return k[3] + x[2].b; }",
    ] {
        movable(&of(body));
    }
}
