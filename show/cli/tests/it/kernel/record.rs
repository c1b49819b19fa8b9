//! A kernel as Debian ships it, recorded: the content of the recording.

use super::guests::{Bench, QUICK, kernel};
use super::shared::Shared;
use super::table::shows;
use lineup_model::access::{Call, CallEnd};
use lineup_recording::{MeasuredCall, Recording, read_all};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Some of everything: processes, files, ticks, and interrupts in the middle of all that.
pub(crate) const SHORT: &str = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); ls -R /bin > /dev/null; done";

pub(crate) fn bench() -> Bench {
    Bench::new(&["record", "--kernel"])
}

pub(crate) fn read(path: &Path) -> Recording {
    read_all(&std::fs::read(path).expect("a recording")).expect("it can be read")
}

fn index_of(recording: &Recording, region: &str) -> usize {
    usize::from(recording.header.regions.id_of(region).expect("the region").0)
}

pub(crate) fn measured<'r>(recording: &'r Recording, region: &str) -> Vec<&'r MeasuredCall> {
    let index = index_of(recording, region);
    recording.measured.iter().filter(|call| usize::from(call.region.0) == index).collect()
}

pub(crate) fn kept<'r>(recording: &'r Recording, region: &str) -> Vec<&'r Call> {
    let index = index_of(recording, region);
    recording.calls.iter().filter(|call| usize::from(call.region.0) == index).collect()
}

pub(crate) fn code_lines(call: &Call, line_bytes: u64) -> usize {
    call.code_granules.iter().map(|granule| granule / line_bytes).collect::<BTreeSet<_>>().len()
}

pub(crate) fn data_lines(call: &Call, line_bytes: u64) -> usize {
    let lines = |first: u64, size: u32| {
        first / line_bytes..=first.saturating_add(u64::from(size).max(1) - 1) / line_bytes
    };
    let each = call.accesses.iter().flat_map(|access| lines(access.address, access.size_bytes));
    each.collect::<BTreeSet<_>>().len()
}

/// The smallest and the greatest value.
pub(crate) fn range<T: Ord + Copy>(values: impl Iterator<Item = T> + Clone) -> (T, T) {
    (values.clone().min().expect("a call"), values.max().expect("a call"))
}

/// Another command's JSON output.
pub(crate) fn printed(bench: &Bench, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.current_dir(bench.folder.path()).env("XDG_CACHE_HOME", bench.folder.path().join("cache"));
    let output = command.args(arguments).arg("--json").output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    crate::schema::checked(&output.stdout)
}

#[test]
fn the_same_command_gives_the_same_recording_and_it_holds_what_the_kernel_did() {
    let (bench, shared) = (bench(), Shared::with_caches("cloud"));
    let again = shared.again(&bench);
    let bytes = |path: &Path| std::fs::read(path).expect("a recording");
    let (recording, report) = (shared.recording(), shared.figures());
    assert!(
        bytes(&shared.file()) == bytes(&again),
        "two runs of one command differ: {}",
        difference(&recording, &read(&again))
    );
    shows(&recording, "x86-64", "the_same_command_gives_the_same_recording_and_it_holds_what_the_kernel_did");
    the_figures_are_those_of_the_recording(&report, &recording);
    calls_return_and_the_clock_costs_what_a_count_by_hand_says(&recording);
    most_accesses_have_names(&printed(&bench, &["explain", &again.display().to_string()]));
}

/// The first measured and the first kept call in which two recordings differ, and their last words.
fn difference(one: &Recording, other: &Recording) -> String {
    let measured = one.measured.iter().zip(&other.measured).find(|(call, again)| call != again);
    let kept = one.calls.iter().zip(&other.calls).find(|(call, again)| call != again);
    let kept =
        kept.map(|(call, again)| [call, again].map(|call| (call.region, call.sequence, call.accesses.len())));
    let counts = [one, other].map(|one| (one.measured.len(), one.calls.len()));
    format!("{counts:?} calls; {measured:?}; {kept:?}; {:?}; {:?}", one.system, other.system)
}

fn the_figures_are_those_of_the_recording(report: &Value, recording: &Recording) {
    assert_eq!(report["schema"], "lineup.record-kernel/1");
    assert_eq!((report["guest"]["status"].as_i64(), report["complete"].as_bool()), (Some(0), Some(true)));
    assert_eq!(report["guest"]["clocksource"], "tsc");
    assert_eq!((report["l2_cycles"].as_u64(), report["memory_cycles"].as_u64()), (Some(14), Some(200)));
    let system = recording.system.as_ref().expect("the recorder's last words");
    assert!(system.interrupts > 0 && system.switches > 0 && system.exceptions > 0, "{system:?}");
    assert_eq!(system.interrupts_while_off, 0);
    assert_eq!(report["interrupts"], system.interrupts);
    assert_eq!(report["interrupts_while_off"], 0);
    assert_eq!(report["total_instructions"], system.cpus[0].instructions);
    let regions = report["regions"].as_array().expect("regions");
    for (region, (_, info)) in regions.iter().zip(recording.header.regions.iter()) {
        let calls = measured(recording, &info.name);
        assert_eq!(
            (region["name"].as_str(), region["calls"].as_u64()),
            (Some(info.name.as_str()), Some(calls.len() as u64))
        );
        assert_eq!(
            region["instructions"]["max"].as_u64(),
            calls.iter().map(|call| call.own.instructions).max()
        );
        assert_eq!(region["cycles"]["min"].as_u64(), calls.iter().map(|call| call.cycles()).min());
    }
}

fn calls_return_and_the_clock_costs_what_a_count_by_hand_says(recording: &Recording) {
    let timer = measured(recording, "hrtimer_interrupt");
    assert!(timer.len() > 5, "{} timer interrupts", timer.len());
    assert!(timer.iter().all(|call| call.end == CallEnd::Returned && call.own.instructions > 1000));
    let clock = measured(recording, "sched_clock");
    assert!(clock.len() > 100, "{} calls", clock.len());
    // By hand, from the disassembly: 31 instructions; its two code lines, and two of the counter's reader; the
    // counter's scale, the preemption count, and the stack, which may lie on a line's end.
    assert!(clock.iter().all(|call| call.own.instructions == 31 && call.end == CallEnd::Returned));
    let clock = kept(recording, "sched_clock");
    assert_eq!(clock.len(), 200);
    assert_eq!(range(clock.iter().map(|call| code_lines(call, 64))), (4, 4));
    let (least, most) = range(clock.iter().map(|call| data_lines(call, 64)));
    assert!((3..=4).contains(&least) && (3..=4).contains(&most), "{least} to {most} data lines");
    let off = measured(recording, "irqs-off");
    assert!(
        off.len() > 1000 && off.iter().all(|span| span.begun_at + span.own.instructions == span.ended_at)
    );
}

fn most_accesses_have_names(explained: &Value) {
    assert_eq!(explained["schema"], "lineup.explain/1");
    let regions = explained["regions"].as_array().expect("regions");
    let timer: Vec<&Value> =
        regions.iter().filter(|region| region["coverage"]["accesses"].as_u64() > Some(0)).collect();
    assert!(timer.len() > 5);
    for region in timer {
        assert!(
            region["coverage"]["named_off_stack"].as_f64() >= Some(0.85),
            "{}: {}",
            region["name"],
            region["coverage"]
        );
    }
}

/// The image's own types describe functions' parameters, and functions that take a `tcp_sock` show the type of the
/// others' `sock`.
#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn what_receives_over_the_loopback_has_names_by_the_images_own_types_alone() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let regions = ["--region", "net-rx", "--region", "tcp", "--calls", "40", "--no-caches"];
    let workload = "ifconfig lo 127.0.0.1 up; mkfifo /tmp/open; nc -l -p 7000 < /tmp/open > /tmp/received & exec 3> /tmp/open; \
        sleep 1; head -c 1048576 /dev/zero | nc 127.0.0.1 7000; wait; test $(wc -c < /tmp/received) = 1048576";
    let guest = ["--cmdline", QUICK, "--workload", workload, "--out", "net.rec"];
    bench.json(&image, &[&regions[..], &guest].concat());
    let explained = printed(&bench, &["explain", "net.rec"]);
    let regions = explained["regions"].as_array().expect("regions");
    for name in
        ["net_rx_action", "tcp_v4_rcv", "tcp_rcv_established", "tcp_ack", "tcp_recvmsg", "tcp_sendmsg"]
    {
        let region = regions.iter().find(|region| region["name"] == name).expect("a region of the sets");
        let share = region["coverage"]["named_off_stack"].as_f64();
        assert!(share >= Some(0.85), "{name}: {}", region["coverage"]);
    }
    let acknowledged = regions.iter().find(|region| region["name"] == "tcp_ack").expect("tcp_ack");
    let map = acknowledged["map"].as_array().expect("lines");
    let is_used = |name: &str| map.iter().any(|line| line["type_name"] == name);
    assert!(is_used("tcp_sock") && is_used("sk_buff"), "{map:#?}");
}
