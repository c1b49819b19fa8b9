//! A large file is read once; later looks at a type of it read the units that describe it, and show the same.

use rand::{Rng, RngExt, SeedableRng};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of several units, made larger than the size up to which files are read whole each time.
struct Program {
    folder: tempfile::TempDir,
    build_id: &'static str,
}

/// Two files define a type of the same name, each with its own members; another is only declared in the first.
const FIRST: &str = "
    struct hidden; typedef struct { int x, y; } point;
    struct twice { long a; struct hidden *next; };
    struct outer { struct twice inside; point at; char name[24]; } one;
    int main(void) { return one.at.x; }";
const SECOND: &str = "
    struct hidden { char key[16]; long value; }; typedef struct hidden secret;
    struct twice { char b; double c; struct hidden *next; };
    struct twice two; secret kept;";

impl Program {
    fn new(first: &str, second: &str) -> Program {
        Program::of_files(&[("first.c", first), ("second.c", second)])
    }

    fn of_units(units: &[String]) -> Program {
        let main = "int main(void) { return 0; }".to_owned();
        let named: Vec<(String, &String)> = (0..)
            .zip(units.iter().chain([&main]))
            .map(|(number, text)| (format!("{number}.c"), text))
            .collect();
        let files: Vec<(&str, &str)> =
            named.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        Program::of_files(&files)
    }

    fn of_files(files: &[(&str, &str)]) -> Program {
        let program = Program { folder: tempfile::tempdir().expect("a folder"), build_id: "0x1234" };
        program.build_files(files);
        program
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn build(&self, first: &str, second: &str) {
        self.build_files(&[("first.c", first), ("second.c", second)]);
    }

    fn build_files(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(self.path(name), text).expect("writes");
        }
        let padding = fs::File::create(self.path("padding")).expect("a file");
        padding.set_len(40 << 20).expect("grows");
        let run = |program: &str, arguments: &[&str]| {
            let status = Command::new(program).args(arguments).current_dir(self.folder.path()).status();
            assert!(status.expect("runs").success(), "{program} {arguments:?}");
        };
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        let build_id = format!("-Wl,--build-id={}", self.build_id);
        run("g++", &[&["-g", &build_id, "-o", "small"][..], &language(&names), &names].concat());
        run("objcopy", &["--add-section", ".padding=padding", "small", "program"]);
    }

    fn layout(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
        command.arg("layout").arg(self.path("program")).args(arguments);
        let output = command.env("XDG_CACHE_HOME", self.path("cache")).output().expect("lineup runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        format!("{text}{}", String::from_utf8_lossy(&output.stderr))
    }

    /// The index files from earlier looks.
    fn indexes(&self) -> Vec<PathBuf> {
        let files = |folder: PathBuf| -> Vec<PathBuf> {
            let entries = fs::read_dir(folder).into_iter().flatten();
            entries.map(|entry| entry.expect("an entry").path()).collect()
        };
        files(self.path("cache/lineup/types")).into_iter().flat_map(files).collect()
    }
}

/// The option that sets the files' language for the compiler.
fn language(names: &[&str]) -> [&'static str; 1] {
    [if names[0].ends_with(".c") { "-xc" } else { "-xc++" }]
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
    }
    // Text and JSON of `outer` share one index.
    assert_eq!(program.indexes().len(), NAMES.len() - 1, "one file for each look at other names");
    let unknown = program.layout(&["outr"]);
    assert!(unknown.contains("did you mean outer?"), "{unknown}");
    assert_eq!(program.indexes().len(), NAMES.len(), "all was read, and is known now");
    for (names, whole) in NAMES.iter().zip(&whole) {
        for index in program.indexes().iter().filter(|index| !index.ends_with("all")) {
            fs::remove_file(index).expect("removes");
        }
        assert_eq!(program.layout(names), *whole, "{names:?}, with an index of all names");
    }
}

/// Writes an index that is whole, with other text in it.
fn write_whole(index: &Path, text: &str) {
    let sum = crc32fast::hash(text.as_bytes());
    fs::write(index, format!("lineup type index 2\n{text}{sum:08x}")).expect("writes");
}

#[test]
fn an_index_is_used_and_one_that_does_not_fit_is_not() {
    let program = Program::new(FIRST, SECOND);
    let both = program.layout(&["twice"]);
    let index = program.indexes().remove(0);
    let written = fs::read_to_string(&index).expect("an index");
    assert_eq!(written.lines().nth(1), Some("twice\t0,1\t2"));
    // It says that there is one such type, in the first unit: so that one is shown.
    write_whole(&index, "twice\t0\t1\n");
    assert_eq!(program.layout(&["twice"]).matches("struct twice {").count(), 1);
    for wrong in ["twice\t0\t2\n", "twice\t9999\t2\n", "twice\tone\ttwo\n", "twice\t\n", "", "outer\t0\t1\n"]
    {
        write_whole(&index, wrong);
        assert_eq!(program.layout(&["twice"]), both, "{wrong:?}");
        assert_eq!(fs::read_to_string(&index).expect("an index"), written, "{wrong:?} was written anew");
    }
    for damage in (0..written.len()).step_by(3) {
        let mut bytes = written.clone().into_bytes();
        bytes[damage] ^= 4;
        fs::write(&index, bytes).expect("writes");
        assert_eq!(program.layout(&["twice"]), both, "damaged at {damage}");
        fs::write(&index, &written.as_bytes()[..damage]).expect("writes");
        assert_eq!(program.layout(&["twice"]), both, "cut off at {damage}");
    }
}

#[test]
fn a_program_that_was_built_anew_is_read_anew_whatever_its_build_id() {
    for build_id in ["0x1234", "none"] {
        let mut program = Program::new(FIRST, SECOND);
        program.build_id = build_id;
        program.build(FIRST, SECOND);
        assert!(program.layout(&["point"]).contains("int x;"));
        program.build(&FIRST.replace("int x, y", "long x, y, z"), SECOND);
        let anew = program.layout(&["point"]);
        assert!(anew.contains("long") && anew.contains("z;"), "{anew}");
    }
}

#[test]
fn looks_at_the_same_time_show_the_same() {
    let program = Program::new(FIRST, SECOND);
    let whole = program.layout(&["twice", "--no-index"]);
    std::thread::scope(|scope| {
        let looks: Vec<_> = (0..8)
            .map(|look| {
                let names: &[&str] = if look % 4 == 3 { &["outr"] } else { &["twice"] };
                (look, scope.spawn(|| program.layout(names)))
            })
            .collect();
        for (look, shown) in looks {
            let shown = shown.join().expect("a look");
            match look % 4 {
                3 => assert!(shown.contains("did you mean outer?"), "{shown}"),
                _ => assert_eq!(shown, whole),
            }
        }
    });
    assert_eq!(program.indexes().len(), 2, "no file that was not finished is left");
    assert_eq!(program.layout(&["twice"]), whole);
}

/// Units of C that define, only declare and rename types of a few names, alike and not alike.
fn random_unit(number: u64, random: &mut impl Rng) -> String {
    let mut text = String::new();
    let mut holders = String::new();
    for name in 0..6 {
        match random.random_range(0..6_u32) {
            0 => text += &format!("struct t{name};\n"),
            1 => text += &format!("typedef struct t{name} r{name};\n"),
            2 => text += &format!("typedef struct {{ int a; struct t{} *p; }} r{name};\n", (name + 1) % 6),
            kind => {
                let member =
                    ["int a", "long a", "r6 a", "union { char c; long l; } a"][random.random_range(0..4)];
                let other = random.random_range(0..6_u32);
                let pointer = ["struct t{} *b", "struct t{} *(*b)(struct t{} *)", "const struct t{} *b[2]"];
                let pointer = pointer[kind as usize - 3].replace("{}", &other.to_string());
                text += &format!("struct t{name} {{ {member}; {pointer}; }};\n");
                holders += &format!("struct t{name} *h{number}_{name};\n");
            }
        }
        if text.contains(&format!("}} r{name};")) || text.contains(&format!(" r{name};\n")) {
            holders += &format!("r{name} *k{number}_{name};\n");
        }
    }
    let base = ["short", "int", "long"][random.random_range(0..3)];
    format!("typedef struct {{ {base} s; }} r6;\nr6 *u{number};\n{text}{holders}")
}

#[test]
fn a_look_at_any_type_of_random_programs_shows_what_all_of_it_shows() {
    let mut shown = 0;
    for seed in 0..6 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let units: Vec<String> = (0..6).map(|number| random_unit(number, &mut random)).collect();
        let program = Program::of_units(&units);
        for name in ["t0", "t1", "t2", "t3", "t4", "t5", "r0", "r1", "r2", "r3", "r4", "r5", "r6"] {
            let whole = program.layout(&[name, "--no-index"]);
            assert_eq!(program.layout(&[name]), whole, "seed {seed}, {name}\n{units:#?}");
            assert_eq!(program.layout(&[name]), whole, "seed {seed}, {name}, later\n{units:#?}");
            shown += whole.matches("size: ").count();
        }
    }
    assert!(shown > 100, "{shown} types were compared");
}

#[test]
fn names_of_cpp_may_leave_out_namespaces_and_arguments() {
    let program = Program::of_files(&[
        (
            "a.cc",
            "namespace one { template <class T> struct box { T held; }; struct plain { int a; }; }
                  one::box<int> a; one::box<one::plain> b; struct outer { struct plain { long z; } in; } c;",
        ),
        (
            "b.cc",
            "namespace two { template <class T> struct box { T *held; long more; }; }
                  two::box<int> d; int main() { struct plain { char local; } p = {1}; return p.local; }",
        ),
    ]);
    for (name, types) in [
        ("box", 3),
        ("one::box", 2),
        ("two::box", 1),
        ("box<int>", 2),
        ("one::box<int>", 1),
        ("plain", 1),
        ("outer::plain", 1),
        ("one::plain", 1),
        ("box<one::plain>", 1),
        ("outer", 1),
    ] {
        let whole = program.layout(&[name, "--no-index"]);
        assert_eq!(whole.matches("/* size: ").count(), types, "{name}: {whole}");
        for look in ["first", "second"] {
            assert_eq!(program.layout(&[name]), whole, "{name}, {look} look");
        }
    }
}
