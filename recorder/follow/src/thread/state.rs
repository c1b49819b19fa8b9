//! The state of one guest thread: its open calls and the memory that they touched. Only callbacks of that thread feed
//! it, so no part of it is shared.

use super::open_call::{Binding, Counted, OpenCall};
use crate::blocks::{Block, Site, Special};
use crate::flow::Flow;
use crate::thinning::Thinning;
use crate::tracker::{CallSite, Tracker};
use lineup_model::access::{Access, AccessKind, Arguments, CallEnd, ProcessId, ThreadId, TimeMark};
use lineup_model::process::AddressSpace;
use lineup_model::region::RegionId;
use lineup_recording::{CallHead, CallSizes, Encoder, RegionCounts};
use std::collections::BTreeSet;
use std::time::Instant;

/// Accesses of a long call where several threads run: as many as a recording keeps of a call when each has a time.
const MOST_IN_WINDOWS: usize = 1 << 17;

/// A thread's options in this run.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// The return address lies in memory.
    pub uses_slots: bool,
    /// Every call instruction is seen, so that all open calls are known.
    pub keeps_all_sites: bool,
    /// Every call of a region is followed, recorded or not, and its size counted.
    pub counts_sizes: bool,
    /// The number of regions.
    pub regions: usize,
    /// Accesses kept at most for a call.
    pub max_accesses: usize,
    /// Address space of its addresses.
    pub space: AddressSpace,
}

/// One guest thread.
pub struct Thread<Own = ()> {
    /// The follower's own data of the thread.
    pub own: Own,
    /// Its number.
    pub id: ThreadId,
    pub(super) manner: Manner,
    /// The open calls.
    pub tracker: Tracker,
    /// The block executed last, among those with a callback.
    pub last: Option<&'static Block>,
    /// Calls seen that have not returned, outermost first: all where every block is watched, else only the last.
    pub(super) sites: Vec<(CallSite, &'static Block)>,
    /// Counts the calls seen to begin and to return.
    pub(super) site_changes: u64,
    /// The region that was reached last outside of recorded calls, and the value of `site_changes` at that time.
    pub(super) reached: Option<(u16, u64)>,
    /// The blocks left waiting by signal handlers that interrupted a recorded call.
    pub(super) handlers: Vec<Option<&'static Block>>,
    pub(super) open: Vec<OpenCall>,
    /// The number of calls in `open` that go into the recording.
    pub(super) open_kept: usize,
    pub(super) counted: Counted,
    pub(super) binding: Option<Binding>,
    pub(super) accesses: Vec<Access>,
    /// The times of some of them.
    pub(super) times: Vec<TimeMark>,
    /// The last reading of the clock, before the next access.
    pub(super) time: Option<u64>,
    /// Other threads run, too: windows of time are kept of a long call, the same in all threads.
    pub keeps_windows: bool,
    pub(super) thinning: Thinning,
    /// Counts block executions, to distinguish pieces of one access from accesses of another turn.
    pub(super) turn: u64,
    pub(super) last_access_turn: u64,
    /// Set between the entry of `free` and the load of the chunk header.
    pub awaits_chunk: bool,
    /// Whether the record of its stack was written.
    pub has_stack: bool,
    /// Times that control went through blocks without callback inside a call, or left it so.
    pub gaps: u64,
    /// A call was left without a return since the last block began.
    pub was_left: bool,
    /// A call went into the encoder since this was last cleared.
    pub has_packed_call: bool,
    /// The last seen value of the shared counter of blocks without watch.
    pub unwatched_seen: u64,
    /// True when this thread is counted among those inside a region.
    pub is_counted_inside: bool,
    /// Instructions executed in blocks with a callback.
    pub instructions: u64,
    /// Counts of its calls, by region.
    pub counts: Vec<RegionCounts>,
    /// Sizes of all calls, where they are counted.
    pub sizes: Vec<CallSizes>,
    /// Packs its calls.
    pub encoder: Encoder,
    /// When its records were last written.
    pub written_at: Instant,
}

/// Data of a region's entry from outside the thread.
pub struct RegionEntry {
    /// Position among all calls of the region.
    pub sequence: u64,
    /// Position in the order of events.
    pub at: u64,
    /// The process that calls.
    pub process: ProcessId,
    /// It goes into the recording; otherwise it is followed for its size alone.
    pub kept: bool,
    /// Its arguments in registers.
    pub arguments: Option<Arguments>,
}

impl<Own> Thread<Own> {
    /// A thread that has executed nothing yet.
    pub fn new(id: ThreadId, manner: Manner, own: Own) -> Self {
        Thread {
            own,
            id,
            manner,
            tracker: Tracker::new(manner.uses_slots),
            last: None,
            sites: Vec::new(),
            site_changes: 0,
            reached: None,
            handlers: Vec::new(),
            open: Vec::new(),
            open_kept: 0,
            counted: Counted::default(),
            binding: None,
            accesses: Vec::new(),
            times: Vec::new(),
            time: None,
            keeps_windows: false,
            thinning: Thinning::default(),
            turn: 0,
            last_access_turn: 0,
            awaits_chunk: false,
            has_stack: false,
            gaps: 0,
            was_left: false,
            has_packed_call: false,
            unwatched_seen: 0,
            is_counted_inside: false,
            instructions: 0,
            counts: vec![RegionCounts::default(); manner.regions],
            sizes: vec![CallSizes::default(); if manner.counts_sizes { manner.regions } else { 0 }],
            encoder: Encoder::of(manner.space),
            written_at: Instant::now(),
        }
    }

    /// The same thread in a process that was just forked: its past belongs to the other process.
    pub fn forked(&mut self, id: ThreadId, own: Own) {
        let mut fresh = Thread::new(id, self.manner, own);
        fresh.last = self.last;
        fresh.sites = std::mem::take(&mut self.sites);
        fresh.is_counted_inside = self.is_counted_inside;
        *self = fresh;
    }

    /// True while accesses belong to a recorded call.
    pub fn is_recording(&self) -> bool {
        self.tracker.is_inside() && self.handlers.is_empty()
    }

    /// True while accesses go into the recording.
    pub fn keeps_accesses(&self) -> bool {
        self.open_kept > 0 && self.handlers.is_empty() && self.binding.is_none()
    }

    /// True while a signal handler runs that interrupted a recorded call.
    pub fn is_in_handler(&self) -> bool {
        !self.handlers.is_empty()
    }

    /// The call that leads to the entry control is at, with the block that made it.
    pub fn call_site(&self) -> Option<(CallSite, &'static Block)> {
        self.sites.last().copied()
    }

    /// A call instruction was executed.
    pub fn push_site(&mut self, site: CallSite, block: &'static Block) {
        self.site_changes += 1;
        if !self.manner.keeps_all_sites {
            self.sites.clear();
        }
        if let Some(slot) = site.slot {
            // The stack grows down: calls at or below the new slot have been left.
            while self.sites.last().is_some_and(|(open, _)| open.slot.is_some_and(|open| open <= slot)) {
                self.sites.pop();
            }
        }
        // Endless recursion would grow this without end. The oldest sites are never needed.
        if self.sites.len() >= 1 << 16 {
            self.sites.drain(..1 << 15);
        }
        self.sites.push((site, block));
    }

    /// A return instruction loaded from `slot` (x86), or control came back to `return_pc` (Arm).
    pub fn pop_site(&mut self, slot: Option<u64>, return_pc: Option<u64>) {
        self.site_changes += 1;
        let matches = |site: &CallSite| match slot {
            Some(slot) => site.slot == Some(slot),
            None => Some(site.return_pc) == return_pc,
        };
        // Returns match the innermost call, except after unwinding, which leaves few levels.
        let near = self.sites.iter().rev().take(64).position(|(site, _)| matches(site));
        if let Some(above) = near.filter(|_| self.manner.keeps_all_sites) {
            self.sites.truncate(self.sites.len() - above - 1);
        }
    }

    /// Whether the call that leads to a region's entry, outside of recorded calls, has already led to one of the same
    /// region: then control jumped there, as from a function's beginning to the rest of it.
    pub fn was_reached(&mut self, region: u16) -> bool {
        let now = (region, self.site_changes);
        !self.is_recording() && self.reached.replace(now) == Some(now)
    }

    /// A block begins. Control came from [`Thread::last`] when `is_next`; else blocks ran in between that have no
    /// callback. `in_function` says whether an instruction belongs to the block's function. `is_middle` says whether
    /// the block lies in the middle of another function than the one at an address, where only landings lead.
    pub fn step(
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
            self.follow_binding(previous, block);
            if self.tracker.may_land(previous.facts.flow, block.facts.start)
                && !self.tracker.land_at(block.facts.start)
                && is_middle(previous.facts.start)
            {
                self.tracker.land_in(in_function);
            }
            if self.tracker.is_inside() {
                self.tracker.step(previous.facts, block.facts.start);
            }
        } else {
            self.step_over_gap(previous.facts.flow);
        }
        self.close_ended();
    }

    /// Blocks without a callback ran.
    fn step_over_gap(&mut self, previous: Flow) {
        let is_lost = self.tracker.is_leaving() || self.tracker.lost_return(previous);
        self.gaps += u64::from(is_lost);
        if self.tracker.gap_is_inside(previous) {
            self.miss();
        }
    }

    /// A block ran inside whose accesses were not observed.
    pub fn miss(&mut self) {
        self.gaps += 1;
        self.counted.missed_blocks += 1;
    }

    /// A region's entry was reached; `entry` is made when the call is to be recorded, with the data of the thread's
    /// follower.
    pub fn enter(
        &mut self,
        region: u16,
        site: Option<CallSite>,
        entry: impl FnOnce(&mut Own) -> Option<RegionEntry>,
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
        let Some(RegionEntry { sequence, at, process, kept, arguments }) = entry(&mut self.own) else {
            return;
        };
        let depth = self.tracker.depth_of(region);
        self.tracker.enter(region, site);
        let head = CallHead {
            region: RegionId(region),
            process,
            thread: self.id,
            sequence,
            entered_at: at,
            end: CallEnd::Unfinished,
            depth,
            instructions: 0,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments,
        };
        let first_access = self.accesses.len();
        if let (true, Some(cycles)) = (self.open.is_empty(), self.time) {
            self.times.push(TimeMark { access: 0, cycles });
        }
        self.open_kept += usize::from(kept);
        self.open.push(OpenCall {
            head,
            first_access,
            before: self.counted,
            granules: BTreeSet::new(),
            kept,
        });
    }

    /// Counts a block that is executed inside.
    pub fn execute(&mut self, block: &'static Block) {
        match block.special {
            Some(Special::SetJump) => self.tracker.set_landing(),
            Some(Special::Leave(kind)) => self.tracker.begin_leaving(kind),
            _ => {}
        }
        // The emulator executes a repeated string instruction once for each element: first at the end of the block that
        // led to it, then as a block of its own. It counts as one instruction.
        if block.repeats && self.last.is_some_and(|last| last.facts.end == block.facts.end) {
            return;
        }
        self.turn += 1;
        if self.binding.is_some() {
            self.counted.binding_instructions += block.instructions;
            return;
        }
        self.counted.instructions += block.instructions;
        if let Some(call) = self.open.last_mut().filter(|_| self.open_kept > 0) {
            call.granules.extend(block.granules.iter().copied());
        }
    }

    /// The number of a call's accesses that were not kept until now.
    pub(super) fn dropped(&self, call: &OpenCall) -> u64 {
        self.counted.dropped - call.before.dropped
    }

    /// Adds an access to all open calls; pieces of one access become one.
    pub fn touch(
        &mut self,
        site: &Site,
        address: u64,
        size_bytes: u32,
        kind: AccessKind,
        value: Option<u64>,
    ) {
        let first = self.open.last().map_or(0, |call| call.first_access);
        if !site.multiple
            && self.last_access_turn == self.turn
            && self.open.last().is_some_and(|call| self.dropped(call) == 0)
            && join(self.accesses.get_mut(first..).unwrap_or_default(), site.pc, address, size_bytes, kind)
        {
            return;
        }
        self.last_access_turn = self.turn;
        if self.keeps_windows && self.is_thinned() {
            return;
        }
        let outermost = self.open.first().map_or(0, |call| call.first_access);
        if self.accesses.len() - outermost >= self.manner.max_accesses {
            self.counted.dropped += 1;
            return;
        }
        self.accesses.push(Access { pc: site.pc, address, size_bytes, kind, value });
    }

    /// Whether an access is left out so that windows of time remain: the thread has one open call, and a clock.
    fn is_thinned(&mut self) -> bool {
        let ([_], Some(time)) = (self.open.as_slice(), self.time) else { return false };
        if self.accesses.len() >= MOST_IN_WINDOWS {
            let before = self.accesses.len();
            self.thinning.thin(&mut self.accesses, &mut self.times, MOST_IN_WINDOWS / 2);
            self.counted.dropped += (before - self.accesses.len()) as u64;
        }
        let is_left_out = !self.thinning.keeps(time);
        self.counted.dropped += u64::from(is_left_out);
        is_left_out
    }

    /// The clock was read: later accesses came after this time.
    pub fn see_time(&mut self, cycles: u64) {
        self.time = Some(cycles);
        let is_kept = self
            .open
            .first()
            .is_some_and(|call| call.kept && (self.dropped(call) == 0 || self.keeps_windows));
        let Some(access) = u32::try_from(self.accesses.len()).ok().filter(|_| is_kept) else { return };
        // Where no access is kept, the first and the last time suffice.
        if let [.., before, last] = self.times.as_mut_slice()
            && before.access == access
            && last.access == access
        {
            last.cycles = cycles;
            return;
        }
        self.times.push(TimeMark { access, cycles });
    }

    /// A `call` stored its return address (x86).
    pub fn called(&mut self, slot: u64, return_pc: u64) {
        if self.is_recording() {
            self.tracker.called(slot, return_pc);
            self.close_ended();
        }
    }

    /// A `ret` loaded its target (x86).
    pub fn returned(&mut self, slot: u64, target: Option<u64>) {
        if self.is_recording() {
            self.tracker.returned(slot, target);
            self.close_ended();
        }
    }

    /// A signal handler begins.
    pub fn begin_handler(&mut self) {
        if self.tracker.is_inside() {
            self.handlers.push(self.last);
        }
    }

    /// A signal handler returns.
    pub fn end_handler(&mut self) {
        if let Some(last) = self.handlers.pop() {
            self.was_left = false;
            self.last = last;
        }
    }

    /// A signal handler is left by `longjmp`.
    pub fn leave_handlers(&mut self) {
        self.handlers.clear();
    }

    /// Ends every open call.
    pub fn end_all(&mut self, how: CallEnd) {
        self.handlers.clear();
        self.binding = None;
        self.tracker.end_all(how);
        self.close_ended();
    }

    /// Control has left every open call without a return.
    pub fn leave_all(&mut self) {
        self.end_all(self.tracker.left());
    }

    /// The flow of the block executed last.
    pub fn last_flow(&self) -> Option<Flow> {
        self.last.map(|block| block.facts.flow)
    }
}

/// Adds a piece to an access of the same instruction that it continues upwards or downwards. The access is one of the
/// last two, since a string instruction loads and stores in turn. False without such an access.
fn join(accesses: &mut [Access], pc: u64, address: u64, size_bytes: u32, kind: AccessKind) -> bool {
    let own = accesses.iter_mut().rev().take(2).take_while(|access| access.pc == pc);
    for whole in own.filter(|access| access.kind == kind) {
        let is_above = whole.address.wrapping_add(u64::from(whole.size_bytes)) == address;
        let is_below = address.wrapping_add(u64::from(size_bytes)) == whole.address;
        if is_above || is_below {
            whole.address = if is_above { whole.address } else { address };
            whole.size_bytes = whole.size_bytes.saturating_add(size_bytes);
            whole.value = None;
            return true;
        }
    }
    false
}
