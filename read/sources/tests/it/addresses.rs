//! Addresses that are rounded, joined and compared; sizes and offsets that code compares. Each stands next to a program
//! that does not depend on it.

use crate::program::{Program, asks, checked, keep, movable};

const BLOCK: &str = "#include <stdint.h>\n#include <stddef.h>\n
    struct t { int a; char room[12]; float v[4]; int b; long l; long last; };\n";

fn of(body: &str) -> Program {
    Program::c(&format!("{BLOCK} int f(struct t *x, struct t *y) {{ {body} }}"))
}

#[test]
fn a_comparison_without_the_lowest_bits_holds_the_alignment() {
    let compared = [
        "uintptr_t a = (uintptr_t)x->v; return ((a + 15) & ~(uintptr_t)15) == a;",
        "uintptr_t a = (uintptr_t)x->v; return a / 16 * 16 == a;",
        "uintptr_t a = (uintptr_t)x->v; return (a << 60) == 0;",
        "uintptr_t a = (uintptr_t)x->v; return (a >> 4 << 4) != a;",
        "uintptr_t a = (uintptr_t)x->v; uintptr_t up = (a + 15) & -16; return up == a;",
        "return (uintptr_t)&x->v[3] >> 6 == (uintptr_t)&y->b >> 6;",
    ];
    for body in compared {
        asks(&of(body), &keep(&["v"]), "a comparison of its address asks for v");
        asks(&of(body), &keep(&["last"]), "so its size stays");
    }
    movable(&of("return ((uintptr_t)x >> 4) % 64;"));
    movable(&of("return (uintptr_t)x->v == (uintptr_t)y->v;"));
    movable(&of("return ((x->l & ~15L) == x->last) + (x->l / 16 == 3);"));
}

#[test]
fn a_test_of_joined_addresses_is_one_of_each() {
    let tested = [
        "return (((uintptr_t)x->v | (uintptr_t)y->v) & 15) == 0;",
        "return (((uintptr_t)x->v ^ (uintptr_t)y) & 15) == 0;",
        "return ((char *)x->v - (char *)y) % 16 == 0;",
        "return ((unsigned)(uintptr_t)x->v & 15) == 0;",
        "unsigned char low = (unsigned char)(uintptr_t)x->v; return (low & 15) == 0;",
        "uintptr_t mask = 15; return ((uintptr_t)x->v & mask) == 0;",
    ];
    for body in tested {
        asks(&of(body), &keep(&["v"]), "a test of its address asks for v at a multiple of 16 bytes");
    }
    movable(&of("return ((x->l | y->l) & 15) == 0;"));
    movable(&of("return (((uintptr_t)x->v | (uintptr_t)y->v) & 3) == 0;"));
}

#[test]
fn a_size_that_code_compares_or_prints_stays() {
    let types = "#include <stdio.h>\nstruct t { char a; long b; char c; long last; };";
    let size = |body: &str| Program::c(&format!("{types} int f(struct t *x, unsigned long n) {{ {body} }}"));
    let shown = [
        ("return n == sizeof(struct t);", "its size is compared, so its size stays"),
        ("unsigned long size = sizeof *x; return size == 32;", "its size is compared, so its size stays"),
        ("return sizeof *x != n;", "its size is compared, so its size stays"),
        (
            "switch (n) { case sizeof(struct t): return 1; case 24: return 2; } return 0;",
            "its size is a case",
        ),
        ("return printf(\"%zu\", sizeof *x);", "its size is one of further arguments"),
        ("_Static_assert(sizeof(struct t) == 32, \"\"); return 0;", "its size is compared"),
    ];
    for (body, reason) in shown {
        asks(&size(body), &keep(&["last"]), reason);
    }
    movable(&size("return sizeof *x <= 64 || n < sizeof *x;"));
    movable(&size("return n / sizeof *x == 4;"));
    movable(&size("unsigned long size = sizeof *x; return n >= size;"));
}

#[test]
fn an_offset_that_is_compared_with_a_number_holds_its_member() {
    let types =
        "#include <stddef.h>\nstruct t { int a; long b; short c; }; struct o { int d; long e; short f; };";
    let offset =
        |body: &str| Program::c(&format!("{types} struct o o; int f(struct t *x, size_t n) {{ {body} }}"));
    let reason = "code compares the offset of c with a number";
    asks(&offset("return offsetof(struct t, c) == 16;"), &keep(&["c"]), reason);
    asks(&offset("size_t at = offsetof(struct t, c); return at == 16;"), &keep(&["c"]), reason);
    asks(&offset("return offsetof(struct t, c) != offsetof(struct o, f);"), &keep(&["c"]), reason);
    let asked = checked(&offset("return n == offsetof(struct t, c);"));
    assert!(!asked.uses.iter().any(|used| used.reason == reason), "{:#?}", asked.uses);
}

#[test]
fn a_mark_that_a_union_lays_over_an_address_asks_for_its_alignment() {
    let of = |mark: &str| {
        Program::c(&format!(
            "struct t {{ int a[4]; int v[4]; int b; long l; long last; }};
            union marked {{ int *at; {mark} }};
            int *f(struct t *x) {{ union marked m; m.at = x->v; return m.at; }}"
        ))
    };
    for mark in
        ["struct { unsigned long mark : 4; unsigned long rest : 60; } bits;", "unsigned long mark : 4;"]
    {
        asks(
            &of(mark),
            &keep(&["v"]),
            "a mark in its address's lowest bits asks for v at a multiple of 16 bytes",
        );
    }
    let tested = Program::c(
        "struct t { int a[4]; int v[4]; int b; long l; long last; }; union both { int *at; unsigned long number; };
        int f(struct t *x) { union both u; u.at = x->v; return u.number & 15; }",
    );
    asks(&tested, &keep(&["v"]), "a test of its address asks for v at a multiple of 16 bytes");
    movable(&of("struct { unsigned long mark : 2; unsigned long rest : 62; } bits;"));
    movable(&of("struct { unsigned long address : 48; unsigned long mark : 16; } bits;"));
}
