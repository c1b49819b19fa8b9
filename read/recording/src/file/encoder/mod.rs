//! Records to bytes.

mod calls;

use crate::error::RecordingError;
use crate::file::frame;
use crate::log;
use crate::records::allocation::{AllocationSite, put_site};
use crate::records::context::{Context, put_context};
use crate::records::header::{
    Ending, Header, Misses, Mode, ProfileInstruction, ProfileRun, ProgramExit, Selection, Summary, Unfollowed,
};
use crate::records::placement::{Placement, put_placement};
use crate::records::sizes::CallSizes;
use crate::records::system::{Arm, Counts, MeasuredCall, SystemSummary};
use crate::records::tasks;
use crate::records::tasks::{KernelTask, Reach, Turn};
use crate::records::window::{Window, put_window};
use crate::varint::{put, put_bytes, put_delta};
use lineup_model::access::{CallEnd, MemoryEvent, MemoryEventKind, ProcessId, StackRange};
use lineup_model::image::LoadedImage;
use lineup_model::process::{AddressSpace, Origin, Process};

pub use calls::{CallHead, MOST_ACCESSES};
pub(crate) use calls::{HAS_VALUE, IS_STORE, SIZE_FOLLOWS, SIZE_MASK};

/// A block of this size is full: the encoder adds no further record.
const FULL_BYTES: usize = frame::MAX_BLOCK_BYTES / 8;

/// First byte of every record.
pub(crate) mod tag {
    pub(crate) const HEADER: u8 = 0;
    pub(crate) const IMAGE: u8 = 1;
    pub(crate) const STACK: u8 = 2;
    pub(crate) const CALL: u8 = 3;
    pub(crate) const MEMORY: u8 = 4;
    pub(crate) const PROFILE: u8 = 5;
    pub(crate) const SUMMARY: u8 = 6;
    pub(crate) const ENDING: u8 = 7;
    pub(crate) const MEASURED: u8 = 8;
    pub(crate) const SYSTEM: u8 = 9;
    pub(crate) const STREAM: u8 = 10;
    pub(crate) const THREAD_BASE: u8 = 11;
    pub(crate) const PROCESS: u8 = 12;
    pub(crate) const INSTRUCTION: u8 = 13;
    pub(crate) const WINDOW: u8 = 14;
    pub(crate) const ALLOCATION_SITE: u8 = 15;
    pub(crate) const CONTEXT: u8 = 16;
    pub(crate) const TASK: u8 = 17;
    pub(crate) const TURN: u8 = 18;
    pub(crate) const REACH: u8 = 19;
    pub(crate) const LOG_BLOCK: u8 = 20;
    pub(crate) const LOG_PART: u8 = 21;
    /// As [`CALL`], preceded by the registers that carry the call's arguments.
    pub(crate) const CALL_WITH_ARGUMENTS: u8 = 22;
    pub(crate) const PLACEMENT: u8 = 23;
}

/// Packs records of one thread into blocks.
#[derive(Default)]
pub struct Encoder {
    out: Vec<u8>,
    /// The positions in it at which blocks begin, except the first.
    begins: Vec<usize>,
    /// The address space of the addresses that it is given.
    space: AddressSpace,
    /// Up to there, a log was packed alone.
    log_end: usize,
}

impl Encoder {
    /// An empty encoder for the first program's addresses.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty encoder for a program's addresses, which are written as addresses of its space.
    pub fn of(space: AddressSpace) -> Self {
        Self { space, ..Self::default() }
    }

    /// The records packed since the last [`Encoder::seal`], all whole.
    pub fn packed(&self) -> &[u8] {
        &self.out
    }

    /// Takes over records that [`Encoder::packed`] gave.
    pub fn append_packed(&mut self, records: &[u8]) {
        self.begin();
        self.out.extend_from_slice(records);
    }

    /// Bytes packed since the last [`Encoder::seal`], before compression.
    pub fn packed_bytes(&self) -> usize {
        self.out.len()
    }

    /// Begins a block before a record, when the current one is full.
    fn begin(&mut self) {
        if self.block_bytes() >= FULL_BYTES {
            self.begins.push(self.out.len());
        }
    }

    /// Bytes of the block that is packed now.
    fn block_bytes(&self) -> usize {
        self.out.len() - self.begins.last().copied().unwrap_or_default()
    }

    /// Turns the packed records into blocks for [`crate::Writer::append`], one or more, and starts afresh.
    ///
    /// # Errors
    /// [`RecordingError::TooLarge`] when one record takes more than [`crate::MAX_BLOCK_BYTES`].
    pub fn seal(&mut self) -> Result<Vec<u8>, RecordingError> {
        let out = std::mem::take(&mut self.out);
        let is_log = std::mem::take(&mut self.log_end) == out.len() && !out.is_empty();
        let mut sealed = Vec::new();
        let mut begin = 0;
        for end in std::mem::take(&mut self.begins).into_iter().chain([out.len()]) {
            sealed.extend(frame::seal(&out[begin..end], is_log)?);
            begin = end;
        }
        Ok(sealed)
    }

    /// Packs the cost of a call.
    pub fn measured(&mut self, call: &MeasuredCall) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::MEASURED);
        put(out, u64::from(call.region.0));
        put(out, u64::from(call.cpu));
        put(out, call.sequence);
        put(out, call.begun_at);
        put_delta(out, call.begun_at, call.ended_at);
        put(out, call.from_pc);
        put_delta(out, call.from_pc, call.to_pc);
        out.push(end_code(call.end));
        out.push(match call.arm {
            Arm::Untouched => 0,
            Arm::InvalidatedCode => 1,
            Arm::PrefetchedCode => 2,
        });
        put_counts(out, &call.own);
        put(out, u64::from(call.interrupts));
        put(out, call.interrupt_instructions);
        put(out, u64::from(call.switches));
    }

    /// Packs a part of the stream, as [`crate::records::stream::StreamEncoder::take`] gives it.
    pub fn stream(&mut self, packed: &[u8]) {
        self.begin();
        self.out.push(tag::STREAM);
        put_bytes(&mut self.out, packed);
    }

    /// Packs the totals of the whole system.
    pub fn system(&mut self, summary: &SystemSummary) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::SYSTEM);
        put(out, u64::from(summary.latency.l2_cycles));
        put(out, u64::from(summary.latency.memory_cycles));
        put(out, summary.cpus.len() as u64);
        summary.cpus.iter().for_each(|counts| put_counts(out, counts));
        for value in [
            summary.interrupts,
            summary.interrupts_while_off,
            summary.exceptions,
            summary.unmatched_returns,
            summary.switches,
            u64::from(summary.complete),
            u64::from(summary.has_whole_stream),
            summary.flag.checks,
            summary.flag.failed_checks,
            summary.flag.lost,
        ] {
            put(out, value);
        }
    }

    /// Packs a memory event.
    pub fn memory(&mut self, event: &MemoryEvent) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::MEMORY);
        put(out, event.at);
        put(out, u64::from(event.process.0));
        put(out, u64::from(event.thread.0));
        out.push(match event.kind {
            MemoryEventKind::Allocated => 0,
            MemoryEventKind::Freed => 1,
            MemoryEventKind::Unmapped => 2,
            MemoryEventKind::Private => 3,
            MemoryEventKind::Shared => 4,
        });
        put(out, self.space.place(event.address));
        put_option(out, event.size_bytes);
    }

    /// Packs a loaded image.
    pub fn image(&mut self, image: &LoadedImage) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::IMAGE);
        put_bytes(out, image.path.as_bytes());
        put(out, self.space.place(image.start));
        put(out, self.space.place(image.end));
        put(out, self.space.place(image.bias));
        match &image.build_id {
            None => put(out, 0),
            Some(id) => {
                put(out, 1);
                put_bytes(out, id);
            }
        }
    }

    /// Packs a stack range.
    pub fn stack(&mut self, stack: &StackRange) {
        self.begin();
        self.out.push(tag::STACK);
        put(&mut self.out, u64::from(stack.thread.0));
        put(&mut self.out, self.space.place(stack.start));
        put(&mut self.out, self.space.place(stack.end));
    }

    /// Packs the base that a thread was given.
    pub fn thread_base(&mut self, base: u64) {
        self.begin();
        self.out.push(tag::THREAD_BASE);
        put(&mut self.out, self.space.place(base));
    }

    /// Packs a process that began.
    pub fn process(&mut self, process: &Process) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::PROCESS);
        put(out, u64::from(process.id.0));
        let (kind, from) = match process.origin {
            Origin::Started => (0, ProcessId(0)),
            Origin::Forked(from) => (1, from),
            Origin::Executed(from) => (2, from),
        };
        out.push(kind);
        put(out, u64::from(from.0));
        put(out, u64::from(process.system_id));
        put(out, process.began_at);
        put_bytes(out, process.program.as_bytes());
    }

    /// Packs the counts of one run of instructions.
    pub fn profile(&mut self, run: &ProfileRun) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::PROFILE);
        let pc = self.space.place(run.pc);
        for value in [pc, u64::from(run.size_bytes), run.executions, run.instructions, run.loads, run.stores]
        {
            put(out, value);
        }
        for Misses { l1, l2 } in [run.fetch_misses, run.load_misses, run.store_misses] {
            put(out, l1);
            put(out, l2);
        }
    }

    /// Packs the counts of one instruction.
    pub fn instruction(&mut self, counts: &ProfileInstruction) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::INSTRUCTION);
        let ProfileInstruction { pc, loads, stores, load_address, store_address, .. } = *counts;
        [pc, loads, stores, load_address, store_address].into_iter().for_each(|value| put(out, value));
        for Misses { l1, l2 } in [counts.load_misses, counts.store_misses] {
            put(out, l1);
            put(out, l2);
        }
    }

    /// Packs the description of a superblock of a logged run, as words.
    pub fn log_block(&mut self, number: u32, words: &[u64]) {
        let is_alone = self.out.len() == self.log_end;
        self.out.push(tag::LOG_BLOCK);
        log::put_block(&mut self.out, number, words);
        if is_alone {
            self.log_end = self.out.len();
        }
    }

    /// Packs a part of a log, whose words are packed, see [`crate::log::Packer`].
    pub fn log_part(&mut self, thread: u64, packed: &[u8]) {
        let is_alone = self.out.len() == self.log_end;
        self.out.push(tag::LOG_PART);
        log::put_part(&mut self.out, thread, packed);
        if is_alone {
            self.log_end = self.out.len();
        }
    }

    /// Packs a part of a window.
    pub fn window(&mut self, window: &Window) {
        self.begin();
        self.out.push(tag::WINDOW);
        put_window(&mut self.out, window);
    }

    /// Packs a place where the program allocated memory.
    pub fn allocation_site(&mut self, site: &AllocationSite) {
        self.begin();
        self.out.push(tag::ALLOCATION_SITE);
        put_site(&mut self.out, site);
    }

    /// Packs where objects lay, and on which pages.
    pub fn placement(&mut self, placement: &Placement) {
        self.begin();
        self.out.push(tag::PLACEMENT);
        put_placement(&mut self.out, placement);
    }

    /// Packs what code missed in one context.
    pub fn context(&mut self, context: &Context) {
        self.begin();
        self.out.push(tag::CONTEXT);
        put_context(&mut self.out, context);
    }

    /// Packs a task of a whole system.
    pub fn task(&mut self, task: &KernelTask) {
        self.begin();
        self.out.push(tag::TASK);
        tasks::put_task(&mut self.out, task);
    }

    /// Packs for whom a CPU works from now on.
    pub fn turn(&mut self, turn: &Turn) {
        self.begin();
        self.out.push(tag::TURN);
        tasks::put_turn(&mut self.out, turn);
    }

    /// Packs where a call lies in the order of events.
    pub fn reach(&mut self, reach: &Reach) {
        self.begin();
        self.out.push(tag::REACH);
        tasks::put_reach(&mut self.out, reach);
    }

    /// Packs the recorder's counts.
    pub fn summary(&mut self, summary: &Summary) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::SUMMARY);
        put(out, u64::from(summary.process.0));
        put(out, summary.regions.len() as u64);
        for region in &summary.regions {
            for value in [
                region.seen,
                region.recorded,
                region.abandoned,
                region.thread_ended,
                region.process_ended,
                region.unfinished,
                region.truncated,
                region.in_handlers,
            ] {
                put(out, value);
            }
        }
        put_option(out, summary.total_instructions);
        put(out, summary.elapsed_ns);
        put(out, summary.threads);
        put(out, summary.unrecorded_threads);
        put(out, summary.forks);
        put(out, summary.unfollowed.len() as u64);
        for Unfollowed { program, why } in &summary.unfollowed {
            put_bytes(out, program.as_bytes());
            put_bytes(out, why.as_bytes());
        }
        put(out, summary.all_calls.len() as u64);
        summary.all_calls.iter().for_each(|sizes| put_sizes(out, sizes));
        put_texts(out, &summary.notes);
    }

    /// Packs how the program ended.
    pub fn ending(&mut self, ending: &Ending) {
        self.begin();
        let out = &mut self.out;
        out.push(tag::ENDING);
        let (kind, number) = match ending.exit {
            ProgramExit::Exited(status) => (0, status),
            ProgramExit::Signaled(signal) => (1, signal),
            ProgramExit::Left => (2, 0),
        };
        out.push(kind);
        put_delta(out, 0, i64::from(number) as u64);
        put(out, ending.elapsed_ns);
        put_option(out, ending.total_instructions);
    }

    /// Packs the header.
    pub(crate) fn header(&mut self, header: &Header) {
        let out = &mut self.out;
        out.push(tag::HEADER);
        out.push(header.abi.machine.description().file_code);
        out.push(header.abi.pointer_bytes);
        put_texts(out, &header.command);
        put_bytes(out, header.emulator.as_bytes());
        out.push(match header.mode {
            Mode::TwoPass => 0,
            Mode::OnePass => 1,
            Mode::WholeProgram => 2,
            Mode::System => 3,
        });
        put(out, header.regions.len() as u64);
        for (_, region) in header.regions.iter() {
            put_bytes(out, region.name.as_bytes());
            out.extend_from_slice(&region.weight.to_le_bytes());
            put_bytes(out, region.image.as_bytes());
            put(out, region.entries.len() as u64);
            region.entries.iter().for_each(|entry| put(out, *entry));
        }
        put(out, header.warmup_calls);
        put_option(out, header.max_calls);
        out.push(match header.selection {
            Selection::Spread => 0,
            Selection::First => 1,
            Selection::Runs => 2,
            Selection::Threads => 3,
        });
        put(out, header.max_accesses);
        put_texts(out, &header.caches);
    }
}

fn end_code(end: CallEnd) -> u8 {
    match end {
        CallEnd::Returned => 0,
        CallEnd::Abandoned => 1,
        CallEnd::Unfinished => 2,
        CallEnd::ThreadEnded => 3,
        CallEnd::ProcessEnded => 4,
    }
}

fn put_counts(out: &mut Vec<u8>, counts: &Counts) {
    counts.fields().iter().for_each(|field| put(out, *field));
}

fn put_option(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        None => out.push(0),
        Some(value) => {
            out.push(1);
            put(out, value);
        }
    }
}

fn put_sizes(out: &mut Vec<u8>, sizes: &CallSizes) {
    put(out, sizes.instructions);
    put(out, sizes.calls_by_size.len() as u64);
    let mut last = 0;
    for (size, calls) in &sizes.calls_by_size {
        put_delta(out, last, *size);
        put(out, *calls);
        last = *size;
    }
}

fn put_texts(out: &mut Vec<u8>, texts: &[String]) {
    put(out, texts.len() as u64);
    texts.iter().for_each(|text| put_bytes(out, text.as_bytes()));
}
