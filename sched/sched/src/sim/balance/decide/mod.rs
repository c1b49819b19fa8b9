//! Decides whether a domain is out of balance, from which group to pull, and how much. Pure integer
//! arithmetic on counts; its widths and truncations are the subject of the study.

use crate::scenario::FULL_POWER;
use crate::sim::arithmetic::mul_div;
use crate::sim::why::{Cause, Steps};

/// The state of the CPU that balances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::sim) enum Occupied {
    Busy,
    Idle,
    NewlyIdle,
}

/// Counts of one group of a domain.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(super) struct GroupCount {
    /// Sum of the loads that balancing sees.
    pub(super) load: u64,
    /// Sum of the present loads.
    pub(super) weight: u64,
    pub(super) tasks: u64,
    pub(super) idle_cpus: u64,
    pub(super) cpus: u64,
    pub(super) power: u64,
    pub(super) greatest_load: u64,
    pub(super) least_load: u64,
    pub(super) most_tasks: u64,
}

/// The settings of a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) occupied: Occupied,
    pub(super) imbalance_percent: u64,
    /// Extra bits of the weights.
    pub(super) bits: u8,
    /// Whether the groups' CPUs share one core, so that a group of little power still has room for a task.
    pub(super) threads: bool,
    pub(super) prefer_sibling: bool,
    /// The balancing CPU's own load per task, for when its group has none.
    pub(super) own_load_per_task: u64,
}

/// Pull from this group, this much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pull {
    pub(super) busiest: usize,
    pub(super) imbalance: u64,
}

/// A group's count with the values derived from it.
#[derive(Clone, Copy)]
struct Group {
    count: GroupCount,
    average: u64,
    capacity: u64,
    imbalanced: bool,
}

impl Group {
    fn new(count: GroupCount, rules: &Rules) -> Self {
        let average = count.load * FULL_POWER / count.power;
        let load_per_task = count.weight.checked_div(count.tasks).unwrap_or(0);
        let spread = count.greatest_load - count.least_load;
        let capacity = (count.power + FULL_POWER / 2) / FULL_POWER;
        Self {
            count,
            average,
            capacity: if rules.threads { capacity.max(1) } else { capacity },
            imbalanced: spread >= load_per_task && count.most_tasks > 1,
        }
    }

    fn has_room(&self) -> bool {
        self.capacity > self.count.tasks
    }

    fn load_per_task(&self) -> u64 {
        self.count.weight.checked_div(self.count.tasks).unwrap_or(0)
    }

    /// A load of this group's CPUs against whole ones.
    fn by_power(&self, load: u64) -> u64 {
        load * FULL_POWER / self.count.power
    }
}

/// Judges a domain whose groups are `counts`, for a CPU in the group at `local`.
pub(super) fn decide(
    counts: &[GroupCount],
    local: usize,
    rules: &Rules,
    steps: &mut Steps,
) -> Result<Pull, Cause> {
    let this = Group::new(counts[local], rules);
    let (load, power) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.load, sum.1 + count.power));
    let (at, busiest) = find_busiest(counts, local, &this, rules).ok_or(Cause::NoBusiest)?;
    let average = FULL_POWER * load / power;
    let must = busiest.imbalanced
        || (rules.occupied == Occupied::NewlyIdle && this.has_room() && !busiest.has_room());
    if !must {
        if this.average >= busiest.average || this.average >= average {
            let truncated = u128::from(this.count.load) * u128::from(power)
                < u128::from(load) * u128::from(this.count.power);
            steps.average_truncated += u64::from(truncated);
            return Err(if truncated { Cause::AverageTruncated } else { Cause::BelowAverage });
        }
        tolerable(&this, &busiest, rules)?;
    }
    let imbalance = imbalance(&this, &busiest, average, rules, steps);
    Ok(Pull { busiest: at, imbalance })
}

/// The other group with the strictly greatest average among those over capacity or imbalanced.
fn find_busiest(counts: &[GroupCount], local: usize, this: &Group, rules: &Rules) -> Option<(usize, Group)> {
    let mut found: Option<(usize, Group)> = None;
    for (at, count) in counts.iter().enumerate().filter(|(at, _)| *at != local) {
        let mut group = Group::new(*count, rules);
        if rules.prefer_sibling && this.has_room() {
            group.capacity = group.capacity.min(1);
        }
        let eligible = group.count.tasks > group.capacity || group.imbalanced;
        if eligible && group.average > found.as_ref().map_or(0, |(_, busiest)| busiest.average) {
            found = Some((at, group));
        }
    }
    found
}

fn tolerable(this: &Group, busiest: &Group, rules: &Rules) -> Result<(), Cause> {
    if rules.occupied == Occupied::Idle {
        let as_idle = this.count.idle_cpus <= busiest.count.idle_cpus + 1;
        return if as_idle && busiest.count.tasks <= busiest.count.cpus {
            Err(Cause::IdleRule)
        } else {
            Ok(())
        };
    }
    let within = 100 * busiest.average <= rules.imbalance_percent * this.average;
    if within { Err(Cause::WithinPercent) } else { Ok(()) }
}

/// The amount of load to move.
fn imbalance(this: &Group, busiest: &Group, average: u64, rules: &Rules, steps: &mut Steps) -> u64 {
    let mut per_task = busiest.load_per_task();
    steps.load_per_task_zero += u64::from(per_task == 0 && busiest.count.weight > 0);
    if busiest.imbalanced {
        per_task = per_task.min(average);
    }
    if busiest.average < average {
        return small_imbalance(this, busiest, per_task, 0, rules);
    }
    let above_average = busiest.average - average;
    let above_capacity = if busiest.imbalanced {
        u64::MAX
    } else {
        let excess = (busiest.count.tasks - busiest.capacity) << (10 + rules.bits);
        excess * FULL_POWER / busiest.count.power
    };
    let pull = above_average.min(above_capacity);
    // The local group may be above the average when a pull is forced; the difference then wraps, and the
    // other term decides.
    let room = average.wrapping_sub(this.average);
    let from = pull.saturating_mul(busiest.count.power);
    let to = if this.average > average { u64::MAX } else { room * this.count.power };
    let imbalance = from.min(to) / FULL_POWER;
    steps.imbalance_zero += u64::from(imbalance == 0 && rational_excess(this, busiest));
    if imbalance < per_task { small_imbalance(this, busiest, per_task, imbalance, rules) } else { imbalance }
}

/// Whether the busiest group's load per power truly exceeds this one's.
fn rational_excess(this: &Group, busiest: &Group) -> bool {
    let theirs = u128::from(busiest.count.load) * u128::from(this.count.power);
    theirs > u128::from(this.count.load) * u128::from(busiest.count.power)
}

/// The rule for imbalances of less than a task: move one if that does not overshoot, or if more power is used.
fn small_imbalance(this: &Group, busiest: &Group, per_task: u64, imbalance: u64, rules: &Rules) -> u64 {
    let (this_per_task, factor) = if this.count.tasks > 0 {
        let this_per_task = this.load_per_task();
        (this_per_task, if per_task > this_per_task { 1 } else { 2 })
    } else {
        (rules.own_load_per_task, 2)
    };
    let scaled = busiest.by_power(per_task);
    if i128::from(busiest.average) - i128::from(this.average) + i128::from(scaled)
        >= i128::from(scaled) * factor
    {
        return per_task;
    }
    let (theirs, ours) = (busiest.count.power, this.count.power);
    let now = (theirs * per_task.min(busiest.average) + ours * this_per_task.min(this.average)) / FULL_POWER;
    let mut then = 0;
    if busiest.average > scaled {
        then += theirs * per_task.min(busiest.average - scaled);
    }
    let moved = if busiest.average.saturating_mul(theirs) < per_task * FULL_POWER {
        mul_div(busiest.average, theirs, ours)
    } else {
        this.by_power(per_task)
    };
    then += ours * this_per_task.min(this.average + moved);
    if then / FULL_POWER > now { per_task } else { imbalance }
}

#[cfg(test)]
mod tests;
