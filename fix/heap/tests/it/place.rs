//! A folder with a compiled program, which runs with pools.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A plan of pools for each size.
pub(crate) const BY_SIZE: &str = "lineup heap plan 1\npool sizes 0-1024\n";

/// The same for larger sizes too, on huge pages.
pub(crate) const HUGE: &str = "lineup heap plan 1\npool sizes 0-16384 pages huge\n";

/// Packed, and moved to huge pages later.
pub(crate) const PACKED: &str =
    "lineup heap plan 1\npool sizes 17-128 align 8\npool sizes 0-2048 pages collapse\n";

pub(crate) struct Place {
    folder: TempDir,
    program: PathBuf,
}

impl Place {
    /// Compiles one of the programs next to this file.
    pub(crate) fn new(source: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place { program: folder.path().join("program"), folder };
        place.compile(source, "program", &["-pthread"]);
        place
    }

    /// Compiles another one to a file in the folder.
    pub(crate) fn compile(&self, source: &str, to: &str, options: &[&str]) -> PathBuf {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs").join(source);
        let to = self.folder.path().join(to);
        let compiler = if source.ends_with(".cc") { "g++" } else { "gcc" };
        let mut build = Command::new(compiler);
        build
            .args(["-g", "-O2", "-w", "-Wl,--build-id"])
            .args(options)
            .arg("-o")
            .arg(&to)
            .arg(from)
            .arg("-ldl");
        assert!(build.status().expect("gcc and g++; apt install g++").success());
        to
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a plan.
    pub(crate) fn plan(&self, text: &str) -> PathBuf {
        let file = self.folder.path().join("plan");
        std::fs::write(&file, text).expect("a plan");
        file
    }

    /// The program with pools.
    pub(crate) fn with(&self, plan: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(arguments);
        self.preload(&mut command, plan).output().expect("it runs")
    }

    /// Gives pools to a command.
    pub(crate) fn preload<'c>(&self, command: &'c mut Command, plan: &str) -> &'c mut Command {
        command
            .current_dir(self.folder())
            .env("LD_PRELOAD", library())
            .env("LINEUP_HEAP_PLAN", self.plan(plan))
    }

    /// The program while it is counted; its output, and the profile.
    pub(crate) fn profiled(&self, arguments: &[&str]) -> (Output, String) {
        let to = self.folder.path().join("profile");
        let mut command = Command::new(&self.program);
        command.args(arguments).env("LD_PRELOAD", library()).env("LINEUP_HEAP_PROFILE", &to);
        let output = command.output().expect("it runs");
        let files =
            std::fs::read_dir(self.folder()).expect("a folder").map(|file| file.expect("a file").path());
        let is_profile = |file: &PathBuf| file.file_stem().is_some_and(|name| name == "profile");
        let files: Vec<PathBuf> = files.filter(is_profile).collect();
        let [file] = files.as_slice() else { panic!("one process, but {files:?}: {output:?}") };
        (output, std::fs::read_to_string(file).expect("a profile"))
    }
}

/// The library to preload.
pub(crate) fn library() -> PathBuf {
    lineup_fixtures::beside("liblineup_heap.so")
}

/// The output of a run that succeeded.
pub(crate) fn said(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{}: {error}", output.status);
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
