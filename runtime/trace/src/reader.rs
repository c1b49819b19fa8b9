//! The reader: a file's bytes to threads, events, high-water entries and losses.

use crate::error::TraceError;
use crate::event::{Event, Kind, u32_at, u64_at};
use crate::histogram::Histogram;
use crate::layout::{
    BUCKETS, COUNTERS, Geometry, MAGIC, METRICS, NAME_BYTES, RECORD_BYTES, VERSION, header, mode, name,
    thread,
};
use serde::Serialize;

/// The way counters were read: the best that the machine allowed, up to the requested one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// No counters: time and interventions alone.
    TimeOnly,
    /// Software events of the kernel, by a system call.
    SoftwareEvents,
    /// Hardware counters, by a system call for the group.
    GroupedRead,
    /// Hardware counters, read by an instruction.
    Rdpmc,
}

impl Rung {
    fn from_number(number: u32) -> Option<Self> {
        [Self::TimeOnly, Self::SoftwareEvents, Self::GroupedRead, Self::Rdpmc].get(number as usize).copied()
    }
}

/// The kind of object that a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A region of code.
    Region,
    /// A mark.
    Mark,
    /// A lock.
    Lock,
}

/// An entry of the table of names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Name {
    /// Index, as events carry it.
    pub index: u16,
    /// The text.
    pub text: String,
    /// The kind of object it stands for.
    pub kind: NameKind,
    /// Numbers of the arms among which its calls are assigned.
    pub arms_mask: u32,
    /// Address and bytes of its code, when given.
    pub code: Option<(u64, u64)>,
    /// Address and bytes of its data, when given.
    pub data: Option<(u64, u64)>,
    /// Nanoseconds after which its locks are given up under that arm.
    pub give_up_ns: u64,
}

/// The records lost on one thread, or in all.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Losses {
    /// Overwritten by newer ones.
    pub overwritten: u64,
    /// Refused because the ring was full.
    pub full: u64,
    /// Refused in a signal handler that interrupted the tracer itself.
    pub nested: u64,
    /// Probes passed by threads for which there was no room.
    pub without_area: u64,
    /// Begins without an end, ends without a begin.
    pub unbalanced: u64,
    /// Records that the writer had begun when it died: at most one per thread.
    pub in_progress: u64,
}

/// A new maximum and the events inside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HighWater {
    /// The region's own event.
    pub event: Event,
    /// The events inside, in order of their ends.
    pub inner: Vec<Event>,
    /// The number of further events that were not kept.
    pub inner_dropped: u64,
}

/// One thread's part.
#[derive(Clone, PartialEq, Debug)]
pub struct ThreadTrace {
    /// The system's thread number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its events, oldest first.
    pub events: Vec<Event>,
    /// Each new maximum, oldest first.
    pub high_water: Vec<HighWater>,
    /// Its losses.
    pub losses: Losses,
    /// Histograms of names with any count: name, metric (0 duration, 1 lock wait, 2.. counters), counts.
    pub histograms: Vec<(u16, u64, Histogram)>,
}

/// A trace.
#[derive(Clone, PartialEq, Debug)]
pub struct Trace {
    /// The traced process.
    pub pid: u32,
    /// The way counters were read.
    pub rung: Rung,
    /// The counters' names; `None` for an unused one.
    pub counters: [Option<String>; COUNTERS],
    /// Modes, a mask of [`mode`] constants.
    pub modes: u32,
    /// True when a full ring stops recording.
    pub stops_when_full: bool,
    /// The tracer's clock at start.
    pub start_ns: u64,
    /// Wall clock at start, nanoseconds since 1970.
    pub start_realtime_ns: u64,
    /// True when times come from the cycle counter.
    pub uses_counter: bool,
    /// The table of names.
    pub names: Vec<Name>,
    /// Names that found no room in the table.
    pub names_refused: u32,
    /// The threads.
    pub threads: Vec<ThreadTrace>,
    /// Threads that found no area.
    pub threads_refused: u32,
    /// Probes they passed.
    pub lost_without_area: u64,
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn slice(bytes: &[u8], at: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(at).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
}

impl Trace {
    /// Reads a trace from the bytes of its file.
    ///
    /// # Errors
    ///
    /// [`TraceError`] when the bytes are no trace, of another version, damaged in the header, or cut off.
    pub fn parse(bytes: &[u8]) -> Result<Self, TraceError> {
        let geometry = read_geometry(bytes)?;
        let field = |at| u32_at(bytes, at).unwrap_or(0);
        let wide = |at| u64_at(bytes, at).unwrap_or(0);
        let claimed = field(header::THREADS_CLAIMED);
        let names_claimed = field(header::NAMES_CLAIMED);
        let threads = (0..claimed.min(geometry.threads))
            .filter_map(|index| slice(bytes, geometry.area_at(index), geometry.area_bytes()))
            .filter_map(|area| read_thread(area, &geometry, field(header::STOPS_WHEN_FULL) != 0))
            .collect();
        Ok(Self {
            pid: field(header::PID),
            rung: Rung::from_number(field(header::RUNG))
                .ok_or(TraceError::Header { what: "unknown rung" })?,
            counters: std::array::from_fn(|index| counter_name(bytes, index)),
            modes: field(header::MODES),
            stops_when_full: field(header::STOPS_WHEN_FULL) != 0,
            start_ns: wide(header::START_NS),
            start_realtime_ns: wide(header::START_REALTIME_NS),
            uses_counter: field(header::USES_COUNTER) != 0,
            names: (0..names_claimed.min(geometry.names))
                .filter_map(|at| read_name(bytes, &geometry, at))
                .collect(),
            names_refused: names_claimed.saturating_sub(geometry.names),
            threads,
            threads_refused: claimed.saturating_sub(geometry.threads),
            lost_without_area: wide(header::LOST_WITHOUT_AREA),
        })
    }

    /// The name with this index.
    pub fn name(&self, index: u16) -> Option<&Name> {
        self.names.iter().find(|name| name.index == index)
    }

    /// The name with this text and kind.
    ///
    /// # Errors
    ///
    /// [`TraceError::UnknownRegion`], with the names there are.
    pub fn region(&self, text: &str) -> Result<&Name, TraceError> {
        let mut regions = self.names.iter().filter(|name| name.kind == NameKind::Region);
        regions.clone().find(|name| name.text == text).ok_or_else(|| TraceError::UnknownRegion {
            name: text.to_owned(),
            known: regions.by_ref().map(|name| name.text.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    /// Events of one name on every thread.
    pub fn events_of(&self, name: u16, kind: Kind) -> impl Iterator<Item = &Event> {
        self.threads
            .iter()
            .flat_map(|thread| &thread.events)
            .filter(move |event| event.name == name && event.kind == kind)
    }

    /// The losses on all threads.
    pub fn losses(&self) -> Losses {
        let mut sum = Losses { without_area: self.lost_without_area, ..Losses::default() };
        for losses in self.threads.iter().map(|thread| thread.losses) {
            sum.overwritten = sum.overwritten.saturating_add(losses.overwritten);
            sum.full = sum.full.saturating_add(losses.full);
            sum.nested = sum.nested.saturating_add(losses.nested);
            sum.unbalanced = sum.unbalanced.saturating_add(losses.unbalanced);
            sum.in_progress = sum.in_progress.saturating_add(losses.in_progress);
        }
        sum
    }

    /// The histogram of `metric` of `name`: from the file where histograms were recorded, else built from the remaining
    /// events.
    pub fn histogram(&self, name: u16, metric: u64) -> Histogram {
        let mut merged = Histogram::default();
        if self.modes & mode::HISTOGRAMS != 0 {
            for (_, _, kept) in self
                .threads
                .iter()
                .flat_map(|thread| &thread.histograms)
                .filter(|(n, m, _)| (*n, *m) == (name, metric))
            {
                merged.merge(kept);
            }
            return merged;
        }
        let events = self.threads.iter().flat_map(|thread| &thread.events).filter(|event| event.name == name);
        for event in events.filter(|event| matches!(event.kind, Kind::Region | Kind::Lock)) {
            merged.add(metric_of(event, metric), 1);
        }
        merged
    }
}

/// The value of `metric` of an event: 0 duration, 1 lock wait, 2.. counters.
pub fn metric_of(event: &Event, metric: u64) -> u64 {
    match metric {
        0 => event.duration_ns,
        1 => event.lock_wait_ns,
        _ => event.counters.get(metric as usize - 2).map_or(0, |counter| u64::from(*counter)),
    }
}

fn read_geometry(bytes: &[u8]) -> Result<Geometry, TraceError> {
    if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
        return Err(TraceError::NotATrace);
    }
    let have_bytes = bytes.len() as u64;
    let cut_off = TraceError::Truncated { have_bytes, need_bytes: crate::layout::PAGE_BYTES };
    let field = |at| u32_at(bytes, at).ok_or_else(|| cut_off.clone());
    let found = field(header::VERSION)?;
    if found != VERSION {
        return Err(TraceError::Version { found, supported: VERSION });
    }
    let geometry = Geometry {
        threads: field(header::THREADS)?,
        ring_records: field(header::RING_RECORDS)?,
        high_water_records: field(header::HIGH_WATER_RECORDS)?,
        names: field(header::NAMES)?,
        has_histograms: field(header::MODES)? & mode::HISTOGRAMS != 0,
    };
    if let Some(what) = geometry.fault() {
        return Err(TraceError::Header { what });
    }
    if have_bytes < geometry.file_bytes() {
        return Err(TraceError::Truncated { have_bytes, need_bytes: geometry.file_bytes() });
    }
    Ok(geometry)
}

fn counter_name(bytes: &[u8], index: usize) -> Option<String> {
    let at = header::COUNTER_NAMES + index * header::COUNTER_NAME_BYTES;
    let text = text_of(bytes.get(at..at + header::COUNTER_NAME_BYTES)?);
    (!text.is_empty()).then_some(text)
}

fn read_name(bytes: &[u8], geometry: &Geometry, index: u32) -> Option<Name> {
    let entry = slice(bytes, geometry.names_at() + u64::from(index) * NAME_BYTES, NAME_BYTES)?;
    (u32_at(entry, name::READY)? == 1).then_some(())?;
    let kind = match u32_at(entry, name::KIND)? {
        0 => NameKind::Region,
        1 => NameKind::Mark,
        2 => NameKind::Lock,
        _ => return None,
    };
    let length = (u32_at(entry, name::LENGTH)? as usize).min(name::TEXT_BYTES);
    let range = |at: usize| -> Option<(u64, u64)> {
        let bytes = u64_at(entry, at + 8)?;
        (bytes > 0).then_some((u64_at(entry, at)?, bytes))
    };
    Some(Name {
        index: u16::try_from(index).ok()?,
        text: String::from_utf8_lossy(entry.get(name::TEXT..name::TEXT + length)?).into_owned(),
        kind,
        arms_mask: u32_at(entry, name::ARMS)?,
        code: range(name::CODE),
        data: range(name::DATA),
        give_up_ns: u64_at(entry, name::GIVE_UP_NS)?,
    })
}

/// The whole records of a ring, oldest first, how many were overwritten, and whether one was being written.
fn read_ring(ring: &[u8], stops_when_full: bool) -> (Vec<Event>, u64, bool) {
    let slots: Vec<&[u8]> = ring.chunks_exact(RECORD_BYTES as usize).collect();
    let capacity = slots.len() as u64;
    let commit = |slot: &[u8]| u64_at(slot, crate::layout::record::COMMIT).unwrap_or(0);
    let belongs = |(slot, commit): &(u64, u64)| *commit > 0 && (*commit - 1) % capacity == *slot;
    let commits = slots.iter().enumerate().map(|(slot, bytes)| (slot as u64, commit(bytes)));
    let written = commits.filter(belongs).map(|(_, commit)| commit).max().unwrap_or(0);
    let oldest = written.saturating_sub(capacity);
    let mut events = Vec::new();
    let mut missing = 0;
    for number in oldest..written {
        match Event::decode(slots[(number % capacity) as usize], number) {
            Some(event) => events.push(event),
            None => missing += 1,
        }
    }
    // Number `written` was begun when its slot is marked as being written: the slot that held the oldest.
    let next = slots.get((written % capacity.max(1)) as usize);
    let is_full = stops_when_full && written >= capacity;
    let begun = !is_full && next.is_some_and(|slot| commit(slot) == 0 && slot.iter().any(|byte| *byte != 0));
    let lost_to_begun = u64::from(begun && written >= capacity);
    (events, oldest.saturating_add(missing.max(lost_to_begun)), begun)
}

fn read_thread(area: &[u8], geometry: &Geometry, stops_when_full: bool) -> Option<ThreadTrace> {
    let tid = u32_at(area, thread::TID)?;
    let ring_bytes = u64::from(geometry.ring_records) * RECORD_BYTES;
    let high_water_bytes = u64::from(geometry.high_water_records) * RECORD_BYTES;
    let (events, overwritten, begun) =
        read_ring(slice(area, geometry.ring_offset(), ring_bytes)?, stops_when_full);
    let (kept, _, _) = read_ring(slice(area, geometry.high_water_offset(), high_water_bytes)?, false);
    Some(ThreadTrace {
        tid,
        name: text_of(area.get(thread::NAME..thread::NAME + 16)?),
        events,
        high_water: group_high_water(&kept),
        losses: Losses {
            overwritten,
            full: u64_at(area, thread::LOST_FULL)?,
            nested: u64_at(area, thread::LOST_NESTED)?,
            unbalanced: u64_at(area, thread::UNBALANCED)?,
            in_progress: u64::from(begun),
            without_area: 0,
        },
        histograms: if geometry.has_histograms { read_histograms(area, geometry) } else { Vec::new() },
    })
}

/// Heads with the records that follow them; a head whose records were overwritten or not yet all written is left out.
fn group_high_water(records: &[Event]) -> Vec<HighWater> {
    let mut entries = Vec::new();
    for (at, head) in records.iter().enumerate().filter(|(_, record)| record.kind == Kind::HighWaterHead) {
        let kept = (head.argument & 0xffff_ffff) as usize;
        let Some(following) = records.get(at + 1..at + 1 + kept) else { continue };
        let Some((event, inner)) = following.split_last() else { continue };
        if following.iter().any(|record| record.kind == Kind::HighWaterHead) {
            continue;
        }
        entries.push(HighWater { event: *event, inner: inner.to_vec(), inner_dropped: head.argument >> 32 });
    }
    entries
}

fn read_histograms(area: &[u8], geometry: &Geometry) -> Vec<(u16, u64, Histogram)> {
    let mut found = Vec::new();
    for name in 0..geometry.names {
        for metric in 0..METRICS {
            let at = geometry.histograms_offset() + geometry.histogram_offset(name, metric);
            let Some(counts) = slice(area, at, BUCKETS * 8) else { continue };
            if counts.iter().all(|byte| *byte == 0) {
                continue;
            }
            let mut histogram = Histogram::default();
            for (bucket, count) in counts.chunks_exact(8).enumerate() {
                histogram.add_bucket(bucket, u64_at(count, 0).unwrap_or(0));
            }
            found.push((name as u16, metric, histogram));
        }
    }
    found
}
