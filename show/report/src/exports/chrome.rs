//! Chrome's trace event format, in its form as a JSON object:
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.
//!
//! Perfetto and `chrome://tracing` open it. Times in it are microseconds with decimals. A recording has other clocks:
//! one tick of them is written as a nanosecond, and the trace names the tick's unit.

use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Something that took time on a track.
#[derive(Clone, PartialEq, Debug)]
pub struct Slice {
    /// The track: a process, and a thread or a processor.
    pub track: (u64, u64),
    /// Its name.
    pub name: String,
    /// When it began, in ticks.
    pub begin: u64,
    /// When it ended, in ticks.
    pub end: u64,
    /// Further values to show with it.
    pub arguments: Map<String, Value>,
}

/// A trace in the making.
#[derive(Default, Debug)]
pub struct ChromeTrace {
    processes: BTreeMap<u64, String>,
    tracks: BTreeMap<(u64, u64), String>,
    slices: Vec<Slice>,
    about: Map<String, Value>,
}

/// The number of a track next to another is the other's, plus a multiple of this.
const LANE: u64 = 1 << 32;

impl ChromeTrace {
    /// Names a process.
    pub fn process(&mut self, number: u64, name: impl Into<String>) {
        self.processes.insert(number, name.into());
    }

    /// Names a track.
    pub fn track(&mut self, track: (u64, u64), name: impl Into<String>) {
        self.tracks.insert(track, name.into());
    }

    /// Says something of the whole trace.
    pub fn about(&mut self, key: &str, value: impl Into<Value>) {
        self.about.insert(key.to_string(), value.into());
    }

    /// Adds a slice of time.
    pub fn slice(&mut self, slice: Slice) {
        self.slices.push(slice);
    }

    /// The trace, each event on a line of its own. Times count from the first slice. On one track slices lie in each
    /// other or apart; one that began in another and ended after it goes to an additional track.
    pub fn text(mut self) -> String {
        self.slices.sort_by_key(|slice| (slice.track, slice.begin, Reverse(slice.end)));
        let first = self.slices.iter().map(|slice| slice.begin).min().unwrap_or(0);
        let mut lanes = Lanes::default();
        let mut events: Vec<String> = Vec::new();
        for (process, name) in &self.processes {
            events.push(metadata("process_name", (*process, 0), name));
        }
        let mut named: BTreeSet<(u64, u64)> = BTreeSet::new();
        for slice in &self.slices {
            let lane = lanes.of(slice);
            let track = (slice.track.0, slice.track.1 + lane * LANE);
            if named.insert(track) {
                let name =
                    self.tracks.get(&slice.track).cloned().unwrap_or_else(|| slice.track.1.to_string());
                let beside = if lane == 0 { String::new() } else { format!(" ({})", lane + 1) };
                events.push(metadata("thread_name", track, &(name + &beside)));
            }
            events.push(complete(slice, track, first));
        }
        let about = Value::Object(self.about);
        format!(
            "{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[\n{}\n]}}\n",
            events.join(",\n")
        )
    }
}

/// The additional track of each slice, in the order of their beginnings.
#[derive(Default)]
struct Lanes {
    track: Option<(u64, u64)>,
    /// The ends of each lane's open slices.
    open: Vec<Vec<u64>>,
}

impl Lanes {
    fn of(&mut self, slice: &Slice) -> u64 {
        if self.track != Some(slice.track) {
            *self = Lanes { track: Some(slice.track), open: Vec::new() };
        }
        let mut lane = 0;
        loop {
            if lane == self.open.len() {
                self.open.push(Vec::new());
            }
            let open = &mut self.open[lane];
            open.retain(|end| *end > slice.begin);
            if open.iter().all(|end| *end >= slice.end) {
                open.push(slice.end);
                return lane as u64;
            }
            lane += 1;
        }
    }
}

fn metadata(what: &str, (process, thread): (u64, u64), name: &str) -> String {
    json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } }).to_string()
}

fn complete(slice: &Slice, (process, thread): (u64, u64), first: u64) -> String {
    let microseconds = |ticks: u64| format!("{}.{:03}", ticks / 1000, ticks % 1000);
    format!(
        "{{\"ph\":\"X\",\"cat\":\"call\",\"name\":{},\"pid\":{process},\"tid\":{thread},\"ts\":{},\"dur\":{},\"args\":{}}}",
        Value::String(slice.name.clone()),
        microseconds(slice.begin - first),
        microseconds(slice.end.saturating_sub(slice.begin)),
        Value::Object(slice.arguments.clone())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(thread: u64, begin: u64, end: u64) -> Slice {
        Slice { track: (1, thread), name: format!("{begin}\"\n"), begin, end, arguments: Map::new() }
    }

    #[test]
    fn slices_of_one_track_lie_in_each_other_or_apart() {
        let mut trace = ChromeTrace::default();
        trace.process(1, "p");
        trace.track((1, 7), "thread 7");
        for (begin, end) in [(5000, 9000), (5000, 6000), (5500, 7000), (9000, 9001), (5600, 9500)] {
            trace.slice(slice(7, begin, end));
        }
        trace.about("tick", "a cycle");
        let document: Value = serde_json::from_str(&trace.text()).expect("JSON");
        let events = document["traceEvents"].as_array().expect("events");
        let tracks: Vec<&str> = events
            .iter()
            .filter(|event| event["name"] == "thread_name")
            .map(|event| event["args"]["name"].as_str().expect("a name"))
            .collect();
        assert_eq!(tracks, ["thread 7", "thread 7 (2)", "thread 7 (3)"]);
        let first = events.iter().find(|event| event["ph"] == "X").expect("a slice");
        assert_eq!(
            (&first["ts"], &first["dur"], &first["name"]),
            (&json!(0.0), &json!(4.0), &json!("5000\"\n"))
        );
        assert_eq!(document["otherData"]["tick"], "a cycle");
    }

    #[test]
    fn a_trace_without_slices_is_one() {
        let document: Value = serde_json::from_str(&ChromeTrace::default().text()).expect("JSON");
        assert_eq!(document["traceEvents"], json!([]));
    }
}
