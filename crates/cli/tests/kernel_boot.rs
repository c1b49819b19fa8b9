//! A kernel as Debian ships it: what its image is, one boot, and everything that can go wrong with a guest. However a
//! guest ends, there is a message, and no emulator stays behind.
//!
//! `make test-kernel` also runs the ignored tests, which boot more often and other machines.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Fetches a kernel into cargo's folder, once.
fn kernel(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("scripts/kernel-fetch")).arg(name).stderr(Stdio::inherit()).output();
    let output = output.expect("scripts/kernel-fetch runs");
    assert!(output.status.success(), "scripts/kernel-fetch {name} failed");
    PathBuf::from(String::from_utf8(output.stdout).expect("a path").trim())
}

/// A folder for the test's files, and where the command keeps what it learned.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().expect("a folder") }
    }

    fn command(&self, image: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
        command.current_dir(self.folder.path()).env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        command.arg("kernel").arg(image).args(arguments);
        command
    }

    fn run(&self, image: &Path, arguments: &[&str]) -> Output {
        let output = self.command(image, arguments).output().expect("lineup runs");
        assert_eq!(emulators(image), Vec::<String>::new(), "an emulator stayed behind");
        output
    }

    /// Runs, expects exit status 2, and returns what was said.
    fn refused(&self, image: &Path, arguments: &[&str]) -> String {
        let output = self.run(image, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains("panicked at"), "{said}");
        said
    }

    fn booted(&self, image: &Path, arguments: &[&str]) -> Value {
        let output = self.run(image, &[&["--boot", "--json"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// A copy of an image under a name of its own, so that its emulator can be told from those of other tests.
    fn copy(&self, image: &Path) -> PathBuf {
        let own = self.folder.path().join("vmlinuz");
        std::fs::copy(image, &own).expect("a copy");
        own
    }
}

/// The command lines of emulators that run an image.
fn emulators(image: &Path) -> Vec<String> {
    let image = image.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("/proc");
    let lines = processes.filter_map(|process| std::fs::read(process.ok()?.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines
        .filter(|line| line.starts_with("qemu") || line.contains("/qemu-"))
        .filter(|line| line.contains(&image))
        .collect()
}

#[test]
fn a_distributed_kernel_boots_and_has_the_symbols_that_its_image_holds() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    std::fs::write(bench.folder.path().join("numbers"), "3\n1\n2\n").expect("a file");
    let command = "test \"$(sort numbers | head -n 1)\" = 1";
    let report = bench.booted(&image, &["--check-symbols", "--workload", command]);
    assert_eq!((report["machine"].as_str(), report["form"].as_str()), (Some("x86_64"), Some("bzImage")));
    assert_eq!(report["symbol_source"], "kallsyms in the image");
    assert!(report["symbols"].as_u64() > Some(50_000), "{report}");
    assert!(report["types"].as_u64() > Some(50_000), "{report}");
    let boot = &report["boot"];
    assert_eq!(boot["release"], report["release"]);
    assert_eq!((boot["clocksource"].as_str(), boot["status"].as_i64()), (Some("tsc"), Some(0)));
    assert_eq!(boot["symbols"]["different"], 0, "{boot}");
    assert!(boot["symbols"]["equal"].as_u64() > Some(1000), "{boot}");
}

#[test]
fn images_that_are_none_are_refused_before_any_boot() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let bytes = std::fs::read(&image).expect("an image");
    let bad = bench.folder.path().join("bad");
    for (contents, expected) in [
        (&bytes[..bytes.len() / 2], "cut off"),
        (&bytes[..100], "not a kernel image"),
        (&b""[..], "it is empty"),
        (&[0x5a; 100_000][..], "not a kernel image"),
        (&bytes[20_000..], "not a kernel image"),
    ] {
        std::fs::write(&bad, contents).expect("a file");
        let said = bench.refused(&bad, &["--boot"]);
        assert!(said.contains(expected), "{said}");
    }
    let said = bench.refused(&image, &["--debug", env!("CARGO_BIN_EXE_lineup")]);
    assert!(said.contains("build id"), "{said}");
    let said = bench.refused(&image, &["--boot", "--workload", "./nothing-here 'open"]);
    assert!(said.contains("--workload"), "{said}");
    let said = bench.refused(&image, &["--boot", "--cpus", "0"]);
    assert!(said.contains("--cpus"), "{said}");
}

#[test]
fn an_emulator_that_is_missing_or_too_old_is_named_with_its_package() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let output =
        bench.command(&image, &["--boot"]).env("PATH", bench.folder.path()).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("apt install qemu-system-x86"), "{said}");
    let old = bench.folder.path().join("qemu-system-x86_64");
    std::fs::write(&old, "#!/bin/sh\necho 'QEMU emulator version 5.2.0 (Debian)'\n").expect("a script");
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let output =
        bench.command(&image, &["--boot"]).env("PATH", bench.folder.path()).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("5.2.0") && said.contains("too old") && said.contains("7.1"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_guest_without_memory_ends_with_a_message() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &["--boot", "--memory", "24", "--timeout", "30"]);
    assert!(said.contains("24 MiB (--memory)"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_kernel_that_panics_says_so() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &["--boot", "--cmdline", "rdinit=/nonexistent init=/nonexistent"]);
    assert!(said.contains("the kernel panicked before the guest's init ran"), "{said}");
    assert!(said.contains("--cmdline"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_workload_that_hangs_is_stopped() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let said =
        bench.refused(&image, &["--boot", "--workload", "echo so far; cat /dev/console", "--timeout", "40"]);
    assert!(said.contains("stopped after 40 s (--timeout), while the workload ran"), "{said}");
    assert!(said.contains("so far"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_guest_that_switches_itself_off_early_is_noticed() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &["--boot", "--workload", "poweroff -f"]);
    assert!(said.contains("switched itself off while the workload ran"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_workload_that_fails_is_told_with_its_status_and_last_lines() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    std::fs::write(bench.folder.path().join("fails"), "#!/bin/sh\necho it went wrong\nexit 7\n")
        .expect("a script");
    let said = bench.refused(&image, &["--boot", "--workload", "./fails"]);
    assert!(said.contains("status 7") && said.contains("it went wrong"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_workload_killed_for_want_of_memory_is_told() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &["--boot", "--memory", "128", "--workload", "tail /dev/zero"]);
    assert!(said.contains("ran out of its 128 MiB") && said.contains("--memory"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn an_interrupt_ends_the_guest() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    let mut command = bench.command(&image, &["--boot", "--workload", "cat /dev/console"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("lineup runs");
    let begun = Instant::now();
    while emulators(&image).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no emulator was started");
        std::thread::sleep(Duration::from_millis(50));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("lineup ends");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{output:?}");
    assert_eq!(emulators(&image), Vec::<String>::new());
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn built_in_workloads_and_a_dynamic_program_of_the_host_run() {
    let bench = Bench::new();
    let image = bench.copy(&kernel("cloud"));
    for workload in ["idle", "busy", "wakeup", "net", "getent hosts localhost"] {
        assert_eq!(bench.booted(&image, &["--workload", workload])["boot"]["status"], 0, "{workload}");
    }
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn kernels_of_other_machines_and_compressions_boot_and_agree_with_their_images() {
    for (name, machine) in [("rt", "x86_64"), ("arm64", "aarch64"), ("armmp", "arm")] {
        let bench = Bench::new();
        let fetched = kernel(name);
        let image = bench.copy(&fetched);
        let busybox = fetched.parent().and_then(Path::parent).expect("a folder").join("bin/busybox");
        let busybox = busybox.display().to_string();
        let own = if machine == "x86_64" { vec![] } else { vec!["--busybox", busybox.as_str()] };
        let report = bench.booted(&image, &[&own[..], &["--check-symbols", "--workload", "true"]].concat());
        assert_eq!(
            (report["machine"].as_str(), report["symbol_source"].as_str()),
            (Some(machine), Some("kallsyms in the image"))
        );
        assert_eq!(report["boot"]["symbols"]["different"], 0, "{name}");
        assert!(report["boot"]["symbols"]["equal"].as_u64() > Some(1000), "{name}");
    }
}
