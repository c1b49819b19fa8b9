//! A virtual CPU's accesses in windows of the run.

use super::super::shared::System;
use super::super::windows::Piece;
use super::Cpu;
use lineup_model::access::Access;
use lineup_model::region::RegionId;
use lineup_recording::{Arm, MeasuredCall, Turn, window_of};

impl Cpu {
    /// Keeps an access with its position in the order of all CPUs, in windows that are kept.
    pub(super) fn keep_in_window(&mut self, system: &System, region: RegionId, access: Access, info: u32) {
        if self.piece.as_mut().is_some_and(|piece| piece.continues(&access)) {
            return;
        }
        let at = system.tick();
        let (window, level) = (window_of(at), self.task.level());
        let is_new = self.window != Some(window);
        if self.piece.as_ref().is_some_and(|piece| is_new || piece.level != level) {
            self.end_piece(system, region);
        }
        let totals = self.processor.totals;
        if is_new {
            self.window = Some(window);
            self.keeps_window = system.keeps_window(region, window);
        }
        if self.keeps_window && system.physical(info, access.address).is_some() {
            let in_interrupt = self.task.is_in_interrupt();
            self.piece
                .get_or_insert_with(|| Piece::new(window, (level, in_interrupt), totals))
                .add(access, at);
        }
    }

    /// Puts the kept accesses of a window on one level into the recording, as a call.
    pub(super) fn end_piece(&mut self, system: &System, region: RegionId) {
        let Some(piece) = self.piece.take() else { return };
        let (totals, own) = (self.processor.totals, self.processor.totals.since(&piece.begun));
        let (head, times) = piece.told(region, self.index, own.instructions);
        let whom = (self.running.number(), piece.in_interrupt);
        if self.told.replace(whom) != Some(whom) {
            let (cpu, at) = (u32::from(self.index), head.entered_at);
            self.encoder.turn(&Turn { cpu, at, task: whom.0, in_interrupt: whom.1 });
        }
        let packed = self.encoder.call(&head, &piece.accesses, &[], &times);
        if let Some(counts) = self.counts.get_mut(usize::from(region.0)) {
            counts.count_end(head.end);
            counts.truncated += u64::from(packed < piece.accesses.len());
        }
        let pc = |access: Option<&Access>| access.map_or(0, |access| access.pc);
        self.encoder.measured(&MeasuredCall {
            region,
            cpu: self.index,
            sequence: head.sequence,
            begun_at: piece.begun.instructions,
            ended_at: totals.instructions,
            from_pc: pc(piece.accesses.first()),
            to_pc: pc(piece.accesses.last()),
            end: head.end,
            arm: Arm::Untouched,
            own,
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
        });
        system.flush_full(&mut self.encoder);
    }
}
