//! Analysis of calls made up here, whose answers are known.

use crate::synthetic_calls;
use crate::synthetic_calls::{OUTER, Recorded, SCHEDULE, SPANS, WAKE, symbols};
use lineup_model::access::CallEnd;
use lineup_model::region::RegionId;
use lineup_recording::{Arm, MeasuredCall, read_all};
use lineup_tail::distribution::Statistic;
use lineup_tail::second::Class;
use lineup_tail::{Metric, Run, analyse};

fn run(recorded: &Recorded) -> Run {
    Run::new("made", recorded.recording(), symbols())
}

/// Calls whose cycles are a fixed number of instructions and ten times as many stall cycles as missed lines.
fn steady(count: u64) -> Recorded {
    let mut recorded = Recorded::default();
    for number in 0..count {
        recorded.call(OUTER, 1000, (number * 7 % 50) * 10);
    }
    recorded
}

#[test]
fn where_only_stalls_vary_cycles_follow_them_and_not_the_instructions() {
    let analysis = analyse(&[run(&steady(200))]);
    let region = &analysis.regions[0].runs[0];
    let stall = region.correlations.iter().find(|found| found.with == Metric::CodeStallCycles).unwrap();
    assert!((stall.pearson.value - 1.0).abs() < 1e-9 && stall.pearson.low > 0.999, "{stall:?}");
    assert!((stall.spearman.value - 1.0).abs() < 1e-9);
    assert!(!region.correlations.iter().any(|found| found.with == Metric::Instructions));
    let cycles = region.distribution(Metric::Cycles).unwrap();
    assert_eq!((cycles.min, cycles.median, cycles.max, cycles.calls), (1000.0, 1245.0, 1490.0, 200));
    assert_eq!(region.distribution(Metric::Instructions).unwrap().spread(), Some(0.0));
    assert_eq!(region.second_tail.as_ref().unwrap().tail_calls, 0);
}

#[test]
fn calls_that_did_not_return_are_counted_but_in_no_distribution() {
    let mut recorded = steady(30);
    recorded.calls[3].end = CallEnd::Abandoned;
    recorded.calls[4].end = CallEnd::Unfinished;
    let region = &analyse(&[run(&recorded)]).regions[0].runs[0];
    assert_eq!((region.calls, region.abandoned, region.unfinished), (28, 1, 1));
    assert_eq!(region.distribution(Metric::Cycles).unwrap().calls, 28);
}

/// Every tenth call wakes a task and executes 900 instructions more.
fn with_tail() -> Recorded {
    let mut recorded = Recorded::default();
    for number in 0..200u64 {
        if number % 10 == 3 {
            recorded.nested(OUTER, 1900 + number % 4, 300, &[(WAKE, 900, 200)]);
            recorded.keep(&["timer_entry", "try_to_wake_up", "try_to_wake_up"]);
        } else {
            recorded.nested(OUTER, 1000 + number % 4, number * 7 % 50, &[]);
            recorded.keep(&["timer_entry"]);
        }
    }
    recorded
}

#[test]
fn a_planted_second_tail_is_found_with_what_ran_there() {
    let analysis = analyse(&[run(&with_tail())]);
    let tail = analysis.regions[0].runs[0].second_tail.as_ref().unwrap();
    assert_eq!((tail.tail_calls, tail.usual_calls), (20, 180));
    assert_eq!((tail.kept_tail_calls, tail.kept_usual_calls), (20, 180));
    let instructions = tail.means.iter().find(|means| means.metric == Metric::Instructions).unwrap();
    assert!((instructions.tail - instructions.usual - 900.0).abs() < 1.0, "{instructions:?}");
    let inner = &tail.regions[0];
    assert_eq!(
        (inner.region.as_str(), inner.calls_per_usual_call, inner.calls_per_tail_call),
        ("wake", 0.0, 1.0)
    );
    assert_eq!((inner.instructions_per_tail_call, inner.cycles_per_tail_call), (900.0, 1100.0));
    assert_eq!(tail.functions.len(), 1);
    let function = &tail.functions[0];
    assert_eq!(
        (function.function.as_str(), function.tail_calls, function.usual_calls),
        ("try_to_wake_up", 20, 0)
    );
    assert_eq!((function.accesses_per_tail_call, tail.excess_accesses_per_call), (2.0, Some(2.0)));
    let classes: Vec<_> =
        tail.classes.iter().map(|found| (found.class, found.tail_calls, found.usual_calls)).collect();
    assert_eq!(classes, [(Class::WakeUp, 20, 0)]);
    assert_eq!(tail.classes[0].functions, ["try_to_wake_up"]);
    assert_eq!(tail.unclassified_calls, 0);
}

#[test]
fn what_no_known_function_explains_stays_unclassified() {
    let mut recorded = with_tail();
    recorded.kept.iter_mut().for_each(|kept| kept.functions.retain(|function| *function == "timer_entry"));
    let tail = analyse(&[run(&recorded)]).regions[0].runs[0].second_tail.clone().unwrap();
    assert_eq!((tail.classes.len(), tail.unclassified_calls), (0, 20));
}

#[test]
fn a_tail_whose_calls_were_not_kept_says_nothing_of_what_ran() {
    let mut recorded = with_tail();
    recorded.kept.clear();
    let tail = analyse(&[run(&recorded)]).regions[0].runs[0].second_tail.clone().unwrap();
    assert_eq!((tail.tail_calls, tail.kept_tail_calls, tail.excess_accesses_per_call), (20, 0, None));
    assert!(tail.functions.is_empty() && tail.classes.is_empty());
}

#[test]
fn spinning_is_contention_without_any_kept_call() {
    let mut recorded = steady(100);
    for call in recorded.calls.iter_mut().step_by(10) {
        call.own.instructions += 2000;
        call.own.spin_instructions = 1900;
    }
    let tail = analyse(&[run(&recorded)]).regions[0].runs[0].second_tail.clone().unwrap();
    assert_eq!(tail.classes.len(), 1);
    let found = &tail.classes[0];
    assert_eq!((found.class, found.tail_calls, found.usual_calls), (Class::Contention, 10, 0));
    assert_eq!((found.spin_instructions_per_tail_call, found.functions.len()), (1900.0, 0));
    assert_eq!(found.excess_instructions_per_call, 2000.0);
}

#[test]
fn arms_differ_by_what_was_planted() {
    let mut recorded = steady(300);
    for (number, call) in recorded.calls.iter_mut().enumerate() {
        call.arm = Arm::ALL[number % 3];
        match call.arm {
            Arm::Untouched => {}
            Arm::InvalidatedCode => call.own.code_stall_cycles += 700,
            Arm::PrefetchedCode => call.own.code_stall_cycles = 0,
        }
    }
    let region = analyse(&[run(&recorded)]).regions[0].runs[0].clone();
    assert_eq!(region.arms.iter().map(|arm| arm.arm).collect::<Vec<_>>(), Arm::ALL);
    let mean = |to: Arm| {
        let arms = region.between_arms.iter().find(|arms| arms.to == to).unwrap();
        let is_mean_of_cycles = |found: &&_| -> bool {
            let found: &lineup_tail::distribution::Difference = found;
            found.metric == Metric::Cycles && found.statistic == Statistic::Mean
        };
        arms.differences.iter().find(is_mean_of_cycles).unwrap().difference
    };
    let (raised, lowered) = (mean(Arm::InvalidatedCode), mean(Arm::PrefetchedCode));
    assert!(raised.low < 700.0 && 700.0 < raised.high && raised.low > 600.0, "{raised:?}");
    assert!(lowered.high < 0.0, "{lowered:?}");
    assert_eq!(region.correlations[0].calls, 100);
}

#[test]
fn inner_calls_have_the_arm_of_the_call_around_them_but_not_of_one_that_was_switched_away() {
    let mut recorded = Recorded::default();
    recorded.nested(OUTER, 500, 0, &[(WAKE, 100, 0)]);
    recorded.calls[0].arm = Arm::InvalidatedCode;
    // A task is away from 1000 to 9000; another task's wake-up runs meanwhile.
    let away = MeasuredCall {
        begun_at: 1000,
        ended_at: 9000,
        switches: 1,
        arm: Arm::PrefetchedCode,
        ..synthetic_calls::call(SCHEDULE, 400, 0)
    };
    let other = MeasuredCall { begun_at: 3000, ended_at: 3100, ..synthetic_calls::call(WAKE, 100, 0) };
    recorded.calls.extend([away, other]);
    let run = run(&recorded);
    let arms: Vec<Arm> = run.calls(RegionId(WAKE)).map(|(_, measured)| measured.arm).collect();
    assert_eq!(arms, [Arm::InvalidatedCode, Arm::Untouched]);
}

#[test]
fn every_new_maximum_is_listed_with_what_ran_inside() {
    let mut recorded = Recorded::default();
    recorded.nested(OUTER, 100, 0, &[]);
    recorded.nested(OUTER, 90, 0, &[]);
    recorded.nested(OUTER, 500, 400, &[(WAKE, 300, 250), (WAKE, 50, 0)]);
    recorded.nested(OUTER, 500, 400, &[]);
    let region = analyse(&[run(&recorded)]).regions[0].runs[0].clone();
    let marks: Vec<_> =
        region.high_water.iter().map(|mark| (mark.number, mark.cost.cycles, mark.inner.len())).collect();
    assert_eq!(marks, [(1, 100, 0), (2, 900, 2)]);
    let mark = &region.high_water[1];
    assert_eq!(mark.from.text(), "timer_entry+0x10");
    let inner: Vec<_> = mark
        .inner
        .iter()
        .map(|i| (i.region.as_str(), i.depth, i.after_instructions, i.cost.cycles))
        .collect();
    assert_eq!(inner, [("wake", 1, 10, 550), ("wake", 1, 310, 50)]);
}

#[test]
fn the_longest_spans_are_named_by_where_they_begin_and_end() {
    let mut recorded = Recorded::default();
    recorded.nested(OUTER, 500, 0, &[]);
    let whole = recorded.calls[0];
    recorded.calls.push(MeasuredCall {
        begun_at: whole.begun_at - 5,
        ended_at: whole.ended_at + 5,
        from_pc: synthetic_calls::address("timer_entry") + 4,
        to_pc: 0x40_0000,
        ..synthetic_calls::call(SPANS, 510, 30)
    });
    recorded.calls.push(MeasuredCall {
        begun_at: 5000,
        ended_at: 5001,
        ..synthetic_calls::call(SPANS, 1, 0)
    });
    let analysis = analyse(&[run(&recorded)]);
    let region = analysis.regions.iter().find(|region| region.name == "irqs-off").unwrap();
    assert!(region.is_span);
    let spans = region.runs[0].spans.as_ref().unwrap();
    let longest = &spans.longest[0];
    assert_eq!((longest.cost.cycles, longest.from.text().as_str()), (540, "timer_entry+0x4"));
    assert_eq!(
        (longest.to.function_text().as_str(), &longest.inside[..]),
        ("user mode", &["outer".to_owned()][..])
    );
    assert_eq!((spans.between[0].spans, spans.between[0].max_cycles), (1, 540));
}

#[test]
fn other_caches_are_compared_with_the_same_work() {
    let plain = steady(60);
    let mut slow = steady(60);
    slow.caches = vec!["l1i=32K,8,64".into()];
    slow.calls.iter_mut().for_each(|call| call.own.code_stall_cycles *= 10);
    let mut idle = steady(60);
    idle.instructions = 7;
    let runs = [("idle", &idle), ("busy", &plain), ("nol2", &slow)];
    let runs = runs.map(|(label, recorded)| Run::new(label, recorded.recording(), symbols()));
    let analysis = analyse(&runs);
    let pairs: Vec<_> = analysis.regions[0].between_runs.iter().map(|pair| (pair.from, pair.to)).collect();
    assert_eq!(pairs, [(0, 1), (1, 2)]);
}

#[test]
fn a_truncated_recording_is_analysed_up_to_its_last_whole_record_and_says_so() {
    let recorded = steady(5000);
    let bytes = recorded.bytes();
    let cut = read_all(&bytes[..bytes.len() * 2 / 3]).unwrap();
    let run = Run::new("cut", cut, symbols());
    assert!(run.facts.damage.as_ref().is_some_and(|damage| damage.contains("good bytes")), "{:?}", run.facts);
    assert_eq!((run.facts.is_complete, run.facts.instructions), (false, None));
    let calls = analyse(&[run]).regions[0].runs[0].calls;
    assert!((100..5000).contains(&calls), "{calls}");
}

#[test]
fn nothing_of_any_recording_leads_to_a_panic() {
    let mut recorded = Recorded::default();
    let strange = [0, 1, u64::MAX, u64::MAX / 2];
    for (number, begun_at) in strange.into_iter().enumerate() {
        for ended_at in strange {
            let call = synthetic_calls::call(number as u16 * 3, u64::MAX, u64::MAX);
            recorded.calls.push(MeasuredCall { begun_at, ended_at, switches: number as u32, ..call });
        }
    }
    let run = run(&recorded);
    for position in 0..run.measured.len() {
        run.inside(position);
    }
    analyse(&[run]);
    assert!(analyse(&[]).regions.is_empty());
}
