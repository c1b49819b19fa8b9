//! Templates of the project that make objects from bytes, or look at those of their instances.

use crate::program::{Program, asks, movable};
use lineup_sources::Verdict;

fn of(body: &str) -> Program {
    Program::cpp(&format!(
        "#include <cstring>\n#include <cstdlib>\n#include <new>\n#include <utility>\n
        struct t {{ int a; short b; short c; long d; }}; alignas(8) static char raw[64]; {body}"
    ))
}

#[test]
fn an_object_that_a_template_reads_from_bytes_is_refused() {
    let reader = "struct reader { const char *at; template <class T> T get() { T v; std::memcpy(&v, at, sizeof v); at += sizeof v; return v; } };
        int f() { reader r{raw}; return r.get<t>().c; }";
    asks(&of(reader), &Verdict::Refuse, "it is given to the template get(), which looks at bytes");
    let reason = "objects are made from the bytes in raw";
    let reference = "template <class T> const T &as(const char *p) { return *reinterpret_cast<const T *>(p); } int f() { return as<t>(raw).c; }";
    asks(&of(reference), &Verdict::Refuse, reason);
    let pointer =
        "template <class T> T *as(void *p) { return static_cast<T *>(p); } int f() { return as<t>(raw)->c; }";
    asks(&of(pointer), &Verdict::Refuse, reason);
    let arena = "struct arena { char *at; template <class T, class... A> T *make(A &&...with) {
            void *p = at; at += sizeof(T); return new (p) T(std::forward<A>(with)...); } };
        int f() { arena all{static_cast<char *>(std::malloc(4096))}; t *x = all.make<t>(); return x->c; }";
    movable(&of(arena));
    let kept = "struct slot { void *p; template <class T> T *get() { return static_cast<T *>(p); } };
        int f(t *x) { slot s{x}; return s.get<t>()->c; }";
    movable(&of(kept));
    movable(&of(
        "template <class T> T make(int a) { T v{}; v.a = a; return v; } int f() { return make<t>(3).a; }",
    ));
}

#[test]
fn a_class_that_a_template_makes_for_it_may_look_at_its_bytes() {
    let list = |method: &str| {
        format!(
            "template <class T> struct list {{ T *items; int count; {method} }}; int f(list<t> &all) {{ return all.run(raw, 2); }}"
        )
    };
    let reason = "run() of a class template that is made for it looks at its bytes";
    let copies = "int run(const char *from, int n) { std::memcpy(items, from, n * sizeof(T)); return n; }";
    asks(&of(&list(copies)), &Verdict::Refuse, reason);
    let numbers =
        "int run(const char *, int n) { const int *p = reinterpret_cast<const int *>(items); return p[n]; }";
    asks(&of(&list(numbers)), &Verdict::Refuse, reason);
    let grows = "int run(const char *, int n) { T *more = static_cast<T *>(std::malloc(n * sizeof(T)));
        std::memcpy(more, items, count * sizeof(T)); std::free(items); items = more; return n; }";
    movable(&of(&list(grows)));
}
