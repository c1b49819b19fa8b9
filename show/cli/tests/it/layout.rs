//! `lineup layout` as a user meets it: its output, and its messages about input that it cannot use.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lineup(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lineup")).args(arguments).output().expect("the binary under test")
}

/// Standard output of a run that must succeed.
fn shown(arguments: &[&str]) -> String {
    let output = lineup(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The message of a run that must exit with 2 and print nothing else.
fn refused(arguments: &[&str]) -> String {
    let output = lineup(arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Compiles C in a folder of its own.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new() -> Self {
        Program { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn compile(&self, name: &str, source: &str, flags: &[&str]) -> String {
        let (file, object) = (self.path(&format!("{name}.c")), self.path(name));
        std::fs::write(&file, source).expect("a writable folder");
        let status = Command::new("gcc").args(flags).arg("-c").arg("-o").arg(&object).arg(&file).status();
        assert!(status.expect("gcc; install it: apt install gcc").success());
        text(&object)
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a UTF-8 path").to_owned()
}

const OLD: &str =
    "struct conn { char state; long id; char name[60]; int hits; } c; struct gone { int i; } g;";
const NEW: &str =
    "struct conn { long id; int hits; char state; char kind; char name[60]; } c; struct came { int i; } g;";

#[test]
fn a_type_is_shown_with_offsets_holes_and_line_boundaries() {
    let program = Program::new();
    let old = program.compile("old", OLD, &["-g"]);
    let expected = [
        "struct conn {",
        "        char state;                                  /*     0     1 */",
        "        /* 7 bytes hole */",
        "        long int id;                                 /*     8     8 */",
        "        char name[60];                               /*    16    60 */",
        "        /* --- cacheline 1 boundary (64 bytes) was 12 bytes ago --- */",
        "        int hits;                                    /*    76     4 */",
        "        /* size: 80, cachelines: 2, members: 4 */",
        "        /* sum members: 73, holes: 1, sum holes: 7 */",
        "        /* straddling a line: name */",
        "        /* last cacheline: 16 bytes */",
        "};",
    ];
    let printed = shown(&["layout", &old, "conn"]);
    let lines: Vec<&str> = printed.lines().filter(|line| !line.starts_with("/*")).collect();
    assert_eq!(lines, expected);
    assert_eq!(shown(&["layout", &old, "struct conn"]), printed);
    let narrow = shown(&["layout", &old, "conn", "--line-size", "32"]);
    assert!(narrow.contains("size: 80, cachelines: 3") && narrow.contains("boundary (64 bytes)"), "{narrow}");
}

#[test]
fn the_table_lists_all_types_in_the_order_asked_for() {
    let program = Program::new();
    let old = program.compile("old", OLD, &["-g"]);
    let names = |arguments: &[&str]| -> Vec<String> {
        let rows = shown(arguments);
        rows.lines().skip(1).filter_map(|row| row.split_whitespace().last()).map(str::to_owned).collect()
    };
    assert_eq!(names(&["layout", &old]), ["conn", "gone"]);
    assert_eq!(names(&["layout", &old, "gone", "conn", "--sort", "holes"]), ["conn", "gone"]);
}

#[test]
fn json_carries_its_schema_and_the_same_numbers() {
    let program = Program::new();
    let old = program.compile("old", OLD, &["-g"]);
    let json: serde_json::Value =
        serde_json::from_str(&shown(&["layout", &old, "conn", "--json"])).expect("JSON");
    assert_eq!(json["schema"], "lineup.layout/1");
    let conn = &json["types"][0];
    assert_eq!((&conn["size_bytes"], &conn["hole_bytes"]), (&80.into(), &7.into()));
    assert_eq!(conn["members"][2]["last_line"], 1);
    assert_eq!(conn["members"][1]["type"], "long int");
}

#[test]
fn diff_tells_what_moved_to_another_line_came_and_went() {
    let program = Program::new();
    let (old, new) = (program.compile("old", OLD, &["-g"]), program.compile("new", NEW, &["-g"]));
    let printed = shown(&["layout", &old, "--diff", &new]);
    for expected in [
        "conn: size 80 -> 80, lines 2 -> 2",
        "moved    hits 76 -> 8, line 1 -> 0",
        "added    kind at 13",
        "only in old: gone",
        "only in new: came",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    let json = shown(&["layout", &old, "conn", "--diff", &new, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["schema"], "lineup.layout-diff/1");
    assert_eq!(json["changed"][0]["changes"][0]["member"], "id");
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_do() {
    let program = Program::new();
    let old = program.compile("old", OLD, &["-g"]);
    let stripped = program.compile("stripped", OLD, &[]);
    let script = text(&program.path("script"));
    std::fs::write(&script, "#!/bin/sh\n").expect("a writable folder");
    let empty = text(&program.path("empty"));
    std::fs::write(&empty, "").expect("a writable folder");
    let absent = text(&program.path("absent"));
    let folder = text(program.folder.path());
    for (arguments, expected) in [
        (vec!["layout", &absent], "cannot read"),
        (vec!["layout", &folder], "it is a folder"),
        (vec!["layout", &script], "not an ELF file"),
        (vec!["layout", &empty], "empty"),
        (vec!["layout", &stripped], "-g"),
        (vec!["layout", &old, "con"], "did you mean conn"),
        (vec!["layout", &old, "char"], "not a struct"),
        (vec!["layout", &old, "--line-size", "48"], "32, 64 or 128"),
    ] {
        let message = refused(&arguments);
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

#[test]
fn members_further_on_than_bits_can_be_counted_are_shown() {
    let source = "struct far { char a[1L << 60]; struct { char b[1L << 60]; int c : 3; struct { char d[1L << 59]; int e; }; }; } *p;";
    let program = Program::new();
    let file = program.compile("far", source, &["-g"]);
    let printed = shown(&["layout", &file, "far"]);
    for (member, place) in [("int c:3", 1_u64 << 61), ("int e", (5 << 59) + 4)] {
        let line = printed.lines().find(|line| line.contains(member)).unwrap_or_default();
        assert!(line.contains(&format!(" {place}")), "{member}: {printed}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&shown(&["layout", &file, "far", "--json"])).expect("JSON");
    assert_eq!(json["types"][0]["size_bytes"], (5_u64 << 59) + 8);
    shown(&["layout", &file, "--diff", &file]);
}

#[test]
fn a_type_that_is_only_declared_says_so() {
    let program = Program::new();
    let file = program.compile("opaque", "struct hidden; struct hidden *p;", &["-g"]);
    assert!(refused(&["layout", &file, "hidden"]).contains("only declared"));
}

#[test]
fn a_file_that_was_cut_off_is_refused_with_its_length() {
    let program = Program::new();
    let whole = std::fs::read(program.compile("whole", OLD, &["-g"])).expect("an object");
    let cut = program.path("cut");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("a writable folder");
    let message = refused(&["layout", &text(&cut)]);
    assert!(message.contains(&format!("it has {} bytes", whole.len() / 2)), "{message}");
    assert!(message.contains("cut off"), "{message}");
}

#[test]
fn a_base_without_btf_is_refused_by_name() {
    let program = Program::new();
    let base = program.compile("base", OLD, &[]);
    // The header of an image without types: enough to ask for the base.
    let image = program.path("image");
    let words = [0x0001_eb9f_u32, 24, 0, 0, 0, 1].map(u32::to_le_bytes).concat();
    std::fs::write(&image, [&words[..], &[0]].concat()).expect("a writable folder");
    let message = refused(&["layout", "--base", &base, &text(&image)]);
    assert!(message.contains("holds no BTF") && message.contains("base"), "{message}");
}

#[test]
fn a_terminal_gets_a_screen_and_a_pipe_all() {
    let program = Program::new();
    let members: String = (0..80).map(|number| format!("int member{number};")).collect();
    let types: String = (0..80).map(|number| format!("struct t{number} {{ int a; }} v{number};")).collect();
    let object = program.compile("many", &format!("struct large {{ {members} }} l; {types}"), &["-g"]);
    // `script` gives the command a terminal.
    let at_terminal = |arguments: &str| {
        let line = format!("{} layout {arguments}", env!("CARGO_BIN_EXE_lineup"));
        let output = Command::new("script").args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").output();
        String::from_utf8_lossy(&output.expect("script runs, of util-linux").stdout).into_owned()
    };
    for (arguments, all, more) in [
        (object.clone(), "--all", "… 43 types more: --all"),
        (format!("{object} large"), "--full", " lines more: --full"),
    ] {
        let first = at_terminal(&arguments);
        assert!(first.lines().count() <= 40 && first.contains(more), "{first}");
        let whole = at_terminal(&format!("{arguments} {all}"));
        let piped = shown(&[&["layout"][..], &arguments.split(' ').collect::<Vec<_>>()].concat());
        assert!(whole.lines().count() > 80 && !whole.contains(more), "{whole}");
        assert_eq!(whole.replace('\r', "").lines().count(), piped.lines().count());
    }
    assert!(at_terminal(&format!("{object} large")).contains("/* size: 320,"));
}
