//! A study of placement tries allocators, settings and huge pages, drops those that change what the program does, and
//! confirms one in runs of its own.

use crate::place::Place;
use crate::schema;
use serde_json::Value;
use std::process::Command;

/// A list of many small objects, visited many times; with an argument, as often as that says.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long key; };
int main(int argc, char **argv) {
    struct node *head = NULL;
    for (long i = 0; i < 4000; i++) { struct node *n = malloc(sizeof *n); n->key = i; n->next = head; head = n; }
    long sum = 0;
    for (int turn = 0; turn < (argc > 1 ? atoi(argv[1]) : 10); turn++)
        for (struct node *n = head; n; n = n->next) sum += n->key;
    printf("%ld\n", sum);
    return 0;
}
"#;

/// An allocator that passes everything on.
const QUIET: &str = "#include <stddef.h>\nvoid *__libc_malloc(size_t); void *malloc(size_t size) { return __libc_malloc(size); }\n";

/// One whose library says so.
const LOUD: &str = "#include <unistd.h>\n__attribute__((constructor)) static void say(void) { if (write(1, \"loud\\n\", 5)) return; }\n";

/// One that ends the program.
const DEADLY: &str = "#include <stdlib.h>\n__attribute__((constructor)) static void end(void) { abort(); }\n";

fn library(place: &Place, name: &str, text: &str) {
    let folder = place.source();
    std::fs::write(folder.join(name).with_extension("c"), text).expect("a file");
    let source = format!("{}.c", name.trim_end_matches(".so"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-O2", "-o", name, &source]).current_dir(folder);
    assert!(gcc.status().expect("gcc runs").success());
}

/// Runs a study; its exit code, report and words.
fn study(place: &Place, options: &[&str], program: &[&str]) -> (Option<i32>, Value, String) {
    let common = ["study", "--placement", "--json", "--max-time", "1", "--overwrite"];
    let output =
        place.lineup(&[&common[..], options, &["--"], program].concat()).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), schema::checked(&output.stdout), said)
}

fn candidate<'r>(report: &'r Value, name: &str) -> &'r Value {
    let all = report["candidates"].as_array().expect("candidates");
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

fn why_not<'r>(report: &'r Value, name: &str) -> &'r str {
    let all = report["not_tried"].as_array().expect("a list");
    let one = all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}: {report:#}"));
    one["why"].as_str().expect("words")
}

#[test]
fn candidates_that_print_or_end_otherwise_are_out_and_one_of_the_others_is_confirmed() {
    let place = Place::new(PROGRAM, &[]);
    for (name, text) in [("quiet.so", QUIET), ("loud.so", LOUD), ("deadly.so", DEADLY)] {
        library(&place, name, text);
    }
    let named = ["--allocator", "quiet.so", "--allocator", "loud.so", "--allocator", "deadly.so"];
    let (code, report, said) =
        study(&place, &[&named[..], &["--test-arguments", "3"]].concat(), &["./program"]);
    assert_eq!(code, Some(0), "{said}");
    let loud = candidate(&report, "loud.so");
    assert_eq!(loud["end"], "differs", "{loud:#}");
    assert!(loud["difference"].as_str().expect("words").contains("standard output"), "{loud:#}");
    // The loader names it before it ends the program.
    let deadly = candidate(&report, "deadly.so");
    assert!(deadly["difference"].as_str().expect("words").contains("SIGABRT"), "{deadly:#}");
    let quiet = candidate(&report, "quiet.so");
    assert!(quiet["difference"].is_null() && quiet["elapsed"]["ratio"].as_f64() > Some(0.0), "{quiet:#}");
    assert!(quiet["environment"].as_str().expect("words").starts_with("LD_PRELOAD="));
    let confirmed = &report["confirmed"];
    let chosen: Vec<&Value> = report["candidates"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|one| one["end"] == "chosen")
        .collect();
    assert_eq!(chosen.len(), 1, "{report:#}");
    assert_eq!(confirmed["name"], chosen[0]["name"]);
    let [first, second] = confirmed["inputs"].as_array().expect("inputs").as_slice() else {
        panic!("{report:#}")
    };
    assert_eq!((&first["is_second"], &second["is_second"]), (&false.into(), &true.into()));
    assert_eq!(second["command"].as_str().map(|line| line.ends_with("program 3")), Some(true), "{second:#}");
    assert!(first["blocks"].as_u64() >= Some(2));
    assert!(confirmed["effects"].as_str().expect("words").starts_with("equal"), "{confirmed:#}");
    // Words that use it are there exactly where the verdict is that it is better.
    let is_better = report["verdict"].as_str().expect("words").starts_with("Less time with");
    assert_eq!(is_better, !report["actions"].as_array().expect("a list").is_empty(), "{report:#}");
    let page = std::fs::read_to_string(place.source().join("lineup-study/report.html")).expect("a page");
    assert!(page.contains("loud.so"));
    place.assert_clean();
}

#[test]
fn a_static_program_gets_settings_alone_and_says_why() {
    let place = Place::new(PROGRAM, &["-static"]);
    library(&place, "quiet.so", QUIET);
    let (code, report, said) = study(&place, &[], &["./program"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(why_not(&report, "other allocators").contains("linked statically"));
    assert!(candidate(&report, "freed memory is kept")["elapsed"].is_object());
    assert!(why_not(&report, "one arena").contains("one processor"));
    let (code, report, _) = study(&place, &["--allocator", "quiet.so"], &["./program"]);
    assert_eq!((code, &report["schema"]), (Some(2), &"lineup.error/1".into()));
    assert!(report["message"].as_str().expect("words").contains("linked statically"), "{report:#}");
}

#[test]
fn an_allocator_that_no_process_loads_is_not_tried_and_one_that_is_not_there_is_refused() {
    let place = Place::new(PROGRAM, &[]);
    assert_eq!(study(&place, &["--allocator", "none.so"], &["./program"]).0, Some(2));
    std::fs::write(place.source().join("text.so"), "no library\n").expect("a file");
    let (code, report, said) = study(&place, &["--allocator", "text.so"], &["./program"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(why_not(&report, "text.so").starts_with("no process of the program loads it"), "{report:#}");
}

#[test]
fn output_that_differs_by_itself_is_named_and_not_held_against_a_candidate() {
    let place = Place::new(
        "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { printf(\"%p\\n\", malloc(10)); return 0; }\n",
        &[],
    );
    let (code, report, said) = study(&place, &[], &["./program"]);
    assert_eq!(code, Some(0), "{said}");
    let remarks = report["remarks"].to_string();
    assert!(remarks.contains("differs from run to run by itself"), "{report:#}");
    let all = report["candidates"].as_array().expect("a list");
    assert!(all.iter().all(|one| one["end"] != "differs"), "{report:#}");
}

#[test]
fn a_program_that_dies_is_refused_and_options_of_other_studies_are_too() {
    let place = Place::new("int main(void) { return *(volatile int *)8; }\n", &[]);
    let (code, report, _) = study(&place, &[], &["./program"]);
    assert_eq!(code, Some(2));
    assert!(report["message"].as_str().expect("words").contains("SIGSEGV"), "{report:#}");
    for options in [&["--region", "main"][..], &["--code"], &["--guard"]] {
        assert_eq!(study(&place, options, &["./program"]).0, Some(2), "{options:?}");
    }
}
