//! Changes of a running program's code, made while all its threads stand still.

use super::ptrace::{Registers, Tid};
use super::threads::{Places, Process, Still};
use crate::error::{Doing, Error, Result};
use crate::recorder::native::memory::Memory;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How long it is tried to find all threads elsewhere.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long it is tried to stop all threads once more: what is not taken back stays for good.
const LAST_PATIENCE: Duration = Duration::from_secs(60);
/// Of each stack so much is looked through for handlers that return into what is changed.
const MOST_WORDS: usize = 1 << 13;

/// A change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::recorder::native) struct Change {
    /// Where it is.
    pub(in crate::recorder::native) at: u64,
    /// What was there.
    pub(in crate::recorder::native) old: Vec<u8>,
    /// What is to be there.
    pub(in crate::recorder::native) new: Vec<u8>,
}

impl Change {
    /// Whether a thread that is there would go on in the middle of what is new.
    fn has_inside(&self, pc: u64) -> bool {
        self.at < pc && pc < self.at + self.new.len() as u64
    }
}

/// Makes all changes that the engine has listed while all threads stand still but the engine's own.
pub(super) fn make(process: &Process, memory: &Memory, own: Tid) -> Result<()> {
    let mut changes = memory.changes();
    changes.sort_by_key(|change| change.at);
    let is_inside = |pc: u64| {
        let after = changes.partition_point(|change| change.at <= pc);
        changes[..after].last().is_some_and(|change| change.has_inside(pc))
    };
    let code = process.memory().doing("opening the process's memory")?;
    let is_outside = |registers: &Registers, maps: &Places| {
        let returns = process.stack(&code, maps, registers.rsp).into_iter().take(MOST_WORDS);
        !std::iter::once(registers.rip).chain(returns).any(is_inside)
    };
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let maps = Places::of(&process.maps());
        if let Some(still) = process.stop(Some(own)) {
            let mut others = still.iter().filter_map(Still::registers);
            if others.all(|registers| is_outside(&registers, &maps)) {
                return write(&code, &changes);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let why = "the threads of the process were never all outside the code that is to be changed";
    Err(Error::Start(why.into()))
}

fn write(code: &File, changes: &[Change]) -> Result<()> {
    for (number, change) in changes.iter().enumerate() {
        if let Err(error) = code.write_all_at(&change.new, change.at) {
            for made in &changes[..number] {
                // What could be written can be written again.
                let _ = code.write_all_at(&made.old, made.at);
            }
            return Err(error).doing("changing the process's code");
        }
    }
    Ok(())
}

/// Takes all changes back that are still there, while all threads stand still but the engine's own: what was unmapped
/// since, or is as it was, is left alone.
pub(super) fn take_back(process: &Process, memory: &Memory, own: Tid) -> Result<()> {
    let changes = memory.changes();
    let code = process.memory().doing("opening the process's memory")?;
    let begun = Instant::now();
    while begun.elapsed() < LAST_PATIENCE {
        let Some(_still) = process.stop(Some(own)) else { continue };
        for change in changes.iter().rev() {
            let mut there = vec![0; change.new.len()];
            if code.read_exact_at(&mut there, change.at).is_ok() && there == change.new {
                code.write_all_at(&change.old, change.at).doing("restoring the process's code")?;
            }
        }
        return Ok(());
    }
    Err(Error::Start(
        "the threads of the process do not stop; its code still leads to the engine, which is off".into(),
    ))
}

/// A change that is still there, in words. None is when all were taken back: what leads to memory that is about to go
/// would end the process.
pub(super) fn left(process: &Process, memory: &Memory) -> Option<String> {
    let code = process.memory().ok()?;
    memory.changes().into_iter().find_map(|change| {
        let mut there = vec![0; change.new.len()];
        let is_there = code.read_exact_at(&mut there, change.at).is_ok() && there == change.new;
        is_there.then(|| format!("at {:#x} {:02x?} stands in place of {:02x?}", change.at, there, change.old))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_in_the_middle_of_a_jump_is_seen() {
        let change = Change { at: 100, old: vec![0; 5], new: vec![0xe9; 5] };
        let inside: Vec<u64> = (98..108).filter(|pc| change.has_inside(*pc)).collect();
        assert_eq!(inside, [101, 102, 103, 104]);
    }
}
