//! The engine's log → calls in a recording.

mod entries;
mod finish;

use super::output::Output;
use super::pace::Pace;
use super::process_files::ProcessFiles;
use crate::error::Result;
use crate::recorder::RecordedCode;
use crate::recorder::native::shared_memory::{Chunk, Memory};
use lineup_follow::blocks::{Block, BlockKey, BlockParts, Registry, Site};
use lineup_follow::flow::{Flow, of_x86};
use lineup_follow::selection::Picker;
use lineup_follow::thread::{Manner, RegionEntry, Thread};
use lineup_follow::tracker::CallSite;
use lineup_model::access::{
    AccessKind, Arguments, CallEnd, MemoryEvent, MemoryEventKind, ProcessId, StackRange, ThreadId,
    code_granules,
};
use lineup_model::process::Origin;
use lineup_recording::RegionCounts;
use lineup_recording::native::mappings::Whose;
use lineup_recording::native::{Definition, Form, record, state};
use lineup_recording::plan::Plan;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A thread's records are written when they reach this many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// A block as the log names it.
struct LoggedBlock {
    block: &'static Block,
    definition: Definition,
    /// By instruction.
    sites: Vec<Site>,
}

/// An entry that was reached: its block follows.
#[derive(Clone, Copy)]
struct Reached {
    region: u16,
    sequence: u64,
    at: u64,
    site: CallSite,
    /// The registers that carry arguments.
    given: [u64; 6],
}

/// The state kept with a thread.
#[derive(Default)]
pub(super) struct Own {
    reached: Option<Reached>,
    has_base: bool,
    /// The last that it did was a system call that ends its process.
    ends_process: bool,
}

/// Turns the log into calls.
pub(super) struct Follower<'a> {
    pub(super) memory: Arc<Memory>,
    plan: &'a Plan,
    pub(super) process: ProcessFiles<'a>,
    registry: Registry,
    known: HashMap<u32, LoggedBlock>,
    threads: HashMap<u64, Thread<Own>>,
    /// The counts of threads that are already written.
    counts: Vec<RegionCounts>,
    ended_threads: u64,
    pickers: Vec<Picker>,
    bounds: Vec<u64>,
    begun: Instant,
    /// Regions that a file had.
    pub(super) found: BTreeSet<u16>,
    /// The files that had each of them.
    files: BTreeMap<u16, BTreeSet<String>>,
    /// Calls are timed: there is no log.
    pub(super) is_timed: bool,
    /// Code that is flushed before sampled calls; empty where it is the functions' own.
    pub(super) flushed: Arc<[RecordedCode]>,
    /// The program does not begin when a region is in no file that it begins with, and it can load no other.
    pub(super) needs_all: bool,
    /// A thread's reports of the process's mappings that are not written yet.
    mappings: Vec<(u64, u64, Whose)>,
    /// The summary's notes.
    pub(super) notes: Vec<String>,
    pace: Option<Pace>,
}

impl<'a> Follower<'a> {
    /// Gives the engine its orders.
    pub(super) fn new(
        memory: Arc<Memory>,
        plan: &'a Plan,
        output: Arc<Mutex<Output<'a>>>,
        origin: (ProcessId, Origin),
    ) -> Self {
        let regions = plan.header.regions.len();
        let mut follower = Follower {
            process: ProcessFiles::new(memory.clone(), plan, output, origin),
            memory,
            plan,
            registry: Registry::default(),
            known: HashMap::new(),
            threads: HashMap::new(),
            counts: vec![RegionCounts::default(); regions],
            ended_threads: 0,
            pickers: (0..regions).map(|_| Picker::new(&plan.header, 0)).collect(),
            bounds: vec![0; regions],
            begun: Instant::now(),
            found: BTreeSet::new(),
            files: BTreeMap::new(),
            is_timed: false,
            flushed: Arc::default(),
            needs_all: false,
            mappings: Vec::new(),
            notes: Vec::new(),
            pace: None,
        };
        for number in 0..regions {
            follower.memory.region(number).warmup.store(plan.header.warmup_calls, Release);
            follower.publish_bound(number);
        }
        follower
    }

    /// Limits the recorded calls of each region to this many a second; `None` records all that are wanted.
    pub(super) fn keep_pace(&mut self, calls_per_second: Option<u64>) {
        let regions = self.pickers.len();
        self.pace = calls_per_second.map(|most| Pace::new(most, regions, &self.memory));
        self.notes.extend(calls_per_second.map(|most| {
            format!("at most {most} calls of each function were recorded in a second, spread over all")
        }));
    }

    /// True when the engine has begun, and waits for no answer.
    pub(super) fn runs(&self) -> bool {
        self.memory.control().state.load(Acquire) == state::RUNS
    }

    /// Answers the engine's requests, and reads the present log; returns whether there was any. `is_over` when the
    /// process has ended.
    pub(super) fn step(&mut self, is_over: bool) -> Result<bool> {
        match self.memory.control().state.load(Acquire) {
            state::ASKS => {
                self.process.note_process()?;
                self.answer()?;
            }
            state::ASKS_AGAIN => self.answer()?,
            _ => {}
        }
        if let Some(pace) = &mut self.pace {
            pace.keep(&self.memory);
        }
        self.process.note_memory()?;
        let chunks = if self.is_timed { Vec::new() } else { self.memory.chunks(is_over) };
        for chunk in &chunks {
            self.read(chunk)?;
        }
        Ok(!chunks.is_empty())
    }

    /// A thread's number in the recording: no other process's has it.
    fn thread_id(&self, thread: u64) -> ThreadId {
        const MOST_THREADS: u32 = 1 << 16;
        ThreadId(self.process.id.0.wrapping_mul(MOST_THREADS).wrapping_add(thread as u32))
    }

    fn read(&mut self, chunk: &Chunk) -> Result<()> {
        self.process.output().start()?;
        let words = self.memory.take(chunk);
        let manner = Manner {
            uses_slots: true,
            keeps_all_sites: true,
            counts_sizes: false,
            regions: self.pickers.len(),
            max_accesses: usize::try_from(self.plan.header.max_accesses).unwrap_or(usize::MAX),
            space: self.process.space(),
        };
        let id = self.thread_id(chunk.thread);
        let new = || Thread::new(id, manner, Own::default());
        // Taken out while it is fed, since the follower itself is needed too.
        let mut thread = self.threads.remove(&chunk.thread).unwrap_or_else(new);
        let is_one_of_several = !self.threads.is_empty() || self.ended_threads > 0;
        thread.keeps_windows = self.plan.keeps_windows && is_one_of_several;
        let mut rest = words.as_slice();
        while let Some(used) = self.record(&mut thread, rest)? {
            rest = rest.get(used..).unwrap_or_default();
            // Mappings stand before the call that they belong to.
            if !self.mappings.is_empty() && rest.first() != Some(&(u64::from(record::MAPPING) << 32)) {
                self.process.note_mappings(&std::mem::take(&mut self.mappings))?;
            }
            // Calls that end soon after each other have all accesses of those inside them.
            if thread.encoder.packed_bytes() >= BLOCK_BYTES {
                self.process.write(&mut thread.encoder)?;
            }
        }
        self.threads.insert(chunk.thread, thread);
        (0..self.pickers.len()).for_each(|number| self.publish_bound(number));
        Ok(())
    }

    /// Sends the engine the position from which on calls need not be recorded.
    fn publish_bound(&mut self, number: usize) {
        let bound = self.pickers[number].bound();
        if self.pace.is_none() && self.bounds[number] != bound {
            self.bounds[number] = bound;
            self.memory.region(number).bound.store(bound, Release);
        }
    }

    /// Takes in the record at the beginning; returns its number of words, `None` at the end.
    fn record(&mut self, thread: &mut Thread<Own>, words: &[u64]) -> Result<Option<usize>> {
        let Some(head) = words.first() else { return Ok(None) };
        if *head as u32 != 0 {
            return self.block(thread, *head as u32, &words[1..]);
        }
        Ok(match ((head >> 32) as u32, words) {
            (
                kind @ (record::ENTER | record::INNER),
                [_, region, sequence, at, slot, return_pc, base, a, b, c, d, e, f, ..],
            ) => {
                if kind == record::ENTER {
                    // A call that was left in a signal handler has not said so.
                    thread.leave_all();
                }
                let site = CallSite { return_pc: *return_pc, slot: Some(*slot) };
                let (region, sequence, at) = (*region as u16, *sequence, *at);
                let given = [*a, *b, *c, *d, *e, *f];
                thread.own.reached = Some(Reached { region, sequence, at, site, given });
                self.note_places(thread, *slot, *base);
                Some(record::ENTER_WORDS)
            }
            (record::MAPPING, [_, start, end, is_shared, ..]) => {
                let whose = if *is_shared == 0 { Whose::Private } else { Whose::Shared };
                self.mappings.push((*start, *end, whose));
                Some(record::MAPPING_WORDS)
            }
            (record::TIME, [_, cycles, ..]) => {
                thread.see_time(*cycles);
                Some(record::TIME_WORDS)
            }
            (record::LEAVE, _) => {
                thread.leave_all();
                thread.last = None;
                Some(record::LEAVE_WORDS)
            }
            (record::LOST, _) => {
                if thread.is_recording() {
                    thread.miss();
                }
                thread.end_all(CallEnd::Unfinished);
                thread.last = None;
                Some(record::LEAVE_WORDS)
            }
            (record::SYSTEM_CALL, [_, number, arguments @ ..]) if arguments.len() >= 5 => {
                self.system_call(thread, *number as i64, arguments);
                Some(record::SYSTEM_CALL_WORDS)
            }
            _ => None,
        })
    }

    /// Notes where the thread's stack and its variables are, once.
    fn note_places(&mut self, thread: &mut Thread<Own>, slot: u64, base: u64) {
        if !std::mem::replace(&mut thread.own.has_base, true) {
            thread.encoder.thread_base(base);
        }
        if !std::mem::replace(&mut thread.has_stack, true)
            && let Some((start, end)) = self.process.stack_around(slot)
        {
            thread.encoder.stack(&StackRange { thread: thread.id, start, end });
        }
    }

    fn system_call(&mut self, thread: &mut Thread<Own>, number: i64, arguments: &[u64]) {
        let at = arguments[4];
        let unmapped = |thread: &mut Thread<Own>| {
            thread.encoder.memory(&MemoryEvent {
                at,
                process: self.process.id,
                thread: thread.id,
                kind: MemoryEventKind::Unmapped,
                address: arguments[0],
                size_bytes: Some(arguments[1]),
            });
        };
        match number {
            libc::SYS_exit => thread.end_all(CallEnd::ThreadEnded),
            libc::SYS_kill | libc::SYS_tgkill => {
                let signal = if number == libc::SYS_kill { arguments[1] } else { arguments[2] };
                thread.own.ends_process = [libc::SIGKILL, libc::SIGABRT].contains(&(signal as i32));
            }
            libc::SYS_exit_group => thread.end_all(CallEnd::ProcessEnded),
            libc::SYS_munmap | libc::SYS_mremap => unmapped(thread),
            libc::SYS_mmap if arguments[3] & libc::MAP_FIXED as u64 != 0 => unmapped(thread),
            _ => {}
        }
    }

    /// A block was executed; how many words its record has.
    fn block(&mut self, thread: &mut Thread<Own>, number: u32, words: &[u64]) -> Result<Option<usize>> {
        if !self.known.contains_key(&number) {
            let Some(definition) = self.memory.definition(number) else { return Ok(None) };
            self.process.look_for(definition.start)?;
            let known = self.taken_in(definition);
            self.known.insert(number, known);
        }
        let Some(known) = self.known.get(&number) else { return Ok(None) };
        let block = known.block;
        thread.own.ends_process = false;
        self.begin(thread, block, known.definition.misses_accesses);
        let mut used = 1;
        let mut last_address = 0;
        for access in &known.definition.accesses {
            let Some(own) = words.get(used - 1..used - 1 + access.words()) else { return Ok(None) };
            used += access.words();
            let own = match own {
                [cycles, own @ ..] if access.is_timed => {
                    thread.see_time(*cycles);
                    own
                }
                own => own,
            };
            let Some(site) = known.sites.get(usize::from(access.instruction)) else { continue };
            let kind = if access.is_store { AccessKind::Store } else { AccessKind::Load };
            if access.has_elements() {
                access.each_element(own, |address, size_bytes| {
                    self.access(thread, site, block, (address, size_bytes), kind, None);
                });
                continue;
            }
            let (address, size_bytes, value) = match (access.form, own) {
                (Form::Repeated, [from, to]) => repeated(*from, *to, access.size_bytes),
                (Form::Valued, [address, value]) => (*address, access.size_bytes, Some(*value)),
                (Form::AgainValued, [value]) => (last_address, access.size_bytes, Some(*value)),
                (Form::Address, [address]) => (*address, access.size_bytes, None),
                _ => (last_address, access.size_bytes, None),
            };
            last_address = address;
            if size_bytes > 0 {
                self.access(thread, site, block, (address, size_bytes), kind, value);
            }
        }
        Ok(Some(used))
    }

    fn begin(&self, thread: &mut Thread<Own>, block: &'static Block, misses_accesses: bool) {
        let start = block.facts.start;
        let in_function = |pc| self.is_same_function(pc, start);
        thread.step(block, true, in_function, |previous| self.is_in_the_middle(previous, start));
        if let Some(reached) = thread.own.reached.take() {
            self.enter(thread, reached, start);
        }
        if thread.is_recording() {
            thread.execute(block);
            if misses_accesses && thread.keeps_accesses() {
                thread.miss();
            }
        }
        thread.awaits_chunk = block.frees || (thread.awaits_chunk && block.is_in_free);
        thread.last = Some(block);
    }

    fn enter(&self, thread: &mut Thread<Own>, reached: Reached, pc: u64) {
        let Some(picker) = self.pickers.get(usize::from(reached.region)) else { return };
        // Inside a recorded call a function may be reached by a jump: then the word at the stack pointer is not a
        // return address.
        let is_call =
            !thread.is_recording() || thread.call_site().is_some_and(|(site, _)| site == reached.site);
        let entry = |_: &mut Own| {
            let Reached { sequence, at, given, .. } = reached;
            let arguments = Some(Arguments::new(pc, &given));
            let entry = RegionEntry { sequence, at, process: self.process.id, kept: true, arguments };
            picker.takes(sequence).then_some(entry)
        };
        thread.enter(reached.region, is_call.then_some(reached.site), entry);
    }

    fn access(
        &self,
        thread: &mut Thread<Own>,
        site: &Site,
        block: &'static Block,
        (address, size_bytes): (u64, u32),
        kind: AccessKind,
        value: Option<u64>,
    ) {
        let value = value.filter(|_| address.is_multiple_of(8));
        if thread.keeps_accesses() {
            thread.touch(site, address, size_bytes, kind, value);
        }
        match (site.flow, kind) {
            (Flow::Call, AccessKind::Store) => {
                thread.push_site(CallSite { return_pc: site.next_pc, slot: Some(address) }, block);
                thread.called(address, site.next_pc);
            }
            (Flow::Return, AccessKind::Load) => {
                thread.pop_site(Some(address), None);
                thread.returned(address, value);
            }
            _ => {}
        }
    }

    fn is_same_function(&self, one: u64, other: u64) -> bool {
        let name = |pc| self.process.images.function_at(pc).map(|function| function.name);
        name(one).is_some_and(|one| Some(one) == name(other))
    }

    /// True when `next` lies in the middle of another function than `previous`.
    fn is_in_the_middle(&self, previous: u64, next: u64) -> bool {
        let function = self.process.images.function_at(next);
        let is_inner = function.is_some_and(|function| function.is_part || function.range.start != next);
        is_inner && !self.is_same_function(previous, next)
    }

    fn taken_in(&mut self, definition: Definition) -> LoggedBlock {
        let mut sites = Vec::new();
        let mut granules: Vec<u64> = Vec::new();
        let mut at = 0;
        for length in definition.lengths.iter().map(|length| usize::from(*length)) {
            let bytes = definition.code.get(at..at + length).unwrap_or_default();
            let (pc, decoded) = (definition.start + at as u64, of_x86(bytes));
            let next_pc = pc + length as u64;
            granules.extend(code_granules(pc, length as u64));
            sites.push(Site {
                pc,
                guest_base: 0,
                flow: decoded.flow,
                next_pc,
                multiple: false,
                on_stack: decoded.on_stack,
            });
            at += length;
        }
        granules.dedup();
        let start = definition.start;
        let parts = BlockParts {
            key: BlockKey {
                start,
                end: start + definition.code.len() as u64,
                instructions: definition.lengths.len() as u64,
                watched: true,
                entry: self.process.images.entry_at(start),
                handler: false,
            },
            flow: sites.last().map_or(Flow::Plain, |site| site.flow),
            repeats: false,
            special: self.process.images.special_at(start),
            frees: false,
            is_in_free: false,
            linkage: self.process.images.linkage_at(start),
            granules,
        };
        LoggedBlock { block: parts.register(&mut self.registry), definition, sites }
    }

    /// The process has ended: the rest of its log is read.
    pub(super) fn end(&mut self) -> Result<()> {
        while self.step(true)? {}
        for mut thread in std::mem::take(&mut self.threads).into_values() {
            let is_ended = thread.own.ends_process;
            thread.end_all(if is_ended { CallEnd::ProcessEnded } else { CallEnd::Unfinished });
            for (sum, own) in self.counts.iter_mut().zip(&thread.counts) {
                sum.add(own);
            }
            self.ended_threads += 1;
            self.process.write(&mut thread.encoder)?;
        }
        Ok(())
    }
}

/// The range of a repeated instruction's accesses: from its start to its end, upwards or downwards.
fn repeated(from: u64, to: u64, element_bytes: u32) -> (u64, u32, Option<u64>) {
    let is_up = to >= from;
    let length = from.abs_diff(to);
    let first = if is_up { from } else { to.wrapping_add(u64::from(element_bytes)) };
    (first, u32::try_from(length).unwrap_or(u32::MAX), None)
}
