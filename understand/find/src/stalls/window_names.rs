//! Names for every access in the windows of the run.

use crate::error::FindError;
use crate::owner::{self, Spot};
use crate::recorded::Recorded;
use foldhash::HashMap;
use lineup_debuginfo::DebugInfo;
use lineup_explain::access_context::AccessContext;
use lineup_explain::catalog::Ty;
use lineup_explain::image::Image;
use lineup_explain::name::Name;
use lineup_explain::namer::Namer;
use lineup_model::access::{Access, AccessKind, StackRange, ThreadId};
use lineup_recording::{Window, WindowStep};
use std::collections::BTreeSet;

/// The size of the pages in which stacks are looked for.
const PAGE_BYTES: u64 = 4096;
/// Pages between two that belong to one stack, at most: frames may be large.
const GAP_PAGES: u64 = 64;
/// Objects on a stack of this size and more are large.
const LARGE_LOCAL_BYTES: u64 = 1024;
/// The first address of kernels: their stacks are small, and lie close to each other.
const KERNEL: u64 = 1 << 63;
/// Pages between two that belong to one stack of a kernel, at most.
const KERNEL_GAP_PAGES: u64 = 2;

/// The place of an access.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Point {
    /// Number of its spot.
    pub(crate) spot: u32,
    /// Bytes from the start of its object.
    pub(crate) offset: u32,
    /// Number of the chain of calls that allocated it; 0 when that is not known.
    pub(crate) site: u32,
}

/// The spots of all accesses in the windows, and the namer for more.
pub(crate) struct Naming<'a> {
    pub(crate) namer: Namer<'a>,
    /// By number.
    pub(crate) spots: Vec<Spot>,
    numbers: HashMap<Spot, u32>,
    /// For each window, the points of its accesses in their order, in the innermost structs that have a layout.
    pub(crate) points: Vec<Vec<Point>>,
    /// The same in whole objects: threads meet there.
    pub(crate) object_points: Vec<Vec<Point>>,
    /// For each window, the accesses to large objects on stacks.
    pub(crate) large_locals: Vec<Vec<LocalAccess>>,
}

/// An access to a large object on a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LocalAccess {
    /// The number of the access in its window.
    pub(crate) number: u32,
    pub(crate) ty: Ty,
    /// The name of the variable, where the code names it.
    pub(crate) variable: Option<u32>,
    /// The object's address.
    pub(crate) base: u64,
}

impl<'a> Naming<'a> {
    /// Names every access in the windows. `debug` holds the debug info of each image.
    pub(crate) fn of(recorded: &Recorded, debug: &'a [Option<DebugInfo>]) -> Result<Naming<'a>, FindError> {
        let mut namer = namer(recorded, debug);
        let stacks = stacks(&mut namer, &recorded.windows)?;
        namer.see_stacks(stacks);
        for window in &recorded.windows {
            let mut context = AccessContext::default();
            for access in accesses(window) {
                namer.observe(&access, &mut context, window.number)?;
            }
        }
        namer.settle();
        let mut naming = Naming {
            namer,
            spots: Vec::new(),
            numbers: HashMap::default(),
            points: Vec::new(),
            object_points: Vec::new(),
            large_locals: Vec::new(),
        };
        let mut is_large: HashMap<Ty, bool> = HashMap::default();
        for window in &recorded.windows {
            let mut context = AccessContext::default();
            let (mut points, mut object_points) = (Vec::new(), Vec::new());
            let mut locals = Vec::new();
            let sites = window.sites.iter().copied().chain(std::iter::repeat(0));
            for (access, site) in accesses(window).zip(sites) {
                let named = naming.namer.name(&access, &mut context, window.number)?;
                let named = naming.namer.or_copied(access.pc, named);
                if let Some((ty, variable, offset)) = local(named.name)
                    && naming.is_large(ty, &mut is_large)
                    && naming.places_object(ty, offset, u64::from(access.size_bytes))
                {
                    let base = access.address.wrapping_sub(offset);
                    locals.push(LocalAccess { number: points.len() as u32, ty, variable, base });
                }
                let size_bytes = u64::from(access.size_bytes);
                let of_object = owner::spot(&mut naming.namer, named, access.address, size_bytes);
                let inner = owner::within(&mut naming.namer, of_object, size_bytes);
                points.push(naming.point(inner, site));
                object_points.push(naming.point(of_object, site));
            }
            naming.points.push(points);
            naming.object_points.push(object_points);
            naming.large_locals.push(locals);
        }
        Ok(naming)
    }

    fn is_large(&mut self, ty: Ty, known: &mut HashMap<Ty, bool>) -> bool {
        let mut size_bytes = || self.namer.catalog().size_bytes(ty).unwrap_or_default();
        *known.entry(ty).or_insert_with(|| size_bytes() >= LARGE_LOCAL_BYTES)
    }

    /// Whether an access shows where its object begins. The accessed element of an array may be unknown, and then so is
    /// the beginning.
    fn places_object(&mut self, ty: Ty, offset: u64, size_bytes: u64) -> bool {
        let field = self.namer.catalog().field(ty, offset, size_bytes);
        field.is_some_and(|field| field.stride_bytes.is_none())
    }

    fn point(&mut self, (spot, offset): (Spot, u64), site: u32) -> Point {
        Point { spot: self.number(spot), offset: u32::try_from(offset).unwrap_or(u32::MAX), site }
    }

    fn number(&mut self, spot: Spot) -> u32 {
        let next = self.spots.len() as u32;
        let number = *self.numbers.entry(spot).or_insert(next);
        if number == next {
            self.spots.push(spot);
        }
        number
    }

    /// The spot of data without a name.
    pub(crate) fn unnamed(&mut self) -> u32 {
        self.number(Spot::UNNAMED)
    }

    /// The spot of an instruction that no window has, from its code and the address of an access that missed.
    pub(crate) fn by_code(&mut self, pc: u64, is_store: bool, address: u64) -> Result<u32, FindError> {
        let access = Access { pc, address, size_bytes: 1, kind: kind(is_store), value: None };
        let spot = match self.namer.name_by_code(&access)? {
            Some(named) => {
                let named = self.namer.or_copied(pc, named);
                let of_object = owner::spot(&mut self.namer, named, address, 1);
                owner::within(&mut self.namer, of_object, 1).0
            }
            None => Spot::UNNAMED,
        };
        Ok(self.number(spot))
    }
}

/// The type of an object on a stack, its variable, and the offset in it.
fn local(name: Name) -> Option<(Ty, Option<u32>, u64)> {
    match name {
        Name::Stack { local: Some((variable, ty, offset)) } => Some((ty, Some(variable), offset)),
        Name::Member { ty, offset, is_on_stack: true, .. } => Some((ty, None, offset)),
        _ => None,
    }
}

fn namer<'a>(recorded: &Recorded, debug: &'a [Option<DebugInfo>]) -> Namer<'a> {
    let pcs: BTreeSet<u64> = recorded.runs.iter().map(|run| run.pc).collect();
    let more = recorded.instructions.iter().map(|counts| counts.pc);
    let pcs: BTreeSet<u64> = pcs.into_iter().chain(more).collect();
    let images = recorded.images.iter().enumerate().map(|(index, loaded)| {
        let own = debug.get(index).and_then(Option::as_ref);
        Image::new(loaded.clone(), own, &mut pcs.iter().copied())
    });
    let mut namer = Namer::new(images.collect(), &recorded.places, &[], &recorded.stacks);
    namer.see_thread_bases(&recorded.thread_bases);
    // The first image of a guest is the kernel.
    let kernel = recorded.images.first().filter(|image| image.is_kernel());
    kernel.into_iter().for_each(|kernel| namer.see_kernel(kernel.start));
    namer
}

/// The accesses of a window.
fn accesses(window: &Window) -> impl Iterator<Item = Access> {
    window.steps.iter().filter_map(|step| match *step {
        WindowStep::Access { pc, address, size_shift, is_store } => {
            Some(Access { pc, address, size_bytes: 1 << size_shift, kind: kind(is_store), value: None })
        }
        WindowStep::Fetch { .. } => None,
    })
}

fn kind(is_store: bool) -> AccessKind {
    if is_store { AccessKind::Store } else { AccessKind::Load }
}

/// The ranges of stacks: the surroundings of accesses that the code makes there.
fn stacks(namer: &mut Namer<'_>, windows: &[Window]) -> Result<Vec<StackRange>, FindError> {
    let mut known: HashMap<(u64, AccessKind), bool> = HashMap::default();
    let mut pages = BTreeSet::new();
    for access in windows.iter().flat_map(accesses) {
        let is_on_stack = match known.get(&(access.pc, access.kind)) {
            Some(known) => *known,
            None => {
                let found = namer.is_on_stack_by_code(&access)?;
                known.insert((access.pc, access.kind), found);
                found
            }
        };
        if is_on_stack {
            pages.insert(access.address / PAGE_BYTES);
        }
    }
    Ok(ranges(&pages))
}

fn ranges(pages: &BTreeSet<u64>) -> Vec<StackRange> {
    let mut ranges: Vec<StackRange> = Vec::new();
    for page in pages {
        let (start, end) = (page * PAGE_BYTES, (page + 1).saturating_mul(PAGE_BYTES));
        let gap = if start >= KERNEL { KERNEL_GAP_PAGES } else { GAP_PAGES };
        match ranges.last_mut().filter(|last| start - last.end <= gap * PAGE_BYTES) {
            Some(last) => last.end = end,
            None => ranges.push(StackRange { thread: ThreadId(ranges.len() as u32), start, end }),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_near_each_other_are_one_stack() {
        let page = |number: u64| number * PAGE_BYTES;
        let found = ranges(&[100, 101, 165, 400].into());
        let found: Vec<_> = found.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, [(page(100), page(166)), (page(400), page(401))]);
    }
}
