//! Text that runs on from its member into the next one. Each stands next to a program that does not depend on the
//! order.

use crate::program::{Program, asks, keep, movable};

fn of(code: &str) -> Program {
    Program::c(&format!(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nstruct t {{ char a[8]; char b[8]; int k; char q; long z; }}; {code}"
    ))
}

const READ_ON: &str = "may fill it, and is read on into what follows";

#[test]
fn a_text_that_fills_its_member_runs_on_into_the_next() {
    let both = keep(&["a", "b"]);
    for text in [
        "void f(struct t *x, const char *s) { strncpy(x->a, s, sizeof x->a); printf(\"%d %s\\n\", 1, x->a); }",
        "void set(struct t *x, const char *s) { size_t n = 8; strncpy(x->a, s, n); } size_t f(struct t *x) { return strlen(x->a); }",
        "void f(struct t *x, const char *s, char *to) { strncpy(x->a, s, 8); strcpy(to, x->a); }",
        "static void show(const char *s) { puts(s); } void f(struct t *x, const char *s) { strncpy(x->a, s, 8); show(x->a); }",
        "static void say(int level, const char *format, ...) { (void)level; (void)format; }
         void f(struct t *x, const char *s) { strncpy(x->a, s, 8); say(1, \"%s\", x->a); }",
        "static struct t one = { .a = \"12345678\", .b = \"9\" }; void f(void) { printf(\"%s\", one.a); }",
    ] {
        asks(&of(text), &both, READ_ON);
    }
    let two = "void f(struct t *x, const char *s) { strncpy(x->a, s, 8); strncpy(x->b, s, 8); printf(\"%s\", x->a); }";
    asks(&of(two), &keep(&["a", "b", "k"]), READ_ON);
    let cpp = "#include <cstring>\n#include <string>\nstruct t { char a[8]; char b[8]; int k; char q; };
        void set(t *x, const char *s) { std::strncpy(x->a, s, sizeof x->a); }
        std::string f(t *x) { return std::string(x->a); }";
    asks(&Program::cpp(cpp), &both, READ_ON);
}

#[test]
fn a_text_with_an_end_or_a_bound_stays_in_its_member() {
    for text in [
        "size_t f(struct t *x) { printf(\"%s\\n\", x->a); return strlen(x->b); }",
        "void f(struct t *x, const char *s) { strncpy(x->a, s, sizeof x->a - 1); printf(\"%s\", x->a); }",
        "void f(struct t *x, const char *s) { strncpy(x->a, s, sizeof x->a); x->a[sizeof x->a - 1] = '\\0'; puts(x->a); }",
        "void f(struct t *x, const char *s) { strncpy(x->a, s, sizeof x->a); *(x->a + 7) = 0; puts(x->a); }",
        "void f(struct t *x, const char *s) { strncpy(x->a, s, 8); printf(\"%.8s %zu %.*s\", x->a, strnlen(x->a, 8), (int)sizeof x->a, x->a); }",
        "void f(struct t *x) { strncpy(x->a, \"abc\", 8); puts(x->a); strcpy(x->b, \"1234567\"); }",
        "void f(struct t *x, struct t *y) { strncpy(x->a, y->a, sizeof x->a); puts(x->a); }",
        "static struct t one = { .a = \"1234567\" }; void f(void) { printf(\"%s\", one.a); }",
    ] {
        movable(&of(text));
    }
}

#[test]
fn a_text_longer_than_its_member_lies_in_the_next_as_well() {
    let (both, reason) = (keep(&["a", "b"]), "bytes from a on are treated as one");
    for text in [
        "void f(struct t *x) { strcpy(x->a, \"longer text\"); }",
        "void f(struct t *x) { sprintf(x->a, \"longer text\"); }",
        "void f(struct t *x) { printf(\"%.16s\", x->a); }",
        "void f(struct t *x) { int n = 16; printf(\"%.*s\", n, x->a); }",
        "void f(struct t *x) { memcpy(x->a, \"abcdefgh\", 9); }",
    ] {
        asks(&of(text), &both, reason);
    }
    // A bound that ends with no member is a limit of the output.
    movable(&of(
        "void f(struct t *x) { printf(\"%.100s %.*s\", x->a, 40, x->b); sprintf(x->a, \"%d of many\", x->k); }",
    ));
}
