//! The same, by the places that libclang names.

use crate::cold_part::{PROGRAM, advised, output, refused};
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::meaning::{Meaning, MemberMeaning, ObjectVariable, SeenBy, SplitMeaning};
use lineup_advise::options::Options;
use lineup_model::object_uses::HeldPart;
use std::collections::BTreeSet;
use std::path::Path;

/// Reads a program of C++ as a study does.
fn read(text: &str) -> Meaning {
    read_files(&[("a.cc", text)], &["c++ -std=c++17 -c a.cc"], "Item")
}

/// Reads the uses of a type in these files, by these compiler calls.
pub(crate) fn read_files(files: &[(&str, &str)], calls: &[&str], name: &str) -> Meaning {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        std::fs::write(folder.path().join(path), text).expect("writes");
    }
    read_calls(folder.path(), calls, name)
}

/// The same for files that are there.
pub(crate) fn read_calls(folder: &Path, calls: &[&str], name: &str) -> Meaning {
    let command = |call: &&str| lineup_sources::CompileCommand {
        directory: folder.to_owned(),
        arguments: call.split(' ').map(str::to_owned).collect(),
    };
    let build = lineup_sources::Build {
        commands: calls.iter().map(command).collect(),
        root: folder.to_owned(),
        installed_headers: BTreeSet::new(),
        compiler_headers: None,
        standards: lineup_sources::Standards::default(),
        in_program: BTreeSet::new(),
    };
    let checked = lineup_sources::check(&build, &|_, _| {}).expect("libclang reads it");
    assert!(checked.unread.is_empty(), "{:?}", checked.unread);
    let ty = checked.named(name).next().expect("the type");
    let facts = ty.split.as_ref().expect("facts");
    let members = ty.member_facts.as_ref().map(|facts| MemberMeaning {
        names: ty.names.clone(),
        holds: facts.holds.iter().map(kept).collect(),
        uses: facts.uses.iter().cloned().collect(),
        values: facts.values.clone(),
    });
    let held = |hold: &lineup_sources::SplitHold| {
        let binding = Binding::new(Constraint::KeptInObject).on(hold.member.clone());
        binding.at(&hold.path, hold.line).because(&hold.reason)
    };
    let split = SplitMeaning {
        names: ty.names.clone(),
        holds: facts.holds_in_object().map(held).collect(),
        named: facts.named.iter().cloned().collect(),
        initialised: facts.initialised.iter().cloned().collect(),
        is_compared: facts.is_compared,
        seen_by: match facts.seen_by {
            lineup_sources::SeenBy { c: true, cpp: true } => SeenBy::Both,
            lineup_sources::SeenBy { c: true, cpp: false } => SeenBy::C,
            _ => SeenBy::Cpp,
        },
        heap_calls: facts.heap_calls.iter().cloned().collect(),
        is_made_once: facts.is_made_once,
        variables: facts.variables.iter().map(|(one, units)| variable(one, *units)).collect(),
        pointers: facts.pointers.iter().map(|(one, units)| variable(one, *units)).collect(),
        moved_pointers: facts.moved_pointers.clone(),
        threads: facts.threads.clone(),
        out_of_blocks: facts.holds_out_of_blocks().map(held).collect(),
        of_addresses: facts.holds_of_addresses().map(held).collect(),
    };
    let members = members.into_iter().collect();
    Meaning { splits: vec![split], members, is_of_all_units: true, ..Meaning::default() }
}

fn kept(hold: &lineup_sources::MemberHold) -> (HeldPart, Binding) {
    let binding = Binding::new(Constraint::AsDeclared).on(hold.member.clone());
    (hold.part, binding.at(&hold.path, hold.line).because(&hold.reason))
}

fn variable(one: &lineup_sources::ObjectVariable, units: u32) -> ObjectVariable {
    let (path, name, refusal) = (one.path.clone(), one.name.clone(), one.refusal.clone());
    ObjectVariable { path, line: one.line, column: one.column, name, storage: one.storage, units, refusal }
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
