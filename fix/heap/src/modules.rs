//! The modules of this process: their build ids and addresses.

use libc::{c_int, c_void, dl_phdr_info};
use lineup_heap_plan::BuildId;
use std::slice;

/// A loaded module.
#[derive(Clone, Copy)]
pub(crate) struct Module {
    pub(crate) build_id: Option<BuildId>,
    /// The distance from its addresses in the file.
    pub(crate) bias: usize,
    /// Its first address, and the one behind its last.
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// Calls `visit` for each module until it returns false.
pub(crate) fn each(visit: &mut dyn FnMut(Module) -> bool) {
    let mut visit = |info: &dl_phdr_info| visit(module(info));
    let mut visit: &mut dyn FnMut(&dl_phdr_info) -> bool = &mut visit;
    // SAFETY: the function gets the closure, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visited), (&raw mut visit).cast()) };
}

/// How many modules were ever loaded.
pub(crate) fn ever_loaded() -> u64 {
    let mut loaded = 0;
    let mut visit = |info: &dl_phdr_info| {
        loaded = info.dlpi_adds;
        false
    };
    let mut visit: &mut dyn FnMut(&dl_phdr_info) -> bool = &mut visit;
    // SAFETY: as above.
    unsafe { libc::dl_iterate_phdr(Some(visited), (&raw mut visit).cast()) };
    loaded
}

unsafe extern "C" fn visited(info: *mut dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
    // SAFETY: the loader gives a module, and the caller's closure.
    let (info, visit) = unsafe { (&*info, &mut *visit.cast::<&mut dyn FnMut(&dl_phdr_info) -> bool>()) };
    c_int::from(!visit(info))
}

fn module(info: &dl_phdr_info) -> Module {
    let bias = info.dlpi_addr as usize;
    let mut of = Module { build_id: None, bias, first: usize::MAX, end: 0 };
    // SAFETY: the loader's own table.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers {
        let start = bias.wrapping_add(header.p_vaddr as usize);
        match header.p_type {
            libc::PT_LOAD => {
                of.first = of.first.min(start);
                of.end = of.end.max(start.wrapping_add(header.p_memsz as usize));
            }
            libc::PT_NOTE if of.build_id.is_none() => {
                // SAFETY: notes are mapped for as long as the module is.
                of.build_id =
                    build_id(unsafe { slice::from_raw_parts(start as *const u8, header.p_memsz as usize) });
            }
            _ => {}
        }
    }
    of
}

/// The build id among a segment's notes.
fn build_id(mut notes: &[u8]) -> Option<BuildId> {
    const NT_GNU_BUILD_ID: u32 = 3;
    while let Some((head, rest)) = notes.split_at_checked(12) {
        let field = |at: usize| head[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or(0);
        let (name, description) = (field(0) as usize, field(4) as usize);
        let (name, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        if field(8) == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return BuildId::new(rest.get(..description)?);
        }
        notes = rest.get(description.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_behind_other_notes_and_cut_notes_end_the_search() {
        let mut notes = Vec::new();
        for (kind, description) in [(1_u32, &[9_u8; 5][..]), (3, &[0xab; 20])] {
            for field in [4, description.len() as u32, kind] {
                notes.extend(field.to_ne_bytes());
            }
            notes.extend(b"GNU\0");
            notes.extend(description);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes).expect("an id").to_string(), "ab".repeat(20));
        assert_eq!(build_id(&notes[..notes.len() - 1]), None);
        assert_eq!(build_id(&notes[..5]), None);
    }

    #[test]
    fn this_function_lies_in_a_module() {
        let own = this_function_lies_in_a_module as *const () as usize;
        let mut found = false;
        each(&mut |module| {
            found |= (module.first..module.end).contains(&own);
            true
        });
        assert!(found && ever_loaded() > 0);
    }
}
