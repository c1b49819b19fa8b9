//! Debian's kernels under the emulators of other distributions, each against QEMU 7.2. They are fetched, so that
//! `make test-kernel` leaves these tests out and `make test-emulators` runs them.

use super::emulators::{emulator, idle_tasks_stay, record, the_same_calls};
use super::guests::{busybox, kernel};
use super::record::{SHORT, bench};
use super::sweep::{PING_PONG, assert_two_wake_each_other};
use super::table::{is_repeated, shows};

const OTHERS: [&str; 5] = ["8.2", "9.2", "10.1", "10.2", "11.1"];

#[test]
#[ignore = "fetches five emulators and boots kernels for a quarter of an hour; make test-emulators runs it"]
fn other_emulators_record_the_same_calls() {
    for (name, machine) in [("cloud", "x86-64"), ("arm64", "AArch64"), ("armmp", "32-bit Arm")] {
        let bench = bench();
        let fetched = kernel(name);
        let image = bench.copy(&fetched);
        let busybox = (name != "cloud").then(|| busybox(&fetched));
        let own = busybox.iter().flat_map(|busybox| ["--busybox", busybox]);
        let guest: Vec<&str> = ["--workload", SHORT].into_iter().chain(own).collect();
        let older = record(&bench, &image, "older.rec", None, &guest);
        for version in OTHERS {
            // There the guest never switches itself off.
            let stays_on = version == "9.2" && name != "cloud";
            let bound: &[&str] = if stays_on { &["--timeout", "240"] } else { &[] };
            let guest = [&guest[..], bound].concat();
            let newer = record(&bench, &image, "newer.rec", Some(&emulator(version)), &guest);
            assert!(
                newer.header.emulator.contains(&format!("version {version}.")),
                "{}",
                newer.header.emulator
            );
            the_same_calls(&older, &newer);
            shows(&newer, machine, "other_emulators_record_the_same_calls");
        }
    }
}

#[test]
#[ignore = "fetches five emulators and boots kernels for a quarter of an hour; make test-emulators runs it"]
fn other_emulators_record_two_processors() {
    let test = "other_emulators_record_two_processors";
    for version in OTHERS {
        let folder = emulator(version);
        let bench = bench();
        let image = bench.copy(&kernel("cloud"));
        let guest = ["--cpus", "2", "--region", "kernel", "--workload", SHORT];
        let recording = record(&bench, &image, "x86.rec", Some(&folder), &guest);
        idle_tasks_stay(&bench, "x86.rec");
        shows(&recording, "x86-64, two CPUs", test);

        let fetched = kernel("arm64");
        let (image, busybox) = (bench.copy(&fetched), busybox(&fetched));
        let guest = ["--cpus", "2", "--workload", PING_PONG, "--busybox", &busybox];
        let machine = "AArch64, two CPUs";
        let recording = record(&bench, &image, "arm.rec", Some(&folder), &guest);
        assert_two_wake_each_other(&recording);
        if is_repeated(&recording, machine) {
            record(&bench, &image, "again.rec", Some(&folder), &guest);
            let bytes = |name: &str| std::fs::read(bench.folder.path().join(name)).expect("a recording");
            assert!(bytes("arm.rec") == bytes("again.rec"), "two runs of one command differ under {version}");
        }
        shows(&recording, machine, test);
    }
}
