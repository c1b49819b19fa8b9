//! Variables that are objects of structs of C, the expressions for objects, and calls that run once.

use crate::heap_objects::{facts, free, held};

/// `name line:column storage refusal`, in order.
fn variables(code: &str) -> Vec<String> {
    let variables = facts(code).variables;
    let words = |(one, units): (&lineup_sources::ObjectVariable, &u32)| {
        let refusal = one.refusal.as_deref().unwrap_or("free");
        format!("{} {}:{} {:?} {units} {refusal}", one.name, one.line - 5, one.column, one.storage)
    };
    variables.iter().map(words).collect()
}

#[test]
fn arrays_of_a_file_have_their_places() {
    let code = "#define N 4\nextern struct t all[N];\nstruct t all[N], *p;\nstatic struct t own[2];";
    let expected = ["all 2:17 Extern 1 free", "all 3:10 Plain 1 free", "own 4:17 Static 1 free"];
    assert_eq!(variables(code), expected);
    free(code);
}

#[test]
fn other_variables_have_a_reason() {
    for (code, reason) in [
        ("struct t one;", "a variable is an object outside of an array"),
        ("void f(void) { struct t all[3]; all[0].key = 1; }", "an array of a function holds objects"),
        ("struct t set[] = {{1}, {2}};", "an array has values in braces"),
        ("const struct t set[2];", "an array is const or volatile"),
        ("_Thread_local struct t own[2];", "each thread has its own array"),
        ("struct t own[2] __attribute__((section(\"x\")));", "the declaration of an array has an attribute"),
    ] {
        let found = variables(code);
        assert!(found.len() == 1 && found[0].ends_with(reason), "{found:?}");
    }
    held("#define ARRAY(n) struct t n[4]\nARRAY(all);", "*: a macro declares a variable of it");
}

#[test]
fn expressions_for_objects_have_their_places() {
    let code = "struct t all[4];
#define FIRST all[0]
int f(struct t *p, int i) { return all[i].key + (*p).key + all[i].next->key + FIRST.key + (all + i)->key; }";
    let facts = facts(code);
    let places = facts.named.iter().map(|named| match &named.object {
        Some(object) => {
            let array = object.array.as_deref().unwrap_or("-");
            format!("{} {}:{} {array}", named.member, object.line - 5, object.column)
        }
        None => format!("{} -", named.member),
    });
    let places: Vec<String> = places.collect();
    let expected = ["key 3:36 all", "key 3:49 -", "next 3:60 all", "key 3:60 -", "key -", "key 3:91 -"];
    assert_eq!(places, expected);
}

#[test]
fn the_number_of_elements_may_be_measured() {
    free(
        "struct t all[4];\nunsigned long f(void) { return sizeof all / sizeof all[0] + sizeof(all) / sizeof(struct t); }",
    );
    free(
        "struct t all[4];\n#define COUNT(a) (sizeof(a) / sizeof(*(a)))\nunsigned long f(void) { return COUNT(all); }",
    );
    for other in [
        "sizeof all / sizeof all",
        "sizeof all / 4",
        "sizeof all * sizeof all[0]",
        "(sizeof all, sizeof all[0])",
    ] {
        let code = format!("struct t all[4];\nunsigned long f(void) {{ return {other}; }}");
        held(&code, "*: sizeof measures it");
    }
}

#[test]
fn what_main_calls_once_runs_once() {
    let is_once = |code: &str| facts(code).is_made_once;
    let make = "static void make(int n) { first = malloc(n * sizeof *first); }\n";
    for code in [
        "int main(void) { first = malloc(9 * sizeof *first); return 0; }",
        "int main(void) { if (!(first = calloc(9, sizeof *first))) goto end; first->key = 1; end: return 0; }",
        &format!("{make}static void start(void) {{ make(3); }}\nint main(void) {{ start(); return 0; }}"),
    ] {
        assert!(is_once(code), "{code}");
    }
    for code in [
        "void f(void) { first = malloc(9 * sizeof *first); }",
        "int main(int n, char **v) { first = malloc(9 * sizeof *first); return n ? main(n - 1, v) : 0; }",
        "int main(void) { for (int i = 0; i < 2; i++) first = malloc(9 * sizeof *first); return 0; }",
        "int main(void) { int i = 0; again: first = malloc(9 * sizeof *first); if (i++ < 2) goto again; return 0; }",
        "#include <setjmp.h>\njmp_buf b; int main(void) { setjmp(b); first = malloc(9 * sizeof *first); return 0; }",
        "int main(void) { first = malloc(9 * sizeof *first); first = malloc(9 * sizeof *first); return 0; }",
        &format!("{make}int main(void) {{ make(1); make(2); return 0; }}"),
        &format!("{make}int main(void) {{ while (!first) make(1); return 0; }}"),
        &format!("{make}void (*by)(int) = make;\nint main(void) {{ by(1); return 0; }}"),
        &format!("{make}int main(void) {{ make(1); atexit((void (*)(void))make); return 0; }}"),
        &format!(
            "{make}void again(int) __attribute__((alias(\"make\")));\nint main(void) {{ make(1); again(2); return 0; }}"
        ),
        &format!(
            "void *dlsym(void *, const char *);\n{make}int main(void) {{ make(1); dlsym(0, \"main\"); return 0; }}"
        ),
        &format!("__attribute__((constructor)) {make}int main(void) {{ make(1); return 0; }}"),
    ] {
        assert!(!is_once(code), "{code}");
    }
}
