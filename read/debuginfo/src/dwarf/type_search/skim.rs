//! A unit passed over as fast as can be, in search of types with some names.

use super::searched_names::SearchedNames;
use crate::dwarf::entries::Entries;

/// An abbreviation that was not met yet.
const UNMET: Brief = Brief { len: u16::MAX, name_at: None };

/// The facts needed to pass over an entry.
#[derive(Clone, Copy)]
struct Brief {
    /// Bytes of its attributes; `u16::MAX` where it is read step by step.
    len: u16,
    /// The position of the type name's offset among the attributes.
    name_at: Option<u16>,
}

/// The offsets of the unit's entries of types that have one of the names.
pub(crate) fn skim(entries: &mut Entries<'_, '_>, wanted: &SearchedNames) -> Result<Vec<u32>, gimli::Error> {
    let mut found = Vec::new();
    let mut briefs = [UNMET; 128];
    let bytes = entries.bytes();
    let mut at = 0;
    while let Some(&code) = bytes.get(at) {
        if code == 0 {
            at += 1;
            continue;
        }
        let brief = briefs.get(usize::from(code)).copied().unwrap_or(UNMET);
        if brief.len == u16::MAX {
            entries.go_to(at);
            if step(entries, wanted, &mut briefs)? {
                found.push(entries.offset as u32);
            }
            at = entries.place();
            continue;
        }
        if let Some(name_at) = brief.name_at {
            let start = at + 1 + usize::from(name_at);
            let offset = bytes.get(start..start + 4).and_then(|word| word.try_into().ok());
            if offset.is_some_and(|word| wanted.has_offset(u32::from_le_bytes(word))) {
                found.push(entries.offset_of(at));
            }
        }
        at += 1 + usize::from(brief.len);
    }
    match at == bytes.len() {
        true => Ok(found),
        false => Err(gimli::Error::UnexpectedEof(gimli::ReaderOffsetId(at as u64))),
    }
}

/// Passes over one entry by its steps, and learns its abbreviation. True when it is a type with one of the names.
fn step(
    entries: &mut Entries<'_, '_>,
    wanted: &SearchedNames,
    briefs: &mut [Brief; 128],
) -> Result<bool, gimli::Error> {
    let Some(code) = entries.next()? else { return Ok(false) };
    let Some(entry) = entries.about(code).copied() else { return Err(gimli::Error::MissingUnitDie) };
    if let (Some(len), Some(slot)) = (entry.fixed_bytes, briefs.get_mut(code.0 as usize)) {
        *slot = Brief { len, name_at: entry.kind.and_then(|_| entries.name_place(code)) };
    }
    if entry.kind.is_none() {
        entries.skip(code)?;
        return Ok(false);
    }
    entries.read(code)?;
    Ok(entries.attributes.name().is_some_and(|name| wanted.has_text(name.text())))
}
