//! Blocks that are found, or else translated.

use super::block::{Block, Exit};
use super::blocks::Blocks;
use crate::engine::Engine;
use crate::machine::{Host, Route, Task, Translated, Translation};
use crate::system::{self, allocator};
use lineup_recording::native::{Definition, note, sieve};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// Set once the user was warned that there is no room for more code.
static NO_ROOM: AtomicU8 = AtomicU8::new(0);

impl Blocks {
    /// The block at an address, translated if it does not exist yet; `None` when it cannot be translated.
    pub(crate) fn block(&mut self, engine: &Engine, pc: u64) -> Option<Block> {
        if let Some(block) = self.blocks.get(&pc) {
            return Some(block.clone());
        }
        let block = self.make(engine, pc)?;
        self.blocks.insert(pc, block.clone());
        Some(block)
    }

    /// As [`Blocks::block`], translated from the program's present code.
    pub(crate) fn current(&mut self, engine: &Engine, pc: u64) -> Option<Block> {
        let first = self.block(engine, pc)?;
        if self.is_current(&first, pc) {
            return Some(first);
        }
        let others = self.versions.get(&pc).into_iter().flatten();
        if let Some(other) = others.into_iter().find(|block| self.is_current(block, pc)) {
            return Some(other.clone());
        }
        let block = self.make(engine, pc)?;
        self.versions.entry(pc).or_default().push(block.clone());
        Some(block)
    }

    /// Target of a link to a block: past the note that an entry was reached, where none was.
    pub(crate) fn follow(&mut self, engine: &Engine, link: u64, block: &Block) -> u64 {
        if !self.is_decided(engine, link) {
            return block.start;
        }
        let hole = link.checked_sub(1).and_then(|link| self.links.get(link as usize).copied());
        let Some(hole) = hole else { return block.start };
        if self.targets.is_some() {
            self.cache.link(hole, block.inner);
            return block.start;
        }
        let to = if self.past.contains(&hole) { block.body } else { block.start };
        self.cache.link(hole, to);
        to
    }

    /// Makes a block.
    fn make(&mut self, engine: &Engine, pc: u64) -> Option<Block> {
        if system::is_sealed() && !allocator::has_memory() {
            engine.shared.note_once(&NO_ROOM, "there was no room for more code: calls that run it end there");
            return None;
        }
        let Some((bytes, is_fixed)) = self.bytes(pc) else {
            engine.shared.note(&format!(
                "there is no code at {pc:#x} that can be read: calls that run it are recorded up to there"
            ));
            return None;
        };
        let at = self.cache.next();
        let route = Route::default();
        let mut translated = self.translated(engine, &bytes, pc, is_fixed, at, &route)?;
        for unlogged in &translated.unlogged {
            let what = if unlogged.is_lost {
                "is where recording of its call ended"
            } else {
                "has accesses that are not recorded"
            };
            let text = format!("{:x} {} {what}", unlogged.pc, unlogged.mnemonic);
            engine.shared.tell(note::INSTRUCTION, text.as_bytes());
        }
        let made_from = (!is_fixed).then(|| bytes.into());
        self.put(engine, &mut translated, pc, &route, made_from)
    }

    /// Puts a block into the cache.
    pub(super) fn put(
        &mut self,
        engine: &Engine,
        translated: &mut Translated,
        pc: u64,
        route: &Route,
        made_from: Option<Arc<[u8]>>,
    ) -> Option<Block> {
        let mut number = 0;
        if !translated.definition_holes.is_empty() {
            let Some(defined) = self.define(engine, translated) else {
                engine
                    .shared
                    .note_once(&NO_ROOM, "there was no room for more code: calls that run it end there");
                return None;
            };
            number = defined;
        }
        for ((low, high), number) in translated.link_holes.iter().zip(self.links.len() as u64 + 1..) {
            translated.code[*low..*low + 4].copy_from_slice(&(number as u32).to_le_bytes());
            translated.code[*high..*high + 4].copy_from_slice(&((number >> 32) as u32).to_le_bytes());
        }
        let Some(start) = self.cache.put(&translated.code) else {
            engine.shared.note_once(&NO_ROOM, "there was no room for more code: calls that run it end there");
            return None;
        };
        let turns: Arc<[u8]> = route.turns.as_slice().into();
        for link in &translated.links {
            let hole = start + link.hole as u64;
            self.links.push(hole);
            if let Some(turn) = link.turn {
                let (jump, turns) = (start + turn.jump as u64, turns.clone());
                let exit = Exit { root: pc, turns, number, part: turn.part, jump, times: 0 };
                self.exits.insert(self.links.len() as u64, exit);
            }
            if self.within.jumps_within(&translated.definition, link.target) {
                self.past.insert(hole);
            }
        }
        if let Some(ways) = translated.system_call {
            self.calls.insert(translated.next, ways.map(|place| start + place as u64));
        }
        self.places.insert(start, pc);
        let Range { start: low, end } = translated.range;
        let place = |offset: usize| start + offset as u64;
        let (body, plain, inner) = (place(translated.body), place(translated.plain), place(translated.inner));
        Some(Block { start, body, plain, inner, low, number, end, made_from })
    }

    /// Registers a block's definition, and writes its numbers into its code. Returns the definition's number, or `None`
    /// when there is no room.
    fn define(&mut self, engine: &Engine, translated: &mut Translated) -> Option<u32> {
        translated.definition.count = self.counts;
        let is_counted = !translated.count_holes.is_empty();
        if is_counted && self.counts as usize >= sieve::BLOCKS {
            return None;
        }
        let words = match &translated.superblock {
            Some(superblock) => superblock.to_words(),
            None => translated.definition.to_words(),
        };
        let number = engine.shared.define(&words)?;
        for hole in &translated.definition_holes {
            let place = &mut translated.code[*hole..hole + 4];
            // In a superblock's record the same word also holds the number of a part.
            let part = u32::from_le_bytes(place.try_into().unwrap_or_default());
            place.copy_from_slice(&(number | part).to_le_bytes());
        }
        for hole in &translated.count_holes {
            let place = &mut translated.code[*hole..hole + 4];
            let first = u32::from_le_bytes(place.try_into().unwrap_or_default());
            place.copy_from_slice(&(first + 8 * self.counts).to_le_bytes());
        }
        if let Some(hole) = translated.own_hole {
            // The code that names it is never removed.
            let definition: &Definition = Box::leak(Box::new(translated.definition.clone()));
            let address = std::ptr::from_ref(definition) as u64;
            translated.code[hole..hole + 8].copy_from_slice(&address.to_le_bytes());
        }
        self.counts += u32::from(is_counted);
        Some(number)
    }

    pub(super) fn translated(
        &mut self,
        engine: &Engine,
        bytes: &[u8],
        pc: u64,
        is_fixed: bool,
        at: u64,
        route: &Route,
    ) -> Option<Translated> {
        let whole = engine.whole.as_ref().map(|whole| &whole.blocks);
        let zones = self.sequences.zones();
        let task = Task {
            bytes,
            pc,
            slots: engine.slots,
            is_entry: !is_fixed || self.entries.contains(&pc),
            is_changeable: !is_fixed,
            at,
            whole,
            zones: &zones,
        };
        let Some(whole) = whole.filter(|whole| whole.targets != 0) else {
            return Some(Host::translate(&task));
        };
        let translated = Host::translate_superblock(&task, whole, &mut |pc| self.fixed_bytes(pc), route);
        // It may continue in a file that is met for the first time, and has sequences.
        match Arc::ptr_eq(&zones, &self.sequences.zones()) {
            true => translated,
            false => self.translated(engine, bytes, pc, is_fixed, at, route),
        }
    }

    /// The block that holds an address of the cache: its first address there, and the block in its translated form.
    pub(crate) fn around(&mut self, engine: &Engine, address: u64) -> Option<(u64, Translated)> {
        let (start, pc) = self.places.range(..=address).next_back().map(|(start, pc)| (*start, *pc))?;
        let beyond = self.beyond.get(&start).map(|beyond| (None, beyond.route.clone()));
        let (made_from, route) = beyond.or_else(|| {
            let own = self.versions_of(pc).find(|block| block.start == start)?;
            Some((own.made_from.clone(), Route::default()))
        })?;
        let translated = match made_from {
            Some(made_from) => self.translated(engine, &made_from, pc, false, start, &route)?,
            None => {
                let (bytes, is_fixed) = self.bytes(pc)?;
                self.translated(engine, &bytes, pc, is_fixed, start, &route)?
            }
        };
        (address < start + translated.code.len() as u64).then_some((start, translated))
    }
}
