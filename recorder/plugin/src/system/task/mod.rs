//! The open calls of one task: calls of regions, on the task's own level and on those of interrupts above it.
//! Independent of any emulator.

mod interrupts;

use super::flag::Saves;
use lineup_model::access::{Access, AccessKind, Arguments, CallEnd};
use lineup_recording::{Arm, Counts};
use std::collections::BTreeSet;

/// The most calls remembered on one level: older ones are never needed.
const MAX_CALLS: usize = 1 << 12;
/// Calls looked through for one that returns to a place: tail calls leave none behind, so it is the innermost or
/// nearly.
const NEAR_CALLS: usize = 8;

/// A call instruction that has not returned: the place of its return address, and that address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallSite {
    pub(crate) slot: u64,
    pub(crate) return_pc: u64,
}

/// The data of a call besides its counts.
#[derive(Default, Debug)]
pub(crate) struct CallDetail {
    /// Index of its first access among those of its level.
    first_access: usize,
    pub(crate) accesses: Vec<Access>,
    pub(crate) granules: BTreeSet<u64>,
    pub(crate) dropped: u64,
}

/// A call of a region under way.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) region: u16,
    pub(crate) sequence: u64,
    pub(crate) entered_at: u64,
    pub(crate) site: CallSite,
    pub(crate) begun_at: u64,
    pub(crate) depth: u32,
    /// Interrupts and exceptions that it runs in.
    pub(crate) level: u32,
    pub(crate) arm: Arm,
    pub(crate) own: Counts,
    pub(crate) interrupts: u32,
    pub(crate) interrupt_instructions: u64,
    pub(crate) switches: u32,
    /// True when the accesses are written to the recording.
    pub(crate) keeps_accesses: bool,
    /// Its arguments in registers, where they are read.
    pub(crate) arguments: Option<Arguments>,
    pub(crate) kept: Option<CallDetail>,
}

/// A call that ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) open: Open,
    pub(crate) end: CallEnd,
}

/// The task's own code, or one interrupt's.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// Address of the interrupt's first push: just below its frame. `None` until then, and for the task itself.
    first_push: Option<u64>,
    is_interrupt: bool,
    /// True when it came while a program ran, not the kernel.
    from_program: bool,
    is_by_hardware: bool,
    interrupts_were_on: Option<bool>,
    /// Interrupt flags that its code saved.
    saves: Saves,
    calls: Vec<CallSite>,
    open: Vec<Open>,
    accesses: Vec<Access>,
    /// The CPU's totals when this level was last continued.
    since: Counts,
    /// Instructions executed on it and above.
    spent: u64,
}

/// A task: its own level, and interrupts that came on top of it.
#[derive(Default, Debug)]
pub(crate) struct Task {
    own: Level,
    interrupts: Vec<Level>,
}

impl Level {
    /// Books the counts since the level was last continued.
    fn settle(&mut self, totals: &Counts) {
        let delta = totals.since(&self.since);
        self.since = *totals;
        self.spent += delta.instructions;
        self.open.iter_mut().for_each(|open| open.own = open.own.plus(&delta));
    }

    fn end_from(&mut self, first: usize, end: CallEnd, totals: &Counts) -> Vec<EndedCall> {
        if first >= self.open.len() {
            return Vec::new();
        }
        self.settle(totals);
        let mut ended: Vec<EndedCall> = Vec::new();
        while self.open.len() > first {
            let Some(mut open) = self.open.pop() else { break };
            if let Some(kept) = &mut open.kept {
                kept.accesses = self.accesses.get(kept.first_access..).unwrap_or_default().to_vec();
            }
            let outer = self.open.last_mut().and_then(|outer| outer.kept.as_mut());
            if let (Some(outer), Some(kept)) = (outer, &open.kept) {
                outer.granules.extend(&kept.granules);
            }
            ended.push(EndedCall { open, end });
        }
        if self.open.iter().all(|open| open.kept.is_none()) {
            self.accesses.clear();
        }
        ended
    }
}

impl Task {
    fn top(&mut self) -> &mut Level {
        self.interrupts.last_mut().unwrap_or(&mut self.own)
    }

    /// Interrupt flags that the level under way saved.
    pub(crate) fn saves(&mut self) -> &mut Saves {
        &mut self.top().saves
    }

    /// True when the level under way has a call whose accesses are kept.
    pub(crate) fn keeps(&mut self) -> bool {
        self.top().open.iter().any(|open| open.kept.is_some())
    }

    /// Regions of the kept calls of the level under way, innermost last, each once.
    pub(crate) fn inside(&mut self) -> Vec<u16> {
        let mut regions: Vec<u16> =
            self.top().open.iter().filter(|open| open.kept.is_some()).map(|open| open.region).collect();
        regions.sort_unstable();
        regions.dedup();
        regions
    }

    /// True when a call is open, or an interrupt under way.
    pub(crate) fn is_busy(&self) -> bool {
        !self.interrupts.is_empty() || !self.own.open.is_empty()
    }

    /// The call instruction that control came through last.
    pub(crate) fn last_call(&mut self) -> Option<CallSite> {
        self.top().calls.last().copied()
    }

    /// Open calls of a region on this level.
    pub(crate) fn depth_of(&mut self, region: u16) -> u32 {
        self.top().open.iter().filter(|open| open.region == region).count() as u32
    }

    /// True when a call of the region is open through the same call instruction: control jumped back to its entry.
    pub(crate) fn is_loop(&mut self, region: u16, site: CallSite) -> bool {
        self.top().open.iter().any(|open| open.region == region && open.site == site)
    }

    /// True when any call is open on this level.
    pub(crate) fn is_inside(&mut self) -> bool {
        !self.top().open.is_empty()
    }

    /// Opens a call.
    pub(crate) fn enter(&mut self, mut open: Open, totals: &Counts) {
        let level = self.top();
        level.settle(totals);
        if let Some(kept) = &mut open.kept {
            kept.first_access = level.accesses.len();
        }
        level.open.push(open);
    }

    /// A call instruction stored its return address.
    pub(crate) fn called(&mut self, site: CallSite, same_stack: impl Fn(u64, u64) -> bool) {
        let calls = &mut self.top().calls;
        while calls.last().is_some_and(|open| open.slot <= site.slot && same_stack(open.slot, site.slot)) {
            calls.pop();
        }
        if calls.len() >= MAX_CALLS {
            calls.drain(..MAX_CALLS / 2);
        }
        calls.push(site);
    }

    /// A call instruction was executed on a machine without slots: its slot is made up, below the last.
    pub(crate) fn called_without_slot(&mut self, return_pc: u64) {
        let calls = &mut self.top().calls;
        if calls.len() >= MAX_CALLS {
            calls.drain(..MAX_CALLS / 2);
        }
        let slot = calls.last().map_or(u64::MAX, |last| last.slot) - 1;
        calls.push(CallSite { slot, return_pc });
    }

    /// Control reached a place: the innermost calls return there if they expect it.
    pub(crate) fn came_to(&mut self, pc: u64, totals: &Counts) -> Vec<EndedCall> {
        let mut near = self.top().calls.iter().rev().take(NEAR_CALLS);
        let slot = near.find(|call| call.return_pc == pc).map(|call| call.slot);
        slot.map_or_else(Vec::new, |slot| self.returned(slot, totals, |_, _| true))
    }

    /// A return instruction loaded from a slot: calls of that slot returned, calls of slots below were left.
    pub(crate) fn returned(
        &mut self,
        slot: u64,
        totals: &Counts,
        same_stack: impl Fn(u64, u64) -> bool,
    ) -> Vec<EndedCall> {
        let level = self.top();
        while level.calls.last().is_some_and(|call| call.slot <= slot && same_stack(call.slot, slot)) {
            level.calls.pop();
        }
        let is_left = |open: &Open| open.site.slot <= slot && same_stack(open.site.slot, slot);
        let Some(first) = level.open.iter().position(is_left) else { return Vec::new() };
        let mut ended = level.end_from(first, CallEnd::Abandoned, totals);
        for call in ended.iter_mut().filter(|call| call.open.site.slot == slot) {
            call.end = CallEnd::Returned;
        }
        ended
    }

    /// An access of the current level. String instructions come piece by piece, and those that copy load and store in
    /// turn.
    pub(crate) fn touch(&mut self, access: Access, most: usize, repeats: bool) {
        let level = self.top();
        let before = level.accesses.iter_mut().rev().take(if repeats { 2 } else { 1 });
        for whole in before.take_while(|whole| whole.pc == access.pc) {
            let end = whole.address.wrapping_add(u64::from(whole.size_bytes));
            if whole.kind == access.kind && end == access.address && whole.size_bytes < 1 << 20 {
                whole.size_bytes += access.size_bytes;
                return;
            }
        }
        if level.accesses.len() < most {
            level.accesses.push(access);
        } else {
            level.open.iter_mut().filter_map(|open| open.kept.as_mut()).for_each(|kept| kept.dropped += 1);
        }
    }

    /// A run of instructions of the level under way.
    pub(crate) fn fetch(&mut self, granules: impl Iterator<Item = u64>) {
        if let Some(kept) = self.top().open.iter_mut().rev().find_map(|open| open.kept.as_mut()) {
            kept.granules.extend(granules);
        }
    }

    /// Another task gets the CPU.
    pub(crate) fn suspend(&mut self, totals: &Counts) {
        let level = self.top();
        level.settle(totals);
        let below = self.interrupts.iter_mut().flat_map(|level| &mut level.open);
        self.own.open.iter_mut().chain(below).for_each(|open| open.switches += 1);
    }

    /// The task gets a CPU again, whose totals these are.
    pub(crate) fn resume(&mut self, totals: &Counts) {
        self.top().since = *totals;
    }

    /// Control is in a program, or the recording ends: nothing of the kernel is under way.
    pub(crate) fn end_all(&mut self, end: CallEnd, totals: &Counts) -> Vec<EndedCall> {
        self.top().settle(totals);
        let mut ended = Vec::new();
        while let Some(mut level) = self.interrupts.pop() {
            level.since = *totals;
            ended.extend(level.end_from(0, end, totals));
        }
        self.own.since = *totals;
        self.own.calls.clear();
        ended.extend(self.own.end_from(0, end, totals));
        ended
    }
}

/// An access with its kind from a flag.
pub(crate) fn access(pc: u64, address: u64, size_bytes: u32, is_store: bool) -> Access {
    let kind = if is_store { AccessKind::Store } else { AccessKind::Load };
    Access { pc, address, size_bytes, kind, value: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const ON_ONE_STACK: fn(u64, u64) -> bool = |one, other| one >> 14 == other >> 14;

    pub(super) fn at(instructions: u64) -> Counts {
        Counts { instructions, ..Counts::default() }
    }

    pub(super) fn open(region: u16, slot: u64, totals: u64) -> Open {
        Open {
            region,
            sequence: 0,
            entered_at: 0,
            site: CallSite { slot, return_pc: slot + 1 },
            begun_at: totals,
            depth: 0,
            level: 0,
            arm: Arm::Untouched,
            own: Counts::default(),
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
            keeps_accesses: true,
            arguments: None,
            kept: Some(CallDetail::default()),
        }
    }

    #[test]
    fn a_call_ends_at_the_return_through_its_own_slot() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 10), &at(10));
        assert!(task.returned(0x8f0, &at(12), ON_ONE_STACK).is_empty(), "a callee's");
        let ended = task.returned(0x900, &at(25), ON_ONE_STACK);
        assert_eq!((ended.len(), ended[0].end, ended[0].open.own.instructions), (1, CallEnd::Returned, 15));
    }

    #[test]
    fn a_return_from_above_shows_that_inner_calls_were_left() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        task.enter(open(1, 0x800, 0), &at(0));
        let ends: Vec<_> = task
            .returned(0x900, &at(5), ON_ONE_STACK)
            .iter()
            .map(|ended| (ended.open.region, ended.end))
            .collect();
        assert_eq!(ends, [(1, CallEnd::Abandoned), (0, CallEnd::Returned)]);
    }

    #[test]
    fn a_return_on_another_stack_ends_nothing() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        assert!(task.returned(0x9_0000, &at(5), ON_ONE_STACK).is_empty());
    }

    #[test]
    fn without_slots_a_call_ends_where_control_comes_back() {
        let mut task = Task::default();
        task.called_without_slot(0x1010);
        let site = task.last_call().unwrap();
        task.enter(Open { site, ..open(0, 0, 0) }, &at(0));
        task.called_without_slot(0x2020);
        assert!(task.came_to(0x3000, &at(3)).is_empty());
        assert!(task.came_to(0x2020, &at(5)).is_empty());
        let ended = task.came_to(0x1010, &at(9));
        assert_eq!((ended.len(), ended[0].end, ended[0].open.own.instructions), (1, CallEnd::Returned, 9));
        assert!(task.came_to(0x1010, &at(9)).is_empty(), "only once");
    }

    #[test]
    fn time_of_other_tasks_does_not_count() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        task.suspend(&at(10));
        // Continued on another CPU, whose clock stands elsewhere.
        task.resume(&at(5000));
        let ended = task.returned(0x900, &at(5003), ON_ONE_STACK);
        assert_eq!((ended[0].open.own.instructions, ended[0].open.switches), (13, 1));
    }

    #[test]
    fn pieces_of_a_string_instruction_are_one_access() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        (0..4).for_each(|piece| task.touch(access(1, 0x100 + piece * 8, 8, true), 100, true));
        let ended = task.returned(0x900, &at(5), ON_ONE_STACK);
        assert_eq!(ended[0].open.kept.as_ref().unwrap().accesses, [access(1, 0x100, 32, true)]);
    }

    #[test]
    fn a_copy_is_one_load_and_one_store_and_a_loop_that_adds_to_an_array_is_not() {
        let copied = |repeats: bool| {
            let mut task = Task::default();
            task.enter(open(0, 0x900, 0), &at(0));
            for piece in 0..4 {
                task.touch(access(1, 0x100 + piece, 1, false), 100, repeats);
                task.touch(access(1, 0x800 + piece, 1, true), 100, repeats);
            }
            let ended = task.returned(0x900, &at(5), ON_ONE_STACK);
            ended[0].open.kept.as_ref().unwrap().accesses.clone()
        };
        assert_eq!(copied(true), [access(1, 0x100, 4, false), access(1, 0x800, 4, true)]);
        assert_eq!(copied(false).len(), 8);
    }

    #[test]
    fn what_is_beyond_the_limit_is_counted() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        (0..5).for_each(|piece| task.touch(access(piece, 0x100, 8, true), 3, false));
        let ended = task.returned(0x900, &at(5), ON_ONE_STACK);
        let kept = ended[0].open.kept.as_ref().unwrap();
        assert_eq!((kept.accesses.len(), kept.dropped), (3, 2));
    }

    #[test]
    fn the_user_mode_ends_everything() {
        let mut task = Task::default();
        task.enter(open(0, 0x900, 0), &at(0));
        task.interrupt(Some(true), false, &at(10));
        task.enter(open(1, 0x500, 10), &at(10));
        let ended = task.end_all(CallEnd::Abandoned, &at(30));
        let own: Vec<_> = ended.iter().map(|call| (call.open.region, call.open.own.instructions)).collect();
        assert_eq!(own, [(1, 20), (0, 10)]);
        assert!(!task.is_busy());
    }
}
