//! The reader against files built here, whole and broken.

use lineup_trace::layout::{Geometry, MAGIC, RECORD_BYTES, VERSION, header, name, record, thread};
use lineup_trace::summary::summarise;
use lineup_trace::{Arm, Kind, NameKind, Trace, TraceError};
use lineup_trace::{export, hdr};
use proptest::prelude::*;

const GEOMETRY: Geometry =
    Geometry { threads: 2, ring_records: 8, high_water_records: 8, names: 2, has_histograms: false };

fn put32(file: &mut [u8], at: usize, value: u32) {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put64(file: &mut [u8], at: usize, value: u64) {
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// A file with one thread and one region `r`, no events.
fn empty() -> Vec<u8> {
    let mut file = vec![0; GEOMETRY.file_bytes() as usize];
    file[..8].copy_from_slice(&MAGIC);
    put32(&mut file, header::VERSION, VERSION);
    put32(&mut file, header::THREADS, GEOMETRY.threads);
    put32(&mut file, header::RING_RECORDS, GEOMETRY.ring_records);
    put32(&mut file, header::HIGH_WATER_RECORDS, GEOMETRY.high_water_records);
    put32(&mut file, header::NAMES, GEOMETRY.names);
    put32(&mut file, header::MODES, 1);
    put32(&mut file, header::PID, 77);
    put32(&mut file, header::THREADS_CLAIMED, 1);
    put32(&mut file, header::NAMES_CLAIMED, 1);
    let entry = GEOMETRY.names_at() as usize;
    put32(&mut file, entry + name::READY, 1);
    put32(&mut file, entry + name::LENGTH, 1);
    file[entry + name::TEXT] = b'r';
    put32(&mut file, GEOMETRY.area_at(0) as usize + thread::TID, 5);
    file
}

fn put_event(file: &mut [u8], number: u64, start_ns: u64, duration_ns: u64) {
    let ring = GEOMETRY.area_at(0) + GEOMETRY.ring_offset();
    let slot = (ring + number % u64::from(GEOMETRY.ring_records) * RECORD_BYTES) as usize;
    put64(file, slot + record::COMMIT, number + 1);
    put64(file, slot + record::START_NS, start_ns);
    put64(file, slot + record::DURATION_NS, duration_ns);
    file[slot + record::KIND] = Kind::Region.number();
}

#[test]
fn events_come_back_oldest_first_with_exact_losses() {
    let mut file = empty();
    (0..11).for_each(|number| put_event(&mut file, number, number * 100, 10));
    let trace = Trace::parse(&file).unwrap();
    let starts: Vec<u64> = trace.threads[0].events.iter().map(|event| event.start_ns).collect();
    assert_eq!(starts, (3..11).map(|n| n * 100).collect::<Vec<_>>());
    assert_eq!(trace.losses().overwritten, 3);
    assert_eq!((trace.pid, trace.names[0].kind, trace.names[0].text.as_str()), (77, NameKind::Region, "r"));
}

#[test]
fn a_record_cut_short_by_a_kill_is_open_not_guessed() {
    let mut file = empty();
    (0..11).for_each(|number| put_event(&mut file, number, number * 100, 10));
    let slot = (GEOMETRY.area_at(0) + GEOMETRY.ring_offset() + 3 * RECORD_BYTES) as usize;
    put64(&mut file, slot + record::COMMIT, 0);
    let losses = Trace::parse(&file).unwrap().losses();
    // Number 11 was begun over number 3: three were overwritten before, and now that one.
    assert_eq!((losses.in_progress, losses.overwritten), (1, 4));
}

#[test]
fn broken_files_are_refused_with_the_reason() {
    assert_eq!(Trace::parse(b"hello"), Err(TraceError::NotATrace));
    assert_eq!(Trace::parse(&[]), Err(TraceError::NotATrace));
    let mut file = empty();
    put32(&mut file, header::VERSION, 9);
    assert_eq!(Trace::parse(&file), Err(TraceError::Version { found: 9, supported: VERSION }));
    let mut file = empty();
    put32(&mut file, header::RING_RECORDS, 7);
    assert!(matches!(Trace::parse(&file), Err(TraceError::Header { .. })));
    let mut file = empty();
    file.truncate(9_000);
    assert!(matches!(Trace::parse(&file), Err(TraceError::Truncated { have_bytes: 9_000, .. })));
    assert!(matches!(Trace::parse(&MAGIC), Err(TraceError::Truncated { .. })));
}

#[test]
fn an_unknown_region_is_answered_with_those_there_are() {
    let trace = Trace::parse(&empty()).unwrap();
    let error = trace.region("x").unwrap_err().to_string();
    assert!(error.contains("\"x\"") && error.contains("it has r"), "{error}");
}

#[test]
fn numbers_of_a_summary() {
    let mut file = empty();
    (0..8)
        .for_each(|number| put_event(&mut file, number, number * 100, if number == 7 { 1_000 } else { 10 }));
    let summary = summarise(&Trace::parse(&file).unwrap());
    let quantiles = summary.names[0].duration_ns.quantiles.unwrap();
    assert_eq!((summary.names[0].duration_ns.count, quantiles.median, quantiles.max), (8, 10, 999));
    assert_eq!(summary.names[0].calls_by_arm, [(Arm::None, 8)]);
    let empty = summarise(&Trace::parse(&self::empty()).unwrap());
    assert_eq!(empty.names[0].duration_ns.quantiles, None);
}

#[test]
fn exports_hold_every_event() {
    let mut file = empty();
    (0..3).for_each(|number| put_event(&mut file, number, 1_000 + number * 100, 10));
    let trace = Trace::parse(&file).unwrap();
    let csv = export::csv(&trace);
    assert_eq!(csv.lines().count(), 4);
    assert_eq!(csv.lines().nth(1), Some("5,0,Region,\"r\",1000,10,0,0,0,none,0"));
    // A descriptor of the thread's track, then a begin and an end for each: the outermost field is number 1.
    let mut packets = 0;
    let mut rest = &export::perfetto(&trace)[..];
    while let [10, length, tail @ ..] = rest {
        rest = &tail[usize::from(*length)..];
        packets += 1;
    }
    assert_eq!((packets, rest.len()), (7, 0));
}

proptest! {
    /// For any bytes in the file, reading and all analysis end without a panic.
    #[test]
    fn no_bytes_make_the_reader_panic(changes in prop::collection::vec((0usize..30_000, any::<u8>()), 0..60)) {
        let mut file = empty();
        (0..8).for_each(|number| put_event(&mut file, number, number * 100, 10));
        for (at, byte) in changes {
            let at = at % file.len();
            file[at] = byte;
        }
        if let Ok(trace) = Trace::parse(&file) {
            let _ = summarise(&trace);
            let _ = export::csv(&trace);
            let _ = export::perfetto(&trace);
            let _ = hdr::interval_log(&trace);
        }
    }
}
