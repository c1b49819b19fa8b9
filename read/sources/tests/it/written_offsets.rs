//! Offsets of members that are written as numbers, in tables, variables and arguments. Each stands next to a program
//! that does not depend on the order.

use crate::program::{Program, asks, keep, movable};
use lineup_sources::Verdict;

const TYPE: &str = "#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n
    struct t { int a; int b; char room[8]; int c; };\n";

fn c(text: &str) -> Program {
    Program::c(&format!("{TYPE}{text}"))
}

const GOES: &str = "offsets of other members go where this one is written as 16";
const MOVES: &str = "a pointer to it is moved by 16";

#[test]
fn a_number_among_offsets_is_an_offset() {
    for text in [
        "static const size_t table[] = { offsetof(struct t, a), 4, 16 };
         int get(struct t *x, int i) { return *(int *)((char *)x + table[i]); }",
        "struct field { const char *name; size_t at; };
         static const struct field fields[] = { { \"a\", offsetof(struct t, a) }, { \"c\", 16 } };
         int get(struct t *x, int i) { return *(int *)((char *)x + fields[i].at); }",
        "#define AT_C 16\n
         static unsigned short table[3] = { offsetof(struct t, a), offsetof(struct t, b), AT_C };
         int get(struct t *x, int i) { return *(int *)((char *)x + table[i]); }",
        "int get(struct t *x, int k) { size_t at = offsetof(struct t, a); if (k) at = 16; return *(int *)((char *)x + at); }",
        "int get(struct t *x, int k) { return *(int *)((char *)x + (k ? offsetof(struct t, a) : 16)); }",
        "static size_t where(int k) { if (k) return offsetof(struct t, a); return 16; }
         int get(struct t *x, int k) { return *(int *)((char *)x + where(k)); }",
        "static int load(const void *x, size_t at) { return *(const int *)((const char *)x + at); }
         int get(struct t *x) { return load(x, offsetof(struct t, b)) + load(x, 16); }",
        "static const size_t table[] = { offsetof(struct t, a), 16 };
         int get(struct t *x, int i) { return *(int *)((uintptr_t)x + table[i]); }",
    ] {
        asks(&c(text), &keep(&["c"]), GOES);
    }
    let cpp = "#include <cstddef>\nstruct t { int a; int b; char room[8]; int c; };
        struct field { const char *name; std::size_t at; };
        static constexpr field fields[] = { { \"a\", offsetof(t, a) }, { \"c\", 16 } };
        int get(t *x, int i) { return *reinterpret_cast<int *>(reinterpret_cast<char *>(x) + fields[i].at); }";
    asks(&Program::cpp(cpp), &keep(&["c"]), GOES);
}

#[test]
fn a_number_that_moves_a_pointer_to_an_object_is_an_offset() {
    // Without the offset that is taken elsewhere, every read at a distance is refused.
    let taken = "size_t of_b(void) { return offsetof(struct t, b); }";
    for text in [
        "static const int table[] = { 0, 4, 16 }; int get(struct t *x, int i) { return *(int *)((char *)x + table[i]); }",
        "struct field { size_t at; }; static struct field one, two;
         void set(void) { one.at = offsetof(struct t, a); two.at = 16; }
         int get(struct t *x) { return *(int *)((char *)x + one.at) + *(int *)((char *)x + two.at); }",
        "static const int table[] = { 4, 16 };
         int get(struct t *x, int i) { int at = table[i]; return *(int *)((char *)x + at); }",
    ] {
        asks(&c(&format!("{taken} {text}")), &keep(&["c"]), MOVES);
    }
    let variable = "int get(struct t *x) { size_t at = 16; return *(int *)((char *)x + at); }";
    asks(&c(&format!("{taken} {variable}")), &Verdict::Refuse, "int is read at a fixed offset");
}

#[test]
fn numbers_that_are_no_offsets_hold_nothing() {
    for text in [
        "struct field { size_t at; int size; size_t flags; };
         static const struct field fields[] = { { offsetof(struct t, a), 4, 4 }, { offsetof(struct t, c), 16, 0 } };
         int get(struct t *x, int i) { return *(int *)((char *)x + fields[i].at); }",
        "struct field { const char *name; size_t at; };
         static const struct field fields[] = { { \"b\", offsetof(struct t, b) }, { NULL, 0 } };
         int get(struct t *x) { int n = 0; for (const struct field *f = fields; f->name; f++) n += *(int *)((char *)x + f->at); return n; }",
        "static const int sizes[] = { 4, 8, 16 };
         struct t *of(int *b) { return (struct t *)((char *)b - offsetof(struct t, b)); }
         void *get(struct t *x, int i) { return x->room + sizes[i]; }",
        "static int add(struct t *x, int n) { return x->a + n; } int f(struct t *x) { return add(x, 4) + add(x, 16); }",
        "static const int table[] = { -1, offsetof(struct t, c), 20, 1000 };
         int get(struct t *x, int i) { return table[i] < 0 ? 0 : *(int *)((char *)x + table[i]); }",
    ] {
        movable(&c(text));
    }
}

#[test]
fn numbers_of_one_table_are_not_those_of_another() {
    let text = "struct other { int e, f, g, h, i; }; struct field { const char *name; size_t at; };
        static const struct field fields[] = { { \"b\", offsetof(struct t, b) } };
        static const struct field others[] = { { \"f\", offsetof(struct other, f) }, { \"i\", 16 } };
        static void *get(void *x, const struct field *f) { return (char *)x + f->at; }
        int *of_t(struct t *x) { return get(x, fields); } int *of_other(struct other *x) { return get(x, &others[1]); }";
    movable(&c(text));
}

#[test]
fn the_address_of_a_null_pointer_s_member_is_an_offset() {
    for offset in ["((size_t)&((struct t *)0)->m)", "((unsigned long)(&(((struct t *)NULL)->m)))"] {
        let text = |body: &str| c(&format!("#define OFF(m) {offset}\n{body}"));
        movable(&text(
            "static const size_t table[] = { OFF(a), OFF(b), OFF(room[2]), OFF(c) };
             int get(struct t *x, int i) { return *(int *)((char *)x + table[i]); }",
        ));
        movable(&text(
            "struct t *whole(int *b) { return (struct t *)((char *)b - OFF(b)); }
             int get(int *b) { return whole(b)->a; }",
        ));
        asks(
            &text(
                "static const size_t table[] = { OFF(a), 16 };
                 int get(struct t *x, int i) { return *(int *)((char *)x + table[i]); }",
            ),
            &keep(&["c"]),
            GOES,
        );
        asks(
            &text("int get(struct t *x) { return ((int *)x)[OFF(c) / 4]; }"),
            &Verdict::Boundary("c".to_string()),
            "code computes with the offset of c",
        );
    }
}
