//! Names accesses: static analysis of the code first, then what was learned of the memory.

use crate::abstract_value::{Origin, Pointer};
use crate::access_context::AccessContext;
use crate::analysis::{Place, Site, World, analyse};
use crate::callees::results;
use crate::catalog::{Catalog, Ty};
use crate::congruence::Congruence;
use crate::error::ExplainError;
use crate::explanation::Lack;
use crate::globals::{Global, Globals};
use crate::image::{Image, Placed};
use crate::library_code::LibraryCode;
use crate::lifetimes::ObjectLifetimes;
use crate::live_times::Moment;
use crate::loaded_images::LoadedImages;
use crate::located::Names;
use crate::name::{Class, Evidence, Name, Named, VariableId};
use crate::objects::{Home, Object, Objects, Sighting, Strength};
use crate::percpu::PerCpu;
use crate::thread_block::{BlockSpot, ThreadBlocks};
use lineup_debuginfo::Region;
use lineup_model::access::{Access, AccessKind, MemoryEvent, StackRange};
use lineup_model::process::Process;
use lineup_model::program::SymbolKind;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// A run of bytes that an access touched, with its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedRange {
    /// Runtime address of the first byte.
    pub address: u64,
    /// How many bytes.
    pub size_bytes: u32,
    /// The name of the first byte, which holds for all.
    pub named: Named,
}

/// The most bytes that one operand of an instruction has (a register of AVX-512). An access of more is a string
/// instruction's.
const LARGEST_OPERAND_BYTES: u32 = 64;

/// Names the accesses of a recording in two passes: [`Namer::observe`] every access, [`Namer::settle`],
/// then [`Namer::name`] every access.
pub struct Namer<'a> {
    images: LoadedImages<'a>,
    catalog: Catalog<'a>,
    globals: Vec<Globals>,
    names: Names,
    results: HashMap<(usize, u64), Ty>,
    results_by_name: HashMap<String, Ty>,
    /// By image and link address.
    sites: HashMap<(usize, u64), Rc<[Site]>>,
    analysed: HashSet<(usize, usize)>,
    stacks: Vec<StackRange>,
    percpu: PerCpu,
    blocks: ThreadBlocks,
    lifetimes: ObjectLifetimes,
    objects: Objects,
    used_as: HashMap<Ty, BTreeSet<Ty>>,
    library: LibraryCode,
}

/// An access with what the code around it says of it.
#[derive(Clone, Debug)]
struct Seen {
    /// Bytes of the operand before this piece.
    into: u64,
    place: Place,
}

impl<'a> Namer<'a> {
    /// A namer for these images and the places where they were besides, with the lifetimes of memory and the stacks that
    /// were recorded.
    pub fn new(
        images: Vec<Image<'a>>,
        places: &[Placed],
        memory: &[MemoryEvent],
        stacks: &[StackRange],
    ) -> Self {
        let mut catalog = Catalog::new(images.iter().map(Image::types).collect());
        let globals = images
            .iter()
            .enumerate()
            .map(|(index, image)| Globals::new(&mut catalog, index, image))
            .collect();
        let (results, results_by_name) = results(&mut catalog, &images);
        let percpu = PerCpu::new(&images);
        let images = LoadedImages::new(images, places);
        Namer {
            percpu,
            blocks: ThreadBlocks::new(&images),
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
            library: LibraryCode::default(),
        }
    }

    /// The images.
    pub fn images(&self) -> &[Image<'a>] {
        self.images.all()
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

    /// The function that a program counter is in: its name as the source spells it, and the path of its image.
    pub fn function_at(&self, pc: u64) -> (String, String) {
        self.images.function_at(pc)
    }

    /// What the debug information of the code at a program counter lacks so that its accesses can have names.
    pub fn lack_at(&self, pc: u64) -> Option<Lack> {
        self.images.lack_at(pc)
    }

    /// Texts by number.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Types that objects of a type were used as, at their first byte.
    pub fn used_as(&self, ty: Ty) -> Option<&BTreeSet<Ty>> {
        self.used_as.get(&ty)
    }

    /// Before the first pass: the processes that there were.
    pub fn see_processes(&mut self, processes: &[Process]) {
        self.lifetimes.see_processes(processes);
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
        let at = context.next(at);
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

    fn see_object(&mut self, access: &Access, pointer: Pointer, into: u64, at: Moment) {
        let distance = pointer.offset.plus(Congruence::exactly(into as i64));
        let size = u64::from(access.size_bytes);
        let Some(spot) = self.catalog.spot(pointer.target, distance, size) else { return };
        let is_on_stack = self.is_on_stack(access.address);
        if !self.catalog.is_aggregate(pointer.target) {
            if !is_on_stack {
                let home = self.lifetimes.at(at.process, access.address, at.call);
                self.objects.see_buffer(home, pointer.target, pointer.origin);
                if access.kind == AccessKind::Store {
                    let catalog = &mut self.catalog;
                    let is_member = |ty, offset| {
                        is_beyond(catalog, ty, offset) || agrees(catalog, (ty, offset), size, pointer.target)
                    };
                    let bytes = access.address..access.address.saturating_add(size);
                    self.objects.see_scalar(home, bytes, at, is_member);
                }
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
            let home = self.lifetimes.at(at.process, start, at.call);
            let sighting = Sighting::Access { kind: access.kind, offset: spot.offset, size_bytes: size };
            self.objects.see(home, start, pointer.target, sighting, at);
        }
        self.see_value(access, pointer.target, spot.offset, at);
    }

    /// Learns from the pointer that an access moved.
    fn see_value(&mut self, access: &Access, ty: Ty, offset: u64, at: Moment) {
        let Some(value) = access.value.filter(|value| *value != 0) else { return };
        let size = u64::from(access.size_bytes);
        let Some(target) = self.catalog.pointee_at(ty, offset, size) else { return };
        if self.data_at(value).is_some() || self.is_on_stack(value) {
            return;
        }
        let home = self.lifetimes.at(at.process, value, at.call);
        if self.catalog.is_aggregate(target) {
            self.objects.see(home, value, target, Sighting::Pointer, at);
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
        let at = context.next(at);
        let seen = self.seen(access, context)?;
        let library = self.library.at(&self.images, &mut self.names, access.pc, context);
        if let Some(named) = self.blocks.at(access.address).and_then(|spot| self.in_block(spot)) {
            return Ok(named);
        }
        if let Some((image, link)) = self.data_at(access.address) {
            return Ok(self.in_data(access, (image, link), library));
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

    /// Second pass: the names of what one access touched, range by range. A string instruction may touch many
    /// objects with one access; the code's word for its pointer holds for the first of them only.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn name_ranges(
        &mut self,
        access: &Access,
        context: &mut AccessContext,
        at: u64,
    ) -> Result<Vec<NamedRange>, ExplainError> {
        if access.size_bytes <= LARGEST_OPERAND_BYTES {
            let named = self.name(access, context, at)?;
            return Ok(vec![NamedRange { address: access.address, size_bytes: access.size_bytes, named }]);
        }
        let end = access.address.saturating_add(u64::from(access.size_bytes));
        let first = self.name(&Access { size_bytes: 1, value: None, ..*access }, context, at)?;
        let library = self.library.at(&self.images, &mut self.names, access.pc, context);
        let moment = context.moment(at);
        let mut ranges = Vec::new();
        let (mut address, mut named) = (access.address, first);
        loop {
            let to = self.end_of(&named, address, moment).clamp(address.saturating_add(1), end);
            ranges.push(NamedRange { address, size_bytes: (to - address) as u32, named });
            if to >= end {
                return Ok(ranges);
            }
            address = to;
            named =
                self.by_address(&Access { address, size_bytes: 1, value: None, ..*access }, moment, library);
        }
    }

    /// Where ends what a name covers: at its own end, or where another known object begins.
    fn end_of(&mut self, named: &Named, address: u64, at: Moment) -> u64 {
        let own = match named.name {
            Name::Member { ty, offset, .. } | Name::Stack { local: Some((_, ty, offset)) } => {
                self.catalog.size_bytes(ty).map(|size| size.saturating_sub(offset))
            }
            Name::Variable { image, variable, offset } => {
                let id = self.images.get(image).and_then(|image| image.globals().get(variable as usize)?.ty);
                let ty = id.and_then(|id| self.catalog.intern(image, id));
                ty.and_then(|ty| self.catalog.size_bytes(ty)).map(|size| size.saturating_sub(offset))
            }
            Name::Symbol { image, symbol, offset } => {
                let symbol = self.images.get(image).and_then(|image| image.symbols().get(symbol as usize));
                symbol.map(|symbol| symbol.size_bytes.saturating_sub(offset))
            }
            _ => None,
        };
        let home = self.lifetimes.at(at.process, address, at.call);
        let own_end = own.map_or(u64::MAX, |own| address.saturating_add(own));
        let next = self.objects.next_start(home, address).unwrap_or(u64::MAX);
        if own.is_some() { own_end } else { next.min(home.1.map_or(u64::MAX, |block| block.end)) }
    }

    /// The name of an access of which only the address counts.
    fn by_address(&mut self, access: &Access, at: Moment, library: Option<Name>) -> Named {
        if let Some(named) = self.blocks.at(access.address).and_then(|spot| self.in_block(spot)) {
            return named;
        }
        match self.data_at(access.address) {
            Some((image, link)) => self.in_data(access, (image, link), library),
            None => self.untyped(access, at, library),
        }
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
        let Some(place) = self.images.at(pc) else { return Ok(Rc::from([])) };
        if let Some(known) = self.sites.get(&place) {
            return Ok(known.clone());
        }
        self.analyse_at(place.0, place.1)?;
        Ok(self.sites.entry(place).or_insert_with(|| Rc::from([])).clone())
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
            images: self.images.all(),
            catalog: &mut self.catalog,
            globals: &self.globals,
            blocks: &self.blocks,
            names: &mut self.names,
            results: &self.results,
            results_by_name: &self.results_by_name,
        };
        let found = analyse(&mut world, image, function)?;
        self.sites.extend(found.into_iter().map(|(link, sites)| ((image, link), Rc::from(sites))));
        Ok(())
    }

    /// The image whose section holds a data address. Between the sections of one file other things may be
    /// mapped.
    fn data_at(&self, runtime: u64) -> Option<(usize, u64)> {
        if let Some(found) = self.percpu.at(runtime) {
            return Some(found);
        }
        let (index, link) = self.images.at(runtime)?;
        let image = self.images.get(index)?;
        (image.debug.is_none() || image.section_at(link).is_some()).then_some((index, link))
    }

    fn is_on_stack(&self, address: u64) -> bool {
        self.stacks.iter().any(|stack| (stack.start..stack.end).contains(&address))
    }

    /// The name of data at a link address of an image.
    fn in_data(&mut self, access: &Access, (image, link): (usize, u64), library: Option<Name>) -> Named {
        let named = self.in_image(image, link);
        let is_copy = named.evidence == Evidence::GlobalAddress && self.percpu.at(access.address).is_some();
        let named = if is_copy { Named { evidence: Evidence::PerCpu, ..named } } else { named };
        let is_nameless = named.class() == Class::Unnamed;
        library.filter(|_| is_nameless).map_or(named, in_library)
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
        let image = self.images.at(pc).map_or(0, |(image, _)| image);
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
        at: Moment,
        library: Option<Name>,
    ) -> Named {
        let evidence = if pointer.is_located { Evidence::LocatedRegister } else { Evidence::Propagated };
        let is_on_stack = self.is_on_stack(access.address);
        let distance = pointer.offset.plus(Congruence::exactly(into as i64));
        let size = u64::from(access.size_bytes);
        let spot = self.catalog.spot(pointer.target, distance, size);
        let map = if is_on_stack { None } else { self.object_at(access.address, at) };
        if !self.catalog.is_aggregate(pointer.target) {
            if let Some((object, home, at)) = map
                && (agrees(
                    &mut self.catalog,
                    (object.ty, access.address - object.start),
                    size,
                    pointer.target,
                ) || self.objects.is_live(home, &object, at))
            {
                return member_of(object, access.address);
            }
            if is_on_stack {
                return Named::new(Name::Stack { local: None }, Evidence::StackRange);
            }
            return Named::new(Name::Buffer { origin: pointer.origin, element: pointer.target }, evidence);
        }
        let certain = spot.filter(|spot| spot.is_certain);
        let start = certain.and_then(|spot| access.address.checked_sub(spot.offset));
        if let Some((object, ..)) = map {
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

    fn object_at(&self, address: u64, at: Moment) -> Option<(Object, Home, Moment)> {
        self.homes(address, at)
            .find_map(|(home, at)| self.objects.at(home, address, at).map(|object| (object, home, at)))
    }

    /// The lifetimes that an address is in: the process's own, then those that it has from where it was forked off.
    fn homes(&self, address: u64, at: Moment) -> impl Iterator<Item = (Home, Moment)> {
        let moments = std::iter::successors(Some(at), move |at| {
            let (process, call) = self.lifetimes.inherited(at.process, address, at.call)?;
            Some(Moment { call, access: u32::MAX, process })
        });
        moments.map(move |at| (self.lifetimes.at(at.process, address, at.call), at))
    }

    /// An access of which the code says nothing. `library` is the library code that made it.
    fn untyped(&mut self, access: &Access, at: Moment, library: Option<Name>) -> Named {
        if self.is_on_stack(access.address) {
            return Named::new(Name::Stack { local: None }, Evidence::StackRange);
        }
        if let Some((object, home, at)) = self.object_at(access.address, at)
            && self.objects.may_be_live(home, &object, at)
        {
            return member_of(object, access.address);
        }
        if let Some((element, origin)) =
            self.homes(access.address, at).find_map(|(home, _)| self.objects.buffer(home.0))
        {
            return Named::new(Name::Buffer { origin, element }, Evidence::ObjectMap);
        }
        let is_heap = || self.homes(access.address, at).any(|(home, _)| home.1.is_some());
        match library {
            Some(name) => in_library(name),
            None => Named::new(if is_heap() { Name::Heap } else { Name::Unknown }, Evidence::None),
        }
    }
}

/// True when a type ends before an offset.
fn is_beyond(catalog: &Catalog<'_>, ty: Ty, offset: u64) -> bool {
    !catalog.has_open_end(ty) && catalog.size_bytes(ty).is_some_and(|size| offset >= size)
}

/// True when a pointer to a scalar is of the type of the member that it was used on.
fn agrees(catalog: &mut Catalog<'_>, (ty, offset): (Ty, u64), size_bytes: u64, scalar: Ty) -> bool {
    let field = catalog.field(ty, offset, size_bytes).filter(|field| field.members == 1);
    field.and_then(|field| field.leaf).is_some_and(|leaf| catalog.is_same_scalar(ty, leaf, scalar))
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
