//! A folder for a program, one for temporary files, and a check for leftovers in both when `lineup` has ended.

use crate::installed;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder with a program, and a folder for temporary files.
pub(crate) struct Place {
    pub(crate) root: TempDir,
}

impl Place {
    /// Builds `./program` from a source in C, with these options in addition to `-g -O2`.
    pub(crate) fn new(source: &str, options: &[&str]) -> Place {
        let place = Place { root: tempfile::tempdir().expect("a folder") };
        fs::create_dir(place.source()).expect("a folder");
        fs::create_dir(place.temporary()).expect("a folder");
        fs::write(place.source().join("main.c"), source).expect("a file");
        let options = options.join(" ");
        let makefile = format!("program: main.c\n\tgcc -g -O2 {options} -o program main.c\n");
        fs::write(place.source().join("Makefile"), makefile).expect("a file");
        let made = Command::new("make").arg("-s").current_dir(place.source()).status().expect("make runs");
        assert!(made.success());
        place
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.root.path().join("source")
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.root.path().join("temporary")
    }

    pub(crate) fn lineup(&self, arguments: &[&str]) -> Command {
        let mut lineup = installed::lineup();
        lineup.args(arguments).current_dir(self.source()).env("TMPDIR", self.temporary());
        lineup.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        lineup
    }

    /// The leftovers in the folder for temporary files, and the running processes of this place.
    fn left(&self) -> Vec<String> {
        let entries = fs::read_dir(self.temporary()).expect("the folder").flatten();
        let files = entries.map(|entry| entry.path().display().to_string());
        files.chain(processes_in(self.root.path())).collect()
    }

    /// Waits until it is clean: the guardian takes a moment to clean up after a process that was killed.
    pub(crate) fn assert_clean(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let left = self.left();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Command lines of processes that name the folder in them or in their environment, as `TMPDIR` does for all that
/// `lineup` starts.
pub(crate) fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().expect("a name");
    let read = |path: PathBuf| {
        fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " ")).unwrap_or_default()
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten().map(|process| process.path());
    let named = processes.filter_map(|process| {
        let line = read(process.join("cmdline"));
        let is_named = line.contains(folder) || read(process.join("environ")).contains(folder);
        is_named.then_some(line)
    });
    named.collect()
}
