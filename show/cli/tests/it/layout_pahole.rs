//! `lineup layout` compared with `pahole`: every named struct of real programs must have the same members at the same
//! places, the same holes, and the same sums.
//!
//! At places where pahole 1.24 is known to differ from the compiler, the test names the difference.

use crate::pahole;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command and returns its output; fails with its errors, or with the package to install.
fn output(command: &mut Command, package: &str) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {program}: {error}; install it: apt install {package}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn lineup(arguments: &[&str]) -> String {
    output(Command::new(env!("CARGO_BIN_EXE_lineup")).args(arguments), "")
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares all named structs of a file and returns how many there were.
fn compare(file: &Path, format: &str) -> usize {
    let path = file.to_str().expect("a UTF-8 path");
    let ours = lineup(&["layout", "--full", path]);
    let mut theirs = pahole::read(&output(Command::new("pahole").args(["-F", format, path]), "dwarves"));
    // pahole lists structs with a name of their own; those named by a typedef it shows on demand, and
    // of several only those in the first unit that has one.
    let show = |names: &str| {
        let shown = Command::new("pahole")
            .args(["-F", format, "-C", names, path])
            .output()
            .expect("pahole ran before");
        pahole::read(&String::from_utf8_lossy(&shown.stdout))
    };
    let names = pahole::typedef_names(&ours);
    theirs.extend(show(&names.join(",")));
    let shown: BTreeSet<String> = theirs.iter().map(|printed| printed.name.clone()).collect();
    theirs.extend(names.iter().filter(|name| !shown.contains(*name)).flat_map(|name| show(name)));
    let mut known_to_us: BTreeMap<String, Vec<pahole::Printed>> = BTreeMap::new();
    for printed in pahole::read(&ours) {
        known_to_us.entry(printed.name.clone()).or_default().push(printed);
    }
    let ours = known_to_us;
    let mut wrong = Vec::new();
    for printed in &theirs {
        let candidates = ours.get(&printed.name).map(Vec::as_slice).unwrap_or_default();
        let differences: Vec<String> =
            candidates.iter().filter_map(|ours| pahole::difference(printed, ours)).collect();
        if differences.len() == candidates.len() {
            wrong.push(format!("{}: {}", printed.name, differences.join(" / ")));
        }
    }
    let known: BTreeSet<&str> = theirs.iter().map(|printed| printed.name.as_str()).collect();
    wrong.extend(
        ours.keys()
            .filter(|name| !known.contains(name.as_str()))
            .map(|name| format!("{name}: pahole has none")),
    );
    assert!(wrong.is_empty(), "{path}: {} of {} differ:\n{}", wrong.len(), theirs.len(), wrong.join("\n"));
    println!("{path}: {} named structs compared with pahole, all equal", theirs.len());
    theirs.len()
}

/// All C files below a folder.
fn c_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            c_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "c") {
            found.push(path);
        }
    }
    found.sort();
}

fn compile(compiler: &str, package: &str, flags: &[&str], sources: &[PathBuf], to: &Path) {
    output(Command::new(compiler).args(flags).arg("-o").arg(to).args(sources), package);
}

#[test]
fn every_struct_of_lua_agrees_on_64_and_on_32_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let study = workspace().join("studies/lua");
    output(Command::new("cp").arg("-R").arg(&study).arg(folder.path()), "coreutils");
    let study = folder.path().join("lua");
    for (arguments, program, package) in [
        (&[][..], "lua", "gcc make"),
        (&["ARCH=arm"], "lua-arm", "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross"),
    ] {
        output(Command::new("make").arg("-j2").arg("-C").arg(&study).args(arguments), package);
        assert!(compare(&study.join(program), "dwarf") >= 50);
    }
}

#[test]
fn every_struct_of_zstd_agrees_and_stays_the_same_however_the_debug_information_is_packed() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut sources = Vec::new();
    for part in ["common", "compress", "decompress", "dictBuilder"] {
        c_files(&lineup_fixtures::sources_of("zstd-sys").join("zstd/lib").join(part), &mut sources);
    }
    let build = |name: &str, flags: &[&str]| {
        let library = folder.path().join(name);
        let fixed = ["-O0", "-DZSTD_DISABLE_ASM=1", "-shared", "-fPIC"];
        compile("gcc", "gcc", &[flags, &fixed[..]].concat(), &sources, &library);
        library
    };
    let plain = build("plain.so", &["-gdwarf-5"]);
    assert!(compare(&plain, "dwarf") >= 100);
    // pahole 1.24 crashes on some of these; each holds the types that the plain build has.
    let expected = listing(&plain);
    for (name, flags) in [
        ("dwarf4-type-units.so", &["-gdwarf-4", "-fdebug-types-section"][..]),
        ("dwarf5-type-units.so", &["-gdwarf-5", "-fdebug-types-section", "-gz=zlib"]),
        ("old-compression.so", &["-gdwarf-4", "-gz=zlib-gnu"]),
    ] {
        assert_eq!(listing(&build(name, flags)), expected, "{name}");
    }
    let split = build("split.so", &["-gdwarf-5", "-gsplit-dwarf"]);
    assert_eq!(listing(&split), expected, "split units");
}

/// Lineup's output on all structs, by name.
fn listing(file: &Path) -> Vec<pahole::Printed> {
    let mut all = pahole::read(&lineup(&["layout", "--full", file.to_str().expect("a UTF-8 path")]));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all.dedup();
    all
}

/// Every shape of bit-field, packing and alignment that C has.
const SHAPES: &str = include_str!("shapes.c");

#[test]
fn every_shape_of_bit_field_and_alignment_agrees_on_five_machines_and_two_versions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("shapes.c");
    std::fs::write(&source, SHAPES).expect("a writable folder");
    for (compiler, package) in [
        ("gcc", "gcc"),
        ("i686-linux-gnu-gcc", "gcc-i686-linux-gnu"),
        ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
        ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
        ("riscv64-linux-gnu-gcc", "gcc-riscv64-linux-gnu"),
    ] {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let object = folder.path().join(format!("{compiler}{version}.o"));
            compile(
                compiler,
                package,
                &[version, "-gstrict-dwarf", "-c"],
                std::slice::from_ref(&source),
                &object,
            );
            assert!(compare(&object, "dwarf") >= 15);
        }
    }
}

#[test]
fn every_struct_of_the_running_kernel_agrees_where_it_shows_its_btf() {
    let image = Path::new("/sys/kernel/btf/vmlinux");
    if !image.exists() {
        let why = "skipped: this kernel shows no BTF at /sys/kernel/btf/vmlinux";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("{why}");
        return;
    }
    assert!(compare(image, "btf") >= 1000);
}

#[test]
fn every_struct_of_a_module_agrees_whose_types_continue_those_of_a_base() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shared = "struct inode { char state; long number; struct inode *next; };";
    let module = "struct entry { char c; struct inode inode; int bits:3; short s; };";
    let path = |name: &str| folder.path().join(name).to_str().expect("a UTF-8 path").to_owned();
    let object = |name: &str, source: &str| {
        let file = folder.path().join(format!("{name}.c"));
        std::fs::write(&file, source).expect("a writable folder");
        compile("gcc", "gcc", &["-g", "-c"], &[file], Path::new(&path(name)));
    };
    object("base", &format!("{shared} struct inode root;"));
    object("module", &format!("{shared} {module} struct entry entry; struct inode *root = &entry.inode;"));
    output(Command::new("pahole").args(["-J", &path("base")]), "dwarves");
    output(Command::new("pahole").args(["-J", "--btf_base", &path("base"), &path("module")]), "dwarves");
    output(Command::new("objcopy").args(["--strip-debug", &path("module")]), "binutils");
    let of_pahole =
        output(Command::new("pahole").args(["-F", "btf", "--btf_base", &path("base"), &path("module")]), "");
    let theirs = pahole::read(&of_pahole);
    let ours = pahole::read(&lineup(&["layout", "--full", "--base", &path("base"), &path("module")]));
    let entry = |all: &[pahole::Printed]| all.iter().find(|printed| printed.name == "entry").cloned();
    let (theirs, ours) = (entry(&theirs).expect("pahole's"), entry(&ours).expect("ours"));
    assert_eq!(pahole::difference(&theirs, &ours), None);
    assert_eq!(theirs.sums.get("size"), Some(&40));
}
