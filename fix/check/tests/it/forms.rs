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

/// Whether a program can be started.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn run(compiler: &str, folder: &Path, arguments: &[&str]) {
    let output =
        Command::new(compiler).args(arguments).current_dir(folder).output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a text to its form, as `docs/certificate-cc` does.
pub(crate) fn compile(compiler: &str, folder: &Path, text: &str) {
    std::fs::create_dir_all(folder).expect("a folder");
    std::fs::write(folder.join("x.c"), text).expect("a source");
    match compiler {
        "gcc" => run(
            compiler,
            folder,
            &[
                "-g",
                "-O2",
                "-w",
                "-fno-toplevel-reorder",
                "-fno-ipa-icf",
                "-c",
                "x.c",
                "-o",
                "x.o",
                "-fdump-tree-gimple-lineno=x.gimple",
            ],
        ),
        _ => run(
            compiler,
            folder,
            &["-g", "-O2", "-w", "-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes", "x.c", "-o", "x.ll"],
        ),
    }
    std::fs::remove_file(folder.join("x.c")).expect("the source goes");
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

/// The compilers that are here.
pub(crate) fn compilers() -> Vec<&'static str> {
    let found: Vec<&str> = ["gcc", "clang"].into_iter().filter(|compiler| has(compiler)).collect();
    if found.is_empty() {
        eprintln!("skipped: neither gcc nor clang is here");
    }
    found
}
