//! Names accesses: static analysis of the code first, then what was learned of the memory.

use crate::abstract_value::{Origin, Pointer};
use crate::analysis::{Place, Site, World, analyse};
use crate::catalog::{Catalog, Ty};
use crate::congruence::Congruence;
use crate::error::ExplainError;
use crate::globals::{Global, Globals};
use crate::image::Image;
use crate::lifetimes::ObjectLifetimes;
use crate::located::Names;
use crate::name::{Class, Evidence, Name, Named, VariableId};
use crate::objects::{Home, Object, Objects, Strength};
use crate::percpu::PerCpu;
use crate::thread_block::{BlockSpot, ThreadBlocks};
use lineup_debuginfo::Region;
use lineup_model::access::{Access, AccessKind, MemoryEvent, StackRange};
use lineup_model::program::SymbolKind;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Names the accesses of a recording in two passes: [`Namer::observe`] every access, [`Namer::settle`],
/// then [`Namer::name`] every access.
pub struct Namer<'a> {
    images: Vec<Image<'a>>,
    /// Start of each image's runtime range, with its end and index.
    placed: BTreeMap<u64, (u64, usize)>,
    catalog: Catalog<'a>,
    globals: Vec<Globals>,
    names: Names,
    results: HashMap<(usize, u64), Ty>,
    results_by_name: HashMap<String, Ty>,
    sites: HashMap<u64, Rc<[Site]>>,
    analysed: HashSet<(usize, usize)>,
    stacks: Vec<StackRange>,
    percpu: PerCpu,
    blocks: ThreadBlocks,
    lifetimes: ObjectLifetimes,
    objects: Objects,
    used_as: HashMap<Ty, BTreeSet<Ty>>,
    /// By program counter: whether a described function of the studied code covers it.
    described: HashMap<u64, bool>,
    /// By program counter outside described functions: the symbol, by name number.
    symbols: HashMap<u64, Option<u32>>,
}

/// An access with what the code around it says of it.
#[derive(Clone, Debug)]
struct Seen {
    /// Bytes of the operand before this piece.
    into: u64,
    place: Place,
}

/// Follows accesses that the machine splits into adjacent context.
#[derive(Clone, Default, Debug)]
pub struct AccessContext {
    last: Option<(u64, AccessKind, u64, u64)>,
    /// Per image without described functions: the symbol, by name number, that code last ran in. Code
    /// without a symbol runs on behalf of it: only named functions can be called from outside.
    entered: HashMap<usize, u32>,
}

impl AccessContext {
    /// Bytes of the operand that earlier pieces covered.
    fn before(&mut self, access: &Access, operand_bytes: u64) -> u64 {
        let size = u64::from(access.size_bytes);
        let into = match self.last {
            Some((pc, kind, end, covered))
                if pc == access.pc
                    && kind == access.kind
                    && end == access.address
                    && covered + size <= operand_bytes =>
            {
                covered
            }
            _ => 0,
        };
        self.last = Some((access.pc, access.kind, access.address.wrapping_add(size), into + size));
        into
    }
}

impl<'a> Namer<'a> {
    /// A namer for these images, with the lifetimes of memory and the stacks that were recorded.
    pub fn new(images: Vec<Image<'a>>, memory: &[MemoryEvent], stacks: &[StackRange]) -> Self {
        let mut catalog = Catalog::new(images.iter().map(Image::types).collect());
        let globals = images
            .iter()
            .enumerate()
            .map(|(index, image)| Globals::new(&mut catalog, index, image))
            .collect();
        let placed = images
            .iter()
            .enumerate()
            .map(|(index, image)| {
                let range = image.runtime_range();
                (range.start, (range.end, index))
            })
            .collect();
        let (results, results_by_name) = results(&mut catalog, &images);
        Namer {
            percpu: PerCpu::new(&images),
            blocks: ThreadBlocks::new(&images),
            placed,
            globals,
            catalog,
            results,
            results_by_name,
            images,
            names: Names::default(),
            sites: HashMap::new(),
            analysed: HashSet::new(),
            stacks: stacks.to_vec(),
            lifetimes: ObjectLifetimes::new(memory),
            objects: Objects::default(),
            used_as: HashMap::new(),
            described: HashMap::new(),
            symbols: HashMap::new(),
        }
    }

    /// The images.
    pub fn images(&self) -> &[Image<'a>] {
        &self.images
    }

    /// The types of all images.
    pub fn catalog(&mut self) -> &mut Catalog<'a> {
        &mut self.catalog
    }

    /// The variables of an image that lie at least partly between two link addresses: those described, then the
    /// data symbols that lie on none of them.
    pub fn variables_within(&self, image: usize, start: u64, end: u64) -> Vec<VariableId> {
        let described = self.globals.get(image).map(|globals| globals.within(start, end)).unwrap_or_default();
        let symbols = self.images.get(image).map(|image| image.data_symbols(start, end)).unwrap_or_default();
        let undescribed = symbols.into_iter().filter(|(_, symbol)| {
            let symbol_end = symbol.address.saturating_add(symbol.size_bytes);
            !described
                .iter()
                .any(|known| known.start < symbol_end && symbol.address < known.start + known.size_bytes)
        });
        let undescribed: Vec<VariableId> = undescribed.map(|(index, _)| VariableId::Symbol(index)).collect();
        described.iter().map(|known| VariableId::Described(known.variable)).chain(undescribed).collect()
    }

    /// The thread-local variables of an image, as runs of its block: first byte, size and which.
    pub fn thread_locals(&self, image: usize) -> Vec<(u64, u64, VariableId)> {
        let (Some(globals), Some(room)) = (self.globals.get(image), self.blocks.size_bytes(image)) else {
            return Vec::new();
        };
        let is_inside =
            |global: &&Global| global.start.checked_add(global.size_bytes).is_some_and(|end| end <= room);
        let described = globals.thread_locals().iter().filter(is_inside);
        let mut all: Vec<(u64, u64, VariableId)> = described
            .map(|global| (global.start, global.size_bytes, VariableId::Described(global.variable)))
            .collect();
        let known = all.len();
        for (start, size, index) in self.blocks.symbols(image) {
            let covers =
                |(known, bytes, _): &(u64, u64, VariableId)| *known < start + size && *start < known + bytes;
            if !all.iter().take(known).any(covers) {
                all.push((*start, *size, VariableId::Symbol(*index)));
            }
        }
        all.sort_unstable();
        all
    }

    /// The function that a program counter is in: its name and the path of its image.
    pub fn function_at(&self, pc: u64) -> (String, String) {
        let Some((image, link)) = self.image_at(pc) else {
            return ("(outside every file)".to_owned(), String::new());
        };
        let Some(image) = self.images.get(image) else { return Default::default() };
        let described = image.functions.iter().find(|function| function.contains(link));
        let name = described.map(|function| function.name.clone());
        let name = name.or_else(|| image.symbol_at(link).map(|symbol| symbol.name.clone()));
        (name.unwrap_or_else(|| "(no symbol)".to_owned()), image.loaded.path.clone())
    }

    /// Texts by number.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Types that objects of a type were used as, at their first byte.
    pub fn used_as(&self, ty: Ty) -> Option<&BTreeSet<Ty>> {
        self.used_as.get(&ty)
    }

    /// Before the first pass: bases that threads were given. Others are learned from the code.
    pub fn see_thread_bases(&mut self, bases: &[u64]) {
        bases.iter().for_each(|base| self.blocks.see(*base));
    }

    /// First pass: learns from one access of a call that began at `at`.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn observe(
        &mut self,
        access: &Access,
        context: &mut AccessContext,
        at: u64,
    ) -> Result<(), ExplainError> {
        let seen = self.seen(access, context)?;
        if let Place::Thread(offset) = seen.place {
            let offset = offset.wrapping_add(seen.into as i64);
            self.percpu.see(offset, access.address);
            self.blocks.see(access.address.wrapping_sub_signed(offset));
        }
        if let (AccessKind::Load, Some(value)) = (access.kind, access.value) {
            self.blocks.see_load(access.address, value);
        }
        if let Some(spot) = self.blocks.at(access.address) {
            if let Some(global) = self.thread_local_at(spot) {
                self.see_value(access, global.ty, spot.offset - global.start, at);
            }
            return Ok(());
        }
        if let Some((image, link)) = self.data_at(access.address) {
            if let Some(global) = self.globals.get(image).and_then(|globals| globals.at(link)).copied() {
                self.see_value(access, global.ty, link - global.start, at);
            }
            return Ok(());
        }
        match seen.place {
            Place::Object(pointer) => self.see_object(access, pointer, seen.into, at),
            Place::Stack(Some(local)) => self.see_value(access, local.ty, local.offset, at),
            _ => {}
        }
        Ok(())
    }

    fn see_object(&mut self, access: &Access, pointer: Pointer, into: u64, at: u64) {
        let distance = pointer.offset.plus(Congruence::exactly(into as i64));
        let size = u64::from(access.size_bytes);
        let Some(spot) = self.catalog.spot(pointer.target, distance, size) else { return };
        let is_on_stack = self.is_on_stack(access.address);
        if !self.catalog.is_aggregate(pointer.target) {
            if !is_on_stack {
                let home = self.lifetimes.at(access.address, at);
                self.objects.see_buffer(home, pointer.target, pointer.origin);
            }
            if spot.is_certain {
                self.see_value(access, pointer.target, spot.offset, at);
            }
            return;
        }
        if !spot.is_certain {
            return;
        }
        if !is_on_stack && let Some(start) = access.address.checked_sub(spot.offset) {
            let home = self.lifetimes.at(start, at);
            self.objects.see(home, start, pointer.target, Strength::Accessed, at);
        }
        self.see_value(access, pointer.target, spot.offset, at);
    }

    /// Learns from the pointer that an access moved.
    fn see_value(&mut self, access: &Access, ty: Ty, offset: u64, at: u64) {
        let Some(value) = access.value.filter(|value| *value != 0) else { return };
        let size = u64::from(access.size_bytes);
        let Some(target) = self.catalog.pointee_at(ty, offset, size) else { return };
        if self.data_at(value).is_some() || self.is_on_stack(value) {
            return;
        }
        let home = self.lifetimes.at(value, at);
        if self.catalog.is_aggregate(target) {
            self.objects.see(home, value, target, Strength::PointedTo, at);
        } else if home.1.is_some_and(|block| block.start == value) {
            self.objects.see_buffer(home, target, Origin::Member(ty, offset));
        }
    }

    /// Between the passes: decides which objects lay where.
    pub fn settle(&mut self) {
        self.objects.settle(&mut self.catalog);
    }

    /// Second pass: the name of one access of a call that began at `at`.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn name(
        &mut self,
        access: &Access,
        context: &mut AccessContext,
        at: u64,
    ) -> Result<Named, ExplainError> {
        let seen = self.seen(access, context)?;
        let library = self.library(access.pc, context);
        if let Some(named) = self.blocks.at(access.address).and_then(|spot| self.in_block(spot)) {
            return Ok(named);
        }
        if let Some((image, link)) = self.data_at(access.address) {
            let named = self.in_image(image, link);
            let is_copy =
                named.evidence == Evidence::GlobalAddress && self.percpu.at(access.address).is_some();
            let named = if is_copy { Named { evidence: Evidence::PerCpu, ..named } } else { named };
            let is_nameless = named.class() == Class::Unnamed;
            return Ok(library.filter(|_| is_nameless).map_or(named, in_library));
        }
        Ok(match seen.place {
            Place::Stack(local) => {
                let local = local.map(|local| (local.variable, local.ty, local.offset + seen.into));
                Named::new(Name::Stack { local }, Evidence::Frame)
            }
            Place::Thread(offset) => match library {
                Some(library) => in_library(library),
                None => self.in_thread(access.pc, offset + seen.into as i64),
            },
            Place::Object(pointer) => self.in_object(access, (pointer, seen.into), at, library),
            Place::Fixed | Place::Unknown => self.untyped(access, at, library),
        })
    }

    /// What the code says of an access.
    fn seen(&mut self, access: &Access, context: &mut AccessContext) -> Result<Seen, ExplainError> {
        let sites = self.sites_at(access.pc)?;
        let same_kind = || sites.iter().filter(|site| site.kind == access.kind);
        let total: u64 = same_kind().map(|site| u64::from(site.size_bytes)).sum();
        let into = context.before(access, total);
        let size = access.size_bytes;
        let mut fitting = same_kind().filter(|site| site.size_bytes == size || site.size_bytes == 0);
        let place = match (same_kind().count(), fitting.next(), fitting.next()) {
            (0, ..) => Place::Unknown,
            (1, ..) => {
                return Ok(Seen {
                    into,
                    place: same_kind().next().map_or(Place::Unknown, |site| site.place),
                });
            }
            (_, Some(only), None) => only.place,
            _ => return Ok(self.of_several(&sites, access, into)),
        };
        Ok(Seen { into: 0, place })
    }

    /// Which of several operands: the adjacent ones of a multiple store count as one; else the one that
    /// the address can belong to.
    fn of_several(&self, sites: &[Site], access: &Access, into: u64) -> Seen {
        let mut same_kind = sites.iter().filter(|site| site.kind == access.kind);
        let Some(first) = same_kind.next() else { return Seen { into: 0, place: Place::Unknown } };
        let is_stack = |site: &Site| matches!(site.place, Place::Stack(_));
        if matches!((first.place, same_kind.next().map(|site| site.place)), (Place::Object(a), Some(Place::Object(b))) if a.target == b.target)
            || sites.iter().all(is_stack)
        {
            return Seen { into, place: first.place };
        }
        let on_stack = self.is_on_stack(access.address);
        let mut possible = sites.iter().filter(|site| site.kind == access.kind && is_stack(site) == on_stack);
        match (possible.next(), possible.next()) {
            (Some(only), None) => Seen { into: 0, place: only.place },
            _ => Seen { into: 0, place: Place::Unknown },
        }
    }

    fn sites_at(&mut self, pc: u64) -> Result<Rc<[Site]>, ExplainError> {
        if let Some(known) = self.sites.get(&pc) {
            return Ok(known.clone());
        }
        if let Some((image, link)) = self.image_at(pc) {
            self.analyse_at(image, link)?;
        }
        Ok(self.sites.entry(pc).or_insert_with(|| Rc::from([])).clone())
    }

    /// Analyses the function that covers a program counter, once.
    fn analyse_at(&mut self, image: usize, link: u64) -> Result<(), ExplainError> {
        let Some(described) = self.images.get(image) else { return Ok(()) };
        let Some(number) = described.functions.iter().position(|function| function.contains(link)) else {
            return Ok(());
        };
        if !self.analysed.insert((image, number)) {
            return Ok(());
        }
        let Some(function) = described.functions.get(number) else { return Ok(()) };
        let mut world = World {
            images: &self.images,
            catalog: &mut self.catalog,
            globals: &self.globals,
            blocks: &self.blocks,
            names: &mut self.names,
            results: &self.results,
            results_by_name: &self.results_by_name,
        };
        let found = analyse(&mut world, image, function)?;
        let loaded = &described.loaded;
        self.sites.extend(found.into_iter().map(|(link, sites)| (loaded.to_runtime(link), Rc::from(sites))));
        Ok(())
    }

    fn image_at(&self, runtime: u64) -> Option<(usize, u64)> {
        let (_, (end, index)) = self.placed.range(..=runtime).next_back()?;
        let image = self.images.get(*index).filter(|_| runtime < *end)?;
        Some((*index, image.loaded.to_link(runtime)))
    }

    /// The image whose section holds a data address. Between the sections of one file other things may be
    /// mapped.
    fn data_at(&self, runtime: u64) -> Option<(usize, u64)> {
        if let Some(found) = self.percpu.at(runtime) {
            return Some(found);
        }
        let (index, link) = self.image_at(runtime)?;
        let image = self.images.get(index)?;
        (image.debug.is_none() || image.section_at(link).is_some()).then_some((index, link))
    }

    fn is_on_stack(&self, address: u64) -> bool {
        self.stacks.iter().any(|stack| (stack.start..stack.end).contains(&address))
    }

    fn in_image(&mut self, image: usize, link: u64) -> Named {
        let evidence = Evidence::GlobalAddress;
        if let Some(global) = self.globals.get(image).and_then(|globals| globals.at(link)) {
            let name = Name::Variable { image, variable: global.variable, offset: link - global.start };
            return Named::new(name, evidence);
        }
        let Some(described) = self.images.get(image) else {
            return Named::new(Name::Unknown, Evidence::None);
        };
        if let Some(symbol) = described.symbol_at(link).filter(|symbol| symbol.kind == SymbolKind::Data) {
            let offset = link - symbol.address;
            let symbol = described.symbol_index(symbol).unwrap_or(u32::MAX);
            return Named::new(Name::Symbol { image, symbol, offset }, evidence);
        }
        match described.section_at(link) {
            Some(section) if section.region != Region::Data || section.name.starts_with(".got") => {
                let section = self.names.number(section.name.clone());
                Named::new(Name::Constant { image, section }, evidence)
            }
            _ => Named::new(Name::Library { image, symbol: None }, Evidence::None),
        }
    }

    fn in_thread(&mut self, pc: u64, offset: i64) -> Named {
        if self.blocks.is_head(offset) {
            return Named::new(Name::ThreadHead { offset }, Evidence::ThreadBase);
        }
        let image = self.image_at(pc).map_or(0, |(image, _)| image);
        Named::new(Name::ThreadLocal { image, offset }, Evidence::ThreadBase)
    }

    fn thread_local_at(&self, spot: BlockSpot) -> Option<Global> {
        self.globals.get(spot.image)?.thread_local_at(spot.offset).copied()
    }

    /// The variable or symbol at a byte of a thread's block.
    fn in_block(&self, spot: BlockSpot) -> Option<Named> {
        let image = spot.image;
        let described = self.thread_local_at(spot).map(|global| Name::Variable {
            image,
            variable: global.variable,
            offset: spot.offset - global.start,
        });
        let of_symbol = || {
            let (symbol, offset) = self.blocks.symbol_at(spot)?;
            Some(Name::Symbol { image, symbol, offset })
        };
        let name = described.or_else(of_symbol)?;
        Some(Named::new(name, Evidence::ThreadBase))
    }

    fn in_object(
        &mut self,
        access: &Access,
        (pointer, into): (Pointer, u64),
        at: u64,
        library: Option<Name>,
    ) -> Named {
        let evidence = if pointer.is_located { Evidence::LocatedRegister } else { Evidence::Propagated };
        let is_on_stack = self.is_on_stack(access.address);
        let distance = pointer.offset.plus(Congruence::exactly(into as i64));
        let size = u64::from(access.size_bytes);
        let spot = self.catalog.spot(pointer.target, distance, size);
        let map = if is_on_stack { None } else { self.object_at(access.address, at) };
        if !self.catalog.is_aggregate(pointer.target) {
            if let Some((object, _)) = map {
                return member_of(object, access.address);
            }
            if is_on_stack {
                return Named::new(Name::Stack { local: None }, Evidence::StackRange);
            }
            return Named::new(Name::Buffer { origin: pointer.origin, element: pointer.target }, evidence);
        }
        let certain = spot.filter(|spot| spot.is_certain);
        let start = certain.and_then(|spot| access.address.checked_sub(spot.offset));
        if let Some((object, _)) = map {
            match start {
                Some(start) if self.is_within(object, start, pointer.target) => {
                    if object.start == start && object.ty != pointer.target {
                        self.used_as.entry(object.ty).or_default().insert(pointer.target);
                    }
                    return Named { evidence, ..member_of(object, access.address) };
                }
                None if object.ty == pointer.target && spot.is_some() => {
                    return Named { evidence, ..member_of(object, access.address) };
                }
                None => return member_of(object, access.address),
                Some(_) => {}
            }
        }
        match spot {
            Some(spot) => {
                let name = Name::Member { ty: pointer.target, base: start, offset: spot.offset, is_on_stack };
                Named::new(name, evidence)
            }
            None => self.untyped(access, at, library),
        }
    }

    /// True when an object of type `ty` at `start` is part of `object`, or that object itself.
    fn is_within(&mut self, object: Object, start: u64, ty: Ty) -> bool {
        let Some(distance) = start.checked_sub(object.start) else { return false };
        self.catalog.holds(object.ty, distance, ty)
            || (distance == 0 && self.catalog.begins_with(object.ty, ty))
    }

    fn object_at(&self, address: u64, at: u64) -> Option<(Object, Home)> {
        let home = self.lifetimes.at(address, at);
        self.objects.at(home, address, at).map(|object| (object, home))
    }

    /// An access of which the code says nothing. `library` is the library code that made it.
    fn untyped(&mut self, access: &Access, at: u64, library: Option<Name>) -> Named {
        if self.is_on_stack(access.address) {
            return Named::new(Name::Stack { local: None }, Evidence::StackRange);
        }
        let home = self.lifetimes.at(access.address, at);
        if let Some(object) = self.objects.at(home, access.address, at) {
            return member_of(object, access.address);
        }
        if let Some((element, origin)) = self.objects.buffer(home.0) {
            return Named::new(Name::Buffer { origin, element }, Evidence::ObjectMap);
        }
        match library {
            Some(name) => in_library(name),
            None => Named::new(if home.1.is_some() { Name::Heap } else { Name::Unknown }, Evidence::None),
        }
    }

    /// The library function that a program counter is in: always in a shared library, since debug information
    /// that happens to be installed for it must not leave more accesses without a name; else when no described
    /// function covers it.
    fn library(&mut self, pc: u64, context: &mut AccessContext) -> Option<Name> {
        let (image, link) = self.image_at(pc)?;
        let described = match self.described.get(&pc) {
            Some(known) => *known,
            None => {
                let image = self.images.get(image)?;
                let found = !image.is_shared_library()
                    && image.functions.iter().any(|function| function.contains(link));
                self.described.insert(pc, found);
                found
            }
        };
        if described {
            return None;
        }
        let symbol = match self.symbols.get(&pc) {
            Some(known) => *known,
            None => {
                let name = self.images.get(image)?.symbol_at(link).map(|symbol| symbol.name.clone());
                let number = name.map(|name| self.names.number(name));
                self.symbols.insert(pc, number);
                number
            }
        };
        let symbol = match symbol {
            Some(symbol) => {
                context.entered.insert(image, symbol);
                Some(symbol)
            }
            None => context.entered.get(&image).copied(),
        };
        Some(Name::Library { image, symbol })
    }
}

fn in_library(name: Name) -> Named {
    let is_named = matches!(name, Name::Library { symbol: Some(_), .. });
    Named::new(name, if is_named { Evidence::Code } else { Evidence::None })
}

fn member_of(object: Object, address: u64) -> Named {
    let name = Name::Member {
        ty: object.ty,
        base: Some(object.start),
        offset: address - object.start,
        is_on_stack: false,
    };
    let evidence = match object.strength {
        Strength::Accessed => Evidence::ObjectMap,
        Strength::PointedTo => Evidence::PointerValue,
    };
    Named::new(name, evidence)
}

type Results = (HashMap<(usize, u64), Ty>, HashMap<String, Ty>);

/// What every described function returns a pointer to.
fn results(catalog: &mut Catalog<'_>, images: &[Image<'_>]) -> Results {
    let mut by_entry = HashMap::new();
    let mut by_name = HashMap::new();
    for (index, image) in images.iter().enumerate() {
        for function in &image.functions {
            let Some(target) = function.returns.and_then(|id| catalog.pointee(index, id)) else { continue };
            if let Some(entry) = function.entry() {
                by_entry.insert((index, entry), target);
            }
            let name = function.linkage_name.as_ref().unwrap_or(&function.name);
            by_name.entry(name.clone()).or_insert(target);
        }
    }
    (by_entry, by_name)
}
