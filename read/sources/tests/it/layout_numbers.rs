//! Sizes and offsets as numbers: in enumerators, tables, variables, arguments and results, and the uses that depend on
//! their values. Each stands next to a program that does not depend on the order.

use crate::program::{Program, asks, checked, keep, movable};
use lineup_sources::Verdict;

const HEADERS: &str = "#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n";

/// A type that another order makes smaller: 24 bytes instead of 32.
const SPACED: &str = "struct t { char a; long b; char c; long last; };\n";
/// A type whose member `c` lies at 16.
const OFFSET: &str = "struct t { int a; long b; short c; };\n";

fn size(text: &str) -> Program {
    Program::c(&format!("{HEADERS}{SPACED}{text}"))
}

fn offset(text: &str) -> Program {
    Program::c(&format!("{HEADERS}{OFFSET}{text}"))
}

const COMPARED: &str = "its size is compared, so its size stays";
const PRINTED: &str = "its size is one of further arguments, so its size stays";

#[test]
fn a_size_in_a_constant_is_seen_where_the_constant_is() {
    for (text, reason) in [
        ("enum { SIZE = sizeof(struct t) }; int f(int n) { return SIZE == n; }", COMPARED),
        ("enum { EACH = 4096 / sizeof(struct t) }; int f(void) { return EACH == 128; }", COMPARED),
        ("enum { EACH = 4096 / sizeof(struct t) }; void f(void) { printf(\"%d\", EACH); }", PRINTED),
        ("static size_t each = 96 / sizeof(struct t); void f(void) { printf(\"%zu\", each); }", PRINTED),
        ("#define IS(n) (sizeof(struct t) == (n))\nint f(void) { return IS(32); }", COMPARED),
        ("struct t all[3]; int f(void) { return sizeof all == 96; }", COMPARED),
    ] {
        asks(&size(text), &keep(&["last"]), reason);
    }
    let cpp = "#include <cstddef>\nstruct t { char a; long b; char c; long last; };
        static constexpr std::size_t N = sizeof(t); int f() { return N == 32; }";
    asks(&Program::cpp(cpp), &keep(&["last"]), COMPARED);
    movable(&size("enum { SIZE = sizeof(struct t) }; void *f(int n) { return malloc(n * SIZE); }"));
    movable(&size("struct t all[3]; int f(void) { return sizeof all / sizeof *all == 3; }"));
}

#[test]
fn a_size_in_a_place_is_seen_where_the_place_is() {
    for (text, reason) in [
        (
            "static const int sizes[] = { sizeof(struct t), 24 };
             int f(int n) { for (int i = 0; i < 2; i++) if (sizes[i] == n) return i; return -1; }",
            COMPARED,
        ),
        (
            "static const int sizes[] = { sizeof(struct t) }; void f(void) { printf(\"%d\", sizes[0]); }",
            PRINTED,
        ),
        (
            "struct kind { const char *name; size_t size; };
             static const struct kind kinds[] = { { \"t\", sizeof(struct t) }, { \"o\", 8 } };
             int f(int i) { return kinds[i].size == 24; }",
            COMPARED,
        ),
        (
            "static int is_big(size_t n) { return n == 32; } int f(struct t *x) { return is_big(sizeof *x); }",
            COMPARED,
        ),
        (
            "static int is_big(size_t n) { switch (n) { case 24: return 0; } return 1; }
             int f(struct t *x) { return is_big(sizeof *x); }",
            COMPARED,
        ),
        (
            "static int is_big(size_t n) { return n > 24; } int f(struct t *x) { return is_big(sizeof *x); }",
            COMPARED,
        ),
        (
            "static size_t of_t(void) { return sizeof(struct t); } int f(void) { return of_t() == 32; }",
            COMPARED,
        ),
        (
            "static size_t of_t(void) { return sizeof(struct t); } int f(void) { return of_t() / 8 == 4; }",
            COMPARED,
        ),
        (
            "void f(FILE *file) { unsigned size = sizeof(struct t); fwrite(&size, sizeof size, 1, file); }",
            "its size goes to fwrite(), so its size stays",
        ),
    ] {
        asks(&size(text), &keep(&["last"]), reason);
    }
    let union = "union u { int number; struct t t; }; static int is_small(size_t n) { return n == 24; }
        int f(void) { return is_small(sizeof(union u)); }";
    asks(&size(union), &keep(&["last"]), COMPARED);
    movable(&size(
        "static int is_big(size_t n) { return n == 64; } int f(struct t *x) { return is_big(sizeof *x); }",
    ));
    movable(&size(
        "void *get(size_t n) {
             if (n == 0) n = 1;
             void *p = malloc((n + 7) / 8 * 8);
             if (!p) { fprintf(stderr, \"no %zu bytes\", n); exit(1); }
             return p;
         }
         struct t *f(void) { return get(sizeof(struct t)); }",
    ));
    movable(&size(
        "struct list { size_t count, size; char *all; };
         void *at(struct list *list, size_t i) { return i < list->count ? list->all + i * list->size : NULL; }
         void f(struct list *list) { list->size = sizeof(struct t); list->all = malloc(8 * list->size); }",
    ));
}

#[test]
fn a_number_worked_out_from_a_size_is_seen() {
    for (text, reason) in [
        ("int f(void) { return 96 / sizeof(struct t) == 3; }", COMPARED),
        ("int f(void) { return sizeof(struct t) % 16 == 0; }", COMPARED),
        ("int f(void) { return sizeof(struct t) > 24; }", COMPARED),
        (
            "int f(void) { if (sizeof(struct t) & 8) return 1; return 0; }",
            "its size is tested, so its size stays",
        ),
        ("void f(int n) { printf(\"%zu\", n * sizeof(struct t)); }", PRINTED),
        ("void f(void) { exit(sizeof(struct t) / 8); }", "its size is given to exit(), so its size stays"),
    ] {
        asks(&size(text), &keep(&["last"]), reason);
    }
    let shown = |body: &str| {
        Program::cpp(&format!(
            "#include <iostream>\n#include <string>\nstruct t {{ char a; long b; char c; long last; }};
            void f(std::size_t bytes) {{ {body} }}"
        ))
    };
    for body in ["std::cout << sizeof(t);", "std::to_string(sizeof(t) * 2);"] {
        asks(&shown(body), &keep(&["last"]), "its size is given to");
    }
    movable(&shown("std::cout << bytes / sizeof(t);"));
    movable(&size("int f(size_t bytes) { return bytes / sizeof(struct t) == 4; }"));
    movable(&size("int f(size_t bytes) { return bytes % sizeof(struct t) == 0; }"));
    movable(&size("int f(size_t bytes) { if (bytes % sizeof(struct t)) return 1; return 0; }"));
    movable(&size("void f(size_t bytes) { printf(\"%zu\", bytes / sizeof(struct t)); }"));
    movable(&size("int f(size_t n) { return n > ((size_t)-1) / sizeof(struct t); }"));
    movable(&size("int f(void) { return sizeof(struct t) <= 64; }"));
    movable(&size("int f(void *p) { return sizeof(struct t *) == 8; }"));
}

#[test]
fn an_offset_that_is_handed_on_is_compared() {
    let reason = "an offset of its members is compared with 16";
    for text in [
        "static int is_c(size_t at) { return at == 16; } int f(void) { return is_c(offsetof(struct t, c)); }",
        "static int is_c(size_t at) { switch (at) { case 16: return 1; } return 0; }
         int f(void) { return is_c(offsetof(struct t, c)); }",
        "static size_t of_c(void) { return offsetof(struct t, c); } int f(void) { return of_c() == 16; }",
        "static const size_t all[] = { offsetof(struct t, b), offsetof(struct t, c) };
         int f(int i) { return all[i] == 16; }",
    ] {
        asks(&offset(text), &keep(&["c"]), reason);
    }
    let constant = "enum { AT = offsetof(struct t, c) }; int f(void) { return AT == 16; }";
    asks(&offset(constant), &keep(&["c"]), "code compares the offset of c with a number");
    let tested = [
        "static const size_t all[] = { offsetof(struct t, b), offsetof(struct t, c) };
         int f(int i) { return all[i] != 0; }",
        "struct field { size_t at; }; static const struct field all[] = { { offsetof(struct t, b) } };
         int f(void) { int n = 0; for (const struct field *field = all; field->at; field++) n++; return n; }",
    ];
    for text in tested {
        asks(&offset(text), &Verdict::First, "an offset of its members is compared with zero");
    }
    let fields = "struct field { const char *name; size_t at; int size; };
         static const struct field fields[] = {
             { \"a\", offsetof(struct t, a), 4 }, { \"c\", offsetof(struct t, c), 2 }, { 0, 0, 0 } };
         void set(void *x, const char *name, const void *value) {
             for (const struct field *field = fields; field->name; field++)
                 if (!strcmp(field->name, name)) memcpy((char *)x + field->at, value, field->size);
         }";
    movable(&offset(&format!("{fields} void f(struct t *x) {{ short v = 2; set(x, \"c\", &v); }}")));
    movable(&offset(
        "int f(struct t *x, size_t at) {
             switch (at) { case offsetof(struct t, a): return x->a; case offsetof(struct t, c): return x->c; }
             return 0;
         }",
    ));
    movable(&offset(&format!(
        "{fields} static int find(size_t at) {{ for (int i = 0; i < 2; i++) if (fields[i].at == at) return i; return -1; }}
         int f(void) {{ return find(offsetof(struct t, c)); }}"
    )));
}

#[test]
fn an_offset_that_is_shown_holds_its_member() {
    for (text, how) in [
        ("void f(void) { printf(\"%zu\", offsetof(struct t, c)); }", "is one of further arguments"),
        (
            "void f(struct t *x) { printf(\"%td\", (char *)&x->c - (char *)x); }",
            "is one of further arguments",
        ),
        (
            "static const size_t all[] = { offsetof(struct t, c) }; void f(void) { printf(\"%zu\", all[0]); }",
            "is one of further arguments",
        ),
        ("void f(FILE *file) { fputc(offsetof(struct t, c), file); }", "is given to fputc()"),
        (
            "void f(FILE *file) { unsigned at = offsetof(struct t, c); fwrite(&at, 4, 1, file); }",
            "goes to fwrite()",
        ),
        (
            "int f(void) { char seen[32] = {0}; seen[offsetof(struct t, c)] = 1; return seen[16]; }",
            "is an array's index",
        ),
        (
            "static size_t of_c(void) { return offsetof(struct t, c); } int f(void) { return of_c() / 8 == 2; }",
            "is compared",
        ),
        ("void f(struct t *x) { printf(\"%p\", (void *)&x->c); }", "is part of an address that is printed"),
        ("void f(struct t *x) { printf(\"%lx\", (long)&x->c); }", "is part of an address that is printed"),
    ] {
        asks(&offset(text), &keep(&["c"]), &format!("the offset of c {how}"));
    }
    let distance = "int f(struct t *x) { unsigned long c = (unsigned long)&x->c, all = (unsigned long)x; return c - all == 16; }";
    asks(&offset(distance), &keep(&["c"]), "code compares the offset of c with a number");
    let cpp =
        "#include <iostream>\nstruct t { int a; long b; short c; }; void f(t *x) { std::cout << &x->c; }";
    asks(&Program::cpp(cpp), &keep(&["c"]), "the offset of c is part of an address that is printed");
    movable(&offset(
        "void f(struct t *x) { printf(\"%p %d %ld\", (void *)x, x->a, x->b); scanf(\"%hd\", &x->c); }",
    ));
    movable(&offset(
        "static const char *const names[] = { [offsetof(struct t, a)] = \"a\", [offsetof(struct t, c)] = \"c\" };
         const char *f(void) { return names[offsetof(struct t, c)]; }",
    ));
    let bytes = offset("int f(char *bytes) { return bytes[offsetof(struct t, c)]; }");
    assert!(!checked(&bytes).uses.iter().any(|used| used.reason.contains("index")));
}

#[test]
fn the_bytes_up_to_an_object_s_end_depend_on_the_order() {
    let of = |body: &str| {
        Program::c(&format!(
            "struct t {{ int a; long b; char room[8]; short c; }}; unsigned long f(struct t *x) {{ {body} }}"
        ))
    };
    let reason = "__builtin_object_size() measures what follows b";
    asks(&of("struct t y; return __builtin_object_size(&y.b, 0);"), &keep(&["b"]), reason);
    asks(&of("long *p = &x->b; return __builtin_object_size(p, 0);"), &keep(&["b"]), reason);
    let whole = "struct t y; return __builtin_object_size(&y, 1);";
    asks(&of(whole), &keep(&["c"]), "__builtin_object_size() measures it, so its size stays");
    movable(&of("return __builtin_object_size(x->room, 1);"));
    movable(&of("__builtin___memset_chk(x->room, 0, 8, __builtin_object_size(x->room, 0)); return 0;"));
}

#[test]
fn a_size_or_an_offset_holds_the_size_of_objects_inside() {
    let of = |inner: &str, body: &str| {
        Program::c(&format!(
            "#include <stddef.h>\n#include <string.h>\n{inner} struct outer {{ struct t in; long z; }};
            int f(struct outer *x, void *to) {{ {body} }}"
        ))
    };
    let spaced = "struct t { char a; long b; char last; };";
    let reason = "it lies in outer, where members keep their places";
    for body in [
        "return sizeof(struct outer) == 32;",
        "return offsetof(struct outer, z) == 24;",
        "memcpy(to, x, 24); return 0;",
    ] {
        asks(&of(spaced, body), &keep(&["last"]), reason);
    }
    movable(&of("struct t { char a; long b; long last; };", "return sizeof(struct outer) == 32;"));
    movable(&of(spaced, "memcpy(to, x, sizeof *x); return x->in.a;"));
}
