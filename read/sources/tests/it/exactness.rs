//! Uses that look like a dependence on the order without being one, each next to the program that it must not be
//! mistaken for.

use crate::program::Program;
use lineup_sources::{Freedom, Verdict};

/// The type `t` of the program is refused, for this reason.
fn refused(text: &str, reason: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    let is_it = |used: &lineup_sources::Use| used.verdict == Verdict::Refuse && used.reason.contains(reason);
    assert!(ty.uses.iter().any(is_it), "{text}\n{:#?}", ty.uses);
}

fn movable(text: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    assert_eq!(ty.freedom(), Freedom::Movable, "{text}\n{:#?}", ty.uses);
}

/// The type `t` keeps these members, for this reason.
fn held(text: &str, members: &[&str], reason: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    let verdict = Verdict::Keep(members.iter().map(|name| name.to_string()).collect());
    let is_it = |used: &lineup_sources::Use| used.verdict == verdict && used.reason.contains(reason);
    assert!(ty.uses.iter().any(is_it), "{text}\n{:#?}", ty.uses);
}

fn held_first(text: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    assert_eq!(ty.freedom(), Freedom::Pinned, "{text}\n{:#?}", ty.uses);
    assert!(ty.uses.iter().any(|used| used.verdict == Verdict::First), "{text}\n{:#?}", ty.uses);
}

const HEADERS: &str = "#include <stddef.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n";

fn with_headers(text: &str) -> String {
    format!("{HEADERS}{text}")
}

#[test]
fn the_object_around_a_member_is_found_by_offsetof() {
    let outer = "struct t { int a; long b; }; struct outer { char extra[8]; struct t in; };";
    let own = "struct outer *f(struct t *x) { return (struct outer *)((unsigned char *)x - offsetof(struct outer, in)); }";
    movable(&with_headers(&format!("{outer}{own}")));
    let freed = "void f(struct t *x) { free((char *)x - offsetof(struct outer, in)); }";
    movable(&with_headers(&format!("{outer}{freed}")));
    let through = "static void *around(void *x) { return (char *)x - offsetof(struct outer, in); }
        char f(struct t *x) { struct outer *o = around(x); return o->extra[0]; }";
    movable(&with_headers(&format!("{outer}{through}")));
}

#[test]
fn offsetof_of_another_type_is_a_fixed_offset() {
    let text =
        "struct in { int k, l; }; struct shadow { int a; struct in in; }; struct t { int a, k, l; long c; };
        int f(struct t *x) { return ((struct in *)((char *)x + offsetof(struct shadow, in)))->l; }";
    refused(&with_headers(text), "in is read at a fixed offset");
    let beside = "struct in { int k; long l; }; struct t { int a; struct in in; };
        char f(struct in *x) { return ((char *)x - offsetof(struct t, in))[5]; }";
    refused(&with_headers(beside), "its bytes are read one by one");
    let further = "struct in { int k, l; }; struct t { int a; struct in in; int b; };
        int f(struct in *x) { return *(int *)((char *)x - offsetof(struct t, in) + 12); }";
    refused(&with_headers(further), "int is read at a fixed offset");
}

#[test]
fn what_lies_before_a_member_at_a_fixed_distance_stays_there() {
    let types = "struct in { int k; long l; }; struct t { char extra[8]; struct in in; int z, y; };";
    let reason = "what lies before one of its members";
    let direct = "void f(struct in *x, char *to) { memcpy(to, (char *)x - 8, 8); }";
    held(&with_headers(&format!("{types}{direct}")), &["extra", "in"], reason);
    let by_macro = "#define ROOM (sizeof(void *))\n#define extra(x) ((void *)((char *)(x) - ROOM))\n
        void f(struct in *x, char *to) { memcpy(to, extra(x), ROOM); }";
    let text = with_headers(&format!("{types}\n{by_macro}"));
    held(&text, &["extra", "in"], reason);
    let inner = text.replace("struct t ", "struct outer ").replace("struct in ", "struct t ");
    movable(&inner);
    let after =
        "struct t { int a, b; long c; }; void f(struct t *x, int *to) { memcpy(to, (char *)x + 4, 4); }";
    refused(&with_headers(after), "bytes at a fixed offset");
}

/// A wrapper around an allocator whose name does not imply it.
const GROW: &str = "static void *grow(void *old, size_t n) { void *p = old ? realloc(old, n) : malloc(n); if (!p) abort(); return p; }
    struct t { int k; long l; };";

#[test]
fn each_call_of_a_wrapper_gives_memory_of_its_own() {
    let text = "void f(int fd) { char *bytes = grow(0, 64); bytes[0] = 1; read(fd, bytes, 64); }
        long g(void) { struct t *x = grow(0, sizeof *x); x->k = 1; return x->l; }";
    movable(&with_headers(&format!("{GROW}{text}")));
    let nested = "static void *twice(size_t n) { return grow(0, 2 * n); }
        void f(int fd) { char *bytes = twice(64); read(fd, bytes, 64); }
        long g(void) { struct t *x = twice(sizeof *x); x->k = 1; return x->l; }";
    movable(&with_headers(&format!("{GROW}{nested}")));
}

#[test]
fn an_allocator_behind_a_pointer_gives_memory_of_its_own() {
    let text = "static void *plain(void *o, int n) { return malloc(n); } struct stream { void *(*make)(void *, int); void *o; };
        struct t { int k; long l; char *room; };
        struct t *f(struct stream *s) { s->make = plain; struct t *x = s->make(s->o, sizeof *x); x->room = s->make(s->o, 64); x->room[3] = 1;
                                        return x; }
        long g(struct stream *s, int fd) { return write(fd, f(s)->room, 64); }";
    movable(&with_headers(text));
    let same = text.replace("write(fd, f(s)->room, 64)", "write(fd, (char *)f(s), 64)");
    refused(&with_headers(&same), "write()");
}

#[test]
fn memory_that_a_wrapper_fills_or_keeps_is_the_same_outside() {
    let filled = "static char *load(int fd) { char *p = grow(0, 64); read(fd, p, 64); return p; }
        long g(int fd) { struct t *x = (struct t *)load(fd); return x->l; }";
    refused(&with_headers(&format!("{GROW}{filled}")), "memory that is used as one is given to read()");
    let kept = "static void *room(void) { static void *kept; if (!kept) kept = malloc(64); return kept; }
        long f(int fd) { char *bytes = room(); return write(fd, bytes, 64); }
        long g(void) { struct t *x = room(); x->k = 1; return x->l; }";
    refused(&with_headers(&format!("{GROW}{kept}")), "memory that is used as one is given to write()");
    let behind = "static void *room(void **at) { if (!*at) *at = malloc(64); return *at; }
        static void *one;
        long f(int fd) { char *bytes = room(&one); return write(fd, bytes, 64); }
        long g(void) { struct t *x = room(&one); x->k = 1; return x->l; }";
    refused(&with_headers(&format!("{GROW}{behind}")), "memory that is used as one is given to write()");
    let header = "static char *made(void) { struct t *x = malloc(64); x->k = 1; return (char *)x; }
        long f(int fd) { return write(fd, made(), 64); }";
    refused(&with_headers(&format!("{GROW}{header}")), "write()");
}

#[test]
fn an_array_of_pointers_is_not_what_they_point_to() {
    let text = "struct all { struct t **items; char *bytes; }; 
        void f(struct all *a, int fd) { a->bytes = grow(a->bytes, 64); a->bytes[1] = 2; read(fd, a->bytes, 64); }
        long g(struct all *a) { a->items = grow(a->items, 64); a->items[0] = calloc(1, sizeof(struct t));
                                struct t *x = (struct t *)(void *)a->items[0]; return x->l; }";
    movable(&with_headers(&format!("{GROW}{text}")));
    let same = "static void *item(void **items, int i) { return items[i]; }
        long g(int fd) { void **items = malloc(64); items[1] = malloc(64); read(fd, items[1], 64);
                         struct t *x = item(items, 1); return x->l; }";
    refused(&with_headers(&format!("{GROW}{same}")), "memory that is used as one is given to read()");
    let listed = "long g(int fd) { void *items[] = { 0, malloc(64) }; read(fd, items[1], 64);
                                struct t *x = items[1]; return x->l; }";
    refused(&with_headers(&format!("{GROW}{listed}")), "memory that is used as one is given to read()");
    let out = "static void make(void **to) { *to = malloc(64); }
        long g(int fd) { void *p; make(&p); read(fd, p, 64); struct t *x = p; return x->l; }";
    refused(&with_headers(&format!("{GROW}{out}")), "memory that is used as one is given to read()");
}

#[test]
fn a_volatile_member_beside_pointers_is_no_devices() {
    movable("struct t { void *next; volatile int stop; int a, b; }; int f(struct t *x) { return x->stop; }");
    held(
        "struct t { int a, b; volatile int status; int c; }; int f(struct t *x) { return x->status; }",
        &["status"],
        "volatile members",
    );
}

#[test]
fn what_a_condition_asks_is_not_what_is_chosen() {
    let text = "static int known(char *p) { return p != 0; } struct t { int a; long b; };
        struct t *one, *two; struct t *f(char *bytes) { bytes[0] = 1; return bytes ? one : two; }
        long g(void) { char buffer[64]; return f(buffer)->b + known(buffer); }";
    movable(&with_headers(text));
    let chosen = "struct t { int a; long b; };
        long g(int k) { char buffer[64]; char *p = k ? buffer : 0; return ((struct t *)p)->b; }";
    refused(&with_headers(chosen), "objects are made from the bytes in buffer");
}

#[test]
fn what_stands_before_a_comma_is_not_assigned_to() {
    let text = "struct t { int a; long b; }; char *name(void); struct t *next(struct t *);
        char f(struct t *x) { char *key; struct t *n; for (key = name(), n = next(x); key[0]; key = name()) x = n; return key[1]; }
        char *name(void) { static char text[8]; return text; } struct t *next(struct t *x) { return x; }";
    movable(&with_headers(text));
    let assigned =
        "struct t { int a; long b; }; int f(struct t *x) { char *a, *b; a = b = (char *)x; return a[4]; }";
    refused(&with_headers(assigned), "its bytes are read one by one");
}

#[test]
fn text_among_further_arguments_is_no_object() {
    let pack = "#include <stdarg.h>\nstruct t { int a; long b; };
        static struct t *pack(const char *how, ...) { va_list all; va_start(all, how); struct t *found = 0;
            if (how[0] == 's') found = va_arg(all, char *) ? found : 0; else found = va_arg(all, struct t *); va_end(all); return found; }";
    movable(&with_headers(&format!(
        "{pack} long f(struct t *x) {{ char b[8]; b[0] = 1; pack(\"s\", b); return pack(\"o\", x)->b; }}"
    )));
    let read = "#include <stdarg.h>\nstruct t { int a; long b; };
        static int first(int n, ...) { va_list all; va_start(all, n); char *p = va_arg(all, char *); va_end(all); return p[4]; }
        int f(struct t *x) { return first(1, x); }";
    refused(&with_headers(read), "its bytes are read one by one");
}

/// A list of free memory whose elements only the allocator looks at.
const POOL: &str = "union block { char room[8]; union block *link; }; static union block *pool[16];
    static void *zmalloc(size_t n) { union block *p = pool[n / 8]; if (p) pool[n / 8] = p->link; else p = malloc(n); return p; }
    static void zfree(void *x, size_t n) { ((union block *)x)->link = pool[n / 8]; pool[n / 8] = x; }
    struct t { int k; long l; };";

#[test]
fn what_an_allocator_makes_of_free_memory_is_its_own() {
    let text = "struct t *f(void) { struct t *x = zmalloc(sizeof *x); x->k = 1; return x; } void g(struct t *x) { zfree(x, sizeof *x); }";
    movable(&with_headers(&format!("{POOL}{text}")));
    let looked_into = format!("{POOL}{text} void *peek(int n) {{ return pool[n]->link; }}");
    refused(&with_headers(&looked_into), "other members");
    let shared = "struct head { long n; char c; }; static struct head one; struct t { int k; long l; };
        static void *alloc_shared(void) { return &one; } long f(void) { one.n = 1; struct t *x = alloc_shared(); return x->l; }";
    refused(&with_headers(shared), "other members");
}

#[test]
fn what_moves_memory_gives_it_back_to_whom_it_was_from() {
    let text = "struct entry { struct entry *next; void *memory; }; static struct entry *all; struct t { int k; long l; };
        void *tracking_realloc(void *p, size_t n) { struct entry *e; for (e = all; e; e = e->next) if (e->memory == p) break;
            if (!e) { e = malloc(sizeof *e); e->next = all; all = e; e->memory = p; } e->memory = realloc(p, n); return e->memory; }
        int *grown(int *x) { x = tracking_realloc(x, 64); x[3] = 1; return x + 2; }";
    let own = "struct t *more(struct t *x) { return tracking_realloc(x, 4 * sizeof *x); }";
    movable(&with_headers(&format!("{text}{own}")));
    let beside = text
        .replace("tracking_realloc(void *p", "tracking_realloc(struct t *o, void *p")
        .replace("ing_realloc(x,", "ing_realloc(0, x,");
    movable(&with_headers(&format!(
        "struct t;{beside} int *h(struct t *o, int *x) {{ x = tracking_realloc(o, x, 64); x[3] = o->k; return x + 2; }}"
    )));
    let other = "int *numbers(struct t *x) { int *all = tracking_realloc(x, 4 * sizeof *x); return all + 3; }
        int second(struct t *x) { return numbers(x)[1]; }";
    refused(&with_headers(&format!("{text}{other}")), "stepped through as an array of int");
}

#[test]
fn what_a_first_member_points_to_is_not_the_object() {
    let text = "struct data { int a; long b; }; struct t { void *user; int c; long d; };
        void set(struct t *x, struct data *d) { x->user = d; } long f(struct t *x) { return ((struct data *)*(void **)x)->b; }";
    held_first(&with_headers(text));
    let written = "struct outer { void *user; long k; }; struct t { int a; long b; };
        void set(struct outer *x, struct t *d) { x->user = d; } long f(struct outer *x, int fd) { return write(fd, *(void **)x, 16); }";
    refused(&with_headers(written), "write()");
}

#[test]
fn pointers_that_are_compared_are_no_objects() {
    let text = "struct t { int a; long b; }; struct other { long c; int d; }; struct cell { int kind; void *p; };
        long f(struct cell *c) { return c->kind == 1 ? ((struct t *)c->p)->b : ((struct other *)c->p)->c; }
        void g(struct cell *c, struct t *x, struct other *y) { if (x) c->p = x; else c->p = y; }
        int same(struct cell *c, struct cell *d, size_t n) { return memcmp(c->p, d->p, n * sizeof(struct t *)); }";
    movable(&with_headers(text));
    let bytes = text.replace("n * sizeof(struct t *)", "n");
    refused(&with_headers(&bytes), "its bytes are compared");
    let own = "struct t { int a; long b; }; int same(struct t *x, struct t *y) { return memcmp(x, y, 2 * sizeof(void *)); }";
    refused(&with_headers(own), "its bytes are compared");
}

#[test]
fn an_array_that_memory_is_allocated_behind_stays_last() {
    let text = "struct t { size_t length; unsigned references; char text[2]; };
        struct t *f(size_t n) { struct t *x = (struct t *)malloc(n + sizeof(struct t) - 1); x->length = n; return x; }";
    let checked = Program::c(&with_headers(text)).check();
    let ty = checked.named("t").next().expect("the type t");
    assert!(ty.uses.iter().any(|used| used.verdict == Verdict::Last("text".into())), "{:#?}", ty.uses);
    movable(&with_headers(
        "struct t { size_t length; char text[2]; int b; }; struct t *f(void) { return (struct t *)malloc(sizeof(struct t)); }",
    ));
}

#[test]
fn what_was_never_put_into_a_place_is_not_taken_out_of_it() {
    let text = "struct t { int anchored, empty; void *compiled; }; struct state { char type; size_t length; char *text; };
        struct text { size_t length; char text[8]; }; struct cell { int kind; void *p; };
        static char *is_text(void *q) { struct state *s = q; return s[0].type == 0 && s[1].type == 1 ? s->text : 0; }
        void set(struct cell *c, struct t *re, int n) { if (re) c->p = re; else { struct text *s = malloc(n); s->length = 1; c->p = s; } }
        size_t f(struct cell *c) { return c->kind ? (size_t)is_text(c->p) : ((struct text *)c->p)->length; }";
    refused(&with_headers(text), "other members");
    let put = text.replace("void set(", "void put(struct cell *c, struct state *s) { c->p = s; } void set(");
    movable(&with_headers(&put));
}

/// A variable of the type `t` in one file, and its declaration in another file.
fn declared_twice(other: &str) -> lineup_sources::CheckedType {
    let header = "struct t { int a, b; long c; };";
    let own = "#include \"t.h\"\nstruct t x = { .a = 1, .b = 2 }; struct t many[2];";
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let checked = Program::of(&[("t.h", header), ("a.c", own), ("b.c", other)], &calls).check();
    checked.named("t").next().expect("the type t").clone()
}

#[test]
fn a_variable_is_what_each_file_declares_it_as() {
    let is_refused = |text: &str, reason: &str| {
        let ty = declared_twice(text);
        let is_it =
            |used: &lineup_sources::Use| used.verdict == Verdict::Refuse && used.reason.contains(reason);
        assert!(ty.uses.iter().any(is_it), "{text}\n{:#?}", ty.uses);
    };
    is_refused("extern int x[]; int f(void) { return x[1]; }", "an array of int");
    is_refused("extern unsigned char many[]; int f(void) { return many[4]; }", "one by one");
    is_refused(
        "struct u { double d; }; extern struct u x; double f(void) { return x.d; }",
        "which has other members",
    );
    let common =
        declared_twice("struct u { int a, b; long c; }; extern struct u x; int f(void) { return x.b; }");
    assert_eq!(common.freedom(), Freedom::Refused, "{:#?}", common.uses);
    let first = declared_twice("extern int x; int f(void) { return x; }");
    assert_eq!(first.freedom(), Freedom::Pinned, "{:#?}", first.uses);

    let same = "#include \"t.h\"\nextern struct t x, many[]; int f(void) { return x.b + many[1].a; }";
    let same = declared_twice(same);
    assert_eq!(same.freedom(), Freedom::Movable, "{:#?}", same.uses);
    let own = "static int x[4]; static unsigned char many[4]; int f(void) { return x[1] + many[2]; }";
    let own = declared_twice(own);
    assert_eq!(own.freedom(), Freedom::Movable, "{:#?}", own.uses);
}

#[test]
fn pointers_in_a_union_without_a_tag_are_casts() {
    let types = "struct t { double y; int x, z; }; struct u { int x; int w; double y; };";
    let used = "int f(struct t *x) { union p p; p.a = x; return p.b->w; }";
    refused(&format!("{types} union p {{ struct t *a; struct u *b; }}; {used}"), "cast to or from u");
    let same = "union p { struct t *a; const struct t *b; };";
    movable(&format!("{types} {same} int f(struct t *x) {{ union p p; p.a = x; return p.b->x; }}"));
    let tagged = "struct value { int kind; union { struct t *a; struct u *b; }; };";
    movable(&format!("{types} {tagged} int f(struct value *v) {{ return v->kind ? v->a->x : v->b->w; }}"));
}

#[test]
fn memory_of_which_nothing_is_known_explains_only_what_is_made_nowhere_else() {
    let text = "struct t { int anchored, empty; void *compiled; }; struct state { char type; size_t length; char *text; };
        struct text { size_t length; char text[8]; }; struct cell { int kind; void *p; };
        static char *is_text(void *q) { struct state *s = q; return s[0].type == 0 && s[1].type == 1 ? s->text : 0; }
        struct text *make(int n) { struct text *s = malloc(n); s->length = 1; return s; }
        void set(struct cell *c, struct t *re, int n) { if (re) c->p = re; else if (n) c->p = make(n); else c->p = malloc(64); }
        size_t f(struct cell *c) { return c->kind ? (size_t)is_text(c->p) : ((struct text *)c->p)->length; }";
    movable(&with_headers(text));
    let elsewhere = format!("{text} struct state *machine(void) {{ return (struct state *)malloc(96); }}");
    refused(&with_headers(&elsewhere), "cast to or from state, which has other members");
    let typed = text.replace("else c->p = malloc(64);", "");
    refused(&with_headers(&typed), "cast to or from state, which has other members");
}

#[test]
fn types_that_begin_alike_by_chance_have_nothing_in_common() {
    let text = "struct t { int anchored, empty; void *compiled; }; struct state { int type; size_t length; char *text; };
        char *f(struct t *x) { return ((struct state *)x)->text; }";
    refused(&with_headers(text), "cast to or from state, which has other members");
    let named = text.replace("int anchored,", "int type,");
    held(&with_headers(&named), &["type"], "begins with the same members");
    let header = "struct t { int anchored; long a, b; }; struct head { int type; }; int f(struct t *x) { return ((struct head *)x)->type; }";
    held(&with_headers(header), &["anchored"], "begins with the same members");
}

/// Two types without a common member.
const TWO: &str = "struct t { int a; long b; }; struct u { long x; int y; };";

#[test]
fn further_arguments_are_used_as_what_they_are_read_as() {
    let text = "\n#include <stdarg.h>\n
        static long read_one(int n, ...) { va_list v; va_start(v, n); struct u *p = va_arg(v, struct u *); va_end(v); return p->x; }";
    refused(
        &with_headers(&format!("{TWO}{text} long f(struct t *x) {{ return read_one(1, x); }}")),
        "cast to or from u",
    );
    let same = format!("{TWO}{text} long f(struct u *x, struct t *y) {{ return read_one(1, x) + y->b; }}");
    movable(&with_headers(&same));
}

#[test]
fn what_comes_out_by_a_pointers_address_is_used_as_the_pointer_says() {
    let table = "struct table { void *slots[8]; };
        static int find(struct table *t, int k, void **out) { *out = t->slots[k]; return 1; }
        static void put(struct table *t, int k, void *p) { t->slots[k] = p; }";
    let own = "void fill(struct table *t, struct t *x, struct u *y) { put(t, 0, x); put(t, 1, y); }
        long f(struct table *t) { struct u *y; find(t, 1, (void **)&y); struct t *x; find(t, 0, (void **)&x); return y->x + x->b; }";
    movable(&with_headers(&format!("{TWO}{table}{own}")));
    let other = "void fill(struct table *t, struct t *x) { put(t, 0, x); }
        long f(struct table *t) { struct u *y; find(t, 0, (void **)&y); return y->x; }";
    refused(&with_headers(&format!("{TWO}{table}{other}")), "cast to or from u");
    let copied = "long f(struct t *x) { struct u *y; memcpy(&y, &x, sizeof y); return y->x; }";
    refused(&with_headers(&format!("{TWO}{copied}")), "cast to or from u");
    let same = "long f(struct t *x) { struct t *y; memcpy(&y, &x, sizeof y); return y->b; }";
    movable(&with_headers(&format!("{TWO}{same}")));
}

#[test]
fn an_object_taken_for_an_array_is_stepped_through() {
    let pointers = "struct t { char *a; char *b; long n; char *c; };";
    for walk in [
        "char *f(struct t *x, int i) { return ((char **)x)[i]; }",
        "char *f(struct t *x, int i) { char **all = (char **)x; return all[i]; }",
    ] {
        refused(&with_headers(&format!("{pointers}{walk}")), "stepped through as an array of char *");
    }
    refused(
        "struct t { int a, b; long n; }; int f(struct t *x, int i) { return ((int *)x)[i]; }",
        "array of int",
    );
    let member = "struct t { int n; char **all; long k; }; struct list { struct t *items[4]; };
        char *f(struct t *x, int i) { return x->all[i]; } long g(struct list *l, int i) { return l->items[i]->k; }";
    movable(member);
}

#[test]
fn a_function_that_copies_plain_memory_makes_one_object_the_other() {
    let copy = "static void copy(void *d, const void *s, size_t n) { memcpy(d, s, n); }
        static void outer(void *d, const void *s, size_t n) { copy(d, s, n); }";
    let call = "void f(struct t *x, struct u *y) { outer(x, y, 8); }";
    refused(&with_headers(&format!("{TWO}{copy}{call}")), "cast to or from u");
    let behind = "void f(struct t *x, struct u *y, size_t n) { void (*c)(void *, const void *, size_t) = copy; c(x, y, n); }";
    refused(&with_headers(&format!("{TWO}{copy}{behind}")), "cast to or from u");
    let own = "void f(struct t *x, struct t *y, struct u *a, struct u *b) { outer(x, y, sizeof *x); copy(a, b, sizeof *a); }
        static void *twin(const void *s, size_t n) { void *d = malloc(n); memcpy(d, s, n); return d; }
        struct t *g(struct t *x) { return twin(x, sizeof *x); } struct u *h(struct u *x) { return twin(x, sizeof *x); }";
    movable(&with_headers(&format!("{TWO}{copy}{own}")));
    let part = "void f(struct t *x, struct t *y) { copy(x, y, 8); }";
    held(&with_headers(&format!("{TWO}{copy}{part}")), &["a"], "its first 8 bytes");
}

#[test]
fn what_lies_before_a_text_behind_an_object_stays_there() {
    let text = "struct t { size_t length; int room; int flags; char text[]; };
        char *make(size_t n) { struct t *x = malloc(sizeof *x + n); x->flags = 3; return x->text; }";
    let all = ["length", "room", "flags", "text"];
    for read in ["s[-1]", "*(int *)(s - 4)", "((int *)s)[-1]"] {
        let flags = format!(
            "static int flags(const char *s) {{ return {read}; }} int f(size_t n) {{ return flags(make(n)); }}"
        );
        held(&with_headers(&format!("{text}{flags}")), &all, "what lies before");
    }
    let legal =
        "static int flags(const char *s) { return ((struct t *)(s - offsetof(struct t, text)))->flags; }
        int f(size_t n) { return flags(make(n)); }";
    let checked = Program::c(&with_headers(&format!("{text}{legal}"))).check();
    assert_eq!(checked.named("t").next().map(|ty| ty.freedom()), Some(Freedom::Pinned));
    movable(
        "struct t { char name[8]; int a; char *end; long b; }; int f(struct t *x) { char *p = x->end; return p[-1]; }",
    );
}

#[test]
fn what_is_given_back_by_its_first_member_begins_with_it() {
    let types = "struct in { int k; long l; }; struct t { struct in in; int z; long y; };
        struct in *make(void) { struct t *x = malloc(sizeof *x); x->z = 1; return &x->in; }";
    held_first(&with_headers(&format!(
        "{types} void drop(struct in *x) {{ free(x); }} void f(void) {{ drop(make()); }}"
    )));
    let by_size = "void (*release)(void *, size_t); void f(struct in *x) { release((struct in *)((char *)x - 0), sizeof(struct t)); }";
    held_first(&with_headers(&format!(
        "{types} {by_size} static void own(void *x, size_t n) {{ free(x); }} void g(void) {{ release = own; }}"
    )));
    let around = "void drop(struct in *x) { free((char *)x - offsetof(struct t, in)); } void f(void) { drop(make()); }";
    movable(&with_headers(&format!("{types} {around}")));
    let held = "struct list { struct t *one; int n; }; void f(struct list *l) { free(l->one); free(l); } struct t { int a; long b; };";
    movable(&with_headers(held));
}

/// A person may judge each refusal; refusals beyond the listed ones must not be lost with the others.
#[test]
fn refusals_that_are_not_told_one_by_one_still_refuse() {
    let calls: String =
        (0..11).map(|n| format!("int write{n}(int fd, const void *from, size_t n);\n")).collect();
    let uses: String = (0..11).map(|n| format!("  write{n}(1, x, sizeof *x);\n")).collect();
    let text = format!("struct t {{ int a; long b; }};\n{calls}void f(struct t *x) {{\n{uses}}}");
    let checked = Program::c(&with_headers(&text)).check();
    let ty = checked.named("t").next().expect("the type t");
    let refusals: Vec<_> = ty.uses.iter().filter(|used| used.verdict == Verdict::Refuse).collect();
    assert_eq!(refusals.len(), 9, "{refusals:#?}");
    assert!(
        refusals.iter().any(|used| used.reason.contains("3 further uses forbid a move")),
        "{refusals:#?}"
    );
}

/// A macro that stores a value of any size. `ends_first` ends its first arm, `label` precedes the second.
fn stored(condition: &str, ends_first: &str, label: &str) -> String {
    format!(
        "struct t {{ char *name; int size; int room; long stamp; }};
        #define store(p, v) do {{ switch ({condition}) {{ \\
            case 4: {{ *(volatile unsigned *)(p) = (unsigned)(v); {ends_first} }} \\
            {label} case 8: {{ *(volatile unsigned long *)(p) = (unsigned long)(v); break; }} \\
            default: fail(); }} }} while (0)
        void fail(void); int depth;
        void f(struct t *x, int size) {{ store(&x->size, size); x->name = 0; }}"
    )
}

#[test]
fn an_arm_for_another_size_never_runs() {
    movable(&stored("sizeof(*(p))", "break;", ""));
    movable(&stored("sizeof(*(p))", "return;", ""));
    // The arm of eight bytes runs, or may run.
    for text in [
        stored("sizeof(*(p)) * 2", "break;", ""),
        stored("sizeof(*(p))", "", ""),
        stored("depth", "break;", ""),
        stored("sizeof(*(p))", "if (depth) goto inside; break;", "inside:"),
    ] {
        refused_or_held(&text);
    }
}

fn refused_or_held(text: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    assert_ne!(ty.freedom(), Freedom::Movable, "{text}\n{:#?}", ty.uses);
}

#[test]
fn each_argument_of_a_macro_declares_variables_of_its_own() {
    let text = "struct t { int kind; long stamp; }; struct other { char *name; int size; };
        void print(int, int); struct other *first(void *);
        #define loaded(x) ({ __typeof__(x) value = (x); value; })
        #define show(a, b) print(a, b)
        int f(struct t *x, struct other *y) { x->kind = 1; show(loaded(x)->kind, ((struct other *)loaded((void *)y))->size); return 0; }";
    movable(text);
    let one = text.replace("(void *)y", "(void *)x");
    refused_or_held(&one);
}
