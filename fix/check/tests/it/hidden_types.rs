//! Dependences that reading and planted mutants found accepted once: each leaves an obligation, or ends the check.

use crate::forms::{Folder, compilers, variants, variants_of_two};
use lineup_check::unit::{Variants, check, map_of};

const HEAD: &str = "
typedef unsigned long size_t;
void *malloc(size_t); void *calloc(size_t, size_t); void *realloc(void *, size_t); char *strdup(const char *);
void *memcpy(void *, const void *, size_t); void *memset(void *, int, size_t); char *strcpy(char *, const char *);
extern void *out;
struct part { short p, q; };
@
struct node shared = { .a = 1, .b = 2 };
";

const LAYOUTS: (&str, &str) = (
    "struct node { int a; int b; struct part x; struct part y; long c; char text[16]; struct part part;
     struct node *next; char last[1]; } __attribute__((aligned(64)));",
    "struct node { long c; struct node *next; int b; struct part y; char text[16]; char last[1];
     struct part part; struct part x; int a; } __attribute__((aligned(64)));",
);

/// Number of open obligations; none when the check ends because the variants differ.
fn open(variants: &Variants) -> Option<usize> {
    let map = map_of(variants).ok()?;
    let findings = check(variants, &map).ok()?;
    Some(findings.obligations.iter().filter(|obligation| obligation.rule.is_none()).count())
}

fn each_is_listed(bodies: &[&str]) {
    for compiler in compilers() {
        for body in bodies {
            let folder = Folder::new();
            let variants = variants(compiler, &folder, &format!("{HEAD}{body}"), LAYOUTS);
            assert_ne!(open(&variants), Some(0), "{compiler}: {body}");
        }
    }
}

#[test]
fn memory_is_new_only_without_content_and_large_enough() {
    each_is_listed(&[
        "static void *make(void) { char *m = malloc(80); m[4] = 77; return m; } int main(void) { struct node *n = make(); return n->b; }",
        "static void *make(void) { int *m = malloc(80); m[1] = 77; return m; } int main(void) { struct node *n = make(); return n->b; }",
        "struct o { int x, y; }; static void *make(void) { struct o *m = malloc(80); m->y = 77; return m; } int main(void) { struct node *n = make(); return n->b; }",
        "static void *make(void) { char *m = malloc(80); memcpy(m, \"abcdefgh\", 8); return m; } int main(void) { struct node *n = make(); return n->b; }",
        "int main(void) { struct node *n = (void*)strdup(\"abcdefghijklmnopqrstuvw\"); return n->b; }",
        "int main(void) { int *m = malloc(80); m[1] = 77; struct node *n = realloc(m, 90); return n->b; }",
        "int main(void) { int *m = malloc(80); *m = 77; void *v = m; struct node *n = realloc(v, 90); return n->a; }",
        "int main(void) { struct node *n = malloc(80); n = realloc(n, 8); return n->a; }",
        "int main(void) { struct node *n = malloc(8); n->a = 3; return n->a; }",
        "int main(void) { struct node *n = malloc(6); n->a = 3; return n->a; }",
        "int main(void) { struct node *n = calloc(1, 6); n->a = 3; return n->a; }",
        "int main(void) { struct node *n = calloc(2, 30); n->a = 3; return n->a; }",
        "int main(void) { struct node *n = malloc(__builtin_offsetof(struct node, c)); n->a = 3; return n->a; }",
        "int main(int c, char **v) { size_t k = c > 1 ? 6 : 7; struct node *n = malloc(k); n->a = 3; return n->a; }",
        "static void *xmalloc(size_t k) { void *m = malloc(k); if (!m) __builtin_abort(); return m; } int main(void) { struct node *n = xmalloc(6); n->a = 3; return n->a; }",
    ]);
}

#[test]
fn unions_show_objects_and_their_addresses_as_other_types() {
    each_is_listed(&[
        "union u { const struct node *n; const char *c; }; int main(void) { union u u; u.n = &shared; return u.c[4]; }",
        "union u { struct { const struct node *n; } a; struct { const char *c; } b; }; int main(void) { union u u; u.a.n = &shared; return u.b.c[4]; }",
        "struct ua { const struct node *n; }; union u { struct ua a; struct { const char *c; } b; }; int main(void) { union u u; struct ua *q = &u.a; q->n = &shared; return u.b.c[4]; }",
        "union u { int (*f)(struct node *); int (*g)(int *); }; static int get(int *i) { return i[1]; } int main(void) { union u u; u.g = get; return u.f(&shared); }",
        "union u { const struct node *n[2]; const char *c[2]; }; int main(void) { union u u; u.n[1] = &shared; return u.c[1][4]; }",
        "struct w { char first[9]; struct node in; }; union u { struct node of; struct w w; }; int main(void) { union u u; u.of = shared; return u.w.first[4]; }",
        "union u { struct node of; struct part part[20]; }; int main(void) { union u u; u.of = shared; return u.part[1].p; }",
        "union u { struct node of; struct part part; }; int main(void) { union u u; u.of = shared; return u.part.q; }",
        "struct s { int k; union { struct node of; unsigned char raw[64]; }; }; static struct s s; int main(void) { s.of = shared; return s.raw[4]; }",
        "struct s { int k; union { const struct node *n; const char *c; }; }; static struct s s; int main(void) { s.n = &shared; return s.c[4]; }",
    ]);
}

#[test]
fn a_pointer_to_a_part_does_not_reach_the_next_one() {
    each_is_listed(&[
        "int main(void) { struct part *q = &shared.x; return q[1].p; }",
        "static int get(struct part *q) { q++; return q->p; } int main(void) { return get(&shared.x); }",
        "static int get(struct part *q, int k) { return q[k].p; } int main(int c, char **v) { return get(&shared.x, c); }",
        "int main(void) { struct part *q = &shared.x, *r = &shared.y; return q < r; }",
        "int main(void) { struct part *q = &shared.x, *r = &shared.y; return r - q; }",
        "int main(void) { struct node n = shared; memcpy(&n.x, &shared.x, 2 * sizeof(struct part)); return n.y.p; }",
        "int main(void) { struct node n = shared; memset(&n.x, 0, 2 * sizeof(struct part)); return n.y.p; }",
        "int main(int c, char**v) { struct node n = shared; memset(&n.x, 0, c * sizeof(struct part)); return n.y.p; }",
    ]);
}

#[test]
fn addresses_of_members_have_no_order() {
    each_is_listed(&[
        "int main(void) { int *q = &shared.a, *r = &shared.b; return q < r; }",
        "int main(int c, char **v) { int *q = &shared.a; int *r = &shared.b; if (q < r) return 1; return 0; }",
        "int main(void) { int *p = &shared.a; return (void *)p == (void *)&shared; }",
        "static int is(struct node *n, int *p) { return p == (int *)n; } int main(void) { return is(&shared, &shared.a); }",
    ]);
}

#[test]
fn functions_are_called_by_their_own_types() {
    each_is_listed(&[
        "static int get(int *i) { return i[1]; } int main(void) { void *v = (void *)get; int (*f)(struct node *) = (int (*)(struct node *))v; return f(&shared); }",
        "static int get(int *i) { return i[1]; } int main(void) { unsigned long v = (unsigned long)get; int (*f)(struct node *) = (int (*)(struct node *))v; return f(&shared); }",
        "static int get(int *i) { return i[1]; } static void *v = (void *)get; int main(void) { int (*f)(struct node *) = (int (*)(struct node *))v; return f(&shared); }",
        "static int get(int *i) { return i[1]; } int main(void) { void (*v)(void) = (void (*)(void))get; int (*f)(struct node *) = (int (*)(struct node *))v; return f(&shared); }",
        "static int get(int *i) { return i[1]; } static int call(int (*f)(struct node *)) { return f(&shared); } int main(void) { void *v = (void*)get; return call(v); }",
        "struct o { int x, y; }; static struct o *make(void) { static struct o m = {1,77}; return &m; } int main(void) { struct node *(*f)(void) = (struct node *(*)(void))make; return f()->b; }",
        "static struct node *make(void) { return &shared; } int main(void) { int *(*f)(void) = (int *(*)(void))make; return f()[1]; }",
        "static struct node *make(void) { return &shared; } static void *(*f)(void) = (void*(*)(void))make; int main(void) { int *q = f(); return q[1]; }",
    ]);
}

#[test]
fn numbers_beside_a_member_and_behind_an_array_are_listed() {
    each_is_listed(&[
        "static long get(int *a, long k) { return *a + k; } int main(void) { return get(&shared.a, __builtin_offsetof(struct node, b)); }",
        "static long get(int *a, long k) { return *a + ((char *)out)[k]; } int main(void) { return get(&shared.a, 4); }",
        "int main(int c, char **v) { struct node *n = malloc(200); strcpy(n->last, v[0]); return n->a; }",
        "int main(void) { return shared.text[17]; }",
        "int main(void) { return (&shared.b)[-1]; }",
        "int main(void) { return (int)__imag__ *(_Complex int *)&shared.a; }",
        "struct h { struct node *n; }; struct g { int *i; }; int main(void) { struct h h = { &shared }; return ((struct g *)&h)->i[1]; }",
    ]);
}

#[test]
fn assembler_that_names_an_object_is_listed() {
    each_is_listed(&[
        "int main(void) { int r; __asm__ volatile(\"movl shared+4(%%rip), %0\" : \"=r\"(r)); return r; }",
        "int get(void); __asm__(\"get: movl shared+4(%rip), %eax\\n ret\"); int main(void) { return get(); }",
        "extern int get[4]; __asm__(\".globl get\\n.set get, shared\"); int main(void) { return get[1]; }",
        "extern int get[4] __asm__(\"shared\"); int main(void) { return get[1]; }",
    ]);
}

#[test]
fn a_variable_of_the_function_around_is_listed() {
    let body =
        "int main(void) { struct node n = shared; int f(void) { return ((int *)&n)[1]; } return f(); }";
    for compiler in compilers().into_iter().filter(|compiler| *compiler == "gcc") {
        let folder = Folder::new();
        let variants = variants(compiler, &folder, &format!("{HEAD}{body}"), LAYOUTS);
        assert_ne!(open(&variants), Some(0));
    }
}

#[test]
fn null_checks_and_whole_objects_leave_nothing() {
    let bodies = [
        "static int is(struct node *n) { int *p = &n->a; return p ? 1 : 0; } int main(void) { return is(&shared); }",
        "static int of(struct part *q) { return q->p; } int main(void) { return of(&shared.x); }",
        "static void *make(size_t n) { void *m = malloc(n); if (!m) __builtin_abort(); memset(m, 0, n); return m; }
         int main(int c, char **v) { struct node *n = make(c * sizeof *n); n = realloc(n, 2 * sizeof *n); return n->a; }",
        "union u { struct node n; char raw[64]; }; static union u u; int main(void) { return u.n.a; }",
        "static int of(struct node *n) { return n->a; } int main(void) { int (*f)(struct node *) = of; return f(&shared); }",
        "int printf(const char *, ...); int main(void) { return printf(\"%d\\n\", shared.a); }",
    ];
    for body in bodies {
        let folder = Folder::new();
        if compilers().contains(&"gcc") {
            let variants = variants("gcc", &folder, &format!("{HEAD}{body}"), LAYOUTS);
            assert_eq!(open(&variants), Some(0), "{body}");
        }
    }
}

#[test]
fn one_name_is_one_type_in_all_units() {
    let programs = [
        (
            "extern int get(const struct node *); int main(void) { return get(&shared); }",
            "struct node { char before[4]; int at; }; int get(const struct node *n) { return n->at; }",
        ),
        (
            "extern int get(const struct node *); int main(void) { return get(&shared); }",
            "struct part { short p, q; }; struct node { int a; int b; struct part x; struct part y; long c; char text[16]; struct part part; struct node *next; char last[1]; }; int get(const struct node *n) { return n->b; }",
        ),
        (
            "int main(void) { return 0 * shared.b; } ",
            "struct node { char before[4]; int at; }; extern struct node shared; int other(void) { return shared.at; }",
        ),
        (
            "int main(void) { return 0 * shared.b; }",
            "extern char shared[]; int other(void) { return shared[4]; }",
        ),
        (
            "extern int get(const struct node *); int main(void) { return get(&shared); }",
            "struct o { int x, y; }; int get(const struct o *n) { return n->y; }",
        ),
        (
            "extern struct node *make(void); int main(void) { return make()->b; }",
            "struct o { int x, y; } m; struct o *make(void) { return &m; }",
        ),
        (
            "extern int (*table[1])(struct node *); int main(void) { return table[0](&shared); }",
            "static int get(int *i) { return i[1]; } int (*table[1])(int *) = { get };",
        ),
        (
            "struct node *current = &shared; int main(void) { return current->b; }",
            "extern int *current; int other(void) { return current[1]; }",
        ),
        (
            "struct h { struct node *n; }; struct h h = { &shared }; int main(void) { return h.n->b; }",
            "struct h { int *n; }; extern struct h h; int other(void) { return h.n[1]; }",
        ),
        (
            "struct h { struct node *n; }; extern int get(struct h *); int main(void) { struct h h = { &shared }; return get(&h); }",
            "struct h { int *n; }; int get(struct h *h) { return h->n[1]; }",
        ),
        ("struct node common; int main(void) { return common.b; }", "char common[56] = { 0, 0, 0, 0, 7 };"),
        ("int main(void) { extern struct node *current; return current->b; }", "int *current;"),
        ("int main(void) { extern struct node kept; return kept.b; }", "char kept[64] = { 7 };"),
        (
            "int main(void) { extern struct node *make(void); return make()->b; }",
            "int *make(void) { return 0; }",
        ),
        (
            "int main(void) { return shared.b; }",
            "int other(void) { extern int shared[16]; return shared[1]; }",
        ),
    ];
    for compiler in compilers() {
        for (body, other) in programs {
            let folder = Folder::new();
            let text = format!("{HEAD}{body}");
            let variants = variants_of_two(compiler, &folder, (&text, other), LAYOUTS);
            assert_ne!(open(&variants), Some(0), "{compiler}: {body} {other}");
        }
    }
}
