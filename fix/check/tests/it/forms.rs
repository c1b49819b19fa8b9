//! Builds both variants of a small program.

use lineup_check::certificate::read_forms;
use lineup_check::unit::Variants;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A folder that is removed at the end.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

static NUMBER: AtomicUsize = AtomicUsize::new(0);

impl Folder {
    pub(crate) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("lineup-check-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for a test");
        Self(path)
    }
}

/// Whether a compiler can be started, and writes a form that is read: clang up to 14 has pointers with types.
pub(crate) fn has(program: &str) -> bool {
    let Ok(output) = Command::new(program).arg("--version").output() else { return false };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.split("clang version ").nth(1).and_then(|rest| rest.split('.').next()?.parse().ok());
    output.status.success() && version.is_none_or(|version: u32| version <= 14)
}

fn run(compiler: &str, folder: &Path, arguments: &[&str]) {
    let output =
        Command::new(compiler).args(arguments).current_dir(folder).output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a text to its form, as `docs/certificate-cc` does.
pub(crate) fn compile(compiler: &str, folder: &Path, text: &str) {
    compile_as("x", (compiler, "-w"), folder, text);
}

/// Compiles with one more option.
pub(crate) fn compile_with(option: &str, compiler: &str, folder: &Path, text: &str) {
    compile_as("x", (compiler, option), folder, text);
}

fn compile_as(unit: &str, (compiler, option): (&str, &str), folder: &Path, text: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    let (source, object, ir) = (format!("{unit}.c"), format!("{unit}.o"), format!("{unit}.ll"));
    let dump = format!("-fdump-tree-gimple-lineno={unit}.gimple");
    std::fs::write(folder.join(&source), text).expect("a source");
    match compiler {
        "gcc" => run(
            compiler,
            folder,
            &[
                "-g",
                "-Wno-int-conversion",
                "-O2",
                "-w",
                "-fno-toplevel-reorder",
                "-fno-ipa-icf",
                "-c",
                &source,
                "-o",
                &object,
                &dump,
                option,
            ],
        ),
        _ => run(
            compiler,
            folder,
            &["-g", "-O2", "-w", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", &source, "-o", &ir],
        ),
    }
    std::fs::remove_file(folder.join(&source)).expect("the source goes");
    // GCC writes no dump of a unit without functions.
    let dump = folder.join(format!("{unit}.gimple"));
    if compiler == "gcc" && !dump.exists() {
        std::fs::write(dump, "").expect("an empty dump");
    }
}

/// Both variants of a program: `before` and `after` take the place of `@` in the text.
pub(crate) fn variants(
    compiler: &str,
    folder: &Folder,
    text: &str,
    (before, after): (&str, &str),
) -> Variants {
    compile(compiler, &folder.0.join("before"), &text.replace('@', before));
    compile(compiler, &folder.0.join("after"), &text.replace('@', after));
    read_forms(&folder.0.join("before"), &folder.0.join("after")).expect("forms")
}

/// Both variants of a program of two units.
pub(crate) fn variants_of_two(
    compiler: &str,
    folder: &Folder,
    (text, other): (&str, &str),
    layouts: (&str, &str),
) -> Variants {
    for side in ["before", "after"] {
        compile_as("y", (compiler, "-w"), &folder.0.join(side), other);
    }
    variants(compiler, folder, text, layouts)
}

/// The compilers that are here.
pub(crate) fn compilers() -> Vec<&'static str> {
    let found: Vec<&str> = ["gcc", "clang"].into_iter().filter(|compiler| has(compiler)).collect();
    if found.is_empty() {
        eprintln!("skipped: neither gcc nor clang is here");
    }
    found
}
