//! Kernels recorded without modelled caches: cache figures are missing, and all else is the same as with caches.

use super::guests::kernel;
use super::record::bench;
use super::shared::Shared;
use lineup_model::access::Call;
use lineup_recording::{Counts, MeasuredCall, Recording};
use std::process::Command;

/// The part of a measured call that comes neither from caches nor from its place in the run.
fn told(call: &MeasuredCall) -> MeasuredCall {
    let own = Counts {
        instructions: call.own.instructions,
        spin_instructions: call.own.spin_instructions,
        ..Counts::default()
    };
    MeasuredCall { own, begun_at: 0, ended_at: 0, to_pc: 0, ..*call }
}

/// Calls are kept in the order in which they ended; of a kept one all but its place in the order of events.
fn told_of_kept(recording: &Recording) -> Vec<(u64, Call)> {
    let told = |call: &Call| (call.sequence, Call { entered_at: 0, ..call.clone() });
    recording.calls.iter().map(told).collect()
}

fn the_same_calls(name: &'static str) {
    let (with, without) = (Shared::with_caches(name).recording(), Shared::without_caches(name).recording());
    let of = |recording: &Recording| recording.measured.iter().map(told).collect::<Vec<_>>();
    assert!(with.measured.len() > 1000 && without.header.caches.is_empty());
    assert!(of(&with) == of(&without), "calls differ");
    assert!(told_of_kept(&with) == told_of_kept(&without), "kept calls differ");
    let last_words = |recording: &Recording| recording.system.clone().expect("the recorder's last words");
    let (with, without) = (last_words(&with), last_words(&without));
    assert_eq!((with.interrupts, with.exceptions), (without.interrupts, without.exceptions));
    assert_eq!((with.switches, with.flag), (without.switches, without.flag));
    let (with, without) = (with.cpus[0].instructions as f64, without.cpus[0].instructions as f64);
    assert!((without / with - 1.0).abs() < 0.001, "{without} instructions instead of {with}");
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn without_caches_the_same_calls_are_recorded() {
    the_same_calls("cloud");
}

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn without_caches_the_same_calls_are_recorded_on_arm() {
    the_same_calls("arm64");
}

#[test]
#[ignore = "boots a kernel; make test-kernel runs it"]
fn what_was_not_modelled_is_not_told() {
    let (bench, shared) = (bench(), Shared::without_caches("cloud"));
    let (text, file) = (shared.text(), shared.file().display().to_string());
    assert!(text.contains("no caches were modelled: misses and stalls are not observed"), "{text}");
    let tick = text.lines().find(|line| line.starts_with("hrtimer_interrupt")).expect("the region");
    assert_eq!(tick.matches("not observed").count(), 3, "{tick}");
    let lineup = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
        command.current_dir(bench.folder.path()).env("XDG_CACHE_HOME", bench.folder.path().join("cache"));
        command.args(arguments).output().expect("lineup runs")
    };
    let refused = lineup(&["trace", "report", &file]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("was recorded with --no-caches"));
    let explained = lineup(&["explain", &file, "--region", "hrtimer_interrupt"]);
    assert!(explained.status.success());
    let explained = String::from_utf8_lossy(&explained.stdout);
    assert!(explained.contains("not where variables are; record with --debug"), "{explained}");
}

#[test]
fn what_goes_with_caches_does_not_go_without() {
    let bench = bench();
    let image = bench.copy(&kernel("cloud"));
    let refused = |more: &[&str]| {
        bench.refused(&image, &[&["--region", "timer", "--no-caches", "--out", "x.rec"], more].concat())
    };
    for with in [&["--cache", "l1d=32K,8,64"][..], &["--latency", "10,100"], &["--stream"]] {
        assert!(refused(with).contains("cannot be used with"), "{}", refused(with));
    }
    assert!(refused(&["--intervene", "invalidated"]).contains("cannot be used with"));
    assert!(refused(&["--region", "kernel"]).contains("--no-caches does not watch"));
}
