//! Members that leave the objects of a class for memory of their own: the edit expected, programs that do the same
//! before and after it, and what keeps members in place.

use crate::pahole::{integer, member, push, run, structure};
use lineup_advise::advise;
use lineup_advise::constraint::{Binding, Constraint};
use lineup_advise::judge::NoCompiler;
use lineup_advise::meaning::{Meaning, SplitMeaning};
use lineup_advise::options::{FailedTrial, Options};
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_advise::usage::{Scale, Usage};
use lineup_model::abi::Abi;
use lineup_model::object_uses::NamedMember;
use lineup_model::region::{Region, RegionId, Regions};
use lineup_model::types::{TypeKind, Types};
use lineup_model::usage::{ByteUse, ObjectPattern, TypeUse};
use std::collections::BTreeSet;

/// Members of the class, with their offsets in bytes; the first is hot.
const MEMBERS: [(&str, u64); 5] = [("key", 0), ("label", 8), ("mass", 104), ("made_at", 112), ("next", 120)];

pub(crate) const PROGRAM: &str = r#"#include <cstdio>
#include <cstring>
#include <vector>

struct Item {
    long key = 0;
    /* Shown to people. */
    char label[96] = {};
    double mass = 1.5; // kg
    long made_at = 0;
    Item *next = nullptr;

    double weight() const { return mass * 9.81; }
};

long sum(const std::vector<Item> &all) {
    long found = 0;
    for (const Item &one : all) {
        found += one.key;
    }
    return found;
}

int main() {
    std::vector<Item> all;
    for (long number = 0; number < 9; number++) {
        Item one;
        one.key = number;
        one.made_at = 10 * number;
        std::snprintf(one.label, 90, "item %ld", number);
        all.push_back(one);
    }
    all[3] = all[4];
    all[4].made_at = 7;
    Item moved = static_cast<Item &&>(all[5]);
    moved.mass = 3;
    all.erase(all.begin());
    Item *last = &all.back();
    last->next = &all[0];
    std::printf("%ld %ld %ld %s %.2f %.2f %ld\n", sum(all), all[2].made_at, all[3].made_at, (*last).label,
                moved.weight(), all[4].weight(), last->next->made_at);
    return 0;
}
"#;

fn types() -> (Types, lineup_model::types::TypeId) {
    let mut types = Types::new();
    let (byte, word) = (integer(&mut types, "char", 1), integer(&mut types, "long", 8));
    let label = push(&mut types, "", None, TypeKind::Array { element: byte, counts: vec![Some(96)] });
    let ty = |name: &str| if name == "label" { label } else { word };
    let members = MEMBERS.iter().map(|&(name, at)| member(name, ty(name), 8 * at)).collect();
    let id = structure(&mut types, "Item", 128, members);
    (types, id)
}

/// Each place that reads a member through `.` or `->`, and those in the class's own method.
fn named(text: &str) -> Vec<NamedMember> {
    let mut all = Vec::new();
    for (line, row) in text.lines().enumerate() {
        for (name, _) in MEMBERS {
            for (at, _) in row.match_indices(name) {
                let before = &row[..at];
                let is_use = before.ends_with('.') || before.ends_with("->") || before.ends_with("return ");
                if is_use && !before.contains("#include") && !before.contains("return found") {
                    let (line, column) = (line as u32 + 1, at as u32 + 1);
                    all.push(NamedMember {
                        path: "a.cc".into(),
                        line,
                        column,
                        member: name.into(),
                        object: None,
                    });
                }
            }
        }
    }
    all
}

/// Each member in the list of a constructor.
fn initialised(text: &str) -> Vec<NamedMember> {
    let mut all = Vec::new();
    for (line, row) in text.lines().enumerate().filter(|(_, row)| row.contains("Item(long")) {
        for (name, _) in &MEMBERS[1..] {
            for lead in [": ", ", "] {
                let wanted = format!("{lead}{name}(");
                let found = row.match_indices(&wanted).map(|(at, _)| at + lead.len());
                let named = |at: usize| {
                    let (line, column) = (line as u32 + 1, at as u32 + 1);
                    NamedMember { path: "a.cc".into(), line, column, member: (*name).into(), object: None }
                };
                all.extend(found.map(named));
            }
        }
    }
    all
}

fn options(text: &str, holds: Vec<Binding>) -> Options {
    let split = SplitMeaning {
        names: vec!["Item".into()],
        holds,
        named: named(text),
        initialised: initialised(text),
        is_compared: text.contains("operator=="),
        ..SplitMeaning::default()
    };
    let meaning = Meaning { splits: vec![split], is_of_all_units: true, ..Meaning::default() };
    Options { meaning, ..Options::default() }
}

/// Calls load the key of sixteen objects.
pub(crate) fn advised(text: &str, options: &Options) -> Advice {
    advised_of(&[("a.cc", text)], options, types())
}

/// The same for a type whose first member has eight bytes.
pub(crate) fn advised_of(
    files: &[(&str, &str)],
    options: &Options,
    ty: (Types, lineup_model::types::TypeId),
) -> Advice {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    advised_with(files.collect(), options, ty, &[(0, 8)])
}

/// The same for calls that load these bytes, each by offset and size.
pub(crate) fn advised_with(
    files: Vec<(String, String)>,
    options: &Options,
    ty: (Types, lineup_model::types::TypeId),
    hot: &[(u64, u64)],
) -> Advice {
    advised_for(files, options, ty, ObjectPattern::alone(0, loaded(hot), 160))
}

/// One load of each of these bytes, by offset and size.
pub(crate) fn loaded(bytes: &[(u64, u64)]) -> Vec<ByteUse> {
    bytes.iter().map(|&(offset, size_bytes)| ByteUse { offset, size_bytes, loads: 1, stores: 0 }).collect()
}

/// The same for ten calls that use objects in one way.
pub(crate) fn advised_for(
    files: Vec<(String, String)>,
    options: &Options,
    (types, ty): (Types, lineup_model::types::TypeId),
    pattern: ObjectPattern,
) -> Advice {
    let patterns = vec![pattern];
    let used = TypeUse { region: RegionId(0), ty, calls: 10, patterns, used_as: BTreeSet::new() };
    let regions = Regions::from_iter([Region::named("sum")]);
    let scale = Scale { data_lines: Some([40.0, 32.0, 20.0]), ..Scale::default() };
    let scales = [(RegionId(0), scale)].into();
    let usage = Usage { regions, scales, types: vec![used], ..Usage::empty(Abi::X86_64) };
    let sources = Sources::new(files);
    advise(&usage, &types, &sources, options, &mut NoCompiler).expect("advice")
}

/// The edited text.
fn edited(text: &str, holds: Vec<Binding>) -> String {
    let advice = advised(text, &options(text, holds));
    assert_eq!(advice.cold_parts.len(), 1, "{:?}", advice.not_split);
    advice.edited["a.cc"].clone()
}

/// The reason why nothing is split.
#[track_caller]
pub(crate) fn refused(text: &str, options: &Options, reason: &str) {
    let advice = advised(text, options);
    assert!(advice.cold_parts.is_empty(), "{}", advice.edited["a.cc"]);
    let why = advice.not_split.get("Item").map(ToString::to_string).unwrap_or_default();
    assert!(why.contains(reason), "{why}");
    let told = advice.descriptions.iter().find(|one| one.kind.slug == "split").expect("a sketch");
    assert!(
        told.summary.contains("a patch for a split was refused") && told.summary.contains(reason),
        "{told:?}"
    );
    assert!(!told.is_in_patch);
}

fn held(member: Option<&str>, why: &str) -> Vec<Binding> {
    vec![Binding::new(Constraint::KeptInObject).on(member).because(why)]
}

/// The output of a program compiled for a standard.
pub(crate) fn output(text: &str, standard: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.cc"), text).expect("writes");
    let standard = format!("-std={standard}");
    let flags = ["-g", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "a", "a.cc", &standard];
    run("g++", "g++", folder.path(), &flags).unwrap_or_else(|why| panic!("{standard}: {why}\n{text}"));
    let program = folder.path().join("a");
    run(&program.to_string_lossy(), "", folder.path(), &[]).expect("it runs")
}

#[test]
fn cold_members_move_into_a_part_that_the_object_owns() {
    let text = edited(PROGRAM, Vec::new());
    let class = "struct Item {
    long key = 0;
    // Members that hot loops leave alone, in memory of their own.
    struct ColdPart {
        /* Shown to people. */
        char label[96] = {};
        double mass = 1.5; // kg
        long made_at = 0;
        Item *next = nullptr;
    };
    class ColdBox {
    public:
        explicit ColdBox() : part_(new ColdPart()) {}
        ColdBox(const ColdBox& other) : part_(new ColdPart(*other.part_)) {}
        ColdBox(ColdBox&& other) noexcept : part_(new ColdPart(static_cast<ColdPart&&>(*other.part_))) {}
        ~ColdBox() { delete part_; }
        ColdBox& operator=(const ColdBox& other) {
            *part_ = *other.part_;
            return *this;
        }
        ColdBox& operator=(ColdBox&& other) noexcept {
            *part_ = static_cast<ColdPart&&>(*other.part_);
            return *this;
        }
        ColdPart* operator->() { return part_; }
        const ColdPart* operator->() const { return part_; }

    private:
        ColdPart* const part_;
    };
    ColdBox cold{};

    double weight() const { return cold->mass * 9.81; }
};
";
    let found =
        &text[text.find("struct Item").expect("the class")..text.find("long sum").expect("the function")];
    assert_eq!(found.trim_end(), class.trim_end());
    for line in [
        "        one.cold->made_at = 10 * number;\n",
        "    all[4].cold->made_at = 7;\n",
        "    last->cold->next = &all[0];\n",
        "(*last).cold->label,\n",
        "last->cold->next->cold->made_at);\n",
        "        found += one.key;\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn the_program_does_the_same_in_every_standard() {
    let text = edited(PROGRAM, Vec::new());
    for standard in ["c++14", "c++17", "c++20", "c++23"] {
        assert_eq!(output(PROGRAM, standard), output(&text, standard), "{standard}");
    }
}

#[test]
fn objects_that_the_compiler_compares_are_compared_by_the_cold_part_too() {
    let compared = PROGRAM.replace(
        "    double weight() const",
        "    bool operator==(const Item &) const = default;\n    double weight() const",
    );
    let compared = compared
        .replace("    return 0;\n}\n", "    return all[1] == all[2] ? 1 : (all[1] == all[1] ? 0 : 2);\n}\n");
    let text = edited(&compared, Vec::new());
    assert!(text.contains("bool operator==(const ColdPart&) const = default;"), "{text}");
    assert_eq!(output(&compared, "c++20"), output(&text, "c++20"));
}

#[test]
fn values_of_a_constructors_list_are_given_in_its_body() {
    let made = PROGRAM.replace(
        "    double weight() const",
        "    Item() = default;\n    Item(long a, long b) : key(a), made_at(b), next(nullptr) {}\n    double weight() const",
    );
    let made = made.replace(
        "    return 0;\n}\n",
        "    return Item(3, 4).made_at == 4 && Item(3, 4).key == 3 ? 0 : 1;\n}\n",
    );
    let text = edited(&made, Vec::new());
    let constructor = "    Item(long a, long b) : key(a) { cold->made_at = b; cold->next = nullptr; }\n";
    assert!(text.contains(constructor), "{text}");
    assert_eq!(output(&made, "c++17"), output(&text, "c++17"));
}

#[test]
fn names_follow_the_style_of_the_class_and_are_free() {
    let taken = PROGRAM.replace("int main() {\n", "int main() {\n    int cold = 0;\n    (void)cold;\n");
    let text = edited(&taken, Vec::new());
    assert!(text.contains("SeldomBox seldom{};") && text.contains("one.seldom->made_at"), "{text}");
}

#[test]
fn a_member_that_a_use_holds_stays() {
    let text = edited(PROGRAM, held(Some("mass"), "its address is taken"));
    assert!(text.contains("    double mass = 1.5; // kg\n") && !text.contains("cold->mass"), "{text}");
    assert!(text.contains("cold->made_at"), "{text}");
    assert_eq!(output(PROGRAM, "c++17"), output(&text, "c++17"));
}

#[test]
fn a_use_that_holds_the_object_refuses_the_split_with_its_reason() {
    let reason = "its objects are reached as bytes";
    refused(PROGRAM, &options(PROGRAM, held(None, reason)), reason);
}

#[test]
fn one_member_alone_does_not_leave() {
    let holds = ["mass", "made_at", "next"].map(|name| held(Some(name), "a macro names it")).concat();
    refused(PROGRAM, &options(PROGRAM, holds), "fewer than 2 members");
}

#[test]
fn without_every_unit_read_nothing_is_split() {
    let mut options = options(PROGRAM, Vec::new());
    options.meaning.is_of_all_units = false;
    refused(PROGRAM, &options, "did not read every unit");
}

#[test]
fn programs_in_which_memory_is_not_the_objects_own_are_refused() {
    for (code, reason) in [
        ("void f() { sigaction(2, nullptr, nullptr); }\n", "signal handler"),
        ("void f() { signal(2, nullptr); }\n", "signal handler"),
        ("int f() { return MAP_SHARED; }\n", "processes share memory"),
        ("void f() { try { } catch (std::bad_alloc &) { } }\n", "handles a lack of memory"),
        ("void f() { longjmp(at, 1); }\n", "nothing destroys"),
        ("void *operator new(unsigned long bytes);\n", "an allocator of its own"),
        ("bool f() { return std::is_trivially_copyable<Item>::value; }\n", "asks how its objects are copied"),
    ] {
        let text = format!("{PROGRAM}{code}");
        refused(&text, &options(&text, Vec::new()), reason);
    }
    let text = format!("{PROGRAM}bool f() {{ return std::is_trivially_copyable_v<long>; }}\n");
    assert!(advised(&text, &options(&text, Vec::new())).cold_parts.len() == 1);
    let text = format!("{PROGRAM}// A signal (as of a light) says nothing.\n");
    assert!(advised(&text, &options(&text, Vec::new())).cold_parts.len() == 1);
}

#[test]
fn a_pinned_member_and_a_kept_type_are_not_split() {
    let pins = vec![("Item".to_owned(), "key".to_owned())];
    refused(PROGRAM, &Options { pins, ..options(PROGRAM, Vec::new()) }, "--pin");
    refused(PROGRAM, &Options { keeps: vec!["Item".into()], ..options(PROGRAM, Vec::new()) }, "--keep");
}

#[test]
fn a_split_that_failed_its_trial_is_refused_and_an_order_may_still_be_made() {
    let failed = FailedTrial { owner: "Item (cold part)".into(), because: "it took more time".into() };
    let options = Options { failed: vec![failed], ..options(PROGRAM, Vec::new()) };
    refused(PROGRAM, &options, "it took more time");
    let advice = advised(PROGRAM, &options);
    assert!(advice.refusals.iter().all(|refusal| refusal.owner != "Item"), "{:?}", advice.refusals);
}

#[test]
fn a_name_that_is_not_where_the_compiler_saw_it_refuses_the_split() {
    let mut options = options(PROGRAM, Vec::new());
    options.meaning.splits[0].named[0].column += 1;
    options.meaning.splits[0].named[0].member = "mass".into();
    refused(PROGRAM, &options, "is not at column");
}

#[test]
fn the_description_says_what_moves_and_the_price() {
    let advice = advised(PROGRAM, &options(PROGRAM, Vec::new()));
    let told = advice.descriptions.iter().find(|one| one.kind.slug == "split").expect("in words");
    assert!(told.is_in_patch && told.summary.starts_with("4 members that calls do not use"), "{told:?}");
    assert!(told.summary.contains("from 128 to 16 bytes"), "{told:?}");
    assert!(told.reasons.iter().any(|reason| reason.contains("one more allocation")), "{told:?}");
    assert_eq!(advice.steps()[0].owners, ["Item (cold part)"]);
    assert!(advice.splits.is_empty() && advice.suggestions.is_empty(), "{:?}", advice.suggestions);
}
