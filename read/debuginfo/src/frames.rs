//! Unwind tables: the rules that lead from a place in the code to its function's caller.

use crate::elf::Elf;
use crate::{Bytes, Error};
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EndianSlice, LittleEndian, RegisterRule, UnwindContext,
    UnwindSection, X86_64,
};
use std::ops::Range;

/// From this link address on, up to the next row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRow {
    /// The first address.
    pub from: u64,
    /// The caller's frame; `None` where the table gives none, or no simple rule.
    pub caller: Option<CallerFrame>,
}

/// The place of the caller's frame. Its return address lies right below its stack pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallerFrame {
    /// Its stack pointer is computed from the frame pointer instead of the stack pointer.
    pub is_of_frame_pointer: bool,
    /// The distance of its stack pointer above that, in bytes.
    pub bytes: u64,
    /// The distance in bytes below its stack pointer at which its frame pointer is saved; `None` when that is still in
    /// its register.
    pub saved_below: Option<u64>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The rows of an x86-64 file's `.eh_frame`, in order of address. Unreadable rows are left out.
///
/// # Errors
/// When the bytes are no ELF file.
pub fn frame_rows(bytes: impl Into<Bytes>) -> Result<Vec<FrameRow>, Error> {
    let elf = Elf::parse(bytes.into())?;
    let section = elf.section(".eh_frame")?;
    let bases = bases(&elf);
    let frames = EhFrame::new(&section, LittleEndian);
    let mut rows = Vec::new();
    let mut context = UnwindContext::new();
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(function) = partial.parse(EhFrame::cie_from_offset)
        {
            add_rows(&mut rows, &function, &frames, &bases, &mut context);
        }
    }
    Ok(in_order(rows))
}

/// The range of the function that begins at a link address, from the unwind tables: those exist without symbols, too.
pub fn function_range(bytes: impl Into<Bytes>, start: u64) -> Option<Range<u64>> {
    let elf = Elf::parse(bytes.into()).ok()?;
    let section = elf.section(".eh_frame").ok()?;
    let bases = bases(&elf);
    let mut entries = EhFrame::new(&section, LittleEndian).entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        if let CieOrFde::Fde(partial) = entry
            && let Ok(function) = partial.parse(EhFrame::cie_from_offset)
            && function.initial_address() == start
        {
            return Some(start..function.end_address());
        }
    }
    None
}

/// The base addresses for a file's `.eh_frame`.
fn bases(elf: &Elf) -> BaseAddresses {
    let start = |name: &str| {
        let found = elf.sections.iter().find(|section| section.name == name);
        found.map_or(0, |section| section.addresses.start)
    };
    BaseAddresses::default().set_eh_frame(start(".eh_frame")).set_text(start(".text")).set_got(start(".got"))
}

/// Adds a function's rows, and one for the bytes after it.
fn add_rows<'a>(
    rows: &mut Vec<FrameRow>,
    function: &gimli::FrameDescriptionEntry<Slice<'a>>,
    frames: &EhFrame<Slice<'a>>,
    bases: &BaseAddresses,
    context: &mut UnwindContext<usize>,
) {
    if let Ok(mut table) = function.rows(frames, bases, context) {
        while let Ok(Some(row)) = table.next_row() {
            rows.push(FrameRow { from: row.start_address(), caller: caller(row) });
        }
    }
    rows.push(FrameRow { from: function.end_address(), caller: None });
}

fn caller(row: &gimli::UnwindTableRow<usize>) -> Option<CallerFrame> {
    let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
    let is_of_frame_pointer = match register {
        X86_64::RSP => false,
        X86_64::RBP => true,
        _ => return None,
    };
    // The table marks an outermost function as having no caller.
    if !matches!(row.register(X86_64::RA), Some(RegisterRule::Offset(-8))) {
        return None;
    }
    let saved_below = match row.register(X86_64::RBP) {
        Some(RegisterRule::Offset(at)) => Some(u64::try_from(at.checked_neg()?).ok()?),
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => None,
        _ => return None,
    };
    Some(CallerFrame { is_of_frame_pointer, bytes: u64::try_from(offset).ok()?, saved_below })
}

/// In order of address; where a function begins right after another, its row counts. Rows equal to the one before are
/// left out.
fn in_order(mut rows: Vec<FrameRow>) -> Vec<FrameRow> {
    rows.sort_by_key(|row| (row.from, row.caller.is_none()));
    rows.dedup_by_key(|row| row.from);
    rows.dedup_by_key(|row| row.caller);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_begins_where_another_ends_counts_and_repetitions_go() {
        let caller = |bytes| Some(CallerFrame { is_of_frame_pointer: false, bytes, saved_below: None });
        let row = |from, caller| FrameRow { from, caller };
        let rows = vec![
            row(0x20, None),
            row(0x10, caller(8)),
            row(0x18, caller(8)),
            row(0x20, caller(16)),
            row(0x30, None),
        ];
        let expected = [row(0x10, caller(8)), row(0x20, caller(16)), row(0x30, None)];
        assert_eq!(in_order(rows), expected);
    }

    #[test]
    fn what_is_no_elf_file_is_an_error() {
        assert!(frame_rows(b"no ELF file".to_vec()).is_err());
    }
}
