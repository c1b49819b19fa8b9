//! The tasks of a whole system, and which of them a CPU worked for when; and where calls lie in the order of events.

use crate::varint::{Cursor, put, put_bytes};
use lineup_model::region::RegionId;
use std::ops::RangeInclusive;

/// A task of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelTask {
    /// Its number in the recording, from 0.
    pub number: u32,
    /// The lowest address of its stack.
    pub stack: u64,
    /// The number that the kernel gives it; `None` where it was not read.
    pub pid: Option<u32>,
    /// The kernel's name for it, as last read; empty where it was not read.
    pub name: String,
}

/// From a position in the order of events on, a CPU worked for this task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Turn {
    /// The CPU.
    pub cpu: u32,
    /// The position.
    pub at: u64,
    /// The task's number; `None` before the CPU's first switch of tasks.
    pub task: Option<u32>,
    /// It ran a hardware interrupt meanwhile, which is for whomever it interrupted.
    pub in_interrupt: bool,
}

/// Positions in the order of events that a window of a whole system covers, as a power of two: accesses of all CPUs
/// together.
const WINDOW_BITS: u32 = 13;

/// The window that a position in the order of events of a whole system is in.
pub fn window_of(at: u64) -> u64 {
    at >> WINDOW_BITS
}

/// The position of a measured call in the order of events of all CPUs. Only for calls that lie wholly in kept windows
/// of that order, and in which no other task ran.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Reach {
    /// The CPU that ended it.
    pub cpu: u32,
    /// The position at which it was entered.
    pub from: u64,
    /// The position at its end.
    pub to: u64,
    /// Its region.
    pub region: RegionId,
    /// Its number among the region's calls.
    pub sequence: u64,
    /// Interrupts and exceptions that it ran in.
    pub level: u32,
    /// Instructions that it executed, as [`crate::MeasuredCall`] counts them.
    pub instructions: u64,
}

impl Reach {
    /// The windows that it lies in.
    pub fn windows(&self) -> RangeInclusive<u64> {
        window_of(self.from)..=window_of(self.to.saturating_sub(1).max(self.from))
    }
}

/// Packs a task.
pub(crate) fn put_task(out: &mut Vec<u8>, task: &KernelTask) {
    put(out, u64::from(task.number));
    put(out, task.stack);
    put(out, task.pid.map_or(0, |pid| u64::from(pid) + 1));
    put_bytes(out, task.name.as_bytes());
}

/// Reads [`put_task`] back.
pub(crate) fn task(cursor: &mut Cursor<'_>) -> Option<KernelTask> {
    Some(KernelTask {
        number: u32::try_from(cursor.int()?).ok()?,
        stack: cursor.int()?,
        pid: optional(cursor)?,
        name: cursor.text()?,
    })
}

/// Packs a turn.
pub(crate) fn put_turn(out: &mut Vec<u8>, turn: &Turn) {
    put(out, u64::from(turn.cpu));
    put(out, turn.at);
    put(out, turn.task.map_or(0, |task| u64::from(task) + 1));
    out.push(u8::from(turn.in_interrupt));
}

/// Reads [`put_turn`] back.
pub(crate) fn turn(cursor: &mut Cursor<'_>) -> Option<Turn> {
    Some(Turn {
        cpu: u32::try_from(cursor.int()?).ok()?,
        at: cursor.int()?,
        task: optional(cursor)?,
        in_interrupt: match cursor.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        },
    })
}

/// Packs where a call lies.
pub(crate) fn put_reach(out: &mut Vec<u8>, reach: &Reach) {
    put(out, u64::from(reach.cpu));
    put(out, reach.from);
    put(out, reach.to);
    put(out, u64::from(reach.region.0));
    put(out, reach.sequence);
    put(out, u64::from(reach.level));
    put(out, reach.instructions);
}

/// Reads [`put_reach`] back.
pub(crate) fn reach(cursor: &mut Cursor<'_>) -> Option<Reach> {
    Some(Reach {
        cpu: u32::try_from(cursor.int()?).ok()?,
        from: cursor.int()?,
        to: cursor.int()?,
        region: RegionId(u16::try_from(cursor.int()?).ok()?),
        sequence: cursor.int()?,
        level: u32::try_from(cursor.int()?).ok()?,
        instructions: cursor.int()?,
    })
}

/// A number that was packed one higher, or 0 for none.
pub(crate) fn optional(cursor: &mut Cursor<'_>) -> Option<Option<u32>> {
    cursor.int()?.checked_sub(1).map_or(Some(None), |number| u32::try_from(number).ok().map(Some))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_and_turns_read_back_and_damage_is_noticed() {
        for pid in [None, Some(0), Some(u32::MAX)] {
            let example = KernelTask { number: 7, stack: 0xffff_c900_0000_4000, pid, name: "gzip".into() };
            let mut out = Vec::new();
            put_task(&mut out, &example);
            assert_eq!(task(&mut Cursor::new(&out)), Some(example));
            for end in 0..out.len() {
                assert_eq!(task(&mut Cursor::new(&out[..end])), None, "{end}");
            }
            let example = Turn { cpu: 3, at: 1 << 40, task: pid, in_interrupt: pid.is_some() };
            let mut out = Vec::new();
            put_turn(&mut out, &example);
            assert_eq!(turn(&mut Cursor::new(&out)), Some(example));
            for end in 0..out.len() {
                assert_eq!(turn(&mut Cursor::new(&out[..end])), None, "{end}");
            }
            let (from, region) = (1 << 50, RegionId(300));
            let example =
                Reach { cpu: 1, from, to: from + 5, region, sequence: 1 << 33, level: 2, instructions: 9 };
            let mut out = Vec::new();
            put_reach(&mut out, &example);
            assert_eq!(reach(&mut Cursor::new(&out)), Some(example));
            for end in 0..out.len() {
                assert_eq!(reach(&mut Cursor::new(&out[..end])), None, "{end}");
            }
        }
    }
}
