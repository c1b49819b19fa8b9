//! What a proof says of programs whose behaviour is known.

use lineup_model::line::LineSize;
use lineup_prove::footprint::{LineCounts, RegionFootprint};
use lineup_prove::{
    Conclusion, NotTimed, Proof, ProofPlan, ProveError, Proven, RunResult, Slot, Variant, prove,
};
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_stats::synthetic::{Disturbance, SyntheticProgram};

/// A simulated pair of programs with a known effect and known outputs.
struct Simulated {
    program: SyntheticProgram,
    output: fn(&Slot) -> RunResult,
}

impl Simulated {
    fn new(effect: f64, output: fn(&Slot) -> RunResult) -> Self {
        Self { program: SyntheticProgram::new(effect, Disturbance::Plain, Seed(11)), output }
    }

    fn prove(&mut self, plan: &ProofPlan, lines: (u64, u64)) -> Result<Proven<Proof>, ProveError> {
        let mut runner = |slot: &Slot| {
            let seconds = self.program.run(slot.variant == Variant::AFTER);
            Ok(RunResult { wall_ns: (seconds * 1e9) as u64, ..(self.output)(slot) })
        };
        prove(&[region(lines.0)], &[region(lines.1)], &mut runner, plan)
    }
}

fn region(lines: u64) -> RegionFootprint {
    let data = LineSize::ALL.map(|line| LineCounts::from_calls(line, [lines; 8])).to_vec();
    RegionFootprint { region: "hot".into(), weight: 1.0, data, code: Vec::new() }
}

fn same(_: &Slot) -> RunResult {
    RunResult::finished(0, b"result 42\n", b"", 0)
}

fn patient() -> ProofPlan {
    ProofPlan { max_time_ns: u64::MAX, max_blocks: 200, ..ProofPlan::default() }
}

#[test]
fn fewer_lines_without_an_end_to_end_gain_is_said_so() {
    let proof = Simulated::new(0.0, same).prove(&patient(), (3, 2)).unwrap();
    assert_eq!(proof.value().time_conclusion(), Conclusion::NoEndToEndChange);
    assert_eq!(proof.value().conclusion(), "fewer lines (−1.00 per call), no end-to-end gain (within 1 %)");
}

#[test]
fn a_real_gain_is_found_with_an_interval_that_holds_the_truth() {
    let proof = Simulated::new(-0.05, same).prove(&patient(), (3, 2)).unwrap();
    let time = proof.value().time.as_ref().unwrap();
    assert_eq!(proof.value().time_conclusion(), Conclusion::LessTime);
    assert!(time.estimate.interval.contains(0.95));
    assert!(time.estimate.interval.width() <= 0.01);
    assert_eq!(time.runs.len() as u64, 4 * proof.evidence().blocks);
}

#[test]
fn a_loss_is_called_a_loss_even_with_fewer_lines() {
    let proof = Simulated::new(0.03, same).prove(&patient(), (3, 2)).unwrap();
    assert_eq!(proof.value().time_conclusion(), Conclusion::MoreTime);
}

#[test]
fn too_few_blocks_are_inconclusive_and_say_what_they_could_have_seen() {
    let plan = ProofPlan { max_blocks: 3, ..patient() };
    let proof = Simulated::new(0.0, same).prove(&plan, (3, 3)).unwrap();
    assert_eq!(proof.value().time_conclusion(), Conclusion::TimeInconclusive);
    let time = proof.value().time.as_ref().unwrap();
    assert!(time.judgement.smallest_detectable > 0.01);
    assert!(proof.value().conclusion().starts_with("as many lines as before, end-to-end time inconclusive"));
}

#[test]
fn the_time_limit_ends_the_comparison() {
    let plan =
        ProofPlan { max_time_ns: 1, stop: WidthStop { target_width: 0.0, ..patient().stop }, ..patient() };
    let proof = Simulated::new(0.0, same).prove(&plan, (3, 3)).unwrap();
    assert_eq!(proof.evidence().blocks, 3);
}

#[test]
fn an_output_that_does_not_repeat_leaves_the_footprints_only() {
    let changing = |slot: &Slot| RunResult::finished(0, slot.number.to_string().as_bytes(), b"", 0);
    let proof = Simulated::new(-0.05, changing).prove(&patient(), (3, 2)).unwrap();
    assert_eq!(proof.value().time_conclusion(), Conclusion::FootprintsOnly);
    assert_eq!(proof.value().footprints.len(), 3);
    assert!(proof.value().conclusion().contains("output not repeatable"));
}

#[test]
fn under_an_emulator_output_and_footprints_are_compared_but_no_time_is_claimed() {
    let plan = ProofPlan { is_emulated: true, ..patient() };
    let proof = Simulated::new(-0.05, same).prove(&plan, (3, 2)).unwrap();
    assert_eq!(proof.value().time, Err(NotTimed::Emulated));
    assert_eq!(
        proof.value().conclusion(),
        "fewer lines (−1.00 per call), time not claimed: runs under an emulator"
    );
    let prints = |slot: &Slot| RunResult::finished(0, &[b'a' + slot.variant.0 as u8], b"", 0);
    Simulated::new(0.0, prints).prove(&plan, (3, 2)).unwrap_err();
}

#[test]
fn an_output_that_changes_late_is_noticed_too() {
    let late = |slot: &Slot| RunResult::finished(0, if slot.number > 12 { b"b" } else { b"a" }, b"", 0);
    let proof = Simulated::new(0.0, late).prove(&patient(), (3, 2)).unwrap();
    assert_eq!(proof.value().time_conclusion(), Conclusion::FootprintsOnly);
}

#[test]
fn variants_that_print_or_exit_differently_prove_nothing() {
    let prints = |slot: &Slot| RunResult::finished(0, &[b'a' + slot.variant.0 as u8], b"", 0);
    let error = Simulated::new(0.0, prints).prove(&patient(), (3, 2)).unwrap_err();
    assert!(error.to_string().contains("standard output: first different byte at offset 0"), "{error}");
    let exits = |slot: &Slot| RunResult::finished(slot.variant.0 as i32, b"", b"", 0);
    let error = Simulated::new(0.0, exits).prove(&patient(), (3, 2)).unwrap_err();
    assert!(error.to_string().contains("exit status 0 against exit status 1"), "{error}");
}

#[test]
fn a_crash_and_a_failed_start_are_errors_that_name_the_variant() {
    let crash = |slot: &Slot| RunResult {
        ending: if slot.variant == Variant::AFTER {
            lineup_prove::run::Ending::Killed(11)
        } else {
            lineup_prove::run::Ending::Exited(0)
        },
        ..same(slot)
    };
    let error = Simulated::new(0.0, crash).prove(&patient(), (3, 2)).unwrap_err();
    assert!(error.to_string().contains("second variant was ended by signal 11"), "{error}");
    let error = prove(&[], &[], &mut |_: &Slot| Err("no such file".into()), &patient()).unwrap_err();
    assert!(error.to_string().contains("first variant could not be run: no such file"), "{error}");
}
