//! The tasks that each CPU of a kernel worked for, with the times.

use super::report::{TaskBetween, Waits};
use lineup_recording::{KernelTask, Turn};
use std::collections::BTreeMap;

/// The work of a CPU.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Whom {
    /// For the task of a number.
    Task(u32),
    /// It ran a hardware interrupt, for nobody.
    Interrupts(u32),
    /// For the task that it ran before its first switch.
    First(u32),
}

/// A recording's facts about tasks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tasks {
    tasks: BTreeMap<u32, KernelTask>,
    /// By CPU, in order.
    turns: Vec<Turn>,
}

impl Tasks {
    /// Sorts the turns.
    pub(crate) fn new(tasks: impl IntoIterator<Item = KernelTask>, mut turns: Vec<Turn>) -> Tasks {
        turns.sort_unstable();
        Tasks { tasks: tasks.into_iter().map(|task| (task.number, task)).collect(), turns }
    }

    /// The task for which a CPU worked at a position; `None` if unknown.
    pub(super) fn at(&self, cpu: u32, at: u64) -> Option<Whom> {
        let after = self.turns.partition_point(|turn| (turn.cpu, turn.at) <= (cpu, at));
        let turn = self.turns.get(after.checked_sub(1)?).filter(|turn| turn.cpu == cpu)?;
        Some(match turn.task {
            _ if turn.in_interrupt => Whom::Interrupts(cpu),
            Some(task) => Whom::Task(task),
            None => Whom::First(cpu),
        })
    }

    fn name(&self, whom: Whom) -> String {
        match whom {
            Whom::Interrupts(cpu) => format!("interrupts of CPU {cpu}"),
            Whom::First(cpu) => format!("CPU {cpu} before its first switch of tasks"),
            Whom::Task(number) => self.tasks.get(&number).map_or_else(|| format!("task {number}"), name_of),
        }
    }

    /// A task without waits.
    pub(super) fn without_waits(&self, whom: Whom) -> TaskBetween {
        let task = match whom {
            Whom::Task(number) => self.tasks.get(&number),
            Whom::Interrupts(_) | Whom::First(_) => None,
        };
        TaskBetween {
            name: self.name(whom),
            pid: task.and_then(|task| task.pid),
            stack: task.map(|task| format!("{:#x}", task.stack)),
            cpus: Vec::new(),
            accesses_to_shared_lines: 0,
            took: Waits::default(),
            needed: Waits::default(),
        }
    }
}

/// The usual name of a task.
pub fn name_of(task: &KernelTask) -> String {
    match task.pid {
        Some(pid) => format!("{} ({pid})", task.name),
        None => format!("task at {:#x}", task.stack),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_tell_for_whom_a_cpu_works() {
        let turn = |cpu, at, task, in_interrupt| Turn { cpu, at, task, in_interrupt };
        let task = KernelTask { number: 4, stack: 0x8000, pid: Some(12), name: "dd".into() };
        let turns = vec![
            turn(1, 5, None, false),
            turn(0, 10, Some(4), false),
            turn(0, 20, Some(4), true),
            turn(0, 30, Some(5), false),
        ];
        let tasks = Tasks::new([task], turns);
        let whom =
            [(0, 9), (0, 10), (0, 19), (0, 20), (0, 99), (1, 5), (2, 5)].map(|(cpu, at)| tasks.at(cpu, at));
        let of_task = |number| Some(Whom::Task(number));
        assert_eq!(
            whom,
            [None, of_task(4), of_task(4), Some(Whom::Interrupts(0)), of_task(5), Some(Whom::First(1)), None]
        );
        assert_eq!([Whom::Task(4), Whom::Task(5)].map(|whom| tasks.name(whom)), ["dd (12)", "task 5"]);
    }
}
