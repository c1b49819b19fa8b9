//! Places reached by numbers, and objects identified by their first word, each next to a program that does not depend
//! on the order.

use crate::program::{Program, asks, keep, movable};
use lineup_sources::Verdict;

#[test]
fn an_index_past_a_member_through_a_variable_holds_what_lies_between() {
    let types = "struct t { int low; char room[12]; int high; long last; };";
    let of = |body: &str| Program::c(&format!("{types} int f(struct t *x) {{ {body} }}"));
    let reason = "an index past the end of low";
    asks(&of("int *p = &x->low; return p[4];"), &keep(&["low", "room", "high"]), reason);
    asks(&of("int *p = &x->low; p += 4; return *p;"), &keep(&["low", "room", "high"]), reason);
    asks(&of("int *p = &x->low; return *(p + 1);"), &keep(&["low", "room"]), reason);
    movable(&of("int *p = &x->low; return p[0];"));
    movable(&of("char *p = x->room; return p[11];"));
}

#[test]
fn a_step_from_a_member_that_a_pointer_to_members_names_holds_those_of_its_type() {
    let of = |body: &str| {
        Program::cpp(&format!(
            "struct base {{ long first; }}; struct t : base {{ int low; int high; char room; long last; }};
            int f(t *x, t &y, int t::*m) {{ {body} }}"
        ))
    };
    for body in
        ["int *p = &(x->*m); return p[1];", "return *(&(y.*m) + 1);", "int *p = &(y.*m); return *++p;"]
    {
        let uses = crate::program::checked(&of(body)).uses;
        assert!(!uses.is_empty(), "{body}");
    }
    movable(&of("int *p = &(x->*m); return *p + y.*m;"));
}

#[test]
fn an_address_as_an_offset_in_a_file_holds_the_object() {
    let of = |body: &str| {
        Program::c(&format!(
            "#include <unistd.h>\nstruct t {{ int low; int high; long last; }};
            void f(struct t *x, int memory, char *to) {{ {body} }}"
        ))
    };
    for body in [
        "pread(memory, to, 16, (off_t)(unsigned long)x);",
        "pwrite(memory, to, 8, (off_t)(unsigned long)&x->low);",
        "lseek(memory, (off_t)x, SEEK_SET);",
    ] {
        asks(&of(body), &Verdict::Refuse, "an offset in a file");
    }
    movable(&of("pread(memory, to, 16, x->last);"));
}

#[test]
fn what_is_read_where_several_types_come_is_not_each_of_them() {
    let text = "struct t { int low; int high; long last; }; struct other { int all[8]; char c; };
        static int second(int *all) { return all[1]; }
        int f(struct t *x, struct other *y) { return second(y->all) + (&x->low == 0); }";
    movable(&Program::c(text));
}

#[test]
fn code_that_memory_of_several_types_begins_with_stays_first() {
    let text = "#include <stdlib.h>\ntypedef long (*op)(unsigned char *);
        struct t { op code; long value; char name[8]; }; struct other { op code; int left, right; };
        static long one(unsigned char *at) { struct t *x = (struct t *)at; return x->value; }
        static long two(unsigned char *at) { struct other *x = (struct other *)at; return x->left; }
        static long go(unsigned char *at) { return (*(op *)at)(at); }
        long f(int n) { unsigned char *all = malloc(64); *(op *)all = n ? one : two; return go(all); }";
    asks(&Program::c(text), &Verdict::First, "a pointer that it is taken from is read as");
}

/// Adjacent steps of a program, each of which begins with the function that runs it.
const STEPS: &str = "#include <stdlib.h>\nstruct run { unsigned char *at; long out; };
    typedef void (*op)(struct run *);
    struct t { op code; long value; char name[8]; };
    static void add(struct run *r) { struct t *x = (struct t *)r->at; r->out += x->value; r->at += sizeof *x; }
    static unsigned char *room; static size_t used;
    static void *emit(size_t n) { void *p = room + used; used += n; return p; }
    void make(void) { struct t *x = emit(sizeof *x); x->code = add; x->value = 3; }";

#[test]
fn the_word_that_a_pointer_to_bytes_stands_at_stays_first() {
    let reason = "a pointer that it is taken from is read as";
    let run = "void go(struct run *r) { op code = *(op *)r->at; code(r); }";
    asks(&Program::c(&format!("{STEPS} {run}")), &Verdict::First, reason);
    let local = "void go(struct run *r) { unsigned char *at = r->at; (*(op *)at)(r); }";
    asks(&Program::c(&format!("{STEPS} {local}")), &Verdict::First, reason);
    let named = "void go(struct run *r) { ((struct t *)r->at)->code(r); }";
    movable(&Program::c(&format!("{STEPS} {named}")));
    let memory = "#include <stdlib.h>\nstruct t { int kind; long value; char name[8]; };
        static int kind_of(const void *all) { return *(const int *)all; }
        static long value_of(const void *all) { const struct t *x = all; return x->value; }
        long f(void) { void *all = malloc(64); return kind_of(all) ? value_of(all) : 0; }";
    asks(&Program::c(memory), &Verdict::First, reason);
}

#[test]
fn functions_that_two_units_declare_with_other_types_cast() {
    let own = "struct t { int number; char room[12]; int state; long more; }; struct t all[8];";
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let both =
        |inner: &str, outer: &str| Program::of(&[("a.c", &format!("{own} {inner}")), ("b.c", outer)], &calls);
    let reason = "cast to or from view";
    asks(
        &both(
            "struct t *get(int at) { return &all[at]; }",
            "struct view { int id; char opaque[12]; int state; }; struct view *get(int); int f(void) { return get(3)->state; }",
        ),
        &keep(&["number", "room", "state"]),
        reason,
    );
    asks(
        &both(
            "int put(int at, const struct t *x) { return x->state + at; }",
            "struct view { long id; }; int put(int, const struct view *); int f(struct view *x) { return put(3, x); }",
        ),
        &Verdict::Refuse,
        reason,
    );
    movable(&both(
        "struct t *get(int at) { return &all[at]; }",
        "struct hidden; struct hidden *get(int); int f(void) { return get(3) != 0; }",
    ));
    movable(&both(
        "static struct t *get(int at) { return &all[at]; } int g(void) { return get(1)->state; }",
        "struct view { long id; }; static struct view one; static struct view *get(int at) { return &one + at; } long f(void) { return get(0)->id; }",
    ));
}

/// Callbacks: in a struct, in a variable, as a parameter; and pointers in a struct.
#[test]
fn callbacks_and_pointers_that_two_units_declare_with_other_types_cast() {
    let own = "struct t { int number; char room[12]; int state; long more; };";
    let view = "struct view { int id; char opaque[12]; int state; };";
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let both = |inner: &str, outer: &str| {
        Program::of(&[("a.c", &format!("{own} {inner}")), ("b.c", &format!("{view} {outer}"))], &calls)
    };
    let look = "static int look(struct view *x) { return x->state; }";
    for (inner, outer) in [
        (
            "struct ops { int flags; int (*look)(struct t *); }; extern struct ops table;
             int f(struct t *x) { return table.look(x); }",
            "struct ops { int flags; int (*look)(struct view *); }; struct ops table = { 0, look };",
        ),
        (
            "extern int (*see)(int, struct t *); int f(struct t *x) { return see(1, x); }",
            "static int other(int at, struct view *x) { return x->state + at; } int (*see)(int, struct view *) = other;",
        ),
        (
            "extern int (*looks[2])(struct t *); int f(struct t *x) { return looks[1](x); }",
            "int (*looks[2])(struct view *) = { look, look };",
        ),
        (
            "int each(int (*look)(struct t *)); static struct t one; int each(int (*look)(struct t *)) { return look(&one); }",
            "int each(int (*look)(struct view *)); int g(void) { return each(look); }",
        ),
        (
            "struct ring { long count; struct t *first; }; extern struct ring ring; void f(struct t *x) { ring.first = x; }",
            "struct ring { long count; struct view *first; }; struct ring ring; int g(void) { return ring.first->state; }",
        ),
    ] {
        let outer = format!("{look} {outer}");
        asks(&both(inner, &outer), &keep(&["number", "room", "state"]), "cast to or from view");
    }
    // Tables of one unit's own, whose types share a name by chance.
    movable(&both(
        "struct ops { int (*look)(struct t *); }; static int see(struct t *x) { return x->state; }
         static struct ops table = { see }; int f(struct t *x) { return table.look(x); }",
        &format!(
            "{look} struct ops {{ int (*look)(struct view *); }}; static struct ops table = {{ look }}; int g(struct view *x) {{ return table.look(x); }}"
        ),
    ));
}

const VECTOR: &str = "#include <stdlib.h>\n#include <string.h>\nstruct t { int key; char room[12]; int weight; long more; };
    struct brief { int id; char blank[12]; int weight; };
    struct vector { char *memory; size_t count, size; };
    static void *at(struct vector *v, size_t i) { return v->memory + i * v->size; }
    static void push(struct vector *v, const void *one) { v->memory = realloc(v->memory, (v->count + 1) * v->size);
                                                          memcpy(at(v, v->count++), one, v->size); }
    void fill(struct vector *v, struct t *x) { push(v, x); }";

#[test]
fn elements_of_a_container_are_what_was_copied_there() {
    let other = "int weigh(struct vector *v) { struct brief *x = at(v, 3); return x->weight; }";
    asks(
        &Program::c(&format!("{VECTOR} {other}")),
        &keep(&["key", "room", "weight"]),
        "cast to or from brief",
    );
    let same = "int weigh(struct vector *v) { struct t *x = at(v, 3); return x->weight; }";
    movable(&Program::c(&format!("{VECTOR} {same}")));
}

#[test]
fn numbers_added_to_the_address_of_memory_hold_what_lies_there() {
    let types =
        "#include <stdint.h>\n#include <stdlib.h>\nstruct t { uint32_t low; char room[12]; uint32_t high; };
        static uintptr_t map[4];
        #define BLOCK(n) ((struct t *)map[n])
        uint32_t high(void) { return BLOCK(0)->high; }";
    let of = |body: &str| {
        Program::c(&format!("{types} void f(void) {{ char *m = malloc(64); map[0] = (uintptr_t)m; {body} }}"))
    };
    let reason = "is read at a fixed offset of the memory that it lies in";
    asks(&of("*(uint32_t *)(map[0] + 16) = 3;"), &Verdict::Refuse, reason);
    asks(&of("*(uint32_t *)(m + 16) = 3;"), &Verdict::Refuse, reason);
    movable(&of("BLOCK(0)->high = 3;"));
    let tagged = "#include <stdint.h>\nstruct t { int a; long b; };
        struct t *plain(uintptr_t tagged) { return (struct t *)(tagged & ~3); } uintptr_t tag(struct t *x) { return (uintptr_t)x | 1; }";
    movable(&Program::c(tagged));
}

/// A function that writes machine code, and a call of that code.
fn machine_code(bytes: &str, signature: &str) -> Program {
    Program::c(&format!(
        "#include <stddef.h>\n#include <string.h>\n#include <sys/mman.h>\nstruct t {{ int low; char room[12]; int high; }};
        int slow(const struct t *x) {{ return x->high; }} int (*present)(const struct t *) = slow;
        typedef int (*fast)(const {signature} *);
        static fast make(void) {{ unsigned char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                                  {bytes} return (fast)code; }}
        int f(struct t *x) {{ return make()(x); }} int g(struct t *x) {{ fast call = make(); return call(x); }}"
    ))
}

#[test]
fn machine_code_that_the_program_writes_knows_offsets_by_offsetof_or_by_numbers() {
    let number =
        "static const unsigned char load[] = { 0x8b, 0x47, 16, 0xc3 }; memcpy(code, load, sizeof load);";
    let taken = "code[0] = 0x8b; code[1] = 0x47; code[2] = offsetof(struct t, high); code[3] = 0xc3;";
    for signature in ["void", "struct t"] {
        asks(&machine_code(number, signature), &Verdict::Refuse, "machine code that the program writes");
        movable(&machine_code(taken, signature));
    }
}

#[test]
fn a_word_that_is_copied_from_a_pointer_to_bytes_is_read_there() {
    let reason = "a pointer that it is taken from is read as";
    let run = "void go(struct run *r) { op code; __builtin_memcpy(&code, r->at, sizeof code); code(r); }";
    asks(&Program::c(&format!("{STEPS} {run}")), &Verdict::First, reason);
    let key = |code: &str| {
        Program::c(&format!(
            "#include <string.h>\nstruct t {{ int key; char room[12]; int weight; }};
            {code} unsigned f(struct t *x) {{ return hash(x); }}"
        ))
    };
    let copied = "static unsigned hash(const void *p) { unsigned h; memcpy(&h, p, sizeof h); return h; }";
    asks(&key(copied), &Verdict::First, "its start is read as unsigned int");
    movable(&key(
        "static unsigned hash(const struct t *p) { unsigned h; memcpy(&h, &p->key, sizeof h); return h; }",
    ));
}

#[test]
fn numbers_added_to_a_variable_move_it() {
    let types = "#include <stdint.h>\n#include <string.h>\nstruct t { int low; char room[12]; int high; long last; };";
    let of = |body: &str| Program::c(&format!("{types} int f(struct t *x) {{ {body} }}"));
    let reason = "int is read at a fixed offset";
    asks(&of("uintptr_t at = (uintptr_t)x; at += 16; return *(int *)at;"), &Verdict::Refuse, reason);
    asks(&of("char *at = (char *)x; at += 16; return *(int *)at;"), &Verdict::Refuse, reason);
    movable(&of("struct t *at = x; at += 1; return at->high;"));
    let span = |body: &str| Program::c(&format!("{types} void f(struct t *x) {{ {body} }}"));
    let past = "an index past the end of low";
    asks(&span("char *p = (char *)&x->low; memset(p, 0, 20);"), &keep(&["low", "room", "high"]), past);
    movable(&span("char *p = (char *)&x->low; memset(p, 0, 4);"));
    let array = "struct t { int low; int all[4]; int high; long last; };";
    let of = |body: &str| Program::c(&format!("{array} int f(struct t *x) {{ {body} }}"));
    asks(&of("int *p = x->all; return p[4];"), &keep(&["all", "high"]), "an index past the end of all");
    movable(&of("int *p = x->all; return p[3];"));
}

#[test]
fn functions_have_the_names_that_labels_aliases_and_lookups_give_them() {
    let own = "struct t { int number; char room[12]; int state; long more; };";
    let look = |body: &str| {
        format!(
            "struct view {{ long id; int state; }}; int look(struct view *x) {{ return x->state; }} {body}"
        )
    };
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let both = |inner: &str, outer: &str| Program::of(&[("a.c", inner), ("b.c", outer)], &calls);
    let view = |program: &Program, reason: &str| {
        let checked = program.check();
        let ty = checked.named("view").next().expect("the type view");
        assert!(
            ty.uses.iter().any(|used| used.verdict == Verdict::Refuse && used.reason.contains(reason)),
            "{ty:#?}"
        );
    };
    let label =
        format!("{own} int peek(struct t *) __asm__(\"look\"); int f(struct t *x) {{ return peek(x); }}");
    view(&both(&label, &look("")), "cast to or from t");
    let caller = format!("{own} int peek(struct t *); int f(struct t *x) {{ return peek(x); }}");
    view(&both(&caller, &look("int peek(void *) __attribute__((alias(\"look\")));")), "cast to or from t");
    let lookup = format!(
        "#include <dlfcn.h>\n{own} int f(struct t *x) {{ return ((int (*)(struct t *))dlsym(0, \"look\"))(x); }}"
    );
    view(&both(&lookup, &look("")), "is found by its name: dlsym()");
    let same = look(
        "int peek(struct view *) __attribute__((alias(\"look\"))); int g(struct view *x) { return look(x); }",
    );
    let checked = Program::c(&same).check();
    let ty = checked.named("view").next().expect("the type view");
    assert!(!ty.uses.iter().any(|used| used.verdict == Verdict::Refuse), "{ty:#?}");
    let kept = format!(
        "{own} static struct t *kept; void set(struct t *x) {{ kept = x; }} void *get(void) {{ return kept; }}"
    );
    let reader =
        "struct view { long id; int state; }; struct view *get(void); int f(void) { return get()->state; }";
    asks(&both(&kept, reader), &Verdict::Refuse, "cast to or from view");
    let header = |text: &str| text.replace(own, "#include \"t.h\"\n");
    let typed = format!("{own} struct t *get(void); int f(void) {{ return get()->state; }}");
    movable(&Program::of(&[("t.h", own), ("a.c", &header(&kept)), ("b.c", &header(&typed))], &calls));
}
