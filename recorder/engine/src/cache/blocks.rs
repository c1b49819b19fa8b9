//! Blocks of the program's code in the cache, and their source code.

use super::block::{Block, Continuations, Exit};
use crate::cache::code_memory::Cache;
use crate::cache::sequences::Sequences;
use crate::cache::targets::Targets;
use crate::entries::near_code::Near;
use crate::entries::patch::Patch;
use crate::entries::region_points::Functions;
use crate::machine::{Gates, Host, Ways};
use crate::system::address_tables::{Map, Set};
use crate::system::mappings::{self, Mapping};
use crate::system::{self, holdings};
use std::collections::BTreeMap;
use std::ops::Range;

/// The most bytes of code that are read for one block.
const MOST_CODE_BYTES: u64 = 720;

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
    pub(crate) near: Vec<Near>,
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
    pub(super) fn is_current(&self, block: &Block, pc: u64) -> bool {
        let Some(made_from) = &block.made_from else { return true };
        let mut now = vec![0; (block.end - pc) as usize];
        // Another thread may unmap it at the same time.
        let is_whole = system::read_memory(pc, &mut now) == now.len();
        self.unpatch(pc, &mut now);
        is_whole && made_from.get(..now.len()) == Some(&now)
    }

    /// Whether any code that was read lies in a range.
    pub(crate) fn is_code(&self, range: &Range<u64>) -> bool {
        self.blocks_in(range).next().is_some()
            || self.entries.iter().any(|pc| range.contains(pc))
            || self.mappings.iter().any(|mapping| {
                mapping.is_fixed_code && mapping.range.start < range.end && range.start < mapping.range.end
            })
    }

    /// The program's code at an address, if nothing writes to it.
    pub(super) fn fixed_bytes(&mut self, pc: u64) -> Option<Vec<u8>> {
        let (bytes, is_fixed) = self.bytes(pc)?;
        is_fixed.then_some(bytes)
    }

    /// From now on indirect jumps to an address find its block, when all of a run is logged.
    pub(crate) fn lead_to(&mut self, pc: u64, block: &Block) {
        if let Some(targets) = &mut self.targets {
            targets.add(&mut self.cache, pc, block.inner);
        }
    }

    /// The number of the definition of the block that holds an address of the cache.
    pub(crate) fn number_at(&self, address: u64) -> Option<u32> {
        let (start, pc) = self.places.range(..=address).next_back()?;
        let beyond = self.beyond.get(start).map(|beyond| &beyond.block);
        let own = beyond.or_else(|| self.versions_of(*pc).find(|block| block.start == *start));
        own.map(|block| block.number)
    }

    /// The blocks that were made for an address, at different times.
    pub(super) fn versions_of(&self, pc: u64) -> impl Iterator<Item = &Block> {
        self.blocks.get(&pc).into_iter().chain(self.versions.get(&pc).into_iter().flatten())
    }

    /// Blocks of code in a range; one may reach into it from before.
    pub(super) fn blocks_in(&self, range: &Range<u64>) -> impl Iterator<Item = (&u64, &Block)> {
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
