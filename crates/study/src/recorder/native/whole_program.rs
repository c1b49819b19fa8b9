//! A whole program, natively: the engine's log → counts by place in the code, through the cache model.

use super::heart;
use super::memory::{Chunk, Memory};
use super::output::Output;
use super::process_files::ProcessFiles;
use crate::error::{Error, Result};
use lineup_model::access::ProcessId;
use lineup_model::process::Origin;
use lineup_profile::{Follower, Handle, Kind, Profile, ThreadProfile, chains};
use lineup_recording::Summary;
use lineup_recording::native::{DefinedAccess, Definition, Form, record, state, word};
use lineup_recording::plan::Plan;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long the log is left alone when there was nothing in it.
const PAUSE: Duration = Duration::from_micros(300);

/// What is kept of a block of code.
struct Known {
    /// Its first run.
    run: u32,
    /// Its first chain takes in the block as well.
    is_begun_by_chain: bool,
    /// In the order of the log's words.
    steps: Vec<Step>,
    repetition: Repetition,
    /// Words of its record.
    words: usize,
}

/// Whether the block is a string instruction that repeats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repetition {
    Never,
    /// As often as is counted.
    Counted,
    /// Until what it compares differs, or no longer does: that ends it nearly always before its count does.
    Compared,
}

/// What words of the log stand for.
enum Step {
    /// The address that a chain of accesses begins with.
    Chain(Handle),
    /// An access by itself, and the counters of its instruction.
    Access(DefinedAccess, u32),
}

/// Counts what the log tells.
pub(super) struct Counter<'a> {
    memory: Arc<Memory>,
    process: ProcessFiles<'a>,
    profile: Profile,
    /// By number, as the log names them.
    known: Vec<Option<Box<Known>>>,
    threads: HashMap<u64, Box<ThreadProfile>>,
    begun: Instant,
    instructions: u64,
    threads_begun: u64,
    words: Vec<u64>,
}

impl<'a> Counter<'a> {
    /// Nothing was counted yet.
    pub(super) fn new(memory: &Arc<Memory>, plan: &'a Plan, output: &'a Path) -> Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        // One is the program's, and one reads its log.
        let profile = Profile::new(&plan.header.caches, processors.saturating_sub(2))
            .map_err(|(text, error)| Error::argument(text, error.to_string()))?
            .with_windows(plan.window_bytes);
        let output = Arc::new(Mutex::new(Output::new(output, &plan.header)));
        Ok(Counter {
            memory: memory.clone(),
            process: ProcessFiles::new(memory.clone(), plan, output, (ProcessId(0), Origin::Started)),
            profile,
            known: Vec::new(),
            threads: HashMap::new(),
            begun: Instant::now(),
            instructions: 0,
            threads_begun: 0,
            words: Vec::new(),
        })
    }

    /// Takes in the record at the beginning of `words`; how many it has, `None` at the end.
    fn record(&mut self, thread: &mut ThreadProfile, words: &[u64]) -> Result<Option<usize>> {
        let Some(head) = words.first() else { return Ok(None) };
        let number = *head as u32;
        if number == 0 {
            return Ok(match (head >> 32) as u32 {
                record::LOST | record::LEAVE => Some(record::LEAVE_WORDS),
                record::SYSTEM_CALL => Some(record::SYSTEM_CALL_WORDS),
                _ => None,
            });
        }
        if self.known.get(number as usize).is_none_or(Option::is_none) && !self.learn(number)? {
            return Ok(None);
        }
        let Some(Some(block)) = self.known.get(number as usize) else { return Ok(None) };
        let Some(own) = words.get(1..block.words) else { return Ok(None) };
        match block.repetition {
            Repetition::Never => block.take_in(thread, own),
            Repetition::Counted | Repetition::Compared => block.repeat(thread, own),
        }
        Ok(Some(block.words))
    }

    /// Looks up what a block is made of; false when there is no such block.
    fn learn(&mut self, number: u32) -> Result<bool> {
        let Some(definition) = self.memory.definition(number) else { return Ok(false) };
        self.process.look_for(definition.start)?;
        let place = number as usize;
        if self.known.len() <= place {
            self.known.resize_with(place + 1, || None);
        }
        self.known[place] = Some(Box::new(known(&self.profile, &definition)));
        Ok(true)
    }

    /// Reads the log until the program has ended, and to its end.
    pub(super) fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        let memory = self.memory.clone();
        heart::beat_during(|number| memory.set(word::HEARTBEAT, number), || self.read_all(is_over))
    }

    fn read_all(&mut self, is_over: &AtomicBool) -> Result<()> {
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            if self.memory.word(word::STATE) == state::ASKS {
                self.process.note_process()?;
                self.process.look_at_images()?;
                self.memory.set(word::STATE, state::ANSWERED);
            }
            let chunks = self.memory.chunks(was_over);
            for chunk in &chunks {
                self.read(chunk)?;
            }
            if was_over {
                return Ok(());
            }
            if chunks.is_empty() {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn read(&mut self, chunk: &Chunk) -> Result<()> {
        self.process.output().start()?;
        let mut words = std::mem::take(&mut self.words);
        self.memory.take_into(chunk, &mut words);
        let (profile, begun) = (&self.profile, &mut self.threads_begun);
        let mut thread = self.threads.remove(&chunk.thread).unwrap_or_else(|| {
            *begun += 1;
            profile.thread()
        });
        let mut rest = words.as_slice();
        let mut last_call = None;
        while let Some(used) = self.record(&mut thread, rest)? {
            last_call = (rest[0] == u64::from(record::SYSTEM_CALL) << 32).then(|| rest[1] as i64);
            rest = rest.get(used..).unwrap_or_default();
        }
        if last_call == Some(libc::SYS_exit) {
            self.instructions += self.profile.take(Some(thread));
        } else {
            self.threads.insert(chunk.thread, thread);
        }
        self.words = words;
        Ok(())
    }

    /// Writes the counts.
    pub(super) fn finish(mut self) -> Result<()> {
        self.process.output().start()?;
        for thread in std::mem::take(&mut self.threads).into_values() {
            self.instructions += self.profile.take(Some(thread));
        }
        let mut encoder = self.process.encoder();
        let process = &mut self.process;
        self.profile.write(&mut encoder, |encoder| process.write(encoder))?;
        let mut notes =
            vec!["what the dynamic loader did before the engine was there is not counted".to_owned()];
        let passed_over = self.memory.word(word::PASSED_OVER);
        if passed_over > 0 {
            notes
                .push(format!("{passed_over} threads were not counted, since there were too many at a time"));
        }
        notes.extend(self.process.notes());
        encoder.summary(&Summary {
            process: self.process.id,
            total_instructions: Some(self.instructions),
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads: self.threads_begun,
            forks: self.memory.word(word::FORKED),
            unfollowed: self.process.unfollowed(),
            notes,
            ..Summary::default()
        });
        self.process.write(&mut encoder)
    }
}

/// What is to be known of a block to count it.
fn known(profile: &Profile, definition: &Definition) -> Known {
    let mut pc = definition.start;
    let insns = definition.lengths.iter().map(|length| {
        let insn = (pc, u64::from(*length));
        pc += insn.1;
        insn
    });
    let insns: Vec<(u64, u64)> = insns.collect();
    let chains = match insns.len() {
        // As the engine does it: an instruction by itself logs all of its accesses.
        1 => lineup_profile::Chains::default(),
        _ => {
            let mut follower = Follower::native();
            let bytes = |(at, length): &(u64, u64)| {
                let first = (at - definition.start) as usize;
                definition.code.get(first..first + *length as usize).unwrap_or_default()
            };
            chains(insns.iter().map(|insn| follower.step(insn.0, bytes(insn))))
        }
    };
    let block = profile.block(&insns, &chains);
    let counters = |insn: usize| block.counters + 2 * insn as u32;
    let mut steps = Vec::new();
    for insn in 0..insns.len() {
        let begun = chains.all.iter().zip(&block.handles).find(|(chain, _)| chain.links[0].insn == insn);
        steps.extend(begun.map(|(_, handle)| Step::Chain(*handle)));
        if insns.len() == 1 || chains.alone.contains(&insn) {
            let own = definition.accesses.iter().filter(|access| usize::from(access.instruction) == insn);
            steps.extend(own.map(|access| Step::Access(*access, counters(insn))));
        }
    }
    let words = steps.iter().map(|step| match step {
        Step::Chain(_) => 1,
        Step::Access(access, _) => access.form.words(),
    });
    Known {
        run: block.run,
        is_begun_by_chain: chains.begin_block,
        repetition: repetition(definition, &steps),
        words: 1 + words.sum::<usize>(),
        steps,
    }
}

fn repetition(definition: &Definition, steps: &[Step]) -> Repetition {
    // `cmps` and `scas`, and those of bytes.
    const COMPARING: [u8; 4] = [0xa6, 0xa7, 0xae, 0xaf];
    match steps.iter().any(|step| matches!(step, Step::Access(own, _) if own.form == Form::Repeated)) {
        false => Repetition::Never,
        true if definition.code.last().is_some_and(|opcode| COMPARING.contains(opcode)) => {
            Repetition::Compared
        }
        true => Repetition::Counted,
    }
}

impl Known {
    /// The block was executed, with these words.
    #[inline]
    fn take_in(&self, thread: &mut ThreadProfile, words: &[u64]) {
        let mut begins = self.is_begun_by_chain;
        if !begins {
            enter(thread, self.run);
        }
        let mut words = words.iter();
        let mut last = 0;
        for step in &self.steps {
            match step {
                Step::Chain(handle) => {
                    let address = words.next().copied().unwrap_or_default();
                    match std::mem::take(&mut begins) {
                        true => chain::<true>(thread, *handle, address),
                        false => chain::<false>(thread, *handle, address),
                    }
                }
                Step::Access(access, counters) => {
                    let own = words.as_slice().get(..access.form.words()).unwrap_or_default();
                    words = words.as_slice()[own.len()..].iter();
                    access_alone(thread, access, *counters, own, &mut last);
                }
            }
        }
    }

    /// A string instruction was executed: each repetition is an execution of the instruction, as under the
    /// emulator and as cachegrind has it.
    fn repeat(&self, thread: &mut ThreadProfile, words: &[u64]) {
        let sides: Vec<(&DefinedAccess, u32, u64, u64)> = self
            .steps
            .iter()
            .zip(words.chunks_exact(2))
            .filter_map(|(step, ends)| match step {
                Step::Access(access, counters) => Some((access, *counters, ends[0], ends[1])),
                Step::Chain(_) => None,
            })
            .collect();
        let repetitions = |(access, _, from, to): &(&DefinedAccess, u32, u64, u64)| {
            from.abs_diff(*to) / u64::from(access.size_bytes.max(1))
        };
        let most = sides.iter().map(repetitions).max().unwrap_or(0);
        for number in 0..most {
            enter(thread, self.run);
            for (access, counters, from, to) in &sides {
                let distance = number.wrapping_mul(u64::from(access.size_bytes));
                let address =
                    if to >= from { from.wrapping_add(distance) } else { from.wrapping_sub(distance) };
                pieces(thread, access, *counters, address, access.size_bytes);
            }
        }
        // Nothing is left to do: where that ends it, it is executed once more for it.
        if most == 0 || self.repetition == Repetition::Counted {
            enter(thread, self.run);
        }
    }
}

/// An access that is in no chain, with its words.
fn access_alone(
    thread: &mut ThreadProfile,
    access: &DefinedAccess,
    counters: u32,
    own: &[u64],
    last: &mut u64,
) {
    let (address, size_bytes) = match (access.form, own) {
        (Form::Masked, [address, elements]) => super::follower::masked(*address, *elements, access),
        (_, [address, ..]) => (*address, access.size_bytes),
        (_, []) => (*last, access.size_bytes),
    };
    *last = address;
    pieces(thread, access, counters, address, size_bytes);
}

/// An access whose size is no power of two is as many accesses as it has of these.
fn pieces(
    thread: &mut ThreadProfile,
    access: &DefinedAccess,
    counters: u32,
    mut address: u64,
    size_bytes: u32,
) {
    let mut rest = size_bytes;
    while rest > 0 {
        let size_shift = rest.ilog2().min(12);
        let kind = Kind { size_shift: size_shift as u8, is_store: access.is_store };
        if !thread.access(counters, address, kind) {
            thread.access_slowly(counters, address, kind);
        }
        address = address.wrapping_add(1 << size_shift);
        rest -= 1 << size_shift;
    }
}

#[inline]
fn enter(thread: &mut ThreadProfile, run: u32) {
    if !thread.enter(run) {
        thread.enter_slowly(run);
    }
}

#[inline]
fn chain<const BEGINS: bool>(thread: &mut ThreadProfile, handle: Handle, address: u64) {
    if !thread.chain::<BEGINS>(handle, address) {
        thread.chain_slowly::<BEGINS>(handle, address);
    }
}
