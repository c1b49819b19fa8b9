//! The files that the guest mapped, and their addresses that matter.

use crate::blocks::{Linkage, Special};
use crate::elf::{Elf, FunctionSymbol};
use crate::maps::GuestFile;
use crate::tracker::Leaving;
use lineup_model::image::LoadedImage;
use lineup_model::region::RegionId;
use lineup_recording::plan::{BlockRoles, Plan};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

const SPECIAL: &[(&str, Special)] = &[
    ("setjmp", Special::SetJump),
    ("_setjmp", Special::SetJump),
    ("__sigsetjmp", Special::SetJump),
    ("sigsetjmp", Special::SetJump),
    ("longjmp", Special::Leave(Leaving::Jump)),
    ("_longjmp", Special::Leave(Leaving::Jump)),
    ("siglongjmp", Special::Leave(Leaving::Jump)),
    ("__libc_longjmp", Special::Leave(Leaving::Jump)),
    ("__libc_siglongjmp", Special::Leave(Leaving::Jump)),
    ("__longjmp_chk", Special::Leave(Leaving::Jump)),
    ("_Unwind_RaiseException", Special::Leave(Leaving::Unwind)),
    ("_Unwind_Resume", Special::Leave(Leaving::Unwind)),
    ("_Unwind_Resume_or_Rethrow", Special::Leave(Leaving::Unwind)),
    ("_Unwind_ForcedUnwind", Special::Leave(Leaving::ThreadEnd)),
    ("free", Special::Free),
    ("cfree", Special::Free),
    ("realloc", Special::Free),
    ("__libc_free", Special::Free),
    ("__libc_realloc", Special::Free),
];

/// A function, by its place in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Name without a suffix such as `.cold`, so that split parts of a function compare equal.
    pub name: String,
    /// True for a part that was split off.
    pub is_part: bool,
    /// Its addresses.
    pub range: Range<u64>,
}

/// One file.
pub struct GuestImage {
    /// Its place in memory.
    pub loaded: LoadedImage,
    /// In order of address.
    functions: Vec<FunctionSymbol>,
    /// Link addresses of the stubs of functions in other files.
    stubs: Option<Range<u64>>,
}

impl GuestImage {
    /// Entries of the functions that give heap blocks back.
    pub fn frees(&self) -> impl Iterator<Item = u64> {
        let is_free = |symbol: &&FunctionSymbol| {
            SPECIAL.iter().any(|(name, special)| *special == Special::Free && *name == symbol.name)
        };
        self.functions.iter().filter(is_free).map(|symbol| self.loaded.to_runtime(symbol.address))
    }

    /// First address of the function of a name.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let symbol = self.functions.iter().find(|symbol| symbol.name == name)?;
        Some(self.loaded.to_runtime(symbol.address))
    }

    /// The function that covers a link address: the innermost, where they overlap.
    fn symbol_at(&self, link: u64) -> Option<&FunctionSymbol> {
        // A few symbols lie inside others. Further back than this, none reaches here.
        const MOST_NESTED: usize = 16;
        let after = self.functions.partition_point(|symbol| symbol.address <= link);
        let covers = |symbol: &&FunctionSymbol| link - symbol.address < symbol.size_bytes;
        self.functions[..after].iter().rev().take(MOST_NESTED).find(covers)
    }
}

/// All files mapped now, and the addresses in them that matter, by runtime address.
#[derive(Default)]
pub struct Images {
    all: Vec<GuestImage>,
    specials: HashMap<u64, Special>,
    entries: HashMap<u64, u16>,
    /// Entries of functions that choose others (IFUNC).
    choosers: HashSet<u64>,
    /// Chosen entries: at another time the loader may choose another function.
    chosen: HashSet<u64>,
    roles: HashMap<u64, BlockRoles>,
    /// Functions that an earlier run saw inside regions, by their first address. All their blocks are watched, since
    /// another run may take other ways through them.
    inside: BTreeMap<u64, u64>,
    /// Stubs of functions in other files.
    stubs: Vec<Range<u64>>,
    frees: Vec<Range<u64>>,
    /// Paths as they were given, by canonical path.
    canonical: HashMap<String, PathBuf>,
}

/// An entry of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryPlace {
    /// Address of the first instruction.
    pub pc: u64,
    /// The region's number.
    pub region: u16,
    /// Bytes of the function from there on; 0 when they are not known.
    pub size_bytes: u64,
    /// Bytes from there on up to the next function.
    pub room_bytes: u64,
    /// The loader calls it, and the region's name means the function that it returns (IFUNC).
    pub is_chooser: bool,
}

/// The findings of a look at the maps.
#[derive(Default)]
pub struct Fresh {
    /// Files that are new.
    pub images: Vec<LoadedImage>,
    /// Entries found by symbol: region, image path, link address.
    pub entries: Vec<(u16, String, u64)>,
}

impl Images {
    /// Takes in those of the mapped files that were not there at the last look; `guest_base` is the emulator's offset
    /// from a guest address to a host address.
    pub fn refresh(&mut self, files: &[GuestFile], guest_base: u64, plan: &Plan) -> Fresh {
        let mut fresh = Fresh::default();
        for file in files {
            let start = file.start.wrapping_sub(guest_base);
            let known = |image: &GuestImage| image.loaded.path == file.path && image.loaded.start == start;
            if self.all.iter().any(known) {
                continue;
            }
            if let Some(image) = open_image(&file.path, start) {
                self.forget_overlapping(&image.loaded);
                self.note_addresses(&image, plan, &mut fresh);
                fresh.images.push(image.loaded.clone());
                self.all.push(image);
            }
        }
        fresh
    }

    /// In files that are new since the last look: takes functions as entries of regions that have none of that name.
    /// `is_meant` decides whether a symbol's name means the region's.
    pub fn look_for_names(
        &mut self,
        fresh: &[LoadedImage],
        plan: &Plan,
        is_meant: &dyn Fn(&str, &str) -> bool,
    ) {
        let images = self.all.iter().filter(|image| fresh.contains(&image.loaded));
        for image in images {
            for (RegionId(index), region) in plan.header.regions.iter() {
                let mut names = image.functions.iter().map(|symbol| &symbol.name);
                if !region.entries.is_empty() || names.any(|name| *name == region.name) {
                    continue;
                }
                for symbol in image.functions.iter().filter(|symbol| is_meant(&symbol.name, &region.name)) {
                    self.entries.entry(image.loaded.to_runtime(symbol.address)).or_insert(index);
                }
            }
        }
    }

    /// Notes which entries are functions that the loader calls to choose those that are meant (IFUNC). A chooser may
    /// have a name of its own: a request for that name means the chooser. `is_meant` as in [`Images::look_for_names`].
    pub fn note_choosers(
        &mut self,
        fresh: &[LoadedImage],
        plan: &Plan,
        is_meant: &dyn Fn(&str, &str) -> bool,
    ) {
        for image in self.all.iter().filter(|image| fresh.contains(&image.loaded)) {
            for (pc, index) in self.entries.iter().filter(|(pc, _)| image.loaded.contains(**pc)) {
                let Some((_, region)) = plan.header.regions.iter().find(|(id, _)| id.0 == *index) else {
                    continue;
                };
                let link = image.loaded.to_link(*pc);
                let here = image.functions.iter().filter(|symbol| symbol.address == link);
                let is_named = |name: &str| name == region.name || is_meant(name, &region.name);
                let named: Vec<bool> =
                    here.filter(|symbol| is_named(&symbol.name)).map(|symbol| symbol.is_chooser).collect();
                if named.contains(&true) {
                    self.choosers.insert(*pc);
                }
            }
        }
    }

    /// Numbers of regions with entries that choose others.
    pub fn chosen_regions(&self) -> BTreeSet<u16> {
        self.choosers.iter().filter_map(|pc| self.entries.get(pc)).copied().collect()
    }

    /// Makes a chosen function an entry. Its size comes from its symbol, or else from `range`: the function's place, in
    /// link addresses of this file, that begins at a link address.
    pub fn add_chosen(
        &mut self,
        pc: u64,
        region: u16,
        range: impl FnOnce(&LoadedImage, u64) -> Option<Range<u64>>,
    ) -> EntryPlace {
        if self.entries.insert(pc, region).is_none() {
            self.chosen.insert(pc);
        }
        let image = self.all.iter().find(|image| image.loaded.contains(pc));
        let size = image.and_then(|image| {
            let link = image.loaded.to_link(pc);
            let own = image.functions.iter().find(|symbol| symbol.address == link && symbol.size_bytes > 0);
            let told = || range(&image.loaded, link).map(|range| range.end - range.start);
            own.map(|symbol| symbol.size_bytes).or_else(told)
        });
        let room = self.next_function(pc).map_or(0, |next| next - pc);
        let size_bytes = size.unwrap_or(0);
        // A function without a symbol may follow directly.
        let room_bytes = if size_bytes > 0 { size_bytes } else { room }.max(1);
        EntryPlace { pc, region, size_bytes, room_bytes, is_chooser: false }
    }

    /// The name of the function that begins at an address, or else the address in its file, and that file.
    pub fn name_at(&self, pc: u64) -> Option<(String, &LoadedImage)> {
        let image = self.all.iter().find(|image| image.loaded.contains(pc))?;
        let link = image.loaded.to_link(pc);
        let symbol = image.functions.iter().find(|symbol| symbol.address == link && !symbol.is_chooser);
        Some((symbol.map_or_else(|| format!("{link:#x}"), |symbol| symbol.name.clone()), &image.loaded))
    }

    /// A file that was unmapped since has its addresses reused.
    fn forget_overlapping(&mut self, new: &LoadedImage) {
        let range = new.start..new.end;
        self.all.retain(|image| image.loaded.end <= new.start || image.loaded.start >= new.end);
        self.specials.retain(|pc, _| !range.contains(pc));
        self.entries.retain(|pc, _| !range.contains(pc));
        self.choosers.retain(|pc| !range.contains(pc));
        self.chosen.retain(|pc| !range.contains(pc));
        self.roles.retain(|pc, _| !range.contains(pc));
        self.inside.retain(|start, _| !range.contains(start));
        self.stubs.retain(|stubs| !range.contains(&stubs.start));
        self.frees.retain(|free| !range.contains(&free.start));
    }

    fn note_addresses(&mut self, image: &GuestImage, plan: &Plan, fresh: &mut Fresh) {
        let loaded = &image.loaded;
        for symbol in &image.functions {
            let runtime = loaded.to_runtime(symbol.address);
            if let Some((_, special)) = SPECIAL.iter().find(|(name, _)| *name == symbol.name) {
                if *special == Special::Free {
                    self.note_free(loaded, runtime, symbol.size_bytes, &plan.program);
                } else {
                    self.specials.insert(runtime, *special);
                }
            }
        }
        for (RegionId(index), region) in plan.header.regions.iter() {
            if region.entries.is_empty() {
                for symbol in image.functions.iter().filter(|symbol| symbol.name == region.name) {
                    if self.entries.insert(loaded.to_runtime(symbol.address), index).is_none() {
                        fresh.entries.push((index, loaded.path.clone(), symbol.address));
                    }
                }
            } else if self.is_path(&region.image, &loaded.path) {
                let entries = region.entries.iter().map(|entry| (loaded.to_runtime(*entry), index));
                self.entries.extend(entries);
            }
        }
        if let Some(blocks) = plan.discovery.blocks.get(&loaded.path) {
            self.roles.extend(blocks.iter().map(|(link, roles)| (loaded.to_runtime(*link), *roles)));
            let inside = blocks.iter().filter(|(_, roles)| roles.has(BlockRoles::INSIDE));
            let functions = inside.filter_map(|(link, _)| image.symbol_at(*link));
            let ends =
                functions.map(|symbol| (symbol.address, symbol.address.saturating_add(symbol.size_bytes)));
            self.inside.extend(ends.map(|(start, end)| (loaded.to_runtime(start), loaded.to_runtime(end))));
        }
        let stubs = image.stubs.iter();
        self.stubs.extend(stubs.map(|stubs| loaded.to_runtime(stubs.start)..loaded.to_runtime(stubs.end)));
    }

    /// Only glibc's allocator is known to keep the chunk header that is read.
    fn note_free(&mut self, loaded: &LoadedImage, runtime: u64, size_bytes: u64, program: &str) {
        let file = Path::new(&loaded.path).file_name().unwrap_or_default().to_string_lossy();
        if file.starts_with("libc.so") || file.starts_with("libc-2") || self.is_path(program, &loaded.path) {
            let range = runtime..runtime.saturating_add(size_bytes.max(1));
            if !self.frees.contains(&range) {
                self.frees.push(range);
            }
        }
    }

    fn is_path(&mut self, given: &str, mapped: &str) -> bool {
        given == mapped
            || self
                .canonical
                .entry(given.to_owned())
                .or_insert_with(|| std::fs::canonicalize(given).unwrap_or_default())
                .as_os_str()
                == mapped
    }

    /// The special function that begins at an address, if any.
    pub fn special_at(&self, pc: u64) -> Option<Special> {
        self.specials.get(&pc).copied()
    }

    /// The region whose entry lies at an address.
    pub fn entry_at(&self, pc: u64) -> Option<u16> {
        self.entries.get(&pc).copied()
    }

    /// Every entry in these files, which are mapped now, in order of address, except chosen functions.
    pub fn entries(&self, files: &[GuestFile]) -> Vec<EntryPlace> {
        let is_mapped = |pc: u64| {
            self.image_at(pc).is_some_and(|image| {
                files.iter().any(|file| file.path == image.path && file.start == image.start)
            })
        };
        let size = |pc| self.function_at(pc).map_or(0, |function| function.range.end.saturating_sub(pc));
        let place = |(pc, region): (&u64, &u16)| EntryPlace {
            pc: *pc,
            region: *region,
            size_bytes: size(*pc),
            room_bytes: self.next_function(*pc).map_or(size(*pc), |next| next - *pc),
            is_chooser: self.choosers.contains(pc),
        };
        let own = self.entries.iter().filter(|(pc, _)| !self.chosen.contains(pc));
        let mapped = own.filter(|(pc, _)| is_mapped(**pc));
        let mut entries: Vec<_> = mapped.map(place).collect();
        entries.sort_unstable_by_key(|entry| entry.pc);
        entries
    }

    /// Parts of the function at an entry that were split off it, and lie elsewhere.
    pub fn parts(&self, entry: &EntryPlace) -> Vec<EntryPlace> {
        let image = self.all.iter().find(|image| image.loaded.contains(entry.pc));
        let symbol = image.and_then(|image| image.symbol_at(image.loaded.to_link(entry.pc)));
        let (Some(image), Some(symbol)) = (image, symbol) else { return Vec::new() };
        let is_part = |name: &str| {
            let rest = name.strip_prefix(symbol.name.as_str());
            rest.is_some_and(|rest| rest == ".cold" || rest.starts_with(".cold."))
        };
        let place = |part: &FunctionSymbol| {
            let pc = image.loaded.to_runtime(part.address);
            let room = self.next_function(pc).map_or(part.size_bytes, |next| next - pc);
            EntryPlace {
                pc,
                region: entry.region,
                size_bytes: part.size_bytes,
                room_bytes: room,
                is_chooser: false,
            }
        };
        image.functions.iter().filter(|part| is_part(&part.name)).map(place).collect()
    }

    /// Start of the next function in the file that holds an address.
    fn next_function(&self, pc: u64) -> Option<u64> {
        let image = self.all.iter().find(|image| image.loaded.contains(pc))?;
        let link = image.loaded.to_link(pc);
        let after = image.functions.partition_point(|symbol| symbol.address <= link);
        image.functions.get(after).map(|symbol| image.loaded.to_runtime(symbol.address))
    }

    /// Reasons to watch the block at this address, by findings of earlier runs.
    pub fn roles_at(&self, pc: u64) -> BlockRoles {
        let roles = self.roles.get(&pc).copied().unwrap_or_default();
        let function = self.inside.range(..=pc).next_back();
        match function.is_some_and(|(_, end)| pc < *end) {
            true => roles.with(BlockRoles::INSIDE),
            false => roles,
        }
    }

    /// The role of the block at this address in the dynamic linker's work.
    pub fn linkage_at(&self, pc: u64) -> Linkage {
        match self.stubs.iter().find(|stubs| stubs.contains(&pc)) {
            Some(stubs) if stubs.start == pc => Linkage::Common,
            Some(_) => Linkage::Stub,
            None => Linkage::None,
        }
    }

    /// True inside the functions that give heap blocks back.
    pub fn is_free(&self, pc: u64) -> bool {
        self.frees.iter().any(|range| range.contains(&pc))
    }

    /// True at the first instruction of a function that gives heap blocks back.
    pub fn is_free_entry(&self, pc: u64) -> bool {
        self.frees.iter().any(|range| range.start == pc)
    }

    /// First addresses of the functions of a name.
    pub fn symbols(&self, name: &str) -> impl Iterator<Item = u64> {
        self.all.iter().filter_map(move |image| image.symbol(name))
    }

    /// The file that holds an address.
    pub fn image_at(&self, address: u64) -> Option<&LoadedImage> {
        self.all.iter().map(|image| &image.loaded).find(|image| image.contains(address))
    }

    /// All files.
    pub fn loaded(&self) -> impl Iterator<Item = &LoadedImage> {
        self.all.iter().map(|image| &image.loaded)
    }

    /// The function whose symbol covers `pc`.
    pub fn function_at(&self, pc: u64) -> Option<Function> {
        let image = self.all.iter().find(|image| image.loaded.contains(pc))?;
        let link = image.loaded.to_link(pc);
        let symbol = image.symbol_at(link)?;
        let (name, is_part) = match symbol.name.split_once(".cold") {
            Some((name, _)) => (name, true),
            None => (symbol.name.as_str(), false),
        };
        let start = image.loaded.to_runtime(symbol.address);
        Some(Function {
            name: name.to_owned(),
            is_part,
            range: start..start.saturating_add(symbol.size_bytes),
        })
    }
}

/// Reads a file that the guest mapped from its beginning at `start`.
pub fn open_image(path: &str, start: u64) -> Option<GuestImage> {
    let file = File::open(path).ok()?;
    let elf = Elf::open(&file)?;
    let segments = elf.segments();
    let first = segments.iter().find(|segment| segment.offset < 0x1000)?;
    let bias = start.wrapping_sub(first.address & !0xfff);
    let mut functions = elf.functions();
    functions.sort_by_key(|symbol| symbol.address);
    let end = segments.iter().map(|segment| segment.address.saturating_add(segment.memory_bytes)).max()?;
    Some(GuestImage {
        loaded: LoadedImage {
            path: path.to_owned(),
            start,
            end: bias.wrapping_add(end.checked_next_multiple_of(0x1000)?),
            bias,
            build_id: elf.build_id(),
        },
        functions,
        stubs: elf.stubs(),
    })
}
