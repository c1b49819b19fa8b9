//! A kernel as Debian ships it: its image's description, one boot, and all failures of a guest. Whatever the end of a
//! guest, there is a message, and no emulator stays behind.

use super::guests::{Bench, QUICK, busybox, emulators, kernel};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn bench() -> Bench {
    Bench::new(&["kernel"])
}

fn booted(bench: &Bench, image: &Path, arguments: &[&str]) -> Value {
    bench.json(image, &[&["--boot"], arguments].concat())
}

#[test]
fn a_distributed_kernel_boots_and_has_the_symbols_that_its_image_holds() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    std::fs::write(bench.folder.path().join("numbers"), "3\n1\n2\n").expect("a file");
    let command = "test \"$(sort numbers | head -n 1)\" = 1";
    let report = booted(&bench, &image, &["--check-symbols", "--workload", command]);
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

/// Their table of symbols has another form, and their packages other places.
#[test]
fn a_kernel_of_linux_7_has_the_symbols_that_its_guest_lists() {
    let bench = bench();
    let guest = ["--check-symbols", "--cmdline", QUICK, "--workload", "true"];
    let report = booted(&bench, &bench.copy(&kernel("cloud-7")), &guest);
    assert!(report["release"].as_str().is_some_and(|release| release.starts_with('7')), "{report}");
    assert_eq!(report["symbol_source"], "kallsyms in the image");
    assert!(report["symbols"].as_u64() > Some(50_000), "{report}");
    let symbols = &report["boot"]["symbols"];
    assert_eq!(symbols["different"], 0, "{symbols}");
    assert!(symbols["equal"].as_u64() > Some(1000), "{symbols}");
}

#[test]
fn images_that_are_none_are_refused_before_any_boot() {
    let bench = bench();
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
    let said = bench.refused(&image, &["--boot", "--cmdline", "kaslr", "--check-symbols"]);
    assert!(said.contains("kaslr is for a plain boot"), "{said}");
}

#[test]
fn an_emulator_that_is_missing_or_too_old_is_named_with_its_package() {
    use std::os::unix::fs::PermissionsExt;
    let bench = bench();
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
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &["--boot", "--memory", "24", "--timeout", "30"]);
    assert!(said.contains("24 MiB (--memory)"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_kernel_that_panics_says_so() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let cmdline = format!("rdinit=/nonexistent init=/nonexistent {QUICK}");
    let said = bench.refused(&image, &["--boot", "--cmdline", &cmdline]);
    assert!(said.contains("the kernel panicked before the guest's init ran"), "{said}");
    assert!(said.contains("--cmdline"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_workload_that_hangs_is_stopped() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    // On a busy machine the guest takes longer until the workload runs.
    for seconds in ["12", "60", "480"] {
        let hangs = ["--workload", "echo so far; cat /dev/console", "--timeout", seconds];
        let said = bench.refused(&image, &[&["--boot", "--cmdline", QUICK], &hangs[..]].concat());
        if said.contains("while the workload ran") {
            assert!(said.contains(&format!("stopped after {seconds} s (--timeout)")), "{said}");
            assert!(said.contains("so far"), "{said}");
            return;
        }
    }
    panic!("the workload never ran");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_guest_that_switches_itself_off_early_is_noticed() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &["--boot", "--cmdline", QUICK, "--workload", "poweroff -f"]);
    assert!(said.contains("switched itself off while the workload ran"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_workload_that_fails_is_told_with_its_status_and_last_lines() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    std::fs::write(bench.folder.path().join("fails"), "#!/bin/sh\necho it went wrong\nexit 7\n")
        .expect("a script");
    let said = bench.refused(&image, &["--boot", "--cmdline", QUICK, "--workload", "./fails"]);
    assert!(said.contains("status 7") && said.contains("it went wrong"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_workload_killed_for_want_of_memory_is_told() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--cmdline", QUICK, "--memory", "128", "--workload", "tail /dev/zero"];
    let said = bench.refused(&image, &[&["--boot"], &guest[..]].concat());
    assert!(said.contains("ran out of its 128 MiB") && said.contains("--memory"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn an_interrupt_ends_the_guest() {
    let bench = bench();
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
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    // The other workloads are recorded by other tests.
    for workload in ["wakeup", "getent hosts localhost"] {
        let guest = ["--cmdline", QUICK, "--workload", workload];
        assert_eq!(booted(&bench, &image, &guest)["boot"]["status"], 0, "{workload}");
    }
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_kernel_may_choose_its_addresses_and_work_around_faults_of_processors() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let own = "set -- $(cat /proc/cmdline) && case \" $* \" in *' nokaslr '*|*=off' '*) exit 1;; esac && \
               grep ' T _text$' /proc/kallsyms";
    let guest = ["--cmdline", "kaslr mitigations=auto", "--workload", own, "--console"];
    let output = bench.run(&image, &[&["--boot"], &guest[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("tsc=reliable panic=-1 kaslr mitigations=auto"), "{printed}");
    let text = said.lines().find_map(|line| Some(line.split_once(" T _text")?.0.trim().to_owned()));
    assert!(text.is_some_and(|address| !address.ends_with("ffffffff81000000")), "{said}");
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn kernels_of_other_machines_and_compressions_boot_and_agree_with_their_images() {
    for (name, machine) in [("rt", "x86_64"), ("arm64", "aarch64"), ("armmp", "arm")] {
        let bench = bench();
        let fetched = kernel(name);
        let image = bench.copy(&fetched);
        let busybox = busybox(&fetched);
        let own = if machine == "x86_64" { ["--cmdline", QUICK] } else { ["--busybox", busybox.as_str()] };
        let report = booted(&bench, &image, &[&own[..], &["--check-symbols", "--workload", "true"]].concat());
        assert_eq!(
            (report["machine"].as_str(), report["symbol_source"].as_str()),
            (Some(machine), Some("kallsyms in the image"))
        );
        assert_eq!(report["boot"]["symbols"]["different"], 0, "{name}");
        assert!(report["boot"]["symbols"]["equal"].as_u64() > Some(1000), "{name}");
    }
}
