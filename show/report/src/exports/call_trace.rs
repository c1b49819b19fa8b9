//! The recorded calls of a program as a trace: a track for each thread, a slice for each call.

use super::chrome::{ChromeTrace, Slice};
use super::figures::{CallFigures, end};
use lineup_model::access::{Access, Call, TimeMark};
use lineup_model::line::LineSize;
use lineup_model::region::{RegionId, Regions};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// The most accesses of calls that wait for the call around them; beyond that number, times are left out.
const MOST_WAITING: usize = 16 << 20;

/// Calls on their way into a trace. They are added in the order of the recording.
pub struct CallTrace<'r> {
    regions: &'r Regions,
    line: LineSize,
    calls: Vec<Traced>,
    /// By process and thread, calls inside another recorded one, until that one follows.
    waiting: HashMap<(u64, u64), Vec<Waiting>>,
    accesses_waiting: usize,
}

struct Traced {
    track: (u64, u64),
    name: String,
    entered_at: u64,
    /// In cycles.
    time: Option<(u64, u64)>,
    arguments: Map<String, Value>,
}

struct Waiting {
    call: usize,
    region: RegionId,
    depth: u32,
    accesses: Vec<Access>,
}

impl<'r> CallTrace<'r> {
    /// No call yet. Lines are counted in this size.
    pub fn new(regions: &'r Regions, line: LineSize) -> Self {
        CallTrace { regions, line, calls: Vec::new(), waiting: HashMap::new(), accesses_waiting: 0 }
    }

    /// Adds a call.
    pub fn add(&mut self, call: &Call) {
        let track = (u64::from(call.process.0), u64::from(call.thread.0));
        let name = self.regions.get(call.region).map_or("?", |region| &region.name).to_string();
        let time = call.times.first().zip(call.times.last()).map(|(first, last)| (first.cycles, last.cycles));
        let arguments = arguments(call, &CallFigures::of(call, self.line), self.line);
        self.calls.push(Traced { track, name, entered_at: call.entered_at, time, arguments });
        if time.is_some() {
            let inner = self.waiting.remove(&track).unwrap_or_default();
            self.accesses_waiting -= inner.iter().map(|one| one.accesses.len()).sum::<usize>();
            self.place(call, inner);
        } else if self.accesses_waiting + call.accesses.len() <= MOST_WAITING {
            self.accesses_waiting += call.accesses.len();
            let (region, depth, accesses) = (call.region, call.depth, call.accesses.clone());
            let one = Waiting { call: self.calls.len() - 1, region, depth, accesses };
            self.waiting.entry(track).or_default().push(one);
        }
    }

    /// Finds the accesses of calls among those of the call around them, and so their times.
    fn place(&mut self, outer: &Call, mut inner: Vec<Waiting>) {
        inner.sort_by_key(|one| self.calls[one.call].entered_at);
        let mut placed: Vec<(RegionId, u32, usize, usize)> = Vec::new();
        for one in inner {
            if one.accesses.is_empty() || self.calls[one.call].entered_at < outer.entered_at {
                continue;
            }
            // Behind the calls of the same function before it, unless it lies in them; not before the call that began
            // last.
            let begun = placed.last().map_or(0, |(_, _, from, _)| *from);
            let before =
                placed.iter().filter(|(region, depth, ..)| *region == one.region && *depth >= one.depth);
            let from = before.map(|(.., to)| *to).max().unwrap_or(0).max(begun);
            let Some(rest) = outer.accesses.get(from..) else { continue };
            let found = rest.windows(one.accesses.len()).position(|window| are_same(window, &one.accesses));
            let Some(start) = found.map(|at| from + at) else { continue };
            let end = start + one.accesses.len();
            placed.push((one.region, one.depth, start, end));
            self.calls[one.call].time = Some((cycles_at(&outer.times, start), cycles_at(&outer.times, end)));
        }
    }

    /// The trace. `program` is the command of the recorded program, as it was typed.
    pub fn finish(self, program: &str) -> ChromeTrace {
        let mut trace = ChromeTrace::default();
        trace.about("recorded", program);
        let has_clock = self.calls.iter().any(|call| call.time.is_some());
        trace.about("tick", match has_clock {
            true => {
                "a cycle of the counter that all threads read alike; shown as a nanosecond. Between two readings of it, \
                 accesses of a call are taken to be spread evenly"
            }
            false => {
                "the recorder read no clock: calls stand in the order of their entries, and how long they are means nothing"
            }
        });
        let mut without_time = 0_u64;
        for call in self.calls {
            let time = match has_clock {
                true => call.time,
                false => Some((call.entered_at, call.entered_at.saturating_add(1))),
            };
            let Some((begin, end)) = time else {
                without_time += 1;
                continue;
            };
            let (process, thread) = call.track;
            trace.process(process, format!("process {process}"));
            trace.track(call.track, format!("thread {thread}"));
            let (track, name, arguments) = (call.track, call.name, call.arguments);
            trace.slice(Slice { track, name, begin, end: end.max(begin), arguments });
        }
        trace.about("calls_left_out_without_time", without_time);
        trace
    }
}

fn are_same(one: &[Access], other: &[Access]) -> bool {
    let place = |access: &Access| (access.pc, access.address, access.kind);
    one.iter().map(place).eq(other.iter().map(place))
}

fn arguments(call: &Call, figures: &CallFigures, line: LineSize) -> Map<String, Value> {
    let all = json!({
        "number": call.sequence,
        "instructions": call.instructions,
        "loads": figures.loads,
        "stores": figures.stores,
        "data_lines": figures.data_lines,
        "code_lines": figures.code_lines,
        "line_bytes": line.bytes(),
        "end": end(call.end),
    });
    match all {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    }
}

/// When an access happened: between the clock's readings around it, in proportion.
fn cycles_at(marks: &[TimeMark], access: usize) -> u64 {
    let after = marks.partition_point(|mark| mark.access as usize <= access);
    let (before, next) = (after.checked_sub(1).and_then(|at| marks.get(at)), marks.get(after));
    match (before, next) {
        (Some(before), Some(next)) => {
            let share =
                (access as u64 - u64::from(before.access)) as f64 / f64::from(next.access - before.access);
            before.cycles + (share * next.cycles.saturating_sub(before.cycles) as f64) as u64
        }
        (Some(only), None) | (None, Some(only)) => only.cycles,
        (None, None) => 0,
    }
}
