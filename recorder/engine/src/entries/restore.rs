//! Takes jumps out of entries when no more calls are wanted, while other threads execute them.
//!
//! The pages of an entry are replaced as a whole, by a fresh mapping of the same part of the same file: the kernel does
//! that in one step for all threads. Other patches on these pages are written to the new ones before. The code that a
//! jump leads to stays in place, for threads that are in it.

use crate::engine::Engine;
use crate::entries::code_changes;
use crate::entries::patch::Patch;
use crate::machine::{Abi, Entries, Host};
use crate::system::mappings::{self, Mapping};
use crate::system::{self, File};
use lineup_recording::native::head::Entry;
use lineup_recording::native::{entry, region};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

const MOST_REGIONS: usize = 64;
const _: () = assert!(region::MOST <= MOST_REGIONS);

/// Regions whose entries have been taken out, as bits.
static OUT: AtomicU64 = AtomicU64::new(0);

/// Restores the entries of every region that has had its number of calls. Called when a recorded call has ended.
pub(crate) fn finished_regions(engine: &Engine) {
    let shared = &engine.shared;
    if shared.control().leaves_after_last.load(Ordering::Relaxed) == 0 {
        return;
    }
    for (number, region) in shared.regions().iter().enumerate() {
        // The bound is one above the last call to record.
        let wanted = region.bound.load(Ordering::Relaxed);
        let last = region.warmup.load(Ordering::Relaxed).saturating_add(wanted.saturating_sub(1));
        let is_enough = wanted > 0 && region.calls.load(Ordering::Relaxed) >= last;
        if is_enough && OUT.fetch_or(1 << number, Ordering::Relaxed) & 1 << number == 0 {
            let blocked = system::block_signals();
            let is_out = take_out(engine, number as u64);
            system::restore_signals(blocked);
            region.is_out.store(u64::from(is_out), Ordering::Relaxed);
        }
    }
}

/// Takes a region's jumps out. Returns whether all its entries are in their original state.
fn take_out(engine: &Engine, number: u64) -> bool {
    let shared = &engine.shared;
    let is_own = |entry: &&Entry| {
        entry.region.load(Ordering::Relaxed) == number
            && entry.answer.load(Ordering::Relaxed) == entry::PATCHED
    };
    let address = |entry: &Entry| entry.address.load(Ordering::Relaxed);
    // The loader may have chosen the same code for two.
    let own: BTreeSet<u64> =
        shared.entries().iter().filter(is_own).map(address).filter(|pc| *pc != 0).collect();
    let maps = mappings::read();
    let is_out = |pc: &u64| {
        engine.code.with(|code| {
            let patches = &mut code.patches;
            let Some(at) = patches.iter().position(|patch| patch.pc == *pc) else { return false };
            let is_out = code_changes::unless_leaving(|| replace(&maps, patches, at)).unwrap_or(false);
            if is_out {
                code.take_out_patch(at);
            }
            is_out
        })
    };
    let all = own.iter().filter(|pc| is_out(pc)).count() == own.len();
    // Other processors may have decoded the old instructions.
    system::serialize_threads();
    all
}

/// Takes the traps out of the program's code: their handling needs the kernel's return from a handler.
pub(crate) fn take_out_traps(engine: &Engine) {
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let blocked = system::block_signals();
    engine.code.with(|code| {
        let is_trap = |patch: &&Patch| Host::is_trap(&patch.written);
        code.patches.iter().filter(is_trap).for_each(|patch| {
            memory.write_at(&patch.original, patch.pc);
        });
    });
    system::restore_signals(blocked);
}

/// Replaces the pages of one patch by their file's, with all other patches in them.
fn replace(maps: &[Mapping], patches: &[Patch], number: usize) -> bool {
    let range = patches[number].range();
    let pages = range.start & !(Host::page_bytes() - 1)..range.end.next_multiple_of(Host::page_bytes());
    let holds = |mapping: &&Mapping| mapping.range.start <= pages.start && pages.end <= mapping.range.end;
    let Some(mapping) = maps.iter().find(holds).filter(|mapping| mapping.is_of_file) else { return false };
    let mut path = mapping.path.clone().into_bytes();
    path.push(0);
    let offset = mapping.offset + (pages.start - mapping.range.start);
    let bytes = (pages.end - pages.start) as usize;
    let Some(fresh) = File::open(&path, libc::O_RDONLY).and_then(|file| file.map_private(bytes, offset))
    else {
        return false;
    };
    // SAFETY: mapped just now, ours alone, and as long as that; a file that was cut off since it was mapped would have
    // taken the program's code with it.
    let new = unsafe { std::slice::from_raw_parts_mut(fresh, bytes) };
    // Another thread may unmap it at the same time.
    let mut old = vec![0; bytes];
    let is_same = system::read_memory(pages.start, &mut old) == bytes
        && is_same_but_for_patches(new, &old, patches, &pages);
    if is_same {
        let others = patches.iter().enumerate().filter(|(other, _)| *other != number);
        for place in others.flat_map(|(_, patch)| patch.in_pages(&pages)) {
            new[place] = old[place];
        }
    }
    let is_moved = is_same
        && system::protect(fresh, bytes, libc::PROT_READ | libc::PROT_EXEC)
        && system::move_over(fresh, bytes, pages.start);
    if !is_moved {
        system::unmap(fresh, bytes);
    }
    is_moved
}

/// Whether the file holds the bytes in memory, with the original bytes in place of patches: no other code has changed
/// it.
fn is_same_but_for_patches(file: &[u8], memory: &[u8], patches: &[Patch], pages: &Range<u64>) -> bool {
    let mut unpatched = memory.to_vec();
    patches.iter().for_each(|patch| patch.take_out(pages.start, &mut unpatched));
    unpatched == file
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(pc: u64) -> Patch {
        Patch { pc, original: vec![0xfe, 0xff, 0, 1, 2], written: vec![0xe9, 5, 5, 5, 5] }
    }

    #[test]
    fn pages_that_somebody_else_changed_are_left_alone() {
        let pages = 0x1000..0x2000;
        let file: Vec<u8> = (0..4096).map(|byte| byte as u8).collect();
        let mut memory = file.clone();
        memory[0xfe..0x103].copy_from_slice(&[0xe9, 5, 5, 5, 5]);
        assert!(is_same_but_for_patches(&file, &memory, &[patch(0x10fe)], &pages));
        memory[0x300] ^= 1;
        assert!(!is_same_but_for_patches(&file, &memory, &[patch(0x10fe)], &pages));
    }
}
