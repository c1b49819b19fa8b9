//! A study of placement makes plans of pools from the program's own allocations, and tries them.

use crate::place::Place;
use crate::schema;
use serde_json::Value;

/// Two lists whose nodes lie between each other, through one wrapper.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long key; long rest; };
__attribute__((noinline)) static void *taken(size_t size) { void *at = malloc(size); if (!at) abort(); return at; }
int main(void) {
    struct node *head = NULL;
    long sum = 0;
    for (long i = 0; i < 60000; i++) {
        struct node *n = taken(sizeof *n);
        char *text = taken(50);
        n->key = i; n->next = head; head = n; text[0] = (char)i;
    }
    for (int turn = 0; turn < 5; turn++) for (struct node *n = head; n; n = n->next) sum += n->key;
    printf("%ld\n", sum);
    return 0;
}
"#;

#[test]
fn pools_by_size_and_by_site_are_tried_with_plans_beside_the_report() {
    let place = Place::new(PROGRAM, &["-Wl,--build-id"]);
    let arguments = ["study", "--placement", "--json", "--max-time", "1", "--overwrite", "--", "./program"];
    let output = place.lineup(&arguments).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = schema::checked(&output.stdout);
    let all = report["candidates"].as_array().expect("candidates");
    for (name, file) in [("by size", "pools-by-size.plan"), ("by site", "pools-by-site.plan")] {
        let name = format!("Lineup's pools: {name}");
        let one = all.iter().find(|one| one["name"] == name.as_str());
        let one = one.unwrap_or_else(|| panic!("no {name}: {report:#}"));
        assert_eq!(one["difference"], Value::Null, "{one:#}");
        let environment = one["environment"].as_str().expect("words");
        assert!(environment.contains("liblineup_heap.so") && environment.contains(file), "{environment}");
    }
    let plan =
        std::fs::read_to_string(place.source().join("lineup-study/pools-by-site.plan")).expect("a plan");
    // The wrapper's callers have pools of their own: two places, two sizes.
    let sites: Vec<&str> = plan.lines().filter(|line| line.contains(" at ")).collect();
    assert!(sites.iter().any(|line| line.starts_with("pool sizes 24-24")), "{plan}");
    assert!(sites.iter().any(|line| line.starts_with("pool sizes 50-50")), "{plan}");
    let effects = report["confirmed"]["effects"].as_str();
    assert!(effects.is_none_or(|words| words.starts_with("equal")), "{effects:?}");
}
