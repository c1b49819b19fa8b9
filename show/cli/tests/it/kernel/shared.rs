//! Recordings that several tests look at: each is made once for each built command.

use super::guests::{Bench, busybox, kernel};
use super::record::{SHORT, read};
use lineup_recording::Recording;
use serde_json::Value;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A clock, ticks, wake-ups, switches, spans with interrupts off, memory for names of files, and their attributes.
const REGIONS: [&str; 7] =
    ["timer", "sched-clock", "wakeup", "__schedule", "irqs-off", "kmem_cache_alloc", "vfs_getattr_nosec"];

/// The file that says that a folder is whole.
const WHOLE: &str = ".whole";

/// A recording of a guest that does [`SHORT`], in a folder with the guest's image.
pub(crate) struct Shared {
    folder: PathBuf,
    name: &'static str,
}

impl Shared {
    /// Of this kernel, with modelled caches; the report is JSON.
    pub(crate) fn with_caches(name: &'static str) -> Shared {
        Shared::made(name, &["--json"])
    }

    /// Without caches; the report is text.
    pub(crate) fn without_caches(name: &'static str) -> Shared {
        Shared::made(name, &["--no-caches"])
    }

    fn made(name: &'static str, more: &[&str]) -> Shared {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fixtures");
        let folder = fixtures.join(format!("kernel-{name}-{:016x}", key(name, more)));
        fs::create_dir_all(&fixtures).expect("a folder");
        let lock = File::create(folder.with_extension("lock")).expect("a file");
        lock.lock().expect("a lock");
        let shared = Shared { folder, name };
        if !shared.folder.join(WHOLE).exists() {
            shared.make(more);
        }
        shared
    }

    fn make(&self, more: &[&str]) {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder).expect("a folder of an earlier run");
        }
        fs::create_dir(&self.folder).expect("a folder");
        fs::copy(kernel(self.name), self.image()).expect("a copy");
        let printed = self.record(&Bench::new(&["record", "--kernel"]), &self.file(), more);
        fs::write(self.folder.join("report"), printed).expect("writes");
        fs::write(self.folder.join(WHOLE), "").expect("writes");
    }

    /// Records once more by the same command, with caches, and returns the file.
    pub(crate) fn again(&self, bench: &Bench) -> PathBuf {
        let out = bench.folder.path().join("again.rec");
        self.record(bench, &out, &["--json"]);
        out
    }

    fn record(&self, bench: &Bench, out: &Path, more: &[&str]) -> Vec<u8> {
        let out = out.display().to_string();
        let busybox = (!self.name.starts_with("cloud")).then(|| busybox(&kernel(self.name)));
        let regions = REGIONS.iter().flat_map(|region| ["--region", region]);
        let own = ["--calls", "200", "--workload", SHORT, "--timeout", "1500", "--out", &out];
        let busybox = busybox.iter().flat_map(|file| ["--busybox", file.as_str()]);
        let arguments: Vec<&str> = regions.chain(own).chain(busybox).chain(more.iter().copied()).collect();
        let output = bench.run(&self.image(), &arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }

    fn image(&self) -> PathBuf {
        self.folder.join("vmlinuz")
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.join("calls.rec")
    }

    pub(crate) fn recording(&self) -> Recording {
        read(&self.file())
    }

    /// The printed report, as text.
    pub(crate) fn text(&self) -> String {
        fs::read_to_string(self.folder.join("report")).expect("a report")
    }

    /// The printed report, as JSON.
    pub(crate) fn figures(&self) -> Value {
        crate::schema::checked(self.text().as_bytes())
    }
}

/// Names all that a recording depends on: the command and its recorder, the emulators, the options.
fn key(name: &str, more: &[&str]) -> u64 {
    let built = |name: &str| {
        let file = Path::new(env!("CARGO_BIN_EXE_lineup")).with_file_name(name);
        let known = file.metadata().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        (known.len(), known.modified().expect("a time"))
    };
    let version = |machine: &str| {
        let emulator = Command::new(format!("qemu-system-{machine}")).arg("--version").output();
        emulator.expect("an emulator").stdout
    };
    let mut key = DefaultHasher::new();
    (built("lineup"), built("liblineup_plugin.so"), kernel(name)).hash(&mut key);
    (["x86_64", "aarch64", "arm"].map(version), REGIONS, SHORT, more).hash(&mut key);
    key.finish()
}
