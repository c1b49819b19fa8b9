//! System calls of the program that the engine must know of: those of a thread in the cache, and those that map and
//! unmap memory, made anywhere.

use crate::cache::blocks::Blocks;
use crate::engine::{self, Engine};
use crate::entries::new_files::{self, LOOKING};
use crate::entries::traps;
use crate::machine::{Abi, Host, HostRegisters, Registers};
use crate::signals::{handlers, masks};
use crate::syscalls::address_limits;
use crate::syscalls::guards::{self, After};
use crate::syscalls::processes::{self, New};
use crate::system;
use crate::threads::slots::Slots;
use lineup_recording::native::record;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Engine {
    /// Memory is about to be unmapped. Other code may be mapped there later.
    fn notice_unmapped(&self, start: u64, bytes: u64) {
        self.change_code(start, bytes, |code, range| code.forget(self, range));
    }

    /// Handles memory that replaces other memory, before or after the system call. It may hold the same bytes: programs
    /// copy their code into huge pages, or change it by replacing a page.
    fn notice_replaced(&self, start: u64, bytes: u64) {
        self.change_code(start, bytes, |code, range| code.forget_blocks(self, range));
    }

    /// Does some work where code lies in a range.
    fn change_code(&self, start: u64, bytes: u64, work: impl FnOnce(&mut Blocks, &Range<u64>)) {
        if !self.is_on() {
            return;
        }
        let signals = system::block_signals();
        let range = start
            ..start.saturating_add(bytes).checked_next_multiple_of(Host::page_bytes()).unwrap_or(u64::MAX);
        self.code.with(|code| {
            if code.is_code(&range) {
                work(code, &range);
            }
        });
        system::restore_signals(signals);
    }

    /// Memory was moved in place of other memory.
    fn notice_moved_over(&self, start: u64, bytes: u64) {
        self.change_code(start, bytes, |code, range| {
            code.forget_blocks(self, range);
            code.tell_replaced(self, range);
        });
    }

    /// Handles memory that is about to be mapped at an address in use.
    fn notice_fixed(&self, start: u64, bytes: u64, protection: u64, flags: u64) {
        if flags & libc::MAP_FIXED as u64 == 0 {
            return;
        }
        // A file that is mapped as executable holds code of its own.
        match flags & libc::MAP_ANONYMOUS as u64 == 0 && protection & libc::PROT_EXEC as u64 != 0 {
            true => self.notice_unmapped(start, bytes),
            false => self.notice_replaced(start, bytes),
        }
    }

    /// A file was mapped as executable: entries may lie in it.
    fn notice_mapped(&self, protection: u64, file: u64, result: i64) {
        let is_code = protection & libc::PROT_EXEC as u64 != 0 && (file as i32) >= 0 && result > 0;
        if !is_code || !self.is_on() || system::is_sealed() {
            return;
        }
        self.shared.control().mapped.fetch_add(1, Ordering::Release);
        let had_traps = traps::are_on();
        if self.shared.control().looks_for_more.load(Ordering::Relaxed) != 0 {
            let signals = system::block_signals();
            LOOKING.with(|()| new_files::more(self, signals));
            system::restore_signals(signals);
        }
        let signals = system::block_signals();
        LOOKING.with(|()| guards::lead(self, Some(result as u64)));
        system::restore_signals(signals);
        if had_traps {
            let signals = system::block_signals();
            LOOKING.with(|()| masks::lead(self, Some(result as u64)));
            system::restore_signals(signals);
        }
    }

    pub(crate) fn system_call(&self, slots: &mut Slots, registers: &mut HostRegisters) -> u64 {
        let number = registers.call();
        let [first, second, third, fourth, ..] = registers.arguments();
        match number {
            libc::SYS_munmap => self.notice_unmapped(first, second),
            // The call unmaps the memory that was there.
            libc::SYS_mmap => self.notice_fixed(first, second, third, fourth),
            _ => {}
        }
        slots.resume_pc = slots.pc - Host::SYSTEM_CALL_BYTES;
        if self.ends_burst_before(slots, number) {
            return self.lose(slots, slots.pc - Host::SYSTEM_CALL_BYTES);
        }
        let tick = self.shared.tick();
        let head = u64::from(record::SYSTEM_CALL) << 32;
        self.log(slots, &[head, number as u64, first, second, third, fourth, tick]);
        if self.whole.is_none() {
            self.log_time(slots);
        }
        self.commit(slots);
        if guards::watch(number) && guards::before(self, registers, 1) == After::Natively {
            return self.lose(slots, slots.pc - Host::SYSTEM_CALL_BYTES);
        }
        if address_limits::watch(number) {
            registers.set_result(address_limits::make(self, registers) as u64);
            registers.come_back(slots.pc);
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc);
        }
        let sets_mask = number == libc::SYS_rt_sigprocmask && traps::are_on();
        if number == libc::SYS_rt_sigaction || sets_mask {
            if sets_mask {
                traps::set_mask(registers)
            } else {
                handlers::set_handler(registers)
            }
            registers.come_back(slots.pc);
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc);
        }
        let maps_code = number == libc::SYS_mmap && third & libc::PROT_EXEC as u64 != 0;
        if maps_code || number == libc::SYS_mremap {
            if maps_code {
                map(self, registers);
            } else {
                remap(self, registers);
                if self.whole.is_none() {
                    self.log_time(slots);
                }
            }
            registers.come_back(slots.pc);
            slots.resume_pc = slots.pc;
            return self.find(slots, slots.pc);
        }
        if number == libc::SYS_exit {
            // The thread ends here, and does not return.
            self.finish_burst(slots);
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
            (None, _) => self.lose(slots, slots.pc - Host::SYSTEM_CALL_BYTES),
        }
    }
}

/// From a system call of the C library that unmaps memory.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn unmap_from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    let [start, bytes, ..] = registers.arguments();
    if let Some(engine) = engine::get() {
        engine.notice_unmapped(start, bytes);
    }
    // SAFETY: the program's own system call.
    let result = unsafe { system::call(libc::SYS_munmap, [start, bytes, 0, 0, 0, 0]) };
    registers.set_result(result as u64);
}

/// From a system call of the C library or the loader that maps memory.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn map_from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    match engine::get() {
        Some(engine) => {
            let [start, bytes, protection, flags, ..] = registers.arguments();
            engine.notice_fixed(start, bytes, protection, flags);
            map(engine, registers);
            // Another thread may have read the old memory until then.
            if flags & libc::MAP_FIXED as u64 != 0 && protection & libc::PROT_EXEC as u64 == 0 {
                engine.notice_replaced(start, bytes);
            }
        }
        None => registers.set_result(program_call(libc::SYS_mmap, registers) as u64),
    }
}

/// From a system call of the C library that moves memory.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn remap_from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    match engine::get() {
        Some(engine) => remap(engine, registers),
        None => registers.set_result(program_call(libc::SYS_mremap, registers) as u64),
    }
}

fn program_call(number: i64, registers: &HostRegisters) -> i64 {
    // SAFETY: the program's own system call.
    unsafe { system::call(number, registers.arguments()) }
}

/// Moves memory for the program, or makes it larger or smaller.
fn remap(engine: &Engine, registers: &mut HostRegisters) {
    let [from, old_bytes, bytes, flags, ..] = registers.arguments();
    let result = program_call(libc::SYS_mremap, registers);
    registers.set_result(result as u64);
    match result as u64 {
        _ if result < 0 => {}
        to if to == from => engine.notice_unmapped(from + bytes, old_bytes.saturating_sub(bytes)),
        to => {
            engine.notice_unmapped(from, old_bytes);
            if flags & libc::MREMAP_FIXED as u64 != 0 {
                engine.notice_moved_over(to, bytes);
            }
        }
    }
}

/// Maps memory for the program, and looks for entries in it.
fn map(engine: &Engine, registers: &mut HostRegisters) {
    let result = program_call(libc::SYS_mmap, registers);
    registers.set_result(result as u64);
    let [_, _, protection, _, file, _] = registers.arguments();
    engine.notice_mapped(protection, file, result);
}
