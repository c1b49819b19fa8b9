//! The source of data: from numbers that each processor defines, and from events that the architecture defines.

use super::record::{Access, Kind, TraceRecord};
use crate::data_source::{DataSource, Level, Operation, Snoop, Translation};

/// Bits of events.
const L1_ACCESS: u32 = 2;
const L1_REFILL: u32 = 3;
const TRANSLATION_ACCESS: u32 = 4;
const TRANSLATION_WALK: u32 = 5;
const LAST_LEVEL_ACCESS: u32 = 8;
const LAST_LEVEL_MISS: u32 = 9;
const OTHER_SOCKET: u32 = 10;
const L2_ACCESS: u32 = 19;
const L2_MISS: u32 = 20;
const MODIFIED: u32 = 21;
const ON_ITS_WAY: u32 = 22;
const SNOOPED: u32 = 23;

/// Manufacturers of processors.
const ARM: u32 = 0x41;
const HISILICON: u32 = 0x48;
const AMPERE: u32 = 0xc0;
/// Arm's processors whose numbers are known, which are the same for all: Neoverse N1, N2, V1 and V2, Cortex-A720,
/// A720AE, A725, X1C, X3 and X925.
const ARMS: [u32; 10] = [0xd0c, 0xd49, 0xd40, 0xd4f, 0xd81, 0xd89, 0xd87, 0xd4c, 0xd4e, 0xd85];
/// Ampere's: AmpereOne AC04.
const AMPERES: [u32; 1] = [0xac4];
/// HiSilicon's: HIP12.
const HISILICONS: [u32; 1] = [0xd06];

/// A processor family's numbering of data sources.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Numbers {
    Arm,
    Ampere,
    HiSilicon,
}

/// By the processor's identity (its `MIDR_EL1`).
fn numbers(processor: Option<u64>) -> Option<Numbers> {
    let processor = processor? as u32;
    let part = processor >> 4 & 0xfff;
    match processor >> 24 {
        ARM if ARMS.contains(&part) => Some(Numbers::Arm),
        AMPERE if AMPERES.contains(&part) => Some(Numbers::Ampere),
        HISILICON if HISILICONS.contains(&part) => Some(Numbers::HiSilicon),
        _ => None,
    }
}

/// A level, the answer of other caches, and whether that is of another socket.
type DataOrigin = (Level, Snoop, bool);

fn arms(source: u16) -> Option<DataOrigin> {
    Some(match source {
        0x0 => (Level::L1, Snoop::None, false),
        0x8 => (Level::L2, Snoop::None, false),
        // Another core's cache: in the same cluster, reached through it, or in another one. Its level is unknown.
        0x9 | 0xa | 0xc => (Level::Cache, Snoop::Peer, false),
        0xb => (Level::L3, Snoop::Unknown, false),
        0xd => (Level::RemoteCache, Snoop::Peer, true),
        0xe => (Level::Memory, Snoop::None, false),
        _ => return None,
    })
}

fn amperes(source: u16) -> Option<DataOrigin> {
    Some(match source {
        // A cache of this chip, or a device: level 0 is not distinguished, and no peer is reported to have had the
        // line.
        0x3 => (Level::L3, Snoop::Unknown, false),
        0x5 => (Level::RemoteCache, Snoop::Peer, true),
        0x7 => (Level::Memory, Snoop::None, false),
        0x8 => (Level::L1, Snoop::None, false),
        0x9 => (Level::L2, Snoop::None, false),
        _ => return None,
    })
}

fn hisilicons(source: u16) -> Option<DataOrigin> {
    Some(match source {
        0 | 4 => (Level::Cache, Snoop::Peer, false),
        1 | 5 => (Level::Cache, Snoop::HitModified, false),
        2 => (Level::L3, Snoop::Hit, false),
        3 => (Level::L3, Snoop::HitModified, false),
        6 => (Level::RemoteCache, Snoop::Peer, true),
        7 => (Level::RemoteCache, Snoop::HitModified, true),
        8 => (Level::Memory, Snoop::None, false),
        9 => (Level::RemoteMemory, Snoop::Unknown, true),
        13 => (Level::Device, Snoop::None, false),
        16 => (Level::L2, Snoop::None, false),
        17 => (Level::L2, Snoop::HitModified, false),
        18 => (Level::L1, Snoop::None, false),
        _ => return None,
    })
}

/// The data source of a record; `None` for one that accessed no memory.
pub(crate) fn data_source(record: &TraceRecord, processor: Option<u64>) -> Option<DataSource> {
    let Kind::Access(access) = record.kind else { return None };
    // No processor reports it for stores.
    let number = record.source.filter(|_| !access.is_store || access.is_atomic);
    let known = number.and_then(|source| match numbers(processor)? {
        Numbers::Arm => arms(source),
        Numbers::Ampere => amperes(source),
        Numbers::HiSilicon => hisilicons(source),
    });
    let own = DataSource {
        operation: operation(access),
        translation: translation(record.events),
        is_locked: access.is_atomic || access.is_exclusive,
        ..DataSource::default()
    };
    Some(match known {
        Some((level, snoop, is_remote)) => DataSource { level, snoop, is_remote, ..own },
        None => by_events(record.events, own),
    })
}

fn operation(access: Access) -> Operation {
    match access {
        Access { is_atomic: true, .. } => Operation::Both,
        Access { is_store: true, .. } => Operation::Store,
        _ => Operation::Load,
    }
}

fn translation(events: u64) -> Translation {
    let has = |bit: u32| events >> bit & 1 == 1;
    match (has(TRANSLATION_ACCESS), has(TRANSLATION_WALK)) {
        (_, true) => Translation::Miss,
        (true, false) => Translation::Hit,
        (false, false) => Translation::Unknown,
    }
}

/// The nearest level that was asked and had it, else the farthest that had not.
fn by_events(events: u64, own: DataSource) -> DataSource {
    let has = |bit: u32| events >> bit & 1 == 1;
    let had = |asked: u32, missed: u32| has(asked) && !has(missed);
    let (level, missed) = match () {
        () if had(L1_ACCESS, L1_REFILL) => (Level::L1, false),
        () if has(ON_ITS_WAY) => (Level::FillBuffer, false),
        () if had(L2_ACCESS, L2_MISS) => (Level::L2, false),
        () if had(LAST_LEVEL_ACCESS, LAST_LEVEL_MISS) => (Level::L3, false),
        () if has(LAST_LEVEL_MISS) => (Level::L3, true),
        () if has(L2_MISS) => (Level::L2, true),
        () if has(L1_REFILL) => (Level::L1, true),
        () => (Level::Unknown, false),
    };
    let snoop = match (has(SNOOPED), has(MODIFIED)) {
        (true, true) => Snoop::HitModified,
        (true, false) => Snoop::Hit,
        (false, _) => Snoop::Unknown,
    };
    DataSource { level, missed, snoop, is_remote: has(OTHER_SOCKET), ..own }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Kind = Kind::Access(Access {
        is_store: false,
        is_atomic: false,
        is_exclusive: false,
        is_ordered: false,
        is_vector: false,
    });

    fn of(source: Option<u16>, events: &[u32], processor: Option<u64>) -> DataSource {
        let events = events.iter().fold(0, |all, bit| all | 1 << bit);
        data_source(&TraceRecord { kind: LOAD, source, events, ..TraceRecord::default() }, processor).unwrap()
    }

    #[test]
    fn numbers_are_read_by_the_processor_that_wrote_them() {
        let (n1, v2, ampere, hip12) = (0x413f_d0c1, 0x410f_d4f0, 0xc00f_ac40, 0x480f_d060);
        let place = |source, processor| {
            let own = of(Some(source), &[], Some(processor));
            (own.level, own.snoop, own.is_remote, own.is_hitm())
        };
        assert_eq!(place(0x9, n1), (Level::Cache, Snoop::Peer, false, true));
        assert_eq!(place(0xd, v2), (Level::RemoteCache, Snoop::Peer, true, true));
        assert_eq!(place(0xe, v2), (Level::Memory, Snoop::None, false, false));
        assert_eq!(place(0x9, ampere), (Level::L2, Snoop::None, false, false));
        assert_eq!(place(0x3, hip12), (Level::L3, Snoop::HitModified, false, true));
        assert_eq!(
            place(0x3, n1),
            (Level::Unknown, Snoop::Unknown, false, false),
            "a number that N1 has not"
        );
    }

    #[test]
    fn of_other_processors_events_tell_the_level() {
        let place = |events: &[u32]| {
            let own = of(Some(0xe), events, Some(0x410f_d0b0));
            (own.level, own.missed)
        };
        assert_eq!(place(&[L1_ACCESS]), (Level::L1, false));
        assert_eq!(place(&[L1_ACCESS, L1_REFILL]), (Level::L1, true));
        assert_eq!(place(&[L1_ACCESS, L1_REFILL, L2_ACCESS]), (Level::L2, false));
        assert_eq!(place(&[L1_ACCESS, L1_REFILL, LAST_LEVEL_ACCESS]), (Level::L3, false));
        assert_eq!(place(&[L1_ACCESS, L1_REFILL, LAST_LEVEL_ACCESS, LAST_LEVEL_MISS]), (Level::L3, true));
        assert_eq!(place(&[ON_ITS_WAY, L1_ACCESS, L1_REFILL]), (Level::FillBuffer, false));
        assert_eq!(place(&[]), (Level::Unknown, false));
        let shared = of(None, &[L1_ACCESS, L1_REFILL, SNOOPED, MODIFIED, OTHER_SOCKET], None);
        assert!(shared.is_hitm() && shared.is_remote);
        assert!(!of(None, &[L1_ACCESS, L1_REFILL, SNOOPED], None).is_hitm());
    }

    #[test]
    fn translations_are_told() {
        let own = |events: &[u32]| of(None, events, None).translation;
        assert_eq!(own(&[TRANSLATION_ACCESS]), Translation::Hit);
        assert_eq!(own(&[TRANSLATION_ACCESS, TRANSLATION_WALK]), Translation::Miss);
        assert_eq!(own(&[]), Translation::Unknown);
    }

    #[test]
    fn an_atomic_access_is_both_and_locked_an_exclusive_one_is_locked() {
        let access = |access| TraceRecord { kind: Kind::Access(access), ..TraceRecord::default() };
        let atomic = data_source(&access(Access { is_atomic: true, ..Access::default() }), None).unwrap();
        assert_eq!((atomic.operation, atomic.is_locked), (Operation::Both, true));
        let exclusive = Access { is_store: true, is_exclusive: true, ..Access::default() };
        let exclusive = data_source(&access(exclusive), None).unwrap();
        assert_eq!((exclusive.operation, exclusive.is_locked), (Operation::Store, true));
        assert_eq!(data_source(&TraceRecord { kind: Kind::Other, ..TraceRecord::default() }, None), None);
    }
}
