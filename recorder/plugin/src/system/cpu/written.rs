//! Output of a virtual CPU: ended calls, and its last words.

use super::super::shared::System;
use super::super::task::{CallDetail, EndedCall, Open};
use super::Cpu;
use lineup_model::access::{CallEnd, ProcessId, ThreadId};
use lineup_model::region::RegionId;
use lineup_recording::{CallHead, MeasuredCall, Reach, SystemSummary};

impl Cpu {
    /// Writes ended calls, and finds the call that is then open.
    #[inline(never)]
    pub(super) fn write(&mut self, system: &System, ended: Vec<EndedCall>) {
        if !ended.is_empty() {
            ended.into_iter().for_each(|call| self.write_one(system, call));
            system.flush_full(&mut self.encoder);
        }
        self.look_inside(system);
    }

    /// The same after a return: most end no call, and then the open calls have not changed.
    #[inline(always)]
    pub(super) fn write_returned(&mut self, system: &System, ended: Vec<EndedCall>) {
        if !ended.is_empty() {
            self.write(system, ended);
        }
    }

    fn write_one(&mut self, system: &System, EndedCall { open, end }: EndedCall) {
        self.encoder.measured(&MeasuredCall {
            region: RegionId(open.region),
            cpu: self.index,
            sequence: open.sequence,
            begun_at: open.begun_at,
            ended_at: self.processor.totals.instructions,
            from_pc: open.site.return_pc,
            to_pc: open.site.return_pc,
            end,
            arm: open.arm,
            own: open.own,
            interrupts: open.interrupts,
            interrupt_instructions: open.interrupt_instructions,
            switches: open.switches,
        });
        self.write_reach(system, &open);
        let Some(kept) = &open.kept else { return };
        if system.learns_code() {
            system.learn(open.region, &kept.granules);
        }
        if open.keeps_accesses {
            self.write_accesses(&open, end, kept);
        }
    }

    /// Writes the place of a call in the order of events, if all of that order is kept and nothing else ran on its
    /// level.
    fn write_reach(&mut self, system: &System, open: &Open) {
        let Some(windows) = system.kernel.windows.filter(|_| open.switches == 0) else { return };
        let reach = Reach {
            cpu: u32::from(self.index),
            from: open.entered_at,
            to: system.position(),
            region: RegionId(open.region),
            sequence: open.sequence,
            level: open.level,
            instructions: open.own.instructions,
        };
        if reach.windows().all(|window| system.keeps_window(windows, window)) {
            self.encoder.reach(&reach);
        }
    }

    fn write_accesses(&mut self, open: &Open, end: CallEnd, kept: &CallDetail) {
        let head = CallHead {
            region: RegionId(open.region),
            process: ProcessId(0),
            thread: ThreadId(u32::from(self.index)),
            sequence: open.sequence,
            entered_at: open.entered_at,
            end,
            depth: open.depth,
            instructions: open.own.instructions,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: open.arguments,
        };
        let granules: Vec<u64> = kept.granules.iter().copied().collect();
        let packed = self.encoder.call(&head, &kept.accesses, &granules, &[]);
        if let Some(counts) = self.counts.get_mut(usize::from(open.region)) {
            counts.count_end(end);
            counts.truncated += u64::from(kept.dropped > 0 || packed < kept.accesses.len());
        }
    }

    /// Closes open calls and adds this CPU to the summary.
    pub(crate) fn finish(&mut self, system: &System, summary: &mut SystemSummary) {
        if let Some(programs) = &system.programs {
            self.count_programs(programs);
        }
        let ended = self.task.end_all(CallEnd::Unfinished, &self.processor.totals);
        self.write(system, ended);
        system.kernel.windows.into_iter().for_each(|region| self.end_piece(system, region));
        self.running.look_again(&system.tasks);
        system.add_counts(&self.counts);
        summary.cpus.push(self.processor.totals);
        summary.interrupts += self.seen.interrupts;
        summary.interrupts_while_off += self.seen.interrupts_while_off;
        summary.exceptions += self.seen.exceptions;
        summary.flag = summary.flag.plus(&self.flag.counts);
        summary.unmatched_returns += self.seen.unmatched_returns;
        summary.switches += self.seen.switches;
    }
}
