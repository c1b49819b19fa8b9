//! Where a whole program's objects lay, and on which pages.

use super::header::{Misses, PageCounts};
use crate::varint::{Cursor, put, put_delta};

/// One record of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// The pages that the accesses of an instruction needed.
    Pages {
        /// Runtime address of the instruction.
        pc: u64,
        /// Their counts.
        counts: PageCounts,
    },
    /// The memory of the objects of an allocation site.
    Site(SiteMemory),
    /// The objects of a window's accesses.
    Objects(WindowObjects),
}

/// The memory of all objects that one chain of calls allocated.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SiteMemory {
    /// The site's number.
    pub site: u32,
    /// Bytes that glibc's `malloc` takes for its objects: with headers, and rounded.
    pub chunk_bytes: u64,
    /// The pages that accesses to them needed.
    pub pages: PageCounts,
    /// Lines of 64 bytes that were fetched for them in the windows of the run.
    pub lines: u64,
    /// Bytes of these lines that belonged to live objects of any site, as asked for.
    pub live_bytes: u64,
}

/// An object that a window accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct HeapObject {
    /// Runtime address of its first byte.
    pub address: u64,
    /// Bytes, as asked for.
    pub size_bytes: u32,
    /// The number of the site that allocated it.
    pub site: u32,
    /// The number of objects that this site allocated before it.
    pub serial: u32,
    /// The place that it would have in a pool of all objects of its size, rounded to 16 bytes. A place that an object
    /// gave back is the next one's.
    pub slot_by_size: u32,
    /// The number of the pool for its site and its size.
    pub site_pool: u32,
    /// The same in that pool.
    pub slot_by_site: u32,
}

/// The objects of the accesses of one part of a window. The parts of one window come in their order.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WindowObjects {
    /// The window's number.
    pub window: u64,
    /// The objects.
    pub objects: Vec<HeapObject>,
    /// For each access of the part, one more than the number of its object; 0 where it accesses none of them.
    pub uses: Vec<u32>,
}

const PAGES: u8 = 0;
const SITE: u8 = 1;
const OBJECTS: u8 = 2;
/// Bytes of an object at least, in a recording.
const LEAST_OBJECT_BYTES: usize = 7;

/// Packs a record.
pub(crate) fn put_placement(out: &mut Vec<u8>, placement: &Placement) {
    match placement {
        Placement::Pages { pc, counts } => {
            out.push(PAGES);
            put(out, *pc);
            put_counts(out, *counts);
        }
        Placement::Site(site) => {
            out.push(SITE);
            put(out, u64::from(site.site));
            put(out, site.chunk_bytes);
            put_counts(out, site.pages);
            put(out, site.lines);
            put(out, site.live_bytes);
        }
        Placement::Objects(WindowObjects { window, objects, uses }) => {
            out.push(OBJECTS);
            put(out, *window);
            put(out, objects.len() as u64);
            let mut last = 0;
            for object in objects {
                put_delta(out, last, object.address);
                last = object.address;
                let HeapObject { size_bytes, site, serial, slot_by_size, site_pool, slot_by_site, .. } =
                    *object;
                for value in [size_bytes, site, serial, slot_by_size, site_pool, slot_by_site] {
                    put(out, u64::from(value));
                }
            }
            let runs = || uses.chunk_by(|one, next| one == next);
            put(out, uses.len() as u64);
            put(out, runs().count() as u64);
            for run in runs() {
                put(out, run.len() as u64);
                put(out, u64::from(run[0]));
            }
        }
    }
}

fn put_counts(out: &mut Vec<u8>, counts: PageCounts) {
    for value in [counts.first_touches, counts.translations.l1, counts.translations.l2] {
        put(out, value);
    }
}

/// Reads [`put_placement`] back.
pub(crate) fn placement(cursor: &mut Cursor<'_>) -> Option<Placement> {
    Some(match cursor.byte()? {
        PAGES => Placement::Pages { pc: cursor.int()?, counts: counts(cursor)? },
        SITE => Placement::Site(SiteMemory {
            site: number(cursor)?,
            chunk_bytes: cursor.int()?,
            pages: counts(cursor)?,
            lines: cursor.int()?,
            live_bytes: cursor.int()?,
        }),
        OBJECTS => {
            let window = cursor.int()?;
            let mut last = 0;
            let objects = (0..cursor.count(LEAST_OBJECT_BYTES)?).map(|_| {
                last = cursor.delta(last)?;
                Some(HeapObject {
                    address: last,
                    size_bytes: number(cursor)?,
                    site: number(cursor)?,
                    serial: number(cursor)?,
                    slot_by_size: number(cursor)?,
                    site_pool: number(cursor)?,
                    slot_by_site: number(cursor)?,
                })
            });
            let objects: Vec<HeapObject> = objects.collect::<Option<_>>()?;
            let uses = uses(cursor, objects.len() as u64)?;
            Placement::Objects(WindowObjects { window, objects, uses })
        }
        _ => return None,
    })
}

/// Accesses of one part of a window at most: more are damage.
const MOST_ACCESSES: u64 = 1 << 24;

/// The objects of accesses, of which each is at most `most`.
fn uses(cursor: &mut Cursor<'_>, most: u64) -> Option<Vec<u32>> {
    let all = cursor.int().filter(|all| *all <= MOST_ACCESSES)?;
    let mut uses = Vec::new();
    for _ in 0..cursor.count(2)? {
        let length = cursor.int().filter(|length| *length <= all - uses.len() as u64)?;
        let object = cursor.int().filter(|object| *object <= most)?;
        uses.extend(std::iter::repeat_n(object as u32, length as usize));
    }
    (uses.len() as u64 == all).then_some(uses)
}

fn number(cursor: &mut Cursor<'_>) -> Option<u32> {
    u32::try_from(cursor.int()?).ok()
}

fn counts(cursor: &mut Cursor<'_>) -> Option<PageCounts> {
    let first_touches = cursor.int()?;
    Some(PageCounts { first_touches, translations: Misses { l1: cursor.int()?, l2: cursor.int()? } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_records_read_back_and_damage_is_noticed() {
        let counts = PageCounts { first_touches: 3, translations: Misses { l1: 200, l2: 7 } };
        let object = |address, slot_by_size| HeapObject {
            address,
            size_bytes: 24,
            site: 1,
            serial: 500,
            slot_by_size,
            site_pool: 2,
            slot_by_site: 9,
        };
        let objects = vec![object(0x5555_0000_02a0, 4), object(0x5555_0000_0010, u32::MAX)];
        for example in [
            Placement::Pages { pc: 0x40_1000, counts },
            Placement::Site(SiteMemory {
                site: 7,
                chunk_bytes: 320,
                pages: counts,
                lines: 4,
                live_bytes: 96,
            }),
            Placement::Objects(WindowObjects { window: 64, objects, uses: vec![0, 1, 1, 2, 0] }),
            Placement::Objects(WindowObjects::default()),
        ] {
            let mut out = Vec::new();
            put_placement(&mut out, &example);
            assert_eq!(placement(&mut Cursor::new(&out)), Some(example));
            for end in 0..out.len() {
                assert_eq!(placement(&mut Cursor::new(&out[..end])), None, "{end}");
            }
        }
        // An access of an object that is not there, and fewer accesses than there are.
        assert_eq!(placement(&mut Cursor::new(&[OBJECTS, 0, 0, 1, 1, 1, 1])), None);
        assert_eq!(placement(&mut Cursor::new(&[OBJECTS, 0, 0, 2, 1, 1, 0])), None);
    }
}
