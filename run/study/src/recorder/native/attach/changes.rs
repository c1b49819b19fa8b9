//! Changes of a running program's code, made while all its threads stand still.

use crate::error::{Doing, Error, Result};
use crate::recorder::native::shared_memory::{Change, Memory};
use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::ptrace::{Registers, Tid};
use crate::recorder::native::tracee::threads::{Places, Process, Still, is_in};
use std::collections::BTreeSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::Acquire;
use std::time::{Duration, Instant};

/// The longest attempt to find all threads elsewhere.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest attempt to stop all threads once more: changes that are not taken back stay for good.
const LAST_PATIENCE: Duration = Duration::from_secs(60);
/// The part of each stack that is searched for handlers that return into changed code.
const MOST_WORDS: usize = 1 << 13;

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
                write(&code, &changes)?;
                Traps::of(memory).into_iter().for_each(|traps| traps.unblock(&still, &code));
                return Ok(());
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
                // Code that could be written once can be written again.
                let _ = code.write_all_at(&made.old, made.at);
            }
            return Err(error).doing("changing the process's code");
        }
    }
    Ok(())
}

/// Takes all changes back that are still there, while all threads stand still but the engine's own: what was unmapped
/// since, or is as it was, is left alone. `code` is where the engine's code lies. The threads whose signals are not yet
/// settled, see [`Traps`].
pub(super) fn take_back(
    process: &Process,
    memory: &Memory,
    (own, engine): (Tid, &[Range<u64>]),
) -> Result<BTreeSet<Tid>> {
    let changes = memory.changes();
    let code = process.memory().doing("opening the process's memory")?;
    let begun = Instant::now();
    while begun.elapsed() < LAST_PATIENCE {
        let Some(still) = process.stop(Some(own)) else { continue };
        for change in changes.iter().rev() {
            let mut there = vec![0; change.new.len()];
            if code.read_exact_at(&mut there, change.at).is_ok() && there == change.new {
                code.write_all_at(&change.old, change.at).doing("restoring the process's code")?;
            }
        }
        let Some(traps) = Traps::of(memory) else { return Ok(BTreeSet::new()) };
        let unsettled = still.iter().filter(|one| !traps.settle(one, &code, engine));
        return Ok(unsettled.map(|one| one.tid).collect());
    }
    Err(Error::Start(
        "the threads of the process do not stop; its code still leads to the engine, which is off".into(),
    ))
}

/// The threads' state with regard to traps in the program's code. The kernel must not block SIGTRAP in any thread while
/// traps may stand there; the engine's words of each thread say where the program blocks it.
pub(super) struct Traps {
    /// Distance of that word from a thread's base.
    word: u64,
}

impl Traps {
    const BIT: u64 = 1 << (libc::SIGTRAP - 1);

    /// `None` when there are no traps.
    pub(super) fn of(memory: &Memory) -> Option<Traps> {
        let slot = memory.control().trap_slot.load(Acquire);
        (slot != 0).then(|| Traps { word: memory.control().slots.load(Acquire).wrapping_add(slot) })
    }

    /// Has no thread block the signal.
    fn unblock(&self, still: &[Still], memory: &File) {
        for one in still {
            let (Some(registers), Ok(mask)) = (one.registers(), ptrace::blocked(one.tid)) else { continue };
            let word = registers.base.wrapping_add(self.word);
            if mask & Traps::BIT != 0 && memory.write_all_at(&1u64.to_le_bytes(), word).is_ok() {
                let _ = ptrace::set_blocked(one.tid, mask & !Traps::BIT);
            }
        }
    }

    /// Once no trap stands in the program's code: has a thread block the signal if the program does there. False when
    /// it has just met a trap, or is in the engine's code, such as its handler: what is blocked is decided when that
    /// returns.
    pub(super) fn settle(&self, still: &Still, memory: &File, engine: &[Range<u64>]) -> bool {
        let (Some(registers), Ok(mask)) = (still.registers(), ptrace::blocked(still.tid)) else {
            return true;
        };
        let is_in_handler = is_in(engine, registers.rip) || returns_from_handler(&registers, memory);
        if still.has_met(libc::SIGTRAP) || is_in_handler {
            return false;
        }
        let (word, mut blocks) = (registers.base.wrapping_add(self.word), [0; 8]);
        if memory.read_exact_at(&mut blocks, word).is_ok() && blocks != [0; 8] {
            let _ = memory.write_all_at(&[0; 8], word);
            let _ = ptrace::set_blocked(still.tid, mask | Traps::BIT);
        }
        true
    }
}

/// True when a thread is about to return from a handler: the kernel then restores the mask in the handler's frame.
fn returns_from_handler(registers: &Registers, memory: &File) -> bool {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    const MOVE: [u8; 7] = [0x48, 0xc7, 0xc0, libc::SYS_rt_sigreturn as u8, 0, 0, 0];
    let mut code = [0; MOVE.len()];
    let is_read = memory.read_exact_at(&mut code, registers.rip).is_ok();
    is_read && (code == MOVE || code.starts_with(&SYSCALL) && registers.rax == libc::SYS_rt_sigreturn as u64)
}

/// A change that is still there, in words; `None` when all were taken back. A jump into memory that is about to go
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
