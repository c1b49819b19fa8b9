//! Members that must lie at multiples of more bytes than their type asks for, sizes that are written as numbers, and
//! what assembly and the linker reach, each beside a program that does not depend on it.

use crate::program::{Program, asks, checked, keep, movable};
use lineup_sources::Verdict;

/// The member keeps its place, and the last one keeps the size.
fn held_aligned(text: &str, member: &str, last: &str) {
    let program = Program::c(text);
    asks(&program, &keep(&[member]), "at a multiple of");
    asks(&program, &keep(&[last]), "so its size stays");
}

#[test]
fn an_atomic_operation_on_more_than_the_member_holds_its_alignment() {
    let types = "struct t { int a; char room[12]; unsigned long pair[2]; int b; int last; };";
    let swap = |ty: &str| {
        format!(
            "{types} _Bool f(struct t *x, {ty} was, {ty} now) {{ return __sync_bool_compare_and_swap(({ty} *)x->pair, was, now); }}"
        )
    };
    held_aligned(&swap("unsigned __int128"), "pair", "last");
    movable(&Program::c(&swap("unsigned long")));
    let halves = "struct t { int a; unsigned low, high; int b; int last; };
        void f(struct t *x) { __atomic_fetch_add((unsigned long *)&x->low, 1, __ATOMIC_SEQ_CST); }";
    held_aligned(halves, "low", "last");
    let asked = swap("unsigned __int128").replace("pair[2]", "pair[2] __attribute__((aligned(16)))");
    let uses = checked(&Program::c(&asked)).uses;
    assert!(!uses.iter().any(|used| used.reason.contains("its size stays")), "{uses:#?}");
}

#[test]
fn vectors_hold_the_alignment_of_what_they_are_read_from() {
    let types = "typedef float v4 __attribute__((vector_size(16)));
        struct t { int a; char room[12]; float v[4]; int b; int last; };";
    held_aligned(&format!("{types} v4 f(struct t *x) {{ return *(v4 *)x->v; }}"), "v", "last");
    held_aligned(&format!("{types} v4 f(struct t *x) {{ v4 *p = (v4 *)x->v; return p[0]; }}"), "v", "last");
    held_aligned(
        &format!("{types} float *f(struct t *x) {{ return __builtin_assume_aligned(x->v, 16); }}"),
        "v",
        "last",
    );
    held_aligned(
        &format!("{types} int f(struct t *x) {{ return ((unsigned long)x->v & 15) == 0; }}"),
        "v",
        "last",
    );
    held_aligned(&format!("{types} int f(struct t *x) {{ return (unsigned long)&x->v % 16; }}"), "v", "last");
    movable(&Program::c(&format!("{types} float f(struct t *x) {{ return x->v[3]; }}")));
    movable(&Program::c(&format!("{types} int f(struct t *x) {{ return ((unsigned long)x->v & 3) == 0; }}")));
    let outer = "typedef float v4 __attribute__((vector_size(16))); struct in { float v[4]; };
        struct t { int a; char room[12]; struct in in; int b; int last; }; v4 f(struct in *x) { return *(v4 *)x->v; }";
    asks(&Program::c(outer), &keep(&["in"]), "at a multiple of 16 bytes");
}

#[test]
fn aligned_intrinsics_ask_for_more_than_others() {
    let of = |call: &str| {
        Program::c(&format!(
            "#include <emmintrin.h>\nstruct t {{ int a; char room[12]; float v[4]; int b; int last; }}; __m128 f(struct t *x) {{ return {call}(x->v); }}"
        ))
    };
    asks(&of("_mm_load_ps"), &keep(&["last"]), "so its size stays");
    let free = checked(&of("_mm_loadu_ps"));
    assert!(!free.uses.iter().any(|used| used.reason.contains("its size stays")), "{:#?}", free.uses);
}

#[test]
fn a_number_that_is_the_size_holds_the_size() {
    let types = "struct t { int a; char room[52]; long last; };";
    let of = |index: &str| {
        Program::c(&format!(
            "{types} struct t *f(void *all, unsigned i) {{ return (struct t *)((char *)all + {index}); }}"
        ))
    };
    let reason = "which is its size, so its size stays";
    asks(&of("((unsigned long)i << 6)"), &keep(&["last"]), reason);
    asks(&of("(unsigned long)i * 64"), &keep(&["last"]), reason);
    movable(&of("i * sizeof(struct t)"));
    movable(&of("((unsigned long)i << 7)"));
}

#[test]
fn assembly_that_adds_a_number_to_a_member_reaches_others() {
    let of = |template: &str| {
        Program::c(&format!(
            "struct t {{ int low; char room[12]; int high; }};
            int f(struct t *x) {{ int v; __asm__({template} : \"=r\"(v) : \"m\"(x->low)); return v; }}"
        ))
    };
    for template in ["\"movl 16+%1, %0\"", "\"movl 16%1, %0\"", "\"movl %1+16, %0\""] {
        asks(&of(template), &Verdict::Refuse, "assembly uses it");
    }
    movable(&of("\"movl %1, %0\""));
    let pair = "struct t { int a; char room[12]; unsigned long pair[2]; int b; int last; };
        void f(struct t *x) { __asm__ volatile(\"lock cmpxchg16b %0\" : \"+m\"(x->pair) : : \"memory\"); }";
    held_aligned(pair, "pair", "last");
}

#[test]
fn objects_in_a_section_are_what_its_ends_lead_to() {
    let own = "struct t { int low; char room[12]; int high; };
        #define ENTRY(name) static struct t name __attribute__((section(\"entries\"), used)) = { .low = 1 }
        ENTRY(one);";
    let both = |other: &str| {
        Program::of(&[("a.c", own), ("b.c", other)], &["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"])
    };
    let by_bytes = "extern char __start_entries[], __stop_entries[];
        int f(void) { int s = 0; for (char *p = __start_entries; p < __stop_entries; p += 20) s += *(int *)(p + 16); return s; }";
    asks(&both(by_bytes), &Verdict::Refuse, "int is read at a fixed offset");
    let by_type = "struct t { int low; char room[12]; int high; }; extern struct t __start_entries[], __stop_entries[];
        int f(void) { int s = 0; for (struct t *p = __start_entries; p < __stop_entries; p++) s += p->high; return s; }";
    let header = Program::of(
        &[
            ("t.h", "struct t { int low; char room[12]; int high; };"),
            ("a.c", &own.replace("struct t { int low; char room[12]; int high; };", "#include \"t.h\"\n")),
            (
                "b.c",
                &by_type.replace("struct t { int low; char room[12]; int high; };", "#include \"t.h\"\n"),
            ),
        ],
        &["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"],
    );
    movable(&header);
}

#[test]
fn bytes_that_a_record_of_bytes_is_laid_over_are_a_format() {
    let of = |member: &str| {
        Program::c(&format!(
            "struct t {{ unsigned char kind; {member} size[2]; unsigned char flags; }};
            int f(unsigned char *p) {{ struct t *x = (struct t *)p; return x->size[1]; }}"
        ))
    };
    asks(&of("unsigned char"), &Verdict::Refuse, "as a format is");
    movable(&of("long"));
}
