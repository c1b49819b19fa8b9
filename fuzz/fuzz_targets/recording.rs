//! Any bytes either read as a recording or are refused: no panic, no unbounded allocation. Half of the
//! inputs are wrapped in a valid frame, so that the record decoder is reached past the checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_recording::{Reader, read_all};

fuzz_target!(|bytes: &[u8]| {
    let _ = read_all(bytes);
    let framed = framed(bytes);
    if let Ok(reader) = Reader::new(&framed[..]) {
        reader.for_each(drop);
    }
});

/// A file whose first block holds `records` under a right checksum.
fn framed(records: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(records, 1).unwrap_or_default();
    let mut file = b"LINEUPRC\x01\0\0\0".to_vec();
    file.extend((records.len() as u32).to_le_bytes());
    file.extend((stored.len() as u32).to_le_bytes());
    file.extend(crc32fast::hash(&stored).to_le_bytes());
    file.extend(stored);
    file
}
