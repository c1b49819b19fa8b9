//! Derives the open calls of regions on a thread from the flow of control.
//!
//! The emulator gives no registers, so returns are recognised in one of two ways:
//!
//! * On x86 the memory callback of `call` gives the slot that holds the return address. The activation ends
//!   when a `ret` loads from exactly that slot.
//! * On Arm an activation ends when, after a block that returned, control is at the instruction after
//!   the call.
//!
//! The tracker notices an activation left by `longjmp` or an exception at the landing. At the latest it does
//! so when an activation below it on the stack ends or a call overwrites its slot.
//!
//! Pure: from blocks and slots, it reports the calls that ended, and their kinds of end.

use crate::flow::Flow;
use lineup_model::access::CallEnd;

/// An activation of a function inside a region, the region's own first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Activation {
    /// The instruction after the call; `None` when the function was jumped to.
    return_pc: Option<u64>,
    /// Address of the return address, on x86.
    slot: Option<u64>,
}

/// An open call of a region: ends with the activation `at`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct OpenCall {
    region: u16,
    at: usize,
}

/// The call instruction that led to a region's entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallSite {
    /// Its return address.
    pub return_pc: u64,
    /// The slot of the return address, on x86.
    pub slot: Option<u64>,
}

/// The tracker's facts of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockFacts {
    /// Its first address.
    pub start: u64,
    /// Address after its last instruction.
    pub end: u64,
    /// The way that control leaves it.
    pub flow: Flow,
}

/// Ways of leaving activations without a return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaving {
    /// `longjmp` and its kin.
    Jump,
    /// The unwinder of C++ and its kin.
    Unwind,
    /// The unwinder on its way out of a thread that ends.
    ThreadEnd,
}

/// Calls that ended, innermost first.
pub type EndedCalls = Vec<CallEnd>;

/// The open calls of one thread.
#[derive(Default, Debug)]
pub struct Tracker {
    uses_slots: bool,
    activations: Vec<Activation>,
    calls: Vec<OpenCall>,
    /// The number of activations of each region.
    depths: Vec<u32>,
    /// Addresses where `setjmp` may return again, and the number of activations that are then open.
    landings: Vec<(u64, usize)>,
    /// `longjmp` or the unwinder is at work, and this number of activations was open when it began.
    leaving: Option<(Leaving, usize)>,
    /// The thread is about to end: activations that it leaves are left for that reason.
    thread_ends: bool,
    /// The last `ret` ended an activation regularly (x86).
    came_back: bool,
    ended: EndedCalls,
}

impl Tracker {
    /// No call is open. `uses_slots` says whether return addresses lie in memory.
    pub fn new(uses_slots: bool) -> Self {
        Tracker { uses_slots, ..Tracker::default() }
    }

    /// True while a call of a region is open.
    pub fn is_inside(&self) -> bool {
        !self.calls.is_empty()
    }

    /// True when control that went from `previous` to `next` may be the landing of `longjmp` or of an
    /// exception: it followed a register or the stack to no known return.
    pub fn may_land(&self, previous: Flow, next: u64) -> bool {
        let is_free = match previous {
            Flow::Return => !self.came_back,
            Flow::Indirect => true,
            Flow::Plain | Flow::Call => false,
        };
        self.leaving.is_some() && is_free && !self.activations.iter().any(|open| open.return_pc == Some(next))
    }

    /// The number of open calls of this region.
    pub fn depth_of(&self, region: u16) -> u32 {
        self.depths.get(usize::from(region)).copied().unwrap_or_default()
    }

    /// The number of open calls.
    pub fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// The calls that ended since the last asking, innermost first.
    pub fn take_ended(&mut self) -> EndedCalls {
        std::mem::take(&mut self.ended)
    }

    /// True when calls ended that were not reported yet.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Ends every open call.
    pub fn end_all(&mut self, how: CallEnd) {
        self.keep(0, how);
        self.landings.clear();
        self.leaving = None;
        self.thread_ends = false;
    }

    /// Activations that are open, the region's own included.
    pub fn depth(&self) -> usize {
        self.activations.len()
    }

    /// The kind of end of calls that are left without a return.
    pub fn left(&self) -> CallEnd {
        if self.thread_ends { CallEnd::ThreadEnded } else { CallEnd::Abandoned }
    }

    /// True from the call of `longjmp` or the unwinder until its landing.
    pub fn is_leaving(&self) -> bool {
        self.leaving.is_some()
    }

    /// True when a `ret` just ended no activation that is known (x86): control left the regions unseen.
    pub fn lost_return(&self, previous: Flow) -> bool {
        self.uses_slots && previous == Flow::Return && !self.came_back
    }

    /// Closes activations until `count` are left. The calls that end with activation `count` itself end
    /// as `how`; those above it were abandoned.
    fn keep(&mut self, count: usize, how: CallEnd) {
        while let Some(call) = self.calls.pop_if(|call| call.at >= count) {
            if let Some(depth) = self.depths.get_mut(usize::from(call.region)) {
                *depth -= 1;
            }
            let own = call.at == count || !matches!(how, CallEnd::Returned | CallEnd::Abandoned);
            self.ended.push(if own { how } else { self.left() });
        }
        self.activations.truncate(count);
        self.landings.retain(|(_, open)| *open <= count);
        self.leaving = self.leaving.filter(|(_, from)| count >= *from);
    }

    /// True when control at a region's entry is no new call: a jump back to its first instruction.
    pub fn is_loop(&self, region: u16, previous: Option<Flow>) -> bool {
        let top = self.activations.len().wrapping_sub(1);
        let mut own = self.calls.iter().rev().take_while(|call| call.at == top);
        previous != Some(Flow::Call) && own.any(|call| call.region == region)
    }

    /// A call of a region begins. `site` is the call instruction that led there, when one did.
    pub fn enter(&mut self, region: u16, site: Option<CallSite>) {
        if !self.is_inside() {
            self.activations.clear();
            self.activations.push(Activation {
                return_pc: site.map(|site| site.return_pc),
                slot: site.and_then(|site| site.slot),
            });
        }
        self.calls.push(OpenCall { region, at: self.activations.len() - 1 });
        let number = usize::from(region);
        self.depths.resize(self.depths.len().max(number + 1), 0);
        self.depths[number] += 1;
    }

    /// A `call` inside a region stored its return address (x86).
    pub fn called(&mut self, slot: u64, return_pc: u64) {
        // The stack grows down: activations at or below the new slot are no longer open.
        while let Some(top) = self.activations.last()
            && top.slot.is_some_and(|open| open <= slot)
        {
            self.keep(self.activations.len() - 1, self.left());
        }
        if self.is_inside() {
            self.activations.push(Activation { return_pc: Some(return_pc), slot: Some(slot) });
        }
    }

    /// A `ret` inside a region loaded `target` from `slot` (x86).
    pub fn returned(&mut self, slot: u64, target: Option<u64>) {
        self.came_back = false;
        if let Some(at) = self.activations.iter().rposition(|open| open.slot == Some(slot)) {
            let expected = self.activations[at].return_pc;
            // The unwinder replaces the return address with its landing's.
            let back = target.is_none() || expected.is_none() || target == expected;
            self.came_back = back;
            self.keep(at, if back { CallEnd::Returned } else { self.left() });
            return;
        }
        match self.activations.first().map(|base| base.slot) {
            // Jumped to: its slot was never seen, and everything it called has returned.
            Some(None) => self.keep(0, CallEnd::Returned),
            Some(Some(base)) if slot > base => self.keep(0, self.left()),
            _ => {}
        }
    }

    /// `setjmp` was entered inside a region.
    pub fn set_landing(&mut self) {
        if let Some((Activation { return_pc: Some(pc), .. }, below)) = self.activations.split_last() {
            let landing = (*pc, below.len());
            if !self.landings.contains(&landing) {
                self.landings.push(landing);
            }
        }
    }

    /// `longjmp` or the unwinder was entered.
    pub fn begin_leaving(&mut self, kind: Leaving) {
        self.thread_ends |= kind == Leaving::ThreadEnd;
        if self.leaving.is_none() {
            self.leaving = Some((kind, self.activations.len()));
        }
    }

    /// Control went from `previous` to `next`, nothing in between.
    pub fn step(&mut self, previous: BlockFacts, next: u64) {
        let jumped = matches!(previous.flow, Flow::Return | Flow::Indirect);
        if self.leaving.is_some() && jumped && self.land_at(next) || self.uses_slots {
            return;
        }
        match previous.flow {
            // A conditional call that was not taken falls through, and so does a call of a kernel helper.
            Flow::Call if next != previous.end => {
                self.activations.push(Activation { return_pc: Some(previous.end), slot: None });
            }
            Flow::Return => self.match_return(previous, next),
            Flow::Indirect => {
                if let Some(top) = self.activations.last()
                    && top.return_pc == Some(next)
                {
                    self.keep(self.activations.len() - 1, CallEnd::Returned);
                }
            }
            _ => {}
        }
    }

    fn match_return(&mut self, previous: BlockFacts, next: u64) {
        if let Some(at) = self.activations.iter().rposition(|open| open.return_pc == Some(next)) {
            self.keep(at, CallEnd::Returned);
        } else if self.activations.len() == 1
            && self.activations[0].return_pc.is_none()
            && next != previous.end
        {
            self.keep(0, CallEnd::Returned);
        }
    }

    /// `longjmp` comes down where `setjmp` returned, inside a region. True when it did.
    pub fn land_at(&mut self, next: u64) -> bool {
        let Some(at) = self.landings.iter().rposition(|(pc, _)| *pc == next) else { return false };
        let open = self.landings[at].1;
        self.leaving = None;
        self.keep(open, self.left());
        true
    }

    /// `longjmp` or an exception comes down in the middle of a function; `in_function` says whether an
    /// instruction belongs to it. Inside a region an exception lands in the innermost activation of that
    /// function below the unwinder; anything else landed outside.
    pub fn land_in(&mut self, in_function: impl Fn(u64) -> bool) {
        let Some((kind, from)) = self.leaving.take() else { return };
        let top = from.min(self.activations.len());
        // The activation at i was called by the function of the activation below it.
        let callee = (1..top)
            .rev()
            .find(|at| self.activations[*at].return_pc.is_some_and(|pc| in_function(pc.wrapping_sub(1))));
        match callee.filter(|_| kind != Leaving::Jump) {
            Some(at) => self.keep(at, self.left()),
            None => self.end_all(self.left()),
        }
    }

    /// Unwatched blocks ran after `previous`. False when they show that control had left the regions; true
    /// when they were executed inside and are missing.
    pub fn gap_is_inside(&mut self, previous: Flow) -> bool {
        if self.leaving.is_some() {
            self.end_all(self.left());
        } else if !self.uses_slots && previous == Flow::Return && self.activations.len() == 1 {
            self.keep(0, CallEnd::Returned);
        }
        self.is_inside()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CallEnd::{Abandoned, Returned};

    const MAIN: u64 = 0x1000;

    /// Inside region 0, called from `MAIN` with its return address in slot `0x900`.
    fn inside(uses_slots: bool) -> Tracker {
        let mut tracker = Tracker::new(uses_slots);
        tracker.enter(0, Some(CallSite { return_pc: MAIN, slot: uses_slots.then_some(0x900) }));
        tracker
    }

    fn block(flow: Flow) -> BlockFacts {
        BlockFacts { start: 0x2000, end: 0x2010, flow }
    }

    #[test]
    fn a_ret_from_the_regions_own_slot_ends_it() {
        let mut tracker = inside(true);
        tracker.called(0x8e0, 0x2010);
        tracker.returned(0x8e0, Some(0x2010));
        assert!(tracker.is_inside());
        tracker.returned(0x900, Some(MAIN));
        assert_eq!(tracker.take_ended(), [Returned]);
        assert!(!tracker.is_inside());
    }

    #[test]
    fn a_ret_on_another_stack_below_ends_nothing() {
        let mut tracker = inside(true);
        tracker.returned(0x500, Some(0x7777));
        assert!(tracker.is_inside());
    }

    #[test]
    fn a_ret_from_above_shows_that_the_region_was_left() {
        let mut tracker = inside(true);
        tracker.returned(0xa00, Some(0x7777));
        assert_eq!(tracker.take_ended(), [Abandoned]);
    }

    #[test]
    fn a_call_that_overwrites_the_slot_shows_that_the_region_was_left() {
        let mut tracker = inside(true);
        tracker.called(0x900, 0x1234);
        assert_eq!(tracker.take_ended(), [Abandoned]);
    }

    #[test]
    fn the_unwinder_returns_to_another_address_than_the_call_came_from() {
        let mut tracker = inside(true);
        tracker.returned(0x900, Some(MAIN + 0x40));
        assert_eq!(tracker.take_ended(), [Abandoned]);
    }

    #[test]
    fn what_a_thread_leaves_on_its_way_out_was_left_for_its_end() {
        let mut tracker = inside(true);
        tracker.begin_leaving(Leaving::ThreadEnd);
        tracker.land_in(|_| false);
        assert_eq!(tracker.take_ended(), [CallEnd::ThreadEnded]);
    }

    #[test]
    fn recursion_ends_from_the_inside_out() {
        let mut tracker = inside(false);
        tracker.step(block(Flow::Call), 0x3000);
        tracker.enter(0, Some(CallSite { return_pc: 0x2010, slot: None }));
        assert_eq!((tracker.depth_of(0), tracker.open_calls()), (2, 2));
        tracker.step(block(Flow::Return), 0x2010);
        assert_eq!(tracker.take_ended(), [Returned]);
        tracker.step(block(Flow::Return), MAIN);
        assert_eq!(tracker.take_ended(), [Returned]);
    }

    #[test]
    fn a_conditional_call_that_is_not_taken_opens_nothing() {
        let mut tracker = inside(false);
        tracker.step(block(Flow::Call), 0x2010);
        tracker.step(block(Flow::Return), MAIN);
        assert_eq!(tracker.take_ended(), [Returned]);
    }

    #[test]
    fn longjmp_comes_down_where_setjmp_returned() {
        let mut tracker = inside(true);
        tracker.called(0x8f0, 0x2010);
        tracker.set_landing();
        tracker.returned(0x8f0, Some(0x2010));
        tracker.called(0x8f0, 0x2020);
        tracker.called(0x8e0, 0x3020);
        tracker.begin_leaving(Leaving::Jump);
        assert!(tracker.may_land(Flow::Indirect, 0x2010));
        assert!(tracker.land_at(0x2010));
        tracker.returned(0x900, Some(MAIN));
        assert_eq!(tracker.take_ended(), [Returned]);
    }

    #[test]
    fn a_return_on_the_way_of_longjmp_is_no_landing() {
        let mut tracker = inside(true);
        tracker.called(0x8f0, 0x2010);
        tracker.begin_leaving(Leaving::Jump);
        tracker.called(0x8e0, 0x5010);
        tracker.returned(0x8e0, Some(0x5010));
        assert!(!tracker.may_land(Flow::Return, 0x5010));
        assert!(tracker.may_land(Flow::Indirect, 0x7777));
    }

    #[test]
    fn an_exception_lands_in_the_innermost_activation_of_its_function() {
        let mut tracker = inside(false);
        tracker.step(block(Flow::Call), 0x3000);
        tracker.step(BlockFacts { start: 0x3000, end: 0x3010, flow: Flow::Call }, 0x4000);
        tracker.begin_leaving(Leaving::Unwind);
        tracker.land_in(|pc| (0x2000..0x2100).contains(&pc));
        assert!(tracker.is_inside());
        tracker.step(block(Flow::Return), MAIN);
        assert_eq!(tracker.take_ended(), [Returned]);
    }

    #[test]
    fn an_exception_that_no_function_inside_catches_leaves_the_region() {
        let mut tracker = inside(false);
        tracker.step(block(Flow::Call), 0x3000);
        tracker.begin_leaving(Leaving::Unwind);
        tracker.land_in(|pc| pc < 0x1100);
        assert_eq!(tracker.take_ended(), [Abandoned]);
    }

    #[test]
    fn a_jump_back_to_the_entry_is_no_new_call() {
        let tracker = inside(true);
        assert!(tracker.is_loop(0, Some(Flow::Plain)));
        assert!(!tracker.is_loop(0, Some(Flow::Call)));
        assert!(!tracker.is_loop(1, Some(Flow::Plain)));
    }
}
