//! The emulator's callbacks during an audit.

use super::calls::{self, Effect, request_bytes};
use super::seen::Access;
use super::state::{AccessInstruction, Audit, State, get};
use crate::ask::{OnEvent, OnSyscall, OnSyscallReturn, OnTranslate};
use crate::ffi::{Api, NO_REGISTERS, READS_AND_WRITES, Tb};
use crate::guest::read_bytes;
use crate::isa;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;

/// The most parts of one vector that are read.
const MOST_PARTS: u64 = 64;

/// The bytes that an unlisted call may write at an address in its arguments.
const WRITTEN_BYTES: u64 = 4096;

/// No address of a program is below.
const FIRST_ADDRESS: u64 = 1 << 16;

/// `MADV_DONTNEED` and `MADV_FREE`: the bytes are gone.
const DROPS: [u64; 2] = [4, 8];

/// Asks the emulator for callbacks.
pub(super) fn register(api: &Api) {
    api.callbacks.on_translate::<Translates>();
    api.callbacks.on_syscall::<Calls>();
    api.callbacks.on_syscall_return::<Returns>();
    api.callbacks.on_exit::<Exits>();
}

/// A block is translated: every instruction that may access memory gets a callback.
struct Translates;

impl OnTranslate for Translates {
    unsafe fn call(tb: *mut Tb) {
        let Some(audit) = get() else { return };
        let api = &audit.api;
        let machine = audit.machine;
        let mut state = audit.state();
        // SAFETY: `tb` is valid for this callback.
        for index in 0..unsafe { (api.block_insns)(tb) } {
            // SAFETY: the index is below the count.
            let (insn, pc, bytes) = unsafe {
                let insn = (api.block_insn)(tb, index);
                (insn, (api.insn_vaddr)(insn), api.insn_bytes(insn))
            };
            if index == 0 {
                // SAFETY: as above. In user mode an instruction's host address is the guest's plus a constant.
                let host = unsafe { (api.insn_haddr)(insn) } as u64;
                audit.guest_base.store(host.wrapping_sub(pc), Ordering::Relaxed);
                audit.look_at_files(&mut state, pc);
                if audit.is_free(&state, pc) {
                    // SAFETY: `tb` is valid for this callback.
                    unsafe { (api.block_exec)(tb, on_free, NO_REGISTERS, std::ptr::null_mut()) };
                }
            }
            if isa::is_only_listed(machine, index, pc, &bytes) || isa::of(machine).only_leaves(&bytes, false)
            {
                continue;
            }
            let is_on_stack = isa::of(machine).decode(&bytes, false).on_stack;
            let place: *const AccessInstruction = audit.place(&state, pc, is_on_stack);
            // SAFETY: the instruction is valid for this callback, and the place is never freed.
            unsafe {
                (api.insn_mem)(insn, on_access, NO_REGISTERS, READS_AND_WRITES, place.cast_mut().cast());
            }
        }
    }
}

unsafe extern "C" fn on_free(vcpu: c_uint, _data: *mut c_void) {
    if let Some(audit) = get() {
        audit.state().seen.frees(vcpu);
    }
}

unsafe extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    let Some(audit) = get() else { return };
    // SAFETY: `data` is a place that was leaked when this callback was asked for.
    let place: &'static AccessInstruction = unsafe { &*data.cast::<AccessInstruction>() };
    // SAFETY: `info` comes from the emulator.
    let (is_store, size_bytes) =
        unsafe { ((audit.api.mem_is_store)(info), 1u64 << (audit.api.mem_size_shift)(info).min(6)) };
    let mut state = audit.state();
    let known = place.site.and_then(|site| if is_store { site.store } else { site.load });
    let in_program = place.pc != 0;
    let typed = known.or_else(|| in_program.then(|| audit.global_at(&state, address)).flatten());
    let value = match typed {
        Some(_) => 0,
        None => audit.value_at(address, size_bytes),
    };
    state.seen.access(&Access {
        vcpu,
        pc: place.pc,
        runtime_pc: place.runtime_pc,
        address,
        size_bytes,
        value,
        is_store,
        operand_bytes: place.site.map_or(0, |site| u64::from(site.size_bytes)),
        is_outside: place.is_outside,
        is_on_stack: place.is_on_stack || place.site.is_some_and(|site| site.is_on_stack),
        typed,
    });
}

/// A system call is about to be made.
struct Calls;

impl OnSyscall for Calls {
    fn call(vcpu: c_uint, number: i64, [a1, a2, a3, a4, a5, a6, ..]: [u64; 8]) {
        if let Some(audit) = get() {
            audit.called(&mut audit.state(), vcpu, number, [a1, a2, a3, a4, a5, a6]);
        }
    }
}

/// A system call has returned.
struct Returns;

impl OnSyscallReturn for Returns {
    fn call(vcpu: c_uint, result: i64) {
        if let Some(audit) = get() {
            audit.state().seen.returned(vcpu, result);
        }
    }
}

/// The emulator ends.
struct Exits;

impl OnEvent for Exits {
    fn call() {
        if let Some(audit) = get() {
            audit.write(&mut audit.state());
        }
    }
}

impl Audit {
    /// The value at an address that the guest has just accessed, of up to eight bytes.
    fn value_at(&self, address: u64, size_bytes: u64) -> u64 {
        let host = address.wrapping_add(self.guest_base.load(Ordering::Relaxed));
        // SAFETY: the guest has just accessed these bytes, so they are mapped. Volatile and byte by byte: another guest
        // thread may write at the same time, and they need not be aligned.
        (0..size_bytes.min(8)).rev().fold(0, |value, at| unsafe {
            value << 8 | u64::from((host.wrapping_add(at) as *const u8).read_volatile())
        })
    }

    /// Words of the guest's memory; fewer where it is not mapped.
    fn words(&self, address: u64, count: u64) -> Vec<u64> {
        let host = address.wrapping_add(self.guest_base.load(Ordering::Relaxed));
        let bytes = read_bytes(host, (8 * count) as usize).unwrap_or_default();
        let words = bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)));
        words.collect()
    }

    fn called(&self, state: &mut State, vcpu: u32, number: i64, arguments: [u64; 6]) {
        let value = |place: usize| arguments.get(place).copied().unwrap_or_default();
        let Some((index, call)) = calls::by_number(number) else {
            // An unlisted call may write at any address in its arguments.
            for address in arguments.into_iter().filter(|address| *address >= FIRST_ADDRESS) {
                state.seen.forget(address, WRITTEN_BYTES);
            }
            return;
        };
        match call.effect {
            Effect::Takes(address, size) => self.handed(state, call.name, value(address), value(size)),
            Effect::TakesParts(list, length) => {
                self.parts_handed(state, call.name, value(list), value(length));
            }
            Effect::TakesMessage(header) => {
                // Name and its size, then the list of parts and its length.
                if let [_, _, list, length] = self.words(value(header), 4)[..] {
                    self.parts_handed(state, call.name, list, length);
                }
            }
            Effect::Request => {
                let (taken, given) = request_bytes(value(1));
                self.handed(state, call.name, value(2), taken);
                state.seen.forget(value(2), given.max(WRITTEN_BYTES));
            }
            Effect::Fills(address) => {
                state.seen.forget(value(address), value(2).min(1 << 20));
                state.seen.begins_to_fill(vcpu, index, value(address));
            }
            Effect::Unmaps(address, size) => {
                let is_kept = call.name == "madvise" && !DROPS.contains(&value(2));
                if !is_kept {
                    state.seen.unmapped(value(address), value(size));
                }
            }
            Effect::EndsHeap if value(0) != 0 => state.seen.forget(value(0), 1 << 40),
            Effect::Maps => {
                let flags = value(3);
                if flags & libc::MAP_FIXED as u64 != 0 {
                    state.seen.unmapped(value(0), value(1));
                }
                let is_file = value(4) as i32 >= 0 && flags & libc::MAP_ANONYMOUS as u64 == 0;
                if is_file && flags & libc::MAP_SHARED as u64 != 0 {
                    state.seen.begins_to_map(vcpu, value(1));
                }
            }
            Effect::Ends => self.write(state),
            Effect::EndsHeap | Effect::Nothing => {}
        }
    }

    fn parts_handed(&self, state: &mut State, call: &str, list: u64, length: u64) {
        for part in self.words(list, 2 * length.min(MOST_PARTS)).chunks_exact(2) {
            self.handed(state, call, part[0], part[1]);
        }
    }

    fn handed(&self, state: &mut State, call: &str, address: u64, size_bytes: u64) {
        let bytes = address..address.saturating_add(size_bytes);
        let globals = self.globals(state, bytes.clone());
        state.seen.handed(call, bytes, globals);
    }
}
