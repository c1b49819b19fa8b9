//! `lineup layout` compared with `pahole` on C++: sizes, places and holes of every named class that pahole prints.
//!
//! pahole 1.24 is wrong at some places of C++, each named by [`Fault`]. There the compiler decides, by a program that
//! prints `sizeof` and offsets.

#[path = "pahole/classes.rs"]
mod classes;

use classes::{Class, Part, bare};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

fn output(command: &mut Command, package: &str) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; apt install {package}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The places where pahole 1.24 differs from the compiler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fault {
    /// A member or base of an empty class has 0 bytes; `sizeof` says 1.
    EmptyClass,
    /// The place of a virtual base is 4294967295 (-1); only the virtual table has it.
    VirtualBase,
    /// An rvalue reference has no type and 4 bytes.
    RvalueReference,
    /// A pointer to member has 4 bytes.
    MemberPointer,
}

/// One of our classes.
struct Own {
    size_bytes: u64,
    members: Vec<Value>,
    /// Holes in bytes and in bits together.
    hole_bits: u64,
}

impl Own {
    fn new(class: &Value) -> Self {
        Own {
            size_bytes: class["size_bytes"].as_u64().expect("a size"),
            members: class["members"].as_array().expect("members").clone(),
            hole_bits: class["hole_bytes"].as_u64().expect("holes") * 8
                + class["hole_bits"].as_u64().expect("holes"),
        }
    }

    fn is_base(member: &Value) -> bool {
        member["role"].as_str().is_some_and(|role| role.ends_with("base"))
    }

    fn name(member: &Value) -> String {
        let ty = member["type"].as_str().unwrap_or("");
        match Self::is_base(member) {
            true => bare(ty.split_once(' ').map_or(ty, |(_, name)| name)).to_owned(),
            false => member["name"].as_str().unwrap_or("").to_owned(),
        }
    }

    fn size_bits(member: &Value) -> Option<u64> {
        member["bit_size"].as_u64().or_else(|| Some(member["size_bytes"].as_u64()? * 8))
    }
}

/// pahole's fault with a part, when our member is right in its way.
fn fault(part: &Part, member: &Value) -> Option<Fault> {
    let ty = member["type"].as_str().unwrap_or("");
    let same_place = member["offset_bits"].as_u64() == Some(part.offset_bits);
    let same_name = Own::name(member) == part.name;
    if part.is_base && part.offset_bits == u64::from(u32::MAX) * 8 {
        return (same_name && member["role"] == "virtual-base" && member["offset_bits"].is_null())
            .then_some(Fault::VirtualBase);
    }
    match (part.size_bits, Own::size_bits(member)) {
        (0, Some(8)) if same_place && same_name => Some(Fault::EmptyClass),
        (32, Some(64)) if same_place && same_name && ty.ends_with("&&") => Some(Fault::RvalueReference),
        (32, Some(64 | 128)) if same_place && same_name && ty.contains("pointer to member") => {
            Some(Fault::MemberPointer)
        }
        _ => None,
    }
}

/// Compares one class; returns pahole's faults in it.
fn difference(theirs: &Class, ours: &Own) -> Result<Vec<Fault>, String> {
    if theirs.size_bytes != ours.size_bytes || theirs.parts.len() != ours.members.len() {
        let (size, parts) = (ours.size_bytes, ours.members.len());
        return Err(format!(
            "{} bytes, {} parts; ours {size}, {parts}",
            theirs.size_bytes,
            theirs.parts.len()
        ));
    }
    let (mut faults, mut places) = (Vec::new(), Vec::new());
    let mut left: Vec<&Value> = ours.members.iter().collect();
    for part in &theirs.parts {
        let is_equal = |member: &&Value| {
            Own::name(member) == part.name
                && Own::is_base(member) == part.is_base
                && member["offset_bits"].as_u64() == Some(part.offset_bits)
                && Own::size_bits(member) == Some(part.size_bits)
        };
        if let Some(at) = left.iter().position(is_equal) {
            left.remove(at);
            places.push((part.offset_bits, part.size_bits));
            continue;
        }
        let Some(at) = left.iter().position(|member| fault(part, member).is_some()) else {
            return Err(format!("{part:?} not among {left:?}"));
        };
        let member = left.remove(at);
        faults.extend(fault(part, member));
        // The compiler confirms these sizes, see `compiler_agrees`.
        places.extend(member["offset_bits"].as_u64().zip(Own::size_bits(member)));
    }
    let holes = hole_bits(places);
    if holes != ours.hole_bits {
        return Err(format!("the places leave holes of {holes} bits; ours {}", ours.hole_bits));
    }
    Ok(faults)
}

/// The bits between places that none of them covers. pahole's own sums count no bytes for bases and treat one that
/// the next member reaches into as a hole of 65,000 bytes.
fn hole_bits(mut places: Vec<(u64, u64)>) -> u64 {
    places.sort_unstable();
    let (mut end, mut holes) = (0, 0);
    for (offset, size) in places {
        holes += offset.saturating_sub(end);
        end = end.max(offset + size);
    }
    holes
}

/// Our classes, by name without namespaces.
fn own_classes(file: &Path) -> (BTreeMap<String, Vec<Own>>, Vec<Value>) {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    let document: Value =
        serde_json::from_str(&output(lineup.args(["layout", "--json"]).arg(file), "")).expect("JSON");
    let all = document["types"].as_array().expect("types").clone();
    let mut by_name: BTreeMap<String, Vec<Own>> = BTreeMap::new();
    for class in &all {
        let name = class["name"].as_str().expect("a name");
        by_name.entry(bare(name).to_owned()).or_default().push(Own::new(class));
    }
    (by_name, all)
}

/// Compares all classes that pahole prints; returns their number, and pahole's faults.
fn compare(file: &Path) -> (usize, BTreeMap<Fault, usize>) {
    let (ours, _) = own_classes(file);
    let mut theirs =
        classes::read(&output(Command::new("pahole").args(["-F", "dwarf"]).arg(file), "dwarves"));
    // pahole prints classes in namespaces only when asked for by name. A name may hold commas, so it comes from a file;
    // a name that pahole cannot read ends it, so each comes alone.
    let asked = tempfile::NamedTempFile::new().expect("a temporary file");
    for name in ours.keys().filter(|name| !theirs.contains_key(*name)).cloned().collect::<Vec<String>>() {
        std::fs::write(asked.path(), format!("{name}\n")).expect("a writable file");
        let from = format!("file://{}", asked.path().display());
        let said =
            Command::new("pahole").args(["-F", "dwarf", "-C", &from]).arg(file).output().expect("pahole");
        theirs.extend(classes::read(&String::from_utf8_lossy(&said.stdout)));
    }
    let (mut count, mut wrong, mut faults) = (0, Vec::new(), BTreeMap::new());
    for class in theirs.values().flatten().filter(|class| class.size_bytes > 0) {
        let candidates = ours.get(&class.name).map(Vec::as_slice).unwrap_or_default();
        let compared: Vec<_> = candidates.iter().map(|own| difference(class, own)).collect();
        count += 1;
        match compared.iter().find_map(|result| result.as_ref().ok()) {
            Some(found) => found.iter().for_each(|fault| *faults.entry(*fault).or_default() += 1),
            None => wrong.push(format!("{}: {compared:?}", class.name)),
        }
    }
    let path = file.display();
    assert!(wrong.is_empty(), "{path}: {} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    println!("{path}: {count} classes compared with pahole, all equal but for its faults {faults:?}");
    (count, faults)
}

/// A statement of C++ that prints only when a figure of ours differs from the compiler's.
fn checks(class: &Value) -> String {
    let name = class["name"].as_str().expect("a name");
    let mut text = format!("check(sizeof({name}), {}, R\"({name})\");\n", class["size_bytes"]);
    for member in class["members"].as_array().expect("members") {
        let (offset, size) = (&member["offset_bytes"], &member["size_bytes"]);
        let what = Own::name(member);
        match member["role"].as_str() {
            Some("base") => {
                let ty =
                    member["type"].as_str().and_then(|ty| ty.split_once(' ')).map_or("", |(_, name)| name);
                text += &format!("check(base_offset<{name}, {ty}>(), {offset}, R\"({name}: {ty})\");\n");
            }
            Some("field") if member["bit_size"].is_null() && !what.is_empty() => {
                text +=
                    &format!("check(__builtin_offsetof({name}, {what}), {offset}, R\"({name}.{what})\");\n");
                // `sizeof` a reference is that of its target; inside a class it is a pointer.
                text += &format!(
                    "check(sizeof(Held<decltype({name}::{what})>), {size}, R\"(sizeof {name}.{what})\");\n"
                );
            }
            _ => {}
        }
    }
    text
}

const CHECKER: &str = r#"
#include <cstddef>
#include <cstdio>
#include <type_traits>
template <class T> struct Held { T held; };
template <class T, class B> long base_offset() {
    alignas(128) static char room[sizeof(T)];
    T *object = reinterpret_cast<T *>(room);
    return reinterpret_cast<char *>((B *)object) - room; // this form of cast knows no private bases
}
static int checked;
static void check(long is, long said, const char *what) {
    checked++;
    if (is != said) printf("wrong: %s is %ld, not %ld\n", what, is, said);
}
"#;

/// Has the compiler check sizes, offsets of members and of bases of the classes chosen; how many figures.
fn compiler_agrees(file: &Path, start: &str, options: &[&str], is_chosen: impl Fn(&str) -> bool) -> usize {
    let (_, all) = own_classes(file);
    let can_be_named = |name: &str| !name.contains(['(', '{', '*']) && !name.contains("unnamed");
    let chosen = all.iter().filter(|class| class["language"] == "c++" && class["kind"] != "union");
    let chosen = chosen
        .filter(|class| class["name"].as_str().is_some_and(|name| can_be_named(name) && is_chosen(name)));
    let body: String = chosen.map(checks).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (source, program) = (folder.path().join("check.cpp"), folder.path().join("check"));
    let text = format!("{start}\n{CHECKER}\nint main() {{\n{body}printf(\"checked %d\\n\", checked);\n}}\n");
    std::fs::write(&source, text).expect("a writable folder");
    let mut compiler = Command::new("g++");
    compiler.args(["-w", "-fno-access-control", "-o"]).args([&program, &source]).args(options);
    output(&mut compiler, "g++");
    let said = output(&mut Command::new(&program), "");
    let (wrong, checked): (Vec<&str>, Vec<&str>) = said.lines().partition(|line| line.starts_with("wrong"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let checked =
        checked.first().and_then(|line| line.strip_prefix("checked ")).and_then(|count| count.parse().ok());
    let checked = checked.expect("a count");
    println!("{}: the compiler confirms {checked} sizes and offsets", file.display());
    checked
}

/// Every shape of class that C++ has.
const SHAPES: &str = include_str!("shapes.cpp");

#[test]
fn every_shape_of_class_agrees_in_two_versions_and_with_the_compiler() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("shapes.cpp");
    std::fs::write(&source, SHAPES).expect("a writable folder");
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let program = folder.path().join(format!("shapes{version}"));
        output(Command::new("g++").args(["-std=c++20", version, "-o"]).args([&program, &source]), "g++");
        let (count, faults) = compare(&program);
        assert!(count >= 25, "{count}");
        let known = [Fault::EmptyClass, Fault::VirtualBase, Fault::RvalueReference, Fault::MemberPointer];
        assert_eq!(faults.keys().copied().collect::<BTreeSet<Fault>>(), BTreeSet::from(known));
        let (_, all) = own_classes(&program);
        let plain = all.iter().find(|class| class["name"] == "Plain").expect("the class");
        assert_eq!(plain["static_members"], serde_json::json!(["count", "limit"]), "they take no room");
        let start = SHAPES.replace("int main()", "int shapes_main()");
        assert!(compiler_agrees(&program, &start, &["-std=c++20"], |_| true) >= 100);
    }
}

#[test]
fn every_class_of_a_real_program_agrees() {
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/cpp");
    let folder = tempfile::tempdir().expect("a temporary folder");
    output(Command::new("cp").arg("-R").arg(&study).arg(folder.path()), "coreutils");
    let study: PathBuf = folder.path().join("cpp");
    output(Command::new("make").arg("-C").arg(&study), "g++ make");
    let (count, _) = compare(&study.join("exchange"));
    assert!(count >= 200, "{count}");
    let headers = std::fs::read_dir(study.join("include")).expect("headers").flatten();
    let headers: String = headers.map(|entry| format!("#include \"{}\"\n", entry.path().display())).collect();
    let include = study.join("include").display().to_string();
    let is_own = |name: &str| name.starts_with("market::") || name.starts_with("std::");
    assert!(
        compiler_agrees(&study.join("exchange"), &headers, &["-std=c++17", "-I", &include], is_own) >= 50
    );
}
