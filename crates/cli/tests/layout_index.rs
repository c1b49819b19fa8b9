//! A large file is read once; later looks at a type of it read the units that describe it, and show the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of several units, made larger than what is read whole each time.
struct Program {
    folder: tempfile::TempDir,
}

/// Two files define a type of the same name, each with its own members; another is only declared in the first.
const FIRST: &str = "
    struct hidden; typedef struct { int x, y; } point;
    struct twice { long a; struct hidden *next; };
    struct outer { struct twice inside; point at; char name[24]; } one;";
const SECOND: &str = "
    struct hidden { char key[16]; long value; }; typedef struct hidden secret;
    struct twice { char b; double c; struct hidden *next; };
    struct twice two; secret kept;";

impl Program {
    fn new(first: &str, second: &str) -> Program {
        let program = Program { folder: tempfile::tempdir().expect("a folder") };
        program.build(first, second);
        program
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn build(&self, first: &str, second: &str) {
        fs::write(self.path("first.c"), format!("{first}\nint main(void) {{ return one.at.x; }}\n"))
            .expect("writes");
        fs::write(self.path("second.c"), second).expect("writes");
        let padding = fs::File::create(self.path("padding")).expect("a file");
        padding.set_len(40 << 20).expect("grows");
        let run = |program: &str, arguments: &[&str]| {
            let status = Command::new(program).args(arguments).current_dir(self.folder.path()).status();
            assert!(status.expect("runs").success(), "{program} {arguments:?}");
        };
        run("gcc", &["-g", "-Wl,--build-id=0x1234", "first.c", "second.c", "-o", "small"]);
        run("objcopy", &["--add-section", ".padding=padding", "small", "program"]);
    }

    fn layout(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
        command.arg("layout").arg(self.path("program")).args(arguments);
        let output = command.env("XDG_CACHE_HOME", self.path("cache")).output().expect("lineup runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        format!("{text}{}", String::from_utf8_lossy(&output.stderr))
    }

    /// What is kept of earlier looks.
    fn indexes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("cache/lineup/types")).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

const NAMES: [&[&str]; 7] = [
    &["outer"],
    &["twice"],
    &["point"],
    &["secret"],
    &["struct hidden"],
    &["twice", "outer", "point"],
    &["outer", "--json"],
];

#[test]
fn every_look_shows_the_same() {
    let program = Program::new(FIRST, SECOND);
    let whole: Vec<String> =
        NAMES.iter().map(|names| program.layout(&[*names, &["--no-index"][..]].concat())).collect();
    assert!(program.indexes().is_empty(), "none is written when none is wanted");
    assert_eq!(whole[1].matches("struct twice {").count(), 2, "{}", whole[1]);
    for look in ["first", "second"] {
        for (names, whole) in NAMES.iter().zip(&whole) {
            assert_eq!(program.layout(names), *whole, "{names:?}, {look} look");
        }
        assert_eq!(program.indexes().len(), 1);
    }
    let unknown = program.layout(&["outr"]);
    assert!(unknown.contains("did you mean outer?"), "{unknown}");
}

/// The lines of the only index, one of them changed.
fn change(index: &Path, name: &str, line: &str) {
    let text = fs::read_to_string(index).expect("an index");
    let changed: Vec<String> = text
        .lines()
        .map(|known| if known.starts_with(&format!("{name}\t")) { line.to_owned() } else { known.to_owned() })
        .collect();
    assert_ne!(changed.join("\n") + "\n", text);
    fs::write(index, changed.join("\n") + "\n").expect("writes");
}

#[test]
fn an_index_is_used_and_one_that_does_not_fit_is_not() {
    let program = Program::new(FIRST, SECOND);
    let both = program.layout(&["twice"]);
    let index = program.indexes().remove(0);
    let text = fs::read_to_string(&index).expect("an index");
    let line = text.lines().find(|line| line.starts_with("twice\t")).expect("a line");
    let fields: Vec<&str> = line.split('\t').collect();
    let [unit, target] = [fields[1], fields[2]].map(|list| list.split(',').next().expect("a number"));
    // It says that there is one such type, in the first unit: so that one is shown.
    change(&index, "twice", &format!("twice\t{unit}\t{target}"));
    assert_eq!(program.layout(&["twice"]).matches("struct twice {").count(), 1);
    for wrong in [
        format!("twice\t{unit}\t{}", fields[2]),
        format!("twice\t9999\t{}", fields[2]),
        "twice\tone\ttwo".to_owned(),
        "twice\t".to_owned(),
    ] {
        change(&index, "twice", &wrong);
        assert_eq!(program.layout(&["twice"]), both, "{wrong:?}");
    }
    fs::write(&index, [0xff; 100]).expect("writes");
    assert_eq!(program.layout(&["twice"]), both);
}

#[test]
fn a_program_that_was_built_anew_is_read_anew_whatever_its_build_id() {
    let program = Program::new(FIRST, SECOND);
    assert!(program.layout(&["point"]).contains("int x;"));
    program.build(&FIRST.replace("int x, y", "long x, y, z"), SECOND);
    let anew = program.layout(&["point"]);
    assert!(anew.contains("long") && anew.contains("z;"), "{anew}");
}
