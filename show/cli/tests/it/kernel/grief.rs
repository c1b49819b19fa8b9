//! Kernels that cannot be recorded, and guests that fail while they are recorded: there is a message, the recording up
//! to that point can be read, and no emulator stays behind.

use super::guests::{Bench, QUICK, emulators, kernel};
use super::record::{bench, measured, read};
use lineup_recording::Recording;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn what_cannot_be_recorded_is_refused_before_any_boot() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    for (region, expected) in [
        ("hrtimer_interupt", "hrtimer_interrupt"),
        ("do_local_timer", "the sets are timer"),
        ("clockevents_program_events", "clockevents_program_event"),
    ] {
        let said = bench.refused(&image, &["--region", region]);
        assert!(said.contains(&format!("no function {region}")) && said.contains(expected), "{said}");
    }
    let timer = ["--region", "timer"];
    let refused = |more: &[&str]| bench.refused(&image, &[&timer[..], more].concat());
    assert!(refused(&["--machine", "arm"]).contains("the image is for x86_64, not arm"));
    assert!(refused(&["--latency", "14"]).contains("14,200"));
    assert!(refused(&["--intervene", "flushed"]).contains("normal, invalidated or prefetched"));
    assert!(refused(&["--cache", "l1i=33K,8,64"]).contains("l1i=33K,8,64"));
    assert!(refused(&["--out", "no/such/folder.rec"]).contains("cannot write the recording"));
    assert!(refused(&["--one-pass"]).contains("--one-pass"));
    let other = debug_file_with_another_build_id(&bench);
    let said = refused(&["--debug", &other]);
    assert!(said.contains("build id"), "{said}");
    assert!(!bench.folder.path().join("lineup.rec").exists(), "something was recorded");
}

/// An ELF file with debug information, and a build id that is not the kernel's.
fn debug_file_with_another_build_id(bench: &Bench) -> String {
    let (source, program) = (bench.folder.path().join("other.c"), bench.folder.path().join("other"));
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("a source file");
    let id = "-Wl,--build-id=0x00112233445566778899aabbccddeeff00112233";
    let status = Command::new("gcc").args(["-g", id, "-o"]).arg(&program).arg(&source).status();
    assert!(status.expect("gcc runs").success());
    program.display().to_string()
}

#[test]
fn a_workload_that_fails_leaves_its_recording() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--cmdline", QUICK, "--workload", "ls -R /bin; exit 3", "--out", "a.rec"];
    let said = bench.refused(&image, &[&["--region", "sched-clock"], &guest[..]].concat());
    assert!(said.contains("status 3") && said.contains("a.rec"), "{said}");
    let recording = read(&bench.folder.path().join("a.rec"));
    assert!(recording.system.expect("last words").complete);
    assert!(!recording.calls.is_empty() && !recording.measured.is_empty());
}

/// A guest that fails after the recording began: the message, and a recording with the recorder's last words.
fn grief(arguments: &[&str], expected: &[&str]) -> Recording {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let said = bench.refused(&image, &[&["--region", "timer", "--out", "a.rec"], arguments].concat());
    left_by(&bench, &said, expected)
}

/// The recording that such a guest left.
fn left_by(bench: &Bench, said: &str, expected: &[&str]) -> Recording {
    for part in expected {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.contains("what was recorded until then is in"), "{said}");
    let recording = read(&bench.folder.path().join("a.rec"));
    assert_eq!(recording.damage, None);
    recording
}

fn is_cut_off_in_good_order(recording: &Recording) {
    let system = recording.system.as_ref().expect("the recorder's last words");
    assert!(!system.complete && recording.summary.is_some());
    assert!(!measured(recording, "hrtimer_interrupt").is_empty(), "no tick was recorded");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_guest_that_hangs_is_stopped_and_the_recorder_has_its_last_words() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    // On a busy machine the guest takes longer until the workload runs.
    for seconds in ["14", "60", "480"] {
        let guest = ["--workload", "while :; do :; done", "--cmdline", QUICK, "--timeout", seconds];
        let said = bench.refused(&image, &[&["--region", "timer", "--out", "a.rec"], &guest[..]].concat());
        if said.contains("while the workload ran") {
            let expected = format!("stopped after {seconds} s (--timeout)");
            return is_cut_off_in_good_order(&left_by(&bench, &said, &[expected.as_str()]));
        }
    }
    panic!("the workload never ran");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_kernel_that_panics_under_the_workload_leaves_its_recording() {
    let crash = "ls -R /bin; echo c > /proc/sysrq-trigger";
    let guest = ["--cmdline", QUICK, "--workload", crash];
    is_cut_off_in_good_order(&grief(&guest, &["the kernel panicked while the workload ran"]));
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_guest_out_of_memory_leaves_its_recording() {
    let expected = ["ran out of its 128 MiB", "--memory"];
    let guest = ["--cmdline", QUICK, "--workload", "tail /dev/zero", "--memory", "128"];
    let recording = grief(&guest, &expected);
    assert!(!measured(&recording, "hrtimer_interrupt").is_empty(), "no tick was recorded");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_kernel_that_panics_before_the_workload_leaves_an_empty_recording() {
    let cmdline = format!("rdinit=/nonexistent init=/nonexistent {QUICK}");
    let expected = ["the kernel panicked before the guest's init ran", "--cmdline"];
    let recording = grief(&["--cmdline", &cmdline], &expected);
    assert!(recording.calls.is_empty() && recording.measured.is_empty());
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_region_that_is_never_reached_is_told() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--cmdline", QUICK, "--workload", "true"];
    let said = bench.refused(&image, &[&["--region", "machine_kexec"], &guest[..]].concat());
    assert!(said.contains("without a call of machine_kexec"), "{said}");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn an_interrupt_ends_the_guest_and_leaves_the_recording() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let out = bench.folder.path().join("a.rec");
    let arguments =
        ["--region", "irqs-off", "--workload", "while :; do ls -R /bin > /tmp/list; done", "--out", "a.rec"];
    let child = bench.command(&image, &arguments).stderr(Stdio::piped()).spawn().expect("lineup runs");
    let begun = Instant::now();
    // The header comes first, calls much later.
    while std::fs::metadata(&out).map_or(0, |data| data.len()) < 100_000 {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing was recorded");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs").success()
    );
    let output = child.wait_with_output().expect("lineup ends");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(emulators(&image), Vec::<String>::new());
    let recording = read(&out);
    assert!(!recording.system.expect("last words").complete && !recording.measured.is_empty());
}
