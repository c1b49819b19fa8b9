//! Traces for tests.
#![allow(dead_code, reason = "each test that uses this uses a part of it")]

use lineup_samples::spe::{Access, Kind, TraceRecord};
use lineup_samples::writer::{EventSpec, kind};

/// The kind of the event that makes traces.
pub(crate) const KIND: u32 = 8;

pub(crate) fn event() -> EventSpec {
    let sample_type = kind::IDENTIFIER
        | kind::IP
        | kind::TID
        | kind::TIME
        | kind::ADDR
        | kind::CPU
        | kind::WEIGHT
        | kind::DATA_SRC
        | kind::PHYS_ADDR;
    EventSpec { name: "arm_spe_0//".to_owned(), kind: KIND, sample_type, ..EventSpec::default() }
}

/// A load by an instruction of process 77.
pub(crate) fn load(number: u64, ticks: u64) -> TraceRecord {
    TraceRecord {
        instruction: Some(0x40_1000 + number),
        level: Some(0),
        address: Some(0x7f00_0000_1000 + 8 * number),
        physical_address: Some(0x1_0000 + number),
        kind: Kind::Access(Access::default()),
        events: 0b110,
        total_cycles: Some(100 + (number % 50) as u16),
        issue_cycles: Some(3),
        translation_cycles: Some(1),
        context: Some(77),
        ticks: Some(ticks),
        ..TraceRecord::default()
    }
}

/// The bytes of records, one after the other.
pub(crate) fn encoded(records: &[TraceRecord]) -> Vec<u8> {
    let mut trace = Vec::new();
    records.iter().for_each(|record| record.encode(&mut trace));
    trace
}
