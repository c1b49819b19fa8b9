//! The contents of an address: names from variables, threads' blocks, objects and memory.

use crate::code::abstract_value::Pointer;
use crate::images::globals::Global;
use crate::images::thread_blocks::BlockSpot;
use crate::memory::list_links::LinkAt;
use crate::memory::live_times::Moment;
use crate::memory::objects::{Home, Object};
use crate::memory::sightings::Strength;
use crate::naming::name::{Class, Evidence, Name, Named};
use crate::naming::namer::Namer;
use crate::types::catalog::Ty;
use crate::types::congruence::Congruence;
use lineup_debuginfo::Region;
use lineup_model::access::Access;
use lineup_model::program::SymbolKind;

impl Namer<'_> {
    /// The name of an access of which only the address counts.
    pub(crate) fn by_address(&mut self, access: &Access, at: Moment, library: Option<Name>) -> Named {
        if self.copied.is_programs(access.address) {
            return Named::new(Name::Copied, Evidence::ProgramAddress);
        }
        if let Some(named) = self.blocks.at(access.address).and_then(|spot| self.in_block(spot)) {
            return named;
        }
        match self.data_at(access.address) {
            Some((image, link)) => {
                let of_variable = self.in_data(access, (image, link), library);
                match self.is_pool(image, link) {
                    true => {
                        let found = self.untyped(access, at, library);
                        self.or_variable(found, of_variable)
                    }
                    false => of_variable,
                }
            }
            None => self.untyped(access, at, library),
        }
    }

    /// Memory without a name of its own is copied memory if the instruction copies for programs, or copies or clears
    /// pages.
    pub fn or_copied(&mut self, pc: u64, named: Named) -> Named {
        let may_be = matches!(named.class(), Class::Unnamed | Class::Library | Class::Buffer);
        match may_be && self.copied.is_by(pc, &self.images) {
            true => Named::new(Name::Copied, Evidence::Code),
            false => named,
        }
    }

    /// The end of the bytes that a name covers: its own end, or the beginning of another known object.
    pub(crate) fn end_of(&mut self, named: &Named, address: u64, at: Moment) -> u64 {
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
        let is_of_pool = !matches!(named.name, Name::Member { .. })
            && self.data_at(address).is_some_and(|(image, link)| self.is_pool(image, link));
        let next = self.objects.next_start(home, address).unwrap_or(u64::MAX);
        if is_of_pool {
            return own_end.min(next);
        }
        if own.is_some() { own_end } else { next.min(home.1.map_or(u64::MAX, |block| block.end)) }
    }

    /// The image whose section holds a data address. Between the sections of one file other things may be
    /// mapped.
    pub(crate) fn data_at(&self, runtime: u64) -> Option<(usize, u64)> {
        if let Some(found) = self.percpu.at(runtime) {
            return Some(found);
        }
        let (index, link) = self.images.at(runtime)?;
        let image = self.images.get(index)?;
        (image.debug.is_none() || image.section_at(link).is_some()).then_some((index, link))
    }

    pub(crate) fn is_on_stack(&self, address: u64) -> bool {
        self.stacks.iter().any(|stack| (stack.start..stack.end).contains(&address))
    }

    /// The name of data at a link address of an image.
    pub(crate) fn in_data(
        &mut self,
        access: &Access,
        (image, link): (usize, u64),
        library: Option<Name>,
    ) -> Named {
        let named = self.in_image(image, link);
        let is_copy = named.evidence == Evidence::GlobalAddress && self.percpu.at(access.address).is_some();
        let named = if is_copy { Named { evidence: Evidence::PerCpu, ..named } } else { named };
        let is_nameless = named.class() == Class::Unnamed;
        library.filter(|_| is_nameless).map_or(named, Named::in_library)
    }

    pub(crate) fn in_image(&mut self, image: usize, link: u64) -> Named {
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

    pub(crate) fn in_thread(&mut self, pc: u64, offset: i64) -> Named {
        if self.blocks.is_head(offset) {
            return Named::new(Name::ThreadHead { offset }, Evidence::ThreadBase);
        }
        let image = self.images.at(pc).map_or(0, |(image, _)| image);
        Named::new(Name::ThreadLocal { image, offset }, Evidence::ThreadBase)
    }

    pub(crate) fn thread_local_at(&self, spot: BlockSpot) -> Option<Global> {
        self.globals.get(spot.image)?.thread_local_at(spot.offset).copied()
    }

    /// The variable or symbol at a byte of a thread's block.
    pub(crate) fn in_block(&self, spot: BlockSpot) -> Option<Named> {
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

    pub(crate) fn in_object(
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
        let begin =
            spot.filter(|spot| spot.is_certain).and_then(|spot| access.address.checked_sub(spot.offset));
        let link = begin.and_then(|begin| self.head_at(begin, pointer.target, at));
        if let Some((begin, link)) = begin.zip(link) {
            let head = begin.saturating_add(link.offset);
            return Named {
                evidence,
                ..self.in_head(access.address, (head, link.ty), map.map(|found| found.0))
            };
        }
        if !self.catalog.is_aggregate(pointer.target) {
            if let Some((object, home, at)) = map
                && (self.catalog.holds_scalar(
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
            None => {
                let behind = match is_on_stack {
                    true => None,
                    false => {
                        let of = (pointer.target, distance);
                        self.behind.name(&self.catalog, of, Some(access.address), size)
                    }
                };
                behind.unwrap_or_else(|| self.untyped(access, at, library))
            }
        }
    }

    /// The link that a supposed object is, if it is a list's head that code reads as an entry.
    fn head_at(&self, start: u64, ty: Ty, at: Moment) -> Option<LinkAt> {
        self.homes(start, at).find_map(|(home, _)| self.objects.head(home, start, ty))
    }

    /// The name of an access to a list's head: a member of the object that has it, else the head alone.
    fn in_head(&mut self, address: u64, (head, link): (u64, Ty), map: Option<Object>) -> Named {
        if let Some(object) = map.filter(|object| object.start <= head)
            && self.catalog.holds(object.ty, head - object.start, link)
        {
            return member_of(object, address);
        }
        let name = Name::Member { ty: link, base: Some(head), offset: address - head, is_on_stack: false };
        Named::new(name, Evidence::ObjectMap)
    }

    /// True when an object of type `ty` at `start` is part of `object`, or that object itself.
    pub(crate) fn is_within(&mut self, object: Object, start: u64, ty: Ty) -> bool {
        let Some(distance) = start.checked_sub(object.start) else { return false };
        self.catalog.holds(object.ty, distance, ty)
            || (distance == 0 && self.catalog.begins_with(object.ty, ty))
    }

    pub(crate) fn object_at(&self, address: u64, at: Moment) -> Option<(Object, Home, Moment)> {
        self.homes(address, at)
            .find_map(|(home, at)| self.objects.at(home, address, at).map(|object| (object, home, at)))
    }

    /// The lifetimes that an address is in: the process's own, then those that it has from where it was forked off.
    pub(crate) fn homes(&self, address: u64, at: Moment) -> impl Iterator<Item = (Home, Moment)> {
        let moments = std::iter::successors(Some(at), move |at| {
            let (process, call) = self.lifetimes.inherited(at.process, address, at.call)?;
            Some(Moment { call, access: u32::MAX, process })
        });
        moments.map(move |at| (self.lifetimes.at(at.process, address, at.call), at))
    }

    /// An access of which the code says nothing. `library` is the library code that made it.
    pub(crate) fn untyped(&mut self, access: &Access, at: Moment, library: Option<Name>) -> Named {
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
            Some(name) => Named::in_library(name),
            None => Named::new(if is_heap() { Name::Heap } else { Name::Unknown }, Evidence::None),
        }
    }
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
        Strength::Given => Evidence::Argument,
        Strength::PointedTo => Evidence::PointerValue,
    };
    Named::new(name, evidence)
}
