//! The same, by the places that libclang names.

use crate::cold_part::{PROGRAM, advised, output, refused};
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::meaning::{Meaning, NamedMember, SplitMeaning};
use lineup_advise::options::Options;
use std::collections::BTreeSet;

/// Reads a program's sources as a study does.
fn read(text: &str) -> Meaning {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.cc"), text).expect("writes");
    let arguments = ["c++", "-std=c++17", "-c", "a.cc"].map(str::to_owned).to_vec();
    let build = lineup_sources::Build {
        commands: vec![lineup_sources::CompileCommand { directory: folder.path().to_owned(), arguments }],
        root: folder.path().to_owned(),
        installed_headers: BTreeSet::new(),
        compiler_headers: None,
        standards: lineup_sources::Standards::default(),
        in_program: BTreeSet::new(),
    };
    let checked = lineup_sources::check(&build, &|_, _| {}).expect("libclang reads it");
    assert!(checked.unread.is_empty(), "{:?}", checked.unread);
    let ty = checked.named("Item").next().expect("the class");
    let facts = ty.split.as_ref().expect("facts");
    let place = |name: &lineup_sources::MemberName| NamedMember {
        path: name.path.clone(),
        line: name.line,
        column: name.column,
        member: name.member.clone(),
    };
    let held = |hold: &lineup_sources::SplitHold| {
        let binding = Binding::new(Constraint::KeptInObject).on(hold.member.clone());
        binding.at(&hold.path, hold.line).because(&hold.reason)
    };
    let split = SplitMeaning {
        names: ty.names.clone(),
        holds: facts.holds.iter().map(held).collect(),
        named: facts.named.iter().map(place).collect(),
        initialised: facts.initialised.iter().map(place).collect(),
        is_compared: facts.is_compared,
    };
    Meaning { splits: vec![split], is_of_all_units: true, ..Meaning::default() }
}

/// Splits a program by what libclang says of it, and holds the outputs against each other.
#[track_caller]
fn split_as_read(text: &str) -> String {
    let options = Options { meaning: read(text), ..Options::default() };
    let advice = advised(text, &options);
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    let new = advice.edited["a.cc"].clone();
    assert_eq!(output(text, "c++17"), output(&new, "c++17"), "{new}");
    new
}

#[test]
fn programs_that_libclang_reads_are_split_and_do_the_same() {
    let text = split_as_read(PROGRAM);
    assert!(text.contains("last->cold->next->cold->made_at"), "{text}");
    let made = PROGRAM.replace(
        "    double weight() const",
        "    Item() = default;
    Item(long key, long made_at) : key(key), made_at(made_at), next(nullptr) { mass = 2 * made_at; }
    double weight() const",
    );
    let made = made.replace("        Item one;\n        one.key = number;", "        Item one(number, 3);");
    let text = split_as_read(&made);
    let constructor =
        ": key(key) { cold->made_at = made_at; cold->next = nullptr; cold->mass = 2 * made_at; }";
    assert!(text.contains(constructor), "{text}");
}

#[test]
fn uses_that_the_edit_cannot_follow_leave_the_program_as_it_is() {
    for (line, reason) in [
        ("    std::memset(static_cast<void *>(&all[0]), 0, 8);\n", "reached as bytes"),
        ("    std::printf(\"%zu\", sizeof(Item));\n", "its size is measured"),
        ("    static Item kept; kept.key = 1;\n", "a variable of it exists"),
        (
            "    static char room[256]; Item *copy = new (room) Item(all[1]); copy->key = 2;\n",
            "objects are made in memory",
        ),
    ] {
        let text = PROGRAM.replace("    return 0;\n", &format!("{line}    return 0;\n"));
        let text = text.replace("#include <vector>\n", "#include <vector>\n#include <new>\n");
        let meaning = read(&text);
        refused(&text, &Options { meaning, ..Options::default() }, reason);
    }
}
