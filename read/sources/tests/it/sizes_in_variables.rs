//! Sizes that variables hold. Each stands next to a program that does not depend on the order.

use crate::program::{Program, asks, keep, movable};
use lineup_sources::Verdict;

const HEADERS: &str = "#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n#include <sys/uio.h>\n";

/// A function of C that is given two objects.
fn c(types: &str, body: &str) -> Program {
    Program::c(&format!(
        "{HEADERS}{types} void f(struct t *x, struct t *y, void *to, const char *s) {{ {body} }}"
    ))
}

/// A head of three numbers.
const HEAD: &str = "struct t { int a, b, c; long d; char e; };";
/// The same numbers behind another member.
const MIDDLE: &str = "struct t { long d; int a, b, c; char e; };";

#[test]
fn a_variable_with_one_number_is_that_number() {
    let reason = "its first 12 bytes are treated by themselves";
    let three = keep(&["a", "b", "c"]);
    asks(&c(HEAD, "size_t n = 12; memcpy(to, x, n);"), &three, reason);
    let two = c(HEAD, "size_t n = sizeof x->a + sizeof x->b; memcpy(to, x, n);");
    asks(&two, &keep(&["a", "b"]), "its first 8 bytes are treated by themselves");
    asks(&c(HEAD, "int n; n = 3 * sizeof(int); memcpy(to, x, n);"), &three, reason);
    movable(&c(HEAD, "size_t n = sizeof *x; memcpy(x, y, n);"));
}

#[test]
fn a_size_in_a_variable_spans_members() {
    let reason = "bytes from a on are treated as one";
    for body in [
        "size_t n = sizeof x->a + sizeof x->b; memcpy(to, &x->a, n);",
        "size_t n = sizeof x->a; n += sizeof x->b; memcpy(to, &x->a, n);",
        "int n = 8; write(1, &x->a, n);",
        "size_t size = sizeof(int), n = 2; fwrite(&x->a, size, n, stdout);",
        "size_t n = 8; struct iovec v = { &x->a, n }; writev(1, &v, 1);",
    ] {
        asks(&c(MIDDLE, body), &keep(&["a", "b"]), reason);
    }
    let hash =
        "static unsigned hash(const void *p, size_t n) { unsigned h = 0; memcpy(&h, p, n); return h; }";
    asks(&c(&format!("{MIDDLE} {hash}"), "size_t n = 8; hash(&x->a, n);"), &keep(&["a", "b"]), reason);
    let shared = format!("{MIDDLE} static size_t prefix = 8;");
    asks(&c(&shared, "memcpy(to, &x->a, prefix);"), &keep(&["a", "b"]), reason);
    let cpp = "#include <cstring>\nstruct t { long d; int a, b, c; char e; };
        void f(t *x, void *to) { auto n = sizeof x->a + sizeof x->b; std::memcpy(to, &x->a, n); }";
    asks(&Program::cpp(cpp), &keep(&["a", "b"]), reason);
    movable(&c(MIDDLE, "size_t n = sizeof x->a; memcpy(to, &x->a, n);"));
    // Other values may go beyond the member.
    let rest = keep(&["a", "b", "c", "e"]);
    asks(&c(MIDDLE, "size_t n = 8; n = strlen(s); memcpy(&x->a, s, n);"), &rest, reason);
    let read = format!("{MIDDLE} static size_t prefix = 8; void g(void) {{ scanf(\"%zu\", &prefix); }}");
    asks(&c(&read, "memcpy(to, &x->a, prefix);"), &rest, reason);
    // The function takes a number, and no bytes.
    movable(&c(
        &format!("{MIDDLE} static void add(int *to, size_t n) {{ *to += n; }}"),
        "size_t n = 12; add(&x->a, n);",
    ));
}

#[test]
fn a_variable_with_other_values_is_known_only_when_it_runs() {
    let reason = "how many is known only when it runs";
    for body in [
        "size_t n = 4; while (*s++) n += 4; memcpy(to, x, n);",
        "size_t n = 12; scanf(\"%zu\", &n); memcpy(to, x, n);",
        "size_t n = sizeof *x; if (*s) n = 8; memcpy(x, y, n);",
        "size_t n = sizeof *x, m = n; memcpy(x, y, m); n--;",
    ] {
        asks(&c(HEAD, body), &Verdict::Refuse, reason);
    }
    let cpp = "#include <cstring>\nstruct t { int a, b, c; long d; char e; }; void shrink(std::size_t &n);
        void f(t *x, void *to) { std::size_t n = sizeof *x; shrink(n); std::memcpy(to, x, n); }";
    asks(&Program::cpp(cpp), &Verdict::Refuse, reason);
}
