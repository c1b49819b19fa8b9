//! Where members of structs of C are named, where objects of them are made and ended, and what keeps them in one piece.

use crate::program::Program;
use lineup_model::object_uses::Threads;
use lineup_sources::{SplitFacts, SplitHold};

const STRUCT: &str = "#include <stdlib.h>
#include <string.h>
#include <assert.h>
struct t { int key; struct t *next; char name[48]; double mass; long made_at; };
struct t *first;
";

pub(crate) fn facts(code: &str) -> SplitFacts {
    let checked = Program::c(&format!("{STRUCT}{code}\n")).check();
    let ty = checked.named("t").next().expect("the type t");
    ty.split.clone().expect("a struct of C")
}

/// `function line:column`, in order.
fn calls(code: &str) -> Vec<String> {
    let calls = facts(code).heap_calls;
    calls.iter().map(|call| format!("{:?} {}:{}", call.function, call.line - 5, call.column)).collect()
}

/// `member: reason` of each hold, `*` for all members.
pub(crate) fn holds(code: &str) -> Vec<String> {
    let facts = facts(code);
    let said = |hold: &SplitHold| format!("{}: {}", hold.member.as_deref().unwrap_or("*"), hold.reason);
    facts.holds_in_object().map(said).collect()
}

#[track_caller]
pub(crate) fn held(code: &str, hold: &str) {
    let found = holds(code);
    assert!(found.iter().any(|one| one.starts_with(hold)), "{hold}: {found:#?}");
}

#[track_caller]
pub(crate) fn free(code: &str) {
    assert_eq!(holds(code), Vec::<String>::new(), "{code}");
}

#[test]
fn calls_that_make_and_end_objects_have_their_places() {
    let code = "struct t *made(size_t n) { struct t *p = malloc(sizeof *p);
  if (!p) p = (struct t *)calloc(n, sizeof(struct t)); assert((first = malloc(n * sizeof(*first))));
  free(p); free((void *)first); return NULL; }";
    let found = calls(code);
    let expected = ["Malloc 1:42", "Calloc 2:27", "Malloc 2:72", "Free 3:3", "Free 3:12"];
    assert_eq!(found, expected);
    free(code);
}

#[test]
fn functions_that_give_on_the_library_s_memory_make_and_end_objects() {
    for (wrapper, function) in [
        ("void *get(size_t n) { return malloc(n); }", "Malloc"),
        ("static void *get(size_t n) { void *p = malloc(n ? n : 1); if (!p) abort(); return p; }", "Malloc"),
        (
            "void *get(size_t n) { void *p; if (n == 0) n = 1; while ((p = malloc(n)) == NULL) abort(); return p; }",
            "Malloc",
        ),
        ("void *get(unsigned n) { char *p = calloc(1, n); if (p) return p; return NULL; }", "Calloc"),
        (
            "void *get(size_t n) { void *p = malloc(n); if (p != NULL) memset(p, 0, n); return (void *)p; }",
            "Malloc",
        ),
        (
            "void say(int); void *get(size_t n) { void *p = malloc(n); if (p == NULL && n != 0) { say(3); exit(1); } return p; }",
            "Malloc",
        ),
        (
            "int lacks; void *get(size_t n) { if (n == 0) return NULL; void *p = malloc(n); if (p) return p; lacks++; abort(); }",
            "Malloc",
        ),
        (
            "void *get(size_t n) { void *p; if (__builtin_expect(!!((p = malloc(n)) == NULL), 0)) abort(); return p; }",
            "Malloc",
        ),
    ] {
        let code = format!(
            "{wrapper}\nstatic void put(void *p) {{ if (p) free(p); }}
            void f(size_t n) {{ first = get(sizeof *first); first = get(n * sizeof(struct t)); put(first); }}"
        );
        free(&code);
        let named: Vec<String> = facts(&code)
            .heap_calls
            .iter()
            .map(|call| format!("{:?} by {} {}:{}", call.function, call.name(), call.line - 5, call.column))
            .collect();
        let made = |column| format!("{function} by get 3:{column}");
        assert_eq!(named, [made(40), made(68), "Free by put 3:95".to_owned()], "{code}");
    }
    let by_two = "void *get(size_t size, size_t n) { void *p = calloc(n, size); if (!p) abort(); return p; }
        void f(void) { first = get(sizeof *first, 4); }";
    let facts = facts(by_two);
    let wrapper = facts.heap_calls.first().and_then(|call| call.wrapper.clone()).expect("a wrapper");
    assert_eq!(wrapper.declaration, "void *get(size_t, size_t)");
    assert!(wrapper.takes_count && !wrapper.is_static);
}

#[test]
fn functions_that_do_more_with_memory_hold_all_members() {
    for more in [
        "char pool[4096], *next = pool; void *get(size_t n) { void *p = next; next += n; return p; }",
        "void *get(size_t n) { char *p = malloc(n + 16); return p + 16; }",
        "void *get(size_t n) { n = (n + 63) / 64 * 64; return malloc(n); }",
        "void *get(size_t n) { n += 8; return malloc(n); }",
        "void grow(size_t *n) { *n = 80; } void *get(size_t n) { grow(&n); return malloc(n); }",
        "void *kept; void *get(size_t n) { void *p = malloc(n); kept = p; return p; }",
        "void *kept; void *get(size_t n) { return kept = malloc(n); }",
        "void keep(void *p); void *get(size_t n) { void *p = malloc(n); keep(p); return p; }",
        "void *get(size_t n) { static void *p; if (!p) p = malloc(n); return p; }",
        "void *get(size_t n) { size_t *p = malloc(n); *p = n; return p; }",
        "void *get(size_t n) { void *p = malloc(n), *q = malloc(n); free(q); return p; }",
        "void *get(size_t n) { return malloc(80); }",
        "int calls; void *get(size_t n) { calls++; return malloc(n); }",
        "void *get(size_t n) { static size_t all; all += n; return malloc(n); }",
        "void say(int); void *get(size_t n) { say(3); return malloc(n); }",
        "void say(int); void *get(size_t n) { void *p = malloc(n); if (p) say(3); return p; }",
        "void *get(size_t n) { if (n > 100) return NULL; return malloc(n); }",
        "size_t left = 9000; void *get(size_t n) { if (n > left) abort(); return malloc(n); }",
        "void *get(size_t n);",
    ] {
        held(&format!("{more}\nvoid f(void) {{ first = get(sizeof *first); }}"), "*: get() gives an object");
    }
    for more in [
        "void *list; void put(void *p) { *(void **)p = list; list = p; }",
        "void put(void *p) { memset(p, 0, 8); free(p); }",
        "void *last; void put(void *p) { free(last); last = p; }",
        "int live; void put(void *p) { live--; free(p); }",
        "void say(int); void put(void *p) { say(3); free(p); }",
        "void put(void *p);",
    ] {
        held(&format!("{more}\nvoid f(void) {{ put(first); }}"), "*: put() is given an object");
    }
    let sum = "void *get(size_t size, size_t n) { return malloc(n + size); }
        void f(void) { first = get(sizeof *first, 4); }";
    held(sum, "*: get() gives an object");
    held(
        "#define NEW(p) p = get(sizeof *(p))\nvoid *get(size_t n) { return malloc(n); }\nvoid f(void) { NEW(first); }",
        "*: get() gives",
    );
}

#[test]
fn members_have_their_places_in_arguments_of_macros_too() {
    let code = "#define TWICE(x) ((x) + (x))
int f(struct t *p) { assert(p->mass > 0); return TWICE(p->key) + (*p).key + first[2].next->key; }";
    let found: Vec<String> = facts(code)
        .named
        .iter()
        .map(|one| format!("{} {}:{}", one.member, one.line - 5, one.column))
        .collect();
    assert_eq!(found, ["mass 2:32", "key 2:59", "key 2:71", "next 2:86", "key 2:92"]);
    free(code);
}

#[test]
fn ordinary_use_of_pointers_holds_nothing() {
    free(
        "struct t **table; double *kept;
        static int less(const void *a, const void *b) { return (*(struct t *const *)a)->key < (*(struct t **)b)->key; }
        void f(struct t *p, size_t n) { table = malloc(n * sizeof(struct t *)); table[0] = p; kept = &p->mass;
        qsort(table, n, sizeof *table, less); memset(p->name, 0, sizeof p->name); if (p == NULL || !first) p = 0;
        for (const struct t *one = p; one; one = one->next) { strcpy(first->name, one->name); } free(table); }
        union both { struct t *t; long number; }; struct holder { struct t *t[4]; };",
    );
}

#[test]
fn objects_that_no_call_makes_hold_all_members() {
    held("struct t all[3][2];", "*: a variable is or holds an object");
    held("int f(struct t p) { return p.key; }", "*: a variable is or holds an object");
    held("struct u { int a; struct t t; };", "*: another type holds an object by value");
    held("union u { struct t t; long words[9]; };", "*: another type holds an object by value");
    held("void f(struct t *p, struct t *q) { *p = *q; }", "*: an object is copied or made as a value");
    held("void f(struct t *p) { *p = (struct t){.key = 1}; }", "*: an object is copied or made as a value");
    held("struct t f(void); int g(void) { return f().key; }", "*: an object is copied or made as a value");
}

#[test]
fn pointers_that_were_to_something_else_hold_all_members() {
    held("void *f(struct t *p) { return p; }", "*: a pointer to an object comes from");
    held("struct t *f(void *p) { return p; }", "*: a pointer to an object comes from");
    held("long f(struct t *p) { return (long)p; }", "*: a pointer to an object comes from");
    held(
        "struct t *f(double *mass) { return (struct t *)((char *)mass - 64); }",
        "*: a pointer to an object",
    );
    held("void f(struct t *p) { memset(p, 0, 80); }", "*: memset() is given an object");
    held("void f(struct t *p, struct t *q) { memcpy(p, q, 80); }", "*: memcpy() is given an object");
    held("int f(struct t *p, struct t *q) { return memcmp(p, q, 80); }", "*: memcmp() is given an object");
    held("void f(struct t *p) { p = realloc(p, 800); }", "*: realloc() gives an object");
    held("void f(void *p) { struct t **q = (struct t **)(long **)p; }", "*: a pointer to pointers");
    held("void f(int *(*g)(int *)) { ((int (*)(struct t *))g)(first); }", "*: a pointer to pointers");
    held("union u { struct t *t; double *d; };", "*: a union holds a pointer");
    held("void *m(size_t); void f(void) { first = m(sizeof(struct t)); }", "*: m() gives an object");
}

#[test]
fn memory_of_another_size_and_measured_objects_hold_all_members() {
    held("void f(void) { first = malloc(80); }", "*: memory is asked for by another size");
    held("void f(void) { first = malloc(sizeof(first)); }", "*: memory is asked for by another size");
    held("void f(void) { first = malloc(sizeof(struct t[4])); }", "*: memory is asked for by another size");
    held("unsigned long f(void) { return sizeof(struct t); }", "*: sizeof measures it");
    held("#include <stddef.h>\nunsigned long f(void) { return offsetof(struct t, mass); }", "*: offsetof");
    held("long f(void) { return (long)&((struct t *)0)->mass; }", "*: its offsets are measured");
    held(
        "int *f(struct t *p) { return &p->key; }",
        "key: its address, which is that of the object, is taken",
    );
    held("#define NEW(p) p = malloc(sizeof *(p))\nvoid f(void) { NEW(first); }", "*: a macro makes");
    held("#define END(p) free(p)\nvoid f(void) { END(first); }", "*: a macro ends");
    held("void *malloc(size_t n) { return first + n; }", "*: the program has a function malloc of its own");
}

#[test]
fn members_that_a_macro_may_spell_stay() {
    held("#define OF(p) ((p)->mass)\ndouble f(void) { return OF(first); }", "mass: a macro names it");
    held("#define TEXT(x) (#x, x)\ndouble f(void) { return TEXT(first->mass); }", "mass: a macro names it");
    held(
        "#define IN(x) TEXT(x)\n#define TEXT(x) (#x, x)\ndouble f(void) { return IN(first->mass); }",
        "mass: a macro",
    );
}

#[test]
fn a_program_has_one_thread_where_nothing_starts_another() {
    let has_one = |code: &str| facts(code).threads == Threads::One;
    assert!(has_one(
        "#include <stdio.h>\n#include <time.h>\nvoid f(void) { printf(\"%ld\", (long)time(NULL)); }"
    ));
    assert!(has_one(
        "#ifdef THREADS\n#include <pthread.h>\n#endif\nvoid g(void);\nvoid f(void) { g(); }\nvoid g(void) {}"
    ));
    assert!(has_one("char *memalign(); double log10(); void f(void) { log10(1.0 + *memalign(8, 8)); }"));
    assert!(has_one(
        "void *malloc(unsigned long);\nint atoi(const char *);\nvoid *f(void) { return malloc(atoi(\"8\")); }"
    ));
    assert!(has_one(
        "#include <pthread.h>\npthread_key_t key;\nint f(void) { return pthread_key_create(&key, NULL); }"
    ));
    for builtin in [
        "va_list all; va_start(all, how); vprintf(how, all); va_end(all);",
        "if (__builtin_expect(!how, 0)) __builtin_trap();",
        "static int count; __sync_fetch_and_add(&count, 1); __atomic_store_n(&count, 1, __ATOMIC_SEQ_CST);",
        "char *all = __builtin_alloca(80); __builtin_memset(all, 0, 80);",
    ] {
        let code = format!(
            "#include <stdarg.h>\n#include <stdio.h>\nvoid say(const char *how, ...) {{ {builtin} }}"
        );
        assert!(has_one(&code), "{builtin}");
    }
    for code in [
        "#include <pthread.h>\nvoid f(void *(*g)(void *)) { pthread_t t; pthread_create(&t, NULL, g, NULL); }",
        "#include <threads.h>\nvoid f(thrd_start_t g) { thrd_t t; thrd_create(&t, g, NULL); }",
        "#include <dlfcn.h>\nvoid *f(void) { return dlopen(\"x\", RTLD_NOW); }",
        "#include <signal.h>\n#include <time.h>\nvoid f(timer_t *t) { timer_create(0, NULL, t); }",
        "void start(void (*f)(void));\nvoid g(void) {}\nvoid f(void) { start(g); }",
    ] {
        assert!(!has_one(code), "{code}");
    }
    let Threads::Several(start) = facts("int f(void);\n\nint g(void) { return f(); }").threads else {
        panic!("one thread");
    };
    assert_eq!((&*start.name, start.path.contains("a.c")), ("f", true), "{start:?}");
}

/// The reasons that keep objects out of blocks of the program's own.
fn out_of_blocks(code: &str) -> Vec<String> {
    facts(code).holds_out_of_blocks().map(|hold| hold.reason.clone()).collect()
}

#[test]
fn objects_lie_in_blocks_whatever_is_done_with_their_bytes_where_nothing_ends_memory() {
    for code in [
        "struct t copied(struct t *p) { return *p; }",
        "int f(struct t *p) { memset(p, 0, sizeof *p); return (int)sizeof(struct t); }",
        "void *f(struct t *p) { return p; }",
        "struct t *f(void) { return (struct t *)malloc(80); }",
        "struct v { int key; }; struct v *f(struct t *p) { return (struct v *)p; }",
        "int *f(struct t *p) { return &p->key; }",
        "void put(void *p); void f(struct t *p) { put(&p); }",
    ] {
        assert!(!holds(code).is_empty(), "{code}");
        assert_eq!(out_of_blocks(code), Vec::<String>::new(), "{code}");
    }
}

#[test]
fn objects_that_other_code_may_end_lie_where_they_are() {
    const END: &str = "void end(char *p) { free(p); }\n";
    for (code, reason) in [
        ("void *f(struct t *p) { return p; }", "a pointer to an object comes from one"),
        ("void f(struct t *p) { end((char *)p); }", "a pointer to an object comes from one"),
        ("int *f(struct t *p) { return &p->key; }", "its address, which is that of the object"),
        ("struct t *f(void) { return (struct t *)malloc(80); }", "memory is asked for by another size"),
        ("struct u { struct t one; };", "another type holds an object by value"),
        ("#define END(p) free(p)\nvoid f(struct t *p) { END(p); }", "a macro ends its objects"),
        ("struct t *g(void); struct t *f(void *p) { return p; }", "a pointer to an object comes from one"),
        ("union u { struct t *one; char *other; };", "a union holds a pointer"),
        ("void f(struct t **p) { end((char *)(void **)p); }", "a pointer to pointers"),
        ("void put(void *p); void f(struct t *p) { put(&p); }", "the bytes of a pointer to an object"),
        (
            "void f(char *to, struct t *p) { memcpy(to, &p, sizeof p); }",
            "the bytes of a pointer to an object",
        ),
    ] {
        let found = out_of_blocks(&format!("{END}{code}"));
        assert!(found.iter().any(|one| one.starts_with(reason)), "{code}: {found:#?}");
    }
    for ender in [
        "void g(struct t *p) { first = realloc(p, 2 * sizeof *p); }",
        "void (*h)(void *) = free; void g(struct t *p) { h(p); }",
        "#include <malloc.h>\nsize_t g(struct t *p) { return malloc_usable_size(p); }",
    ] {
        assert!(!out_of_blocks(ender).is_empty(), "{ender}");
    }
    let outer =
        out_of_blocks("struct u { struct t one; }; struct u *f(void) { return malloc(sizeof(struct u)); }");
    assert_eq!(outer, ["another type holds an object by value"]);
    let bits = |code: &str| facts(code).holds_of_addresses().count();
    assert_eq!(bits("union u { struct t *one; unsigned long bits; };"), 1);
    assert_eq!(bits("union u { struct t *one; int value; };"), 0);
    let own = out_of_blocks("void free(void *p) { (void)p; }");
    assert!(own.iter().any(|one| one.contains("a function free of its own")), "{own:#?}");
}

#[test]
fn arrays_of_pointers_are_sorted_cleared_resized_and_freed() {
    free(
        "int by_key(const void *a, const void *b);
        void f(struct t **all, size_t n) { qsort(all, n, sizeof *all, by_key); memset(all, 0, n * sizeof *all);
            all = realloc(all, 2 * n * sizeof *all); free(all); }",
    );
}
