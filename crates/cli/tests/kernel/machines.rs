//! Kernels of other machines, and of other kinds, recorded.

use crate::guests::{busybox, kernel};
use crate::record::{SHORT, bench, code_lines, data_lines, kept, measured, range, read};
use lineup_model::abi::Machine;
use lineup_model::access::CallEnd;
use lineup_recording::Recording;
use std::collections::BTreeSet;

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_real_time_kernel_idles_and_its_ticks_are_recorded() {
    let bench = bench();
    let image = bench.copy(&kernel("rt"));
    let regions = ["--region", "timer", "--region", "irqs-off", "--calls", "20", "--out", "a.rec"];
    let guest = ["--workload", "idle", "--cmdline", "nohz=off"];
    let report = bench.json(&image, &[&regions[..], &guest].concat());
    assert!(report["guest"]["release"].as_str().expect("a release").contains("-rt-"), "{report}");
    assert_eq!(
        (report["interrupts_while_off"].as_u64(), report["complete"].as_bool()),
        (Some(0), Some(true))
    );
    let recording = read(&bench.folder.path().join("a.rec"));
    let ticks = measured(&recording, "hrtimer_interrupt");
    // Five seconds at 250 Hz.
    assert!(ticks.len() > 1000, "{} ticks", ticks.len());
    assert!(ticks.iter().all(|call| call.end == CallEnd::Returned));
}

/// Another machine's kernel, recorded twice alike.
fn recorded_elsewhere(name: &str) -> Recording {
    let bench = bench();
    let fetched = kernel(name);
    let (image, busybox) = (bench.copy(&fetched), busybox(&fetched));
    let record = |out: &str| {
        let own = ["--busybox", &busybox, "--workload", SHORT, "--calls", "60", "--out", out];
        let regions = ["--region", "sched_clock", "--region", "hrtimer_interrupt", "--region", "__schedule"];
        bench.json(&image, &[&own[..], &regions].concat())
    };
    let report = record("one.rec");
    assert_eq!(report["interrupts_while_off"], serde_json::Value::Null, "not observed on this machine");
    assert!(report["interrupts"].as_u64() > Some(5), "{report}");
    assert!(report["switches"].as_u64() > Some(5), "{report}");
    record("two.rec");
    let (one, two) = (bench.folder.path().join("one.rec"), bench.folder.path().join("two.rec"));
    let bytes = |path| std::fs::read(path).expect("a recording");
    assert!(bytes(&one) == bytes(&two), "two runs of one command differ");
    read(&one)
}

fn calls_return_and_the_clock_always_costs_the_same(recording: &Recording) {
    let clock = measured(recording, "sched_clock");
    assert!(clock.len() > 100, "{} calls", clock.len());
    assert!(clock.iter().all(|call| call.end == CallEnd::Returned && call.interrupts == 0));
    let costs: BTreeSet<u64> = clock.iter().map(|call| call.own.instructions).collect();
    assert_eq!(costs.len(), 1, "instructions of sched_clock: {costs:?}");
    let ticks = measured(recording, "hrtimer_interrupt");
    assert!(ticks.len() > 5 && ticks.iter().all(|call| call.end == CallEnd::Returned));
    let switching = measured(recording, "__schedule");
    assert!(switching.iter().any(|call| call.switches > 0), "no call of __schedule changed the task");
    // A task that has ended does not come back; every other one does.
    let returned = switching.iter().filter(|call| call.end == CallEnd::Returned).count();
    assert!(returned * 10 > switching.len() * 7, "{returned} of {} returned", switching.len());
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn thirty_two_bit_arm_has_the_generic_clock_of_2015_on_few_lines() {
    let recording = recorded_elsewhere("armmp");
    assert_eq!(recording.header.abi.machine, Machine::Arm);
    calls_return_and_the_clock_always_costs_the_same(&recording);
    let clock = kept(&recording, "sched_clock");
    for (line_bytes, most) in [(64, 5), (32, 6)] {
        let (least_data, most_data) = range(clock.iter().map(|call| data_lines(call, line_bytes)));
        let (_, most_code) = range(clock.iter().map(|call| code_lines(call, line_bytes)));
        assert!(least_data >= 2 && most_data <= most, "{line_bytes}: {least_data} to {most_data} data lines");
        assert!(most_code <= 12, "{line_bytes}: {most_code} code lines");
    }
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn sixty_four_bit_arm_is_recorded_alike() {
    let recording = recorded_elsewhere("arm64");
    assert_eq!(recording.header.abi.machine, Machine::AArch64);
    calls_return_and_the_clock_always_costs_the_same(&recording);
}
