//! Files side by side, and names for places in them.

use super::options::MoreNames;
use crate::error::FindError;
use crate::owner::{self, Owner, Spot};
use crate::stalls::function_names::symbol_at;
use foldhash::HashMap;
use lineup_debuginfo::{DebugInfo, ModulePart};
use lineup_explain::image::Image;
use lineup_explain::name::Evidence;
use lineup_explain::namer::Namer;
use lineup_model::access::{Access, AccessKind};
use lineup_model::image::LoadedImage;
use lineup_samples::data_source::{DataSource, Operation};
use lineup_samples::tally::Tally;
use lineup_samples::{Code, Data, MappedFile};

/// The address of the first file, and the least distance between files.
const FIRST: u64 = 0x10_0000_0000;
const APART: u64 = 2 << 20;
/// An address that nothing lies at.
const NOWHERE: u64 = u64::MAX;

/// A function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) file: String,
}

/// Names for places in code and data.
pub(super) struct Places<'a> {
    pub(super) namer: Namer<'a>,
    files: &'a [MappedFile],
    loaded: Vec<LoadedImage>,
    /// The shift from a place in each file to its address.
    shifts: Vec<Shift>,
    debug: &'a [Option<DebugInfo>],
    names: &'a MoreNames,
    named: HashMap<(Code, Data, Operation), (Spot, Evidence)>,
}

impl<'a> Places<'a> {
    pub(super) fn new(tally: &'a Tally, debug: &'a [Option<DebugInfo>], names: &'a MoreNames) -> Self {
        let (mut loaded, mut shifts, mut next) = (Vec::new(), Vec::new(), FIRST);
        for (number, file) in tally.files.iter().enumerate() {
            let own = debug.get(number).and_then(Option::as_ref);
            let (image, shift) = laid(file, own, next);
            next = image.end.next_multiple_of(APART) + APART;
            loaded.push(image);
            shifts.push(shift);
        }
        let mut pcs: Vec<u64> = tally.spots.keys().filter_map(|spot| runtime(&shifts, spot.code)).collect();
        pcs.sort_unstable();
        pcs.dedup();
        let images = loaded.iter().enumerate().map(|(number, loaded)| {
            let own = debug.get(number).and_then(Option::as_ref);
            Image::new(loaded.clone(), own, &mut pcs.iter().copied())
        });
        let namer = Namer::new(images.collect(), &[], &[], &[]);
        Places { namer, files: &tally.files, loaded, shifts, debug, names, named: HashMap::default() }
    }

    /// The function at a place in code.
    pub(super) fn function(&self, code: Code) -> Function {
        let named = |name: &str, file: &str| Function { name: name.to_owned(), file: file.to_owned() };
        match code {
            Code::File { file, at } => {
                let path = self.files.get(file as usize).map_or("", |file| file.path.as_str());
                let loaded = self.loaded.get(file as usize).zip(runtime(&self.shifts, code));
                let debug = self.debug.get(file as usize).and_then(Option::as_ref);
                match loaded.filter(|_| debug.is_some()) {
                    Some((image, pc)) => named(&symbol_at(debug, image.to_link(pc)), path),
                    None => {
                        let name = self.names.files.get(&file).and_then(|names| names.at(at));
                        named(name.unwrap_or("(no symbol)"), path)
                    }
                }
            }
            Code::Anonymous { process, at } => {
                let name = self.names.processes.get(&process).and_then(|map| map.at(at));
                named(name.unwrap_or("(made at run time)"), &format!("process {process}"))
            }
            Code::Unmapped { is_kernel: true } => named("(kernel)", ""),
            Code::Unmapped { is_kernel: false } => named("(outside every file)", ""),
        }
    }

    /// The target of an access, and the evidence for it.
    pub(super) fn accessed(
        &mut self,
        code: Code,
        data: Data,
        source: DataSource,
    ) -> Result<(Spot, Evidence), FindError> {
        let key = (code, data, source.operation);
        if let Some(known) = self.named.get(&key) {
            return Ok(*known);
        }
        let found = self.find(code, data, source.operation)?;
        self.named.insert(key, found);
        Ok(found)
    }

    fn find(&mut self, code: Code, data: Data, operation: Operation) -> Result<(Spot, Evidence), FindError> {
        let address = match data {
            Data::File { file, at } => {
                self.shifts.get(file as usize).map_or(NOWHERE, |shift| at.wrapping_add(shift.by))
            }
            _ => NOWHERE,
        };
        let pc = runtime(&self.shifts, code).unwrap_or(NOWHERE);
        let kinds: &[AccessKind] = match operation {
            Operation::Store => &[AccessKind::Store],
            Operation::Load => &[AccessKind::Load],
            // The sample does not give the operation, so the instruction decides.
            _ => &[AccessKind::Load, AccessKind::Store],
        };
        for kind in kinds {
            let access = Access { pc, address, size_bytes: 1, kind: *kind, value: None };
            if let Some(named) = self.namer.name_sampled(&access)? {
                let (spot, _) = owner::spot(&mut self.namer, named, address, 1);
                if spot.owner != Owner::Unnamed {
                    return Ok((spot, named.evidence));
                }
            }
        }
        Ok(match data {
            Data::Stack => (Spot { owner: Owner::Stack, at: 0, size_bytes: 0 }, Evidence::StackRange),
            _ => (Spot::UNNAMED, Evidence::None),
        })
    }

    /// The name of a spot: `type.member` or a variable.
    pub(super) fn spot_name(&mut self, spot: Spot) -> String {
        let name = owner::name(&mut self.namer, spot.owner);
        let member = owner::member_name(&mut self.namer, spot);
        if member.is_empty() { name } else { format!("{name}.{member}") }
    }
}

fn runtime(shifts: &[Shift], code: Code) -> Option<u64> {
    match code {
        Code::File { file, at } => shifts.get(file as usize)?.place(at),
        _ => None,
    }
}

/// The shift from a place in a file to its address.
#[derive(Clone, Default, Debug)]
struct Shift {
    /// The distance to add.
    by: u64,
    /// For a module of the kernel, the stretches of code that it was loaded as: first distance, bytes, link address.
    parts: Vec<(u64, u64, u64)>,
}

impl Shift {
    /// `None` for a place in a module that is in none of its code.
    fn place(&self, at: u64) -> Option<u64> {
        if self.parts.is_empty() {
            return Some(at.wrapping_add(self.by));
        }
        let inside = |(first, size, _): &&(u64, u64, u64)| at >= *first && at - *first < *size;
        let (first, _, link) = self.parts.iter().find(inside)?;
        Some((at - first).wrapping_add(*link).wrapping_add(self.by))
    }
}

/// A file at `start`, and how places in it get addresses there.
fn laid(file: &MappedFile, debug: Option<&DebugInfo>, start: u64) -> (LoadedImage, Shift) {
    let segments = debug.map(DebugInfo::segments).unwrap_or_default();
    let parts = debug.filter(|_| file.module().is_some()).map(DebugInfo::module_parts).unwrap_or_default();
    // A module has no segments: its sections were given addresses one after another.
    let sections = debug.filter(|_| !parts.is_empty()).map(DebugInfo::sections).unwrap_or_default();
    let addresses =
        segments.iter().map(|one| &one.addresses).chain(sections.iter().map(|one| &one.addresses));
    let first = addresses.clone().map(|one| one.start).min().unwrap_or_default() & !(APART - 1);
    let last = addresses.map(|one| one.end).max().unwrap_or_default();
    let bias = start.wrapping_sub(first);
    // Places in the kernel count from the start of its code.
    let text = debug.filter(|_| file.is_kernel()).and_then(|debug| {
        let symbol = debug.symbols().iter().find(|symbol| symbol.name == "_text" || symbol.name == "_stext");
        symbol.map(|symbol| symbol.address)
    });
    let end = start.saturating_add(last.saturating_sub(first));
    let image = LoadedImage { path: file.path.clone(), start, end, bias, build_id: file.build_id.clone() };
    let part =
        |part: &ModulePart| (part.distance, part.addresses.end - part.addresses.start, part.addresses.start);
    let shift =
        Shift { by: bias.wrapping_add(text.unwrap_or_default()), parts: parts.iter().map(part).collect() };
    (image, shift)
}
