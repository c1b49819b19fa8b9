//! The misses of code in one context of a whole system: a task on a CPU, or the interrupts of that CPU.

use super::header::Misses;
use super::tasks::optional;
use crate::varint::{Cursor, put, put_delta};

/// The kind of work that the kernel did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ContextKind {
    /// For a task: system calls, exceptions, and threads of the kernel's own.
    Task,
    /// From a hardware interrupt's entry to its return, whomever it interrupted.
    Interrupt,
}

/// Misses of a context, by instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Context {
    /// The CPU.
    pub cpu: u32,
    /// The task's number; `None` before the first switch of tasks, and of interrupts.
    pub task: Option<u32>,
    /// For whom.
    pub kind: ContextKind,
    /// Misses of fetches, by the runtime address of the first byte.
    pub code: Vec<(u64, Misses)>,
    /// Misses of loads and stores, by the runtime address of the instruction.
    pub data: Vec<(u64, Misses)>,
}

/// Packs a context.
pub(crate) fn put_context(out: &mut Vec<u8>, context: &Context) {
    put(out, u64::from(context.cpu));
    put(out, context.task.map_or(0, |task| u64::from(task) + 1));
    out.push(u8::from(context.kind == ContextKind::Interrupt));
    for all in [&context.code, &context.data] {
        put(out, all.len() as u64);
        let mut last = 0;
        for (pc, misses) in all {
            put_delta(out, last, *pc);
            put(out, misses.l1);
            put(out, misses.l2);
            last = *pc;
        }
    }
}

/// Reads [`put_context`] back.
pub(crate) fn context(cursor: &mut Cursor<'_>) -> Option<Context> {
    let cpu = u32::try_from(cursor.int()?).ok()?;
    let task = optional(cursor)?;
    let kind = match cursor.byte()? {
        0 => ContextKind::Task,
        1 => ContextKind::Interrupt,
        _ => return None,
    };
    Some(Context { cpu, task, kind, code: misses(cursor)?, data: misses(cursor)? })
}

fn misses(cursor: &mut Cursor<'_>) -> Option<Vec<(u64, Misses)>> {
    let mut last = 0;
    let all = (0..cursor.count(3)?).map(|_| {
        last = cursor.delta(last)?;
        Some((last, Misses { l1: cursor.int()?, l2: cursor.int()? }))
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_reads_back_and_damage_is_noticed() {
        let misses = |l1, l2| Misses { l1, l2 };
        let example = Context {
            cpu: 3,
            task: Some(u32::MAX),
            kind: ContextKind::Interrupt,
            code: vec![(u64::MAX, misses(5, 2)), (7, misses(1, 0))],
            data: vec![(0xffff_ffff_8100_0000, misses(9, 9))],
        };
        let mut out = Vec::new();
        put_context(&mut out, &example);
        assert_eq!(context(&mut Cursor::new(&out)), Some(example.clone()));
        for end in 0..out.len() {
            assert_eq!(context(&mut Cursor::new(&out[..end])), None, "{end}");
        }
        let other = Context { task: None, kind: ContextKind::Task, ..example };
        let mut out = Vec::new();
        put_context(&mut out, &other);
        assert_eq!(context(&mut Cursor::new(&out)), Some(other));
    }
}
