//! The statistics' verdicts on published figures: the kernel's sched_clock cache-line change of 2015, its load-weight
//! change of 2011 and its clockevents change of 2016.

use lineup_stats::modes;
use lineup_stats::paired::PairedBlocks;
use lineup_stats::published::{PrintedMean, ratio, runs_needed};
use lineup_stats::summary::Summary;
use lineup_stats::verdict::{Verdict, judge};

/// Calls of sched_clock in ten seconds, ten runs before and ten after, on three boards.
const MSM8960: ([f64; 10], [f64; 10]) = (
    [
        14528449.0, 14528925.0, 14524549.0, 14528164.0, 14524468.0, 14527198.0, 14523508.0, 14527894.0,
        14529609.0, 14523114.0,
    ],
    [
        19626366.0, 19623708.0, 19623282.0, 19625304.0, 19625151.0, 19624906.0, 19625383.0, 19625235.0,
        19624969.0, 19625209.0,
    ],
);
const MSM8974: ([f64; 10], [f64; 10]) = (
    [
        21289694.0, 21289072.0, 21289550.0, 21288892.0, 21288987.0, 21289140.0, 21289161.0, 21288911.0,
        21289204.0, 21288738.0,
    ],
    [
        21289357.0, 21384961.0, 22105925.0, 27384126.0, 22107737.0, 21368867.0, 22106065.0, 27384196.0,
        22107334.0, 21365426.0,
    ],
);
const MSM8660: ([f64; 10], [f64; 10]) = (
    [
        14099029.0, 14099227.0, 14098763.0, 14099042.0, 14099273.0, 14100377.0, 14100183.0, 14099220.0,
        14098853.0, 14099368.0,
    ],
    [
        20555901.0, 15510019.0, 15510371.0, 15509184.0, 15509068.0, 15510719.0, 15508899.0, 15509206.0,
        15509057.0, 15509178.0,
    ],
);

fn pile(values: &[f64]) -> PrintedMean {
    let summary = Summary::of(values).unwrap();
    PrintedMean::with_deviation(summary.mean, summary.deviation.unwrap(), values.len())
}

#[test]
fn the_first_board_gained_a_third_beyond_doubt() {
    let (before, after) = MSM8960;
    let estimate = ratio(pile(&before), pile(&after), 0.95).unwrap();
    assert!((Summary::of(&before).unwrap().mean / 1e6 - 14.53).abs() < 0.005);
    assert!((Summary::of(&after).unwrap().mean / 1e6 - 19.625).abs() < 0.005);
    assert!((estimate.ratio - 1.351).abs() < 0.001);
    assert_eq!(judge(&estimate, 0.01).verdict, Verdict::Changed);
    assert_eq!(modes::find(&after).unwrap().len(), 1);
}

#[test]
fn the_second_board_fell_into_three_speeds_and_its_mean_says_nothing() {
    let (before, after) = MSM8974;
    let counts: Vec<usize> = modes::find(&after).unwrap().iter().map(|group| group.count).collect();
    assert_eq!(counts, [4, 4, 2]);
    assert_eq!(modes::find(&before).unwrap().len(), 1);
    let estimate = ratio(pile(&before), pile(&after), 0.95).unwrap();
    assert_eq!(judge(&estimate, 0.01).verdict, Verdict::Inconclusive);
}

#[test]
fn the_third_board_has_two_speeds_after_one_of_them_seen_once() {
    let (before, after) = MSM8660;
    let groups = modes::find(&after).unwrap();
    assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [9, 1]);
    assert_eq!(modes::find(&before).unwrap().len(), 1);
    // Within the mode that nine runs are in, the gain is beyond doubt.
    let main: Vec<f64> = after.iter().copied().filter(|calls| *calls <= groups[0].high).collect();
    let estimate = ratio(pile(&before), pile(&main), 0.95).unwrap();
    assert!((estimate.ratio - 1.1).abs() < 0.001);
    assert_eq!(judge(&estimate, 0.01).verdict, Verdict::Changed);
}

#[test]
fn taken_in_order_as_pairs_the_boards_get_the_same_verdicts() {
    let verdict = |(before, after): ([f64; 10], [f64; 10])| {
        let pairs = PairedBlocks::from_means(before.to_vec(), after.to_vec()).unwrap();
        judge(&pairs.ratio(0.95).unwrap(), 0.01).verdict
    };
    assert_eq!(verdict(MSM8960), Verdict::Changed);
    assert_eq!(verdict(MSM8660), Verdict::Changed);
}

/// Counters of 200 runs each: mean and error in per cent.
const BASE: [(f64, f64); 4] =
    [(964_991_769.0, 0.05), (1_171_186_635.0, 0.08), (306_373_664.0, 0.28), (1.122405684, 0.05)];
const PATCHED: [(f64, f64); 4] =
    [(963_624_821.0, 0.04), (1_175_215_649.0, 0.08), (315_321_126.0, 0.28), (1.122238659, 0.06)];

fn load_weight(counter: usize) -> lineup_stats::paired::RatioEstimate {
    let printed = |(mean, error)| PrintedMean::with_percent(mean, error, 200);
    ratio(printed(BASE[counter]), printed(PATCHED[counter]), 0.95).unwrap()
}

#[test]
fn the_cycles_of_the_load_weight_change_rose_by_more_than_chance_but_less_than_the_margin() {
    let cycles = load_weight(1);
    // The printed means differ by 0.34 %, not by the 0.27 % of the text.
    assert!((100.0 * (cycles.ratio - 1.0) - 0.344).abs() < 0.001);
    assert!(100.0 * (cycles.interval.low - 1.0) > 0.11 && 100.0 * (cycles.interval.high - 1.0) < 0.57);
    assert!(cycles.p_value > 0.002 && cycles.p_value < 0.003);
    let judged = judge(&cycles, 0.01);
    assert_eq!((judged.verdict, judged.within_margin), (Verdict::Changed, true));
    // One of four counters: Holm's correction leaves it standing.
    let p_values: Vec<f64> = (0..4).map(|counter| load_weight(counter).p_value).collect();
    let adjusted = lineup_stats::holm::adjust(&p_values);
    assert!(adjusted[1] < 0.05 && adjusted[2] < 0.001);
}

#[test]
fn the_elapsed_time_of_the_load_weight_change_is_equivalent() {
    let elapsed = judge(&load_weight(3), 0.01);
    assert_eq!(elapsed.verdict, Verdict::Equivalent);
    assert!(elapsed.smallest_detectable < 0.003);
    let backend = load_weight(2);
    assert!((backend.ratio - 1.0292).abs() < 0.0001);
    assert_eq!(judge(&backend, 0.01).verdict, Verdict::Changed);
}

#[test]
fn the_clockevents_gain_needs_only_a_handful_of_runs_to_stand() {
    let (before, after) = ((8750.73, 1034.77), (6916.90, 782.63));
    let needed = runs_needed(after.0 / before.0, (before.1 / before.0, after.1 / after.0), 0.95);
    assert!((4.0..=6.0).contains(&needed), "{needed}");
    let printed = |(mean, deviation)| PrintedMean::with_deviation(mean, deviation, 10);
    let estimate = ratio(printed(before), printed(after), 0.95).unwrap();
    assert!((estimate.ratio - 0.790).abs() < 0.001);
    assert_eq!(judge(&estimate, 0.01).verdict, Verdict::Changed);
}
