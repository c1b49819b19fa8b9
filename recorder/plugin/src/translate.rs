//! The emulator's callback when it translates a block: decides which callbacks the block gets.

use crate::ask::OnTranslate;
use crate::block::{Insn, insns, profile_block};
use crate::callbacks::{on_access, on_block};
use crate::ffi::{NO_REGISTERS, READS_AND_WRITES, Tb};
use crate::isa::Flow;
use crate::recorder::{self, Recorder, Translation};
use lineup_follow::blocks::{Block, BlockKey, BlockParts, Site};
use lineup_follow::maps::guest_files;
use lineup_model::access::code_granules;
use lineup_recording::plan::BlockRoles;
use std::sync::atomic::Ordering;

/// A block is translated.
pub(crate) struct Translates;

impl OnTranslate for Translates {
    unsafe fn call(tb: *mut Tb) {
        let Some(recorder) = recorder::get() else { return };
        // SAFETY: `tb` is valid for this callback.
        let insns = unsafe { insns(&recorder.api, recorder.machine, tb) };
        let Some(first) = insns.first() else { return };
        // SAFETY: the instruction is valid for this callback. In user mode its host address is the guest's plus a
        // constant.
        let host = unsafe { (recorder.api.insn_haddr)(first.handle) } as u64;
        let guest_base = host.wrapping_sub(first.pc);
        recorder.guest_base.store(guest_base, Ordering::Relaxed);
        let mut translation = recorder.translation();
        recorder.look_at_images(&mut translation, first.pc, guest_base);
        match &recorder.profile {
            // SAFETY: `tb` and its instructions are valid for this callback.
            Some(profile) => unsafe { profile_block(&recorder.api, recorder.machine, profile, tb, &insns) },
            // SAFETY: as above.
            None => unsafe { recorder.watch_block(&mut translation, tb, &insns, guest_base) },
        }
    }
}

impl Recorder {
    /// Takes in files that were mapped since the last block.
    fn look_at_images(&self, translation: &mut Translation, pc: u64, guest_base: u64) {
        if translation.images.image_at(pc).is_some() {
            return;
        }
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
        let fresh = translation.images.refresh(&guest_files(&maps), guest_base, &self.plan);
        translation.images.note_choosers(&fresh.images, &self.plan, &|_, _| false);
        translation.found_entries.extend(fresh.entries);
        let mut encoder = self.encoder();
        fresh.images.iter().for_each(|image| encoder.image(image));
        self.write(&mut encoder);
    }

    /// # Safety
    /// `tb` must be the block under translation and `insns` its instructions.
    unsafe fn watch_block(
        &self,
        translation: &mut Translation,
        tb: *mut Tb,
        insns: &[Insn],
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
            // SAFETY: the caller's promise; the recorder lives as long as the process.
            unsafe { self.unwatched.count(tb, 1) };
            return;
        }
        let data: *const Block = block;
        let registers = self.api.at_block(block.entry.is_some() && !self.is_discovery);
        // SAFETY: the caller's promise; the block is never freed.
        unsafe { (self.api.block_exec)(tb, on_block, registers, data.cast_mut().cast()) };
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

fn site(translation: &mut Translation, insn: &Insn, guest_base: u64) -> &'static Site {
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
fn granules(insns: &[Insn]) -> Vec<u64> {
    let mut granules: Vec<u64> = Vec::new();
    for insn in insns {
        granules.extend(code_granules(insn.pc, insn.size_bytes));
    }
    granules.sort_unstable();
    granules.dedup();
    granules
}
