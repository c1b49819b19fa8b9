//! Allocation sites of a whole program, and the fate of their memory.

use super::header::Misses;
use crate::varint::{Cursor, put, put_delta};

/// Counts of all allocations by one chain of calls.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct AllocationSite {
    /// Its number, which accesses in windows refer to. 0 stands for no site.
    pub number: u32,
    /// Return addresses, the innermost first: that of the call of the allocator.
    pub frames: Vec<u64>,
    /// Objects that were allocated.
    pub objects: u64,
    /// Bytes of them, as asked for.
    pub bytes: u64,
    /// Most bytes of them that were in use at one time.
    pub most_bytes: u64,
    /// Misses of accesses to them.
    pub misses: Misses,
}

/// Packs a site.
pub(crate) fn put_site(out: &mut Vec<u8>, site: &AllocationSite) {
    put(out, u64::from(site.number));
    put(out, site.frames.len() as u64);
    let mut last = 0;
    for frame in &site.frames {
        put_delta(out, last, *frame);
        last = *frame;
    }
    for value in [site.objects, site.bytes, site.most_bytes, site.misses.l1, site.misses.l2] {
        put(out, value);
    }
}

/// Reads [`put_site`] back.
pub(crate) fn site(cursor: &mut Cursor<'_>) -> Option<AllocationSite> {
    let number = u32::try_from(cursor.int()?).ok()?;
    let mut last = 0;
    let frames = (0..cursor.count(1)?).map(|_| {
        last = cursor.delta(last)?;
        Some(last)
    });
    Some(AllocationSite {
        number,
        frames: frames.collect::<Option<_>>()?,
        objects: cursor.int()?,
        bytes: cursor.int()?,
        most_bytes: cursor.int()?,
        misses: Misses { l1: cursor.int()?, l2: cursor.int()? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_reads_back_and_damage_is_noticed() {
        let example = AllocationSite {
            number: 7,
            frames: vec![0x40_1000, u64::MAX, 1],
            objects: 3,
            bytes: 96,
            most_bytes: 64,
            misses: Misses { l1: 5, l2: 2 },
        };
        let mut out = Vec::new();
        put_site(&mut out, &example);
        assert_eq!(site(&mut Cursor::new(&out)), Some(example));
        for end in 0..out.len() {
            assert_eq!(site(&mut Cursor::new(&out[..end])), None, "{end}");
        }
    }
}
