//! Objects that arrive where no cast shows them: callbacks of the library, threads' results, further arguments, unions of
//! pointers, registers, sections. Each stands next to a program that does not depend on it.

use crate::program::{Program, asks, checked, keep, movable};
use lineup_sources::Verdict;

#[test]
fn a_function_of_the_library_that_is_called_back_is_given_the_objects() {
    let types = "#include <stdlib.h>\n#include <string.h>\n
        typedef int (*order)(const void *, const void *);
        struct t { char name[16]; int age; long pay; };
        int by_age(const void *a, const void *b) { return ((const struct t *)a)->age - ((const struct t *)b)->age; }\n";
    let of = |body: &str| Program::c(&format!("{types} {body}"));
    let text = "its start is taken for text";
    let sorted = |by: &str| format!("void f(struct t *all) {{ qsort(all, 3, sizeof *all, {by}); }}");
    asks(&of(&sorted("(order)strcmp")), &Verdict::First, text);
    asks(
        &of("void *f(struct t *all) { return bsearch(\"k\", all, 3, sizeof *all, (order)strcmp); }"),
        &Verdict::First,
        text,
    );
    let kept = "static order by = (order)strcmp; int f(struct t *a, struct t *b) { return by(a, b); }";
    asks(&of(kept), &Verdict::First, text);
    let foreign = format!("int far(const void *, const void *); {}", sorted("far"));
    asks(&of(&foreign), &Verdict::Refuse, "given to far(), which is not compiled here");
    movable(&of(&sorted("by_age")));
    movable(&of("static order by = by_age; int f(struct t *a, struct t *b) { return by(a, b); }"));
}

#[test]
fn the_result_of_a_thread_arrives_where_it_is_joined() {
    let of = |end: &str, joined: &str| {
        Program::c(&format!(
            "#include <pthread.h>\n#include <stdlib.h>\n
            struct t {{ int tag; long a; int b; }};
            static void *run(void *p) {{ struct t *x = malloc(sizeof *x); x->tag = 1; {end} }}
            long f(pthread_t thread) {{ {joined} }}
            void g(void) {{ pthread_t thread; pthread_create(&thread, 0, run, 0); f(thread); }}"
        ))
    };
    let reason = "its start is read as int";
    let typed = "int *r; pthread_join(thread, (void **)&r); return *r;";
    let cast = "void *r; pthread_join(thread, &r); return *(int *)r;";
    for joined in [typed, cast] {
        asks(&of("return x;", joined), &Verdict::First, reason);
        asks(&of("pthread_exit(x);", joined), &Verdict::First, reason);
    }
    let own = "void *r; pthread_join(thread, &r); struct t *x = r; return x->b;";
    movable(&of("return x;", own));
    movable(&of("pthread_exit(x);", own));
}

#[test]
fn further_arguments_are_read_as_numbers_too() {
    let of = |body: &str| {
        Program::c(&format!(
            "#include <stdarg.h>\nstruct t {{ int tag; long a; int b; }}; struct list {{ va_list in; }};
            {body} int f(struct t *x) {{ return take(1, x); }}"
        ))
    };
    let first = |body: &str| asks(&of(body), &Verdict::First, "its start is read as int");
    let take = |inside: &str| {
        format!(
            "static int take(int n, ...) {{ va_list ap; va_start(ap, n); int r = {inside}; va_end(ap); return r; }}"
        )
    };
    first(&take("*va_arg(ap, int *)"));
    first(&format!("static int one(va_list ap) {{ return *va_arg(ap, int *); }} {}", take("one(ap)")));
    first(
        "static int one(struct list *l) { return *va_arg(l->in, int *); }
        static int take(int n, ...) { struct list l; va_start(l.in, n); int r = one(&l); va_end(l.in); return r; }",
    );
    movable(&of(&take("va_arg(ap, struct t *)->b")));
    movable(&of(&take("va_arg(ap, char *) != 0")));
}

#[test]
fn a_union_of_pointers_to_an_object_and_a_number_reads_one_as_the_other() {
    let types = "struct t { int tag; long a; int b; }; union one { struct t *object; int *number; };";
    let bare = format!("{types} int f(union one u) {{ return *u.number; }}");
    asks(&Program::c(&bare), &Verdict::First, "its start is read as int");
    let transparent = bare.replace("number; };", "number; } __attribute__((transparent_union));");
    asks(&Program::c(&transparent), &Verdict::First, "its start is read as int");
    movable(&Program::c(&format!(
        "{types} struct value {{ int kind; union one of; }};
        int f(struct value *v) {{ return v->kind ? *v->of.number : v->of.object->b; }}"
    )));
    movable(&Program::c(
        "struct t { int tag; long a; int b; }; union one { struct t *object; char *text; }; union one u;",
    ));
}

#[test]
fn assembly_finds_parameters_in_registers() {
    let of = |function: &str| Program::c(&format!("struct t {{ int a; long b; int c; }}; {function}"));
    let naked = "__attribute__((naked)) int f(struct t *x) { __asm__(\"movl 16(%rdi), %eax\\n ret\"); }";
    asks(&of(naked), &Verdict::Refuse, "assembly uses it");
    let passed = "static int g(long n, void *p) { int r; __asm__ volatile(\"movl 16(%%rsi), %0\" : \"=r\"(r)); return r; }
        int f(struct t *x) { return g(1, x); }";
    asks(&of(passed), &Verdict::Refuse, "assembly uses it");
    movable(&of(
        "int f(struct t *x) { int r; __asm__ volatile(\"rdtsc\" : \"=a\"(r) : : \"edx\"); return r + x->c; }",
    ));
    movable(&of(
        "int f(struct t *x) { __asm__ volatile(\"orl $0, (%%rsp)\" : : : \"memory\"); return x->c; }",
    ));
}

#[test]
fn a_section_that_no_code_reads_is_read_elsewhere() {
    let types = "struct t { int a; long b; int c; };";
    let object = "static struct t head __attribute__((section(\".boot\"), used)) = { .a = 1 };";
    asks(
        &Program::c(&format!("{types} {object}")),
        &Verdict::Refuse,
        "the section .boot, from which nothing here reads it",
    );
    movable(&Program::c(&format!("{types} {object} int f(void) {{ return head.c; }}")));
    let ends = "extern struct t __start_boot[], __stop_boot[];
        int f(void) { int n = 0; for (struct t *p = __start_boot; p < __stop_boot; p++) n += p->c; return n; }";
    movable(&Program::c(&format!("{types} {} {ends}", object.replace(".boot", "boot"))));
}

#[test]
fn the_end_of_an_object_leads_to_its_last_members() {
    let of = |end: &str| {
        Program::c(&format!(
            "struct t {{ long a; int b; int last; }}; int f(struct t *x) {{ return {end}; }}"
        ))
    };
    let back = [
        "((int *)(x + 1))[-1]",
        "((int *)&x[1])[-1]",
        "*(int *)((char *)x + sizeof *x - 4)",
        "*(int *)((char *)(x + 1) - sizeof(int))",
    ];
    for end in back {
        assert_ne!(checked(&of(end)).freedom(), lineup_sources::Freedom::Movable, "{end}");
    }
    movable(&of("*(int *)(x + 1)"));
    movable(&of("(x + 1)[-1].last"));
    movable(&of("((char *)(x + 1) - (char *)x) == 4"));
}

#[test]
fn functions_that_delete_by_a_key_or_count_are_looked_into() {
    let of = |body: &str| {
        Program::c(&format!("#include <stdlib.h>\nstruct t {{ int a; long b; short c; }}; {body}"))
    };
    let key =
        "int map_delete(const void *key, unsigned long n) { const unsigned char *p = key; return p[8]; }
        int f(struct t *x) { return map_delete(x, sizeof *x); }";
    asks(&of(key), &Verdict::Refuse, "its bytes are read one by one");
    let counted = "void put_release(void *p) { if (--*(int *)p == 0) free(p); }
        void f(struct t *x) { put_release(x); } struct t *g(void) { return malloc(sizeof(struct t)); }";
    asks(&of(counted), &Verdict::First, "its start is read as int");
    movable(&of("static void *list; void t_free(void *p) { *(void **)p = list; list = p; }
        void f(struct t *x) { t_free(x); }"));
}

#[test]
fn a_member_that_arrives_as_bytes_holds_those_behind_it() {
    let of = |take: &str| {
        Program::c(&format!(
            "struct pair {{ int a, b; }}; struct t {{ short z; int x; int y; }};
            static int sum(void *bytes) {{ {take} }} int f(struct t *t) {{ return sum(&t->x); }}"
        ))
    };
    let reason = "8 bytes from x on are used as struct pair";
    asks(&of("struct pair *p = bytes; return p->a + p->b;"), &keep(&["x", "y"]), reason);
    movable(&of("int *p = bytes; return *p;"));
}

#[test]
fn sizes_of_lines_and_wide_characters_reach_beyond_a_member() {
    let of = |call: &str| {
        Program::c(&format!(
            "#include <stdio.h>\n#include <wchar.h>\nstruct t {{ short id; char a[4]; char b[4]; wchar_t w; wchar_t v; }};
            void f(struct t *x, FILE *file) {{ {call}; }}"
        ))
    };
    asks(&of("fgets(x->a, 8, file)"), &keep(&["a", "b"]), "bytes from a on");
    asks(&of("wmemset(&x->w, 5, 2)"), &keep(&["w", "v"]), "bytes from w on");
    movable(&of("fgets(x->a, 4, file)"));
    movable(&of("wmemset(&x->w, 5, 1)"));
}

#[test]
fn assignments_of_members_run_in_their_order() {
    let member = |assign: &str| {
        Program::cpp(&format!(
            "struct in {{ int v; {assign} }}; struct t {{ int a; in x; long b; in y; }}; void f(t &to, t &from) {{ to = from; }}"
        ))
    };
    let both = ["x", "y"].map(str::to_string).to_vec();
    asks(
        &member("in &operator=(const in &from);"),
        &Verdict::InOrder(both),
        "run in the order of their declarations",
    );
    movable(&member("in &operator=(const in &from) = default;"));
}

#[test]
fn templates_that_cast_their_parameter_look_at_bytes() {
    let of = |text: &str| Program::cpp(&format!("{text} struct t : of<t> {{ int a; long b; short c; }};"));
    let base =
        |body: &str| format!("template<class T> struct of {{ int first() const {{ return {body}; }} }};");
    let cast = base("*reinterpret_cast<const int *>(static_cast<const T *>(this))");
    asks(&of(&cast), &Verdict::Refuse, "its base class is made by the template of, which looks at bytes");
    movable(&of(&base("static_cast<const T *>(this)->c")));
    let function = |body: &str| {
        Program::cpp(&format!(
            "template<class T> int first(const T *of) {{ return {body}; }}
            struct t {{ int a; long b; short c; }}; int f(t *x) {{ return first(x); }}"
        ))
    };
    asks(
        &function("*(const int *)of"),
        &Verdict::Refuse,
        "it is given to the template first(), which looks at bytes",
    );
    movable(&function("of->c"));
}

#[test]
fn a_function_is_given_a_variable_where_its_scope_ends() {
    let of = |end: &str, variable: &str| {
        Program::c(&format!(
            "#include <stdlib.h>\n#define ENDED_BY(f) __attribute__((unused, cleanup(f)))\n
            struct t {{ short id; int a; int b; long last; }}; {end} void f(struct t *x) {{ {variable} }}"
        ))
    };
    let bytes = "static int seen; static void end(void *p) { seen = ((int *)p)[2]; }";
    let refused = "it is stepped through as an array of int";
    for variable in ["__attribute__((cleanup(end))) struct t own = {0};", "ENDED_BY(end) struct t own = {0};"]
    {
        asks(&of(bytes, variable), &Verdict::Refuse, refused);
    }
    let pointer = "static int seen; static void end(int **p) { seen = (*p)[1]; }";
    asks(&of(pointer, "ENDED_BY(end) int *a = &x->a;"), &keep(&["a", "b"]), "an index past the end of a");
    let foreign = "void far(struct t *p);";
    asks(
        &of(foreign, "ENDED_BY(far) struct t own;"),
        &Verdict::Refuse,
        "given to far(), which is not compiled here",
    );
    let own = "static int seen; static void end(struct t *p) { seen = p->b; }";
    movable(&of(own, "ENDED_BY(end) struct t own = {0};"));
    let freed = "static void end(void *p) { free(*(void **)p); }";
    movable(&of(freed, "ENDED_BY(end) struct t *own = malloc(sizeof *own);"));
}

#[test]
fn a_function_that_takes_or_gives_arrays_reads_objects_as_such() {
    let of = |function: &str, called: &str| {
        Program::c(&format!(
            "struct t {{ int a; int b; long c; long d; }}; static struct t one; {function} int f(struct t *x) {{ return {called}; }}"
        ))
    };
    let walked = "it is stepped through as an array of int";
    for takes in ["int (*p)[6]) { return (*p)[1]; }", "int p[6]) { return p[1]; }"] {
        let sum = format!("static int sum({takes}");
        asks(&of(&sum, "((int (*)(struct t *))sum)(x)"), &Verdict::Refuse, walked);
    }
    let gives = "static struct t *get(void) { return &one; }";
    asks(&of(gives, "(*((int (*(*)(void))[6])get)())[1]"), &Verdict::First, "its start is read as int");
    let other = "struct o { long y; int z; }; static int z(struct o *o) { return o->z; } static void *kept = (void *)z;";
    let called = "((int (*)(struct t *))kept)(x)";
    asks(&of(other, called), &Verdict::Refuse, "cast to or from o, which has other members");
    let same = "static int b(struct t *x) { return x->b; } static void *kept = (void *)b;";
    let uses = checked(&of(same, called)).uses;
    assert!(!uses.iter().any(|used| used.reason.starts_with("cast to or from")), "{uses:#?}");
    asks(&of("", "(*(int (*)[6])x)[1]"), &Verdict::Refuse, walked);
    movable(&of("static int b(struct t *x) { return x->b; }", "((int (*)(const struct t *))b)(x)"));
    movable(&of(gives, "((struct t *)((void *(*)(void))get)())->b"));
    movable(&of("static int sum(int (*p)[6]) { return (*p)[1]; }", "sum((int[1][6]){{1}}) + x->b"));
}
