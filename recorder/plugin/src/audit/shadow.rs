//! The last use of memory: for every eight bytes the object that code stored there, or the system call that filled
//! them. The table has a fixed size: a later use overwrites an older one in the same place, which is then lost to the
//! audit.

use lineup_recording::audit::TypeNumber;

/// Bytes of one entry.
pub(super) const GRANULE_BYTES: u64 = 8;

/// Entries: 32 MB of them.
const ENTRIES: usize = 1 << 20;

/// The origin of the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Source {
    /// Code that stores into an object of a type.
    #[default]
    Code,
    /// Code that copied them from such an object.
    Copy,
    /// The system call with this number in the list.
    Call(u8),
}

/// The object that some bytes are part of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Tag {
    pub(super) source: Source,
    pub(super) ty: TypeNumber,
    /// Address of the object.
    pub(super) base: u64,
    /// Link address of the store.
    pub(super) pc: u64,
}

impl Tag {
    fn is_of_same(&self, other: &Tag) -> bool {
        (self.source, self.ty, self.base) == (other.source, other.ty, other.base)
    }
}

#[derive(Clone, Copy, Default)]
struct ShadowEntry {
    /// Number of the granule plus one; 0 for none.
    granule: u64,
    tag: Tag,
    /// A mask of the bytes.
    mask: u8,
}

/// The table.
pub(super) struct Shadow {
    entries: Vec<ShadowEntry>,
}

impl Shadow {
    pub(super) fn new() -> Self {
        Self { entries: vec![ShadowEntry::default(); ENTRIES] }
    }

    fn entry(&mut self, granule: u64) -> &mut ShadowEntry {
        let index = granule as usize % ENTRIES;
        &mut self.entries[index]
    }

    /// Bytes become part of an object.
    pub(super) fn set(&mut self, address: u64, size_bytes: u64, tag: Tag) {
        for (granule, mask) in granules(address, size_bytes) {
            let entry = self.entry(granule);
            let is_same = entry.granule == granule + 1 && entry.tag.is_of_same(&tag);
            let others = if is_same { entry.mask } else { 0 };
            *entry = ShadowEntry { granule: granule + 1, tag, mask: others | mask };
        }
    }

    /// Forgets all knowledge of the bytes.
    pub(super) fn clear(&mut self, address: u64, size_bytes: u64) {
        if size_bytes / GRANULE_BYTES > ENTRIES as u64 {
            let inside = address / GRANULE_BYTES + 1..=address.saturating_add(size_bytes) / GRANULE_BYTES + 1;
            self.entries
                .iter_mut()
                .filter(|entry| inside.contains(&entry.granule))
                .for_each(|entry| *entry = ShadowEntry::default());
            return;
        }
        for (granule, mask) in granules(address, size_bytes) {
            let entry = self.entry(granule);
            if entry.granule == granule + 1 {
                entry.mask &= !mask;
            }
        }
    }

    /// The objects that the bytes are part of, with the first byte of each part.
    pub(super) fn tags(&self, address: u64, size_bytes: u64) -> impl Iterator<Item = (u64, Tag)> {
        granules(address, size_bytes).filter_map(|(granule, mask)| {
            let entry = &self.entries[granule as usize % ENTRIES];
            let seen = entry.mask & mask;
            let is_known = entry.granule == granule + 1 && seen != 0;
            is_known.then(|| (granule * GRANULE_BYTES + u64::from(seen.trailing_zeros()), entry.tag))
        })
    }

    /// Bytes were copied: knowledge of their origin is copied as well.
    pub(super) fn copy(&mut self, from: u64, to: u64, size_bytes: u64) {
        let tags: Vec<(u64, Tag)> = self.tags(from, size_bytes).collect();
        self.clear(to, size_bytes);
        for (at, tag) in tags.into_iter().filter(|(_, tag)| !matches!(tag.source, Source::Call(_))) {
            let there = to.wrapping_add(at.wrapping_sub(from));
            let base = there.wrapping_sub(at.wrapping_sub(tag.base));
            let left = size_bytes - at.wrapping_sub(from).min(size_bytes);
            self.set(
                there,
                left.min(GRANULE_BYTES - there % GRANULE_BYTES),
                Tag { source: Source::Copy, base, ..tag },
            );
        }
    }
}

/// Granules with the bytes of each that a range covers.
fn granules(address: u64, size_bytes: u64) -> impl Iterator<Item = (u64, u8)> {
    let end = address.saturating_add(size_bytes);
    let last = end.saturating_sub(1) / GRANULE_BYTES;
    let count = if size_bytes == 0 { 0 } else { last - address / GRANULE_BYTES + 1 };
    (0..count).map(move |number| {
        let granule = address / GRANULE_BYTES + number;
        let start = granule * GRANULE_BYTES;
        let from = address.saturating_sub(start).min(GRANULE_BYTES);
        let to = (end - start).min(GRANULE_BYTES);
        let below = |bits: u64| if bits >= 8 { u8::MAX } else { (1u8 << bits) - 1 };
        (granule, below(to) & !below(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(ty: TypeNumber, base: u64) -> Tag {
        Tag { source: Source::Code, ty, base, pc: 0x10 }
    }

    #[test]
    fn what_was_stored_is_found_until_something_else_is() {
        let mut shadow = Shadow::new();
        shadow.set(0x1000, 8, tag(1, 0x1000));
        shadow.set(0x100c, 4, tag(1, 0x1000));
        let found: Vec<(u64, Tag)> = shadow.tags(0x1000, 16).collect();
        assert_eq!(found, [(0x1000, tag(1, 0x1000)), (0x100c, tag(1, 0x1000))]);
        shadow.clear(0x1000, 8);
        assert_eq!(shadow.tags(0x1000, 8).count(), 0);
        // Another object's bytes in the same eight take their place.
        shadow.set(0x1008, 4, tag(2, 0x1008));
        assert_eq!(shadow.tags(0x100c, 4).count(), 0);
        assert_eq!(shadow.tags(0x1008, 4).next(), Some((0x1008, tag(2, 0x1008))));
    }

    #[test]
    fn a_copy_is_known_by_its_origin() {
        let mut shadow = Shadow::new();
        shadow.set(0x1000, 8, tag(3, 0x0ff8));
        shadow.copy(0x1000, 0x2004, 8);
        let expected = Tag { source: Source::Copy, base: 0x1ffc, ..tag(3, 0) };
        assert_eq!(shadow.tags(0x2004, 8).next(), Some((0x2004, expected)));
        shadow.copy(0x5000, 0x2004, 8);
        assert_eq!(shadow.tags(0x2004, 8).count(), 0);
    }

    #[test]
    fn a_large_range_is_cleared_as_well() {
        let mut shadow = Shadow::new();
        shadow.set(0x1000, 8, tag(1, 0x1000));
        shadow.clear(0, 1 << 40);
        assert_eq!(shadow.tags(0x1000, 8).count(), 0);
    }

    #[test]
    fn granules_cover_what_is_asked() {
        assert_eq!(granules(0x1006, 4).collect::<Vec<_>>(), [(0x200, 0b1100_0000), (0x201, 0b11)]);
        assert_eq!(granules(0x1000, 0).count(), 0);
        assert_eq!(granules(0x1000, 8).collect::<Vec<_>>(), [(0x200, 0xff)]);
    }
}
