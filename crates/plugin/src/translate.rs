//! What the emulator calls when it translates a block: decides which callbacks the block gets.

use crate::callbacks::{on_access, on_block, on_chain, on_chain_of, on_profiled, on_profiled_access};
use crate::ffi::{self, INLINE_ADD, MemCallback, NO_REGISTERS, PluginId, READS_AND_WRITES, Tb};
use crate::isa::{self, Flow};
use crate::recorder::{self, Recorder, Translation};
use lineup_follow::blocks::{Block, BlockKey, BlockParts, Site};
use lineup_follow::maps::guest_files;
use lineup_model::abi::Machine;
use lineup_model::access::code_granules;
use lineup_profile::{Follower, Profile, Side, chains};
use lineup_recording::plan::BlockRoles;
use std::ffi::{CStr, c_void};
use std::sync::atomic::Ordering;

/// An instruction of a block.
struct Insn<'tb> {
    handle: *mut ffi::Insn,
    pc: u64,
    size_bytes: u64,
    bytes: &'tb [u8],
    decoded: isa::Insn,
    only_leaves: bool,
}

/// A block is translated.
pub(crate) unsafe extern "C" fn on_translate(_id: PluginId, tb: *mut Tb) {
    let Some(recorder) = recorder::get() else { return };
    // SAFETY: `tb` is valid for this callback.
    let insns = unsafe { recorder.insns(tb) };
    let Some(first) = insns.first() else { return };
    // SAFETY: the instruction is valid for this callback. In user mode its host address is the guest's plus a constant.
    let host = unsafe { (recorder.api.insn_haddr)(first.handle) } as u64;
    let guest_base = host.wrapping_sub(first.pc);
    recorder.guest_base.store(guest_base, Ordering::Relaxed);
    let mut translation = recorder.translation();
    recorder.look_at_images(&mut translation, first.pc, guest_base);
    match &recorder.profile {
        // SAFETY: `tb` and its instructions are valid for this callback.
        Some(profile) => unsafe { recorder.profile_block(profile, tb, &insns) },
        // SAFETY: as above.
        None => unsafe { recorder.watch_block(&mut translation, tb, &insns, guest_base) },
    }
}

impl Recorder {
    /// The block's instructions.
    ///
    /// # Safety
    /// `tb` must be the block under translation, and `'tb` no longer than that.
    unsafe fn insns<'tb>(&self, tb: *mut Tb) -> Vec<Insn<'tb>> {
        let api = &self.api;
        // SAFETY: the caller's promise; indices are below the count, and the bytes live as long as the translation.
        let raw = |index| unsafe {
            let handle = (api.block_insn)(tb, index);
            let (data, size) = ((api.insn_data)(handle), (api.insn_size)(handle));
            let bytes: &'tb [u8] =
                if data.is_null() { &[] } else { std::slice::from_raw_parts(data.cast::<u8>(), size) };
            (handle, (api.insn_vaddr)(handle), bytes)
        };
        // SAFETY: the caller's promise.
        let raw: Vec<_> = (0..unsafe { (api.block_insns)(tb) }).map(raw).collect();
        let is_thumb = self.machine == Machine::Arm && {
            let places: Vec<(u64, &[u8])> = raw.iter().map(|(_, pc, bytes)| (*pc, *bytes)).collect();
            isa::is_thumb(&places, || {
                raw.last().map_or_else(String::new, |(handle, _, _)| self.text(*handle))
            })
        };
        let insn = |(handle, pc, bytes): (*mut ffi::Insn, u64, &'tb [u8])| {
            let decoded = isa::of(self.machine).decode(bytes, is_thumb);
            // SAFETY: the handle is valid for the translation under way.
            let size_bytes = unsafe { (api.insn_size)(handle) } as u64;
            let only_leaves = isa::of(self.machine).only_leaves(bytes, is_thumb);
            Insn { handle, pc, size_bytes, bytes, decoded, only_leaves }
        };
        let is_executed = |(index, (_, pc, bytes)): &(usize, (*mut ffi::Insn, u64, &[u8]))| {
            !isa::is_only_listed(self.machine, *index, *pc, bytes)
        };
        raw.into_iter().enumerate().filter(is_executed).map(|(_, raw)| insn(raw)).collect()
    }

    /// The emulator's own disassembly.
    fn text(&self, handle: *mut ffi::Insn) -> String {
        // SAFETY: the handle is valid for the translation under way; the text is ours to free, and its few bytes are
        // left to the process, since the emulator's allocator need not be ours.
        let text = unsafe { (self.api.insn_text)(handle) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: not null, and a C string by the interface.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// Takes in files that were mapped since the last block.
    fn look_at_images(&self, translation: &mut Translation, pc: u64, guest_base: u64) {
        if translation.images.image_at(pc).is_some() {
            return;
        }
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
        let fresh = translation.images.refresh(&guest_files(&maps), guest_base, &self.plan);
        translation.found_entries.extend(fresh.entries);
        let mut encoder = self.encoder();
        fresh.images.iter().for_each(|image| encoder.image(image));
        self.write(&mut encoder);
    }

    /// # Safety
    /// `tb` must be the block under translation and `insns` its instructions.
    unsafe fn profile_block(&self, profile: &Profile, tb: *mut Tb, insns: &[Insn<'_>]) {
        let places: Vec<(u64, u64)> = insns.iter().map(|insn| (insn.pc, insn.size_bytes)).collect();
        let mut follower = Follower::new(self.machine);
        let chains = chains(insns.iter().map(|insn| follower.step(insn.pc, insn.bytes)));
        let block = profile.block(&places, &chains);
        let ask = |insn: usize, callback: MemCallback, data: u64| {
            let (insn, data) = (insns[insn].handle, data as usize as *mut c_void);
            // SAFETY: the caller's promise; the data is not followed.
            unsafe { (self.api.insn_mem)(insn, callback, NO_REGISTERS, READS_AND_WRITES, data) };
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
            unsafe { (self.api.block_exec)(tb, on_profiled, NO_REGISTERS, run) };
        }
    }

    /// # Safety
    /// `tb` must be the block under translation and `insns` its instructions.
    unsafe fn watch_block(
        &self,
        translation: &mut Translation,
        tb: *mut Tb,
        insns: &[Insn<'_>],
        guest_base: u64,
    ) {
        let (Some(first), Some(last)) = (insns.first(), insns.last()) else { return };
        let roles = translation.images.roles_at(first.pc);
        let is_known = roles.has(BlockRoles::INSIDE) || self.is_someone_inside();
        let watched = !self.is_discovery && (self.watches_all() || is_known);
        let is_in_free = !self.is_discovery && translation.images.is_free(first.pc);
        let parts = BlockParts {
            key: BlockKey {
                start: first.pc,
                end: last.pc + last.size_bytes,
                instructions: insns.len() as u64,
                watched,
                entry: translation.images.entry_at(first.pc),
                handler: translation.handlers.contains(&first.pc),
            },
            flow: last.decoded.flow,
            repeats: insns.len() == 1 && last.decoded.repeats,
            special: translation.images.special_at(first.pc),
            frees: is_in_free && translation.images.is_free_entry(first.pc),
            is_in_free,
            linkage: translation.images.linkage_at(first.pc),
            granules: granules(insns),
        };
        let block = parts.register(&mut translation.registry);
        let is_quiet =
            !self.follows_all() && !watched && roles == BlockRoles::default() && block.is_ordinary();
        if is_quiet && !is_in_free {
            // SAFETY: the caller's promise; the counter lives as long as the process.
            unsafe {
                (self.api.block_exec_inline)(tb, INLINE_ADD, self.unwatched.as_ptr().cast(), 1);
            }
            return;
        }
        let data: *const Block = block;
        // SAFETY: the caller's promise; the block is never freed.
        unsafe { (self.api.block_exec)(tb, on_block, NO_REGISTERS, data.cast_mut().cast()) };
        let tracks_calls = self.uses_slots() && (self.follows_all() || roles.has(BlockRoles::APPROACH));
        for insn in insns.iter().filter(|insn| !insn.only_leaves) {
            let is_transfer = matches!(insn.decoded.flow, Flow::Call | Flow::Return);
            if watched || is_in_free || (tracks_calls && is_transfer) {
                let site: *const Site = site(translation, insn, guest_base);
                // SAFETY: the caller's promise; the site is never freed.
                unsafe {
                    (self.api.insn_mem)(
                        insn.handle,
                        on_access,
                        NO_REGISTERS,
                        READS_AND_WRITES,
                        site.cast_mut().cast(),
                    );
                }
            }
        }
    }
}

fn site(translation: &mut Translation, insn: &Insn<'_>, guest_base: u64) -> &'static Site {
    let next_pc = insn.pc + insn.size_bytes;
    translation.registry.site(insn.pc, next_pc, || Site {
        pc: insn.pc,
        guest_base,
        flow: insn.decoded.flow,
        next_pc,
        multiple: insn.decoded.multiple,
        on_stack: insn.decoded.on_stack,
    })
}

/// First addresses of the granules that instructions lie on.
fn granules(insns: &[Insn<'_>]) -> Vec<u64> {
    let mut granules: Vec<u64> = Vec::new();
    for insn in insns {
        granules.extend(code_granules(insn.pc, insn.size_bytes));
    }
    granules.sort_unstable();
    granules.dedup();
    granules
}
