//! Changes of the modelled caches show in the costs of calls.

use super::guests::{Bench, QUICK, busybox, kernel};
use super::record::{bench, measured, read};
use super::table::shows;
use lineup_recording::{Arm, MeasuredCall, Recording};
use serde_json::Value;

/// Two processes that wake each other some hundred times.
pub(crate) const PING_PONG: &str = "mkfifo /tmp/there /tmp/back; (while read -r n; do echo $n; done < /tmp/there > /tmp/back) & \
     exec 3> /tmp/there 4< /tmp/back; n=0; while [ $n -lt 400 ]; do echo $n >&3; read -r answer <&4; n=$((n + 1)); done";

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn a_second_level_takes_stalls_and_nothing_else_away() {
    let bench = Bench::new(&["record", "--kernel"]);
    let image = bench.copy(&kernel("cloud"));
    // An idle guest's tick stops without this option.
    let cmdline = format!("nohz=off {QUICK}");
    let guest = ["--workload", "sleep 1", "--cmdline", &cmdline];
    let sweep = bench.json(&image, &[&["--region", "timer", "--vary", "l2=off,256K"], &guest[..]].concat());
    assert_eq!(sweep["schema"], "lineup.sweep/1");
    let variants = sweep["variants"].as_array().expect("variants");
    let names: Vec<&str> = variants.iter().filter_map(|variant| variant["variant"].as_str()).collect();
    assert_eq!(names, ["l2=off", "l2=256K"]);
    let of = |variant: &Value, field: &str| {
        let regions = variant["regions"].as_array().expect("regions");
        let region = regions.iter().find(|region| region["name"] == "hrtimer_interrupt").expect("the region");
        region[field].clone()
    };
    for field in ["calls", "instructions", "code_l1_misses", "data_l1_misses"] {
        assert_eq!(of(&variants[0], field), of(&variants[1], field), "{field}");
    }
    assert!(of(&variants[0], "calls").as_u64() > Some(100));
    for quantile in ["median", "max"] {
        let cycles = |variant| of(variant, "cycles")[quantile].as_u64();
        assert!(cycles(&variants[0]) > cycles(&variants[1]), "{quantile}");
    }
    for name in ["0-l2=off.rec", "1-l2=256K.rec"] {
        let recording = read(&bench.folder.path().join("lineup-sweep").join(name));
        assert!(!measured(&recording, "hrtimer_interrupt").is_empty());
    }
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn emptied_and_prefetched_code_caches_stand_on_both_sides_of_the_untouched_one() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let arms = ["--intervene", "normal,invalidated,prefetched", "--region", "hrtimer_interrupt"];
    // A program between two ticks, so that the untouched cache holds some of their code and lacks some.
    let workload = "i=0; while [ $i -lt 220 ]; do i=$((i+1)); usleep 4000; done";
    let guest = ["--workload", workload, "--cmdline", QUICK, "--out", "a.rec"];
    bench.json(&image, &[&arms[..], &guest].concat());
    let recording = read(&bench.folder.path().join("a.rec"));
    let calls = measured(&recording, "hrtimer_interrupt");
    let of = |arm: Arm, what: fn(&MeasuredCall) -> u64| {
        let values: Vec<u64> = calls.iter().filter(|call| call.arm == arm).map(|call| what(call)).collect();
        assert!(values.len() > 100, "{arm:?}: {} calls", values.len());
        median(values)
    };
    let misses = |arm| of(arm, |call| call.own.code_misses.l1);
    let [normal, invalidated, prefetched] = Arm::ALL.map(misses);
    assert!(invalidated > normal, "invalidated {invalidated}, normal {normal}");
    assert!(normal >= prefetched, "normal {normal}, prefetched {prefetched}");
    // A call's instructions do not depend on it.
    let [normal, invalidated, prefetched] = Arm::ALL.map(|arm| of(arm, |call| call.own.instructions));
    for touched in [invalidated, prefetched] {
        assert!(touched.abs_diff(normal) * 10 < normal, "{touched} against {normal} instructions");
    }
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn two_processors_share_lines_and_still_give_the_same_recording() {
    let bench = bench();
    // QEMU 7.2 does not bring up a second x86 processor while time counts in instructions.
    let fetched = kernel("arm64");
    let (image, busybox) = (bench.copy(&fetched), busybox(&fetched));
    let run = |out: &str| {
        let regions = ["--region", "wakeup", "--region", "hrtimer_interrupt", "--calls", "20"];
        let guest = ["--cpus", "2", "--workload", PING_PONG, "--busybox", &busybox, "--out", out];
        bench.json(&image, &[&regions[..], &guest].concat())
    };
    run("one.rec");
    run("two.rec");
    let path = |name: &str| bench.folder.path().join(name);
    let bytes = |name: &str| std::fs::read(path(name)).expect("a recording");
    assert!(bytes("one.rec") == bytes("two.rec"), "two runs of one command differ");
    let recording = read(&path("one.rec"));
    let test = "two_processors_share_lines_and_still_give_the_same_recording";
    shows(&recording, "AArch64, two CPUs", test);
    assert_two_wake_each_other(&recording);
}

/// In a recording of [`PING_PONG`] on two processors each wakes tasks, and finds lines that the other had.
pub(crate) fn assert_two_wake_each_other(recording: &Recording) {
    assert_eq!(recording.system.as_ref().expect("last words").cpus.len(), 2);
    let woken = measured(recording, "try_to_wake_up");
    assert!(woken.len() > 500, "{} wake-ups", woken.len());
    assert!(woken.iter().any(|call| call.own.shared_misses > 0), "no line came from the other processor");
    assert!((0..2).all(|cpu| woken.iter().any(|call| call.cpu == cpu)), "one processor never woke a task");
}
