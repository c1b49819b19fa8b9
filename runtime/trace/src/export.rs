//! Other tools' forms: CSV and Perfetto's trace.

use crate::event::{Event, Kind};
use crate::reader::Trace;
use std::fmt::Write;

/// Every event as comma-separated values with a head line; names are quoted.
pub fn csv(trace: &Trace) -> String {
    let counters: Vec<&str> = trace.counters.iter().flatten().map(String::as_str).collect();
    let mut text =
        String::from("tid,number,kind,name,start_ns,duration_ns,lock_wait_ns,argument,cpu,arm,depth");
    counters.iter().for_each(|name| push(&mut text, format_args!(",{name}")));
    text.push('\n');
    for thread in &trace.threads {
        for event in &thread.events {
            let name = trace.name(event.name).map_or("", |name| name.text.as_str()).replace('"', "\"\"");
            let cpu = event.cpu.map_or_else(String::new, |cpu| cpu.to_string());
            push(
                &mut text,
                format_args!(
                    "{},{},{:?},\"{name}\",{},{},{},{},{cpu},{},{}",
                    thread.tid,
                    event.number,
                    event.kind,
                    event.start_ns,
                    event.duration_ns,
                    event.lock_wait_ns,
                    event.argument,
                    event.arm.name(),
                    event.depth
                ),
            );
            event
                .counters
                .iter()
                .take(counters.len())
                .for_each(|value| push(&mut text, format_args!(",{value}")));
            text.push('\n');
        }
    }
    text
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(piece);
}

/// Perfetto's trace of `TrackEvent`s: a track per thread, a slice per region and lock, an instant per mark.
///
/// Field numbers are those of Perfetto's `trace_packet.proto` and `track_event.proto`.
pub fn perfetto(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    for (index, thread) in trace.threads.iter().enumerate() {
        let track = index as u64 + 1;
        let mut about = Vec::new();
        varint_field(&mut about, 1, u64::from(trace.pid));
        varint_field(&mut about, 2, u64::from(thread.tid));
        bytes_field(&mut about, 5, thread.name.as_bytes());
        let mut descriptor = Vec::new();
        varint_field(&mut descriptor, 1, track);
        bytes_field(&mut descriptor, 4, &about);
        let mut packet = Vec::new();
        bytes_field(&mut packet, 60, &descriptor);
        packet_into(&mut out, packet);
        for (at_ns, kind, event) in slices(&thread.events) {
            let name = trace.name(event.name).map_or("?", |name| name.text.as_str());
            packet_into(&mut out, track_event(track, at_ns, kind, name));
        }
    }
    out
}

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;

/// Begins, ends and instants in order of time; at one time ends come first, outer before inner among begins.
fn slices(events: &[Event]) -> Vec<(u64, u64, &Event)> {
    let mut all: Vec<(u64, u64, &Event)> = Vec::new();
    for event in events {
        if event.kind == Kind::Mark {
            all.push((event.start_ns, INSTANT, event));
        } else if event.kind != Kind::HighWaterHead {
            all.push((event.start_ns, SLICE_BEGIN, event));
            all.push((event.end_ns(), SLICE_END, event));
        }
    }
    all.sort_by_key(|(at, kind, event)| {
        let depth = if *kind == SLICE_END { u8::MAX - event.depth } else { event.depth };
        (*at, *kind == SLICE_BEGIN, depth)
    });
    all
}

fn track_event(track: u64, at_ns: u64, kind: u64, name: &str) -> Vec<u8> {
    let mut event = Vec::new();
    varint_field(&mut event, 9, kind);
    varint_field(&mut event, 11, track);
    if kind != SLICE_END {
        bytes_field(&mut event, 23, name.as_bytes());
    }
    let mut packet = Vec::new();
    varint_field(&mut packet, 8, at_ns);
    varint_field(&mut packet, 10, 1);
    bytes_field(&mut packet, 11, &event);
    packet
}

fn packet_into(out: &mut Vec<u8>, packet: Vec<u8>) {
    bytes_field(out, 1, &packet);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn varint_field(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn bytes_field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
