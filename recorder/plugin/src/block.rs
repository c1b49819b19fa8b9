//! The instructions of a block under translation, and the callbacks of one whose code and accesses are counted.

use crate::callbacks::{on_chain, on_chain_of, on_profiled, on_profiled_access};
use crate::ffi::{self, Api, InsnBytes, MemCallback, NO_REGISTERS, READS_AND_WRITES, Tb};
use crate::isa;
use lineup_model::machine::CodeMachine;
use lineup_profile::{Follower, Profile, Side, chains};
use std::ffi::{CStr, c_void};

/// An instruction of a block.
pub(crate) struct Insn {
    pub(crate) handle: *mut ffi::Insn,
    pub(crate) pc: u64,
    pub(crate) size_bytes: u64,
    pub(crate) bytes: InsnBytes,
    pub(crate) decoded: isa::Insn,
    pub(crate) only_leaves: bool,
}

/// The block's instructions.
///
/// # Safety
/// `tb` must be the block under translation.
pub(crate) unsafe fn insns(api: &Api, machine: CodeMachine, tb: *mut Tb) -> Vec<Insn> {
    // SAFETY: the caller's promise; indices are below the count.
    let raw = |index| unsafe {
        let handle = (api.block_insn)(tb, index);
        (handle, (api.insn_vaddr)(handle), api.insn_bytes(handle))
    };
    // SAFETY: the caller's promise.
    let raw: Vec<_> = (0..unsafe { (api.block_insns)(tb) }).map(raw).collect();
    let is_thumb = machine == CodeMachine::Arm && {
        let places: Vec<(u64, &[u8])> = raw.iter().map(|(_, pc, bytes)| (*pc, &**bytes)).collect();
        isa::is_thumb(&places, || raw.last().map_or_else(String::new, |(handle, _, _)| text(api, *handle)))
    };
    let insn = |(handle, pc, bytes): (*mut ffi::Insn, u64, InsnBytes)| {
        let decoded = isa::of(machine).decode(&bytes, is_thumb);
        // SAFETY: the handle is valid for the translation under way.
        let size_bytes = unsafe { (api.insn_size)(handle) } as u64;
        let only_leaves = isa::of(machine).only_leaves(&bytes, is_thumb);
        Insn { handle, pc, size_bytes, bytes, decoded, only_leaves }
    };
    let is_executed = |(index, (_, pc, bytes)): &(usize, (*mut ffi::Insn, u64, InsnBytes))| {
        !isa::is_only_listed(machine, *index, *pc, bytes)
    };
    raw.into_iter().enumerate().filter(is_executed).map(|(_, raw)| insn(raw)).collect()
}

/// The emulator's own disassembly.
fn text(api: &Api, handle: *mut ffi::Insn) -> String {
    // SAFETY: the handle is valid for the translation under way; the text is ours to free, and its few bytes are
    // left to the process, since the emulator's allocator need not be ours.
    let text = unsafe { (api.insn_text)(handle) };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, and a C string by the interface.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Asks for the callbacks that count a block and its accesses.
///
/// # Safety
/// `tb` must be the block under translation and `insns` its instructions.
pub(crate) unsafe fn profile_block(
    api: &Api,
    machine: CodeMachine,
    profile: &Profile,
    tb: *mut Tb,
    insns: &[Insn],
) {
    let places: Vec<(u64, u64)> = insns.iter().map(|insn| (insn.pc, insn.size_bytes)).collect();
    let mut follower = Follower::new(machine);
    let chains = chains(insns.iter().map(|insn| follower.step(insn.pc, &insn.bytes)));
    let block = profile.block(&places, &chains);
    let ask = |insn: usize, callback: MemCallback, data: u64| {
        let (insn, data) = (insns[insn].handle, data as usize as *mut c_void);
        // SAFETY: the caller's promise; the data is not followed.
        unsafe { (api.insn_mem)(insn, callback, NO_REGISTERS, READS_AND_WRITES, data) };
    };
    for insn in chains.alone.iter().filter(|insn| !insns[**insn].only_leaves) {
        ask(*insn, on_profiled_access, u64::from(block.counters) + 2 * *insn as u64);
    }
    for (number, (chain, handle)) in chains.all.iter().zip(&block.handles).enumerate() {
        let begins = number == 0 && chains.begin_block;
        let callback = match (chain.only, begins) {
            (None, true) => on_chain::<true>,
            (None, false) => on_chain::<false>,
            (Some(Side::Load), true) => on_chain_of::<true, false>,
            (Some(Side::Load), false) => on_chain_of::<false, false>,
            (Some(Side::Store), true) => on_chain_of::<true, true>,
            (Some(Side::Store), false) => on_chain_of::<false, true>,
        };
        ask(chain.links[0].insn, callback, handle.data());
    }
    if !chains.begin_block {
        let run = block.run as usize as *mut c_void;
        // SAFETY: the caller's promise; the number is not followed.
        unsafe { (api.block_exec)(tb, on_profiled, NO_REGISTERS, run) };
    }
}
