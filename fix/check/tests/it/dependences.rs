//! Each kind of dependence on a layout leaves an obligation, or ends the check; plain code leaves none.

use crate::forms::{Folder, compile_with, compilers, has, variants};
use lineup_check::certificate::read_forms;
use lineup_check::unit::{check, map_of};

const HEAD: &str = "
typedef unsigned long size_t;
void *malloc(size_t); void free(void *); int memcmp(const void *, const void *, size_t);
void *memcpy(void *, const void *, size_t); void *memset(void *, int, size_t);
size_t fwrite(const void *, size_t, size_t, void *); void elsewhere(void *); extern void *out;
struct part { short p, q; };
@
struct node shared = { .a = 1, .b = 2 };
";

const BEFORE: &str =
    "struct node { int a; int b; long c; char text[16]; struct part part; struct node *next; };";
const AFTER: &str =
    "struct node { long c; struct node *next; int b; char text[16]; struct part part; int a; };";

/// Number of open obligations; none when the check ends because the variants differ.
fn open(compiler: &str, body: &str) -> Option<usize> {
    let folder = Folder::new();
    let variants = variants(compiler, &folder, &format!("{HEAD}{body}"), (BEFORE, AFTER));
    let map = map_of(&variants).expect("the map is in the debug information");
    let findings = check(&variants, &map).ok()?;
    Some(findings.obligations.iter().filter(|obligation| obligation.rule.is_none()).count())
}

#[test]
fn plain_code_leaves_no_obligation() {
    let bodies = [
        "static long sum(struct node *n) { long s = 0; for (; n; n = n->next) s += n->a + n->b * n->c + n->part.q; return s; }
         int main(void) { shared.text[3] = 'x'; return sum(&shared); }",
        "static struct node *one(int x) { struct node *n = malloc(sizeof *n); memset(n, 0, sizeof *n); n->a = x; return n; }
         int main(int c, char **v) { struct node *n = one(c); struct node copy = *n; free(n); return copy.a; }",
        "int main(int c, char **v) { struct node n = { .a = c, .c = 3, .b = 7 }; return n.a + n.b + n.c; }",
        "typedef struct node alias; static int of(alias *n) { return n->a; } int main(void) { return of(&shared); }",
        "static double of(struct node *n) { double d = n->c; if (__builtin_isgreater(d, 3.5) || __builtin_islessgreater(d, 2))
           return -1.5 / d; return -1.8e+2; } int main(void) { return of(&shared); }",
        "static int of(struct node *n) { const char *texts[] = { \"one\", \"two\", \"three\", \"four\", \"five\", \"six\", \"seven\" };
           return *texts[n->a]; } int main(void) { return of(&shared); }",
        // The debug information of `end` refers to the text, and gives no place.
        "size_t strlen(const char *); void *calloc(size_t, size_t);
           char *named(const char *name) { const char *end = \".meta\"; size_t n = strlen(name);
           char *all = calloc(1, n + strlen(end) + 1); memcpy(all + n, end, strlen(end)); return all; }
         int main(void) { return shared.a; }",
    ];
    for compiler in compilers() {
        for body in bodies {
            assert_eq!(open(compiler, body), Some(0), "{compiler}: {body}");
        }
    }
}

#[test]
fn counters_of_coverage_hold_lines_and_no_layout() {
    if !has("gcc") {
        return eprintln!("skipped: gcc is not here");
    }
    let folder = Folder::new();
    let body =
        "static long sum(struct node *n) { return n->a + n->c; }\nint main(void) { return sum(&shared); }";
    // Functions lie on other lines.
    for (side, layout) in [("before", BEFORE.to_owned()), ("after", format!("{AFTER}\n\n"))] {
        let text = format!("{HEAD}{body}").replace('@', &layout);
        compile_with("--coverage", "gcc", &folder.0.join(side), &text);
    }
    let variants = read_forms(&folder.0.join("before"), &folder.0.join("after")).expect("forms");
    let map = map_of(&variants).expect("the map is in the debug information");
    let findings = check(&variants, &map).expect("equal");
    assert!(findings.obligations.iter().all(|obligation| obligation.rule.is_some()), "{findings:?}");
}

#[test]
fn each_dependence_leaves_an_obligation_or_a_refusal() {
    let bodies = [
        "int main(void) { return ((int *)&shared)[1]; }",
        "int main(void) { return *(int *)((char *)&shared + 4); }",
        "static int nth(struct node *n) { int *p = &n->a; return p[1]; } int main(void) { return nth(&shared); }",
        "static int nth(int *p, int k) { return p[k]; } int main(int c, char **v) { return nth(&shared.a, c); }",
        "int main(void) { return fwrite(&shared.a, 1, 8, out); }",
        "int main(void) { fwrite(&shared, sizeof shared, 1, out); return 0; }",
        "int main(int c, char **v) { struct node n = shared; return memcmp(&n, &shared, sizeof n); }",
        "int main(void) { memset(&shared.a, 0, 8); return 0; }",
        "int main(void) { elsewhere(&shared); return 0; }",
        "int main(void) { elsewhere(&shared.b); return 0; }",
        "int main(void) { elsewhere(&shared.part); return 0; }",
        "struct other { int x, y; }; int main(void) { return ((struct other *)&shared)->y; }",
        "union both { struct node n; int raw[12]; }; static union both u; int main(void) { u.n.a = 1; return u.raw[1]; }",
        "int main(void) { union { struct node n; unsigned char b[64]; } u; u.n = shared; return u.b[8]; }",
        "static union { struct node n; unsigned char b[64]; } u; int main(void) { u.n = shared; return u.b[8]; }",
        "int main(void) { struct { struct node n; } u; u.n = shared; fwrite(&u, 64, 1, out); return 0; }",
        "extern char other[8] __attribute__((alias(\"shared\"))); int main(void) { return other[4]; }",
        "int main(void) { unsigned long at = (unsigned long)&shared + 4; return *(int *)at; }",
        "int main(void) { int r; __asm__(\"movl 4(%1), %0\" : \"=r\"(r) : \"r\"(&shared)); return r; }",
        "int main(void) { __asm__ volatile(\".p2align 4\\n movl 4(%rdi), %eax\"); return shared.a; }",
        "static struct node in __attribute__((section(\"list\"))) = { .a = 1 }; int main(void) { return in.a; }",
        "size_t distance = __builtin_offsetof(struct node, b); int main(void) { return distance; }",
        "static long key(const char *p, size_t n) { long h = 0; while (n--) h = h * 31 + *p++; return h; }
         int main(void) { return key((const char *)&shared, sizeof shared); }",
        "static int *where = &shared.b; int main(void) { return where[-1]; }",
        "int take(struct node *n) { return n->a; } int main(void) { return 0; }",
        "static struct node *of(void *bytes) { return bytes; } int main(void) { return of(out)->a; }",
        "int main(int c, char **v) { struct node *const all[] = { &shared, &shared, &shared, &shared, &shared, &shared, 0 };
         return ((int *)all[c])[1]; }",
        "struct node values = { 1, 2, 3 }; int main(void) { return values.a; }",
        "int main(int c, char **v) { struct node n = { c, 2, 3 }; return n.a; }",
        "struct other { int x, y; }; static int read(struct other *o) { return o->y; }
         int main(void) { int (*take)(struct node *) = (int (*)(struct node *))read; return take(&shared); }",
        "struct other { int x, y; }; static int read(struct other *o) { return o->y; }
         static int (*take)(struct node *) = (int (*)(struct node *))read; int main(void) { return take(&shared); }",
        "static int (*code)(struct node *); void *mmap(void *, size_t, int, int, int, long);
         int main(void) { code = mmap(0, 4096, 7, 34, -1, 0); return code(&shared); }",
    ];
    for compiler in compilers() {
        for body in bodies {
            assert_ne!(open(compiler, body), Some(0), "{compiler}: {body}");
        }
    }
}

#[test]
fn new_room_between_members_is_part_of_the_map() {
    let folder = Folder::new();
    let text = "@ static struct pair both = { .b = 2 }; int main(void) { both.a = 1; return both.b; }";
    let layouts = ("struct pair { long a; long b; };", "struct pair { long a; char room[56]; long b; };");
    for compiler in compilers().into_iter().filter(|compiler| *compiler == "gcc") {
        let variants = variants(compiler, &folder, text, layouts);
        let map = map_of(&variants).expect("the map is in the debug information");
        assert_eq!(map.types.len(), 1);
        let findings = check(&variants, &map).expect("they are equal");
        assert!(findings.obligations.iter().all(|obligation| obligation.rule.is_some()));
    }
}

#[test]
fn an_address_that_a_local_variable_holds_is_not_where_the_variable_is() {
    let body = "int main(void) { unsigned long t = (unsigned long)&main; char b[8]; memcpy(b, &t, 8); return b[1]; }";
    for compiler in compilers() {
        assert_eq!(open(compiler, body), Some(0), "{compiler}");
    }
}

#[test]
fn idle_assembler_and_a_part_given_as_its_own_type_are_discharged_by_rules() {
    for compiler in compilers().into_iter().filter(|compiler| *compiler == "gcc") {
        let body = |text: &str| format!("int main(void) {{ __asm__ volatile({text}); return shared.a; }}");
        assert_eq!(open(compiler, &body("\"nop\"")), Some(0));
        let settles = "void settle(struct part *); int main(void) { settle(&shared.part); return shared.a; }";
        assert_eq!(open(compiler, settles), Some(0));
        assert_ne!(open(compiler, &body("\"mov %%eax, %%ebx\" ::: \"ebx\"")), Some(0));
    }
}

#[test]
fn a_number_of_a_source_line_is_named_and_one_beside_it_ends_the_check() {
    let after = AFTER.replacen('{', "{\n\n", 1);
    let of = |body: &str| {
        let folder = Folder::new();
        let variants = variants("gcc", &folder, &format!("{HEAD}{body}"), (BEFORE, &after));
        let map = map_of(&variants).expect("the map is in the debug information");
        Some(check(&variants, &map).ok()?.obligations)
    };
    let called = "void line(int); int main(void) { line(__LINE__@); return shared.a; }";
    let obligations = of(&called.replace('@', "")).expect("equal but for the layout and the lines");
    assert_eq!(obligations.len(), 1, "{obligations:?}");
    assert_eq!(obligations[0].rule, Some("line-number"));
    assert!(of(&called.replace('@', " + 1")).is_none());
}

#[test]
fn the_way_from_a_member_to_its_object_is_followed_where_the_member_becomes_the_first_or_was_it() {
    let text = "struct part { int p, q; }; @ static struct node shared;
        static long of(struct part *part) { struct node *n = (struct node *)((char *)part - AT); return n->a; }
        int main(void) { return of(&shared.part); }";
    let orders = ["struct node { long a; struct part part; };", "struct node { struct part part; long a; };"];
    let open = |layouts, at: &str| {
        let folder = Folder::new();
        let variants = variants("gcc", &folder, &text.replace("AT", at), layouts);
        let map = map_of(&variants).expect("the map is in the debug information");
        let obligations = check(&variants, &map).ok()?.obligations;
        Some(obligations.iter().filter(|obligation| obligation.rule.is_none()).count())
    };
    for layouts in [(orders[0], orders[1]), (orders[1], orders[0])] {
        assert_eq!(open(layouts, "__builtin_offsetof(struct node, part)"), Some(0), "{layouts:?}");
        assert_ne!(open(layouts, "8"), Some(0), "{layouts:?}");
        assert_ne!(open(layouts, "0"), Some(0), "{layouts:?}");
    }
}
