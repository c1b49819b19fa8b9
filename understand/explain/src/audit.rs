//! The accesses of a whole program's code by type, and the evidence of an audited run against moving members.
//!
//! The code is analysed without running it, as for a recording. A run then shows which of these accesses met other
//! types' bytes, system calls or shared memory. This module turns that into evidence in words.

use crate::code::access_sites::{AccessTarget, Site};
use crate::error::ExplainError;
use crate::images::image::Image;
use crate::naming::namer::Namer;
use crate::types::catalog::{Catalog, Ty};
use lineup_debuginfo::DebugInfo;
use lineup_model::access::AccessKind;
use lineup_model::image::LoadedImage;
use lineup_model::program::{Location, SymbolKind};
use lineup_model::types::{SourceLocation, TypeId, TypeKind};
use lineup_recording::audit::{
    Amount, Evidence, Findings, Global, Site as AuditSite, Table, TypeNumber, TypedByte,
};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The known facts about a program's code and variables.
pub struct CodeTypes<'a> {
    debug: &'a DebugInfo,
    namer: Namer<'a>,
    types: Vec<Ty>,
    numbers: HashMap<Ty, TypeNumber>,
    table: Table,
}

/// A kind of evidence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Code accesses its bytes as another type's.
    Alias,
    /// A system call takes or fills its bytes.
    SystemCall,
    /// It lies in memory that others see.
    Shared,
}

/// Evidence against moving the members of a type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypeEvidence {
    /// The type.
    pub ty: TypeId,
    /// Its kind.
    pub kind: Kind,
    /// The code that showed it.
    pub at: Option<SourceLocation>,
    /// In words.
    pub because: String,
    /// The number of times it was seen.
    pub times: u64,
    /// Bytes in all.
    pub bytes: u64,
}

impl<'a> CodeTypes<'a> {
    /// Analyses all functions of a program. `regions` are the functions that are recorded as well.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub fn of(debug: &'a DebugInfo, regions: &[&str]) -> Result<Self, ExplainError> {
        let (path, build_id) = Default::default();
        let loaded = LoadedImage { path, start: 0, end: u64::MAX, bias: 0, build_id };
        let code = debug.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function);
        let image = Image::new(loaded, Some(debug), &mut code.map(|symbol| symbol.address));
        let is_region = |name: &str| regions.contains(&name);
        let functions = image.functions.iter().filter(|function| {
            is_region(&function.name) || function.linkage_name.as_deref().is_some_and(is_region)
        });
        let regions = functions.flat_map(|function| function.ranges.clone()).collect();
        let mut code = CodeTypes {
            debug,
            namer: Namer::new(vec![image], &[], &[], &[]),
            types: Vec::new(),
            numbers: HashMap::new(),
            table: Table { regions, ..Table::default() },
        };
        let sites = code.namer.all_sites()?;
        for (pc, sites) in sites {
            code.add_site(pc, &sites);
        }
        code.add_globals();
        let sizes = code.types.iter().map(|ty| code.namer.catalog().size_bytes(*ty).unwrap_or_default());
        code.table.types = sizes.collect();
        Ok(code)
    }

    /// The table for an audit of the program in this file, whose findings go to a folder.
    pub fn table(&self, program: &str, output: &str) -> Table {
        Table { program: program.to_owned(), output: output.to_owned(), ..self.table.clone() }
    }

    fn add_site(&mut self, pc: u64, sites: &Rc<[Site]>) {
        let mut found = AuditSite::default();
        for site in sites.iter() {
            found.is_on_stack |= matches!(site.place, AccessTarget::Stack(_));
            let byte = self.typed_byte(site);
            found.size_bytes = found.size_bytes.max(site.size_bytes);
            // Two operands of one kind in an instruction cannot be distinguished.
            let slot = if site.kind == AccessKind::Store { &mut found.store } else { &mut found.load };
            *slot = if slot.is_none() { byte } else { slot.filter(|known| Some(*known) == byte) };
        }
        if found.load.is_some() || found.store.is_some() || found.is_on_stack {
            self.table.sites.insert(pc, found);
        }
    }

    fn typed_byte(&mut self, site: &Site) -> Option<TypedByte> {
        let (ty, offset) = match site.place {
            AccessTarget::Object(pointer) => {
                let spot =
                    self.namer.catalog().spot(pointer.target, pointer.offset, u64::from(site.size_bytes))?;
                (pointer.target, spot.is_certain.then_some(spot.offset)?)
            }
            AccessTarget::Stack(Some(spot)) => (spot.ty, spot.offset),
            _ => return None,
        };
        let (ty, size_bytes) = element(self.namer.catalog(), ty)?;
        let offset = offset.checked_rem(size_bytes)?;
        Some(TypedByte { ty: self.number(ty)?, offset: u32::try_from(offset).ok()? })
    }

    fn number(&mut self, ty: Ty) -> Option<TypeNumber> {
        if let Some(known) = self.numbers.get(&ty) {
            return Some(*known);
        }
        let number = TypeNumber::try_from(self.types.len()).ok()?;
        self.types.push(ty);
        self.numbers.insert(ty, number);
        Some(number)
    }

    fn add_globals(&mut self) {
        for variable in self.debug.globals() {
            let Some(id) = variable.ty else { continue };
            let size_bytes = self.debug.types().size_bytes(id).unwrap_or_default();
            let catalog = self.namer.catalog();
            let Some((ty, _)) = catalog.intern(0, id).and_then(|ty| element(catalog, ty)) else { continue };
            for place in &variable.places {
                if let (Location::Address(start), Some(ty)) = (&place.at, self.number(ty)) {
                    self.table.globals.push(Global { start: *start, size_bytes, ty });
                }
            }
        }
        self.table.globals.sort_by_key(|global| global.start);
        self.table.globals.dedup_by_key(|global| global.start);
    }

    /// Evidence against moving members, by type. Evidence that does not concern the order is left out: on one member's
    /// bytes alone, or on a type that is part of another.
    pub fn evidence(&mut self, findings: &Findings) -> Vec<TypeEvidence> {
        let mut all: Vec<TypeEvidence> = Vec::new();
        let mut known = BTreeMap::new();
        for (evidence, amount) in &findings.evidence {
            for one in self.judge(evidence, *amount) {
                let same = (one.ty, one.kind, one.at.clone(), one.because.clone());
                let place = *known.entry(same).or_insert(all.len());
                match all.get_mut(place) {
                    Some(known) => {
                        known.times += one.times;
                        known.bytes += one.bytes;
                    }
                    None => all.push(one),
                }
            }
        }
        all
    }

    /// Accesses by code outside the regions, by type; types that the code accesses nowhere are not listed.
    pub fn outside(&mut self, findings: &Findings) -> Vec<(TypeId, u64)> {
        let seen = |number: usize| TypeNumber::try_from(number).ok().and_then(|ty| findings.outside.get(&ty));
        let all = self.types.iter().enumerate();
        let all: Vec<(Ty, u64)> = all.map(|(at, ty)| (*ty, seen(at).copied().unwrap_or_default())).collect();
        all.into_iter().filter_map(|(ty, count)| Some((self.id(ty)?, count))).collect()
    }

    fn id(&mut self, ty: Ty) -> Option<TypeId> {
        self.namer.catalog().described(ty).map(|described| described.id)
    }

    fn judge(&mut self, evidence: &Evidence, amount: Amount) -> Vec<TypeEvidence> {
        let Amount { times, bytes } = amount;
        let (kind, pc, types, because) = match evidence {
            Evidence::Alias { stored, loaded, pc } => {
                let Some(because) = self.alias(*stored, *loaded) else { return Vec::new() };
                (Kind::Alias, *pc, vec![stored.ty, loaded.ty], because)
            }
            Evidence::Handed { from, to_offset, call, pc, is_copy } => {
                let Some(because) = self.handed(*from, *to_offset, call, *is_copy) else { return Vec::new() };
                (Kind::SystemCall, *pc, vec![from.ty], because)
            }
            Evidence::Filled { loaded, begins, call, pc } => {
                let Some(because) = self.filled(*loaded, *begins, call) else { return Vec::new() };
                (Kind::SystemCall, *pc, vec![loaded.ty], because)
            }
            Evidence::Shared { ty, pc } => {
                let because = "accessed in a shared mapping of a file or device".to_owned();
                (Kind::Shared, *pc, vec![*ty], because)
            }
        };
        let at = (pc != 0).then(|| self.debug.line_of(pc)).flatten();
        let types = types.into_iter().filter_map(|number| self.types.get(usize::from(number)).copied());
        let types: Vec<Ty> = types.collect();
        let ids = types.into_iter().filter_map(|ty| self.id(ty));
        ids.map(|ty| TypeEvidence { ty, kind, at: at.clone(), because: because.clone(), times, bytes })
            .collect()
    }

    fn alias(&mut self, stored: TypedByte, loaded: TypedByte) -> Option<String> {
        let [one, other] = [stored.ty, loaded.ty].map(|number| self.types.get(usize::from(number)).copied());
        let (one, other) = (one?, other?);
        let (outer, inner, offset) = match stored.offset >= loaded.offset {
            true => (one, other, stored.offset - loaded.offset),
            false => (other, one, loaded.offset - stored.offset),
        };
        let catalog = self.namer.catalog();
        if one == other || catalog.holds(outer, u64::from(offset), inner) {
            return None;
        }
        let (stored, loaded) = (self.member(stored)?, self.member(loaded)?);
        Some(format!("bytes stored as {stored} are read as {loaded}"))
    }

    fn handed(&mut self, from: TypedByte, to_offset: u32, call: &str, is_copy: bool) -> Option<String> {
        let (first, last) = self.first_and_last(from, to_offset)?;
        let copied = if is_copy { "a copy of " } else { "" };
        Some(format!("{call} takes {copied}the bytes from {first} to {last}"))
    }

    /// The members that two ends of a range lie in, when they are not one.
    fn first_and_last(&mut self, from: TypedByte, to_offset: u32) -> Option<(String, String)> {
        let last = TypedByte { offset: to_offset.checked_sub(1)?, ..from };
        let [first, last] = [from, last].map(|byte| self.member(byte));
        let (first, last) = (first?, last?);
        (first != last).then_some((first, last))
    }

    fn filled(&mut self, loaded: TypedByte, begins: i64, call: &str) -> Option<String> {
        let member = self.member(loaded)?;
        // One member that is read by itself says nothing about where it is.
        let is_alone = u32::try_from(begins).is_ok_and(|offset| {
            offset == loaded.offset || self.member(TypedByte { offset, ..loaded }).as_ref() == Some(&member)
        });
        (!is_alone).then(|| format!("{member} is read from bytes that {call} delivered"))
    }

    /// `type.member`, for the outermost member that a byte is in.
    fn member(&mut self, byte: TypedByte) -> Option<String> {
        let ty = *self.types.get(usize::from(byte.ty))?;
        let catalog = self.namer.catalog();
        let name = catalog.name(ty);
        let field = catalog.field(ty, u64::from(byte.offset), 1)?;
        let member = field.path.split(['.', '[']).next().unwrap_or_default();
        Some(format!("{name}.{member}"))
    }
}

/// A type without arrays around it, and its size; `None` for types without members.
fn element(catalog: &mut Catalog<'_>, ty: Ty) -> Option<(Ty, u64)> {
    let mut ty = ty;
    for _ in 0..8 {
        let (types, described) = catalog.table(ty)?;
        match &types.get(described.id)?.kind {
            TypeKind::Array { element, .. } => ty = catalog.intern(described.image, *element)?,
            TypeKind::Aggregate(_) => return Some((ty, types.size_bytes(described.id)?)),
            _ => return None,
        }
    }
    None
}
