//! The ends of calls of regions, and their records.

use super::open_call::OpenCall;
use super::state::Thread;
use crate::thinning::Thinning;
use lineup_model::access::CallEnd;
use lineup_recording::CallHead;
use std::collections::BTreeSet;

impl<Own> Thread<Own> {
    pub(super) fn close_ended(&mut self) {
        if !self.tracker.has_ended() {
            return;
        }
        for end in self.tracker.take_ended() {
            self.was_left |= end == CallEnd::Abandoned;
            let Some(call) = self.open.pop() else { continue };
            self.close(call, end);
        }
        if self.open.is_empty() {
            self.accesses.clear();
            self.times.clear();
            self.thinning = Thinning::default();
            self.binding = None;
        }
    }

    fn close(&mut self, call: OpenCall, end: CallEnd) {
        let region = usize::from(call.head.region.0);
        let (now, before) = (self.counted, call.before);
        let head = CallHead {
            end,
            instructions: now.instructions.wrapping_sub(before.instructions),
            binding_instructions: now.binding_instructions - before.binding_instructions,
            missed_blocks: now.missed_blocks - before.missed_blocks,
            ..call.head
        };
        if let Some(sizes) = self.sizes.get_mut(region).filter(|_| end != CallEnd::Unfinished) {
            sizes.add(head.instructions);
        }
        self.open_kept -= usize::from(call.kept);
        if call.kept {
            self.pack(&call, &head);
        }
        if let Some(outer) = self.open.last_mut().filter(|_| self.open_kept > 0) {
            merge(&mut outer.granules, call.granules);
        }
    }

    /// A call that goes into the recording has ended.
    fn pack(&mut self, call: &OpenCall, head: &CallHead) {
        self.has_packed_call = true;
        let accesses = self.accesses.get(call.first_access..).unwrap_or_default();
        let granules: Vec<u64> = call.granules.iter().copied().collect();
        let times = if self.open.is_empty() { self.times.as_slice() } else { &[] };
        let kept = self.encoder.call(head, accesses, &granules, times);
        let was_cut = kept < accesses.len() || self.dropped(call) > 0;
        let (region, end) = (usize::from(head.region.0), head.end);
        if let Some(counts) = self.counts.get_mut(region) {
            counts.count_end(end);
            counts.truncated += u64::from(was_cut);
        }
    }
}

/// Adds the smaller set to the larger one.
fn merge(all: &mut BTreeSet<u64>, mut others: BTreeSet<u64>) {
    if others.len() > all.len() {
        std::mem::swap(all, &mut others);
    }
    all.extend(others);
}
