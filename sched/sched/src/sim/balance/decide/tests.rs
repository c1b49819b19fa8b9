//! Passes worked out by hand.

use super::*;

/// A group of like CPUs: each with this load and this number of tasks.
fn group(cpus: &[(u64, u64)], power: u64) -> GroupCount {
    GroupCount {
        load: cpus.iter().map(|cpu| cpu.0).sum(),
        weight: cpus.iter().map(|cpu| cpu.0).sum(),
        tasks: cpus.iter().map(|cpu| cpu.1).sum(),
        idle_cpus: cpus.iter().filter(|cpu| cpu.1 == 0).count() as u64,
        cpus: cpus.len() as u64,
        power,
        greatest_load: cpus.iter().map(|cpu| cpu.0).max().unwrap_or(0),
        least_load: cpus.iter().map(|cpu| cpu.0).min().unwrap_or(0),
        most_tasks: cpus.iter().map(|cpu| cpu.1).max().unwrap_or(0),
    }
}

fn rules(occupied: Occupied, bits: u8) -> Rules {
    Rules {
        occupied,
        imbalance_percent: 117,
        bits,
        threads: false,
        prefer_sibling: false,
        own_load_per_task: 0,
    }
}

fn judge(groups: &[GroupCount], rules: &Rules) -> (Result<Pull, Cause>, Steps) {
    let mut steps = Steps::default();
    (decide(groups, 0, rules, &mut steps), steps)
}

#[test]
fn an_idle_cpu_takes_what_lies_above_the_average() {
    let groups = [group(&[(0, 0)], 1024), group(&[(3072, 3)], 1024)];
    // Average 1536; the other CPU has 1536 above it and two tasks, 2048, above its capacity.
    let pull = Pull { busiest: 1, imbalance: 1536 };
    assert_eq!(judge(&groups, &rules(Occupied::NewlyIdle, 0)).0, Ok(pull));
}

#[test]
fn the_floor_makes_full_and_overfull_cores_alike_and_the_imbalance_vanishes() {
    // Eight cores of two threads, power 1178 each. Shares of 2: every busy CPU weighs the floor, 2, with one
    // task or with three. One CPU is idle.
    let cores = |unit: u64| {
        let mut cores = vec![group(&[(0, 0), (2 * unit, 3)], 1178)];
        cores.extend((0..7).map(|_| group(&[(2 * unit, 3), (2 * unit, 3)], 1178)));
        cores
    };
    // The average is 1024·30/9424 = 3.26, the busiest core's 1024·4/1178 = 3.48: both 3.
    let (decision, steps) = judge(&cores(1), &rules(Occupied::Idle, 0));
    assert_eq!(decision, Ok(Pull { busiest: 1, imbalance: 0 }));
    assert_eq!((steps.load_per_task_zero, steps.imbalance_zero), (1, 1));
    // Ten more bits: 3338 and 3560, 222 above; as that is less than one task's 682, one task is moved.
    let (decision, steps) = judge(&cores(1024), &rules(Occupied::Idle, 10));
    assert_eq!(decision, Ok(Pull { busiest: 1, imbalance: 682 }));
    assert_eq!(steps, Steps::default());
}

#[test]
fn truncated_averages_hide_a_difference() {
    // Four cores each. 14·1024/4712 = 3.04 here, 16·1024/4712 = 3.48 there.
    let this = group(&[(0, 0), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1)], 4712);
    let that = group(&[(2, 2), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1)], 4712);
    let (decision, steps) = judge(&[this, that], &rules(Occupied::Idle, 0));
    assert_eq!((decision, steps.average_truncated), (Err(Cause::AverageTruncated), 1));
}

#[test]
fn balanced_domains_are_left_alone_each_for_its_reason() {
    let one = |load, tasks| group(&[(load, tasks)], 1024);
    let cause = |groups: &[GroupCount], occupied| judge(groups, &rules(occupied, 0)).0;
    // One task per CPU is within capacity.
    assert_eq!(cause(&[one(0, 0), one(1024, 1)], Occupied::Idle), Err(Cause::NoBusiest));
    // This CPU carries more than the average.
    assert_eq!(cause(&[one(5000, 1), one(4000, 2)], Occupied::Busy), Err(Cause::BelowAverage));
    // 2048 there is less than 117 % of 1800 here.
    assert_eq!(cause(&[one(1800, 1), one(2048, 2)], Occupied::Busy), Err(Cause::WithinPercent));
    // Two tasks on two CPUs, one of them idle: no better here.
    let groups = [one(0, 0), group(&[(0, 0), (2048, 2)], 2048)];
    let mut spread = groups;
    // Unless the spread within that group alone says that it is out of balance.
    assert!(cause(&spread, Occupied::Idle).is_ok());
    spread[1].least_load = spread[1].greatest_load;
    spread[1].tasks = 2;
    spread[1].power = 1024;
    assert_eq!(cause(&spread, Occupied::Idle), Err(Cause::IdleRule));
}

#[test]
fn less_than_a_task_is_moved_as_one_task_if_that_does_not_overshoot() {
    // 2048 against 1024, average 1536: the excess is 512, less than the 1024 of a task. Moving one gives
    // 1024 against 2048: no better, but not worse, and 2048 − 1024 + 1024 ≥ 2·1024 allows it.
    let groups = [group(&[(1024, 1)], 1024), group(&[(2048, 2)], 1024)];
    assert_eq!(judge(&groups, &rules(Occupied::Busy, 0)).0, Ok(Pull { busiest: 1, imbalance: 1024 }));
    // 2048 against 1500: it would overshoot by more, and no power is gained.
    let groups = [group(&[(1500, 1)], 1024), group(&[(2048, 2)], 1024)];
    assert_eq!(judge(&groups, &rules(Occupied::Busy, 0)).0, Ok(Pull { busiest: 1, imbalance: 274 }));
}
