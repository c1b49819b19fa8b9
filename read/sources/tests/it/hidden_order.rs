//! Further programs in C that depend on the order of a type's members without saying so: each is refused, or its
//! members held, with the reason.

use crate::program::{Program, keep};
use lineup_sources::{Freedom, Verdict};

/// The type `t` of the program is refused, for this reason.
fn refused(text: &str, reason: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    let is_it =
        |used: &&lineup_sources::Use| used.verdict != Verdict::Harmless && used.reason.contains(reason);
    assert!(ty.uses.iter().any(|used| is_it(&used)), "{text}\n{:#?}", ty.uses);
    assert_eq!(ty.freedom(), Freedom::Refused, "{text}\n{:#?}", ty.uses);
}

/// The type `t` keeps these members, for this reason, and may move others.
fn held(text: &str, verdict: &Verdict, reason: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    let is_it = |used: &lineup_sources::Use| used.verdict == *verdict && used.reason.contains(reason);
    assert!(ty.uses.iter().any(is_it), "{text}\n{:#?}", ty.uses);
    assert_eq!(ty.freedom(), Freedom::Pinned, "{text}\n{:#?}", ty.uses);
}

fn movable(text: &str) {
    let checked = Program::c(text).check();
    let ty = checked.named("t").next().expect("the type t");
    assert_eq!(ty.freedom(), Freedom::Movable, "{text}\n{:#?}", ty.uses);
}

#[test]
fn a_pointer_kept_in_a_functions_static_variable_is_followed() {
    let text = "#include <unistd.h>\nstruct t { int a; long b; };
        static void *keep(void *p) { static void *kept; void *old = kept; kept = p; return old; }
        void put(struct t *x) { keep(x); } long out(int fd) { return write(fd, keep(0), 16); }";
    refused(text, "write()");
}

#[test]
fn an_offset_made_of_sizes_is_a_fixed_one() {
    let text = "struct t { long a; int b, c; };
        int f(struct t *x) { return *(int *)((char *)x + sizeof(long)); }";
    refused(text, "fixed offset");
    movable("struct t { int a; char b; }; char *f(struct t *x) { return (char *)x + sizeof *x; }");
}

#[test]
fn an_offset_worked_out_elsewhere_needs_offsetof_somewhere() {
    let reason = "read at an offset that is worked out";
    let given = "struct t { int a, b; long c; }; int get(void *base, int off) { return *(int *)((char *)base + off); }
        int f(struct t *x) { return get(x, 4); }";
    refused(given, reason);
    let listed = "struct t { int a, b; long c; }; static const int offsets[] = { 0, 4 };
        int f(struct t *x, int i) { return *(int *)((char *)x + offsets[i]); }";
    refused(listed, reason);
    let integers = "#include <stdint.h>\nstruct t { int a, b; long c; };
        int f(struct t *x) { uintptr_t p = (uintptr_t)x; return *(int *)(p + 4); }";
    refused(integers, "read at a fixed offset");
    let table = "#include <stddef.h>\nstruct t { int a, b; long c; };
        static const unsigned offsets[] = { offsetof(struct t, a), offsetof(struct t, b) };
        int f(struct t *x, int i) { return *(int *)((char *)x + offsets[i]); }";
    movable(table);
}

#[test]
fn a_first_member_read_through_a_generic_pointer_stays_first() {
    let by_name =
        "#include <stdlib.h>\n#include <string.h>\nstruct t { const char *name; int b, c; }; struct t all[3];
        static int order(const void *key, const void *x) { return strcmp(key, *(char *const *)x); }
        struct t *f(const char *key) { return bsearch(key, all, 3, sizeof all[0], order); }";
    held(by_name, &Verdict::First, "its start is read as char *");
    let pointers = "#include <stdlib.h>\nstruct t { int key; long b; int c; };
        static int order(const void *a, const void *b) { return **(int **)a - **(int **)b; }
        void f(struct t **x, int n) { qsort(x, n, sizeof *x, order); }";
    held(pointers, &Verdict::First, "its start is read as int");
    let chain = "struct t { void *next; int k, l; }; static void push(void **head, void *x) { *(void **)x = *head; *head = x; }
        void f(void **head, struct t *x) { push(head, x); }";
    held(chain, &Verdict::First, "its start is read as void *");
}

#[test]
fn a_pointer_to_a_pointer_that_is_cast_casts_the_object() {
    let text = "struct other { int k; double d; }; struct t { long q; int z; char e; };
        struct other *f(struct t **x) { return *(struct other **)x; }";
    refused(text, "other members");
}

#[test]
fn what_a_library_gives_by_value_or_defines_is_its_own() {
    let given = "struct t { int a; long b; }; extern struct t library_make(void);
        long f(void) { struct t x = library_make(); return x.b; }";
    refused(given, "library_make() gives one");
    let defined = "struct t { int a; long b; }; extern struct t library_state; long f(void) { return library_state.b; }";
    refused(defined, "library_state is a variable that is not defined here");
    movable(
        "struct t { int a; long b; }; extern struct t state; struct t state; long f(void) { return state.b; }",
    );
}

#[test]
fn a_call_whose_sizes_go_beyond_the_member_means_its_neighbours() {
    let bytes = "#include <stdio.h>\nstruct t { int a, b, c; long d; char e; };
        void f(struct t *x, FILE *file) { fwrite(&x->a, 12, 1, file); }";
    held(bytes, &keep(&["a", "b", "c"]), "bytes from a on");
    let things = "#include <stdio.h>\nstruct t { int a, b, c; long d; char e; };
        void f(struct t *x, FILE *file) { fwrite(&x->a, sizeof(int), 3, file); }";
    held(things, &keep(&["a", "b", "c"]), "bytes from a on");
    movable(
        "#include <stdio.h>\nstruct t { int a, b; long d; };
        void f(struct t *x, FILE *file) { fwrite(&x->a, sizeof x->a, 1, file); }",
    );
}

#[test]
fn two_members_read_as_one_stay_together() {
    let text = "#include <stdint.h>\nstruct t { int a, b; long c; char d; };
        uint64_t f(struct t *x) { return *(uint64_t *)&x->a; }";
    held(text, &keep(&["a", "b"]), "8 bytes from a on");
    let element =
        "struct t { int a; char name[8]; char rest[8]; int c; }; char f(struct t *x) { return x->name[12]; }";
    held(element, &keep(&["name", "rest"]), "bytes from name on");
}

#[test]
fn the_place_behind_a_member_is_the_next_ones() {
    let text = "struct t { int a, b; char buffer[4]; long d; char e; }; char *f(struct t *x) { return (char *)(&x->b + 1); }";
    held(text, &keep(&["a", "b", "buffer"]), "stepped through");
}

#[test]
fn objects_inside_an_object_whose_bytes_are_known_are_known() {
    let inside = "#include <unistd.h>\nstruct t { int a; long b; }; struct outer { struct t in; int z; };
        void f(struct outer *x, int fd) { write(fd, x, sizeof *x); }";
    refused(inside, "it lies in outer: it is given to write()");
    let mapped =
        "#include <sys/mman.h>\nstruct t { int a; long b; }; struct head { long n; struct t inner[4]; };
        struct head *map(int fd) { return mmap(0, 4096, 3, MAP_SHARED, fd, 0); }
        long f(int fd) { return map(fd)->inner[1].b; }";
    refused(mapped, "it lies in head: ");
    let first = "struct t { int tag; long b; int c; }; struct outer { struct t head; int z; };
        int f(void *x) { return *(int *)x; } int g(struct outer *x) { return f(x); }";
    held(first, &Verdict::First, "it lies in outer: its start is read as int");
}

#[test]
fn memory_that_is_filled_by_others_holds_their_order() {
    let text = "#include <unistd.h>\n#include <stdlib.h>\nstruct t { int k; long l; char e; };
        long f(int fd) { char *b = malloc(64); read(fd, b, 64); struct t *x = (struct t *)b; return x->l; }";
    refused(text, "memory that is used as one is given to read()");
    let wrapped = "#include <unistd.h>\n#include <stdlib.h>\nstruct t { int k; long l; }; 
        static void *xmalloc(size_t n) { void *p = malloc(n); if (!p) abort(); return p; }
        long read_text(int fd) { char *b = xmalloc(64); return read(fd, b, 64); }
        struct t *f(void) { struct t *x = xmalloc(sizeof *x); x->k = 1; return x; }";
    movable(wrapped);
}

#[test]
fn bytes_of_an_object_that_go_to_a_buffer_or_come_from_one_are_known() {
    let out = "#include <string.h>\nstruct t { int k; long l; };
        void f(unsigned char *out, struct t *x) { memcpy(out, x, sizeof *x); }";
    refused(out, "a buffer of bytes");
    let back = "#include <string.h>\nstruct t { int k; long l; };
        long f(const unsigned char *in) { struct t x; memcpy(&x, in, sizeof x); return x.l; }";
    refused(back, "it is filled from a buffer of bytes");
    movable(
        "#include <stdlib.h>\n#include <string.h>\nstruct t { int k; long l; };
        void *f(struct t *x) { void *p = malloc(sizeof *x); memcpy(p, x, sizeof *x); return p; }",
    );
}

#[test]
fn a_size_that_only_the_run_knows_may_cut_an_object() {
    let text = "#include <string.h>\nstruct t { int a, b; long c; };
        void g(struct t *x, void *from, unsigned n) { memcpy(x, from, n); } void f(struct t *x, void *from) { g(x, from, 8); }";
    refused(text, "known only when it runs");
    let chosen = "#include <string.h>\nstruct part { int x, y; }; struct t { int a, b; long c; char d; };
        void f(struct t *x, void *from, int all) { memcpy(x, from, all ? sizeof(struct t) : sizeof(struct part)); }";
    held(chosen, &keep(&["a", "b"]), "its first 8 bytes");
}

#[test]
fn an_object_that_is_allocated_short_ends_where_it_did() {
    let text = "#include <stdlib.h>\nstruct part { int x, y; }; struct t { int a, b; long c; char d; };
        struct t *f(int all) { return all ? malloc(sizeof(struct t)) : malloc(sizeof(struct part)); }";
    held(text, &keep(&["a", "b"]), "its first 8 bytes");
}

#[test]
fn text_that_an_object_begins_with_stays_at_its_start() {
    let printed = "#include <stdio.h>\nstruct t { char name[8]; int b, c; };
        int f(struct t *x) { return printf(\"%s\", (char *)x); }";
    held(printed, &Verdict::First, "its start is taken for text");
    movable(
        "#include <stdio.h>\nstruct t { char name[8]; int b, c; }; int f(struct t *x) { return printf(\"%p\", (void *)x); }",
    );
}

#[test]
fn a_function_takes_an_object_for_what_its_parameter_says() {
    let text = "struct other { int p, q; long r; }; struct t { double b; long c; int d; };
        static long use(struct other *x) { return x->r; }
        static long call(long (*f)(void *), void *x) { return f(x); }
        long f(struct t *x) { return call((long (*)(void *))use, x); }";
    refused(text, "other members");
}

#[test]
fn values_without_braces_of_their_own_follow_the_order() {
    let reason = "without braces of their own";
    let array = "struct t { const char *n; int a, b; }; static struct t all[] = { \"x\", 1, 2, \"y\", 3, 4 };
        int f(int i) { return all[i].a; }";
    refused(array, reason);
    let nested = "struct t { int a, b, c; }; struct outer { int k; struct t in; int z; };
        static struct outer one = { 1, 2, 3, 4, 5 }; int f(void) { return one.in.a + one.z; }";
    refused(nested, reason);
    movable(
        "struct t { int a, b, c; }; struct outer { int k; struct t in; };
        static struct t model; struct outer f(void) { struct outer x = { 1, model }; return x; }",
    );
}

/// The type `t` of a program in several files is refused, for this reason.
fn refused_in(files: &[(&str, &str)], calls: &[&str], reason: &str) {
    let checked = Program::of(files, calls).check();
    let ty = checked.named("t").next().expect("the type t");
    let is_it = |used: &lineup_sources::Use| used.verdict == Verdict::Refuse && used.reason.contains(reason);
    assert!(ty.uses.iter().any(is_it), "{files:?}\n{:#?}", ty.uses);
}

const VARIABLE: &str = "struct t { long a, b; int c; long d; }; struct t cur = { .a = 1 }, *next = &cur;\n";

#[test]
fn what_assembly_finds_by_name_is_used_by_it() {
    let source = format!("{VARIABLE}long second(void); long f(void) {{ return second() + cur.c; }}");
    for line in ["movq cur+8(%rip), %rax", "movq next(%rip), %rax"] {
        let assembly = format!(".globl second\nsecond:\n  {line}\n  ret\n");
        let files = [("a.c", source.as_str()), ("b.S", assembly.as_str())];
        refused_in(&files, &["cc -c a.c", "cc -c b.S"], "by its name: assembly");
        let inside = format!("{source}\n__asm__(\".text\\nsecond: {line}\\n ret\\n\");");
        refused_in(&[("a.c", inside.as_str())], &["cc -c a.c"], "by its name: assembly");
    }
    let other = [("a.c", source.as_str()), ("b.S", "second:\n  movq current(%rip), %rax\n")];
    let checked = Program::of(&other, &["cc -c a.c", "cc -c b.S"]).check();
    assert_eq!(checked.named("t").next().expect("the type t").freedom(), Freedom::Movable);
}

#[test]
fn an_alias_and_a_lookup_find_the_variable() {
    let alias = format!(
        "{VARIABLE}extern int view[4] __attribute__((alias(\"cur\"))); int f(void) {{ return view[1]; }}"
    );
    refused_in(&[("a.c", alias.as_str())], &["cc -c a.c"], "by its name: an alias");
    let lookup =
        format!("#include <dlfcn.h>\n{VARIABLE}int f(void) {{ int *p = dlsym(0, \"cur\"); return p[1]; }}");
    refused_in(&[("a.c", lookup.as_str())], &["cc -c a.c"], "by its name: dlsym()");
    let open = lookup.replace("int f(void)", "int f(const char *name)").replace("\"cur\"", "name");
    refused_in(&[("a.c", open.as_str())], &["cc -c a.c"], "by its name: dlsym()");
    let called =
        open.replace("int *p = dlsym(0, name); return p[1];", "return ((int (*)(void))dlsym(0, name))();");
    let checked = Program::c(&called).check();
    assert_eq!(checked.named("t").next().expect("the type t").freedom(), Freedom::Movable);
}

#[test]
fn values_that_do_something_keep_the_order_in_which_they_are_worked_out() {
    let in_order = |values: &str| -> Vec<String> {
        let text = format!(
            "int next(void); extern int all, *at; struct t {{ int a; long b; int c; }};
            int f(int n, int m) {{ struct t x = {{ {values} }}; return x.c; }}"
        );
        let checked = Program::c(&text).check();
        let ty = checked.named("t").next().expect("the type t");
        let named = ty.uses.iter().find_map(|used| match &used.verdict {
            Verdict::InOrder(names) => Some(names.clone()),
            _ => None,
        });
        named.unwrap_or_default()
    };
    assert_eq!(in_order("next(), 1, next()"), ["a", "c"]);
    assert_eq!(in_order(".c = next(), .a = next()"), ["c", "a"]);
    assert_eq!(in_order("n++, m, n"), ["a", "b", "c"]);
    assert_eq!(in_order("next(), n, m"), [""; 0]);
    assert_eq!(in_order("next(), all, m"), ["a", "b"], "a call may change it");
    assert_eq!(in_order("*at, m, next()"), ["a", "c"]);
    assert_eq!(in_order("all, *at, m"), [""; 0]);
    assert_eq!(in_order("n = 4, 1, n"), ["a", "c"]);
    assert_eq!(in_order("((n) = 4), m, 1"), ["a", "b"]);
    assert_eq!(in_order("n + 4, m * n, n"), [""; 0]);
    assert_eq!(in_order("(n) + 4, (m), n == m"), [""; 0]);
    assert_eq!(in_order("-n, !m, ~n"), [""; 0]);
}

#[test]
fn a_unit_that_cannot_be_read_may_use_whatever_it_can_name() {
    let header = "struct t { int a; long b; }; struct outer { int n; struct t *inside; }; struct t *give(void); extern struct t one;
        struct u { double x; int y; };";
    let own = "#include \"t.h\"\nstruct t one; struct t *give(void) { return &one; } struct u two; struct outer three;";
    let calls = ["cc -c a.c", "cc -c b.c"];
    for text in ["int f(struct t *);", "x = o->inside + 1;", "f(give());", "f(&one);"] {
        let broken = format!("#include \"nowhere.h\"\nvoid g(void) {{ {text} }}");
        let files = [("t.h", header), ("a.c", own), ("b.c", broken.as_str())];
        let checked = Program::of(&files, &calls).try_check(&[]).expect("libclang reads one");
        assert_eq!((checked.units_read, checked.units), (1, 2));
        let freedom = |name: &str| checked.named(name).next().expect("the type").freedom();
        assert_eq!((freedom("t"), freedom("u")), (Freedom::Refused, Freedom::Movable), "{text}");
    }
}
