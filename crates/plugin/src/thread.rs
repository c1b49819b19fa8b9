//! What one guest thread is doing: its open calls and what they touched. Fed by callbacks of that thread
//! only, so nothing here is shared.

use crate::blocks::{Block, Site};
use crate::images::Special;
use crate::isa::Flow;
use crate::profile::ThreadProfile;
use crate::tracker::{CallSite, Tracker};
use lineup_model::access::{Access, AccessKind, CallEnd, ThreadId};
use lineup_model::region::RegionId;
use lineup_recording::{CallHead, Encoder};
use std::collections::BTreeSet;

/// A call of a region under way.
#[derive(Debug)]
struct OpenCall {
    head: CallHead,
    /// Where its accesses begin in [`Thread::accesses`].
    first_access: usize,
    granules: BTreeSet<u64>,
    dropped: u64,
}

/// Counts of one region on one thread.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ThreadCounts {
    pub(crate) recorded: u64,
    pub(crate) abandoned: u64,
    pub(crate) unfinished: u64,
    pub(crate) truncated: u64,
    pub(crate) in_handlers: u64,
}

/// One guest thread.
pub(crate) struct Thread {
    pub(crate) id: ThreadId,
    pub(crate) tracker: Tracker,
    /// The block executed last, among those with a callback.
    pub(crate) last: Option<&'static Block>,
    /// Calls seen that have not returned, outermost first: kept where every block is watched, else only the last.
    sites: Vec<(CallSite, &'static Block)>,
    keeps_all_sites: bool,
    /// The blocks left waiting by signal handlers that interrupted a recorded call.
    handlers: Vec<Option<&'static Block>>,
    open: Vec<OpenCall>,
    accesses: Vec<Access>,
    /// Counts block executions, to tell pieces of one access from accesses of another turn.
    turn: u64,
    last_access_turn: u64,
    max_accesses: usize,
    /// Set between the entry of `free` and the load of the chunk header.
    pub(crate) awaits_chunk: bool,
    pub(crate) has_stack: bool,
    /// True when a block without watch ran since the last watched one (in programs with threads).
    pub(crate) has_gap: bool,
    /// What the shared counter of blocks without watch stood at.
    pub(crate) unwatched_seen: u64,
    /// True when this thread is counted among those inside a region.
    pub(crate) is_counted_inside: bool,
    /// Instructions executed in blocks with a callback.
    pub(crate) instructions: u64,
    /// Caches and counts, in whole-program mode.
    pub(crate) profile: Option<Box<ThreadProfile>>,
    pub(crate) counts: Vec<ThreadCounts>,
    pub(crate) encoder: Encoder,
}

/// What a region's entry needs from outside the thread.
pub(crate) struct Entry {
    pub(crate) sequence: u64,
    pub(crate) at: u64,
}

impl Thread {
    pub(crate) fn new(
        id: ThreadId,
        uses_slots: bool,
        keeps_all_sites: bool,
        regions: usize,
        max_accesses: u64,
    ) -> Self {
        Thread {
            id,
            tracker: Tracker::new(uses_slots),
            last: None,
            sites: Vec::new(),
            keeps_all_sites,
            handlers: Vec::new(),
            open: Vec::new(),
            accesses: Vec::new(),
            turn: 0,
            last_access_turn: 0,
            max_accesses: usize::try_from(max_accesses).unwrap_or(usize::MAX),
            awaits_chunk: false,
            has_stack: false,
            has_gap: false,
            unwatched_seen: 0,
            is_counted_inside: false,
            instructions: 0,
            profile: None,
            counts: vec![ThreadCounts::default(); regions],
            encoder: Encoder::new(),
        }
    }

    /// True while accesses belong to a recorded call.
    pub(crate) fn is_recording(&self) -> bool {
        self.tracker.is_inside() && self.handlers.is_empty()
    }

    /// True while a signal handler runs that interrupted a recorded call.
    pub(crate) fn is_in_handler(&self) -> bool {
        !self.handlers.is_empty()
    }

    /// The call that leads to the entry control is at, with the block that made it.
    pub(crate) fn call_site(&self) -> Option<(CallSite, &'static Block)> {
        self.sites.last().copied()
    }

    /// A call instruction was executed.
    pub(crate) fn push_site(&mut self, site: CallSite, block: &'static Block) {
        if !self.keeps_all_sites {
            self.sites.clear();
        }
        if let Some(slot) = site.slot {
            // The stack grows down: what lies at or below the new slot has been left.
            while self.sites.last().is_some_and(|(open, _)| open.slot.is_some_and(|open| open <= slot)) {
                self.sites.pop();
            }
        }
        // Recursion without end would grow this without end; what is far down is never asked for.
        if self.sites.len() >= 1 << 16 {
            self.sites.drain(..1 << 15);
        }
        self.sites.push((site, block));
    }

    /// A return instruction loaded from `slot` (x86), or control came back to `return_pc` (Arm).
    pub(crate) fn pop_site(&mut self, slot: Option<u64>, return_pc: Option<u64>) {
        let matches = |site: &CallSite| match slot {
            Some(slot) => site.slot == Some(slot),
            None => Some(site.return_pc) == return_pc,
        };
        // Returns match the innermost call but for unwinding, which leaves few levels.
        let near = self.sites.iter().rev().take(64).position(|(site, _)| matches(site));
        if let Some(above) = near.filter(|_| self.keeps_all_sites) {
            self.sites.truncate(self.sites.len() - above - 1);
        }
    }

    /// A block begins. Control came from [`Thread::last`] when `is_next`; else blocks ran in between that have no
    /// callback. `in_function` tells whether an instruction belongs to the block's function; `is_middle`, whether the
    /// block stands in the middle of another function than the one at an address, where only landings lead.
    pub(crate) fn step(
        &mut self,
        block: &'static Block,
        is_next: bool,
        in_function: impl Fn(u64) -> bool,
        is_middle: impl FnOnce(u64) -> bool,
    ) {
        let Some(previous) = self.last else { return };
        if !self.is_recording() {
            return;
        }
        if is_next {
            if self.tracker.may_land(previous.facts.flow, block.facts.start)
                && !self.tracker.land_at(block.facts.start)
                && is_middle(previous.facts.start)
            {
                self.tracker.land_in(in_function);
            }
            if self.tracker.is_inside() {
                self.tracker.step(previous.facts, block.facts.start);
            }
        } else if self.tracker.gap_is_inside(previous.facts.flow) {
            self.open.iter_mut().for_each(|call| call.head.missed_blocks += 1);
        }
        self.close_ended();
    }

    /// A region's entry was reached; `entry` is made when the call is to be recorded.
    pub(crate) fn enter(
        &mut self,
        region: u16,
        site: Option<CallSite>,
        entry: impl FnOnce() -> Option<Entry>,
    ) {
        if self.is_in_handler() {
            if let Some(counts) = self.counts.get_mut(usize::from(region)) {
                counts.in_handlers += 1;
            }
            return;
        }
        if self.tracker.is_loop(region, self.last_flow()) {
            return;
        }
        let Some(Entry { sequence, at }) = entry() else { return };
        let depth = self.tracker.depth_of(region);
        self.tracker.enter(region, site);
        let head = CallHead {
            region: RegionId(region),
            thread: self.id,
            sequence,
            entered_at: at,
            end: CallEnd::Unfinished,
            depth,
            instructions: 0,
            missed_blocks: 0,
        };
        let first_access = self.accesses.len();
        self.open.push(OpenCall { head, first_access, granules: BTreeSet::new(), dropped: 0 });
    }

    /// Counts a block that is executed inside.
    pub(crate) fn execute(&mut self, block: &'static Block) {
        match block.special {
            Some(Special::SetJump) => self.tracker.set_landing(),
            Some(Special::Leave(kind)) => self.tracker.begin_leaving(kind),
            _ => {}
        }
        let again = block.repeats && self.last.is_some_and(|last| std::ptr::eq(last, block));
        self.turn += u64::from(!again);
        for call in &mut self.open {
            call.head.instructions += block.instructions;
            if !again {
                call.granules.extend(block.granules.iter().copied());
            }
        }
    }

    /// Adds an access to all open calls; pieces of one access become one.
    pub(crate) fn touch(
        &mut self,
        site: &Site,
        address: u64,
        size_bytes: u32,
        kind: AccessKind,
        value: Option<u64>,
    ) {
        if let Some(last) = self.accesses.last_mut()
            && !site.multiple
            && self.last_access_turn == self.turn
            && (last.pc, last.kind) == (site.pc, kind)
            && last.address.wrapping_add(u64::from(last.size_bytes)) == address
            && self.open.last().is_some_and(|call| call.dropped == 0)
        {
            last.size_bytes = last.size_bytes.saturating_add(size_bytes);
            last.value = None;
            return;
        }
        self.last_access_turn = self.turn;
        let outermost = self.open.first().map_or(0, |call| call.first_access);
        if self.accesses.len() - outermost >= self.max_accesses {
            self.open.iter_mut().for_each(|call| call.dropped += 1);
            return;
        }
        self.accesses.push(Access { pc: site.pc, address, size_bytes, kind, value });
    }

    /// A `call` stored its return address (x86).
    pub(crate) fn called(&mut self, slot: u64, return_pc: u64) {
        if self.is_recording() {
            self.tracker.called(slot, return_pc);
            self.close_ended();
        }
    }

    /// A `ret` loaded its target (x86).
    pub(crate) fn returned(&mut self, slot: u64, target: Option<u64>) {
        if self.is_recording() {
            self.tracker.returned(slot, target);
            self.close_ended();
        }
    }

    /// A signal handler begins.
    pub(crate) fn begin_handler(&mut self) {
        if self.tracker.is_inside() {
            self.handlers.push(self.last);
        }
    }

    /// A signal handler returns.
    pub(crate) fn end_handler(&mut self) {
        if let Some(last) = self.handlers.pop() {
            self.last = last;
        }
    }

    /// A signal handler is left by `longjmp`.
    pub(crate) fn leave_handlers(&mut self) {
        self.handlers.clear();
    }

    /// Ends every open call.
    pub(crate) fn end_all(&mut self, how: CallEnd) {
        self.handlers.clear();
        self.tracker.end_all(how);
        self.close_ended();
    }

    fn close_ended(&mut self) {
        if !self.tracker.has_ended() {
            return;
        }
        for end in self.tracker.take_ended() {
            let Some(call) = self.open.pop() else { continue };
            self.close(call, end);
        }
        if self.open.is_empty() {
            self.accesses.clear();
        }
    }

    fn close(&mut self, call: OpenCall, end: CallEnd) {
        let accesses = self.accesses.get(call.first_access..).unwrap_or_default();
        let granules: Vec<u64> = call.granules.into_iter().collect();
        let kept = self.encoder.call(&CallHead { end, ..call.head }, accesses, &granules);
        let was_cut = kept < accesses.len() || call.dropped > 0;
        if let Some(counts) = self.counts.get_mut(usize::from(call.head.region.0)) {
            counts.recorded += 1;
            counts.abandoned += u64::from(end == CallEnd::Abandoned);
            counts.unfinished += u64::from(end == CallEnd::Unfinished);
            counts.truncated += u64::from(was_cut);
        }
    }

    /// The flow of the block executed last.
    pub(crate) fn last_flow(&self) -> Option<Flow> {
        self.last.map(|block| block.facts.flow)
    }
}
