//! Code that is given one member's address and uses what follows it, and objects whose place nothing but a call shows.
//! Each stands next to a program that does not depend on the order.

use crate::program::{Program, asks, checked, keep, movable};
use lineup_sources::{Freedom, Verdict};

/// A program of C with the usual headers.
fn c(text: &str) -> Program {
    Program::c(&format!(
        "#define _GNU_SOURCE\n#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n{text}"
    ))
}

/// A program of C++ with the usual headers.
fn cpp(text: &str) -> Program {
    Program::cpp(&format!("#include <new>\n#include <unistd.h>\n#include <sys/mman.h>\n{text}"))
}

#[test]
fn a_parameter_that_is_an_array_takes_as_many_members() {
    let types = "struct t { long z; int a, b, c; char d; };";
    let reason = "reaches what follows it";
    asks(&c(&format!("{types} void f(struct t *x) {{ pipe(&x->a); }}")), &keep(&["a", "b"]), reason);
    let own = format!(
        "{types} static void fill(int all[3]) {{ all[0] = 1; }} void f(struct t *x) {{ fill(&x->a); }}"
    );
    asks(&c(&own), &keep(&["a", "b", "c"]), reason);
    let pointer =
        format!("{types} int f(struct t *x, int i) {{ int (*v)[3] = (int (*)[3])&x->a; return (*v)[i]; }}");
    asks(&c(&pointer), &keep(&["a", "b", "c"]), reason);
    movable(&c("struct t { long z; int ends[2]; char d; }; void f(struct t *x) { pipe(x->ends); }"));
    movable(&c(&format!(
        "{types} static void fill(int *one) {{ *one = 1; }} void f(struct t *x) {{ fill(&x->a); }}"
    )));
}

#[test]
fn a_function_that_is_not_compiled_here_may_use_further_numbers() {
    let of = |call: &str| {
        c(&format!(
            "#include <math.h>\nextern void vertex(const float *); struct t {{ long z; float x, y; char d; double whole; }};
            void f(struct t *p) {{ {call}; }}"
        ))
    };
    asks(&of("vertex(&p->x)"), &keep(&["x", "y"]), "may use what follows it");
    movable(&of("modf(1.5, &p->whole)"));
    movable(&of("sscanf(\"1 2\", \"%f %f\", &p->x, &p->y)"));
}

#[test]
fn the_size_of_an_item_is_none_of_the_pointer_that_a_function_of_the_program_sets() {
    let of = |grow: &str| {
        c(&format!(
            "struct item {{ long key, value; }}; struct t {{ char c; struct item *items; int room, count; char d; }};
            {grow}
            static int ask(void **all, int size, int *room) {{ return *room > 8 ? 0 : grow(all, size, room); }}
            int f(struct t *x) {{ return ask((void **)&x->items, sizeof x->items[0], &x->room); }}"
        ))
    };
    let head = "static int grow(void **all, int size, int *room)";
    let plain = "{ *room = 2 * *room + 1; *all = realloc(*all, *room * size); return *all == 0; }";
    movable(&of(&format!("{head} {plain}")));
    let reason = "treated as one";
    let items = keep(&["items", "room", "count"]);
    asks(&of(&format!("{head} {{ return write(1, all, size) + *room; }}")), &items, reason);
    asks(&of(&format!("{head} {{ return all[1] != 0 && *room < size; }}")), &items, reason);
    asks(&of(&format!("{head} {{ return &*all + 1 != 0 && *room < size; }}")), &items, reason);
    asks(&of("extern int grow(void **, int, int *);"), &items, reason);
}

#[test]
fn sizes_given_to_functions_of_text_and_streams_count() {
    let types = "struct t { int k; char a[8], b[8]; char q; };";
    let of = |call: &str| c(&format!("{types} void f(struct t *x, const char *s) {{ {call}; }}"));
    asks(&of("strncpy(x->a, s, sizeof x->a + sizeof x->b)"), &keep(&["a", "b"]), "treated as one");
    asks(&of("snprintf(x->a, sizeof x->a + sizeof x->b, \"%s\", s)"), &keep(&["a", "b"]), "treated as one");
    movable(&of("snprintf(x->a, sizeof x->a, \"%s\", s)"));
    let of = |bytes: &str| {
        Program::cpp(&format!(
            "#include <istream>\nstruct t {{ double b; int a, k; char c; }};
            void f(std::istream &in, t &x) {{ in.read(reinterpret_cast<char *>(&x.a), {bytes}); }}"
        ))
    };
    asks(&of("8"), &keep(&["a", "k"]), "treated as one");
    movable(&of("sizeof x.a"));
}

#[test]
fn a_vector_of_buffers_says_how_far_a_member_is_written() {
    let types = "#include <sys/uio.h>\nstruct t { long z; int a, b, c; };";
    let of = |code: &str| c(&format!("{types} void f(int fd, struct t *x) {{ {code} writev(fd, &v, 1); }}"));
    asks(&of("struct iovec v = { &x->a, 8 };"), &keep(&["a", "b"]), "treated as one");
    asks(
        &of("struct iovec v; v.iov_base = &x->a; v.iov_len = 2 * sizeof(int);"),
        &keep(&["a", "b"]),
        "treated as one",
    );
    movable(&of("struct iovec v = { &x->a, sizeof x->a };"));
    movable(&of("struct iovec v; v.iov_base = &x->a; v.iov_len = sizeof x->a;"));
}

#[test]
fn a_payload_behind_an_embedded_head_stays_there() {
    let types =
        "struct head { int length, kind; }; struct t { struct head h; int a; char room[60]; int b; };";
    let reason = "code finds what lies behind h";
    let of = |code: &str| c(&format!("{types} {code}"));
    asks(
        &of(
            "static int body(struct head *h) { return *(int *)(h + 1); } int f(struct t *x) { return body(&x->h); }",
        ),
        &keep(&["h", "a"]),
        reason,
    );
    let sizes = "#define ALIGNED(n) (((n) + 3) & ~3)\n#define LENGTH ((int)ALIGNED(sizeof(struct head)))\n";
    asks(
        &of(&format!("\n{sizes} int f(struct t *x) {{ return *(int *)((char *)&x->h + LENGTH); }}")),
        &keep(&["h", "a"]),
        reason,
    );
    movable(&of("struct t *f(struct t *x) { return x + 1; } int g(struct t *x) { return x->h.kind; }"));
    let base = "struct base { int k, n; }; struct t : base { int a; char c; double d; };
        int f(base *b) { return static_cast<t *>(b)->a + *reinterpret_cast<int *>(b + 1); } int g(t *x) { return f(x); }";
    asks(&cpp(base), &Verdict::Refuse, "other things are put behind its first 8 bytes");
}

#[test]
fn new_objects_at_a_place_lie_there() {
    let types = "struct t { int a; double b; char c; };";
    let of = |code: &str| cpp(&format!("{types} {code}"));
    let mapped = "mmap(nullptr, 4096, 3, MAP_SHARED, fd, 0)";
    let reason = "objects come from mmap()";
    asks(&of(&format!("t *f(int fd) {{ return new ({mapped}) t; }}")), &Verdict::Refuse, reason);
    let template = format!(
        "template <class T> T *make(void *at) {{ return ::new (at) T(); }} t *f(int fd) {{ return make<t>({mapped}); }}"
    );
    asks(&of(&template), &Verdict::Refuse, reason);
    asks(
        &of(
            "void f(int fd) { alignas(16) char room[64]; t *x = new (room) t{}; x->a = 1; write(fd, room, sizeof room); }",
        ),
        &Verdict::Refuse,
        "objects are made from the bytes in room",
    );
    movable(&of(
        "struct slot { alignas(t) unsigned char room[sizeof(t)]; }; t *f(slot *s) { return new (s->room) t; }",
    ));
    movable(&of("t *f() { return new (::operator new(sizeof(t))) t; }"));
    let aligned = "struct alignas(16) vector { float f[4]; }; struct t { int a, b; char store[16]; char rest[20]; int last; };
        vector *f(t *x) { return new (x->store) vector; }";
    asks(&cpp(aligned), &keep(&["store"]), "at a multiple of 16 bytes");
}

#[test]
fn code_that_follows_the_pointers_of_an_object_knows_their_targets() {
    let reason = "leads to it, and";
    let request = |member: &str, value: &str| {
        c(&format!(
            "#include <sys/ioctl.h>\nstruct t {{ int z; long a; }}; struct request {{ int op; {member}; }};
            int f(int fd, struct t *x) {{ struct request r = {{ 1, {value} }}; return ioctl(fd, 3, &r); }}"
        ))
    };
    asks(&request("struct t *data", "x"), &Verdict::Refuse, reason);
    asks(&request("void *data", "x"), &Verdict::Refuse, reason);
    asks(&request("uint64_t data", "(uint64_t)(uintptr_t)x"), &Verdict::Refuse, reason);
    let library = |call: &str| {
        c(&format!(
            "struct t {{ int z; long a; }}; struct list {{ struct t *first; int count; }};
            void vendor(struct list *); void keep(void *); void f(struct t *x) {{ struct list l = {{ x, 1 }}; {call}; }}"
        ))
    };
    asks(&library("vendor(&l)"), &Verdict::Refuse, reason);
    // A library that is given an object without its type does not look into it.
    movable(&library("keep(&l)"));
}

#[test]
fn a_key_that_is_a_number_ends_with_the_first_member() {
    let of = |compare: &str| {
        c(&format!(
            "struct t {{ int key; char room[60]; int weight; }};
            static int compare(const void *a, const void *b) {{ {compare} }}
            struct t *f(struct t *all, int n, int key) {{ return bsearch(&key, all, n, sizeof *all, compare); }}"
        ))
    };
    let both = of("const struct t *p = a, *q = b; return p->key - q->key;");
    asks(&both, &Verdict::First, "is read as int");
    movable(&of("const struct t *q = b; return *(const int *)a - q->key;"));
}

#[test]
fn marks_in_the_lowest_bits_of_an_address_need_them() {
    let types = "struct t { int a; char k; char low; char data[40]; long last; };";
    let of =
        |mark: &str| c(&format!("{types} uintptr_t f(struct t *x) {{ return (uintptr_t)x->data {mark}; }}"));
    asks(&of("| 1"), &keep(&["data"]), "at a multiple of 2 bytes");
    movable(&of("+ 0"));
    let whole = format!("{types} uintptr_t f(struct t *x) {{ return (uintptr_t)x | 1; }}");
    movable(&c(&whole));
    let asserted = "#include <assert.h>\n#define ALIGNED(p, n) (((size_t)(p) % (n)) == 0)\n
        struct t { int a, b; long r[2]; char rest[20]; int last; }; void f(struct t *x) { assert(ALIGNED(&x->r, 16)); }";
    asks(&c(asserted), &keep(&["r"]), "at a multiple of 16 bytes");
}

#[test]
fn assembly_uses_whole_objects_and_what_its_instructions_reach() {
    let of = |types: &str, code: &str| {
        c(&format!("struct t {{ {types} }}; void f(struct t *x, long i) {{ {code} }}"))
    };
    let pair = "int z, k;";
    asks(
        &of(
            pair,
            "__asm__ volatile(\"lock cmpxchg8b %0\" : \"+m\"(*x) : : \"eax\", \"edx\", \"ebx\", \"ecx\");",
        ),
        &Verdict::Refuse,
        "assembly uses it",
    );
    movable(&of(pair, "__asm__ volatile(\"\" : \"+m\"(*x));"));
    movable(&of(pair, "__asm__ volatile(\"\" : : \"r\"(x) : \"memory\");"));
    let words = "long q; unsigned one, two; char d;";
    let bits = |source: &str| {
        of(words, &format!("__asm__ volatile(\"btsl {source}, %0\" : \"+m\"(x->one) : \"r\"((int)i));"))
    };
    assert_eq!(checked(&bits("%1")).freedom(), Freedom::Refused);
    movable(&bits("$3"));
    let floats = "long q; float u, v; int n;";
    let load = |mnemonic: &str| {
        of(floats, &format!("__asm__ volatile(\"{mnemonic} %0, %%xmm0\" : : \"m\"(x->u) : \"xmm0\");"))
    };
    asks(&load("movq"), &keep(&["u", "v"]), "reaches what follows it");
    movable(&load("movss"));
    let texts = "int z; char a[8], b[8]; int n;";
    let fill =
        "void *to = x->a; __asm__ volatile(\"rep stosb\" : \"+D\"(to), \"+c\"(i) : \"a\"(0) : \"memory\");";
    assert_eq!(checked(&of(texts, fill)).freedom(), Freedom::Refused);
}

#[test]
fn states_of_the_processor_and_lines_are_told_from_vectors() {
    let of = |call: &str| {
        c(&format!(
            "#include <immintrin.h>\nstruct t {{ int q[4]; char area[512]; int n; }};
            __attribute__((target(\"fxsr\"))) void f(struct t *x) {{ {call}; }}"
        ))
    };
    asks(&of("_fxsave(x->area)"), &keep(&["area"]), "at a multiple of 16 bytes");
    movable(&of("_mm_clflush(&x->n)"));
}

#[test]
fn bytes_behind_the_last_element_are_those_of_the_next_member() {
    let types = "struct t { long z; int a; char text[12]; int b; long d; };";
    let reason = "bytes from text on are treated as one";
    let of = |body: &str| c(&format!("{types} int f(struct t *x, int v) {{ {body} }}"));
    for body in [
        "return *(int *)(x->text + sizeof x->text);",
        "return *(int *)(x->text + 10);",
        "return ((int *)(x->text + 8))[1];",
        "memcpy(&v, x->text + 12, 4); return v;",
        "memcpy(&v, &x->text[10], 4); return v;",
        "return write(1, x->text + 12, sizeof x->b);",
    ] {
        asks(&of(body), &keep(&["text", "b"]), reason);
    }
    for body in [
        "char *end = x->text + sizeof x->text, *p = x->text; while (p < end && *p) p++; return p == end;",
        "memcpy(&v, x->text + 8, 4); return v + *(int *)(x->text + 8);",
    ] {
        movable(&of(body));
    }
}

#[test]
fn an_offset_added_to_an_object_is_its_member_for_a_size() {
    let types = "struct t { long z; int a, b; char text[12]; long d; };";
    let of = |body: &str| {
        c(&format!("#include <sys/uio.h>\n{types} void f(struct t *x, struct t *y) {{ {body} }}"))
    };
    let reason = "bytes from a on are treated as one";
    for body in [
        "struct iovec v = { .iov_base = (char *)x + offsetof(struct t, a), .iov_len = 8 }; writev(1, &v, 1);",
        "write(1, (char *)x + offsetof(struct t, a), 8);",
        "memset((char *)x + offsetof(struct t, a), 0, 8); (void)y;",
    ] {
        asks(&of(body), &keep(&["a", "b"]), reason);
    }
    movable(&of("memset((char *)x + offsetof(struct t, a), 0, 4); (void)y;"));
}

#[test]
fn an_array_that_is_sorted_or_searched_goes_as_far_as_its_elements() {
    let types = "struct t { long z; int a, b, c; char d; }; static int by(const void *p, const void *q) { return *(const int *)p - *(const int *)q; }";
    let reason = "bytes from a on are treated as one";
    let of = |body: &str| c(&format!("{types} void *f(struct t *x, int n) {{ {body} return x; }}"));
    for body in ["qsort(&x->a, 3, sizeof(int), by);", "return bsearch(&n, &x->a, 3, sizeof x->a, by);"] {
        asks(&of(body), &keep(&["a", "b", "c"]), reason);
    }
    movable(&of("qsort(&x->a, 1, sizeof(int), by);"));
}

#[test]
fn the_size_of_a_text_is_none_of_an_object_whose_address_is_printed() {
    movable(&c("struct t { long z; int a, b; char text[40]; };
        void f(struct t *x) { char line[16]; snprintf(line, sizeof line, \"%p\", (void *)x); puts(line); }"));
}

#[test]
fn an_object_copied_to_an_array_of_numbers_is_read_there() {
    let types = "struct t { long z; int a, b; };";
    let of = |body: &str| c(&format!("{types} int f(struct t *x) {{ {body} }}"));
    for (body, reason) in [
        (
            "int words[4]; memcpy(words, x, sizeof *x); return words[2];",
            "its address goes to an array of numbers",
        ),
        (
            "struct t own = *x; int words[4]; memcpy(words, &own, sizeof own); return words[2];",
            "an array of numbers",
        ),
        (
            "long words[2] = { 1, 2 }; memcpy(x, words, sizeof *x); return x->a;",
            "it is filled from an array of numbers",
        ),
    ] {
        asks(&of(body), &Verdict::Refuse, reason);
    }
    movable(&of("int words[4]; memcpy(words, &x->a, sizeof x->a); return words[0];"));
}

#[test]
fn a_loop_past_the_end_of_an_array_reaches_what_follows_it() {
    let of = |body: &str| {
        Program::c(&format!(
            "struct t {{ short id; int a[2]; int b[4]; long last; }}; void f(struct t *x, int n) {{ int i; {body} }}"
        ))
    };
    asks(
        &of("for (i = 0; i < 4; i++) x->a[i] = 0;"),
        &keep(&["a", "b"]),
        "bytes from a on are treated as one",
    );
    movable(&of("for (i = 0; i < 2; i++) x->a[i] = 0; for (i = 0; i < 4; i++) x->b[i] = 0;"));
    movable(&of("for (i = 0; i < n; i++) x->a[i] = 0;"));
}
