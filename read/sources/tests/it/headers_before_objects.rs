//! Memory behind a header, as an allocator gives it out: bytes without a length at the end of a type.

use crate::program::Program;
use lineup_sources::{CheckedType, Freedom, Verdict};

/// A header, and a type whose objects lie behind it.
const TYPES: &str = "#include <stdlib.h>\n#include <stddef.h>\n#include <string.h>\n#include <unistd.h>\n\
    struct head { long size; int refs; unsigned char data[]; };\nstruct t { int a; char pad[60]; long b; };\n\
    static struct head *more(size_t n) { struct head *h = malloc(sizeof *h + n); h->size = n; return h; }\n";

fn found(text: &str, name: &str) -> CheckedType {
    let checked = Program::c(&format!("{TYPES}{text}")).check();
    checked.named(name).next().expect("the type").clone()
}

fn refused(text: &str, reason: &str) {
    let ty = found(text, "t");
    assert_eq!(ty.freedom(), Freedom::Refused, "{text}\n{:#?}", ty.uses);
    assert!(ty.uses.iter().any(|used| used.reason.contains(reason)), "{text}\n{:#?}", ty.uses);
}

#[test]
fn what_an_allocator_gives_behind_a_header_is_memory() {
    let text = "static void *my_alloc(size_t n) { return more(n)->data; }\n\
        static void my_free(void *p) { if (p) free((char *)p - offsetof(struct head, data)); }\n\
        struct other { long x, y; };\n\
        long f(void) { struct t *x = my_alloc(sizeof *x); struct other *o = my_alloc(sizeof *o);\n\
        long s = x->b + o->y; my_free(x); my_free(o); return s; }";
    for name in ["t", "other"] {
        assert_eq!(found(text, name).freedom(), Freedom::Movable, "{name}: {:#?}", found(text, name).uses);
    }
    let head = found(text, "head");
    let stays = head.uses.iter().any(|used| used.verdict == Verdict::Keep(vec!["data".into()]));
    assert!(stays, "what lies behind it is aligned by its size: {:#?}", head.uses);
}

#[test]
fn bytes_behind_a_header_that_others_see_refuse_the_objects_in_them() {
    let object = "struct t *put(struct head *h) { return (struct t *)h->data; }\n";
    for (text, reason) in [
        ("void in(int fd, struct head *h) { read(fd, h->data, 64); }", "read()"),
        (
            "int sum(struct head *h) { int s = 0; for (int i = 0; i < 64; i++) s += h->data[i]; return s; }",
            "byte by byte",
        ),
        ("int same(struct head *a, struct head *b) { return memcmp(a->data, b->data, 64); }", "compared"),
        ("void out(int fd, struct head *h) { write(fd, h, 128); }", "write()"),
        (
            "struct big { int x; struct head h; }; void out(int fd, struct big *b) { write(fd, b, 128); }",
            "write()",
        ),
        (
            "void out(int fd) { void *raw = malloc(99); struct head *h = raw; h->size = 1; write(fd, raw, 99); }",
            "write()",
        ),
        (
            "void *payload(struct head *h) { return h->data; } void in(int fd, struct head *h) { read(fd, payload(h), 64); }",
            "read()",
        ),
        (
            "unsigned char pool[4096]; struct head *first(void) { return (struct head *)pool; }",
            "bytes in pool",
        ),
    ] {
        refused(&format!("{object}{text}"), reason);
    }
    let through = "static void *payload(struct head *h) { return h->data; }\n\
        void in(int fd, struct head *h) { read(fd, payload(h), 64); }\n\
        long out(struct head *h) { struct t *x = payload(h); return x->b; }";
    refused(through, "read()");
}

#[test]
fn an_array_that_holds_the_header_alone_says_nothing_of_what_lies_behind_others() {
    let text = "static unsigned char none[sizeof(struct head)];\n\
        static void *my_alloc(size_t n) { return n ? more(n)->data : ((struct head *)none)->data; }\n\
        long f(void) { struct t *x = my_alloc(sizeof *x); return x->b; }";
    assert_eq!(found(text, "t").freedom(), Freedom::Movable, "{:#?}", found(text, "t").uses);
    assert_eq!(found(text, "head").freedom(), Freedom::Refused);
}
