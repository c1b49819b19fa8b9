//! The HDR histogram export, read back by the library whose form it is.

use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use lineup_trace::hdr::{interval_log, percentiles};
use lineup_trace::{Arm, Event, Histogram, Kind, Name, NameKind, Rung, ThreadTrace, Trace};
use std::time::Duration;

const BASE_64: &base64::engine::GeneralPurpose = &base64::engine::general_purpose::STANDARD;

fn name(index: u16, text: &str, kind: NameKind) -> Name {
    Name { index, text: text.to_owned(), kind, arms_mask: 1, code: None, data: None, give_up_ns: 0 }
}

fn event(number: u64, name: u16, kind: Kind, duration_ns: u64, lock_wait_ns: u64) -> Event {
    let start_ns = 1_000 + number * 10;
    Event {
        number,
        kind,
        name,
        start_ns,
        duration_ns,
        lock_wait_ns,
        argument: 0,
        cpu: None,
        arm: Arm::None,
        depth: 0,
        counters: [number as u32 * 3, 0, 0, 0],
    }
}

/// Durations from nothing to minutes, in a region and in a lock.
fn trace() -> Trace {
    let durations = [0u64, 1, 2, 31, 32, 33, 1_000, 1_000, 1_017, 65_535, 1 << 20, 180_000_000_000];
    let regions = durations.iter().zip(0u64..);
    let regions = regions.map(|(duration_ns, number)| event(number, 0, Kind::Region, *duration_ns, 0));
    let locks = (0..5).map(|number| event(20 + number, 1, Kind::Lock, 50, number * 100));
    let marks = (0..3).map(|number| event(30 + number, 2, Kind::Mark, 0, 0));
    let thread = ThreadTrace {
        tid: 1,
        name: String::new(),
        events: regions.chain(locks).chain(marks).collect(),
        high_water: Vec::new(),
        losses: Default::default(),
        histograms: Vec::new(),
    };
    Trace {
        pid: 1,
        rung: Rung::TimeOnly,
        counters: [Some("instructions".to_owned()), None, None, None],
        modes: 1,
        stops_when_full: false,
        start_ns: 1_000,
        start_realtime_ns: 1_700_000_000_250_000_000,
        uses_counter: true,
        names: vec![
            name(0, "a region, with a comma", NameKind::Region),
            name(1, "queue", NameKind::Lock),
            name(2, "mark", NameKind::Mark),
        ],
        names_refused: 0,
        threads: vec![thread],
        threads_refused: 0,
        lost_without_area: 0,
    }
}

/// The trace with histograms alone, this one of the durations of the lock.
fn with_histogram(histogram: Histogram) -> Trace {
    let mut trace = trace();
    trace.modes = lineup_trace::layout::mode::HISTOGRAMS;
    trace.threads[0].histograms = vec![(1, 0, histogram)];
    trace
}

fn read_back(log: &[u8]) -> Vec<(String, hdrhistogram::Histogram<u64>)> {
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.expect("a line of the log") else { continue };
        assert_eq!(interval.start_timestamp(), Duration::ZERO);
        // To the end of the longest call, which began at 110 ns of the trace; the log counts milliseconds.
        assert_eq!(interval.duration(), Duration::from_millis(180_000));
    }
    read_back_any_length(log)
}

fn read_back_any_length(log: &[u8]) -> Vec<(String, hdrhistogram::Histogram<u64>)> {
    let mut deserializer = Deserializer::new();
    let mut all = Vec::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.expect("a line of the log") else { continue };
        let bytes = base64::Engine::decode(BASE_64, interval.encoded_histogram()).unwrap();
        let histogram = deserializer.deserialize(&mut &bytes[..]).expect("a compressed V2 histogram");
        all.push((interval.tag().expect("a tag").as_str().to_owned(), histogram));
    }
    all
}

fn same_counts(ours: &Histogram, theirs: &hdrhistogram::Histogram<u64>) {
    assert_eq!(theirs.len(), ours.total());
    for (least, greatest, count) in ours.buckets() {
        // Theirs are finer: no bucket of ours is cut by one of theirs.
        assert_eq!(theirs.count_between(least, greatest), count, "{least} to {greatest}");
    }
}

#[test]
fn every_histogram_is_read_back_with_the_same_counts() {
    let trace = trace();
    let found = read_back(&interval_log(&trace).unwrap());
    let tags: Vec<&str> = found.iter().map(|(tag, _)| tag.as_str()).collect();
    let region = "a_region__with_a_comma";
    let instructions = format!("{region}/instructions");
    assert_eq!(tags, [region, &instructions, "queue", "queue/lock_wait", "queue/instructions"]);
    for ((_, theirs), (name, metric)) in found.iter().zip([(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]) {
        let ours = trace.histogram(name, metric);
        assert!(ours.total() >= 5);
        same_counts(&ours, theirs);
    }
}

#[test]
fn the_log_says_when_the_trace_began() {
    let log = String::from_utf8(interval_log(&trace()).unwrap()).unwrap();
    assert!(
        log.contains("#[BaseTime: 1700000000.250 ") && log.contains("#[StartTime: 1700000000.250 "),
        "{log}"
    );
    assert!(log.contains("[Histogram log format version 1.3]"), "{log}");
}

#[test]
fn the_longest_duration_is_read_back_too() {
    let longest: Histogram = [3, u64::MAX].into_iter().collect();
    let found = read_back_any_length(&interval_log(&with_histogram(longest.clone())).unwrap());
    let [(tag, theirs)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(tag, "queue");
    same_counts(&longest, theirs);
}

#[test]
fn a_count_that_no_hdr_histogram_holds_is_refused_by_name() {
    let mut endless = Histogram::default();
    endless.add(5, u64::MAX);
    let refused = interval_log(&with_histogram(endless)).unwrap_err().to_string();
    assert!(refused.starts_with("queue: ") && refused.contains("2^63"), "{refused}");
}

#[test]
fn percentile_tables_end_at_one() {
    let table = percentiles(&trace().histogram(0, 0));
    let last = table.lines().rfind(|line| !line.starts_with('#')).unwrap();
    let columns: Vec<&str> = last.split_whitespace().collect();
    assert_eq!(&columns[1..], ["1.000000000000", "12"]);
}
