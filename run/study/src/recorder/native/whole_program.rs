//! A whole program, natively: the engine's log → counts by place in the code, through the cache model.

use super::heap::WrittenTables;
use super::output::Output;
use super::process_files::ProcessFiles;
use crate::error::{Error, Result};
use crate::recorder::native::debug_info_loader::DebugInfoLoader;
use crate::recorder::native::shared_memory::{Chunk, Memory};
use lineup_model::access::ProcessId;
use lineup_model::process::Origin;
use lineup_profile::{Chain, Chains, Handle, Heap, Link, Profile, SecondLevel};
use lineup_recording::native::{DefinedAccess, Definition, Form, noted, record, state};
use lineup_recording::plan::Plan;
use lineup_recording::{Placement, Summary, Unfollowed};
use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Set in all that is known of blocks: neither a run's number nor a piece's handle reaches there.
const KNOWN: u64 = 1 << 63;

/// The kept data of a block of code.
struct BlockData {
    /// Its first run.
    run: u32,
    /// Its pieces, see [`noted`].
    pieces: Vec<Handle>,
    alone: Option<Alone>,
    /// The number of its count.
    count: u32,
}

/// A block whose every execution has its own record in the log.
struct Alone {
    definition: Definition,
    /// The first counter of its instruction: its loads, and after it its stores.
    counters: u32,
    /// Words of its record, the first included.
    words: usize,
}

/// Counts the executions in the log.
pub(super) struct Counter<'a> {
    pub(super) memory: Arc<Memory>,
    pub(super) process: ProcessFiles<'a>,
    origin: Origin,
    profile: Profile,
    /// By number, as the log names them.
    known: Vec<Option<Box<BlockData>>>,
    /// The data of a block that most records need lies close together: its first run at the block's number, and its
    /// pieces behind that. There is room enough, since a block's number is the position of its definition, which has a
    /// word for each access. 0 where nothing is known.
    places: Vec<u64>,
    threads: HashMap<u64, SecondLevel>,
    /// The program is linked statically: the engine begins only after the program's C library.
    pub(super) is_static: bool,
    /// The tables by which the engine sees allocations; `None` when they are not wanted.
    told: Option<WrittenTables>,
    /// The reader of mapped files' debug information; `None` when nobody asks for the programs' names for it.
    pub(super) ahead: Option<DebugInfoLoader>,
    heap: Heap,
    begun: Instant,
    instructions: u64,
    threads_begun: u64,
    words: Vec<u64>,
}

impl<'a> Counter<'a> {
    /// A counter that has counted nothing yet.
    pub(super) fn new(
        memory: Arc<Memory>,
        plan: &'a Plan,
        output: Arc<Mutex<Output<'a>>>,
        (id, origin): (ProcessId, Origin),
    ) -> Result<Self> {
        let profile = Profile::new(&plan.header.caches, 0)
            .map_err(|(text, error)| Error::argument(text, error.to_string()))?
            .with_windows(plan.window_bytes);
        Ok(Counter {
            process: ProcessFiles::new(memory.clone(), plan, output, (id, origin)),
            memory,
            origin,
            profile,
            known: Vec::new(),
            places: Vec::new(),
            threads: HashMap::new(),
            is_static: false,
            told: (plan.window_bytes > 0).then(WrittenTables::default),
            ahead: None,
            heap: Heap::default(),
            begun: Instant::now(),
            instructions: 0,
            threads_begun: 0,
            words: Vec::new(),
        })
    }

    /// Takes in the record at the beginning of `words`; returns its number of words, `None` at the end.
    fn record(&mut self, thread: &mut SecondLevel, words: &[u64]) -> Result<Option<usize>> {
        let Some(head) = words.first() else { return Ok(None) };
        let number = *head as u32;
        if number == 0 {
            return Ok(match (head >> 32) as u32 {
                record::LOST | record::LEAVE => Some(record::LEAVE_WORDS),
                record::SYSTEM_CALL => Some(record::SYSTEM_CALL_WORDS),
                record::CHAIN => chain(&mut self.heap, words),
                record::ALLOCATED => allocated(&mut self.heap, words),
                record::FREED => words.get(1).map(|address| {
                    self.heap.freed(*address);
                    record::FREED_WORDS
                }),
                record::WINDOW => begin_window(thread, words),
                record::WINDOW_END => {
                    thread.end_window();
                    self.memory.control().halvings.store(thread.halvings(), Release);
                    Some(record::WINDOW_END_WORDS)
                }
                _ => None,
            });
        }
        if let Some(used) = self.missed(thread, *head, &words[1..]) {
            return Ok(Some(used));
        }
        if self.known.get(number as usize).is_none_or(Option::is_none) {
            return match self.learn(number)? {
                true => self.record(thread, words),
                false => Ok(None),
            };
        }
        let Some(Some(block)) = self.known.get(number as usize) else { return Ok(None) };
        let run = block.run;
        let alone = block.alone.as_ref();
        Ok(alone.and_then(|alone| alone.record(thread, &mut self.heap, run, *head, &words[1..])))
    }

    /// Takes in the misses of a block that does not stand alone, with the words that follow. Returns the record's
    /// number of words, `None` when it is of another kind, or of a block that is not known yet.
    #[inline]
    fn missed(&mut self, thread: &mut SecondLevel, head: u64, words: &[u64]) -> Option<usize> {
        let piece = (head >> 32) as u8;
        let bits = (head >> noted::BITS_AT) as u32 & 0xffff;
        let place = *self.places.get(head as u32 as usize + usize::from(piece))?;
        if place & KNOWN == 0 || piece >= noted::ALONE_MISSED {
            return None;
        }
        if piece == noted::FETCHED {
            thread.fetch_missed(place as u32, bits);
            return Some(1);
        }
        thread.chain_missed(&mut self.heap, Handle::from_data(place & !KNOWN), *words.first()?, bits);
        Some(2)
    }

    /// Looks up a block's definition; false when there is no such block.
    fn learn(&mut self, number: u32) -> Result<bool> {
        let Some(definition) = self.memory.definition(number) else { return Ok(false) };
        self.process.look_for(definition.start)?;
        let place = number as usize;
        if self.known.len() <= place {
            self.known.resize_with(place + 1, || None);
        }
        let known = known(&self.profile, definition);
        let end = place + 1 + known.pieces.len();
        if self.places.len() < end {
            self.places.resize(end, 0);
        }
        self.places[place] = KNOWN | u64::from(known.run);
        for (place, piece) in self.places[place + 1..end].iter_mut().zip(&known.pieces) {
            *place = KNOWN | piece.data();
        }
        self.known[place] = Some(Box::new(known));
        Ok(true)
    }

    /// Looks up all blocks: the log has no record of a block that changes no cache.
    fn learn_all(&mut self) -> Result<()> {
        let mut number = 1;
        while let Some(definition) = self.memory.definition(number).filter(|own| own.start != 0) {
            if self.known.get(number as usize).is_none_or(Option::is_none) {
                self.learn(number)?;
            }
            number += definition.count_words() as u32;
        }
        Ok(())
    }

    /// Takes in how often each block was executed, by all threads.
    fn count(&mut self) -> Result<()> {
        self.learn_all()?;
        let blocks = self.known.iter().flatten();
        let counts = self.memory.counts(blocks.clone().map(|block| block.count + 1).max().unwrap_or(0));
        let mut thread = self.profile.beyond_first_level();
        for block in blocks {
            let times = counts.get(block.count as usize).copied().unwrap_or_default();
            thread.executed(block.run, &block.pieces, times);
        }
        self.instructions += self.profile.take_beyond(thread);
        Ok(())
    }

    /// Answers the engine's requests, and reads the present log; returns whether there was any. `is_over` when the
    /// process has ended.
    pub(super) fn step(&mut self, is_over: bool) -> Result<bool> {
        self.answer()?;
        self.process.look_if_mapped()?;
        let chunks = self.memory.chunks(is_over);
        for chunk in &chunks {
            self.read(chunk)?;
        }
        Ok(!chunks.is_empty())
    }

    /// Answers when the engine asks.
    fn answer(&mut self) -> Result<()> {
        if matches!(self.memory.control().state.load(Acquire), state::ASKS | state::ASKS_AGAIN) {
            self.process.note_process()?;
            self.process.look_at_images()?;
            if let Some(told) = &mut self.told {
                told.tell(&self.memory, &self.process.images);
            }
            if let Some(ahead) = &mut self.ahead {
                ahead.look_at(self.process.images.loaded());
            }
            self.memory.control().state.store(state::ANSWERED, Release);
        }
        Ok(())
    }

    fn read(&mut self, chunk: &Chunk) -> Result<()> {
        self.process.output().start()?;
        let mut words = std::mem::take(&mut self.words);
        self.memory.take_into(chunk, &mut words);
        let (profile, begun) = (&self.profile, &mut self.threads_begun);
        let mut thread = self.threads.remove(&chunk.thread).unwrap_or_else(|| {
            *begun += 1;
            profile.beyond_first_level()
        });
        let mut rest = words.as_slice();
        let mut last_call = None;
        while let Some(used) = self.record(&mut thread, rest)? {
            last_call = (rest[0] == u64::from(record::SYSTEM_CALL) << 32).then(|| rest[1] as i64);
            rest = rest.get(used..).unwrap_or_default();
        }
        if last_call == Some(libc::SYS_exit) {
            self.instructions += self.profile.take_beyond(thread);
        } else {
            self.threads.insert(chunk.thread, thread);
        }
        self.words = words;
        Ok(())
    }

    /// Writes the counts, with the programs that ran unrecorded.
    pub(super) fn finish(mut self, unfollowed: Vec<Unfollowed>) -> Result<()> {
        self.process.output().start()?;
        self.count()?;
        for thread in std::mem::take(&mut self.threads).into_values() {
            self.instructions += self.profile.take_beyond(thread);
        }
        let mut encoder = self.process.encoder();
        let process = &mut self.process;
        self.profile.write(&mut encoder, |encoder| process.write(encoder))?;
        for site in self.heap.sites() {
            encoder.allocation_site(&site);
        }
        for memory in self.heap.memory() {
            encoder.placement(&Placement::Site(memory));
        }
        let who = if self.is_static { "C library" } else { "dynamic loader" };
        let mut notes = Vec::new();
        if !matches!(self.origin, Origin::Forked(_)) {
            notes.push(format!("what the {who} did before the engine was there is not counted"));
        }
        let passed_over = self.memory.control().passed_over.load(Acquire);
        if passed_over > 0 {
            notes
                .push(format!("{passed_over} threads were not counted, since there were too many at a time"));
        }
        notes.extend(self.heap.note());
        notes.extend(self.process.notes());
        encoder.summary(&Summary {
            process: self.process.id,
            total_instructions: Some(self.instructions),
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads: self.threads_begun,
            forks: self.memory.control().forked.load(Acquire),
            unfollowed,
            notes,
            ..Summary::default()
        });
        self.process.write(&mut encoder)
    }
}

/// A chain of calls asks for memory, by these words; returns the record's number of words.
fn chain(heap: &mut Heap, words: &[u64]) -> Option<usize> {
    let [_, name, frames] = *words.first_chunk::<{ record::CHAIN_WORDS }>()?;
    let frames = words[record::CHAIN_WORDS..].get(..usize::try_from(frames).ok()?)?;
    heap.chain(name, frames);
    Some(record::CHAIN_WORDS + frames.len())
}

/// Memory was allocated, by these words; returns the record's number of words.
fn allocated(heap: &mut Heap, words: &[u64]) -> Option<usize> {
    let [_, address, bytes, name] = *words.first_chunk::<{ record::ALLOCATED_WORDS }>()?;
    heap.allocated(address, bytes, name);
    Some(record::ALLOCATED_WORDS)
}

/// A window begins, with these words; how many it has.
fn begin_window(thread: &mut SecondLevel, words: &[u64]) -> Option<usize> {
    let [_, stretch, data, code] = *words.first_chunk::<{ record::WINDOW_WORDS }>()?;
    let lines = words.get(record::WINDOW_WORDS..)?.get(..usize::try_from(data + code).ok()?)?;
    let (data, code) = lines.split_at(data as usize);
    // Readers of the recording expect the least recently used lines first: in each set, that is the reverse order.
    let oldest_first =
        |lines: &[u64]| lines.iter().rev().copied().filter(|line| *line != 0).collect::<Vec<_>>();
    thread.begin_window(stretch, &oldest_first(data), &oldest_first(code));
    Some(record::WINDOW_WORDS + lines.len())
}

/// The data that is needed to count a block.
fn known(profile: &Profile, definition: Definition) -> BlockData {
    let mut pc = definition.start;
    let insns = definition.lengths.iter().map(|length| {
        let insn = (pc, u64::from(*length));
        pc += insn.1;
        insn
    });
    let insns: Vec<(u64, u64)> = insns.collect();
    let chains = match definition.stands_alone {
        true => Chains::default(),
        false => pieces(&definition),
    };
    let block = profile.block(&insns, &chains);
    let count = definition.count;
    let alone = definition.stands_alone.then(|| Alone {
        counters: block.counters,
        words: 1 + definition.accesses.iter().map(DefinedAccess::words).sum::<usize>(),
        definition,
    });
    BlockData { run: block.run, pieces: block.handles, alone, count }
}

/// The accesses of a block, each with those that are looked up together with it.
fn pieces(definition: &Definition) -> Chains {
    let mut all: Vec<Chain> = Vec::new();
    for access in &definition.accesses {
        if access.form != Form::Again {
            all.push(Chain { links: Vec::new(), only: None });
        }
        let link = Link {
            insn: access.instruction.into(),
            slot: 0,
            distance: access.distance.into(),
            is_store: access.is_store,
            size_shift: access.size_bytes.max(1).ilog2() as u8,
        };
        all.last_mut().into_iter().for_each(|piece| piece.links.push(link));
    }
    Chains { all, ..Chains::default() }
}

impl Alone {
    /// The counter of an access of its definition.
    fn counter(&self, access: usize) -> u32 {
        self.counters + u32::from(self.definition.accesses.get(access).is_some_and(|access| access.is_store))
    }

    /// Takes in its record, with the words that follow. Returns the record's number of words, `None` at the end.
    fn record(
        &self,
        thread: &mut SecondLevel,
        heap: &mut Heap,
        run: u32,
        head: u64,
        words: &[u64],
    ) -> Option<usize> {
        match (head >> 32) as u8 {
            noted::ALONE => {
                self.take_in(thread, heap, run, words.get(..self.words - 1)?);
                Some(self.words)
            }
            noted::ALONE_MISSED => {
                let [address, bytes] = words.first_chunk()?;
                let access = (head >> noted::BITS_AT) as usize & 0xffff;
                thread.access_missed(heap, self.counter(access), *address, *bytes);
                Some(3)
            }
            _ => None,
        }
    }

    /// It was executed.
    fn take_in(&self, thread: &mut SecondLevel, heap: &mut Heap, run: u32, words: &[u64]) {
        self.definition.each_alone(words, |access, address, bytes| {
            thread.accessed(heap, run, self.counter(access), address, bytes);
        });
    }
}
