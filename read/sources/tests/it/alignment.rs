//! Members that need more alignment than their type requires, sizes written as numbers, and data that assembly and the
//! linker reach. Each stands next to a program that does not depend on it.

use crate::program::{Program, asks, checked, keep, movable};
use lineup_sources::Verdict;

/// The member keeps its place, and the last one keeps the size.
fn held_aligned(text: &str, member: &str, last: &str) {
    held_aligned_in(&Program::c(text), member, last);
}

fn held_aligned_in(program: &Program, member: &str, last: &str) {
    asks(program, &keep(&[member]), "at a multiple of");
    asks(program, &keep(&[last]), "so its size stays");
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
fn a_directive_asks_for_the_alignment_of_what_it_names() {
    let loop_over = |clause: &str| {
        let text = format!(
            "struct t {{ int a; char room[12]; float v[4]; int b; int last; }};
            void f(struct t *x) {{ float *p = x->v;
            #pragma omp simd {clause}\n for (int i = 0; i < 4; i++) p[i] += 1; }}"
        );
        Program::of(&[("a.c", &text)], &["cc -fopenmp -c a.c"])
    };
    held_aligned_in(&loop_over("aligned(p : 16)"), "v", "last");
    held_aligned_in(&loop_over("safelen(4) \\\n aligned(p)"), "v", "last");
    movable(&loop_over("safelen(4)"));
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

/// A member that is an array keeps its place, by code that is given the address of its elements; and may move with
/// other code.
fn held_by_pointer(types: &str, user: &str, other: &str) {
    for given in [
        "float *p = x->v; return use(p);",
        "return use(x->v);",
        "return use(&x->v[0]);",
        "return use((x->v));",
    ] {
        let of = |code: &str| format!("{types} {code} int f(struct t *x) {{ {given} }}");
        held_aligned(&of(user), "v", "last");
        movable(&Program::c(&of(other)));
    }
}

const ARRAY: &str = "#include <emmintrin.h>\n#include <stddef.h>\n#include <stdint.h>\n
    struct t { int a; char room[12]; float v[4]; int b; int last; };
    typedef struct { float f[4]; } __attribute__((aligned(16))) vector;
    struct matrix { __m128 row[1]; }; typedef double aligned_double __attribute__((aligned(16)));";

#[test]
fn arrays_are_followed_to_where_they_are_read_as_vectors() {
    let plain = "static int use(float *p) { return p[0] > p[3]; }";
    for user in [
        "static int use(const float *p) { return _mm_cvtss_si32(_mm_load_ps(p)); }",
        "static int use(const void *p) { return _mm_cvtsi128_si32(_mm_load_si128(p)); }",
        "static int use(float *p) { vector *all = (vector *)p; return all->f[0] > 0; }",
        "static int use(float *p) { return ((struct matrix *)p)->row[0][0] > 0; }",
        "static int use(float *p) { aligned_double *all = (aligned_double *)p; return all[0] > 0; }",
        "static int use(float *p) { __asm__ volatile(\"vmovaps %0, %%xmm0\" : : \"m\"(*p) : \"xmm0\"); return 0; }",
        "static int use(float *p) { __asm__ volatile(\"movaps (%0), %%xmm0\" : : \"r\"(p) : \"xmm0\"); return 0; }",
        "static int use(float *p) { uintptr_t at = (uintptr_t)p; return at % 16 == 0; }",
        "static int use(float *p) { return ((unsigned)(uintptr_t)p & 31) == 0; }",
    ] {
        held_by_pointer(ARRAY, user, plain);
    }
    let halves = "static int use(float *p) { return (int)(((uintptr_t)p & 0xffffffff) % 53); }";
    held_by_pointer(ARRAY, "static int use(float *p) { return (uintptr_t)p % 4096 == 0; }", halves);
    let asked = "static int rest(const void *p, size_t n) { return ((uintptr_t)p & (n - 1)) == 0; }
        static int use(float *p) { return rest(p, 16); }";
    held_by_pointer(ARRAY, asked, plain);
    let by_macro = "\n#define IS_ALIGNED(p, n) (((uintptr_t)(p) & ((n) - 1)) == 0)\n
        static int use(float *p) { return IS_ALIGNED(p, 16); }";
    let rounded_up = "\n#define UP(p, n) (((uintptr_t)(p) + (n) - 1) & ~(uintptr_t)((n) - 1))\n
        static int use(float *p) { return UP(p, 16) != 0; }";
    held_by_pointer(ARRAY, by_macro, rounded_up);
}

#[test]
fn arrays_are_followed_into_templates() {
    let of = |body: &str| {
        Program::cpp(&format!(
            "#include <emmintrin.h>\nstruct t {{ int a; char room[12]; float v[4]; int b; int last; }};
            template <class T> static inline float first(const T *p) {{ {body} }}
            float f(t *x) {{ return first(x->v); }}"
        ))
    };
    let loads = of("return _mm_cvtss_f32(_mm_load_ps(reinterpret_cast<const float *>(p)));");
    held_aligned_in(&loads, "v", "last");
    movable(&of("return p[0] + p[3];"));
}

#[test]
fn arrays_of_bytes_are_followed_as_well() {
    let of = |load: &str| {
        Program::c(&format!(
            "#include <emmintrin.h>\nstruct t {{ int a; char room[12]; unsigned char key[16]; int b; int last; }};
            static int g(const unsigned char *p) {{ return _mm_cvtsi128_si32({load}((const __m128i *)p)); }}
            int f(struct t *x) {{ return g(x->key); }}"
        ))
    };
    asks(&of("_mm_load_si128"), &keep(&["last"]), "so its size stays");
    let free = checked(&of("_mm_loadl_epi64"));
    assert!(!free.uses.iter().any(|used| used.reason.contains("so its size stays")), "{:#?}", free.uses);
}

#[test]
fn whole_objects_that_are_changed_in_one_step_keep_their_place() {
    let types = "#include <stdatomic.h>\nstruct pair { unsigned long one, two; };
        struct t { int a; char room[12]; struct pair both; int b; int last; };";
    let swap = format!(
        "{types} _Bool f(struct t *x, struct pair was, struct pair now) {{
            return atomic_compare_exchange_strong((_Atomic struct pair *)&x->both, &was, now); }}"
    );
    held_aligned(&swap, "both", "last");
    movable(&Program::c(&format!("{types} void f(struct t *x, struct pair now) {{ x->both = now; }}")));
    let cpp = |code: &str| {
        Program::cpp(&format!(
            "struct pair {{ unsigned long one, two; }}; struct t {{ int a; char room[12]; pair both; int b; int last; }};
            namespace std {{ template <class T> struct alignas(sizeof(T)) atomic {{ T value; T load() const; }};
                             template <class T> struct atomic_ref {{ explicit atomic_ref(T &); T load() const; }}; }}
            {code}"
        ))
    };
    let reference = cpp("pair f(t *x) { return std::atomic_ref<pair>(x->both).load(); }");
    asks(&reference, &keep(&["both"]), "std::atomic_ref asks for both at a multiple of 16 bytes");
    let cast = cpp("pair f(t *x) { return reinterpret_cast<std::atomic<pair> *>(&x->both)->load(); }");
    asks(&cast, &keep(&["both"]), "asks for both at a multiple of 16 bytes");
    movable(&cpp("pair f(t *x) { return x->both; }"));
}

#[test]
fn blocks_of_a_file_without_buffers_keep_their_place() {
    let of = |flags: &str| {
        Program::c(&format!(
            "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <unistd.h>\n
            struct t {{ int a; char room[508]; char block[512]; int b; char rest[508]; }};
            long f(struct t *x) {{ return write(open(\"x\", O_RDWR | {flags}), x->block, sizeof x->block); }}"
        ))
    };
    asks(&of("O_DIRECT"), &keep(&["block"]), "write() of a file with O_DIRECT");
    movable(&of("O_CREAT"));
}

#[test]
fn steps_products_and_masks_that_are_the_size_hold_the_size() {
    let types = "#include <stdint.h>\nstruct t { int a; char room[52]; long last; };";
    let of = |code: &str| Program::c(&format!("{types} {code}"));
    let reason = "objects are found by the number 64";
    for code in [
        "int f(struct t *all) { int s = 0; for (char *p = (char *)all; s < 9; p += 64) s += ((struct t *)p)->a; return s; }",
        "int f(void *all, unsigned i) { char *p = all; p += i * 64; return ((struct t *)p)->a; } int g(struct t *x) { return f(x, 3); }",
        "static const unsigned long step = 64; struct t *f(struct t *x, int i) { return (struct t *)((char *)x + i * step); }",
        "long f(struct t *all, struct t *x) { return ((char *)x - (char *)all) >> 6; }",
        "long f(struct t *all, struct t *x) { return ((char *)x - (char *)all) / 64; }",
        "struct t *f(void *p) { return (struct t *)((uintptr_t)p & ~(uintptr_t)63); }",
        "struct t *f(struct t *x) { return (struct t *)((char *)x + 64); }",
    ] {
        asks(&of(code), &keep(&["last"]), reason);
    }
    for code in [
        "int f(struct t *all) { int s = 0; for (char *p = (char *)all; s < 9; p += sizeof *all) s += ((struct t *)p)->a; return s; }",
        "long f(struct t *all, struct t *x) { return ((char *)x - (char *)all) / sizeof *x; }",
        "long f(struct t *all, struct t *x) { return x - all; }",
        "struct t *f(void *p) { return (struct t *)((uintptr_t)p & ~(uintptr_t)4095); }",
    ] {
        movable(&of(code));
    }
}

/// An allocator's later blocks have the head of a pool alone, and what it gives away behind that.
#[test]
fn an_object_of_which_memory_has_the_head_alone_keeps_the_head() {
    let types = "#include <stdlib.h>\nstruct head { char *last, *end; struct t *next; };
        struct t { struct head head; long max; struct t *current; void *large; };
        #define ALIGNED(p) ((char *)(((unsigned long)(p) + 15) & ~15ul))\n";
    let of = |code: &str| Program::c(&format!("{types} {code}"));
    let reason = "other things are put behind its first 24 bytes";
    for code in [
        "char *f(struct t *pool, unsigned long n) { struct t *block; char *m = malloc(4096);
            block = (struct t *)m; block->head.end = m + 4096; block->head.next = 0;
            m += sizeof(struct head); m = ALIGNED(m); block->head.last = m + n; pool->current->head.next = block; return m; }",
        "static char *rest(char *m) { struct t *block = (struct t *)m; block->head.next = 0; return m + sizeof(struct head); }
            char *f(void) { return rest(malloc(4096)); }",
        "void f(struct t *block) { block->head.last = (char *)block + sizeof(struct head); }",
        "void f(struct t *block) { block->head.last = (char *)block + sizeof block->head; }",
    ] {
        asks(&of(code), &keep(&["head"]), reason);
    }
    for code in [
        "void f(struct t *pool) { pool->head.last = (char *)pool + sizeof(struct t); }",
        "char *f(unsigned long n) { struct t *pool; char *m = malloc(n); pool = (struct t *)m; pool->max = n; m += sizeof *pool; return m; }",
        "char *f(unsigned long n) { char *m = malloc(n); m += sizeof(struct head); return m; } long g(struct t *pool) { return pool->max; }",
    ] {
        movable(&of(code));
    }
}

#[test]
fn assembly_reaches_further_members_by_registers_and_by_texts_of_macros() {
    let of = |code: &str| Program::c(&format!("struct t {{ int low; char room[12]; int high; }}; {code}"));
    let body = |setup: &str, template: &str, operand: &str| {
        of(&format!(
            "\n#define OFFSET \"16\"\n#define NONE \"\"\nint f(struct t *x) {{ int v; {setup} __asm__({template} : \"=r\"(v) : {operand}); return v; }}"
        ))
    };
    let pointer = "int *p = &x->low;";
    let reason = "assembly adds a number to the address of low";
    asks(&body(pointer, "\"movl 16(%1), %0\"", "\"r\"(p)"), &Verdict::Refuse, reason);
    asks(&body("", "\"leaq %1, %%rax; movl 16(%%rax), %0\"", "\"m\"(x->low)"), &Verdict::Refuse, reason);
    asks(&body("", "\"movl \" OFFSET \"+%1, %0\"", "\"m\"(x->low)"), &Verdict::Refuse, reason);
    movable(&body(pointer, "\"movl (%1), %0\"", "\"r\"(p)"));
    movable(&body("", "\"movl \" NONE \"%1, %0\"", "\"m\"(x->low)"));
}

#[test]
fn ends_of_sections_have_the_names_that_a_linker_script_gives_them() {
    let both = |own: &str, other: &str| {
        let types = "struct t { int low; char room[12]; int high; };";
        Program::of(
            &[("a.c", &format!("{types} {own}")), ("b.c", other)],
            &["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"],
        )
    };
    let own = "static struct t one __attribute__((section(\"entries\"), used)) = { .low = 1 };";
    let walk = "extern char entries_begin[], entries_end[];
        int f(void) { int s = 0; for (char *p = entries_begin; p < entries_end; p += 20) s += *(int *)(p + 16); return s; }";
    asks(&both(own, walk), &Verdict::Refuse, "int is read at a fixed offset");
    let elsewhere = "static struct t one = { .low = 1 }; int g(void) { return one.low; }";
    movable(&both(elsewhere, walk));
    let named = format!("{own} int g(void) {{ return one.low; }}");
    movable(&both(
        &named,
        &walk
            .replace("extern char entries_begin[], entries_end[];", "char entries_begin[8], entries_end[8];"),
    ));
    let set = "static struct t one = { .low = 1 };
        static void *entry __attribute__((section(\"entries\"), used)) = &one;";
    let pointers = "extern char *__start_entries[], *__stop_entries[];
        int f(void) { int s = 0; for (char **p = __start_entries; p < __stop_entries; p++) s += *(int *)(*p + 16); return s; }";
    asks(&both(set, pointers), &Verdict::Refuse, "int is read at a fixed offset");
}

#[test]
fn the_lowest_bits_of_an_address_show_where_a_member_lies() {
    let reason = "a count of its address's lowest bits asks for data";
    let of = |body: &str| {
        Program::c(&format!(
            "#define _GNU_SOURCE\n#include <stdint.h>\n#include <string.h>\nstruct t {{ int a; char k; char low; char data[40]; long last; }};
            long f(struct t *x) {{ {body} }}"
        ))
    };
    for body in [
        "return __builtin_ctzl((uintptr_t)&x->data);",
        "return ffsl((long)x->data);",
        "uintptr_t at = (uintptr_t)&x->data; return __builtin_ctzl(at);",
        "uintptr_t at = (uintptr_t)&x->data; return at & -at;",
    ] {
        asks(&of(body), &keep(&["data"]), reason);
    }
    let cpp = "#include <cstdint>\nstruct t { int a; char k; char low; char data[40]; long last; };
        int f(t *x) { return __builtin_ctzll(reinterpret_cast<std::uintptr_t>(&x->data)); }";
    asks(&Program::cpp(cpp), &keep(&["data"]), reason);
    for body in [
        "return __builtin_ctzl(x->last) + ffsl(x->a);",
        "unsigned long bits = x->last, one = 4; return (bits & -bits) + __builtin_ctzl(bits & one);",
    ] {
        movable(&of(body));
    }
}

#[test]
fn calls_that_take_pages_ask_for_a_member_at_one() {
    let of = |body: &str| {
        Program::c(&format!(
            "#include <sys/mman.h>\nstruct t {{ char data[4096]; char guard[4096]; long a; int b; }};
            void f(struct t *x) {{ {body} }}"
        ))
    };
    for body in
        ["mprotect(x->guard, 4096, PROT_NONE);", "madvise(&x->guard, sizeof x->guard, MADV_DONTNEED);"]
    {
        asks(&of(body), &keep(&["guard"]), "asks for guard at a multiple of 4096 bytes");
    }
    movable(&of("mprotect(x, sizeof *x, PROT_READ);"));
    movable(&of("x->guard[0] = 1;"));
}

#[test]
fn members_of_packed_types_keep_the_alignment_that_they_have() {
    let of = |body: &str| {
        Program::c(&format!(
            "struct __attribute__((packed)) t {{ int a; int b; long n; char c; long z; }};
            long *f(struct t *x) {{ {body} }}"
        ))
    };
    let reason = "asks for n at a multiple of 8 bytes";
    asks(&of("return &x->n;"), &keep(&["n"]), reason);
    asks(&of("__atomic_fetch_add(&x->n, 1, 5); return 0;"), &keep(&["n"]), reason);
    movable(&of("x->n++; return 0;"));
    movable(&of("return &x->z;"));
    movable(&Program::c(
        "struct t { int a; int b; long n; char c; }; long *f(struct t *x) { return &x->n; }",
    ));
}
