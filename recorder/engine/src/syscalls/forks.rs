//! Processes that the program forks off, when all of them are counted: each has the code cache, the log and the counts
//! for itself before its first instruction.
//!
//! All other memory of the engine is a copy of the parent's, and lies at the same addresses. So addresses of the cache
//! and the state of interrupted calls stay valid. While the process is made no other thread holds a lock of the engine,
//! so the data behind the locks is consistent in the copy.

use crate::engine::Engine;
use crate::entries::code_changes;
use crate::entries::new_files::LOOKING;
use crate::machine::{HostRegisters, Registers};
use crate::shared::first_path;
use crate::signals::actions;
use crate::start::constructor;
use crate::syscalls::processes;
use crate::system::{self, File, allocator, holdings};
use crate::threads::slots::Slots;
use std::sync::atomic::Ordering;

/// The result of a fork, in the parent or in the child.
struct RegisterResult {
    result: i64,
    /// The code cache.
    copy: File,
    /// Words of definitions that it knows.
    definitions: u64,
    /// Code that continues natively after the system call.
    natively: u64,
}

impl Engine {
    /// Makes a process, and continues in both. `None` when nothing was done: then the process is made without the
    /// engine.
    pub(crate) fn fork(&self, slots: &mut Slots, registers: &mut HostRegisters) -> Option<u64> {
        let wanted = processes::Fork::read(registers)?;
        let path = first_path()?;
        let blocked = system::block_signals();
        let made = self.while_still(slots.pc, || wanted.make());
        let resume = made.map(|made| {
            registers.set_result(made.result as u64);
            registers.come_back(slots.pc);
            slots.resume_pc = slots.pc;
            if made.result != 0 {
                return self.find(slots, slots.pc);
            }
            if wanted.stack != 0 {
                slots.stack = wanted.stack;
            }
            match self.begin_fork(slots, &made, path) {
                Some(()) => self.find(slots, slots.pc),
                None => made.natively,
            }
        });
        system::restore_signals(blocked);
        resume
    }

    /// Makes a process while no other thread is in the middle of an operation.
    fn while_still(&self, next: u64, make: impl FnOnce() -> i64) -> Option<RegisterResult> {
        let whole = self.whole.as_ref()?;
        let under_locks = || {
            self.code.with(|code| {
                let natively = code.leave(self.slots, next)?;
                let copy = code.cache.copy()?;
                let definitions = self.shared.number_of_definitions();
                // From here on no code takes memory.
                let make = || whole.retired.with(|_| still_memory(make));
                Some(RegisterResult { result: make(), copy, definitions, natively })
            })
        };
        LOOKING.with(|()| code_changes::while_still(|| actions::while_still(under_locks)))
    }

    /// In the new process: replaces memory shared with the parent by its own. `None` when that fails: then the process
    /// runs natively, and uses none of it.
    fn begin_fork(&self, slots: &mut Slots, made: &RegisterResult, path: &[u8]) -> Option<()> {
        constructor::release_first_stack();
        self.code.with(|code| code.cache.replace(&made.copy))?;
        self.shared.part_from_parent(path, made.definitions)?;
        self.shared.introduce_fork().then_some(())?;
        self.begin_thread_again(slots)?;
        self.is_on.store(1, Ordering::Release);
        Some(())
    }

    /// Whether forked processes are counted.
    pub(crate) fn follows_forks(&self) -> bool {
        self.whole.is_some() && self.shared.control().follows_forks.load(Ordering::Relaxed) != 0
    }
}

/// Does some work while no thread takes or maps memory.
fn still_memory<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(not(miri))]
    return allocator::ALLOCATOR.while_still(|| holdings::while_still(work));
    #[cfg(miri)]
    holdings::while_still(work)
}
