//! Interrupts and exceptions on top of a task: their beginnings, and the returns that end them.

use super::{EndedCall, Level, Task};
use lineup_model::access::CallEnd;
use lineup_recording::Counts;

/// The results of the end of an interrupt.
#[derive(Debug, Default)]
pub(crate) struct Returned {
    /// Calls that the interrupt left open.
    pub(crate) ended: Vec<EndedCall>,
    /// Whether interrupts were on when it came, if that was known; `None` when its entry was not seen.
    pub(crate) interrupts_were_on: Option<Option<bool>>,
    /// True when the interrupt had come while a program ran.
    pub(crate) to_program: bool,
}

impl Task {
    /// Interrupts and exceptions under way.
    pub(crate) fn level(&self) -> u32 {
        self.interrupts.len() as u32
    }

    /// Whether interrupts were on when the interrupt or exception under way came, if that was known.
    pub(crate) fn interrupts_were_on(&mut self) -> Option<bool> {
        self.top().interrupts_were_on
    }

    /// An interrupt or exception begins, with interrupts on or not, while a program ran or the kernel.
    pub(crate) fn interrupt(
        &mut self,
        interrupts_were_on: Option<bool>,
        from_program: bool,
        totals: &Counts,
    ) {
        let level = self.top();
        level.settle(totals);
        level.open.iter_mut().for_each(|open| open.interrupts += 1);
        self.interrupts.push(Level {
            is_interrupt: true,
            from_program,
            interrupts_were_on,
            since: *totals,
            ..Level::default()
        });
    }

    /// The interrupt that began is a hardware interrupt.
    pub(crate) fn is_by_hardware(&mut self) {
        self.top().is_by_hardware = true;
    }

    /// True when a hardware interrupt is under way.
    pub(crate) fn is_in_interrupt(&self) -> bool {
        self.interrupts.iter().any(|level| level.is_by_hardware)
    }

    /// A store of the current level: the first one of an interrupt shows the place of its frame.
    pub(crate) fn pushed(&mut self, address: u64) {
        let level = self.top();
        if level.is_interrupt && level.first_push.is_none() {
            level.first_push = Some(address);
        }
    }

    /// True while the frame of the interrupt under way is not known.
    pub(crate) fn awaits_push(&mut self) -> bool {
        let level = self.top();
        level.is_interrupt && level.first_push.is_none()
    }

    /// A return from an interrupt reads its frame at an address. The frame lies one word above the first push, two
    /// words where the processor pushed an error code. Without a frame, the innermost interrupt returns.
    pub(crate) fn interrupt_returns(&mut self, frame: Option<u64>, totals: &Counts) -> Returned {
        let is_its = |level: &Level| {
            let first_push = frame.zip(level.first_push);
            frame.is_none()
                || first_push.is_some_and(|(frame, push)| matches!(frame.wrapping_sub(push), 1..=32))
        };
        let Some(index) = self.interrupts.iter().rposition(is_its) else { return Returned::default() };
        let mut returned = Returned::default();
        while self.interrupts.len() > index {
            let Some(mut level) = self.interrupts.pop() else { break };
            level.settle(totals);
            returned.ended.extend(level.end_from(0, CallEnd::Abandoned, totals));
            returned.interrupts_were_on = Some(level.interrupts_were_on);
            returned.to_program = level.from_program;
            let below = self.top();
            below.since = *totals;
            below.spent += level.spent;
            below.open.iter_mut().for_each(|open| open.interrupt_instructions += level.spent);
        }
        returned
    }
}

#[cfg(test)]
mod tests {
    use super::super::access;
    use super::super::tests::{ON_ONE_STACK, at, open};
    use super::*;

    #[test]
    fn an_interrupt_is_not_the_calls_own_work() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        task.touch(access(1, 0x10, 8, false), 100, false);
        task.interrupt(Some(true), false, &at(10));
        task.pushed(0x7f8);
        task.pushed(0x700);
        task.touch(access(2, 0x20, 8, false), 100, false);
        let returned = task.interrupt_returns(Some(0x800), &at(110));
        assert_eq!(returned.interrupts_were_on, Some(Some(true)));
        let ended = task.returned(0x900, &at(115), ON_ONE_STACK);
        let call = &ended[0].open;
        assert_eq!((call.own.instructions, call.interrupts, call.interrupt_instructions), (15, 1, 100));
        assert_eq!(call.kept.as_ref().unwrap().accesses.len(), 1);
    }

    #[test]
    fn an_error_code_between_frame_and_push_is_allowed_for() {
        let mut task = Task::default();
        task.interrupt(Some(false), false, &at(0));
        task.pushed(0x7f0);
        assert_eq!(task.interrupt_returns(Some(0x900), &at(1)).interrupts_were_on, None, "another frame");
        assert_eq!(task.interrupt_returns(Some(0x800), &at(1)).interrupts_were_on, Some(Some(false)));
    }

    #[test]
    fn a_switch_inside_an_interrupt_is_one_of_the_calls_below_as_well() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        task.interrupt(Some(true), false, &at(10));
        task.enter(open(1, 0x700, 10), &at(10));
        task.suspend(&at(12));
        task.resume(&at(100));
        let ended = task.end_all(CallEnd::Unfinished, &at(101));
        let switches: Vec<_> = ended.iter().map(|call| (call.open.region, call.open.switches)).collect();
        assert_eq!(switches, [(1, 1), (0, 1)]);
    }
}
