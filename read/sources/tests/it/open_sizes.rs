//! Bytes from a member on whose number only the run knows, and distances between members in variables.

use crate::program::{Program, asks, keep, movable};

fn of(body: &str) -> Program {
    Program::c(&format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n
        struct t {{ long a; int b; int c; int d; char name[16]; }}; {body}"
    ))
}

#[test]
fn a_number_that_only_the_run_knows_may_go_beyond_the_member() {
    let reason = "bytes from b on are treated as one";
    for body in [
        "void f(struct t *x, const void *from, size_t n) { memcpy(&x->b, from, n); }",
        "void f(struct t *x, size_t n) { memset(&x->b, 0, n); }",
        "int f(struct t *x, struct t *y, size_t n) { return memcmp(&x->b, &y->b, n); }",
        "void f(struct t *x, const int *from, int n) { memcpy(&x->b, from, n * sizeof *from); }",
        "void f(struct t *x, const char *s) { memcpy(&x->b, s, strlen(s)); }",
        "struct packet { char data[32]; unsigned char length; }; void f(struct t *x, struct packet *p) { memcpy(&x->b, p->data, p->length); }",
        "void f(struct t *x, int fd, size_t n) { write(fd, &x->b, n); }",
        "void f(struct t *x, int fd, size_t n) { read(fd, &x->b, n); }",
        "void f(struct t *x, FILE *to, size_t n) { fwrite(&x->b, sizeof x->b, n, to); }",
        "static unsigned hash(const void *p, size_t n) { const unsigned char *c = p; unsigned h = 0; while (n--) h = h * 31 + *c++; return h; }
        unsigned f(struct t *x, size_t n) { return hash(&x->b, n); }",
    ] {
        asks(&of(body), &keep(&["b", "c", "d", "name"]), reason);
    }
}

#[test]
fn a_limited_number_and_the_bytes_of_an_array_may_be_any() {
    for body in [
        "void f(struct t *x, const char *s, size_t n) { memcpy(x->name, s, n); }",
        "void f(struct t *x, const void *from, size_t n) { if (n > sizeof x->b) n = sizeof x->b; memcpy(&x->b, from, n); }",
        "void f(struct t *x, const void *from) { size_t n = sizeof x->b; memcpy(&x->b, from, n); }",
        "void f(struct t *x, const void *from, size_t n) { memcpy(&x->b, from, n < sizeof x->b ? n : sizeof x->b); }",
        "static void put(char *to, const void *p, size_t n) { memcpy(to, p, n); } void f(struct t *x, char *to) { put(to, &x->b, sizeof x->b); }",
        "static struct t one; static const struct { void *p; size_t n; } all[] = { { &one.b, sizeof one.b }, { &one.a, sizeof one.a } };
        void f(const void *s) { for (int i = 0; i < 2; i++) memcpy(all[i].p, s, all[i].n); }",
    ] {
        movable(&of(body));
    }
}

#[test]
fn the_distance_between_two_given_members_keeps_them() {
    let reason = "code computes with the distance from";
    let clear = "static void clear(void *from, void *to) { memset(from, 0, (char *)to - (char *)from); }";
    let of = |call: &str| of(&format!("{clear} void f(struct t *x) {{ {call} }}"));
    asks(&of("clear(&x->b, &x->d);"), &keep(&["b", "c", "d"]), reason);
    asks(&of("clear(&x->c, x + 1);"), &keep(&["c", "d", "name"]), reason);
    movable(&of("clear(x->name, x->name + 4);"));
}
