//! Members that leave the objects of a struct of C: the edit expected, programs that do the same before and after it
//! under the sanitisers, and what keeps objects in one piece.

mod pools;

use crate::cold_part::advised_of;
use crate::cold_part_read::read_files;
use crate::pahole::{integer, member, push, run, structure};
use lineup_advise::meaning::Meaning;
use lineup_advise::options::Options;
use lineup_advise::proposal::Advice;
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::BTreeMap;

/// Members of the struct, with their offsets in bytes; the first is hot.
const MEMBERS: [(&str, u64); 5] = [("key", 0), ("label", 8), ("mass", 104), ("made_at", 112), ("next", 120)];

pub(crate) const HEADER: &str = r#"#ifndef ITEM_H
#define ITEM_H

/* One thing in the store. */
struct item {
    long key;
    /* Shown to people. */
    char label[96];
    double mass; /* kg */
    long made_at;
    struct item *next;
};

#endif
"#;

const PROGRAM: &str = r#"#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "item.h"

static struct item *first;

static struct item *add(long key)
{
    struct item *one = (struct item *)malloc(sizeof(struct item));
    if (one == NULL) {
        return NULL;
    }
    one->key = key;
    one->mass = 1.5 * key;
    one->made_at = 10 * key;
    one->next = first;
    snprintf(one->label, sizeof one->label, "item %ld", key);
    first = one;
    return one;
}

static long sum(const struct item *from)
{
    long found = 0;
    for (; from; from = from->next) {
        found += from->key;
    }
    return found;
}

int main(void)
{
    struct item *last, *rest;
    double *mass;
    for (long number = 0; number < 9; number++) {
        last = add(number);
    }
    assert(last->made_at == 80);
    mass = &last->mass;
    *mass += (*last->next).mass;
    strcat(last->label, "!");
    printf("%ld %s %.2f %s %ld\n", sum(first), last->label, first->mass, first[0].next->label, first->next->made_at);
    while (first) {
        rest = first->next;
        free(first);
        first = rest;
    }
    return 0;
}
"#;

pub(crate) fn types() -> (Types, TypeId) {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let label = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(96)] });
    let ty = |name: &str| if name == "label" { label } else { word };
    let members = MEMBERS.iter().map(|&(name, at)| member(name, ty(name), 8 * at)).collect();
    let id = structure(&mut types, "item", 128, members);
    (types, id)
}

/// The files of a program whose struct is declared in a header, or in its only file.
pub(crate) fn files(program: &str) -> Vec<(&str, &str)> {
    let has_header = program.contains("\"item.h\"");
    let header = has_header.then_some(("item.h", HEADER));
    header.into_iter().chain([("a.c", program)]).collect()
}

pub(crate) fn meaning(program: &str) -> Meaning {
    read_files(&files(program), &["cc -std=gnu11 -c a.c"], "item")
}

pub(crate) fn advised(program: &str) -> Advice {
    let options = Options { meaning: meaning(program), ..Options::default() };
    advised_of(&files(program), &options, types())
}

/// The output of a program, with the sanitisers that look at memory and at undefined behaviour. Programs may end with
/// objects that nothing frees.
pub(crate) fn output(files: &BTreeMap<&str, &str>) -> String {
    output_by("gcc", files)
}

/// The same with this compiler; that of Clang may lack the sanitisers' libraries.
pub(crate) fn output_by(compiler: &str, files: &BTreeMap<&str, &str>) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        std::fs::write(folder.path().join(path), text).expect("writes");
    }
    let sanitised: &[&str] = match compiler {
        "gcc" => &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
        _ => &[],
    };
    let flags = ["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "a"];
    let units = files.keys().copied().filter(|path| path.ends_with(".c"));
    let all: Vec<&str> = flags.into_iter().chain(units).chain(sanitised.iter().copied()).collect();
    run(compiler, compiler, folder.path(), &all).unwrap_or_else(|why| panic!("{why}\n{files:?}"));
    let program = folder.path().join("a");
    let command = ["ASAN_OPTIONS=detect_leaks=0", &program.to_string_lossy()];
    run("env", "coreutils", folder.path(), &command).unwrap_or_else(|why| panic!("{why}\n{files:?}"))
}

/// Splits the struct of a program; both programs do the same. The edited texts.
#[track_caller]
pub(crate) fn split(program: &str) -> BTreeMap<String, String> {
    let advice = advised(program);
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    assert_eq!(advice.steps().iter().map(|step| step.targets.concat()).collect::<Vec<_>>(), ["item"]);
    let before: BTreeMap<&str, &str> = files(program).into_iter().collect();
    let mut after = before.clone();
    after.extend(advice.edited.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert_eq!(output(&before), output(&after));
    advice.edited.clone()
}

/// The reason why the struct of a program stays in one piece.
#[track_caller]
pub(crate) fn refused(program: &str, reason: &str) {
    let advice = advised(program);
    assert!(advice.cold_parts.is_empty(), "{:?}", advice.edited);
    let why = advice.not_split.get("item").map(ToString::to_string).unwrap_or_default();
    assert!(why.contains(reason), "{why}");
    let sketch = advice.descriptions.iter().find(|one| one.kind.slug == "split").expect("a sketch");
    assert!(sketch.summary.contains("a patch for a split was refused"), "{sketch:?}");
    assert!(sketch.summary.contains(reason) && !sketch.is_in_patch, "{sketch:?}");
}

/// The program with these lines before `main`, and these at its beginning.
fn with(above: &str, inside: &str) -> String {
    let text = PROGRAM.replace("int main(void)\n", &format!("{above}\nint main(void)\n"));
    text.replace("    double *mass;\n", &format!("    double *mass;\n    {inside}\n"))
}

#[test]
fn cold_members_move_into_a_part_that_the_object_points_to() {
    let edited = split(PROGRAM);
    let header = r#"#ifndef ITEM_H
#define ITEM_H

/* One thing in the store. */
struct item {
    long key;
    struct item_cold *cold;
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
    assert_eq!(edited["item.h"], header);
    let functions = r#"#include "item.h"

/* Hot parts that no object uses: they come in blocks, side by side, and are kept. */
static struct item *item_spare;

static struct item *item_new(void)
{
    const size_t count = 64;
    struct item_cold *part = malloc(sizeof *part);
    struct item *made = item_spare;
    size_t at;

    if (part && !made) {
        made = malloc(count * sizeof *made);
        for (at = 0; made && at < count; at++)
            made[at].cold = at + 1 < count ? (void *)(made + at + 1) : NULL;
    }
    if (!part || !made) {
        free(part);
        return NULL;
    }
    item_spare = (void *)made->cold;
    made->cold = part;
    return made;
}

static void item_free(struct item *ended)
{
    if (!ended)
        return;
    free(ended->cold);
    ended->cold = (void *)item_spare;
    item_spare = ended;
}

static struct item *first;
"#;
    let text = &edited["a.c"];
    assert!(text.contains(functions), "{text}");
    for line in [
        "    struct item *one = item_new();\n    if (one == NULL) {\n",
        "    one->key = key;\n    one->cold->mass = 1.5 * key;\n",
        "snprintf(one->cold->label, sizeof one->cold->label, \"item %ld\", key);\n",
        "    for (; from; from = from->cold->next) {\n        found += from->key;\n",
        "    assert(last->cold->made_at == 80);\n    mass = &last->cold->mass;\n",
        "    *mass += (*last->cold->next).cold->mass;\n",
        "first[0].cold->next->cold->label",
        "        item_free(first);\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn objects_that_calloc_makes_are_zeroed_in_both_parts() {
    let program = PROGRAM.replace("(struct item *)malloc(sizeof(struct item))", "calloc(1, sizeof *one)");
    let program =
        program.replace("    mass = &last->mass;\n", "    free(add(3));\n    mass = &last->mass;\n");
    let program = program.replace("    one->made_at = 10 * key;\n", "    one->made_at += 10 * key;\n");
    let program = program.replace(
        "    free(add(3));",
        "    last = first;\n    first = first->next;\n    free(last);\n    last = add(8);",
    );
    let edited = split(&program);
    let text = &edited["a.c"];
    assert!(text.contains("    struct item *one = item_new_zeroed();\n"), "{text}");
    assert!(text.contains("        *made = none;\n        *part = nothing;\n"), "{text}");
}

/// A file that ends objects which another makes.
const SECOND_FILE: &str =
    "#include <stdlib.h>\n#include \"item.h\"\n\nvoid end(struct item *one)\n{\n    free(one);\n}\n";

/// The program whose other file ends objects: its files, and the advice on them.
fn of_two_files(program: &str, second: &str) -> (BTreeMap<&'static str, String>, Advice) {
    let header = HEADER.replace("#endif\n", "void end(struct item *one);\n\n#endif\n");
    let program = program.replace("        free(first);", "        end(first);");
    let files = BTreeMap::from([("a.c", program), ("end.c", second.to_owned()), ("item.h", header)]);
    let all: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let calls = ["cc -std=gnu11 -c a.c", "cc -std=gnu11 -c end.c"];
    let options = Options { meaning: read_files(&all, &calls, "item"), ..Options::default() };
    let advice = advised_of(&all, &options, types());
    (files, advice)
}

#[test]
fn files_that_make_and_end_objects_share_one_list_of_free_ones() {
    let (before, advice) = of_two_files(PROGRAM, SECOND_FILE);
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    let edited = &advice.edited;
    let prototypes = "\n};\n\nstruct item *item_new(void);\nvoid item_free(struct item *ended);\n\nvoid end(";
    assert!(edited["item.h"].contains(prototypes), "{}", edited["item.h"]);
    let shared = "\nstatic struct item *item_spare;\n\nstruct item *item_new(void)\n{";
    assert!(edited["a.c"].contains(shared), "{}", edited["a.c"]);
    assert!(edited["a.c"].contains("\nvoid item_free(struct item *ended)\n{"), "{}", edited["a.c"]);
    assert!(edited["end.c"].ends_with("{\n    item_free(one);\n}\n"), "{}", edited["end.c"]);
    let before: BTreeMap<&str, &str> = before.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let mut after = before.clone();
    after.extend(edited.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert_eq!(output(&before), output(&after));
}

#[test]
fn objects_that_a_function_of_another_file_ends_stay_whole() {
    let own = "#include <stdlib.h>\n#include \"item.h\"\n\nstatic void xfree(void *p)\n{\n    if (p)\n        free(p);\n}\n";
    let second = SECOND_FILE
        .replace("#include <stdlib.h>\n#include \"item.h\"\n", own)
        .replace("    free(one);", "    xfree(one);");
    let (_, advice) = of_two_files(PROGRAM, &second);
    let why = advice.not_split.get("item").map(ToString::to_string).unwrap_or_default();
    let reason = "xfree of one file makes or ends its objects, and others call for them";
    assert!(advice.cold_parts.is_empty() && why.contains(reason), "{why}");
}

/// The program with a thread.
fn threaded() -> String {
    let thread = "static void *run(void *data)\n{\n    return data;\n}\n";
    let starts =
        "pthread_t thread; if (!pthread_create(&thread, NULL, run, NULL)) pthread_join(thread, NULL);";
    with(thread, starts).replace("#include <string.h>\n", "#include <string.h>\n#include <pthread.h>\n")
}

#[test]
fn a_program_that_may_have_threads_keeps_no_blocks() {
    let edited = split(&threaded());
    let functions = r#"
static struct item *item_new(void)
{
    struct item *made = malloc(sizeof *made);
    struct item_cold *part = malloc(sizeof *part);

    if (!made || !part) {
        free(made);
        free(part);
        return NULL;
    }
    made->cold = part;
    return made;
}

static void item_free(struct item *ended)
{
    if (ended)
        free(ended->cold);
    free(ended);
}
"#;
    assert!(edited["a.c"].contains(functions), "{}", edited["a.c"]);
}

#[test]
fn objects_come_from_the_program_s_own_functions_as_before() {
    let own = "static void *xmalloc(size_t size)\n{\n    void *p = malloc(size);\n\n    if (!p)\n        abort();
    return p;\n}\n\nstatic void xfree(void *p)\n{\n    if (p)\n        free(p);\n}\n\nstatic struct item *first;\n";
    let program = PROGRAM
        .replace("static struct item *first;\n", own)
        .replace("(struct item *)malloc(sizeof(struct item))", "xmalloc(sizeof *one)")
        .replace("        free(first);", "        xfree(first);");
    let edited = split(&program);
    let text = &edited["a.c"];
    for part in [
        "#include \"item.h\"\n\nstatic void xfree(void *);\nstatic void *xmalloc(size_t);\n\n/* Hot parts",
        "    struct item_cold *part = xmalloc(sizeof *part);\n",
        "        made = xmalloc(count * sizeof *made);\n",
        "    if (!part || !made) {\n        xfree(part);\n",
        "    xfree(ended->cold);\n",
        "    struct item *one = item_new();\n",
        "        item_free(first);\n",
    ] {
        assert!(text.contains(part), "{part}{text}");
    }
    let elsewhere = program.replace("#include <stdlib.h>\n", "#include <malloc.h>\nvoid abort(void);\n");
    let text = &split(&elsewhere)["a.c"];
    assert!(text.contains("#include \"item.h\"\n#include <stdlib.h>\n\nstatic void"), "{text}");
    let zeroed = program
        .replace("void *p = malloc(size);", "void *p = calloc(1, size);")
        .replace("    one->made_at = 10 * key;\n", "    one->made_at += 10 * key;\n");
    let text = &split(&zeroed)["a.c"];
    assert!(text.contains("    struct item *one = item_new_zeroed();\n"), "{text}");
    assert!(text.contains("        made = xmalloc(count * sizeof *made);\n"), "{text}");
}

#[test]
fn objects_of_two_functions_stay_in_one_piece() {
    let own =
        "static void *xmalloc(size_t size)\n{\n    return malloc(size);\n}\n\nstatic struct item *first;\n";
    let program = PROGRAM.replace("static struct item *first;\n", own).replace(
        "    mass = &last->mass;\n",
        "    rest = xmalloc(sizeof *rest);\n    free(rest);\n    mass = &last->mass;\n",
    );
    refused(&program, "make or end its objects");
}

#[test]
fn arrays_of_objects_have_an_array_of_parts() {
    let program = PROGRAM
        .replace("#include \"item.h\"\n", &HEADER[HEADER.find("struct item").expect("it")..HEADER.len() - 8])
        .replace(
            "    mass = &last->mass;\n",
            "    size_t count = 5;\n    struct item *all = malloc(count * sizeof(*all));
    struct item *none = calloc(count - 5, sizeof *none), *two = calloc(2, sizeof(struct item));
    for (struct item *at = all; at < all + count; at++) {
        at->mass = at - all;
    }
    printf(\"%.1f %.1f\\n\", all[3].mass + (all + 1)->mass, two[1].mass);
    free(none);\n    free((void *)all);\n    free(two);\n    mass = &last->mass;\n",
        );
    let edited = split(&program);
    let text = &edited["a.c"];
    let functions = r#"
static struct item *item_new(size_t count)
{
    struct item *made = malloc((count ? count : 1) * sizeof *made);
    struct item_cold *part = malloc((count ? count : 1) * sizeof *part);
    size_t at;

    if (!made || !part) {
        free(made);
        free(part);
        return NULL;
    }
    made->cold = part;
    for (at = 1; at < count; at++)
        made[at].cold = part + at;
    return made;
}

static struct item *item_new_zeroed(size_t count)
{
    struct item *made = calloc(count ? count : 1, sizeof *made);
"#;
    assert!(text.contains(functions), "{text}");
    for line in [
        "    struct item *one = item_new(1);\n",
        "    struct item *all = item_new(count);\n",
        "none = item_new_zeroed(count - 5), *two = item_new_zeroed(2);\n",
        "all[3].cold->mass + (all + 1)->cold->mass, two[1].cold->mass);\n",
        "    item_free(none);\n    item_free((void *)all);\n    item_free(two);\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn names_that_the_sources_have_are_not_taken() {
    let program = with("static int cold, item_free;", "cold = item_free; (void)cold;");
    let edited = split(&program);
    assert!(edited["item.h"].contains("    struct item_seldom *seldom;\n"), "{edited:?}");
    assert!(edited["a.c"].contains("        item_release(first);\n"), "{edited:?}");
}

#[test]
fn objects_that_are_not_made_by_calls_that_are_seen_stay_whole() {
    for (above, inside, reason) in [
        (
            "",
            "struct item here = {0}; last = &here;",
            "a variable is or holds an object, and calls make others) at a.c:",
        ),
        ("static struct item table[3];", "table[0].key = 1;", "a variable is or holds an object"),
        ("struct pair { struct item one; };", "", "another type holds an object by value"),
        ("union word { struct item one; long words[16]; };", "", "another type holds an object by value"),
        ("", "last = add(1); *last = *add(2);", "an object is copied or made as a value"),
        ("", "last = add(1); *last = (struct item){.key = 2};", "an object is copied or made as a value"),
        ("", "last = add(1); memset(last, 0, sizeof *last);", "memset() is given an object"),
        ("", "last = add(1); memcpy(last, add(2), sizeof *last);", "memcpy() is given an object"),
        ("", "if (memcmp(add(1), add(1), sizeof *last)) return 1;", "memcmp() is given an object"),
        ("", "fwrite(add(1), sizeof *last, 1, stdout);", "fwrite() is given an object"),
        ("", "last = realloc(malloc(sizeof *last), 2 * sizeof *last);", "realloc() gives an object"),
        (
            "",
            "last = malloc(sizeof *last + 40);",
            "the number of objects that a call makes is not understood",
        ),
        ("", "last = malloc(128);", "memory is asked for by another size than that of its objects"),
        ("", "printf(\"%zu\", sizeof(struct item));", "sizeof measures it"),
        ("#include <stddef.h>", "printf(\"%zu\", offsetof(struct item, mass));", "offsetof measures it"),
        (
            "#include <stddef.h>\n#define OF(p) ((struct item *)((char *)(p) - offsetof(struct item, mass)))",
            "mass = &add(1)->mass; last = OF(mass);",
            "a pointer to an object comes from one to something else",
        ),
        ("#define NEW(p) ((p) = malloc(sizeof *(p)))", "NEW(last);", "a macro makes its objects"),
        ("#define END(p) free(p)", "END(add(1));", "a macro ends its objects"),
        (
            "static void *get(size_t n) { return malloc(n + 8); }",
            "last = get(sizeof *last);",
            "get() gives an object",
        ),
        (
            "static void end(void *p) { memset(p, 0, 8); free(p); }",
            "end(add(1));",
            "end() is given an object",
        ),
        ("union any { struct item *one; long *number; };", "", "a union holds a pointer to an object"),
        ("", "printf(\"%ld\", (long)add(1));", "a pointer to an object comes from one to something else"),
    ] {
        refused(&with(above, inside), reason);
    }
}

#[test]
fn declarations_that_say_more_keep_their_objects_or_members() {
    let declared = |from: &str, to: &str| {
        let text = &HEADER[HEADER.find("struct item").expect("it")..HEADER.len() - 8];
        PROGRAM.replace("#include \"item.h\"\n", &text.replace(from, to))
    };
    refused(&declared("};", "} __attribute__((packed));"), "its declaration has an attribute");
    for (from, to) in [("double mass;", "volatile double mass;"), ("double mass;", "_Atomic double mass;")] {
        let text = declared(from, to).replace("double *mass;", "").replace("mass = &last->mass;", "");
        let text = text.replace("*mass += (*last->next).mass;", "last->mass = last->next->mass;");
        let edited = split(&text);
        assert!(
            edited["a.c"].contains("one->mass = 1.5") && edited["a.c"].contains("cold->label"),
            "{edited:?}"
        );
    }
}

#[test]
fn units_of_both_languages_keep_objects_whole() {
    let calls = ["cc -std=gnu11 -c a.c", "c++ -c b.cc"];
    let mut all = files(PROGRAM);
    all.push(("b.cc", "#include \"item.h\"\nlong f(struct item *p) { return p->made_at; }\n"));
    let options = Options { meaning: read_files(&all, &calls, "item"), ..Options::default() };
    let advice = advised_of(&all, &options, types());
    let why = advice.not_split.get("item").map(ToString::to_string).unwrap_or_default();
    assert!(advice.cold_parts.is_empty() && why.contains("units of C and of C++ use it"), "{why}");
}

#[test]
fn functions_without_blocks_stand_in_the_header_where_several_units_make_and_end_objects() {
    let (_, advice) = of_two_files(&threaded(), SECOND_FILE);
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    assert_eq!(advice.steps().iter().map(|step| step.targets.concat()).collect::<Vec<_>>(), ["item"]);
    let header = &advice.edited["item.h"];
    assert!(header.contains("#define ITEM_H\n#include <stdlib.h>\n"), "{header}");
    assert!(header.contains("static inline void item_free(struct item *ended)\n{\n"), "{header}");
    assert!(advice.edited["end.c"].contains("    item_free(one);\n"), "{:?}", advice.edited);
}

#[test]
fn where_memory_runs_out_the_call_gives_null_as_before() {
    let failing = "static int allowed = 2;
static void *limited(size_t size)
{
    return allowed-- > 0 ? malloc(size) : NULL;
}
";
    let edited = split(PROGRAM);
    let text = edited["a.c"].replace("= malloc(", "= limited(");
    let text =
        text.replacen("static struct item *item_new", &format!("{failing}static struct item *item_new"), 1);
    let start = text.find("int main(void)").expect("main");
    for (allowed, made) in [(0, "0 0"), (1, "0 0"), (2, "1 0"), (3, "1 1")] {
        let main = format!(
            "int main(void)\n{{\n    struct item *one, *two;\n    allowed = {allowed};\n    one = add(1);\n    two = add(2);
    printf(\"%d %d\\n\", one != NULL, two != NULL);\n    item_free(two);\n    item_free(one);\n    return sum(NULL);\n}}\n"
        );
        let program = format!("{}{main}", &text[..start]);
        let files = BTreeMap::from([("item.h", edited["item.h"].as_str()), ("a.c", program.as_str())]);
        assert_eq!(output(&files), format!("{made}\n"), "{allowed}");
    }
}
