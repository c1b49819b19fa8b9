//! Completes a recording when its program has ended: adds the counts that the recorder could not write any more, leaves
//! out calls that had to give way, and notes the ending.

mod budget;
mod threads;

pub use budget::{KeptCalls, ReducedRegion, keep_accesses, keep_same};

use crate::error::{Doing, Result};
use lineup_model::access::{Call, ProcessId};
use lineup_model::process::Origin;
use lineup_recording::journal::{Journal, Pending};
use lineup_recording::plan::Plan;
use lineup_recording::{
    Encoder, Ending, Event, Header, Mode, Reader, RecordingError, RegionCounts, Selection, Summary, Writer,
    events_of,
};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use threads::Threads;

/// The size of the blocks to which records are gathered, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// Adds the journal's content and the program's end to the recording at `path`.
pub(super) fn seal(path: &Path, journal: &Journal, plan: &Plan, ending: &Ending) -> Result<Summary> {
    let cannot = || format!("cannot read back the recording {}", path.display());
    let unsure = positions_of_unsure(&journal.pending);
    let mut found = RecordingContent::read(path, &plan.header, &unsure)?;
    let file = File::options().read(true).write(true).open(path).doing_with(cannot)?;
    file.set_len(found.good_bytes).doing_with(cannot)?;
    (&file).seek(SeekFrom::Start(found.good_bytes)).doing_with(cannot)?;
    let mut writer = Writer::resume(&file);
    for pending in &journal.pending {
        if pending.may_be_written && positions(pending).any(|at| found.written.contains(&at)) {
            continue;
        }
        let mut encoder = Encoder::new();
        encoder.append_packed(&pending.records);
        writer.append(&encoder.seal()?)?;
        events_of(&pending.records).for_each(|event| found.take(event, &plan.header));
    }
    let summary = found.summary(journal, plan);
    let left_out = found.left_out(&plan.header);
    if !left_out.is_empty() {
        return thin(path, &plan.header, &left_out, summary, |encoder| encoder.ending(ending));
    }
    let mut encoder = Encoder::new();
    missing(found.counted.as_ref(), found.has_first_summary, &summary)
        .iter()
        .for_each(|missing| encoder.summary(missing));
    encoder.ending(ending);
    writer.append(&encoder.seal()?)?;
    Ok(summary)
}

/// Leaves out the calls of a whole system's recording that had to give way to others. A recording that was cut off
/// keeps them all, so that nothing recorded is lost.
///
/// # Errors
/// When the recording cannot be rewritten; it is then unchanged.
pub fn thin_to_spread(path: &Path, header: &Header) -> Result<()> {
    if header.selection == Selection::First {
        return Ok(());
    }
    let Ok(mut found) = RecordingContent::read(path, header, &HashSet::new()) else { return Ok(()) };
    let left_out = found.left_out(header);
    match found.counted {
        Some(summary) if !found.is_damaged && !left_out.is_empty() => {
            thin(path, header, &left_out, summary, |_| ()).map(drop)
        }
        _ => Ok(()),
    }
}

/// The counts of a recording that could not be sealed.
pub(super) fn read(path: &Path, journal: &Journal, plan: &Plan) -> Result<Summary> {
    Ok(RecordingContent::read(path, &plan.header, &HashSet::new())?.summary(journal, plan))
}

/// Positions in the order of events of the calls among these records.
fn positions(pending: &Pending) -> impl Iterator<Item = u64> {
    events_of(&pending.records).filter_map(|event| match event {
        Event::Call(call) => Some(call.entered_at),
        _ => None,
    })
}

fn positions_of_unsure(pending: &[Pending]) -> HashSet<u64> {
    pending.iter().filter(|pending| pending.may_be_written).flat_map(positions).collect()
}

/// The content of a recording.
#[derive(Default)]
struct RecordingContent {
    /// Counts of the calls that stand there.
    regions: Vec<Region>,
    /// The recorder's own counts, over all processes that wrote them.
    counted: Option<Summary>,
    /// The first process wrote its own.
    has_first_summary: bool,
    /// Processes that were forked off.
    forked: u64,
    /// The calls of `unsure` that the recording has.
    written: HashSet<u64>,
    /// The positions of each thread's calls, where each thread has as many.
    threads: Threads,
    good_bytes: u64,
    /// Something follows that cannot be read.
    is_damaged: bool,
}

#[derive(Clone, Default)]
struct Region {
    counts: RegionCounts,
    /// Its calls' positions in the order of selection; empty when all are kept.
    positions: Vec<u64>,
}

impl RecordingContent {
    /// Reads a recording through, and notes which of the calls in `unsure` it has.
    fn read(path: &Path, header: &Header, unsure: &HashSet<u64>) -> Result<RecordingContent> {
        RecordingContent::read_beside(path, header, unsure, |_| {})
    }

    /// The same, and shows each call on the way.
    fn read_beside(
        path: &Path,
        header: &Header,
        unsure: &HashSet<u64>,
        mut show: impl FnMut(&Call),
    ) -> Result<RecordingContent> {
        let file = File::open(path).doing_with(|| format!("cannot read back {}", path.display()))?;
        let mut reader = Reader::new(BufReader::new(file)).doing("nothing was recorded")?;
        let mut found = RecordingContent {
            regions: vec![Region::default(); header.regions.len()],
            ..RecordingContent::default()
        };
        reader = reader.without_log();
        for event in reader.by_ref() {
            if let Event::Call(call) = &event {
                show(call);
                if unsure.contains(&call.entered_at) {
                    found.written.insert(call.entered_at);
                }
            }
            found.take(event, header);
        }
        found.good_bytes = reader.good_bytes();
        found.is_damaged = reader.damage().is_some();
        Ok(found)
    }

    fn take(&mut self, event: Event, header: &Header) {
        match event {
            Event::Call(call) => {
                let Some(region) = self.regions.get_mut(usize::from(call.region.0)) else { return };
                region.counts.count_end(call.end);
                match header.selection {
                    _ if header.max_calls.is_none() => {}
                    Selection::First => {}
                    Selection::Threads => self.threads.take(&call),
                    Selection::Spread | Selection::Runs => region.positions.push(position(&call, header)),
                }
            }
            Event::Process(process) => self.forked += u64::from(matches!(process.origin, Origin::Forked(_))),
            Event::Summary(summary) => {
                self.has_first_summary |= summary.process == ProcessId(0);
                Summary::add_to(&mut self.counted, summary);
            }
            _ => {}
        }
    }

    /// The calls that are left out.
    fn left_out(&mut self, header: &Header) -> LeftOut {
        let most = header.max_calls.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        LeftOut { bounds: self.bounds(header), calls: std::mem::take(&mut self.threads).left_out(most) }
    }

    /// For each region the last position that is kept; `None` when all are.
    fn bounds(&mut self, header: &Header) -> Vec<Option<u64>> {
        let most = header.max_calls.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let bound = |region: &mut Region| {
            let last = most.checked_sub(1)?;
            region.positions.sort_unstable();
            if header.mode == Mode::System && header.selection != Selection::Runs {
                // All records of one window have the same position. Calls of several processes may have the same
                // position too, but count each.
                region.positions.dedup();
            }
            let positions = &region.positions;
            // A run with too many calls is left out as a whole, unless it is the first.
            let is_cut = |at: &usize| positions.get(at + 1) == positions.get(*at);
            let kept = (0..=last.min(positions.len())).rev().find(|at| !is_cut(at)).unwrap_or(last);
            (positions.len() > most).then(|| positions[kept])
        };
        self.regions.iter_mut().map(bound).collect()
    }

    /// The counts of all processes. For a process that did not write its own counts, they come from the journal and the
    /// calls.
    fn summary(&self, journal: &Journal, plan: &Plan) -> Summary {
        let mut summary = self.counted.clone().unwrap_or_default();
        summary.regions.resize_with(self.regions.len(), RegionCounts::default);
        let seen = journal.seen.iter().copied().chain(std::iter::repeat(0));
        for ((sum, own), seen) in summary.regions.iter_mut().zip(&self.regions).zip(seen) {
            *sum = RegionCounts {
                seen: sum.seen.max(seen),
                truncated: sum.truncated,
                in_handlers: sum.in_handlers,
                ..own.counts
            };
        }
        summary.threads = summary.threads.max(journal.threads);
        summary.forks = summary.forks.max(self.forked);
        if !self.has_first_summary {
            summary.all_calls = plan.discovery.sizes.clone();
        }
        summary
    }
}

/// The counts to add to the recording's own to get `all`; `None` when they are complete. The first process may have
/// written its own counts.
fn missing(counted: Option<&Summary>, has_first: bool, all: &Summary) -> Option<Summary> {
    let mut missing = Summary { process: ProcessId::KILLED, ..all.clone() };
    let Some(counted) = counted else { return Some(missing) };
    for (own, counted) in missing.regions.iter_mut().zip(&counted.regions) {
        own.seen = own.seen.saturating_sub(counted.seen);
        own.recorded = own.recorded.saturating_sub(counted.recorded);
        own.abandoned = own.abandoned.saturating_sub(counted.abandoned);
        own.thread_ended = own.thread_ended.saturating_sub(counted.thread_ended);
        own.process_ended = own.process_ended.saturating_sub(counted.process_ended);
        own.unfinished = own.unfinished.saturating_sub(counted.unfinished);
        (own.truncated, own.in_handlers) = (0, 0);
    }
    missing.threads = missing.threads.saturating_sub(counted.threads);
    missing.forks = missing.forks.saturating_sub(counted.forks);
    (missing.unrecorded_threads, missing.total_instructions) = (0, None);
    (missing.unfollowed, missing.notes) = (Vec::new(), Vec::new());
    let has_any = missing.regions.iter().any(|counts| *counts != RegionCounts::default());
    (!has_first || has_any).then_some(missing)
}

/// Each process's counts, and its kept calls.
#[derive(Default)]
struct Processes {
    counted: Vec<Summary>,
    kept: HashMap<ProcessId, Vec<RegionCounts>>,
}

impl Processes {
    fn keep(&mut self, call: &Call, regions: usize) {
        let own = self.kept.entry(call.process).or_insert_with(|| vec![RegionCounts::default(); regions]);
        own.get_mut(usize::from(call.region.0)).into_iter().for_each(|counts| counts.count_end(call.end));
    }

    /// The counts of each process that wrote them, reduced to its own kept calls, and the rest of all counts that no
    /// process wrote.
    fn summaries(mut self, all: &mut Summary) -> Vec<Summary> {
        let mut kept = vec![RegionCounts::default(); all.regions.len()];
        self.kept.values().for_each(|own| kept.iter_mut().zip(own).for_each(|(sum, own)| sum.add(own)));
        keep_alone(&mut all.regions, &kept);
        let mut counted = None;
        let mut has_first = false;
        for own in &mut self.counted {
            keep_alone(&mut own.regions, &self.kept.remove(&own.process).unwrap_or_default());
            has_first |= own.process == ProcessId(0);
            Summary::add_to(&mut counted, own.clone());
        }
        self.counted.extend(missing(counted.as_ref(), has_first, all));
        self.counted
    }
}

/// Counts the endings of the kept calls only, not those of all calls.
fn keep_alone(counts: &mut [RegionCounts], kept: &[RegionCounts]) {
    for (number, counts) in counts.iter_mut().enumerate() {
        *counts = RegionCounts {
            seen: counts.seen,
            truncated: counts.truncated,
            in_handlers: counts.in_handlers,
            ..kept.get(number).copied().unwrap_or_default()
        };
    }
}

fn position(call: &Call, header: &Header) -> u64 {
    header.selection.position(call.sequence.wrapping_sub(header.warmup_calls))
}

/// Calls that had to give way to others.
struct LeftOut {
    /// For each region the last position that is kept; `None` when all are.
    bounds: Vec<Option<u64>>,
    /// And these, by their positions in the order of events.
    calls: HashSet<u64>,
}

impl LeftOut {
    fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.bounds.iter().all(Option::is_none)
    }

    fn has(&self, call: &Call, header: &Header) -> bool {
        let bound = self.bounds.get(usize::from(call.region.0)).copied().flatten();
        bound.is_some_and(|bound| position(call, header) > bound) || self.calls.contains(&call.entered_at)
    }
}

/// Rewrites the recording without the calls beyond their region's bound, and with the records that stand after the
/// counts.
fn thin(
    path: &Path,
    header: &Header,
    left_out: &LeftOut,
    mut summary: Summary,
    last_records: impl Fn(&mut Encoder),
) -> Result<Summary> {
    // Through symbolic links: the file is replaced, not the link to it.
    let path = &fs::canonicalize(path).doing_with(|| path.display().to_string())?;
    let part = part_of(path);
    let write = || -> Result<Summary, RecordingError> {
        let mut reader = Reader::new(BufReader::new(File::open(path)?))?;
        let mut writer = Writer::new(File::create(&part)?, header)?;
        let mut encoder = Encoder::new();
        let mut processes = Processes::default();
        while let Some(event) = reader.next() {
            match event {
                Event::Call(call) if left_out.has(&call, header) => continue,
                Event::Call(call) => processes.keep(&call, summary.regions.len()),
                Event::Summary(own) => {
                    processes.counted.push(own);
                    continue;
                }
                _ => {}
            }
            encoder.append_packed(reader.record());
            if encoder.packed_bytes() >= BLOCK_BYTES {
                writer.append(&encoder.seal()?)?;
            }
        }
        // In a block of their own, so that a file whose end is cut off keeps its calls.
        if encoder.packed_bytes() > 0 {
            writer.append(&encoder.seal()?)?;
        }
        processes.summaries(&mut summary).iter().for_each(|own| encoder.summary(own));
        last_records(&mut encoder);
        writer.append(&encoder.seal()?)?;
        writer.into_inner().flush()?;
        fs::rename(&part, path)?;
        Ok(summary)
    };
    write().doing_with(|| format!("leaving out calls of {}", path.display())).inspect_err(|_| {
        // The whole recording is still there; the part is worth nothing.
        let _ = fs::remove_file(&part);
    })
}

/// The path of the rewritten recording: next to the old one, so that it can take its place.
fn part_of(path: &Path) -> PathBuf {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    part.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::abi::Abi;
    use lineup_model::access::{Access, AccessKind, CallEnd, ThreadId};
    use lineup_model::region::{Region, RegionId, Regions};
    use lineup_recording::{CallHead, read_all};

    /// A recording of a whole system in which every call of one region was kept, each by `cpus` CPUs.
    fn recorded(calls: u64, most: u64, cpus: u32) -> (Header, Vec<u8>) {
        recorded_with(calls, most, cpus, 0)
    }

    /// The same, of calls of so many accesses.
    fn recorded_with(calls: u64, most: u64, cpus: u32, accesses: u64) -> (Header, Vec<u8>) {
        let access = |number: u64| Access {
            pc: 0x40_1000,
            address: 0x10_0000 + 8 * number,
            size_bytes: 8,
            kind: AccessKind::Load,
            value: None,
        };
        let accesses: Vec<Access> = (0..accesses).map(access).collect();
        let mut header = Header::new(Abi::X86_64, vec!["a guest".into()]);
        (header.mode, header.selection, header.max_calls) = (Mode::System, Selection::Spread, Some(most));
        header.regions = [Region::named("tick")].into_iter().collect::<Regions>();
        let mut encoder = Encoder::new();
        for (sequence, cpu) in (0..calls).flat_map(|sequence| (0..cpus).map(move |cpu| (sequence, cpu))) {
            let head = CallHead {
                region: RegionId(0),
                process: ProcessId(0),
                thread: ThreadId(cpu),
                sequence,
                entered_at: sequence,
                end: CallEnd::Returned,
                depth: 0,
                instructions: 10 + sequence,
                binding_instructions: 0,
                missed_blocks: 0,
                arguments: None,
            };
            encoder.call(&head, &accesses, &[], &[]);
        }
        let regions = vec![RegionCounts { seen: calls, recorded: calls, ..RegionCounts::default() }];
        encoder.summary(&Summary { regions, ..Summary::default() });
        let mut writer = Writer::new(Vec::new(), &header).expect("a header");
        writer.append(&encoder.seal().expect("a block")).expect("memory");
        (header, writer.into_inner())
    }

    #[test]
    fn the_calls_of_a_whole_system_that_had_to_give_way_are_left_out_over_the_whole_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guest.rec");
        let (header, bytes) = recorded(1000, 10, 1);
        fs::write(&path, bytes).expect("a file");
        thin_to_spread(&path, &header).expect("it is written anew");
        let recording = read_all(&fs::read(&path).expect("the file")).expect("a recording");
        let kept: Vec<u64> = recording.calls.iter().map(|call| call.sequence).collect();
        assert_eq!(kept.len(), 10);
        assert!(kept.iter().any(|call| *call < 200) && kept.iter().any(|call| *call > 800), "{kept:?}");
        let counts = recording.summary.expect("the counts").regions[0];
        assert_eq!((counts.seen, counts.recorded), (1000, 10));
    }

    #[test]
    fn runs_of_calls_are_kept_whole_and_spread_over_the_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guest.rec");
        let (mut header, bytes) = recorded(10_000, 200, 1);
        header.selection = Selection::Runs;
        fs::write(&path, bytes).expect("a file");
        thin_to_spread(&path, &header).expect("it is written anew");
        let recording = read_all(&fs::read(&path).expect("the file")).expect("a recording");
        let kept: Vec<u64> = recording.calls.iter().map(|call| call.sequence).collect();
        // Six runs of 32 calls are 192; a seventh would be too many.
        assert_eq!(kept.len(), 192);
        for run in kept.chunks(32) {
            assert!(run[0] % 32 == 0 && run[31] == run[0] + 31, "{run:?}");
        }
        assert!(kept[0] < 3000 && kept[191] > 7000, "{kept:?}");
    }

    #[test]
    fn what_two_cpus_do_in_a_window_is_kept_or_left_out_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guest.rec");
        let (header, bytes) = recorded(1000, 10, 2);
        fs::write(&path, bytes).expect("a file");
        thin_to_spread(&path, &header).expect("it is written anew");
        let recording = read_all(&fs::read(&path).expect("the file")).expect("a recording");
        let of = |cpu| -> Vec<u64> {
            let calls = recording.calls.iter().filter(|call| call.thread == ThreadId(cpu));
            calls.map(|call| call.sequence).collect()
        };
        assert_eq!((of(0).len(), of(0)), (10, of(1)));
    }

    #[test]
    fn calls_of_many_accesses_are_left_out_of_both_variants_alike() {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = |name: &str, keep: &mut dyn FnMut(&Path)| -> Vec<u64> {
            let path = folder.path().join(name);
            fs::write(&path, recorded_with(100, 100, 1, 4).1).expect("a file");
            keep(&path);
            let recording = read_all(&fs::read(&path).expect("the file")).expect("a recording");
            assert_eq!(recording.summary.expect("the counts").regions[0].seen, 100);
            recording.calls.iter().map(|call| call.sequence).collect()
        };
        let mut first = KeptCalls::default();
        let before = kept("before", &mut |path| first = keep_accesses(path, 42).expect("it is rewritten"));
        assert_eq!(before.len(), 10, "of four accesses each");
        assert!(before.iter().any(|call| *call < 20) && before.iter().any(|call| *call > 80), "{before:?}");
        assert_eq!((first.reduced[0].recorded, first.reduced[0].accesses), (100, 400));
        assert_eq!(kept("after", &mut |path| keep_same(path, &first).expect("it is rewritten")), before);
        assert_eq!(kept("all", &mut |path| drop(keep_accesses(path, 400).expect("it is read"))).len(), 100);
    }

    #[test]
    fn a_recording_of_a_guest_that_was_cut_off_keeps_what_it_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guest.rec");
        let (header, mut bytes) = recorded(1000, 10, 1);
        bytes.extend([0xff; 9]);
        fs::write(&path, &bytes).expect("a file");
        thin_to_spread(&path, &header).expect("it is left alone");
        assert_eq!(fs::read(&path).expect("the file"), bytes);
    }
}
