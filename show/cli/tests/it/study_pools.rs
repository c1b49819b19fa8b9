//! A study of placement makes plans of pools from the program's own allocations, and tries them. A study without
//! regions tries it beside the other levers.

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
    for (int turn = 0; turn < 40; turn++) for (struct node *n = head; n; n = n->next) sum += n->key;
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
        // Headers go, so that the lists of nodes of 24 bytes need fewer lines.
        assert!(one["modelled_gain"].as_f64().is_some_and(|gain| gain > 0.0), "{one:#}");
        let environment = one["environment"].as_str().expect("words");
        assert!(environment.contains("liblineup_heap.so") && environment.contains(file), "{environment}");
    }
    let plan =
        std::fs::read_to_string(place.source().join("lineup-study/pools-by-site.plan")).expect("a plan");
    // The wrapper's callers have pools of their own: two places, two sizes.
    let sites: Vec<&str> = plan.lines().filter(|line| line.contains(" at ")).collect();
    assert!(sites.iter().any(|line| line.starts_with("pool sizes 24-24")), "{plan}");
    assert!(sites.iter().any(|line| line.starts_with("pool sizes 50-50")), "{plan}");
    let modelled = |name: &str| {
        let one = all.iter().find(|one| one["name"] == name);
        one.unwrap_or_else(|| panic!("no {name}: {report:#}"))["modelled_gain"].clone()
    };
    assert_eq!(modelled("larger caches of threads"), Value::Null, "the model knows nothing of it");
    assert_eq!(modelled("freed memory is kept").as_f64(), Some(0.0), "the program gives nothing back");
    let effects = report["confirmed"]["effects"].as_str();
    assert!(effects.is_none_or(|words| words.starts_with("equal")), "{effects:?}");
}

/// The lever of that name in a study's report.
fn lever<'r>(report: &'r Value, name: &str) -> &'r Value {
    let levers = report["levers"].as_array().expect("levers");
    levers.iter().find(|one| one["lever"] == name).unwrap_or_else(|| panic!("no {name}: {levers:#?}"))
}

#[test]
fn a_study_without_regions_tries_each_lever_and_says_why_one_was_not_tried() {
    let place = Place::new(PROGRAM, &["-Wl,--build-id"]);
    let arguments = ["study", "--json", "--max-time", "1", "--not", "code", "--", "./program"];
    let output = place.lineup(&arguments).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = schema::checked(&output.stdout);
    assert_eq!(lever(&report, "code order")["result"], "not tried: left out by --only or --not");
    assert_eq!(lever(&report, "layout")["page"], Value::Null);
    let placement = lever(&report, "placement");
    assert_eq!(placement["page"], "placement/report.html", "{placement:#}");
    assert!(placement["elapsed"]["ratio"].is_number(), "{placement:#}");
    let folder = place.source().join("lineup-study");
    assert!(folder.join("placement/report.html").exists() && folder.join("report.html").exists());
    // The program is named as the user named it, and not as the copy that was measured.
    for action in placement["actions"].as_array().expect("actions") {
        let text = action["text"].as_str().expect("words");
        assert!(!text.split(' ').any(|word| word.starts_with('/') && word.ends_with("/program")), "{text}");
    }

    let refused = place.lineup(&["study", "--only", "layout", "--region", "main", "--", "./program"]);
    let refused = { refused }.output().expect("lineup runs");
    assert_eq!(refused.status.code(), Some(2));
    let second = ["study", "--region", "main", "--test-arguments", "2", "--", "./program"];
    let refused = place.lineup(&second).output().expect("lineup runs");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("leave --region out"));
    // The layout's part is cut off with its share of the budget, and the report is written all the same.
    let cut =
        ["study", "--json", "--budget", "1", "--out", "cut", "--build", "sleep 2; make", "--", "./program"];
    let output = place.lineup(&cut).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let layout = lever(&schema::checked(&output.stdout), "layout")["result"].clone();
    assert!(layout.as_str().is_some_and(|why| why.ends_with("its time is over")), "{layout}");
    let short = ["study", "--only", "placement", "--budget", "1", "--out", "short", "--", "./program"];
    let output = place.lineup(&short).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("were left of --budget 1"), "{said}");
}
