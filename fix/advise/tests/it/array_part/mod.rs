//! Members that leave the elements of arrays in C: the edit expected, programs that do the same before and after it
//! under the sanitisers, and what keeps elements in one piece.

mod columns;

use crate::cold_part::{advised_for, advised_of, loaded};
use crate::cold_part_read::read_files;
use crate::heap_part::{advised, files, meaning, output, refused, split, types};
use lineup_advise::options::Options;
use lineup_model::usage::ObjectPattern;
use std::collections::BTreeMap;

const PROGRAM: &str = r#"#include <assert.h>
#include <stdio.h>
#include <string.h>
#include "item.h"

#define COUNT 9

static struct item items[COUNT];
static struct item *first;

static void fill(int at)
{
    struct item *one = &items[at];
    one->key = at;
    one->mass = 1.5 * at;
    items[at].made_at = 10 * at;
    one->next = first;
    snprintf(one->label, sizeof one->label, "item %d", at);
    first = one;
}

static long sum(const struct item *from, int count)
{
    long found = 0;
    for (int at = 0; at < count; at++) {
        found += from[at].key;
    }
    return found;
}

int main(void)
{
    struct item *last;
    double *mass;
    for (int at = 0; at < (int)(sizeof items / sizeof items[0]); at++) {
        fill(at);
    }
    last = first;
    assert(last->made_at == 80);
    mass = &last->mass;
    *mass += (*last->next).mass;
    strcat(items[8].label, "!");
    printf("%ld %s %.2f %s %ld %ld\n", sum(items, COUNT), last->label, first->mass, first[0].next->label,
           (first - 2)->made_at, items[items[3].next->key].made_at);
    return 0;
}
"#;

/// The program with these lines before `main`, and these at its beginning.
fn with(above: &str, inside: &str) -> String {
    let text = PROGRAM.replace("int main(void)\n", &format!("{above}\nint main(void)\n"));
    text.replace("    double *mass;\n", &format!("    double *mass;\n    {inside}\n"))
}

#[test]
fn cold_members_move_into_an_array_of_parts() {
    let edited = split(PROGRAM);
    let header = r#"/* One thing in the store. */
struct item {
    long key;
};

/* Members of struct item that hot loops leave alone. */
struct item_cold {
    /* Shown to people. */
    char label[96];
    double mass; /* kg */
    long made_at;
    struct item *next;
};

#endif
"#;
    assert!(edited["item.h"].ends_with(header), "{}", edited["item.h"]);
    let text = &edited["a.c"];
    let declared = r#"
static struct item items[COUNT];
static struct item_cold items_cold[COUNT];

/* The other members of struct item. */
static struct item_cold *item_cold_of(const struct item *one)
{
    return items_cold + (one - items);
}

static struct item *first;
"#;
    assert!(text.contains(declared), "{text}");
    for line in [
        "    one->key = at;\n    item_cold_of(one)->mass = 1.5 * at;\n",
        "    items_cold[at].made_at = 10 * at;\n",
        "snprintf(item_cold_of(one)->label, sizeof item_cold_of(one)->label, \"item %d\", at);\n",
        "        found += from[at].key;\n",
        "at < (int)(sizeof items / sizeof items[0]); at++",
        "    assert(item_cold_of(last)->made_at == 80);\n    mass = &item_cold_of(last)->mass;\n",
        "    *mass += item_cold_of(&(*item_cold_of(last)->next))->mass;\n",
        "    strcat(items_cold[8].label, \"!\");\n",
        "item_cold_of(item_cold_of(&first[0])->next)->label,\n",
        "item_cold_of(first - 2)->made_at, items_cold[items_cold[3].next->key].made_at);\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

/// Elements of 128 bytes that begin 16 bytes into a line: `next` of one lies on the line of `key` of the one behind.
#[test]
fn a_line_that_two_elements_share_is_saved_once() {
    let texts = files(PROGRAM).into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let options = Options { meaning: meaning(PROGRAM), ..Options::default() };
    let alone = ObjectPattern::alone(16, loaded(&[(0, 8), (120, 8)]), 160);
    let pattern = ObjectPattern { neighbour_distance_bytes: Some(128), ..alone };
    let advice = advised_for(texts, &options, types(), pattern);
    assert_eq!(advice.cold_parts[0].kept, ["key", "next"]);
    let row = advice.cold_parts[0].lines.iter().find(|row| row.line_bytes == 64).expect("lines of 64 bytes");
    assert_eq!((row.before, row.after), (Some(16.0), 4.0));
}

#[test]
fn arrays_that_are_only_indexed_need_no_function_and_may_be_several() {
    let program = r#"#include <stdio.h>
#include "item.h"
struct item here[4], there[5];
int main(void)
{
    for (int at = 0; at < 4; at++) {
        here[at].key = at;
        there[at + 1].mass = here[at].mass + at;
        here[at].next = &there[at + 1];
    }
    printf("%ld %.1f %ld\n", here[3].key, there[4].mass, here[2].next - there);
    return 0;
}
"#;
    let edited = split(program);
    let text = &edited["a.c"];
    let declared = "struct item here[4], there[5];\nstruct item_cold here_cold[4];\nstruct item_cold there_cold[5];\nint main";
    assert!(text.contains(declared) && !text.contains("cold_of"), "{text}");
    assert!(text.contains("        there_cold[at + 1].mass = here_cold[at].mass + at;\n"), "{text}");
    let pointers = program.replace("here[2].next - there", "here[2].next->made_at");
    refused(&pointers, "a pointer may lead into several arrays: here, there) at a.c:");
}

#[test]
fn an_array_that_a_header_declares_has_its_parts_there() {
    let program = PROGRAM.replace("static struct item items[COUNT];\n", "struct item items[COUNT];\n");
    let program =
        program.replace("#define COUNT 9\n", "").replace("#include \"item.h\"", "#include \"all.h\"");
    let header = "#include \"item.h\"\n#define COUNT 9\nextern struct item items[COUNT];\nlong weigh(const struct item *one);\n";
    let other = "#include \"all.h\"\nlong weigh(const struct item *one)\n{\n    return (long)one->mass;\n}\n";
    let item = crate::heap_part::HEADER;
    let all = [("item.h", item), ("all.h", header), ("a.c", &*program), ("b.c", other)];
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let options = Options { meaning: read_files(&all, &calls, "item"), ..Options::default() };
    let advice = advised_of(&all, &options, types());
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    let declared = r#"extern struct item items[COUNT];
extern struct item_cold items_cold[COUNT];

/* The other members of struct item. */
static inline struct item_cold *item_cold_of(const struct item *one)
{
    return items_cold + (one - items);
}

long weigh"#;
    assert!(advice.edited["all.h"].contains(declared), "{}", advice.edited["all.h"]);
    let defined =
        "struct item items[COUNT];\nstruct item_cold items_cold[COUNT];\nstatic struct item *first;\n";
    assert!(advice.edited["a.c"].contains(defined), "{}", advice.edited["a.c"]);
    assert!(advice.edited["b.c"].contains("(long)item_cold_of(one)->mass"), "{}", advice.edited["b.c"]);
}

/// A program whose objects one call makes.
fn made(call: &str) -> String {
    let text = PROGRAM.replace("static struct item items[COUNT];\n", "static struct item *items;\n");
    let text = text.replace("(sizeof items / sizeof items[0])", "(COUNT)");
    let text = text.replace("#include <string.h>\n", "#include <stdlib.h>\n#include <string.h>\n");
    let text = text
        .replace("    double *mass;\n", &format!("    double *mass;\n    int count = COUNT;\n    {call}\n"));
    text.replace("    return 0;\n", "    free(items);\n    return 0;\n")
}

#[test]
fn a_declaration_that_a_macro_makes_extern_has_the_same_macro() {
    let program =
        HELD.replace("static struct item *items, *others;\n", "#define EXTERN\n#include \"all.h\"\n");
    let header = "#include \"item.h\"\n#ifndef EXTERN\n#define EXTERN extern\n#endif\nEXTERN struct item *items; // All.\nEXTERN struct item *others;\n";
    let other =
        "#include \"all.h\"\nlong key(int at);\nlong key(int at)\n{\n    return items[at].made_at;\n}\n";
    let all = [("item.h", crate::heap_part::HEADER), ("all.h", header), ("a.c", &*program), ("b.c", other)];
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let options = Options { meaning: read_files(&all, &calls, "item"), ..Options::default() };
    let advice = advised_of(&all, &options, types());
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    let declared = "EXTERN struct item *items; // All.\nEXTERN struct item_cold *items_cold;\nEXTERN struct item *others;\nEXTERN struct item_cold *others_cold;\n";
    assert!(advice.edited["all.h"].ends_with(declared), "{}", advice.edited["all.h"]);
    assert!(
        advice.edited["a.c"].contains("#include \"all.h\"\n\nstatic struct item *items_new("),
        "{}",
        advice.edited["a.c"]
    );
    assert!(
        advice.edited["b.c"].contains("    return items_cold[at].made_at;\n"),
        "{}",
        advice.edited["b.c"]
    );
}

#[test]
fn objects_that_one_call_makes_once_have_their_parts_from_the_same_call() {
    let program = made("items = malloc(count * sizeof(struct item));\n    if (!items)\n        return 1;");
    let edited = split(&program);
    let header = r#"};

/* The first object, and the first part. */
extern struct item *item_first;
extern struct item_cold *item_first_cold;

/* The other members of struct item. */
static inline struct item_cold *item_cold_of(const struct item *one)
{
    return item_first_cold + (one - item_first);
}

static inline void item_array_free(struct item *ended)
{
    if (ended)
        free(item_first_cold);
    free(ended);
}

#endif
"#;
    assert!(edited["item.h"].ends_with(header), "{}", edited["item.h"]);
    assert!(edited["item.h"].contains("#include <stdlib.h>\n"), "{}", edited["item.h"]);
    let text = &edited["a.c"];
    let maker = r#"#include "item.h"

struct item *item_first;
struct item_cold *item_first_cold;

static struct item *item_array_new(size_t count)
{
    struct item *made = malloc(count * sizeof *made);
    struct item_cold *part = malloc(count * sizeof *part);

    if (!made || !part) {
        free(made);
        free(part);
        return NULL;
    }
    item_first = made;
    item_first_cold = part;
    return made;
}
"#;
    assert!(text.contains(maker), "{text}");
    for line in [
        "    items = item_array_new(count);\n    if (!items)\n",
        "    item_cold_of(&items[at])->made_at = 10 * at;\n",
        "    item_array_free(items);\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let zeroed = split(&made("items = calloc(count, sizeof *items);"));
    assert!(
        zeroed["a.c"].contains("    struct item_cold *part = calloc(count, sizeof *part);\n"),
        "{zeroed:?}"
    );
}

#[test]
fn a_call_that_may_run_again_makes_objects_with_a_pointer() {
    for call in [
        "for (int i = 0; i < 2; i++) { free(items); items = malloc(count * sizeof *items); }",
        "again: free(items); items = malloc(count * sizeof *items); if (count++ < COUNT + 2) goto again;",
    ] {
        let edited = split(&made(call));
        assert!(edited["a.c"].contains("items = item_new(count)"), "{}", edited["a.c"]);
    }
    let make = "static void make(int count)\n{\n    items = malloc(count * sizeof *items);\n}\n";
    for (call, has_pointer) in [
        ("make(count);", false),
        ("make(count); free(items); make(count);", true),
        ("void (*by)(int) = make; by(count);", true),
    ] {
        let program = made(call).replace("static void fill(", &format!("{make}\nstatic void fill("));
        let edited = split(&program);
        assert_eq!(edited["a.c"].contains("= item_new(count)"), has_pointer, "{}", edited["a.c"]);
    }
}

#[test]
fn elements_whose_uses_the_edit_cannot_follow_stay_whole() {
    for (above, inside, reason) in [
        ("", "struct item one; one.key = 1; last = &one;", "a variable is an object outside of an array"),
        ("static struct item grid[3][3];", "grid[0][0].key = 1;", "a variable is or holds an object"),
        ("", "struct item some[3]; some[0].key = 1;", "an array of a function holds objects"),
        ("", "static struct item some[3]; some[0].key = 1;", "an array of a function holds objects"),
        ("static struct item set[2] = {{.key = 1}};", "set[0].mass = 1;", "an array has values in braces"),
        ("static __thread struct item own[2];", "own[0].key = 1;", "each thread has its own array"),
        ("static struct item own[2] __attribute__((aligned(64)));", "own[0].key = 1;", "has an attribute"),
        ("static volatile struct item own[2];", "own[0].key = 1;", "volatile"),
        ("struct pair { struct item one; };", "", "another type holds an object by value"),
        ("struct box { struct item all[4]; };", "", "another type holds an object by value"),
        ("union word { struct item one; long words[16]; };", "", "another type holds an object by value"),
        ("", "items[0] = items[1];", "an object is copied or made as a value"),
        ("", "last = &items[1]; *last = items[0];", "an object is copied or made as a value"),
        ("", "memset(items, 0, sizeof items);", "memset() is given an object"),
        ("", "memcpy(&items[0], &items[1], sizeof items[0]);", "memcpy() is given an object"),
        ("", "fwrite(items, sizeof items[0], COUNT, stdout);", "fwrite() is given an object"),
        (
            "#include <stdlib.h>\nstatic int by(const void *a, const void *b) { return a < b; }",
            "qsort(items, COUNT, sizeof items[0], by);",
            "qsort() is given an object",
        ),
        ("", "printf(\"%zu\", sizeof items);", "sizeof measures it"),
        ("", "printf(\"%zu\", sizeof items / 8);", "sizeof measures it"),
        ("", "printf(\"%zu\", sizeof items / sizeof items);", "sizeof measures it"),
        (
            "#define BOTH(a, b) (sizeof(a), sizeof(b))",
            "printf(\"%zu\", BOTH(items, items[0]));",
            "sizeof measures it",
        ),
        ("#include <stdlib.h>", "last = malloc(sizeof *last); free(last);", "and calls make others"),
        (
            "",
            "last = (struct item *)((char *)items + 128);",
            "a pointer to an object comes from one to something else",
        ),
        ("#define FIRST (items)", "FIRST->mass = 1;", "the object whose mass is named is not understood"),
        ("#define AT(i) items[i]", "AT(3).mass = 1;", "the object whose mass is named is not understood"),
        ("", "if (COUNT) (*items).mass = 1;", "the object whose mass is named is not understood"),
    ] {
        refused(&with(above, inside), reason);
    }
}

#[test]
fn a_pointer_that_another_unit_fills_keeps_a_static_array_of_a_header_whole() {
    let shared = "#include \"item.h\"\nstatic struct item items[9];\nstruct item *other(void);\n";
    let one =
        "#include \"all.h\"\nint main(void)\n{\n    items[0].key = 1;\n    return (int)other()->mass;\n}\n";
    let two = "#include \"all.h\"\nstruct item *other(void)\n{\n    return &items[1];\n}\n";
    let item = crate::heap_part::HEADER;
    let all = [("item.h", item), ("all.h", shared), ("a.c", one), ("b.c", two)];
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let options = Options { meaning: read_files(&all, &calls, "item"), ..Options::default() };
    let advice = advised_of(&all, &options, types());
    let why = advice.not_split.get("item").map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("2 units have an array items"), "{why}");
}

#[test]
fn names_of_other_things_do_not_lead_astray() {
    let program = with(
        "static long weigh(struct item *items)\n{\n    return (long)(items[0].mass + items->made_at);\n}\n\
         static struct item *items_of(struct item *here) { return here; }",
        "fill(1); fill(2); printf(\"%ld \", weigh(items + 2) + items_of(&items[1])[1].made_at);",
    );
    let edited = split(&program);
    assert!(
        edited["a.c"].contains("item_cold_of(&items[0])->mass + item_cold_of(items)->made_at"),
        "{edited:?}"
    );
}

#[test]
fn where_memory_for_one_array_runs_out_the_call_gives_null() {
    let program =
        made("items = malloc(count * sizeof *items);\n    if (!items) { puts(\"none\"); return 0; }");
    let edited = split(&program);
    let failing = "static int allowed;\nstatic void *limited(size_t size)\n{\n    return allowed-- > 0 ? malloc(size) : NULL;\n}\n";
    for allowed in 0..2 {
        let text = edited["a.c"].replace("= malloc(", "= limited(").replacen(
            "static struct item *item_array_new",
            &format!(
                "{}static struct item *item_array_new",
                failing.replace("allowed;", &format!("allowed = {allowed};"))
            ),
            1,
        );
        let all = BTreeMap::from([("item.h", edited["item.h"].as_str()), ("a.c", text.as_str())]);
        assert_eq!(output(&all), "none\n");
    }
}

#[test]
fn a_file_that_declares_no_array_keeps_it_whole() {
    let other = "#include \"item.h\"\nlong weigh(struct item *one);\nlong weigh(struct item *one)\n{\n    return (long)one->mass;\n}\n";
    let program = with("long weigh(struct item *one);", "fill(1); printf(\"%ld\", weigh(items + 1));");
    let mut all = files(&program);
    all.push(("b.c", other));
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c b.c"];
    let options = Options { meaning: read_files(&all, &calls, "item"), ..Options::default() };
    let advice = advised_of(&all, &options, types());
    let why = advice.not_split.get("item").map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("the file names a member, and declares no array of its objects) at b.c:5"), "{why}");
    assert!(advised(&program).cold_parts.len() == 1);
}

/// A program that makes its arrays anew, and only indexes them.
const HELD: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include "item.h"

static struct item *items, *others;

static int make(int count)
{
    items = (struct item *)calloc(count, sizeof(struct item));
    if ((others = malloc(count * sizeof(*others))) == NULL || !items) {
        return 1;
    }
    for (int at = 0; at < count; at++) {
        items[at].key = at;
        items[at].made_at += 10 * at;
        others[at].mass = items[at].made_at;
    }
    return 0;
}

int main(void)
{
    double mass = 0;
    for (int round = 1; round < 4; round++) {
        if (make(3 * round)) {
            return 1;
        }
        mass += others[2].mass + (double)items[round].key;
        free(items);
        free(others);
        items = NULL;
    }
    free(items);
    printf("%.1f\n", mass);
    return 0;
}
"#;

#[test]
fn arrays_that_variables_point_to_have_arrays_of_parts() {
    let edited = split(HELD);
    let text = &edited["a.c"];
    let declared = r#"
static struct item *items, *others;
static struct item_cold *items_cold;

static struct item *items_new(size_t count)
{
    struct item *made = calloc(count, sizeof *made);
    struct item_cold *part = calloc(count, sizeof *part);

    if (!made || !part) {
        free(made);
        free(part);
        return NULL;
    }
    items_cold = part;
    return made;
}

static void items_free(struct item *ended)
{
    if (ended)
        free(items_cold);
    free(ended);
}
"#;
    assert!(text.contains(declared), "{text}");
    for line in [
        "    items = items_new(count);\n    if ((others = others_new(count)) == NULL || !items) {\n",
        "        others_cold[at].mass = items_cold[at].made_at;\n",
        "        items_free(items);\n        others_free(others);\n        items = NULL;\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn variables_that_point_elsewhere_too_have_no_arrays_of_parts() {
    for (from, to) in [
        ("        items = NULL;\n", "        items = others = NULL;\n"),
        ("    free(items);\n    printf", "    others = items;\n    free(others);\n    printf"),
        ("        free(items);\n", "        items = &items[0];\n        free(items);\n"),
        ("        items = NULL;\n", "        struct item **at = &items;\n        *at = NULL;\n"),
        ("        items[at].made_at += 10 * at;\n", "        (items + at)->made_at = 10 * at;\n"),
        ("        free(items);\n", "        struct item *ended = items;\n        free(ended);\n"),
    ] {
        let text = split(&HELD.replace(from, to))["a.c"].clone();
        assert!(text.contains("items[at].cold->") || text.contains("(items + at)->cold->"), "{to}{text}");
    }
}
