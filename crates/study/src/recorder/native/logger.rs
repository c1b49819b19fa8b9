//! A whole program's log: what the engine writes → the recording, compressed.
//!
//! One thread takes chunks from the engine as soon as they are full, and puts those of a thread together to parts. Several
//! compress parts; one writes them, in their order. When all have much to do, the one that takes chunks waits, and
//! so the program does.

use super::heart;
use super::memory::{Chunk, Memory};
use super::output::Output;
use super::process_files::ProcessFiles;
use crate::error::{Error, Result};
use lineup_model::access::ProcessId;
use lineup_model::process::Origin;
use lineup_recording::log::{LogPart, MOST_PART_WORDS};
use lineup_recording::native::{chunk, state, word};
use lineup_recording::plan::Plan;
use lineup_recording::{Encoder, Summary};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the engine's log is left alone when there was nothing in it.
const PAUSE: Duration = Duration::from_micros(300);
/// Bytes after which a part is compressed: more chunks foretell each other better, and take longer to read again.
const PART_BYTES: usize = 1 << 20;
/// Threads that compress, at most.
const MOST_PACKERS: usize = 4;

const _: () = assert!(PART_BYTES + chunk::BYTES as usize <= 8 * MOST_PART_WORDS);

/// A part to be compressed.
struct Task {
    number: u64,
    thread: u64,
    bytes: Vec<u8>,
    /// Superblocks that no part before names, by number, as words.
    superblocks: Vec<(u32, Vec<u64>)>,
}

/// A part that is compressed.
struct Done {
    number: u64,
    sealed: Result<Vec<u8>>,
}

/// Writes what the engine logs.
pub(super) struct Logger<'a> {
    memory: Arc<Memory>,
    process: ProcessFiles<'a>,
    output: Arc<Mutex<Output<'a>>>,
    /// What is to be compressed next, by thread.
    gathered: HashMap<u64, Vec<u8>>,
    parts: u64,
    /// Where the next superblock is to be defined.
    next_superblock: u32,
    /// All was written.
    is_whole: bool,
    begun: Instant,
}

impl<'a> Logger<'a> {
    /// Nothing was written yet.
    pub(super) fn new(memory: &Arc<Memory>, plan: &'a Plan, output: &'a Path) -> Self {
        let output = Arc::new(Mutex::new(Output::new(output, &plan.header)));
        let process =
            ProcessFiles::new(memory.clone(), plan, output.clone(), (ProcessId(0), Origin::Started));
        let begun = Instant::now();
        let (memory, gathered) = (memory.clone(), HashMap::new());
        Logger { memory, process, output, gathered, parts: 0, next_superblock: 1, is_whole: false, begun }
    }

    /// Takes the log until the program has ended, and to its end.
    pub(super) fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        let memory = self.memory.clone();
        let taken =
            heart::beat_during(|number| memory.set(word::HEARTBEAT, number), || self.take_all(is_over));
        self.is_whole = taken.is_ok();
        taken
    }

    fn take_all(&mut self, is_over: &AtomicBool) -> Result<()> {
        let packers = thread::available_parallelism().map_or(1, usize::from).saturating_sub(1);
        let packers = packers.clamp(1, MOST_PACKERS);
        let output = self.output.clone();
        let (to_packers, tasks) = sync_channel(packers);
        let (to_writer, done) = sync_channel(packers);
        // When the writer has failed, the packers end; with the last of them this goes, so that nobody waits for them.
        let tasks = Arc::new(Mutex::new(tasks));
        thread::scope(|scope| {
            let output = &output;
            let writer = scope.spawn(move || write(output, done));
            for (tasks, to_writer) in std::iter::repeat_n((tasks, to_writer), packers) {
                scope.spawn(move || compress(&tasks, to_writer));
            }
            let taken = self.take(is_over, &to_packers);
            drop(to_packers);
            let failed = |_| Err(Error::Start("writing the log failed".into()));
            writer.join().unwrap_or_else(failed).and(taken)
        })
    }

    /// Takes chunks, and gives parts to those that compress them, until these are gone.
    fn take(&mut self, is_over: &AtomicBool, packers: &SyncSender<Task>) -> Result<()> {
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            self.answer()?;
            self.process.look_if_mapped()?;
            let chunks = self.memory.chunks(was_over);
            for chunk in &chunks {
                if !self.gather(chunk, packers)? {
                    return Ok(());
                }
            }
            if was_over {
                for thread in self.gathered.keys().copied().collect::<Vec<_>>() {
                    if !self.hand_over(thread, packers) {
                        return Ok(());
                    }
                }
                return Ok(());
            }
            if chunks.is_empty() {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Answers when the engine asks.
    fn answer(&mut self) -> Result<()> {
        if matches!(self.memory.word(word::STATE), state::ASKS | state::ASKS_AGAIN) {
            self.process.note_process()?;
            self.process.look_at_images()?;
            self.memory.set(word::STATE, state::ANSWERED);
        }
        Ok(())
    }

    /// Takes a chunk; false when nobody compresses any more.
    fn gather(&mut self, chunk: &Chunk, packers: &SyncSender<Task>) -> Result<bool> {
        self.process.output().start()?;
        let part = self.gathered.entry(chunk.thread).or_insert_with(|| Vec::with_capacity(2 * PART_BYTES));
        self.memory.take_behind(chunk, part);
        Ok(part.len() < PART_BYTES || self.hand_over(chunk.thread, packers))
    }

    fn hand_over(&mut self, thread: u64, packers: &SyncSender<Task>) -> bool {
        let Some(bytes) = self.gathered.remove(&thread) else { return true };
        let number = self.parts;
        self.parts += 1;
        let superblocks = self.memory.superblocks(&mut self.next_superblock);
        packers.send(Task { number, thread, bytes, superblocks }).is_ok()
    }

    /// Writes what is known at the end.
    pub(super) fn finish(mut self) -> Result<()> {
        self.process.output().start()?;
        let mut encoder = self.process.encoder();
        let mut notes =
            vec!["what the dynamic loader did before the engine was there is not in the log".to_owned()];
        let passed_over = self.memory.word(word::PASSED_OVER);
        if passed_over > 0 {
            notes.push(format!("{passed_over} threads were not logged, since there were too many at a time"));
        }
        notes.extend(self.process.notes());
        if self.is_whole {
            encoder.log_part(LogPart::END.thread, &LogPart::END.words);
        }
        encoder.summary(&Summary {
            process: self.process.id,
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads: self.memory.word(word::NEXT_THREAD),
            forks: self.memory.word(word::FORKED),
            unfollowed: self.process.unfollowed(),
            notes,
            ..Summary::default()
        });
        self.process.write(&mut encoder)
    }
}

/// Compresses parts until there are no more, or nobody writes them.
fn compress(tasks: &Mutex<Receiver<Task>>, writer: SyncSender<Done>) {
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Task { number, thread, bytes, superblocks }) = task else { return };
        if writer.send(Done { number, sealed: sealed(thread, &bytes, &superblocks) }).is_err() {
            return;
        }
    }
}

/// A part, and before it superblocks that it may name.
fn sealed(thread: u64, bytes: &[u8], superblocks: &[(u32, Vec<u64>)]) -> Result<Vec<u8>> {
    let (mut encoder, mut sealed) = (Encoder::new(), Vec::new());
    for (number, words) in superblocks {
        encoder.log_block(*number, words);
        if encoder.packed_bytes() > PART_BYTES {
            sealed.extend(encoder.seal()?);
        }
    }
    if encoder.packed_bytes() > 0 {
        sealed.extend(encoder.seal()?);
    }
    encoder.log_part(thread, bytes);
    sealed.extend(encoder.seal()?);
    Ok(sealed)
}

/// Writes parts in their order.
fn write(output: &Mutex<Output<'_>>, done: Receiver<Done>) -> Result<()> {
    let (mut waiting, mut next) = (BTreeMap::new(), 0);
    for part in done {
        waiting.insert(part.number, part);
        while let Some(part) = waiting.remove(&next) {
            next += 1;
            output.lock().unwrap_or_else(PoisonError::into_inner).append(part.sealed?)?;
        }
    }
    Ok(())
}
