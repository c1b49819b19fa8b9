//! A use that a person has judged harmless holds its type no more, and the patch says who has to be believed.

use crate::place::Place;
use serde_json::Value;
use std::fs;

/// Three hot members on three lines; the bytes of the objects are summed up somewhere else.
const SUMMED: &str = r#"
#include <stdio.h>
struct item { long a; char b[56]; long c; char d[56]; long e; };
static struct item items[4];
__attribute__((noinline)) long work(int n) {
    struct item *item = &items[n % 4];
    item->a += n; item->c += item->a; item->e ^= item->c;
    return item->e;
}
__attribute__((noinline)) int sum_of(const void *bytes) {
    const unsigned char *byte = bytes;
    int sum = 0;
    for (unsigned long n = 0; n < sizeof(struct item); n++) sum += byte[n];
    return sum;
}
int main(void) {
    for (int n = 0; n < 300; n++) work(n);
    printf("%d\n", sum_of(&items[1]));
    return 0;
}
"#;

fn review(says: &str) -> String {
    format!(
        "[[reviewed]]\ntype = \"item\"\nfile = \"main.c\"\nsays = \"{says}\"\n\
         because = \"a sum is the same in every order\"\n"
    )
}

/// Studies the program with these constraints: the report, and the messages.
fn study(place: &Place, constraints: &str) -> (Value, String) {
    let file = place.root.path().join("constraints.toml");
    fs::write(&file, constraints).expect("a file");
    let mut study =
        place.lineup(&["study", "--region", "work", "--json", "--max-time", "1", "--margin", "1000%"]);
    study.arg("--constraints").arg(file).args(["--", "./program"]);
    let output = study.output().expect("lineup runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    (serde_json::from_slice(&output.stdout).expect("a report"), told)
}

#[test]
fn a_use_that_was_judged_harmless_holds_its_type_no_more_and_the_patch_tells_it() {
    let place = Place::new(SUMMED, &[]);
    let (held, _) = study(&place, "");
    assert!(held["patch"].is_null(), "{:#}", held["patch"]);
    assert!(held["refusals"].to_string().contains("its bytes are read one by one"), "{:#}", held["refusals"]);

    let (moved, told) = study(&place, &review("read one by one"));
    assert!(!told.contains("fits no use"), "{told}");
    let patch = moved["patch"]["text"].as_str().expect("a patch");
    assert!(patch.contains("Judged harmless by hand:\n    item at main.c:"), "{patch}");
    assert!(
        patch.contains("its bytes are read one by one") && patch.contains("a sum is the same in every order")
    );
}

#[test]
fn a_review_of_something_else_changes_nothing_and_is_told() {
    let place = Place::new(SUMMED, &[]);
    let (held, told) = study(&place, &review("cast to or from net_device"));
    assert!(held["patch"].is_null(), "{:#}", held["patch"]);
    assert!(told.contains("the review of item in main.c fits no use that was found"), "{told}");
    place.assert_clean();
}
