//! Elements of arrays that are reached by the size of their type, and members at a number in them.

use crate::program::{Program, asks, keep, movable};
use lineup_sources::Verdict;

fn c(body: &str) -> Program {
    Program::c(&format!(
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n
        struct t {{ int a; short b; short c; long d; int e; }}; struct t *owner(long *d);
        struct t *owner(long *d) {{ return (struct t *)((char *)d - offsetof(struct t, d)); }} {body}"
    ))
}

#[test]
fn a_number_added_to_sizes_of_objects_finds_a_member() {
    let reason = "short is read at a fixed offset";
    let of = |place: &str| c(&format!("int f(struct t *all, int i) {{ char *base = (char *)all; {place} }}"));
    for place in [
        "return *(short *)(base + i * sizeof(struct t) + 6);",
        "return *(short *)(base + (6 + sizeof(struct t) * i));",
        "char *row = base + i * sizeof(struct t); return *(short *)(row + 6);",
        "char *row = base + i * sizeof(struct t); row += 6; return *(short *)row;",
        "size_t stride = sizeof *all; return *(short *)(base + i * stride + 6);",
        "uintptr_t at = (uintptr_t)base; return *(short *)(at + i * sizeof(struct t) + 6);",
    ] {
        asks(&of(place), &Verdict::Refuse, reason);
    }
    for place in [
        "return ((struct t *)(base + i * sizeof(struct t)))->c;",
        "return *(short *)(base + i * sizeof(struct t) + offsetof(struct t, c));",
        "return *(short *)((char *)&all->c + i * sizeof(struct t));",
    ] {
        movable(&of(place));
    }
    movable(&c("struct u { long k; long v; };
        struct u *second(char *block, int n) { return (struct u *)(block + n * sizeof(struct t)); }
        int f(int n) { char *block = malloc(n * (sizeof(struct t) + sizeof(struct u)));
        return ((struct t *)block)->c + (int)second(block, n)->v; }"));
}

#[test]
fn the_size_may_be_in_a_member_or_an_argument() {
    let reason = "short is read at a fixed offset";
    let nth = |at: &str| {
        c(&format!(
            "static short nth(const void *base, size_t stride, size_t at, int i) {{ return *(const short *)((const char *)base + i * stride + {at}); }}
            int f(struct t *all, int i) {{ return nth(all, sizeof *all, offsetof(struct t, c), i); }}"
        ))
    };
    asks(&nth("6"), &Verdict::Refuse, reason);
    let table = |read: &str| {
        c(&format!(
            "struct table {{ char *slots; size_t width; unsigned mask; }};
            static void *slot(struct table *h, unsigned hash) {{ return h->slots + (hash & h->mask) * h->width; }}
            void init(struct table *h) {{ h->width = sizeof(struct t); h->mask = 15; h->slots = calloc(16, h->width); }}
            int f(struct table *h, unsigned k) {{ struct t *x = slot(h, k); x->c = 2; return {read}; }}"
        ))
    };
    asks(&table("*(short *)((char *)slot(h, k) + 6)"), &Verdict::Refuse, reason);
    movable(&table("x->c"));
}

#[test]
fn a_number_that_is_given_with_the_size_finds_a_member() {
    let column = |at: &str| {
        c(&format!(
            "struct column {{ char *data; size_t stride; size_t at; }};
            static short nth(const struct column *k, int i) {{ return *(const short *)(k->data + i * k->stride + k->at); }}
            int f(struct t *all, int i) {{ struct column k = {{ (char *)all, sizeof *all, {at} }}; return nth(&k, i); }}"
        ))
    };
    asks(&column("6"), &keep(&["c"]), "a pointer to it is moved by 6");
    movable(&column("offsetof(struct t, c)"));
}

#[test]
fn a_member_at_a_number_is_the_same_in_each_object() {
    let of = |first: &str| {
        c(&format!(
            "struct view {{ char *first; size_t step; }};
            static short nth(const struct view *k, int i) {{ return *(const short *)(k->first + i * k->step); }}
            int f(struct t *all, int i) {{ struct view k = {{ {first}, sizeof *all }}; return nth(&k, i); }}"
        ))
    };
    let reason = "a member of its objects is reached at a fixed offset";
    asks(&of("(char *)all + 6"), &Verdict::Refuse, reason);
    movable(&of("(char *)&all->c"));
}
