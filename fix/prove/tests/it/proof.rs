//! Proofs of programs whose behaviour is known.

use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use lineup_prove::effects::{Content, Effects, FileKind, FileLeft, RepeatedEffects};
use lineup_prove::footprint::{LineCounts, RegionFootprint};
use lineup_prove::output::Output;
use lineup_prove::run::Ending;
use lineup_prove::{
    Conclusion, Conduct, ConductEffects, NotTimed, Proof, ProofPlan, ProveError, Proven, Recorded,
    RegionCalls, RunResult, Slot, Variant, prove,
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
        prove(&recorded(lines.0), &recorded(lines.1), &mut runner, plan)
    }
}

fn region(lines: u64) -> RegionFootprint {
    let data = LineSize::ALL.map(|line| LineCounts::from_calls(line, [lines; 8])).to_vec();
    RegionFootprint { id: RegionId(0), region: "hot".into(), weight: 1.0, data, code: Vec::new() }
}

fn recorded(lines: u64) -> Recorded {
    let calls = vec![RegionCalls { id: RegionId(0), region: "hot".into(), made: Some(100), recorded: 8 }];
    Recorded { footprints: vec![region(lines)], conduct: Conduct::quiet(calls) }
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
    assert_eq!(
        proof.value().conclusion(),
        "fewer lines (−1.00 per call), no end-to-end gain (within 1 %), of this one link"
    );
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
    let ratio = proof.value().time.as_ref().unwrap().estimate.ratio;
    let expected =
        format!("fewer lines (−1.00 per call), {:.2} % more time, of this one link", 100.0 * (ratio - 1.0));
    assert_eq!(proof.value().conclusion(), expected);
}

#[test]
fn the_evidence_counts_every_run() {
    let plan = ProofPlan { max_blocks: 3, warm_up: 5, ..patient() };
    let proof = Simulated::new(0.0, same).prove(&plan, (3, 3)).unwrap();
    assert_eq!(proof.evidence().blocks, 3);
    assert_eq!(proof.evidence().runs, 2 * 5 + 3 * 4, "warm-up of both, and four runs a block");
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

/// A server that is driven takes long to start and to end for a moment of its client's.
#[test]
fn what_runs_take_besides_what_is_measured_counts_against_the_limit() {
    let driven = |slot: &Slot| RunResult { around_ns: 1_000_000_000, ..same(slot) };
    let stop = WidthStop { target_width: 0.0, ..patient().stop };
    let plan = ProofPlan { max_time_ns: 40_000_000_000, max_blocks: 100, stop, ..patient() };
    let proof = Simulated::new(0.0, driven).prove(&plan, (3, 3)).unwrap();
    let alone = Simulated::new(0.0, same).prove(&plan, (3, 3)).unwrap();
    let (driven, alone) = (proof.evidence().blocks, alone.evidence().blocks);
    assert!(driven <= 10 && driven < alone, "{driven}, {alone}");
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
        ending: if slot.variant == Variant::AFTER { Ending::Killed(11) } else { Ending::Exited(0) },
        ..same(slot)
    };
    let error = Simulated::new(0.0, crash).prove(&patient(), (3, 2)).unwrap_err();
    assert!(error.to_string().contains("second variant was ended by SIGSEGV"), "{error}");
    let error = prove(&recorded(3), &recorded(2), &mut |_: &Slot| Err("no such file".into()), &patient())
        .unwrap_err();
    assert!(error.to_string().contains("first variant could not be run: no such file"), "{error}");
}

/// Proves the recording with a runner whose runs are all alike.
fn prove_recorded(before: &Recorded, after: &Recorded, input: &[u8]) -> Result<Proven<Proof>, ProveError> {
    let run = |slot: &Slot| Ok(RunResult { input: Some(Output::of(input)), ..same(slot) });
    prove(before, after, &mut { run }, &ProofPlan { is_emulated: true, ..patient() })
}

#[test]
fn other_work_is_not_compared() {
    let (before, after) = (recorded(3), recorded(2));
    assert!(prove_recorded(&before, &after, b"").is_ok());
    let with = |change: fn(&mut Conduct)| {
        let mut other = after.clone();
        change(&mut other.conduct);
        prove_recorded(&before, &other, b"").unwrap_err()
    };
    let error = with(|conduct| conduct.input = Output::of(b"other"));
    assert!(error.is_other_work() && error.to_string().contains("0 bytes against 5"), "{error}");
    let error = with(|conduct| conduct.calls[0].made = Some(99));
    assert!(
        error.is_other_work() && error.to_string().contains("made: 100 before the change, 99 after"),
        "{error}"
    );
    let error = with(|conduct| conduct.calls[0].recorded = 7);
    assert!(
        error.is_other_work() && error.to_string().contains("recorded: 8 before the change, 7 after"),
        "{error}"
    );
    let error = with(|conduct| conduct.calls[0].made = None);
    assert!(error.is_other_work() && error.to_string().contains("second variant"), "{error}");
}

#[test]
fn what_recorded_runs_did_differently_is_a_difference_of_the_change() {
    let (before, after) = (recorded(3), recorded(2));
    for change in [
        (|conduct| conduct.stdout = Output::of(b"x")) as fn(&mut Conduct),
        |conduct| conduct.stderr = Output::of(b"x"),
        |conduct| conduct.ending = Ending::Exited(1),
    ] {
        let mut other = after.clone();
        change(&mut other.conduct);
        let error = prove_recorded(&before, &other, b"").unwrap_err();
        assert!(matches!(error, ProveError::Differs { .. }) && !error.is_other_work(), "{error}");
        assert!(error.to_string().contains("while they were recorded"), "{error}");
    }
}

#[test]
fn a_timed_run_must_read_what_was_recorded() {
    let error = prove_recorded(&recorded(3), &recorded(2), b"something").unwrap_err();
    assert!(matches!(error, ProveError::TimedInput { variant: Variant::BEFORE, .. }), "{error}");
    assert!(error.is_other_work());
}

#[test]
fn programs_that_were_stopped_are_not_timed_unless_a_client_was_done() {
    let stopped = |_: &Slot| RunResult { ending: Ending::Stopped, ..RunResult::finished(0, b"", b"", 1) };
    let proof = Simulated::new(0.0, stopped).prove(&patient(), (3, 2)).unwrap();
    assert_eq!(proof.value().time, Err(NotTimed::Stopped));
    let driven = |slot: &Slot| RunResult { client_stdout: Some(Output::of(b"done")), ..same(slot) };
    assert!(Simulated::new(0.0, driven).prove(&patient(), (3, 2)).unwrap().value().time.is_ok());
    let answers = |slot: &Slot| RunResult {
        client_stdout: Some(Output::of(&[slot.variant.0 as u8])),
        ..RunResult::finished(0, b"", b"", 0)
    };
    let error = Simulated::new(0.0, answers).prove(&patient(), (3, 2)).unwrap_err();
    assert!(error.to_string().contains("the client's output"), "{error}");
}

#[test]
fn clients_that_were_answered_otherwise_while_recorded_prove_nothing() {
    let with = |lines, answer: &[u8]| {
        let Recorded { footprints, conduct } = recorded(lines);
        Recorded { footprints, conduct: Conduct { client_stdout: Some(Output::of(answer)), ..conduct } }
    };
    let mut runner = |slot: &Slot| Ok(same(slot));
    let plan = ProofPlan { is_emulated: true, ..patient() };
    let error = prove(&with(3, b"one"), &with(2, b"two"), &mut runner, &plan).unwrap_err();
    assert!(error.to_string().contains("the client's output"), "{error}");
    assert!(prove(&with(3, b"one"), &with(2, b"one"), &mut runner, &plan).is_ok());
}

/// Two observed runs of a program that leaves this file.
fn leaves(content: &[u8]) -> ConductEffects {
    let file = FileLeft {
        kind: FileKind::File,
        permissions: 0o644,
        content: Content::of(content),
        changed_by: ["write"].into(),
    };
    let effects = Effects { files: [("out.bin".to_owned(), file)].into(), ..Effects::default() };
    ConductEffects::Observed(RepeatedEffects { first: effects.clone(), others: vec![effects] })
}

#[test]
fn variants_that_print_the_same_but_leave_another_file_prove_nothing() {
    let with = |lines, effects| {
        let Recorded { footprints, conduct } = recorded(lines);
        Recorded { footprints, conduct: Conduct { effects, ..conduct } }
    };
    let prove_with = |before, after| {
        let mut runner = |slot: &Slot| Ok(same(slot));
        prove(&with(3, before), &with(2, after), &mut runner, &ProofPlan { is_emulated: true, ..patient() })
    };
    let error = prove_with(leaves(b"one"), leaves(b"two")).unwrap_err();
    assert!(matches!(error, ProveError::Effects { .. }), "{error}");
    assert!(
        error.to_string().contains("file out.bin (changed by write): offset 0: 6f 6e 65 against 74 77 6f"),
        "{error}"
    );
    let proof = prove_with(leaves(b"one"), leaves(b"one")).unwrap();
    let effects = proof.value().effects.as_ref().unwrap();
    assert_eq!(effects.compared(), ["1 file left behind"]);
    let proof = prove_with(leaves(b"one"), ConductEffects::NotObserved("not allowed".into())).unwrap();
    assert_eq!(proof.value().effects, Err("not allowed".into()));
}

/// A recording in which the region was called so often, and further recordings of the same program.
fn calls(made: u64, repeated: &[u64]) -> Recorded {
    let of =
        |made| vec![RegionCalls { id: RegionId(0), region: "hot".into(), made: Some(made), recorded: 8 }];
    let repeated_calls = repeated.iter().map(|made| of(*made)).collect();
    let conduct = Conduct { repeated_calls, ..Conduct::quiet(of(made)) };
    Recorded { footprints: vec![region(3)], conduct }
}

#[test]
fn calls_may_differ_by_as_much_as_those_of_the_unchanged_program_do() {
    let prove_with = |before: &Recorded, made_after| {
        let mut runner = |slot: &Slot| Ok(same(slot));
        prove(before, &calls(made_after, &[]), &mut runner, &ProofPlan { is_emulated: true, ..patient() })
    };
    let before = calls(63_034, &[63_020, 63_041]);
    let proof = prove_with(&before, 63_024).unwrap();
    assert_eq!(
        proof.value().calls_within,
        [
            "calls of hot made: 63034 before the change, 63024 after; 3 recordings of the unchanged program made 63020 to 63041"
        ]
    );
    let error = prove_with(&before, 62_900).unwrap_err();
    assert!(error.is_other_work());
    assert!(
        error.to_string().contains("3 recordings of the unchanged program made 63020 to 63041"),
        "{error}"
    );
    assert!(prove_with(&calls(100, &[]), 99).is_err(), "without further recordings counts are exact");
    assert!(prove_with(&calls(100, &[100, 100]), 99).is_err(), "and where these repeat them");
    assert!(prove_with(&calls(100, &[]), 100).unwrap().value().calls_within.is_empty());
}

#[test]
fn a_driven_program_whose_log_and_client_print_times_is_timed_once_its_effects_agree() {
    let driven = |lines| {
        let Recorded { footprints, conduct } = recorded(lines);
        let client_stdout = Some(Output::of(b"1,000 requests a second"));
        Recorded { footprints, conduct: Conduct { client_stdout, effects: leaves(b"same"), ..conduct } }
    };
    let plan = ProofPlan { max_blocks: 3, ..ProofPlan::default() };
    let prints = |ending: fn(&Slot) -> Ending| {
        let mut runner = |slot: &Slot| {
            let text = format!("started at {}", slot.number);
            let run = RunResult::finished(0, text.as_bytes(), b"", 1_000_000 + slot.number % 3);
            Ok(RunResult { ending: ending(slot), client_stdout: Some(Output::of(b"")), ..run })
        };
        prove(&driven(3), &driven(2), &mut runner, &plan)
    };
    let proof = prints(|_| Ending::Stopped).unwrap();
    assert!(proof.value().time.is_ok(), "{:?}", proof.value().time);
    assert!(proof.value().output_left_out.as_ref().is_some_and(|words| words.contains("standard output")));
    let worse =
        |slot: &Slot| if slot.variant == Variant::AFTER { Ending::Exited(3) } else { Ending::Stopped };
    assert!(matches!(prints(worse), Err(ProveError::Differs { .. })));
}
