//! A recorded stream replayed twice: with the objects where they were, and with them laid anew.

use super::replay::{Relayout, Replay};
use lineup_cache::{CacheSpec, SpecError};
use lineup_model::access::Call;
use lineup_recording::{Counts, Event, Latency, MeasuredCall, Reader, SystemSummary};
use std::collections::BTreeSet;
use std::io::Read;

/// The reason why a recording could not be replayed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording describes an impossible cache.
    #[error("the recorded caches: {0}")]
    Caches(SpecError),
    /// The file ends before the recorder's last words.
    #[error("the recording was cut off before the recorder's last words; record again")]
    CutOff,
    /// No stream was asked for, or it did not fit.
    #[error(
        "the recording holds no whole stream; record with --stream, a larger limit or a shorter workload"
    )]
    NoWholeStream,
}

/// The results of two replays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// By region.
    pub regions: Vec<RegionComparison>,
    /// CPUs in the stream.
    pub cpus: usize,
    /// True when the replay of the present layout missed exactly as the recorder did.
    pub is_exact: bool,
}

/// The misses of one region's kept calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RegionComparison {
    /// Calls kept in the recording.
    pub calls: u64,
    /// With the objects where they were.
    pub before: Counts,
    /// With the objects laid anew.
    pub after: Counts,
}

/// Replays the stream of a recording with and without a new layout.
///
/// # Errors
/// When the recording holds no whole stream or describes impossible caches.
pub fn compare<R: Read>(recording: Reader<R>, relayout: Relayout) -> Result<Comparison, ReplayError> {
    let caches: Result<Vec<CacheSpec>, _> =
        recording.header().caches.iter().map(|text| text.parse()).collect();
    let caches = caches.map_err(ReplayError::Caches)?;
    let regions = recording.header().regions.len();
    let mut before = Replay::new(&caches, regions, Relayout::default());
    let mut after = Replay::new(&caches, regions, relayout);
    let mut seen = RecorderData { kept: vec![BTreeSet::new(); regions], measured: Vec::new(), system: None };
    for event in recording {
        match event {
            Event::Stream(part) => part.iter().for_each(|step| {
                before.step(step);
                after.step(step);
            }),
            Event::Call(call) => seen.keep(&call),
            Event::Measured(call) => seen.measured.push(call),
            Event::System(last_words) => seen.system = Some(last_words),
            _ => {}
        }
    }
    let latency = seen.latency()?;
    let counts = before.regions(latency).into_iter().zip(after.regions(latency)).enumerate();
    let regions: Vec<RegionComparison> = counts
        .map(|(region, (before, after))| RegionComparison { calls: seen.calls(region), before, after })
        .collect();
    let is_exact =
        regions.iter().enumerate().all(|(region, found)| misses_alike(&seen.counts(region), &found.before));
    Ok(Comparison { regions, cpus: before.cpus(), is_exact })
}

/// The recorder's data outside the stream.
struct RecorderData {
    /// Sequence numbers of the kept calls, by region.
    kept: Vec<BTreeSet<u64>>,
    measured: Vec<MeasuredCall>,
    system: Option<SystemSummary>,
}

impl RecorderData {
    fn keep(&mut self, call: &Call) {
        if let Some(kept) = self.kept.get_mut(usize::from(call.region.0)) {
            kept.insert(call.sequence);
        }
    }

    fn calls(&self, region: usize) -> u64 {
        self.kept.get(region).map_or(0, |kept| kept.len() as u64)
    }

    /// The recorder's counts for the kept calls of a region.
    fn counts(&self, region: usize) -> Counts {
        let is_kept = |call: &&MeasuredCall| {
            usize::from(call.region.0) == region
                && self.kept.get(region).is_some_and(|kept| kept.contains(&call.sequence))
        };
        self.measured.iter().filter(is_kept).fold(Counts::default(), |sum, call| sum.plus(&call.own))
    }

    /// The costs of misses, from the recorder's last record, which also says whether the stream is whole.
    fn latency(&self) -> Result<Latency, ReplayError> {
        let system = self.system.as_ref().ok_or(ReplayError::CutOff)?;
        if system.has_whole_stream { Ok(system.latency) } else { Err(ReplayError::NoWholeStream) }
    }
}

/// True when both missed as often and stalled as long. A replay counts nothing else.
fn misses_alike(one: &Counts, other: &Counts) -> bool {
    let told = |counts: &Counts| {
        let stalls = counts.code_stall_cycles + counts.data_stall_cycles;
        (counts.code_misses, counts.data_misses, counts.shared_misses, stalls)
    };
    told(one) == told(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::abi::{Abi, Machine};
    use lineup_model::access::{CallEnd, ProcessId, ThreadId};
    use lineup_model::region::{Region, RegionId};
    use lineup_recording::stream::{Step, StreamEncoder};
    use lineup_recording::{Arm, CallHead, Encoder, Header, Misses, Writer};

    /// One kept call that loads from two lines: the recorder saw `misses` of it.
    fn recording(misses: u64, system: Option<&SystemSummary>) -> Vec<u8> {
        let mut header = Header::new(Abi::usual(Machine::X86_64), Vec::new());
        header.regions = [Region::named("tick")].into_iter().collect();
        header.caches = vec!["l1d=1K,2,64".to_owned()];
        let mut stream = StreamEncoder::default();
        stream.step(&Step::Inside(vec![0]));
        stream.step(&Step::Data { address: 0x1000, size_bytes: 8, takes_line: false });
        stream.step(&Step::Data { address: 0x1040, size_bytes: 8, takes_line: false });
        let head = CallHead {
            region: RegionId(0),
            process: ProcessId(0),
            thread: ThreadId(0),
            sequence: 3,
            entered_at: 1,
            end: CallEnd::Returned,
            depth: 0,
            instructions: 2,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: None,
        };
        let seen = MeasuredCall {
            region: RegionId(0),
            cpu: 0,
            sequence: 3,
            begun_at: 1,
            ended_at: 3,
            from_pc: 0x10,
            to_pc: 0x10,
            end: CallEnd::Returned,
            arm: Arm::Untouched,
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
            own: Counts {
                data_misses: Misses { l1: misses, l2: 0 },
                data_stall_cycles: 100 * misses,
                ..Counts::default()
            },
        };
        let mut encoder = Encoder::new();
        encoder.stream(&stream.take());
        encoder.call(&head, &[], &[], &[]);
        encoder.measured(&seen);
        encoder.measured(&MeasuredCall { sequence: 4, ..seen });
        system.into_iter().for_each(|system| encoder.system(system));
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        writer.append(&encoder.seal().unwrap()).unwrap();
        writer.into_inner()
    }

    fn whole() -> SystemSummary {
        SystemSummary {
            latency: Latency { l2_cycles: 10, memory_cycles: 100 },
            has_whole_stream: true,
            ..SystemSummary::default()
        }
    }

    fn compared(bytes: &[u8]) -> Result<Comparison, ReplayError> {
        compare(Reader::new(bytes).unwrap(), Relayout::default())
    }

    #[test]
    fn the_replay_is_exact_when_it_misses_what_the_recorder_saw_of_the_kept_calls() {
        let found = compared(&recording(2, Some(&whole()))).unwrap();
        assert!(found.is_exact, "{found:?}");
        let [tick] = found.regions.as_slice() else { panic!("one region: {found:?}") };
        assert_eq!((tick.calls, tick.before.data_misses.l1, tick.before.data_stall_cycles), (1, 2, 200));
        assert_eq!(tick.before, tick.after, "nothing was laid anew");
        assert!(!compared(&recording(1, Some(&whole()))).unwrap().is_exact);
    }

    #[test]
    fn a_recording_without_a_whole_stream_is_refused() {
        let cut = SystemSummary { has_whole_stream: false, ..whole() };
        assert_eq!(compared(&recording(2, Some(&cut))), Err(ReplayError::NoWholeStream));
        assert_eq!(compared(&recording(2, None)), Err(ReplayError::CutOff));
    }
}
