//! Any bytes either read as a recording or are refused: no panic, no unbounded allocation. Half of the
//! inputs are wrapped in a valid frame, so that the record decoder is reached past the checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_recording::journal::Journal;
use lineup_recording::{Reader, VERSION, read_all};

fuzz_target!(|bytes: &[u8]| {
    let _ = read_all(bytes);
    let _ = Journal::read(bytes.len() as u64, |at, buffer| {
        let from = bytes.get(at as usize..).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    });
    let framed = framed(bytes);
    if let Ok(reader) = Reader::new(&framed[..]) {
        reader.for_each(drop);
    }
});

/// A file whose first block holds `records` under a right checksum.
fn framed(records: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(records, 1).unwrap_or_default();
    let mut file = b"LINEUPRC".to_vec();
    file.extend(VERSION.to_le_bytes());
    file.extend((records.len() as u32).to_le_bytes());
    file.extend((stored.len() as u32).to_le_bytes());
    file.extend(crc32fast::hash(&stored).to_le_bytes());
    file.extend(stored);
    file
}
