//! Names accesses: by static analysis of the code first, then by the facts learned of memory.

use crate::code::access_sites::{AccessTarget, Site};
use crate::code::callees::Callees;
use crate::code::instruction::Atomic;
use crate::code::variable_locations::Names;
use crate::error::ExplainError;
use crate::images::globals::{Global, Globals};
use crate::images::image::{Image, Placed};
use crate::images::lack::Lack;
use crate::images::loaded_images::LoadedImages;
use crate::images::percpu_variables::PerCpu;
use crate::images::thread_blocks::ThreadBlocks;
use crate::memory::containers::Holders;
use crate::memory::copied_data::Copied;
use crate::memory::lifetimes::ObjectLifetimes;
use crate::memory::list_links::Links;
use crate::memory::objects::Objects;
use crate::naming::access_context::AccessContext;
use crate::naming::data_behind::Behind;
use crate::naming::library_code::LibraryCode;
use crate::naming::name::{Evidence, Name, Named, VariableId};
use crate::types::catalog::{Catalog, Ty};
use foldhash::{HashMap, HashSet};
use lineup_model::access::{Access, MemoryEvent, StackRange};
use lineup_model::process::Process;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

/// A run of bytes that an access touched, with its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NamedRange {
    /// Runtime address of the first byte.
    pub address: u64,
    /// The number of bytes.
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
    pub(super) images: LoadedImages<'a>,
    pub(super) catalog: Catalog<'a>,
    pub(super) globals: Vec<Globals>,
    pub(super) names: Names,
    pub(super) callees: Callees,
    /// By image and link address.
    pub(super) sites: HashMap<(usize, u64), Rc<[Site]>>,
    pub(super) analysed: HashSet<(usize, usize)>,
    pub(super) stacks: Vec<StackRange>,
    pub(super) percpu: PerCpu,
    pub(super) blocks: ThreadBlocks,
    pub(super) lifetimes: ObjectLifetimes,
    pub(super) objects: Objects,
    pub(super) used_as: HashMap<Ty, BTreeSet<Ty>>,
    pub(super) library: LibraryCode,
    pub(super) copied: Copied,
    /// The code is a kernel's.
    pub(super) is_kernel: bool,
    pub(super) links: Links,
    pub(super) behind: Behind,
    pub(super) holders: Holders,
    /// The bytes of a variable's type that memory may be handed out from.
    pub(super) pools: HashMap<Ty, Rc<[Range<u64>]>>,
}

/// An access with the facts that the code around it gives.
#[derive(Clone, Debug)]
pub(crate) struct AnalysedAccess {
    /// Bytes of the operand before this piece.
    pub(super) into: u64,
    pub(super) place: AccessTarget,
}

impl<'a> Namer<'a> {
    /// A namer for these images and the places where they were besides, with the lifetimes of memory and the stacks
    /// that were recorded.
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
        let mut names = Names::default();
        let callees = Callees::new(&mut catalog, &mut names, &images);
        let percpu = PerCpu::new(&images);
        let images = LoadedImages::new(images, places);
        Namer {
            percpu,
            blocks: ThreadBlocks::new(&images),
            globals,
            catalog,
            callees,
            images,
            names,
            sites: HashMap::default(),
            analysed: HashSet::default(),
            stacks: stacks.to_vec(),
            lifetimes: ObjectLifetimes::new(memory),
            objects: Objects::default(),
            used_as: HashMap::default(),
            library: LibraryCode::default(),
            copied: Copied::default(),
            is_kernel: false,
            links: Links::default(),
            behind: Behind::default(),
            holders: Holders::default(),
            pools: HashMap::default(),
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

    /// The functions of which copies are inlined at a program counter.
    pub(crate) fn inlined_at(&self, pc: u64) -> Vec<String> {
        self.images.inlined_at(pc)
    }

    /// The effect of the instruction at a program counter, when it changes memory in one step that no other processor
    /// comes between.
    pub fn atomic_at(&self, pc: u64) -> Option<Atomic> {
        self.images.atomic_at(pc)
    }

    /// The image that a program counter is in.
    pub(crate) fn image_at(&self, pc: u64) -> Option<usize> {
        self.images.at(pc).map(|(image, _)| image)
    }

    /// The alignment that the instruction at a program counter asks of its operand in memory.
    pub(crate) fn asked_alignment_at(&self, pc: u64) -> Option<u64> {
        self.images.asked_alignment_at(pc)
    }

    /// Whether calls by the code at a program counter store the return address.
    pub(crate) fn calls_store_at(&self, pc: u64) -> bool {
        self.images.calls_store_at(pc)
    }

    /// File and line of a program counter, without the file's folders.
    pub fn place_of(&self, pc: u64) -> Option<String> {
        let (image, link) = self.images.at(pc)?;
        let place = self.images.get(image)?.debug?.line_of(link)?;
        Some(format!("{}:{}", place.file.rsplit('/').next().unwrap_or_default(), place.line))
    }

    /// The missing part of debug information without which accesses of the code at a program counter get no names.
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

    /// Before the first pass: bases that threads were given, or that CPUs have of a kernel. Others are learned from the
    /// code.
    pub fn see_thread_bases(&mut self, bases: &[u64]) {
        for base in bases {
            self.blocks.see(*base);
            self.percpu.see_base(*base);
        }
    }

    /// Before the passes: the code is a kernel's, whose part of the addresses begins here.
    pub fn see_kernel(&mut self, start: u64) {
        self.copied.see_kernel(start);
        self.is_kernel = true;
    }

    /// Before the passes: more stacks.
    pub fn see_stacks(&mut self, stacks: impl IntoIterator<Item = StackRange>) {
        self.stacks.extend(stacks);
    }

    /// True when the code says that an access goes to the stack, at any address.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn is_on_stack_by_code(&mut self, access: &Access) -> Result<bool, ExplainError> {
        let seen = self.seen(access, &mut AccessContext::default())?;
        Ok(matches!(seen.place, AccessTarget::Stack(_)))
    }

    /// The name that the code gives to the only load, or the only store, of an instruction of which one address is
    /// known. The instruction also ran at other times, so facts learned of memory are not used. The exception are types
    /// that lie behind all objects of a type. `None` when no name remains.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn name_by_code(&mut self, access: &Access) -> Result<Option<Named>, ExplainError> {
        let sites = self.sites_at(access.pc)?;
        let mut same_kind = sites.iter().filter(|site| site.kind == access.kind);
        let by_code = match (same_kind.next(), same_kind.next()) {
            (Some(site), None) => self.at_site(*site),
            _ => None,
        };
        if by_code.is_some() {
            return Ok(by_code);
        }
        let library =
            self.library.at(&self.images, &mut self.names, access.pc, &mut AccessContext::default());
        let moment = AccessContext::default().moment(0);
        let by_address = self.by_address(access, moment, library);
        let is_sure = matches!(
            by_address.evidence,
            Evidence::GlobalAddress | Evidence::StackRange | Evidence::ThreadBase | Evidence::Code
        );
        Ok(if is_sure { Some(by_address) } else { library.map(Named::in_library) })
    }

    /// The target of a sampled access: a variable at its address, else the result of [`Namer::name_by_code`]. An
    /// address outside all images names nothing, since its content at that time is not known.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn name_sampled(&mut self, access: &Access) -> Result<Option<Named>, ExplainError> {
        if let Some(at) = self.data_at(access.address) {
            let mut named = self.in_data(access, at, None);
            if self.is_pool(at.0, at.1)
                && let Some(by_code) = self.name_by_code(access)?
            {
                named = match by_code.name {
                    Name::Member { ty, offset, is_on_stack, .. } => {
                        let base = access.address.checked_sub(offset);
                        let name = Name::Member { ty, base, offset, is_on_stack };
                        self.or_variable(Named { name, ..by_code }, named)
                    }
                    _ => named,
                };
            }
            if named.evidence != Evidence::None {
                return Ok(Some(named));
            }
        }
        self.name_by_code(access)
    }

    /// The name that the analysis of the code gives to one operand.
    fn at_site(&mut self, site: Site) -> Option<Named> {
        match site.place {
            AccessTarget::Stack(local) => {
                let local = local.map(|local| (local.variable, local.ty, local.offset));
                Some(Named::new(Name::Stack { local }, Evidence::Frame))
            }
            AccessTarget::Object(pointer) if self.catalog.is_aggregate(pointer.target) => {
                let size = u64::from(site.size_bytes);
                let Some(spot) = self.catalog.spot(pointer.target, pointer.offset, size) else {
                    return self.behind.name(&self.catalog, (pointer.target, pointer.offset), None, size);
                };
                let evidence =
                    if pointer.is_located { Evidence::LocatedRegister } else { Evidence::Propagated };
                let offset = spot.offset;
                let name = Name::Member { ty: pointer.target, base: None, offset, is_on_stack: false };
                Some(Named::new(name, evidence))
            }
            AccessTarget::Object(pointer) => {
                let evidence =
                    if pointer.is_located { Evidence::LocatedRegister } else { Evidence::Propagated };
                let name = Name::Buffer { origin: pointer.origin, element: pointer.target };
                Some(Named::new(name, evidence))
            }
            _ => None,
        }
    }

    /// Between the passes: decides which objects lay where.
    pub fn settle(&mut self) {
        self.objects.settle(&mut self.catalog, self.is_kernel);
        let mut behind = std::mem::take(&mut self.behind);
        behind.settle(&self.catalog, |end, at| Some(self.object_at(end, at)?.0));
        self.behind = behind;
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
        if self.copied.is_programs(access.address) {
            return Ok(Named::new(Name::Copied, Evidence::ProgramAddress));
        }
        if let Some(named) = self.blocks.at(access.address).and_then(|spot| self.in_block(spot)) {
            return Ok(named);
        }
        if let Some((image, link)) = self.data_at(access.address) {
            let of_variable = self.in_data(access, (image, link), library);
            if !self.is_pool(image, link) {
                return Ok(of_variable);
            }
            let found = match seen.place {
                AccessTarget::Object(pointer) => self.in_object(access, (pointer, seen.into), at, library),
                _ => self.untyped(access, at, library),
            };
            return Ok(self.or_variable(found, of_variable));
        }
        Ok(match seen.place {
            AccessTarget::Stack(local) => {
                let local = local.map(|local| (local.variable, local.ty, local.offset + seen.into));
                Named::new(Name::Stack { local }, Evidence::Frame)
            }
            AccessTarget::Thread(offset) => match library {
                Some(library) => Named::in_library(library),
                None => self.in_thread(access.pc, offset + seen.into as i64),
            },
            AccessTarget::Object(pointer) => self.in_object(access, (pointer, seen.into), at, library),
            AccessTarget::Fixed | AccessTarget::Unknown => self.untyped(access, at, library),
        })
    }

    /// Second pass: the names of the memory that one access touched, range by range. A string instruction may touch
    /// many objects with one access; the code's word for its pointer holds for the first of them only.
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
            let named = self.or_copied(access.pc, named);
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
            let own = self.or_copied(access.pc, named);
            ranges.push(NamedRange { address, size_bytes: (to - address) as u32, named: own });
            if to >= end {
                return Ok(ranges);
            }
            address = to;
            named =
                self.by_address(&Access { address, size_bytes: 1, value: None, ..*access }, moment, library);
        }
    }
}
