//! Smaller structs of C: the edit expected, programs that do the same before and after it with both compilers, and the
//! uses that keep members as they are declared.

use crate::cold_part::{advised_for, loaded};
use crate::cold_part_read::read_files;
use crate::pahole::{integer, member, push, run, structure};
use lineup_advise::options::{FailedTrial, Options};
use lineup_advise::proposal::Advice;
use lineup_model::types::{TypeId, TypeKind, Types};
use lineup_model::usage::ObjectPattern;
use std::collections::BTreeMap;

const PROGRAM: &str = r#"#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NONE, LEAF, NODE };

/* One thing in the store. */
struct item {
    long key;
    int alive;            /* Not yet sold. */
    struct item *next;
    unsigned level;
    enum kind kind;
    int made_by;          /* Who made it. */
    long hits;
    int balance;
};

static struct item *first;

static int maker(void)
{
    puts("made");
    return rand();
}

static struct item *add(long key, int balance)
{
    struct item *one = malloc(sizeof *one);
    if (one == NULL)
        return NULL;
    memset(one, 0, sizeof *one);
    one->key = key;
    one->alive = key % 3 != 0;
    one->level = (unsigned)key % 200;
    one->kind = key & 1 ? LEAF : NODE;
    one->made_by = maker();
    one->hits = 0;
    one->balance = balance;
    one->next = first;
    first = one;
    return one;
}

static long sum(const struct item *from)
{
    long found = 0;
    for (; from; from = from->next) {
        if (from->alive && from->level - 1 < 150)
            found += from->key + from->kind;
    }
    return found;
}

int main(void)
{
    for (int number = 0; number < 300; number++)
        add(number, 5 * number);
    for (struct item *one = first; one; one = one->next) {
        if (one->alive)
            one->hits++;
        else
            one->hits = -1;
    }
    printf("%ld %u %d %d\n", sum(first), first->level, first->kind, first->balance);
    return 0;
}
"#;

/// The members, each with its offset and size in bytes.
const MEMBERS: [(&str, u64, u64); 8] = [
    ("key", 0, 8),
    ("alive", 8, 4),
    ("next", 16, 8),
    ("level", 24, 4),
    ("kind", 28, 4),
    ("made_by", 32, 4),
    ("hits", 40, 8),
    ("balance", 48, 4),
];

fn types() -> (Types, TypeId) {
    let mut types = Types::new();
    let sizes = [("int", 4), ("long", 8)].map(|(name, size)| (size, integer(&mut types, name, size)));
    let pointer = push(&mut types, "", Some(8), TypeKind::Pointer(None));
    let members = MEMBERS.iter().map(|&(name, at, size)| {
        let ty = sizes.iter().find(|(known, _)| *known == size).map_or(pointer, |(_, ty)| *ty);
        member(name, if name == "next" { pointer } else { ty }, 8 * at)
    });
    let members = members.collect();
    let id = structure(&mut types, "item", 56, members);
    (types, id)
}

/// The advice for elements of an array, of which calls use these members.
fn advised_with(program: &str, change: impl FnOnce(&mut Options)) -> Advice {
    let files = [("a.c", program)];
    let mut options =
        Options { meaning: read_files(&files, &["cc -std=gnu11 -c a.c"], "item"), ..Options::default() };
    change(&mut options);
    let files = vec![("a.c".to_owned(), program.to_owned())];
    let used = loaded(&[(0, 8), (8, 4), (16, 8), (24, 4), (28, 4), (48, 4)]);
    let pattern = ObjectPattern { neighbour_distance_bytes: Some(56), ..ObjectPattern::alone(0, used, 160) };
    advised_for(files, &options, types(), pattern)
}

fn advised(program: &str) -> Advice {
    advised_with(program, |_| {})
}

/// The output of a program that one compiler makes.
fn output(compiler: &str, text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.c"), text).expect("writes");
    let flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "a", "a.c"];
    run(compiler, compiler, folder.path(), &flags).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let program = folder.path().join("a");
    run(&program.to_string_lossy(), "", folder.path(), &[]).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

/// The edited text of a program whose objects get this size; both programs do the same.
#[track_caller]
fn narrowed(program: &str, size_bytes: u64) -> String {
    let advice = advised(program);
    let [one] = &advice.narrowings[..] else { panic!("{:#?}", advice.descriptions) };
    assert_eq!(one.sizes[0].after_bytes, size_bytes, "{:?}", one.order);
    let text = advice.edited["a.c"].clone();
    let asserted = format!("{text}_Static_assert(sizeof(struct item) == {size_bytes}, \"its size\");\n");
    for compiler in ["gcc", "clang"] {
        assert_eq!(output(compiler, program), output(compiler, &asserted), "{text}");
    }
    text
}

#[track_caller]
fn has(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

#[test]
fn unread_members_leave_and_bounded_integers_get_bytes() {
    let text = narrowed(PROGRAM, 24);
    has(
        &text,
        &[
            "    unsigned char alive;            /* Not yet sold. */\n",
            "    unsigned char level;\n",
            "    unsigned char kind;\n",
            "    int key;\n",
            "    int balance;\n",
            "    one->kind = key & 1 ? LEAF : NODE;\n    maker();\n    one->balance = balance;\n",
            "        if (one->alive)\n            {}\n        else\n            {}\n",
            "from->alive && (unsigned)from->level - 1 < 150)",
            "found += (long)from->key + from->kind;",
            "sum(first), (unsigned)first->level, (enum kind)first->kind, first->balance);",
        ],
    );
    assert!(!text.contains("made_by") && !text.contains("hits"), "{text}");
}

#[test]
fn the_report_names_members_values_and_lines() {
    let advice = advised(PROGRAM);
    let told = advice.descriptions.iter().find(|one| one.kind.slug == "narrow").expect("a description");
    assert!(told.is_in_patch && told.summary.contains("no unit reads made_by, hits: removed"), "{told:?}");
    assert!(told.summary.ends_with("An object shrinks from 56 to 24 bytes."), "{told:?}");
    let reason = "level: every write in the sources gives 0 to 199 (widest at a.c:35), so unsigned becomes unsigned char.";
    assert!(told.reasons.iter().any(|one| one == reason), "{told:?}");
    let row = told.lines.iter().find(|row| row.line_bytes == 64).expect("lines");
    assert!(row.after < 0.5 * row.before.unwrap_or(0.0), "{row:?}");
    assert_eq!(told.worth.len(), 1);
}

#[test]
fn types_are_spelled_in_the_style_of_the_file() {
    let text = PROGRAM.replace("#include <stdlib.h>\n", "#include <stdbool.h>\n#include <stdlib.h>\n");
    has(&narrowed(&text, 24), &["    bool alive;", "    unsigned char level;"]);
    let text = PROGRAM
        .replace("#include <stdlib.h>\n", "#include <stdint.h>\n#include <stdlib.h>\nextern uint8_t none;\n");
    has(&narrowed(&text, 24), &["    uint8_t alive;", "    uint8_t level;"]);
    let text = PROGRAM.replace("(unsigned)key % 200", "(unsigned)key % 300");
    has(&narrowed(&text, 24), &["    unsigned short level;"]);
    let text = PROGRAM.replace("one->alive = key % 3 != 0;", "one->alive = key % 3 ? -1 : 0;");
    has(&narrowed(&text, 24), &["    signed char alive;"]);
}

#[test]
fn values_in_braces_lose_their_entries() {
    let made = "    struct item other = { .made_by = 3, .key = 9, .hits = 2 };\n    struct item none = { .hits = 1 };\n";
    let text = PROGRAM.replace("int main(void)\n{\n", &format!("int main(void)\n{{\n{made}"));
    let text = text.replace(
        "first->balance);\n",
        "first->balance);\n    printf(\"%ld %ld\\n\", other.key, none.key);\n",
    );
    has(&narrowed(&text, 24), &["struct item other = { .key = 9 };", "struct item none = { 0 };"]);
}

#[test]
fn values_that_do_something_stay_as_statements() {
    let above = "#include <stdarg.h>\nstatic int made;
static int second(struct item *one, ...)
{
    va_list all;
    va_start(all, one);
    one->made_by = va_arg(all, int);
    int found = va_arg(all, int);
    va_end(all);
    return found;
}
";
    let inside = "    first->made_by = __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST);
    printf(\"%d %d\\n\", made, second(first, 3, 4));";
    let text = narrowed(&with(above, inside), 24);
    has(&text, &["\n    va_arg(all, int);\n", "\n    __atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST);\n"]);
}

/// The program with this code in `main`, and this above it.
fn with(above: &str, inside: &str) -> String {
    let text = PROGRAM.replace("int main(void)\n{\n", &format!("{above}\nint main(void)\n{{\n"));
    text.replace("    return 0;\n}\n", &format!("{inside}\n    return 0;\n}}\n"))
}

/// The members that change in a program.
fn changes(program: &str) -> String {
    let advice = advised(program);
    let names = |one: &lineup_advise::proposal::NarrowProposal| {
        let narrowed = one.narrowed.iter().map(|one| one.member.clone());
        let mut all: Vec<String> =
            one.removed.iter().map(|name| format!("-{name}")).chain(narrowed).collect();
        all.sort();
        all.join(" ")
    };
    advice.narrowings.first().map(names).unwrap_or_default()
}

#[test]
fn uses_of_one_member_keep_it() {
    const ALL: &str = "-hits -made_by alive key kind level";
    assert_eq!(changes(PROGRAM), ALL);
    for (above, inside, kept) in [
        ("", "int *kept = &first->alive; *kept = 1;", "alive"),
        ("", "scanf(\"%u\", &first->level);", "level"),
        ("", "first->level++;", "level"),
        ("", "first->level = 4 * (unsigned)rand();", "level"),
        ("", "printf(\"%zu\\n\", sizeof first->alive);", "alive"),
        ("", "__auto_type kept = first->alive; printf(\"%d\", kept);", "alive"),
        ("", "printf(\"%d\\n\", _Generic(first->alive, int: 1, default: 2));", "alive"),
        ("#define LEVEL(of) ((of)->level + 1)", "printf(\"%u\\n\", LEVEL(first));", "level"),
        ("", "printf(\"%d\\n\", first->made_by);", "-made_by"),
        ("", "int last = first->made_by = 4; printf(\"%d\\n\", last);", "-made_by"),
        ("#ifdef DEBUG\nint maker_of(struct item *p) { return p->made_by; }\n#endif", "", "-made_by"),
        ("#define MAKER(of) ((of)->made_by)", "", "-made_by"),
    ] {
        let expected: Vec<&str> = ALL.split(' ').filter(|name| *name != kept).collect();
        let found = changes(&with(above, inside));
        assert_eq!(found, expected.join(" "), "{above}{inside}");
    }
}

#[test]
fn uses_of_objects_keep_every_member_and_the_report_names_the_unread_ones() {
    for (above, inside, reason) in [
        ("", "printf(\"%zu\\n\", sizeof(struct item));", "its size is measured"),
        ("", "fwrite(first, sizeof *first, 1, stdout);", "fwrite()"),
        ("", "memset(first, 255, sizeof *first);", "memset() writes bytes of objects"),
        ("", "memset(first, 0, 56);", "memset() is given a number of bytes"),
        ("void store(const char *);", "store((const char *)first);", "becomes one to something else"),
        ("union both { struct item one; long words[7]; };", "", "it shares the memory of a union"),
        ("_Static_assert(sizeof(struct item) == 56, \"\");", "", "its size is measured"),
    ] {
        let advice = advised(&with(above, inside));
        assert!(advice.narrowings.is_empty(), "{above}{inside}");
        let told = advice.descriptions.iter().find(|one| one.kind.slug == "narrow").expect("a suggestion");
        assert!(told.summary.contains("no unit reads made_by"), "{told:?}");
        assert!(told.summary.contains(reason) && !told.is_in_patch, "{told:?}");
    }
}

#[test]
fn a_write_whose_value_is_used_is_a_read() {
    for inside in [
        "printf(\"%d\\n\", first->made_by++);",
        "printf(\"%c\\n\", \"abc\"[--first->made_by & 1]);",
        "if (first->made_by += 3) maker();",
    ] {
        let advice = advised(&with("", inside));
        let told: Vec<_> = advice.descriptions.iter().filter(|one| one.kind.slug == "narrow").collect();
        assert!(!told.is_empty() && !format!("{told:?}").contains("no unit reads made_by"), "{told:?}");
    }
}

#[test]
fn values_by_position_keep_every_member_in_its_place_and_bound_it() {
    assert_eq!(
        changes(&with("struct item kept = { 1, 0, NULL, 7, LEAF, 3, 2, 1 };", "")),
        "alive key kind level"
    );
    let wide = "struct item kept = { 1, 0, NULL, 700, LEAF, 3, 2, 1 };";
    has(&advised(&with(wide, "")).edited["a.c"], &["unsigned short level;"]);
}

#[test]
fn options_and_unread_units_keep_members() {
    let is_kept = |change: &dyn Fn(&mut Options)| {
        advised_with(PROGRAM, |options| change(options)).narrowings.is_empty()
    };
    assert!(is_kept(&|options| options.meaning.is_of_all_units = false));
    assert!(is_kept(&|options| options.keeps.push("item".into())));
    let owner = "item (narrow)".to_owned();
    assert!(is_kept(&|options| {
        options.failed.push(FailedTrial { owner: owner.clone(), because: "slower".into() });
    }));
    let pinned = advised_with(PROGRAM, |options| options.pins.push(("item".into(), "hits".into())));
    assert!(pinned.narrowings.iter().all(|one| !one.removed.contains(&"hits".to_owned())));
    let padded = PROGRAM.replace("made_by", "reserved");
    assert!(advised(&padded).narrowings.iter().all(|one| one.removed == ["hits"]));
}

#[test]
fn objects_without_bounded_members_are_left_to_orders() {
    let text = PROGRAM.replace("one->made_by = maker();", "one->made_by = maker() + rand();");
    let text = text.replace("one->alive = key % 3 != 0;", "one->alive = rand();");
    let text =
        text.replace("(unsigned)key % 200", "(unsigned)rand()").replace("key & 1 ? LEAF : NODE", "rand()");
    let all: BTreeMap<String, String> = advised(&text).edited;
    assert!(all.get("a.c").is_none_or(|text| !text.contains("unsigned char")), "{all:?}");
}
