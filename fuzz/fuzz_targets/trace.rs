//! Any bytes either read as a trace or are refused, and what was read can be summarised, explained and exported: no
//! panic, no unbounded allocation. Half of the inputs get a valid header, so that names and rings are reached.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_report::text::{Extent, TextStyle};
use lineup_report::trace::{TracedRun, attributions_text, high_water_listing, trace_page, traces_text};
use lineup_trace::attribution::attribute;
use lineup_trace::estimate::Level;
use lineup_trace::layout::{Geometry, MAGIC, VERSION, header};
use lineup_trace::tail::Tail;
use lineup_trace::{NameKind, Trace, export, summary};

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    read(&with_header(bytes));
});

fn read(bytes: &[u8]) {
    let Ok(trace) = Trace::parse(bytes) else { return };
    let _ = summary::summarise(&trace);
    let _ = (export::csv(&trace), export::perfetto(&trace), high_water_listing(&trace));
    let regions = trace.names.iter().filter(|name| name.kind == NameKind::Region);
    let causes: Vec<_> = regions
        .filter_map(|name| attribute(&trace, &name.text, Tail::default(), Level::default()).ok())
        .collect();
    let runs = [TracedRun { label: "fuzzed".to_owned(), trace }];
    for (style, extent) in
        [(TextStyle::Plain, Extent::All), (TextStyle::Terminal { columns: 80 }, Extent::FirstScreen)]
    {
        let _ = (traces_text(&runs, style, extent), attributions_text(&causes, style, extent));
    }
    let _ = trace_page(&runs, &causes);
}

/// A small file of the right size, its header right where the layout depends on it, the rest from `bytes`.
fn with_header(bytes: &[u8]) -> Vec<u8> {
    let has_histograms = bytes.first().is_some_and(|byte| byte & 1 == 1);
    let geometry = Geometry { threads: 2, ring_records: 8, high_water_records: 8, names: 2, has_histograms };
    let mut file = vec![0; geometry.file_bytes() as usize];
    // Bytes go where the reader looks: header, names, then every thread's area, in turn.
    let places = [0, geometry.names_at(), geometry.area_at(0), geometry.area_at(1)];
    for (piece, place) in bytes.chunks(bytes.len().div_ceil(places.len()).max(1)).zip(places) {
        let start = place as usize;
        let end = (start + piece.len()).min(file.len());
        file[start..end].copy_from_slice(&piece[..end - start]);
    }
    let fields = [
        (header::VERSION, VERSION),
        (header::THREADS, geometry.threads),
        (header::RING_RECORDS, geometry.ring_records),
        (header::HIGH_WATER_RECORDS, geometry.high_water_records),
        (header::NAMES, geometry.names),
        (header::MODES, if has_histograms { 7 } else { 3 }),
    ];
    file[..MAGIC.len()].copy_from_slice(&MAGIC);
    for (at, value) in fields {
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    file
}
