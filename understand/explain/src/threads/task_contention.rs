//! Contention between the tasks of a kernel.

use super::access_log::Use;
use super::process::{Process, waits_of};
use super::report::{TaskBetween, TaskMatrix, Waits};
use super::tasks::{Tasks, Whom};
use std::collections::{BTreeMap, BTreeSet};

/// Contention between tasks: the tasks with most waits and caused waits first; the waits by causing and waiting task,
/// by their places in that list; and the places by the tasks' numbers. Empty if the recording has no tasks.
pub(super) fn between_tasks(
    processes: &[Process],
    uses: &[Use],
    tasks: &Tasks,
) -> (Vec<TaskBetween>, Vec<TaskMatrix>, BTreeMap<u32, usize>) {
    let whom = |tag: u32| uses.get(tag as usize).and_then(|used| used.whom);
    let mut between: BTreeMap<Whom, (TaskBetween, BTreeSet<u32>)> = BTreeMap::new();
    for process in processes {
        for (cpu, accesses, tag) in process.accesses_by_tag() {
            let Some(whom) = whom(tag) else { continue };
            let (task, cpus) =
                between.entry(whom).or_insert_with(|| (tasks.without_waits(whom), BTreeSet::new()));
            task.accesses_to_shared_lines += accesses;
            cpus.insert(cpu);
        }
    }
    let mut waits: BTreeMap<(Whom, Whom), Waits> = BTreeMap::new();
    for (pair, counts) in processes.iter().flat_map(|process| &process.outcomes.recorded.pairs) {
        let (Some(taken_by), Some(needed_by)) = (whom(pair.writer_tag), whom(pair.other_tag)) else {
            continue;
        };
        let known = waits.entry((taken_by, needed_by)).or_default();
        *known = known.plus(waits_of(counts));
    }
    for ((taken_by, needed_by), waits) in &waits {
        if let Some((task, _)) = between.get_mut(taken_by) {
            task.took = task.took.plus(*waits);
        }
        if let Some((task, _)) = between.get_mut(needed_by) {
            task.needed = task.needed.plus(*waits);
        }
    }
    let mut all: Vec<(Whom, TaskBetween)> = between
        .into_iter()
        .map(|(whom, (task, cpus))| (whom, TaskBetween { cpus: cpus.into_iter().collect(), ..task }))
        .collect();
    all.sort_by_key(|(whom, task)| (std::cmp::Reverse(task.took.all() + task.needed.all()), *whom));
    let places: BTreeMap<Whom, usize> =
        all.iter().enumerate().map(|(place, (whom, _))| (*whom, place)).collect();
    let row = |((taken_by, needed_by), waits): ((Whom, Whom), Waits)| {
        Some(TaskMatrix { taken_by: *places.get(&taken_by)?, needed_by: *places.get(&needed_by)?, waits })
    };
    let mut matrix: Vec<TaskMatrix> = waits.into_iter().filter_map(row).collect();
    matrix.sort_by_key(|row| (std::cmp::Reverse(row.waits.all()), row.taken_by, row.needed_by));
    let number = |(whom, place): (&Whom, &usize)| match whom {
        Whom::Task(number) => Some((*number, *place)),
        Whom::Interrupts(_) | Whom::First(_) => None,
    };
    let numbers = places.iter().filter_map(number).collect();
    (all.into_iter().map(|(_, task)| task).collect(), matrix, numbers)
}
