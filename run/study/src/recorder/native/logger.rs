//! A whole program's log: the engine's words → the recording, compressed.
//!
//! One thread looks for full chunks of the engine, and puts those of a thread together to parts. Several threads pack
//! and compress parts, directly from the engine's memory; one writes them, in their order. When all are busy, chunks
//! stay full, and the program waits.

use super::output::Output;
use super::process_files::ProcessFiles;
use crate::error::{Error, Result};
use crate::recorder::native::heartbeat;
use crate::recorder::native::mapping::Mapping;
use crate::recorder::native::shared_memory::{Chunk, Memory};
use lineup_model::access::ProcessId;
use lineup_model::process::Origin;
use lineup_recording::log::{LogPart, MOST_PART_WORDS, Packer, plain};
use lineup_recording::native::superblock::Superblock;
use lineup_recording::native::{chunk, state};
use lineup_recording::plan::Plan;
use lineup_recording::{Encoder, Summary};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The pause after a look that found nothing in the engine's log.
const PAUSE: Duration = Duration::from_micros(300);
/// Chunks of a part, at most: more foretell each other better, and take longer to read again.
const PART_CHUNKS: usize = 16;
/// Bytes of superblocks' definitions that are compressed at once.
const BLOCKS_BYTES: usize = 1 << 20;
/// Threads that compress, at most.
const MOST_PACKERS: usize = 4;

const _: () = assert!(PART_CHUNKS * chunk::BYTES as usize <= 8 * MOST_PART_WORDS);

/// A part to be compressed.
struct Task {
    number: u64,
    thread: u64,
    chunks: Vec<Chunk>,
    /// Superblocks that no part before names, by number, as words.
    superblocks: Vec<(u32, Vec<u64>)>,
}

/// A part that is compressed.
struct Done {
    number: u64,
    sealed: Result<Vec<u8>>,
}

/// Writes the engine's log.
pub(super) struct Logger<'a> {
    memory: Arc<Memory>,
    process: ProcessFiles<'a>,
    output: Arc<Mutex<Output<'a>>>,
    /// The orders of chunks that are being compressed, or were.
    handed_over: Vec<Option<u64>>,
    parts: u64,
    /// The position of the next superblock's definition.
    next_superblock: u32,
    /// All was written.
    is_whole: bool,
    begun: Instant,
}

impl<'a> Logger<'a> {
    /// A log of which nothing was written yet.
    pub(super) fn new(memory: &Arc<Memory>, plan: &'a Plan, output: &'a Path) -> Self {
        let output = Arc::new(Mutex::new(Output::new(output, &plan.header)));
        let process =
            ProcessFiles::new(memory.clone(), plan, output.clone(), (ProcessId(0), Origin::Started));
        let begun = Instant::now();
        let (memory, handed_over) = (memory.clone(), vec![None; chunk::COUNT]);
        Logger { memory, process, output, handed_over, parts: 0, next_superblock: 1, is_whole: false, begun }
    }

    /// Takes the log until the program has ended, and to its end.
    pub(super) fn follow(&mut self, is_over: &AtomicBool) -> Result<()> {
        let memory = self.memory.clone();
        let taken = heartbeat::beat_during(
            |number| memory.control().heartbeat.store(number, Release),
            || self.take_all(is_over),
        );
        self.is_whole = taken.is_ok();
        taken
    }

    fn take_all(&mut self, is_over: &AtomicBool) -> Result<()> {
        let packers = thread::available_parallelism().map_or(1, usize::from).saturating_sub(1);
        let packers = packers.clamp(1, MOST_PACKERS);
        let output = self.output.clone();
        let (to_packers, tasks) = sync_channel(packers);
        let (to_writer, done) = sync_channel(packers);
        // When the writer has failed, the packers end. With the last of them this is dropped, so that nobody waits for
        // them.
        let tasks = Arc::new(Mutex::new(tasks));
        let (chunks, definitions) = (self.memory.mapped_chunks()?, self.memory.mapped_definitions()?);
        let memory = self.memory.clone();
        thread::scope(|scope| {
            let (output, memory, chunks, definitions) = (&output, &memory, &chunks, &definitions);
            let writer = scope.spawn(move || write(output, done));
            for (tasks, to_writer) in std::iter::repeat_n((tasks, to_writer), packers) {
                scope.spawn(move || compress(memory, [chunks, definitions], &tasks, to_writer));
            }
            let taken = self.take(is_over, &to_packers);
            drop(to_packers);
            let failed = |_| Err(Error::Start("writing the log failed".into()));
            writer.join().unwrap_or_else(failed).and(taken)
        })
    }

    /// Takes chunks, and passes parts to the threads that compress them, until these are gone.
    fn take(&mut self, is_over: &AtomicBool, packers: &SyncSender<Task>) -> Result<()> {
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            self.answer()?;
            self.process.look_if_mapped()?;
            let parts = self.full_parts(was_over);
            let are_none = parts.is_empty();
            for chunks in parts {
                self.process.output().start()?;
                if !self.hand_over(chunks, packers) {
                    return Ok(());
                }
            }
            if was_over {
                return Ok(());
            }
            if are_none {
                thread::sleep(PAUSE);
            }
        }
    }

    /// Full chunks that nobody compresses yet, in parts: each of one thread, in its order.
    fn full_parts(&self, is_over: bool) -> Vec<Vec<Chunk>> {
        let first = self.memory.chunks(is_over);
        let mut latest = BTreeMap::new();
        for chunk in &first {
            latest.insert(chunk.thread, chunk.order);
        }
        let mut parts: BTreeMap<u64, Vec<Vec<Chunk>>> = BTreeMap::new();
        // While they were looked for, a thread may have filled one that was passed already, and then another that was
        // not.
        for chunk in self.memory.chunks(is_over) {
            let is_new = self.handed_over[chunk.number] != Some(chunk.order);
            if is_new && latest.get(&chunk.thread).is_some_and(|latest| chunk.order <= *latest) {
                let own = parts.entry(chunk.thread).or_default();
                match own.last_mut().filter(|part| part.len() < PART_CHUNKS) {
                    Some(part) => part.push(chunk),
                    None => own.push(vec![chunk]),
                }
            }
        }
        parts.into_values().flatten().collect()
    }

    /// Answers when the engine asks.
    fn answer(&mut self) -> Result<()> {
        if matches!(self.memory.control().state.load(Acquire), state::ASKS | state::ASKS_AGAIN) {
            self.process.note_process()?;
            self.process.look_at_images()?;
            self.memory.control().state.store(state::ANSWERED, Release);
        }
        Ok(())
    }

    /// False when nobody compresses any more.
    fn hand_over(&mut self, chunks: Vec<Chunk>, packers: &SyncSender<Task>) -> bool {
        let Some(thread) = chunks.first().map(|chunk| chunk.thread) else { return true };
        for chunk in &chunks {
            self.handed_over[chunk.number] = Some(chunk.order);
        }
        let number = self.parts;
        self.parts += 1;
        let superblocks = self.memory.superblocks(&mut self.next_superblock);
        packers.send(Task { number, thread, chunks, superblocks }).is_ok()
    }

    /// Writes the facts that are known only at the end.
    pub(super) fn finish(mut self) -> Result<()> {
        self.process.output().start()?;
        let mut encoder = self.process.encoder();
        let mut notes =
            vec!["what the dynamic loader did before the engine was there is not in the log".to_owned()];
        let passed_over = self.memory.control().passed_over.load(Acquire);
        if passed_over > 0 {
            notes.push(format!("{passed_over} threads were not logged, since there were too many at a time"));
        }
        notes.extend(self.process.notes());
        if self.is_whole {
            encoder.log_part(LogPart::END.thread, &LogPart::END.packed);
        }
        encoder.summary(&Summary {
            process: self.process.id,
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads: self.memory.control().next_thread.load(Acquire),
            forks: self.memory.control().forked.load(Acquire),
            unfollowed: self.process.unfollowed(),
            notes,
            ..Summary::default()
        });
        self.process.write(&mut encoder)
    }
}

/// Compresses parts until there are no more, or nobody writes them. `mapped` is the chunks, and the superblocks'
/// definitions.
fn compress(memory: &Memory, mapped: [&Mapping; 2], tasks: &Mutex<Receiver<Task>>, writer: SyncSender<Done>) {
    let [chunks, definitions] = mapped.map(Mapping::words);
    let mut packer = Packer::default();
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(task) = task else { return };
        let own: Vec<_> = task.chunks.iter().map(|chunk| &chunks[memory.place(chunk)]).collect();
        let packed = packed(&mut packer, &own, definitions);
        task.chunks.iter().for_each(|chunk| memory.give_back(chunk));
        let sealed = sealed(task.thread, &packed, &task.superblocks);
        if writer.send(Done { number: task.number, sealed }).is_err() {
            return;
        }
    }
}

/// A part, packed; unpacked where it is malformed, so that its reader reports the fault.
fn packed(packer: &mut Packer, chunks: &[&[AtomicU64]], definitions: &[AtomicU64]) -> Vec<u8> {
    let shape = |number: u32| {
        let word = |word: usize| Some(definitions.get(number as usize + word)?.load(Ordering::Acquire));
        Superblock::read_words(word)
    };
    packer.begin();
    let is_packed = chunks.iter().try_for_each(|chunk| packer.add(chunk, shape));
    is_packed.map_or_else(|| plain(chunks.iter().copied().flatten()), |()| packer.finish())
}

/// A part, and before it superblocks that it may name.
fn sealed(thread: u64, packed: &[u8], superblocks: &[(u32, Vec<u64>)]) -> Result<Vec<u8>> {
    let (mut encoder, mut sealed) = (Encoder::new(), Vec::new());
    for (number, words) in superblocks {
        encoder.log_block(*number, words);
        if encoder.packed_bytes() > BLOCKS_BYTES {
            sealed.extend(encoder.seal()?);
        }
    }
    encoder.log_part(thread, packed);
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
