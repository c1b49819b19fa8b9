//! The entries of a type, read a second time for what a scan leaves out.

use super::linked_types::Linked;
use super::raw::Detail;
use crate::dwarf::Unit;
use crate::dwarf::entries::{Compiled, Entries};
use crate::dwarf::store::View;
use foldhash::quality::FixedState;
use std::collections::HashMap;
use std::sync::Arc;

/// The parts needed to read a unit's entries once more.
pub(crate) struct UnitEntries<'a> {
    pub(crate) unit: Unit<'a>,
    pub(crate) compiled: Compiled,
    /// Paths of files that were asked for, by number.
    pub(crate) paths: HashMap<u32, Option<Arc<str>>, FixedState>,
}

/// Reads a type's entries once more.
pub(crate) fn detail<'a>(
    view: &View<'a>,
    linked: &Linked<'a>,
    sources: &mut [UnitEntries<'a>],
    index: usize,
) -> Option<Detail<'a>> {
    let unit = linked.types.get(index)?.unit as usize;
    let (scan, source, start) = (linked.scans.get(unit)?, sources.get_mut(unit)?, linked.starts.get(unit)?);
    let compiled = std::mem::take(&mut source.compiled);
    let mut entries = Entries::new(view, (scan.unit, &source.unit), compiled).ok()?;
    let offset = scan.offsets.get(index.checked_sub(*start)?)?;
    let detail = Detail::read(&mut entries, view, (scan.unit, offset));
    source.compiled = entries.into_compiled();
    Some(detail)
}
