//! Global and static variables by link address.

use crate::images::image::Image;
use crate::types::catalog::{Catalog, Ty};
use lineup_model::program::Location;

/// A variable of one image that lives at a fixed place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Global {
    /// Index among the image's variables.
    pub variable: u32,
    /// First link address, or offset in the thread-local block.
    pub start: u64,
    /// Size in bytes; `start + size_bytes` does not overflow.
    pub size_bytes: u64,
    /// Its type.
    pub ty: Ty,
}

/// The variables of one image, sorted by address.
#[derive(Clone, Default, Debug)]
pub(crate) struct Globals {
    fixed: Vec<Global>,
    thread_local: Vec<Global>,
}

impl Globals {
    /// Collects the variables of image number `index`.
    pub(crate) fn new(catalog: &mut Catalog<'_>, index: usize, image: &Image<'_>) -> Self {
        let mut globals = Globals::default();
        for (number, variable) in image.globals().iter().enumerate() {
            let Some(ty) = variable.ty.and_then(|id| catalog.intern(index, id)) else { continue };
            let size_bytes = variable.ty.and_then(|id| image.types().size_bytes(id)).unwrap_or(0);
            for place in &variable.places {
                let global = |start: u64| {
                    // A variable that would reach past the last address ends there.
                    let size_bytes = size_bytes.min(u64::MAX - start);
                    Global { variable: number as u32, start, size_bytes, ty }
                };
                match place.at {
                    Location::Address(start) => globals.fixed.push(global(start)),
                    Location::ThreadLocal(start) => globals.thread_local.push(global(start)),
                    _ => {}
                }
            }
        }
        widen_unsized(&mut globals.fixed, image);
        globals.fixed.sort_by_key(|global| (global.start, std::cmp::Reverse(global.size_bytes)));
        globals.fixed.dedup_by_key(|global| global.start);
        globals.thread_local.sort_by_key(|global| global.start);
        globals
    }

    /// The variable that holds a link address.
    pub(crate) fn at(&self, link: u64) -> Option<&Global> {
        find(&self.fixed, link)
    }

    /// The variables that lie at least partly between two link addresses.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<Global> {
        let before = self.fixed.partition_point(|global| global.start < start);
        let first = before.saturating_sub(1);
        let candidates =
            self.fixed.get(first..).unwrap_or_default().iter().take_while(|global| global.start < end);
        candidates.filter(|global| global.start + global.size_bytes > start).copied().collect()
    }

    /// The thread-local variables, by offset.
    pub(crate) fn thread_locals(&self) -> &[Global] {
        &self.thread_local
    }

    /// The variable at an offset of the thread-local block.
    pub(crate) fn thread_local_at(&self, offset: u64) -> Option<&Global> {
        find(&self.thread_local, offset)
    }
}

fn find(sorted: &[Global], address: u64) -> Option<&Global> {
    let after = sorted.partition_point(|global| global.start <= address);
    sorted.get(after.checked_sub(1)?).filter(|global| address - global.start < global.size_bytes)
}

/// Variables declared without a size (`extern int table[]`) take the size of their symbol.
fn widen_unsized(globals: &mut [Global], image: &Image<'_>) {
    for global in globals.iter_mut().filter(|global| global.size_bytes == 0) {
        let symbol = image.symbols().iter().find(|symbol| symbol.address == global.start);
        global.size_bytes = symbol.map_or(0, |symbol| symbol.size_bytes.min(u64::MAX - global.start));
    }
}
