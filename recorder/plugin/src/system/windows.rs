//! Windows of the run with all kernel accesses of the virtual CPUs, each with its place in one order.

use super::lock::lock;
use lineup_model::access::{Access, CallEnd, ProcessId, ThreadId, TimeMark};
use lineup_model::region::RegionId;
use lineup_recording::{CallHead, Counts};
use std::collections::HashMap;
use std::sync::Mutex;

/// The windows that are kept.
#[derive(Default)]
pub(crate) struct Windows {
    decided: Mutex<HashMap<u64, bool>>,
}

impl Windows {
    /// Whether a window is kept: the first CPU that reaches it calls `decide`.
    pub(crate) fn keeps(&self, window: u64, decide: impl FnOnce() -> bool) -> bool {
        *lock(&self.decided).entry(window).or_insert_with(decide)
    }
}

/// The accesses of one CPU in a window on one level: in the task, or in an interrupt on top of it.
pub(crate) struct Piece {
    window: u64,
    /// Interrupts and exceptions under way.
    pub(crate) level: u32,
    /// A hardware interrupt is among them.
    pub(crate) in_interrupt: bool,
    /// The CPU's totals when it began.
    pub(crate) begun: Counts,
    pub(crate) accesses: Vec<Access>,
    times: Vec<TimeMark>,
    /// The position after the last access.
    next_at: u64,
}

impl Piece {
    pub(crate) fn new(window: u64, (level, in_interrupt): (u32, bool), begun: Counts) -> Piece {
        Piece { window, level, in_interrupt, begun, accesses: Vec::new(), times: Vec::new(), next_at: 0 }
    }

    /// Takes in an access that continues the last one, as those of a string instruction do.
    pub(crate) fn continues(&mut self, access: &Access) -> bool {
        let Some(last) = self.accesses.last_mut() else { return false };
        let end = last.address.wrapping_add(u64::from(last.size_bytes));
        let is_one = (last.pc, last.kind, end) == (access.pc, access.kind, access.address)
            && last.size_bytes < 1 << 20;
        last.size_bytes += if is_one { access.size_bytes } else { 0 };
        is_one
    }

    /// Takes an access in.
    pub(crate) fn add(&mut self, access: Access, at: u64) {
        let number = self.accesses.len() as u32;
        if number == 0 || at != self.next_at {
            if number > 0 {
                self.times.push(TimeMark { access: number, cycles: self.next_at });
            }
            self.times.push(TimeMark { access: number, cycles: at });
        }
        self.accesses.push(access);
        self.next_at = at + 1;
    }

    /// Its form in the recording.
    pub(crate) fn told(&self, region: RegionId, cpu: u16, instructions: u64) -> (CallHead, Vec<TimeMark>) {
        let head = CallHead {
            region,
            process: ProcessId(0),
            thread: ThreadId(u32::from(cpu)),
            sequence: self.window,
            entered_at: self.times.first().map_or(0, |first| first.cycles),
            end: CallEnd::Returned,
            depth: self.level,
            instructions,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: None,
        };
        let last = TimeMark { access: self.accesses.len() as u32, cycles: self.next_at };
        (head, self.times.iter().copied().chain([last]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::task::access;

    #[test]
    fn every_access_has_its_place_in_the_order_of_all() {
        let mut piece = Piece::new(3, (1, true), Counts::default());
        for at in [10, 11, 20, 21, 22] {
            piece.add(access(at, 8 * at, 4, false), at);
        }
        let (head, times) = piece.told(RegionId(2), 1, 50);
        assert_eq!((head.sequence, head.depth, head.entered_at, head.thread), (3, 1, 10, ThreadId(1)));
        let marks: Vec<(u32, u64)> = times.iter().map(|mark| (mark.access, mark.cycles)).collect();
        assert_eq!(marks, [(0, 10), (2, 12), (2, 20), (5, 23)]);
    }

    #[test]
    fn pieces_of_a_string_instruction_are_one_access() {
        let mut piece = Piece::new(0, (0, false), Counts::default());
        piece.add(access(1, 0x100, 8, true), 0);
        assert!(piece.continues(&access(1, 0x108, 8, true)));
        assert!(!piece.continues(&access(1, 0x108, 8, true)), "the same place again");
        assert_eq!(piece.accesses, [access(1, 0x100, 16, true)]);
    }

    #[test]
    fn a_window_is_decided_once_for_all_cpus() {
        let windows = Windows::default();
        assert!(windows.keeps(7, || true));
        assert!(windows.keeps(7, || panic!("it was decided")));
        assert!(!windows.keeps(8, || false));
    }
}
