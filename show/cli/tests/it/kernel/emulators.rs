//! One kernel under two emulators: QEMU 7.2, whose plugins speak version 1 of its interface, and QEMU 10, whose plugins
//! speak version 4.

use super::guests::{Bench, busybox, kernel};
use super::record::{SHORT, bench, data_lines, kept, measured, range, read};
use super::shared::Shared;
use super::sweep::{PING_PONG, assert_two_wake_each_other};
use super::table::shows;
use crate::fetched;
use lineup_model::access::CallEnd;
use lineup_recording::Recording;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the programs of a QEMU.
pub(crate) fn emulator(version: &str) -> PathBuf {
    fetched::by("qemu-fetch", &[version])
}

fn newer_emulator() -> PathBuf {
    emulator("10.0")
}

/// A clock, memory for names of files, their attributes, and the function that wakes a task. Functions that look at the
/// page of an object, as `getname_flags` does, are left out: the kernel picks the page of a slab at random, and behind
/// the first one it takes one instruction more to find that.
const REGIONS: [&str; 5] =
    ["sched_clock", "kmem_cache_alloc", "vfs_getattr_nosec", "try_to_wake_up", "ttwu_do_activate"];

/// With fewer calls the lines of data may all be those of another place of the stack.
const ENOUGH_CALLS: usize = 5;

/// A recording under the installed emulator, or under the one in this folder.
pub(crate) fn record(
    bench: &Bench,
    image: &Path,
    out: &str,
    folder: Option<&Path>,
    guest: &[&str],
) -> Recording {
    let regions = REGIONS.iter().flat_map(|region| ["--region", region]);
    let own = ["--calls", "200", "--out", out];
    let arguments: Vec<&str> = regions.chain(own).chain(guest.iter().copied()).collect();
    let mut command = bench.command(image, &arguments);
    if let Some(folder) = folder {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).expect("a PATH"));
    }
    let output = command.output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read(&bench.folder.path().join(out))
}

/// The ways that a region's calls took, by their instructions: how many calls took each.
fn ways(recording: &Recording, region: &str) -> BTreeMap<u64, usize> {
    let mut ways = BTreeMap::new();
    for call in measured(recording, region) {
        assert_eq!(call.end, CallEnd::Returned, "{region}");
        *ways.entry(call.own.instructions).or_default() += 1;
    }
    ways
}

/// The lines of code of kept calls that took this way.
fn lines_of_code(recording: &Recording, region: &str, instructions: u64) -> BTreeSet<Vec<u64>> {
    let calls = kept(recording, region).into_iter().filter(|call| call.instructions == instructions);
    calls.map(|call| call.code_granules.clone()).collect()
}

/// The numbers of data lines that kept calls with this many instructions needed. The place of the stack in its line,
/// and of objects in theirs, differs from call to call.
fn lines_of_data(recording: &Recording, region: &str, instructions: u64) -> Vec<usize> {
    let calls = kept(recording, region).into_iter().filter(|call| call.instructions == instructions);
    calls.map(|call| data_lines(call, 64)).collect()
}

/// Ticks come at different instructions, since each emulator ends blocks of code at other places: some calls meet them
/// elsewhere, and take another way.
pub(crate) fn the_same_calls(older: &Recording, newer: &Recording) {
    assert_ne!(older.header.emulator, newer.header.emulator);
    for region in REGIONS {
        let both = [older, newer].map(|recording| ways(recording, region));
        let shared: Vec<u64> = both[0].keys().filter(|way| both[1].contains_key(way)).copied().collect();
        for taken in &both {
            let all: usize = taken.values().sum();
            let alike: usize = shared.iter().map(|way| taken[way]).sum();
            assert!(
                4 * alike >= 3 * all,
                "{region}: {alike} of {all} calls took a way that both took: {both:?}"
            );
        }
        for way in shared {
            let [one, other] = [older, newer].map(|recording| lines_of_code(recording, region, way));
            let is_same = one.is_empty() || other.is_empty() || !one.is_disjoint(&other);
            assert!(is_same, "{region}, {way} instructions");
            let both = [older, newer].map(|recording| lines_of_data(recording, region, way));
            if both.iter().all(|counts| counts.len() >= ENOUGH_CALLS) {
                let [(low, high), (other_low, other_high)] =
                    both.clone().map(|counts| range(counts.into_iter()));
                assert!(low <= other_high && other_low <= high, "{region}, {way} instructions: {both:?}");
            }
        }
    }
    for recording in [older, newer] {
        assert_eq!(recording.system.as_ref().expect("last words").interrupts_while_off, 0);
    }
}

#[test]
fn two_emulators_record_the_same_calls() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--workload", SHORT];
    let older = Shared::with_caches("cloud").recording();
    let newer = record(&bench, &image, "newer.rec", Some(&newer_emulator()), &guest);
    the_same_calls(&older, &newer);
    shows(&newer, "x86-64", "two_emulators_record_the_same_calls");
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn two_emulators_record_the_same_calls_of_arm_kernels() {
    for (name, machine) in [("arm64", "AArch64"), ("armmp", "32-bit Arm")] {
        let bench = bench();
        let fetched = kernel(name);
        let (image, busybox) = (bench.copy(&fetched), busybox(&fetched));
        let guest = ["--workload", SHORT, "--busybox", &busybox];
        let older = Shared::with_caches(name).recording();
        let newer = record(&bench, &image, "newer.rec", Some(&newer_emulator()), &guest);
        the_same_calls(&older, &newer);
        shows(&newer, machine, "two_emulators_record_the_same_calls_of_arm_kernels");
    }
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn the_newer_emulator_tells_which_of_two_processors_it_is() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--cpus", "2", "--region", "kernel", "--workload", SHORT];
    let recording = record(&bench, &image, "two.rec", Some(&newer_emulator()), &guest);
    idle_tasks_stay(&bench, "two.rec");
    shows(&recording, "x86-64, two CPUs", "the_newer_emulator_tells_which_of_two_processors_it_is");
}

/// The idle task of a processor runs on no other: with a wrong processor from the emulator it seems to.
pub(crate) fn idle_tasks_stay(bench: &Bench, recording: &str) {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.current_dir(bench.folder.path()).args(["threads", recording, "--json"]);
    let output = lineup.output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let tasks = report["tasks"].as_array().expect("tasks");
    let idle = |cpu: usize| tasks.iter().find(|task| task["name"] == format!("swapper/{cpu} (0)").as_str());
    let idle: Vec<_> = (0..2).filter_map(|cpu| Some((cpu, &idle(cpu)?["cpus"]))).collect();
    assert!(!idle.is_empty(), "one idles: {tasks:#?}");
    assert!(idle.iter().all(|(cpu, cpus)| **cpus == serde_json::json!([cpu])), "{tasks:#?}");
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn the_newer_emulator_records_two_arm_processors_that_share_lines() {
    let bench = bench();
    let fetched = kernel("arm64");
    let (image, busybox) = (bench.copy(&fetched), busybox(&fetched));
    let guest = ["--cpus", "2", "--workload", PING_PONG, "--busybox", &busybox];
    let recording = record(&bench, &image, "two.rec", Some(&newer_emulator()), &guest);
    assert_two_wake_each_other(&recording);
    let test = "the_newer_emulator_records_two_arm_processors_that_share_lines";
    shows(&recording, "AArch64, two CPUs", test);
}
