//! `lineup layout --pahole` compared with `pahole` itself: the same text, to the byte, except for differences that are
//! stated here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Runs a command and returns its output.
fn printed(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: apt install dwarves gcc make"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A text of pahole without the holes in structs that are members, which versions after 1.24 sum up.
fn without_holes_of_members(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("/* member types with "));
    let lines = lines.map(|line| match line.split_once("last struct has ") {
        Some((before, has)) => {
            let parts = has.trim_end_matches(" */").split(", ").filter(|part| !part.contains("hole"));
            format!("{before}last struct has {} */", parts.collect::<Vec<_>>().join(", "))
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The declarations of a text, by their first lines.
fn declarations(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut one: Vec<&str> = Vec::new();
    for line in text.lines() {
        if !one.is_empty() || !line.is_empty() {
            one.push(line);
        }
        if line.starts_with('}') {
            all.entry(one[0].to_string()).or_default().push(one.join("\n"));
            one.clear();
        }
    }
    all
}

/// The number of pahole's declarations that ours have as well, and pairs that differ: its own and ours.
fn compare(file: &Path) -> (usize, Vec<(String, String)>) {
    let file = file.to_str().expect("a name");
    let lineup = printed(Command::new(env!("CARGO_BIN_EXE_lineup")).args(["layout", "--pahole", file]));
    let pahole = without_holes_of_members(&printed(Command::new("pahole").args(["-F", "dwarf", file])));
    let (ours, theirs) = (declarations(&lineup), declarations(&pahole));
    let mut equal = 0;
    let mut different = Vec::new();
    for (head, its) in &theirs {
        let known = ours.get(head).unwrap_or_else(|| panic!("{head} is missing"));
        for one in its {
            match known.contains(one) {
                true => equal += 1,
                false => different.push((one.clone(), known[0].clone())),
            }
        }
    }
    (equal, different)
}

#[test]
fn every_type_of_lua_is_written_as_pahole_writes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/lua");
    printed(Command::new("cp").arg("-R").arg(study).arg(folder.path()));
    let lua = folder.path().join("lua");
    printed(Command::new("make").arg("-s").arg("-C").arg(&lua));
    let (equal, different) = compare(&lua.join("lua"));
    assert!(different.is_empty(), "{different:#?}");
    assert!(equal >= 50, "{equal}");
}

#[test]
fn what_differs_is_what_pahole_infers_and_what_is_no_c() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "struct fwd; enum colour { RED };
struct inner { char a; long b; char c; };
struct same { const char *name; const int k; int *const cp; struct fwd **pp; void (*call)(int, const char *);
  int (*noargs)(void); enum colour c; unsigned f1:3, f2:7; struct inner in; struct inner arr[3]; char matrix[2][3];
  struct { int x; char y; } s; union { int i; double d; }; struct { char q; } qs[3];
  long big __attribute__((aligned(64))); char rest[]; };
struct bits { int a:4; int b:6; };
union both { int i; struct same *o; char c[12]; };
struct packed { char a; int b; };
struct packed_for_real { char a; int b; } __attribute__((packed));
struct choice { enum { A, B } which; };
struct tables { long (*table[4])(int); };
struct gap { unsigned a:3; unsigned :0; unsigned b:1; };
struct same s; struct bits b; union both u; struct packed p; struct packed_for_real r; struct choice c; struct tables t;
struct gap g;
";
    std::fs::write(folder.path().join("types.c"), source).expect("a file");
    printed(Command::new("cc").args(["-g", "-c", "types.c"]).current_dir(folder.path()));
    let (equal, different) = compare(&folder.path().join("types.o"));
    assert_eq!(equal, 5, "{different:#?}");
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let mut only_pahole: Vec<String> = Vec::new();
    let mut only_ours: Vec<String> = Vec::new();
    for (its, own) in &different {
        let (its, own) = (lines(its), lines(own));
        only_pahole.extend(its.iter().filter(|line| !own.contains(line)).map(|line| line.trim().to_string()));
        only_ours.extend(own.iter().filter(|line| !its.contains(line)).map(|line| line.trim().to_string()));
    }
    let squeezed = |lines: &[String]| {
        lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    // Nameless enumerations written out, comments on bit-fields, packing that it infers, and a place of an array's
    // length that C does not have.
    assert_eq!(
        squeezed(&only_pahole),
        [
            "enum {",
            "A = 0,",
            "B = 1,",
            "} which; /* 0 4 */",
            "/* Force alignment to the next boundary: */",
            "unsigned int :0;",
            "} __attribute__((__packed__));",
            "long int (*table)(int)[4]; /* 0 32 */",
        ]
    );
    assert_eq!(
        squeezed(&only_ours),
        ["enum {...} which; /* 0 4 */", "};", "long int (*table[4])(int); /* 0 32 */"]
    );
}
