//! Single objects of structs of C that come from blocks: the edit expected, programs that do the same before and after it
//! under the sanitisers, and programs whose objects stay where they are.

use super::output;
use crate::cold_part_read::read_files;
use lineup_advise::judge::NoCompiler;
use lineup_advise::kind::Task;
use lineup_advise::options::{Options, WantedPool};
use lineup_advise::pool::Pools;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_model::abi::Abi;
use lineup_model::types::Types;
use std::collections::BTreeMap;

const TREE: &str = r#"#include <stdio.h>
#include <stdlib.h>

typedef struct tree {
    int value;
    struct tree *left, *right;
} tree_t;

/* Adds a value. */
static tree_t *add(tree_t *to, int value)
{
    if (!to) {
        to = (tree_t *)malloc(sizeof(tree_t));
        if (to == NULL)
            abort();
        to->value = value;
        to->left = to->right = NULL;
    } else if (value < to->value) {
        to->left = add(to->left, value);
    } else {
        to->right = add(to->right, value);
    }
    return to;
}

static long sum(const tree_t *of)
{
    return of ? of->value + sum(of->left) + sum(of->right) : 0;
}

static void end(tree_t *of)
{
    if (of) {
        end(of->left);
        end(of->right);
    }
    free(of);
}

int main(void)
{
    tree_t *root = NULL;
    for (int round = 0; round < 3; round++) {
        for (int number = 0; number < 500; number++)
            root = add(root, number * 7919 % 1000);
        printf("%ld\n", sum(root));
        end(root);
        root = NULL;
    }
    return 0;
}
"#;

/// The tree without its end: nothing gives memory back.
fn kept() -> String {
    let (before, rest) = TREE.split_once("static void end").expect("a function");
    let main = &rest[rest.find("int main").expect("main")..];
    format!("{before}{main}").replace("        end(root);\n        root = NULL;\n", "")
}

fn advised(files: &[(&str, &str)], change: impl FnOnce(&mut Options)) -> Advice {
    advised_of(files, 24, change)
}

/// The same for a tree of this size.
fn advised_of(files: &[(&str, &str)], size_bytes: u64, change: impl FnOnce(&mut Options)) -> Advice {
    let calls: Vec<String> = files
        .iter()
        .filter(|(path, _)| path.ends_with(".c"))
        .map(|(path, _)| format!("cc -std=gnu11 -c {path}"))
        .collect();
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    let pools = vec![WantedPool { type_name: "tree".to_owned(), size_bytes, is_on_huge_pages: false }];
    let mut options = Options { meaning: read_files(files, &calls, "tree"), pools, ..Options::default() };
    change(&mut options);
    let (usage, types) = (Usage::empty(Abi::X86_64), Types::default());
    let sources = Sources::new(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    let task =
        Task { usage: &usage, types: &types, sources: &sources, options: &options, judge: &mut NoCompiler };
    lineup_advise::advise_with(&[&Pools], task).expect("advice")
}

/// The edited texts of a program; both programs do the same.
#[track_caller]
fn pooled(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let advice = advised(files, |_| {});
    assert_eq!(advice.pools.len(), 1, "{:?}", advice.refusals);
    let before: BTreeMap<&str, &str> = files.iter().copied().collect();
    let mut after = before.clone();
    after.extend(advice.edited.iter().map(|(path, text)| (path.as_str(), text.as_str())));
    assert_eq!(output(&before), output(&after));
    advice.edited
}

/// The reason why objects stay where they are.
#[track_caller]
fn refused(files: &[(&str, &str)], reason: &str) {
    let advice = advised(files, |_| {});
    assert!(advice.pools.is_empty() && advice.edited.is_empty(), "{:?}", advice.edited);
    let why = advice.refusals.first().map(|refusal| refusal.constraints[0].to_string()).unwrap_or_default();
    assert!(why.contains(reason), "{why}");
}

/// The tree with these lines before `main`.
fn with(above: &str) -> String {
    TREE.replace("int main(void)\n", &format!("{above}\nint main(void)\n"))
}

fn on_huge_pages(options: &mut Options) {
    options.pools.iter_mut().for_each(|pool| pool.is_on_huge_pages = true);
}

#[test]
fn blocks_may_be_huge_pages() {
    let files = [("a.c", TREE)];
    let advice = advised(&files, on_huge_pages);
    assert_eq!(advice.pools.len(), 1, "{:?}", advice.refusals);
    let edited = &advice.edited["a.c"];
    let refill = r#"
    if (!left) {
        const unsigned long size = 2UL << 20;
        void *memory;

        if (posix_memalign(&memory, size, size))
            return 0;
#ifdef MADV_HUGEPAGE
        madvise(memory, size, MADV_HUGEPAGE);
#endif
        block = memory;
        left = size / sizeof *block;
    }
    left--;
"#;
    assert!(edited.contains(refill), "{edited}");
    assert_eq!(edited.matches("#include <sys/mman.h>\n").count(), 1, "{edited}");
    let words = advice.pools[0].types[0].in_words();
    assert!(words.contains("from blocks of 87381 in huge pages"), "{words}");
    let (before, after) = (BTreeMap::from(files), BTreeMap::from([("a.c", edited.as_str())]));
    assert_eq!(output(&before), output(&after));
}

#[test]
fn blocks_are_no_huge_pages_where_the_program_makes_or_zeroes_them() {
    let own = "static void *xmalloc(size_t size)\n{\n    void *p = malloc(size);\n    if (!p)\n        abort();\n    return p;\n}\n\n/* Adds a value. */";
    let own =
        TREE.replace("/* Adds a value. */", own).replace("malloc(sizeof(tree_t))", "xmalloc(sizeof(tree_t))");
    let zeroed = kept().replace("malloc(sizeof(tree_t))", "calloc(1, sizeof(tree_t))");
    for (program, why) in
        [(&own, "a function of the program makes its objects"), (&zeroed, "its blocks are zeroed")]
    {
        assert_eq!(advised(&[("a.c", program)], |_| {}).pools.len(), 1, "{program}");
        let advice = advised(&[("a.c", program)], on_huge_pages);
        let said = advice.refusals.first().map(|one| one.constraints[0].to_string()).unwrap_or_default();
        assert!(advice.pools.is_empty() && said.contains(why), "{said}");
    }
}

#[test]
fn objects_that_calls_end_come_from_blocks_and_go_back() {
    let edited = pooled(&[("a.c", TREE)]);
    let functions = r#"} tree_t;

/* Objects come from blocks, side by side and without headers. The program keeps the blocks. */
union tree_slot {
    struct tree object;
    union tree_slot *next;
};

static union tree_slot *tree_spare;

static struct tree *tree_new(void)
{
    static union tree_slot *block;
    static unsigned left;
    union tree_slot *made = tree_spare;

    if (made) {
        tree_spare = made->next;
        return &made->object;
    }
    if (!left) {
        block = malloc(170 * sizeof *block);
        if (!block)
            return 0;
        left = 170;
    }
    left--;
    return &block++->object;
}

static void tree_free(struct tree *ended)
{
    union tree_slot *slot = (union tree_slot *)ended;

    if (!slot)
        return;
    slot->next = tree_spare;
    tree_spare = slot;
}

/* Adds a value. */
static tree_t *add(tree_t *to, int value)
"#;
    assert!(edited["a.c"].contains(functions), "{}", edited["a.c"]);
    assert!(edited["a.c"].contains("        to = tree_new();\n"), "{}", edited["a.c"]);
    assert!(edited["a.c"].contains("    tree_free(of);\n"), "{}", edited["a.c"]);
}

#[test]
fn objects_that_nothing_ends_come_from_blocks_without_a_way_back() {
    let edited = pooled(&[("a.c", &kept())]);
    let functions = r#"/* Objects come from blocks, side by side and without headers. */
static struct tree *tree_new(void)
{
    static struct tree *block;
    static unsigned left;

    if (!left) {
        block = malloc(170 * sizeof *block);
        if (!block)
            return 0;
        left = 170;
    }
    left--;
    return block++;
}
"#;
    assert!(edited["a.c"].contains(functions) && !edited["a.c"].contains("union"), "{}", edited["a.c"]);
    let held = "struct park { long number; tree_t oak; };\n\
                struct park *park(void) { return (struct park *)malloc(sizeof(struct park)); }";
    let held = kept().replace("int main(void)\n", &format!("{held}\nint main(void)\n"));
    refused(&[("a.c", &held)], "another type holds an object by value");
    // Three numbers of eight bytes lie at multiples of eight, and of sixteen from the allocator.
    for (above, reason) in [
        ("unsigned long tag(tree_t *of) { return (unsigned long)of & 15; }", "multiples of 16 bytes"),
        ("union word { tree_t *tree; unsigned long bits; };", "multiples of 16 bytes"),
        (
            "#include <string.h>\nvoid put(char *to, tree_t *of) { memcpy(to, &of, sizeof of); }",
            "multiples of 16 bytes",
        ),
    ] {
        let text = kept().replace("int main(void)\n", &format!("{above}\nint main(void)\n"));
        refused(&[("a.c", &text)], reason);
        let wide = text.replace("    int value;\n", "    int value, other[2];\n");
        let wide = advised_of(&[("a.c", &wide)], 32, |_| {});
        assert_eq!(wide.pools.len(), 1, "{above}: {:?}", wide.refusals);
    }
    // Old programs declare the function by themselves.
    let old = kept().replace(
        "#include <stdlib.h>\n",
        "#define NULL ((void *)0)\nvoid *malloc(unsigned long);\nvoid abort(void);\n",
    );
    let old = old.replace("#include <stdio.h>\n", "int printf(const char *, ...);\n");
    assert!(pooled(&[("a.c", &old)])["a.c"].contains("to = tree_new();"));
}

#[test]
fn calls_of_calloc_get_zeroed_objects() {
    let zeroed = TREE.replace("malloc(sizeof(tree_t))", "calloc(1, sizeof(tree_t))");
    let zeroed = zeroed.replace("        to->left = to->right = NULL;\n", "");
    let edited = pooled(&[("a.c", &zeroed)]);
    assert!(edited["a.c"].contains("to = tree_new_zeroed();"), "{}", edited["a.c"]);
    assert!(edited["a.c"].contains("*made = none;"), "{}", edited["a.c"]);
    let zeroed = kept().replace("malloc(sizeof(tree_t))", "calloc(1, sizeof(tree_t))");
    let zeroed = zeroed.replace("        to->left = to->right = NULL;\n", "");
    let edited = pooled(&[("a.c", &zeroed)]);
    assert!(edited["a.c"].contains("block = calloc(170, sizeof *block);"), "{}", edited["a.c"]);
}

#[test]
fn files_that_make_and_end_objects_share_the_functions() {
    let (top, rest) = TREE.split_once("/* Adds").expect("a comment");
    let end = rest.find("static void end").expect("a function");
    let main = rest.find("int main").expect("main");
    let header = format!(
        "#ifndef TREE_H\n#define TREE_H\n{}void end(tree_t *of);\n#endif\n",
        top.replace("#include <stdlib.h>\n", "")
    );
    let other =
        format!("#include <stdlib.h>\n#include \"tree.h\"\n\n{}", rest[end..main].replacen("static ", "", 1));
    let main =
        format!("#include <stdlib.h>\n#include \"tree.h\"\n\n/* Adds{}{}", &rest[..end], &rest[main..]);
    let files: [(&str, &str); 3] = [("tree.h", &header), ("other.c", &other), ("a.c", &main)];
    let advice = advised(&files, |_| {});
    assert_eq!(advice.pools.len(), 1, "{:?}", advice.refusals);
    let prototypes = "} tree_t;\n\nstruct tree *tree_new(void);\nvoid tree_free(struct tree *ended);\n";
    assert!(advice.edited["tree.h"].contains(prototypes), "{}", advice.edited["tree.h"]);
    assert!(advice.edited["a.c"].contains("\nstruct tree *tree_new(void)\n{"), "{}", advice.edited["a.c"]);
    assert!(advice.edited["other.c"].contains("tree_free(of);"), "{}", advice.edited["other.c"]);
    // One unit holds both, and has to do the same.
    let as_one = |text: &dyn Fn(&str) -> String| {
        let all = text("tree.h") + &text("other.c") + &text("a.c");
        all.replace("#include \"tree.h\"\n", "")
    };
    let before = as_one(&|path| {
        files.iter().find(|(own, _)| *own == path).map(|(_, text)| (*text).to_owned()).unwrap_or_default()
    });
    let after = as_one(&|path| advice.edited[path].clone());
    assert_eq!(output(&[("a.c", before.as_str())].into()), output(&[("a.c", after.as_str())].into()));
}

/// The tree with these lines before `main`, which gives an object to `lose`.
fn lost(above: &str) -> String {
    let given = "    tree_t *root = NULL;\n    if (getenv(\"LOST\"))\n        lose(add(NULL, 1));\n";
    with(above).replace("    tree_t *root = NULL;\n", given)
}

#[test]
fn objects_that_reach_the_allocator_by_other_pointers_stay_where_they_are() {
    let other = "free() is given an object by a pointer of another type";
    for (above, reason) in [
        (
            "int drop();\nvoid lose(tree_t *of) { drop(of); }\nint drop(p) char *p; { free(p); return 0; }",
            other,
        ),
        (
            "#include <stdarg.h>\nvoid drop(int n, ...) { va_list ap; va_start(ap, n); free(va_arg(ap, void *)); va_end(ap); }\n\
            void lose(tree_t *of) { drop(1, of); }",
            other,
        ),
        (
            "static void end_it(void *p) { free(*(void **)p); }\n\
            void lose(tree_t *of) { __attribute__((cleanup(end_it))) tree_t *own = of; own->value++; }",
            other,
        ),
        (
            "void drop(tree_t *all[2]) { void **p = (void **)all; free(p[0]); }\n\
            void lose(tree_t *of) { tree_t *all[2] = { of, 0 }; drop(all); }",
            "a pointer to pointers to objects changes its type",
        ),
    ] {
        refused(&[("a.c", &lost(above))], reason);
    }
    for (above, elsewhere) in [
        ("int drop();\nvoid lose(tree_t *of) { drop(of); }", "int drop(void *p) { free(p); return 0; }"),
        (
            "tree_t *shared;\nvoid lose(tree_t *of) { shared = of; }",
            "extern void *shared;\nvoid drop(void) { free(shared); }",
        ),
    ] {
        let elsewhere = format!("#include <stdlib.h>\n{elsewhere}\n");
        refused(&[("a.c", &lost(above)), ("b.c", &elsewhere)], other);
    }
    pooled(&[("a.c", &lost("void lose(tree_t *of) { free(of); }"))]);
    pooled(&[("a.c", &lost("static char *kept;\nvoid lose(tree_t *of) { free(kept); free(of); }"))]);
}

#[test]
fn objects_that_may_reach_the_allocator_stay_where_they_are() {
    let array = "tree_t *many(unsigned n) { return malloc(n * sizeof(tree_t)); }";
    for (above, reason) in [
        ("void *as(tree_t *of) { return of; }", "a pointer to an object comes from one"),
        ("void *more(tree_t *of) { return realloc(of, 2 * sizeof *of); }", "realloc() is given an object"),
        ("#define DROP(p) free(p)\nvoid drop(tree_t *of) { DROP(of); }", "a macro ends its objects"),
        ("int *value(tree_t *of) { return &of->value; }", "its address, which is that of the object"),
        ("struct holder { tree_t first; };", "another type holds an object by value"),
        ("union any { tree_t *tree; char *text; };", "a union holds a pointer"),
        ("tree_t *small(void) { return malloc(8); }", "memory is asked for by another size"),
        (array, "calls make several objects at once"),
        ("#ifdef OTHER\nvoid drop(void *p) { free(p); }\n#endif", "code that other settings compile"),
        (
            "#include <pthread.h>\nvoid *run(void *p) { return p; }\nint go(pthread_t *t) { return pthread_create(t, 0, run, 0); }",
            "`pthread_create` may start a thread",
        ),
    ] {
        refused(&[("a.c", &with(above))], reason);
    }
    // Code that only looks at objects does not keep them.
    pooled(&[("a.c", &with("tree_t copied(tree_t *of);\ntree_t copied(tree_t *of) { return *of; }"))]);
    let conditions = "#if 0\nvoid drop(void *p) { free(p); }\n#endif\n#ifdef OTHER\nint other;\n#endif";
    pooled(&[("a.c", &with(conditions))]);
}

#[test]
fn pools_are_not_written_of_kept_types_and_half_read_programs() {
    let is_refused = |change: fn(&mut Options)| advised(&[("a.c", TREE)], change).pools.is_empty();
    assert!(is_refused(|options| options.keeps = vec!["tree_t".to_owned()]));
    assert!(is_refused(|options| options.meaning.is_of_all_units = false));
    assert!(is_refused(|options| options.meaning.splits.clear()));
    let taken = TREE.replace("static long sum", "int tree_slot;\nstatic long sum");
    refused(&[("a.c", &taken)], "the sources have names");
}
