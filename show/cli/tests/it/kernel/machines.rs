//! Kernels of other machines, and of other kinds, recorded.

use super::guests::{Bench, QUICK, busybox, kernel};
use super::record::{SHORT, bench, code_lines, data_lines, kept, measured, printed, range, read};
use super::table::shows;
use lineup_model::abi::Machine;
use lineup_model::access::CallEnd;
use lineup_recording::{MeasuredCall, Recording};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn a_real_time_kernel_idles_and_its_ticks_are_recorded() {
    let bench = bench();
    let image = bench.copy(&kernel("rt"));
    let regions = ["--region", "timer", "--region", "irqs-off", "--calls", "20", "--out", "a.rec"];
    let cmdline = format!("nohz=off {QUICK}");
    let guest = ["--workload", "idle", "--cmdline", &cmdline];
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

/// Another machine's kernel, recorded twice alike, with the report, and the folder of its recording, `one.rec`.
fn recorded_elsewhere(name: &str) -> (Recording, Value, Bench) {
    let bench = bench();
    let fetched = kernel(name);
    let (image, busybox) = (bench.copy(&fetched), busybox(&fetched));
    let record = |out: &str| {
        let own = ["--busybox", &busybox, "--workload", SHORT, "--calls", "60", "--out", out];
        let functions =
            ["--region", "sched_clock", "--region", "hrtimer_interrupt", "--region", "__schedule"];
        let regions = [&functions[..], &["--region", "irqs-off"]].concat();
        bench.json(&image, &[&own[..], &regions].concat())
    };
    let report = record("one.rec");
    the_flag_is_exact(&report);
    assert!(report["interrupts"].as_u64() > Some(5), "{report}");
    assert!(report["switches"].as_u64() > Some(5), "{report}");
    record("two.rec");
    let (one, two) = (bench.folder.path().join("one.rec"), bench.folder.path().join("two.rec"));
    let bytes = |path| std::fs::read(path).expect("a recording");
    assert!(bytes(&one) == bytes(&two), "two runs of one command differ");
    let spans = printed(&bench, &["trace", "report", "--full", "one.rec", "--region", "irqs-off"]);
    (read(&one), spans, bench)
}

/// The tracked flag agrees with everything that shows the kernel's: interrupts, and its actions after a test of it.
fn the_flag_is_exact(report: &Value) {
    let count = |name: &str| report[name].as_u64();
    assert_eq!((count("interrupts_while_off"), count("flag_lost")), (Some(0), Some(0)), "{report}");
    if report["guest"]["release"].as_str().is_some_and(|release| release.ends_with("arm64")) {
        assert!(count("flag_checks") > Some(1000), "{report}");
        assert_eq!(count("failed_flag_checks"), Some(0), "{report}");
    }
}

/// Spans with interrupts off are where a kernel has them: around every timer interrupt, short, and few of all
/// instructions.
fn interrupts_are_off_in_interrupts_and_not_for_long(recording: &Recording, entry: &str, report: &Value) {
    let spans = measured(recording, "irqs-off");
    assert!(spans.len() > 1000, "{} spans", spans.len());
    assert!(spans.iter().all(|span| span.begun_at + span.own.instructions == span.ended_at));
    assert!(spans.windows(2).all(|pair| pair[0].ended_at <= pair[1].begun_at), "spans overlap");
    let ticks = measured(recording, "hrtimer_interrupt");
    let is_inside = |tick: &MeasuredCall| {
        spans.iter().any(|span| span.begun_at < tick.begun_at && tick.ended_at < span.ended_at)
    };
    assert!(ticks.iter().all(|tick| is_inside(tick)), "a timer interrupt with interrupts on");
    // Between two ticks are two million instructions.
    let longest = spans.iter().map(|span| span.own.instructions).max();
    assert!(longest < Some(100_000), "{longest:?} instructions");
    let total: u64 =
        recording.system.iter().flat_map(|system| &system.cpus).map(|cpu| cpu.instructions).sum();
    let off: u64 = spans.iter().map(|span| span.own.instructions).sum();
    // A guest without entropy makes its random numbers with interrupts off, for every system call on 64-bit Arm.
    assert!(off * 4 < total * 3, "off for {off} of {total} instructions");
    let span = report["regions"]
        .as_array()
        .and_then(|regions| regions.iter().find(|region| region["is_span"] == true));
    let longest =
        span.and_then(|span| span["runs"][0]["spans"]["longest"].as_array()).expect("the longest spans");
    let is_tick =
        |span: &Value| span["from"]["function"] == entry && span["inside"][0] == "hrtimer_interrupt";
    assert!(longest.iter().any(is_tick), "{longest:#?}");
    assert!(longest.iter().all(|span| span["to"]["function"].is_string()), "{longest:#?}");
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
    // A call that switches away from an ended task does not return; every other one does.
    let returned = switching.iter().filter(|call| call.end == CallEnd::Returned).count();
    assert!(returned * 10 > switching.len() * 7, "{returned} of {} returned", switching.len());
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn thirty_two_bit_arm_has_the_generic_clock_of_2015_on_few_lines() {
    // Its image has no types, and a table of functions alone.
    let (recording, report, bench) = recorded_elsewhere("armmp");
    let explained = Bench::new(&["explain"]).run(&bench.folder.path().join("one.rec"), &[]);
    let explained = String::from_utf8_lossy(&explained.stdout);
    assert!(explained.starts_with("Next to no access outside the stack has a name: "), "{explained}");
    assert_eq!(recording.header.abi.machine, Machine::Arm);
    shows(&recording, "32-bit Arm", "thirty_two_bit_arm_has_the_generic_clock_of_2015_on_few_lines");
    calls_return_and_the_clock_always_costs_the_same(&recording);
    interrupts_are_off_in_interrupts_and_not_for_long(&recording, "__irq_svc", &report);
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
    let (recording, report, bench) = recorded_elsewhere("arm64");
    let explained = printed(&bench, &["explain", "one.rec"]);
    assert_eq!(recording.header.abi.machine, Machine::AArch64);
    shows(&recording, "AArch64", "sixty_four_bit_arm_is_recorded_alike");
    calls_return_and_the_clock_always_costs_the_same(&recording);
    interrupts_are_off_in_interrupts_and_not_for_long(&recording, "el1h_64_irq", &report);
    let regions = explained["regions"].as_array().expect("regions");
    for name in ["hrtimer_interrupt", "__schedule"] {
        let named =
            regions.iter().find(|region| region["name"] == name).map(|region| &region["coverage"]["named"]);
        assert!(named.and_then(Value::as_f64) > Some(0.8), "{name}: {named:?}");
    }
    // The packed image, as other distributions have it, gives the same.
    let advised = printed(&bench, &["advise", "one.rec"]);
    assert!(advised["types_touched"].as_u64() > Some(5), "{advised:#}");
    let image = bench.folder.path().join("vmlinuz");
    let packed = Command::new("gzip").arg("--stdout").arg(&image).output().expect("gzip");
    assert!(packed.status.success() && packed.stdout.starts_with(&[0x1f, 0x8b]));
    std::fs::write(image, packed.stdout).expect("the bench's own image");
    assert_eq!(printed(&bench, &["explain", "one.rec"]), explained);
    assert_eq!(printed(&bench, &["advise", "one.rec"]), advised);
}
