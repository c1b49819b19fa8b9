//! Blocks of the program's code in the cache, and their source code.

use crate::cache::code_memory::Cache;
use crate::cache::continuations::{Continuations, Exit};
use crate::cache::sequences::Sequences;
use crate::cache::targets::Targets;
use crate::engine::Engine;
use crate::entries::inner_jumps::Functions;
use crate::entries::patch;
use crate::entries::restore::Patch;
use crate::entries::traps;
use crate::machine::{Gates, Host, Route, Task, Translated, Translation, Ways};
use crate::system;
use crate::system::address_tables::{Map, Set};
use crate::system::allocator;
use crate::system::holdings;
use crate::system::mappings;
use crate::system::mappings::Mapping;
use lineup_recording::native::{Definition, note, sieve};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

/// The most bytes of code that are read for one block.
const MOST_CODE_BYTES: u64 = 720;

/// Set once the user was warned that there is no room for more code.
static NO_ROOM: AtomicU8 = AtomicU8::new(0);

/// A block in the cache.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) start: u64,
    pub(crate) body: u64,
    /// The address to continue at when no restartable sequence begins.
    pub(crate) plain: u64,
    /// The address that other blocks jump to.
    pub(crate) inner: u64,
    /// The lowest address of its code in the program.
    pub(super) low: u64,
    /// The number of its definition.
    pub(super) number: u32,
    /// End of its code in the program.
    pub(super) end: u64,
    /// For code that the program may change: the bytes that the block was translated from. Such a block hands over to
    /// the engine first.
    pub(super) made_from: Option<Arc<[u8]>>,
}

/// Blocks, and the code that they are translated from.
pub(crate) struct Blocks {
    pub(crate) cache: Cache,
    pub(super) blocks: BTreeMap<u64, Block>,
    pub(crate) links: Vec<u64>,
    /// Links that lead past an entry.
    pub(super) past: Set,
    /// Other blocks of code that the program has changed, of earlier versions.
    pub(super) versions: Map<Vec<Block>>,
    /// Superblocks that continue where others are left, by their address in the cache; the number of those that begin
    /// at one place; and the exits where more may be wanted, by the link's number.
    pub(super) beyond: BTreeMap<u64, Continuations>,
    pub(super) beyond_of: Map<u32>,
    pub(super) exits: Map<Exit>,
    /// Addresses of blocks in the program, by their address in the cache.
    pub(super) places: BTreeMap<u64, u64>,
    pub(super) leaves: Map<u64>,
    pub(super) ways_in: Map<u64>,
    /// System calls by the address after them.
    pub(crate) calls: Map<Ways<u64>>,
    pub(crate) entries: Set,
    /// Instructions that a jump replaces, and their new places.
    pub(crate) moved: Map<u64>,
    /// Functions that jump to each other without a call.
    pub(crate) within: Functions,
    /// The original bytes at patched places.
    pub(crate) patches: Vec<Patch>,
    /// Patches in code that was unmapped since, or that were taken out: the program may have a copy of them at their
    /// old place.
    pub(super) past_patches: Vec<Patch>,
    /// New places of the instructions that those replaced.
    pub(super) past_moved: Map<u64>,
    pub(super) mappings: Vec<Mapping>,
    /// Memory for code near entries.
    pub(crate) near: Vec<patch::Near>,
    /// The number of blocks that count themselves.
    pub(super) counts: u32,
    /// Set when all of a whole program's run is logged.
    pub(crate) targets: Option<Targets>,
    pub(crate) sequences: Sequences,
}

impl Blocks {
    pub(crate) fn new(cache: Cache, targets: Option<Targets>) -> Blocks {
        Blocks {
            cache,
            blocks: BTreeMap::new(),
            versions: Map::default(),
            links: Vec::new(),
            past: Set::default(),
            beyond: BTreeMap::new(),
            beyond_of: Map::default(),
            exits: Map::default(),
            places: BTreeMap::new(),
            leaves: Map::default(),
            ways_in: Map::default(),
            calls: Map::default(),
            entries: Set::default(),
            moved: Map::default(),
            within: Functions::default(),
            patches: Vec::new(),
            past_patches: Vec::new(),
            past_moved: Map::default(),
            mappings: Vec::new(),
            near: Vec::new(),
            counts: 0,
            targets,
            sequences: Sequences::default(),
        }
    }

    /// The program's unpatched code at an address, and whether it is read-only.
    pub(crate) fn bytes(&mut self, pc: u64) -> Option<(Vec<u8>, bool)> {
        let find = |mappings: &[Mapping]| {
            let found = mappings.iter().find(|mapping| mapping.range.contains(&pc));
            found.filter(|mapping| mapping.is_code).cloned()
        };
        let known = find(&self.mappings).filter(|mapping| mapping.is_fixed_code);
        let mapping = known.or_else(|| {
            if !system::is_sealed() {
                self.mappings = mappings::read();
            }
            find(&self.mappings)
        })?;
        let (end, is_fixed_code) = mappings::code_from(&self.mappings, &mapping, pc + MOST_CODE_BYTES);
        let length = (end - pc) as usize;
        if !is_fixed_code {
            let mut bytes = vec![0; length];
            let read = if holdings::hold(pc) { 0 } else { system::read_memory(pc, &mut bytes) };
            bytes.truncate(read);
            self.unpatch(pc, &mut bytes);
            return (read > 0).then_some((bytes, false));
        }
        self.sequences.look(&self.mappings, &mapping);
        // SAFETY: mapped readable, by the kernel's list of mappings, now or earlier. A program that unmaps code which
        // it runs in a recorded call would have to be in it.
        let mut bytes = unsafe { std::slice::from_raw_parts(pc as *const u8, length) }.to_vec();
        self.unpatch(pc, &mut bytes);
        Some((bytes, true))
    }

    /// Whether an address is known to lie in code that nothing writes to.
    pub(crate) fn is_fixed_code(&self, pc: u64) -> bool {
        self.mappings.iter().any(|mapping| mapping.is_fixed_code && mapping.range.contains(&pc))
    }

    /// Reads the code that the engine will need once it makes no system call any more.
    pub(crate) fn read_ahead(&mut self) {
        self.mappings = mappings::read();
        for mapping in self.mappings.iter().filter(|mapping| mapping.is_fixed_code) {
            self.sequences.look(&self.mappings, mapping);
        }
    }

    /// Whether the program's code at an address is still the code that the block was translated from.
    fn is_current(&self, block: &Block, pc: u64) -> bool {
        let Some(made_from) = &block.made_from else { return true };
        let mut now = vec![0; (block.end - pc) as usize];
        // Another thread may unmap it at the same time.
        let is_whole = system::read_memory(pc, &mut now) == now.len();
        self.unpatch(pc, &mut now);
        is_whole && made_from.get(..now.len()) == Some(&now)
    }

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

    /// Whether any code that was read lies in a range.
    pub(crate) fn is_code(&self, range: &Range<u64>) -> bool {
        self.blocks_in(range).next().is_some()
            || self.entries.iter().any(|pc| range.contains(pc))
            || self.mappings.iter().any(|mapping| {
                mapping.is_fixed_code && mapping.range.start < range.end && range.start < mapping.range.end
            })
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

    /// The program's code at an address, if nothing writes to it.
    fn fixed_bytes(&mut self, pc: u64) -> Option<Vec<u8>> {
        let (bytes, is_fixed) = self.bytes(pc)?;
        is_fixed.then_some(bytes)
    }

    /// From now on indirect jumps to an address find its block, when all of a run is logged.
    pub(crate) fn lead_to(&mut self, pc: u64, block: &Block) {
        if let Some(targets) = &mut self.targets {
            targets.add(&mut self.cache, pc, block.inner);
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

    /// The number of the definition of the block that holds an address of the cache.
    pub(crate) fn number_at(&self, address: u64) -> Option<u32> {
        let (start, pc) = self.places.range(..=address).next_back()?;
        let beyond = self.beyond.get(start).map(|beyond| &beyond.block);
        let own = beyond.or_else(|| self.versions_of(*pc).find(|block| block.start == *start));
        own.map(|block| block.number)
    }

    /// The blocks that were made for an address, at different times.
    fn versions_of(&self, pc: u64) -> impl Iterator<Item = &Block> {
        self.blocks.get(&pc).into_iter().chain(self.versions.get(&pc).into_iter().flatten())
    }

    /// Forgets code that is unmapped: other code may be mapped there later. Memory that the program maps there may be a
    /// copy of it, with patches.
    pub(crate) fn forget(&mut self, engine: &Engine, range: &Range<u64>) {
        self.forget_blocks(engine, range);
        self.entries.retain(|pc| !range.contains(pc));
        let past = self.moved.iter().filter(|(pc, _)| range.contains(pc));
        self.past_moved.extend(past.map(|(pc, to)| (*pc, *to)));
        self.moved.retain(|pc, _| !range.contains(pc));
        self.within.forget(range);
        self.past_patches.extend(self.patches.extract_if(.., |patch| range.contains(&patch.pc)));
        traps::forget(range);
        self.sequences.forget(range);
        engine.shared.forget_entries(range);
    }

    /// Forgets the blocks of code that other memory replaces, which may hold the same code. Links to such a block lead
    /// to the engine from now on, which looks for the new one.
    pub(crate) fn forget_blocks(&mut self, engine: &Engine, range: &Range<u64>) {
        self.mappings.clear();
        let is_gone = |block: &Block| block.low < range.end && range.start < block.end;
        let gone = self.blocks.iter().filter(|(_, block)| is_gone(block));
        let gone: Vec<(u64, Block)> = gone.map(|(pc, block)| (*pc, block.clone())).collect();
        for (pc, block) in &gone {
            self.blocks.remove(pc);
            self.leaves.remove(pc);
            for version in self.versions.remove(pc).into_iter().flatten().chain([block.clone()]) {
                self.places.remove(&version.start);
                self.lead_again(engine, *pc, &version);
            }
        }
        self.forget_beyond(range);
        self.leaves.retain(|pc, _| !range.contains(pc));
    }

    /// From now on a block that begins at an address hands over to the engine first.
    pub(crate) fn watch(&mut self, engine: &Engine, pc: u64) {
        if self.entries.insert(pc)
            && let Some(block) = self.blocks.remove(&pc)
        {
            self.places.remove(&block.start);
            self.lead_again(engine, pc, &block);
        }
    }

    /// Redirects the links to a block to the engine, which looks for the new one.
    fn lead_again(&mut self, engine: &Engine, pc: u64, block: &Block) {
        if let Some(again) = self.cache.put(&Host::again(engine.slots, pc)) {
            self.cache.lead(block.start, again);
        }
        if self.targets.is_some()
            && let Some(again) = self.cache.put(&Host::again_from_superblocks(engine.slots, pc))
        {
            self.cache.lead(block.inner, again);
        }
    }

    /// Blocks of code in a range; one may reach into it from before.
    fn blocks_in(&self, range: &Range<u64>) -> impl Iterator<Item = (&u64, &Block)> {
        let (first, start) = (range.start.saturating_sub(MOST_CODE_BYTES), range.start);
        self.blocks.range(first..range.end).filter(move |(_, block)| block.end > start)
    }

    /// Code to jump to, that continues in the cache at an address.
    pub(crate) fn way_in(&mut self, slots: i32, pc: u64) -> Option<u64> {
        if let Some(way_in) = self.ways_in.get(&pc) {
            return Some(*way_in);
        }
        let way_in = self.cache.put(&Host::again(slots, pc))?;
        self.ways_in.insert(pc, way_in);
        Some(way_in)
    }

    /// The program's address for code that leaves the cache.
    pub(crate) fn left_at(&self, address: u64) -> Option<u64> {
        let leave =
            self.leaves.iter().find(|(_, leave)| address.wrapping_sub(**leave) < Host::MOST_LEAVE_BYTES);
        leave.map(|(pc, _)| *pc)
    }

    /// Code that continues natively at an address.
    pub(crate) fn leave(&mut self, slots: i32, pc: u64) -> Option<u64> {
        if let Some(leave) = self.leaves.get(&pc) {
            return Some(*leave);
        }
        let leave = self.cache.put(&Host::leave(slots, self.natively(pc)))?;
        self.leaves.insert(pc, leave);
        Some(leave)
    }
}
