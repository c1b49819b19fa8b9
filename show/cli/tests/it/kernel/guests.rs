//! Kernels as Debian ships them, and commands that boot them. After each command no emulator may be left.

use crate::fetched;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Fetches a kernel into cargo's folder, once.
pub(crate) fn kernel(name: &str) -> PathBuf {
    fetched::by("kernel-fetch", &[name])
}

/// The static busybox that was fetched with a kernel for another machine.
pub(crate) fn busybox(image: &Path) -> String {
    let folder = image.parent().and_then(Path::parent).expect("the kernel's folder");
    folder.join("bin/busybox").display().to_string()
}

/// Appended to the command line of an x86 guest whose timer is not what a test is about. The processor's own timer, whose
/// calibration takes a third of a boot, makes room for the board's; certificates of modules are not read. A boot takes
/// some half of its time.
pub(crate) const QUICK: &str =
    "nolapic_timer no_timer_check initcall_blacklist=load_system_certificate_list,hpet_init";

/// The command lines of emulators that run an image.
pub(crate) fn emulators(image: &Path) -> Vec<String> {
    let image = image.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let lines = processes.filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines
        .filter(|line| line.starts_with("qemu") || line.contains("/qemu-"))
        .filter(|line| line.contains(&image))
        .collect()
}

/// A folder for the test's files, and for the command's cache.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    /// The options before the image.
    before: &'static [&'static str],
}

impl Bench {
    pub(crate) fn new(before: &'static [&'static str]) -> Bench {
        Bench { folder: tempfile::tempdir().expect("a folder"), before }
    }

    pub(crate) fn command(&self, image: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
        command.current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        command.args(self.before).arg(image).args(arguments);
        command
    }

    pub(crate) fn run(&self, image: &Path, arguments: &[&str]) -> Output {
        let output = self.command(image, arguments).output().expect("lineup runs");
        assert_eq!(emulators(image), Vec::<String>::new(), "an emulator stayed behind");
        output
    }

    /// Runs, expects exit status 2, and returns the message.
    pub(crate) fn refused(&self, image: &Path, arguments: &[&str]) -> String {
        let output = self.run(image, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains("panicked at"), "{said}");
        said
    }

    /// Runs, expects success, and returns the JSON printed.
    pub(crate) fn json(&self, image: &Path, arguments: &[&str]) -> serde_json::Value {
        // A busy machine takes long for a guest: the test does not check the time.
        let patience: &[&str] = if self.before.contains(&"--kernel") { &["--timeout", "1500"] } else { &[] };
        let output = self.run(image, &[arguments, patience, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        crate::schema::checked(&output.stdout)
    }

    /// A copy of an image under a name of its own, so that its emulator is distinguishable from those of other tests.
    pub(crate) fn copy(&self, image: &Path) -> PathBuf {
        let own = self.folder.path().join("vmlinuz");
        std::fs::copy(image, &own).expect("a copy");
        own
    }
}
