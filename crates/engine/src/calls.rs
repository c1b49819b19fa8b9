//! System calls of the program that the engine must know of: those of a thread in the cache, and those that map and unmap
//! memory, wherever they are made.

use crate::engine::{self, Engine};
use crate::gates::Registers;
use crate::handlers;
use crate::lock::Lock;
use crate::masks;
use crate::patch;
use crate::processes::{self, New};
use crate::slots::Slots;
use crate::system;
use crate::traps;
use lineup_recording::native::{record, word};
use std::sync::atomic::Ordering;

impl Engine {
    /// Memory is about to be unmapped. Other code may be mapped there later.
    fn notice_unmapped(&self, start: u64, bytes: u64) {
        if !self.is_on() {
            return;
        }
        let signals = system::block_signals();
        let range = start..start.saturating_add(bytes).checked_next_multiple_of(4096).unwrap_or(u64::MAX);
        self.code.with(|code| {
            if code.is_code(&range) {
                code.forget(self, &range);
            }
        });
        system::restore_signals(signals);
    }

    /// A file was mapped to be executed: entries may lie in it.
    fn notice_mapped(&self, protection: u64, file: u64, result: i64) {
        let is_code = protection & libc::PROT_EXEC as u64 != 0 && (file as i32) >= 0 && result > 0;
        if !is_code || !self.is_on() {
            return;
        }
        self.shared.word(word::MAPPED).fetch_add(1, Ordering::Release);
        let had_traps = traps::are_on();
        if self.shared.word(word::LOOKS_FOR_MORE).load(Ordering::Relaxed) != 0 {
            let signals = system::block_signals();
            LOOKING.with(|()| patch::more(self, signals));
            system::restore_signals(signals);
        }
        if had_traps {
            let signals = system::block_signals();
            LOOKING.with(|()| masks::lead(self, Some(result as u64)));
            system::restore_signals(signals);
        }
    }

    pub(crate) fn system_call(&self, slots: &mut Slots, registers: &mut Registers) -> u64 {
        match registers.rax as i64 {
            libc::SYS_munmap => self.notice_unmapped(registers.rdi, registers.rsi),
            // What was there is unmapped.
            libc::SYS_mmap if registers.r10 & libc::MAP_FIXED as u64 != 0 => {
                self.notice_unmapped(registers.rdi, registers.rsi);
            }
            _ => {}
        }
        slots.resume_pc = slots.pc - 2;
        let tick = self.shared.tick();
        let head = u64::from(record::SYSTEM_CALL) << 32;
        let r = &registers;
        self.log(slots, &[head, r.rax, r.rdi, r.rsi, r.rdx, r.r10, tick]);
        if self.whole.is_none() {
            self.log_time(slots);
        }
        self.commit(slots);
        let number = registers.rax as i64;
        let sets_mask = number == libc::SYS_rt_sigprocmask && traps::are_on();
        if number == libc::SYS_rt_sigaction || sets_mask {
            if sets_mask {
                traps::set_mask(registers)
            } else {
                handlers::set_handler(registers)
            }
            registers.rcx = slots.pc;
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc);
        }
        if registers.rax as i64 == libc::SYS_mmap && registers.rdx & libc::PROT_EXEC as u64 != 0 {
            map(self, registers);
            registers.rcx = slots.pc;
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc);
        }
        if registers.rax as i64 == libc::SYS_exit {
            // The thread ends here, and does not come back.
            self.hand_chunk_over(slots);
            self.retire(slots);
        }
        let new = processes::before_call(self, registers);
        if new == New::Copy
            && self.follows_forks()
            && let Some(resume) = self.fork(slots, registers)
        {
            return resume;
        }
        let signals = system::block_signals();
        let found = self.code.with(|code| code.calls.get(&slots.pc).copied());
        system::restore_signals(signals);
        match (found, new) {
            (Some(ways), New::Nothing) => ways.alone,
            (Some(ways), New::Sharing) => ways.shared,
            (Some(ways), New::Thread) => ways.begun,
            (Some(ways), New::Copy) => ways.forked,
            // The address of the instruction: two bytes before the next.
            (None, _) => self.lose(slots, slots.pc - 2),
        }
    }
}

/// From a system call of the C library that unmaps memory.
///
/// # Safety
/// Only from [`gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn unmap_from_site(registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    if let Some(engine) = engine::get() {
        engine.notice_unmapped(registers.rdi, registers.rsi);
    }
    // SAFETY: the program's own system call.
    registers.rax =
        unsafe { system::call(libc::SYS_munmap, [registers.rdi, registers.rsi, 0, 0, 0, 0]) } as u64;
}

/// From a system call of the C library or the loader that maps memory.
///
/// # Safety
/// Only from [`gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn map_from_site(registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    match engine::get() {
        Some(engine) => {
            if registers.r10 & libc::MAP_FIXED as u64 != 0 {
                engine.notice_unmapped(registers.rdi, registers.rsi);
            }
            map(engine, registers);
        }
        None => registers.rax = map_memory(registers) as u64,
    }
}

fn map_memory(r: &Registers) -> i64 {
    // SAFETY: the program's own system call.
    unsafe { system::call(libc::SYS_mmap, [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]) }
}

/// Maps memory for the program, and looks for entries in it.
fn map(engine: &Engine, registers: &mut Registers) {
    let result = map_memory(registers);
    registers.rax = result as u64;
    engine.notice_mapped(registers.rdx, registers.r8, result);
}

/// Held while entries are looked for in new files.
pub(crate) static LOOKING: Lock<()> = Lock::new(());
