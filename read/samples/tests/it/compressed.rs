//! Records that perf compresses, `perf record -z`: read as those of the plain file.

use lineup_samples::writer::{EventSpec, SampleSpec, Writer, kind};
use lineup_samples::{Ending, Reader, Record, SamplesError};
use std::io::{Cursor, Write};

/// Numbers of compressed records: without their length, and with it.
const COMPRESSED: u32 = 81;
const COMPRESSED_2: u32 = 83;
/// A record of perf's without contents.
const NOTHING: u32 = 82;

fn plain() -> Vec<u8> {
    let event = EventSpec { sample_type: kind::MEMORY, ..EventSpec::default() };
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[event]).expect("a writer");
    for time_ns in 0..500 {
        let sample = SampleSpec { time_ns, instruction: 0x1000 + time_ns, ..SampleSpec::default() };
        writer.sample(&sample).expect("a sample");
    }
    writer.finish().expect("a file").into_inner()
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize
}

fn record(number: u32, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("a short record");
    [&number.to_le_bytes()[..], &[0, 0], &size.to_le_bytes(), body].concat()
}

/// The file with its records in compressed ones: one stream, cut where no record ends.
fn packed(plain: &[u8], number: u32) -> Vec<u8> {
    let (start, size) = (word(plain, 40), word(plain, 48));
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("an encoder");
    let mut records = Vec::new();
    for part in plain[start..start + size].chunks(1001) {
        encoder.write_all(part).expect("memory");
        encoder.flush().expect("memory");
        let packed = std::mem::take(encoder.get_mut());
        let body = match number {
            COMPRESSED => packed,
            _ => {
                let padding = vec![0; packed.len().next_multiple_of(8) - packed.len()];
                [&(packed.len() as u64).to_le_bytes()[..], &packed, &padding].concat()
            }
        };
        records.extend(record(number, &body));
    }
    // The sections behind the records stay at their places.
    let mut left = size.checked_sub(records.len()).expect("zstd makes them smaller");
    while left > 0 {
        let len = if left < 60_008 { left } else { 60_000 };
        records.extend(record(NOTHING, &vec![0; len.checked_sub(8).expect("room for a head")]));
        left -= len;
    }
    [&plain[..start], &records, &plain[start + size..]].concat()
}

/// Time in nanoseconds and instruction of each sample of a file.
type Samples = Vec<(Option<u64>, Option<u64>)>;

fn samples(bytes: &[u8]) -> (Samples, Ending) {
    let mut reader = Reader::of_file(Cursor::new(bytes)).expect("a file of perf");
    let mut all = Vec::new();
    while let Some(record) = reader.next_record().expect("a sound file") {
        if let Record::Sample(sample) = record {
            all.push((sample.time_ns, sample.instruction));
        }
    }
    (all, reader.ending().expect("an end"))
}

#[test]
fn compressed_records_are_those_of_the_plain_file() {
    let plain = plain();
    let expected = samples(&plain);
    assert_eq!((expected.0.len(), expected.1), (500, Ending::Whole));
    for number in [COMPRESSED, COMPRESSED_2] {
        assert_eq!(samples(&packed(&plain, number)), expected, "{number}");
    }
}

#[test]
fn a_compressed_file_that_was_cut_off_is_read_up_to_there() {
    let plain = plain();
    let packed = packed(&plain, COMPRESSED);
    let first_bytes =
        usize::from(u16::from_le_bytes([packed[word(&plain, 40) + 6], packed[word(&plain, 40) + 7]]));
    let (found, ending) = samples(&packed[..word(&plain, 40) + first_bytes + 20]);
    assert!(!found.is_empty() && found.len() < 500);
    assert!(matches!(ending, Ending::CutOff { .. }));
}

#[test]
fn noise_in_compressed_records_is_an_error_with_its_place() {
    let plain = plain();
    let mut packed = packed(&plain, COMPRESSED);
    let start = word(&plain, 40);
    packed[start + 8..start + 40].fill(0xa5);
    let mut reader = Reader::of_file(Cursor::new(packed)).expect("a head");
    let error = loop {
        match reader.next_record() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("noise was read"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, SamplesError::Damaged { what: "a compressed record", .. }), "{error}");
}
