//! Replaying a logged run: its log → counts by place in the code, through any caches.

use crate::error::{Error, Result};
use lineup_profile::{Chains, Kind, Profile, ThreadProfile};
use lineup_recording::log::{Execution, Log, LogEntry, LogPart};
use lineup_recording::native::each_piece;
use lineup_recording::native::superblock::{AccessForm, Part, Superblock};
use lineup_recording::{Damage, Encoder, Event, Mode, Reader, Summary, Writer};
use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

/// The system call that ends a thread.
const EXIT: u64 = libc::SYS_exit as u64;

/// The result of a replay.
pub struct Replayed {
    /// A recording as `--whole-program` makes it.
    pub recording: Vec<u8>,
    /// Instructions that were executed.
    pub instructions: u64,
    /// Blocks that were executed.
    pub blocks: u64,
    /// Parts of the log.
    pub parts: u64,
    /// The place where the file became unreadable, if it did: everything before was replayed.
    pub damage: Option<Damage>,
    /// The log says that it is whole.
    pub is_whole: bool,
    /// The number of times a thread continued without being recorded.
    pub losses: u64,
}

/// Counts a log's executions and accesses, in these caches.
///
/// # Errors
/// When it is no recording, or none with a log, or a cache cannot be read.
pub fn replay(input: impl Read, caches: &[String]) -> Result<Replayed> {
    let mut reader = Reader::new(input)?;
    let mut header = reader.header().clone();
    if header.mode != Mode::WholeProgram {
        return Err(Error::Start("the recording holds calls, and no log of the whole run".into()));
    }
    header.caches = caches.to_vec();
    let spare = std::thread::available_parallelism().map_or(0, |all| all.get() - 1);
    let profile =
        Profile::new(caches, spare).map_err(|(text, error)| Error::argument(text, error.to_string()))?;
    let mut replay = Replay::new(profile);
    let mut writer = Writer::new(Vec::new(), &header)?;
    let mut kept = Encoder::new();
    let mut ending = None;
    let mut summaries = Vec::new();
    let (mut parts, mut is_whole) = (0, false);
    for event in reader.by_ref() {
        replay.log.learn(&event);
        match event {
            Event::LogPart(part) if part == LogPart::END => is_whole = true,
            Event::LogPart(part) => {
                parts += 1;
                if replay.part(&part).is_none() {
                    return Err(Error::Start(format!("part {parts} of the log is malformed")));
                }
            }
            Event::Image(image) => kept.image(&image),
            Event::Process(process) => kept.process(&process),
            Event::Summary(summary) => summaries.push(summary),
            Event::Ending(own) => ending = Some(own),
            _ => {}
        }
    }
    let damage = reader.damage().cloned();
    if parts == 0 {
        return Err(Error::Start("the recording has no log: record with --whole-program --log".into()));
    }
    writer.append(&kept.seal()?)?;
    let losses = replay.losses;
    let (blocks, instructions) = replay.finish(&mut writer)?;
    let mut encoder = Encoder::new();
    for summary in summaries {
        encoder.summary(&Summary { total_instructions: Some(instructions), ..summary });
    }
    ending.iter().for_each(|ending| encoder.ending(ending));
    writer.append(&encoder.seal()?)?;
    let recording = writer.into_inner();
    Ok(Replayed { recording, instructions, blocks, parts, damage, is_whole, losses })
}

/// Instructions that follow each other in the program, as they are counted.
#[derive(Clone, PartialEq, Eq)]
struct InstructionRun {
    run: u32,
    counters: u32,
    /// Their numbers within the superblock.
    instructions: Range<usize>,
}

impl InstructionRun {
    /// The instructions of a part with these numbers; `first` is the number of the part's first instruction.
    fn new(profile: &Profile, part: &Part, first: usize, instructions: Range<usize>) -> InstructionRun {
        let mut pc = part.start;
        let all = part.lengths.iter().map(|length| {
            let insn = (pc, u64::from(*length));
            pc = pc.wrapping_add(insn.1);
            insn
        });
        let own = all.skip(instructions.start - first).take(instructions.len());
        let block = profile.block(&own.collect::<Vec<_>>(), &Chains::default());
        InstructionRun { run: block.run, counters: block.counters, instructions }
    }
}

/// The parts of a superblock, and, for those that a signal has cut, the parts that were executed.
#[derive(Default)]
struct KnownBlock {
    parts: Vec<InstructionRun>,
    cut: Vec<(usize, InstructionRun)>,
}

impl KnownBlock {
    fn new(profile: &Profile, superblock: &Superblock) -> KnownBlock {
        let mut known = KnownBlock::default();
        let mut first = 0;
        for part in &superblock.parts {
            let end = first + part.lengths.len();
            known.parts.push(InstructionRun::new(profile, part, first, first..end));
            first = end;
        }
        known
    }

    /// Takes in the execution of a part; `None` when it executed nothing.
    fn part(
        &mut self,
        profile: &Profile,
        number: usize,
        execution: &Execution<'_>,
    ) -> Option<&InstructionRun> {
        let all = self.parts.get(number)?;
        let (whole, executed) = (all.instructions.clone(), &execution.instructions);
        let own = whole.start.max(executed.start)..whole.end.min(executed.end);
        if own.is_empty() {
            return None;
        }
        if own == whole {
            return Some(all);
        }
        let is_known = |(part, known): &(usize, InstructionRun)| *part == number && known.instructions == own;
        let at = match self.cut.iter().position(is_known) {
            Some(at) => at,
            None => {
                let part = &execution.superblock.parts[number];
                self.cut.push((number, InstructionRun::new(profile, part, whole.start, own)));
                self.cut.len() - 1
            }
        };
        self.cut.get(at).map(|(_, known)| known)
    }
}

struct Replay {
    profile: Profile,
    log: Log,
    /// By the log's places of superblocks.
    known: Vec<Option<KnownBlock>>,
    threads: HashMap<u64, Box<ThreadProfile>>,
    blocks: u64,
    losses: u64,
    instructions: u64,
}

impl Replay {
    fn new(profile: Profile) -> Replay {
        Replay {
            profile,
            log: Log::default(),
            known: Vec::new(),
            threads: HashMap::new(),
            blocks: 0,
            losses: 0,
            instructions: 0,
        }
    }

    /// `None` when it is malformed.
    fn part(&mut self, part: &LogPart) -> Option<()> {
        let Replay { profile, log, known, threads, blocks, losses, instructions } = self;
        let mut thread = threads.remove(&part.thread).unwrap_or_else(|| profile.thread());
        let mut is_ended = false;
        known.resize_with(log.blocks().len(), || None);
        let read = log.each(part, |entry| match entry {
            LogEntry::Executed(execution) => {
                let new = || KnownBlock::new(profile, execution.superblock);
                let known = known[execution.place].get_or_insert_with(new);
                *blocks += 1;
                execute(&mut thread, profile, known, &execution);
            }
            LogEntry::SystemCall([number, ..]) => is_ended = number == EXIT,
            LogEntry::Lost => *losses += 1,
        });
        match is_ended {
            true => *instructions += profile.take(Some(thread)),
            false => drop(threads.insert(part.thread, thread)),
        }
        read
    }

    /// Writes the counts: how many superblocks and instructions there were.
    fn finish(mut self, writer: &mut Writer<Vec<u8>>) -> Result<(u64, u64)> {
        for thread in self.threads.into_values() {
            self.instructions += self.profile.take(Some(thread));
        }
        let mut encoder = Encoder::new();
        let mut write = |encoder: &mut Encoder| writer.append(&encoder.seal()?);
        self.profile.write(&mut encoder, &mut write)?;
        write(&mut encoder)?;
        Ok((self.blocks, self.instructions))
    }
}

/// Counts an execution: each part's fetch precedes its accesses.
fn execute(thread: &mut ThreadProfile, profile: &Profile, known: &mut KnownBlock, execution: &Execution<'_>) {
    let mut next = 0;
    let mut counter = (0, 0..0);
    let mut enter =
        |thread: &mut ThreadProfile, known: &mut KnownBlock, counter: &mut (u32, Range<usize>)| {
            if let Some(part) = known.part(profile, next, execution) {
                if !thread.enter(part.run) {
                    thread.enter_slowly(part.run);
                }
                *counter = (part.counters, part.instructions.clone());
            }
            next += 1;
            next <= known.parts.len()
        };
    execution.each_access(|access, address, bytes| {
        let instruction = usize::from(access.instruction);
        while !counter.1.contains(&instruction) && enter(thread, known, &mut counter) {}
        let own = counter.0 + 2 * instruction.saturating_sub(counter.1.start) as u32;
        let first = address;
        each_piece(address, bytes, |address, bytes| {
            let counts = address == first || access.told != AccessForm::Repeated;
            let size_shift = bytes.trailing_zeros() as u8;
            let kind = Kind { size_shift, is_store: access.is_store, counts };
            if !thread.access(own, address, kind) {
                thread.access_slowly(own, address, kind);
            }
        });
    });
    while enter(thread, known, &mut counter) {}
}
