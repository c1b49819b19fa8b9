//! The context of a virtual CPU, when a whole guest is counted: a program, a task in the kernel, or an interrupt.
//!
//! It follows from the kernel's entries, the instructions that return from them, and the one function that changes
//! stacks. A return goes back to the context that the entry interrupted. A task that is switched away keeps its
//! context.

use super::sites::Role;
use super::tasks::{Running, Tasks};
use lineup_recording::ContextKind;
use std::collections::HashMap;

/// Contexts of a CPU by number, each with its task's number: 0 means programs, and the first here is 1.
pub(super) type Numbers = Vec<(Option<u32>, ContextKind)>;

/// The context of a task when it was switched away.
#[derive(Default, Debug)]
pub(super) struct Suspended {
    now: Option<ContextKind>,
    interrupted: Vec<Option<ContextKind>>,
}

/// Context of one virtual CPU. `None` means a program.
#[derive(Default, Debug)]
pub(super) struct Context {
    now: Option<ContextKind>,
    /// The contexts interrupted by entries that have not returned.
    interrupted: Vec<Option<ContextKind>>,
    /// The stack of the task, once a switch showed it.
    stack: Option<u64>,
    is_switching: bool,
    running: Running,
    pub(super) numbers: Numbers,
}

/// Entries that may be open at a time: more mean that returns were missed.
const MOST_OPEN: usize = 16;

impl Context {
    /// An entry of the kernel, or its switch of tasks, is reached.
    pub(super) fn enter(&mut self, role: Role) {
        match role {
            Role::SystemCall => {
                self.interrupted.clear();
                self.now = Some(ContextKind::Task);
            }
            Role::Interrupt | Role::Exception => {
                if self.interrupted.len() < MOST_OPEN {
                    self.interrupted.push(self.now);
                }
                let is_interrupt = role == Role::Interrupt || self.now == Some(ContextKind::Interrupt);
                self.now = Some(if is_interrupt { ContextKind::Interrupt } else { ContextKind::Task });
            }
            Role::Switch => {
                self.is_switching = true;
                self.running.begins_switch();
            }
            Role::Plain | Role::Marker | Role::User => {}
        }
    }

    /// An instruction that returns from an entry is about to be executed.
    pub(super) fn leave(&mut self, is_of_system_call: bool) {
        if is_of_system_call {
            self.interrupted.clear();
        }
        self.now = self.interrupted.pop().flatten();
    }

    /// The function that changes stacks loads of the description of the next task, which lies at a physical address.
    pub(super) fn use_description(&mut self, used: Option<u64>, tasks: &Tasks) {
        if self.is_switching {
            self.running.uses(used, None, tasks);
        }
    }

    /// Takes the name of the task at the end.
    pub(super) fn end(&self, tasks: &Tasks) {
        self.running.look_again(tasks);
    }

    /// The stack is used in the function that changes it.
    pub(super) fn use_stack(&mut self, stack: u64, away: &mut HashMap<u64, Suspended>, tasks: &Tasks) {
        if !self.is_switching || self.stack == Some(stack) {
            return;
        }
        self.is_switching = false;
        self.running.switched(stack, tasks);
        if let Some(old) = self.stack.replace(stack) {
            let interrupted = std::mem::take(&mut self.interrupted);
            away.insert(old, Suspended { now: self.now, interrupted });
        }
        // One that was not seen before begins in the kernel.
        let known = away.remove(&stack);
        let known = known.unwrap_or(Suspended { now: Some(ContextKind::Task), interrupted: Vec::new() });
        (self.now, self.interrupted) = (known.now, known.interrupted);
    }

    /// The number of its present context.
    pub(super) fn number(&mut self) -> u32 {
        let Some(kind) = self.now else { return 0 };
        let task = self.running.number().filter(|_| kind == ContextKind::Task);
        let known = self.numbers.iter().position(|one| *one == (task, kind));
        let place = known.unwrap_or_else(|| {
            self.numbers.push((task, kind));
            self.numbers.len() - 1
        });
        place as u32 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_returns_tell_for_whom_the_cpu_works() {
        let (mut cpu, mut away, tasks) = (Context::default(), HashMap::new(), Tasks::default());
        let task = Some(ContextKind::Task);
        let interrupt = Some(ContextKind::Interrupt);
        cpu.enter(Role::SystemCall);
        assert_eq!(cpu.now, task);
        // An interrupt, in which a page is missing, then both return.
        cpu.enter(Role::Interrupt);
        cpu.enter(Role::Exception);
        assert_eq!(cpu.now, interrupt);
        cpu.leave(false);
        assert_eq!(cpu.now, interrupt);
        cpu.leave(false);
        assert_eq!(cpu.now, task);
        // Another task, which has an interrupt's return to go back to a program.
        cpu.enter(Role::Switch);
        cpu.use_stack(0x8000, &mut away, &tasks);
        cpu.leave(false);
        assert_eq!((cpu.now, cpu.number()), (None, 0));
        cpu.enter(Role::Interrupt);
        cpu.enter(Role::Switch);
        cpu.use_stack(0x4000, &mut away, &tasks);
        assert_eq!(cpu.now, task, "not seen before");
        cpu.enter(Role::Switch);
        cpu.use_stack(0x8000, &mut away, &tasks);
        assert_eq!(cpu.now, interrupt, "as it was switched away");
        cpu.leave(false);
        assert_eq!(cpu.now, None);
        cpu.enter(Role::SystemCall);
        cpu.leave(true);
        assert_eq!(cpu.now, None);
    }

    #[test]
    fn tasks_have_numbers_and_all_interrupts_of_a_cpu_have_one() {
        let (mut cpu, mut away, tasks) = (Context::default(), HashMap::new(), Tasks::default());
        cpu.enter(Role::SystemCall);
        assert_eq!(cpu.number(), 1);
        cpu.enter(Role::Switch);
        cpu.use_stack(0x8000, &mut away, &tasks);
        assert_eq!(cpu.number(), 2);
        cpu.enter(Role::Interrupt);
        assert_eq!(cpu.number(), 3);
        cpu.enter(Role::Switch);
        cpu.use_stack(0x4000, &mut away, &tasks);
        cpu.enter(Role::Interrupt);
        assert_eq!(cpu.number(), 3);
        let kinds = [(None, ContextKind::Task), (Some(0), ContextKind::Task), (None, ContextKind::Interrupt)];
        assert_eq!(cpu.numbers, kinds);
    }
}
