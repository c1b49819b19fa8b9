//! Bytes to records. `None` everywhere means malformed.

use super::encoder::{HAS_VALUE, IS_STORE, SIZE_FOLLOWS, SIZE_MASK, tag};
use crate::log;
use crate::records::allocation;
use crate::records::context;
use crate::records::event::Event;
use crate::records::header::{
    Ending, Header, Misses, Mode, ProfileInstruction, ProfileRun, ProgramExit, RegionCounts, Selection,
    Summary, Unfollowed,
};
use crate::records::placement;
use crate::records::sizes::CallSizes;
use crate::records::stream;
use crate::records::system::{Arm, Counts, FlagCounts, Latency, MeasuredCall, SystemSummary};
use crate::records::tasks;
use crate::records::window;
use crate::varint::Cursor;
use lineup_model::abi::{Abi, Machine};
use lineup_model::access::{
    Access, AccessKind, Arguments, Call, CallEnd, MemoryEvent, MemoryEventKind, ProcessId, StackRange,
    ThreadId, TimeMark,
};
use lineup_model::image::LoadedImage;
use lineup_model::process::{Origin, Process};
use lineup_model::region::RegionId;
use lineup_model::region::{Region, Regions};

/// The next record of a block, other than a header.
pub(crate) fn event(cursor: &mut Cursor<'_>) -> Option<Event> {
    Some(match cursor.byte()? {
        tag::IMAGE => Event::Image(image(cursor)?),
        tag::STACK => {
            Event::Stack(StackRange { thread: thread(cursor)?, start: cursor.int()?, end: cursor.int()? })
        }
        tag::THREAD_BASE => Event::ThreadBase(cursor.int()?),
        tag::PROCESS => Event::Process(process_record(cursor)?),
        tag::CALL => Event::Call(call(cursor, None)?),
        tag::CALL_WITH_ARGUMENTS => {
            let arguments = arguments(cursor)?;
            Event::Call(call(cursor, Some(arguments))?)
        }
        tag::MEMORY => Event::Memory(memory(cursor)?),
        tag::PROFILE => Event::Profile(profile(cursor)?),
        tag::INSTRUCTION => Event::Instruction(instruction(cursor)?),
        tag::WINDOW => Event::Window(window::window(cursor)?),
        tag::ALLOCATION_SITE => Event::AllocationSite(allocation::site(cursor)?),
        tag::PLACEMENT => Event::Placement(placement::placement(cursor)?),
        tag::CONTEXT => Event::Context(context::context(cursor)?),
        tag::TASK => Event::Task(tasks::task(cursor)?),
        tag::TURN => Event::Turn(tasks::turn(cursor)?),
        tag::REACH => Event::Reach(tasks::reach(cursor)?),
        tag::SUMMARY => Event::Summary(summary(cursor)?),
        tag::ENDING => Event::Ending(ending(cursor)?),
        tag::MEASURED => Event::Measured(measured(cursor)?),
        tag::SYSTEM => Event::System(system(cursor)?),
        tag::LOG_BLOCK => Event::LogBlock(log::block(cursor)?),
        tag::LOG_PART => Event::LogPart(log::part(cursor)?),
        tag::STREAM => Event::Stream(stream::steps(cursor.bytes()?)?),
        _ => return None,
    })
}

/// The header, tag included.
pub(crate) fn header(cursor: &mut Cursor<'_>) -> Option<Header> {
    if cursor.byte()? != tag::HEADER {
        return None;
    }
    let machine = Machine::of_file_code(cursor.byte()?)?;
    let pointer_bytes = cursor.byte().filter(|bytes| matches!(bytes, 4 | 8))?;
    let command = texts(cursor)?;
    let emulator = cursor.text()?;
    let mode = match cursor.byte()? {
        0 => Mode::TwoPass,
        1 => Mode::OnePass,
        2 => Mode::WholeProgram,
        3 => Mode::System,
        _ => return None,
    };
    Some(Header {
        abi: Abi { machine, pointer_bytes },
        command,
        emulator,
        mode,
        regions: Regions::from_iter(list(cursor, 11, region).filter(|all| all.len() <= Regions::MOST)?),
        warmup_calls: cursor.int()?,
        max_calls: option(cursor)?,
        selection: match cursor.byte()? {
            0 => Selection::Spread,
            1 => Selection::First,
            2 => Selection::Runs,
            3 => Selection::Threads,
            _ => return None,
        },
        max_accesses: cursor.int()?,
        caches: texts(cursor)?,
    })
}

fn region(cursor: &mut Cursor<'_>) -> Option<Region> {
    Some(Region {
        name: cursor.text()?,
        weight: f64::from_le_bytes(cursor.take(8)?.try_into().ok()?),
        image: cursor.text()?,
        entries: list(cursor, 1, Cursor::int)?,
    })
}

fn list<'a, T>(
    cursor: &mut Cursor<'a>,
    least_bytes: usize,
    mut read: impl FnMut(&mut Cursor<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = cursor.count(least_bytes)?;
    (0..count).map(|_| read(cursor)).collect()
}

fn texts(cursor: &mut Cursor<'_>) -> Option<Vec<String>> {
    list(cursor, 1, Cursor::text)
}

fn option(cursor: &mut Cursor<'_>) -> Option<Option<u64>> {
    match cursor.byte()? {
        0 => Some(None),
        1 => Some(Some(cursor.int()?)),
        _ => None,
    }
}

fn thread(cursor: &mut Cursor<'_>) -> Option<ThreadId> {
    Some(ThreadId(u32::try_from(cursor.int()?).ok()?))
}

fn process(cursor: &mut Cursor<'_>) -> Option<ProcessId> {
    Some(ProcessId(u32::try_from(cursor.int()?).ok()?))
}

fn process_record(cursor: &mut Cursor<'_>) -> Option<Process> {
    let id = process(cursor)?;
    let (kind, from) = (cursor.byte()?, process(cursor)?);
    Some(Process {
        id,
        origin: match kind {
            0 => Origin::Started,
            1 => Origin::Forked(from),
            2 => Origin::Executed(from),
            _ => return None,
        },
        system_id: u32::try_from(cursor.int()?).ok()?,
        began_at: cursor.int()?,
        program: cursor.text()?,
    })
}

fn image(cursor: &mut Cursor<'_>) -> Option<LoadedImage> {
    Some(LoadedImage {
        path: cursor.text()?,
        start: cursor.int()?,
        end: cursor.int()?,
        bias: cursor.int()?,
        build_id: match cursor.byte()? {
            0 => None,
            1 => Some(cursor.bytes()?.to_vec()),
            _ => return None,
        },
    })
}

fn memory(cursor: &mut Cursor<'_>) -> Option<MemoryEvent> {
    Some(MemoryEvent {
        at: cursor.int()?,
        process: process(cursor)?,
        thread: thread(cursor)?,
        kind: match cursor.byte()? {
            0 => MemoryEventKind::Allocated,
            1 => MemoryEventKind::Freed,
            2 => MemoryEventKind::Unmapped,
            3 => MemoryEventKind::Private,
            4 => MemoryEventKind::Shared,
            _ => return None,
        },
        address: cursor.int()?,
        size_bytes: option(cursor)?,
    })
}

fn profile(cursor: &mut Cursor<'_>) -> Option<ProfileRun> {
    let pc = cursor.int()?;
    let size_bytes = u32::try_from(cursor.int()?).ok()?;
    let (executions, instructions) = (cursor.int()?, cursor.int()?);
    let (loads, stores) = (cursor.int()?, cursor.int()?);
    let (fetch_misses, load_misses, store_misses) = (misses(cursor)?, misses(cursor)?, misses(cursor)?);
    Some(ProfileRun {
        pc,
        size_bytes,
        executions,
        instructions,
        fetch_misses,
        loads,
        load_misses,
        stores,
        store_misses,
    })
}

fn instruction(cursor: &mut Cursor<'_>) -> Option<ProfileInstruction> {
    let (pc, loads, stores) = (cursor.int()?, cursor.int()?, cursor.int()?);
    let (load_address, store_address) = (cursor.int()?, cursor.int()?);
    let (load_misses, store_misses) = (misses(cursor)?, misses(cursor)?);
    Some(ProfileInstruction { pc, loads, load_misses, load_address, stores, store_misses, store_address })
}

fn misses(cursor: &mut Cursor<'_>) -> Option<Misses> {
    Some(Misses { l1: cursor.int()?, l2: cursor.int()? })
}

fn summary(cursor: &mut Cursor<'_>) -> Option<Summary> {
    Some(Summary {
        process: process(cursor)?,
        regions: list(cursor, 8, |cursor| {
            Some(RegionCounts {
                seen: cursor.int()?,
                recorded: cursor.int()?,
                abandoned: cursor.int()?,
                thread_ended: cursor.int()?,
                process_ended: cursor.int()?,
                unfinished: cursor.int()?,
                truncated: cursor.int()?,
                in_handlers: cursor.int()?,
            })
        })?,
        total_instructions: option(cursor)?,
        elapsed_ns: cursor.int()?,
        threads: cursor.int()?,
        unrecorded_threads: cursor.int()?,
        forks: cursor.int()?,
        unfollowed: list(cursor, 2, |cursor| {
            Some(Unfollowed { program: cursor.text()?, why: cursor.text()? })
        })?,
        all_calls: list(cursor, 2, sizes)?,
        notes: texts(cursor)?,
    })
}

fn sizes(cursor: &mut Cursor<'_>) -> Option<CallSizes> {
    let instructions = cursor.int()?;
    let mut last = 0;
    let sizes = list(cursor, 2, |cursor| {
        last = cursor.delta(last)?;
        Some((last, cursor.int()?))
    })?;
    Some(CallSizes { calls_by_size: sizes.into_iter().collect(), instructions })
}

fn ending(cursor: &mut Cursor<'_>) -> Option<Ending> {
    let kind = cursor.byte()?;
    let number = i32::try_from(cursor.delta(0)? as i64).ok()?;
    Some(Ending {
        exit: match kind {
            0 => ProgramExit::Exited(number),
            1 => ProgramExit::Signaled(number),
            2 => ProgramExit::Left,
            _ => return None,
        },
        elapsed_ns: cursor.int()?,
        total_instructions: option(cursor)?,
    })
}

fn measured(cursor: &mut Cursor<'_>) -> Option<MeasuredCall> {
    let region = RegionId(u16::try_from(cursor.int()?).ok()?);
    let cpu = u16::try_from(cursor.int()?).ok()?;
    let (sequence, begun_at) = (cursor.int()?, cursor.int()?);
    let ended_at = cursor.delta(begun_at)?;
    let from_pc = cursor.int()?;
    let to_pc = cursor.delta(from_pc)?;
    Some(MeasuredCall {
        region,
        cpu,
        sequence,
        begun_at,
        ended_at,
        from_pc,
        to_pc,
        end: end(cursor)?,
        arm: match cursor.byte()? {
            0 => Arm::Untouched,
            1 => Arm::InvalidatedCode,
            2 => Arm::PrefetchedCode,
            _ => return None,
        },
        own: counts(cursor)?,
        interrupts: u32::try_from(cursor.int()?).ok()?,
        interrupt_instructions: cursor.int()?,
        switches: u32::try_from(cursor.int()?).ok()?,
    })
}

fn system(cursor: &mut Cursor<'_>) -> Option<SystemSummary> {
    let (l2_cycles, memory_cycles) = (cursor.int()?, cursor.int()?);
    Some(SystemSummary {
        latency: Latency {
            l2_cycles: u32::try_from(l2_cycles).ok()?,
            memory_cycles: u32::try_from(memory_cycles).ok()?,
        },
        cpus: list(cursor, Counts::FIELDS, counts)?,
        interrupts: cursor.int()?,
        interrupts_while_off: cursor.int()?,
        exceptions: cursor.int()?,
        unmatched_returns: cursor.int()?,
        switches: cursor.int()?,
        complete: flag(cursor)?,
        has_whole_stream: flag(cursor)?,
        flag: FlagCounts { checks: cursor.int()?, failed_checks: cursor.int()?, lost: cursor.int()? },
    })
}

fn flag(cursor: &mut Cursor<'_>) -> Option<bool> {
    match cursor.int()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn counts(cursor: &mut Cursor<'_>) -> Option<Counts> {
    let mut fields = [0; Counts::FIELDS];
    for field in &mut fields {
        *field = cursor.int()?;
    }
    Some(Counts::from_fields(fields))
}

fn end(cursor: &mut Cursor<'_>) -> Option<CallEnd> {
    match cursor.byte()? {
        0 => Some(CallEnd::Returned),
        1 => Some(CallEnd::Abandoned),
        2 => Some(CallEnd::Unfinished),
        3 => Some(CallEnd::ThreadEnded),
        4 => Some(CallEnd::ProcessEnded),
        _ => None,
    }
}

fn arguments(cursor: &mut Cursor<'_>) -> Option<Arguments> {
    let entry = cursor.int()?;
    let values = list(cursor, 1, Cursor::int).filter(|values| values.len() <= Arguments::MOST)?;
    Some(Arguments::new(entry, &values))
}

fn call(cursor: &mut Cursor<'_>, arguments: Option<Arguments>) -> Option<Call> {
    let region = RegionId(u16::try_from(cursor.int()?).ok()?);
    let (process, thread) = (process(cursor)?, thread(cursor)?);
    let (sequence, entered_at) = (cursor.int()?, cursor.int()?);
    let end = end(cursor)?;
    let depth = u32::try_from(cursor.int()?).ok()?;
    let (instructions, binding_instructions, missed_blocks) = (cursor.int()?, cursor.int()?, cursor.int()?);
    let mut last = 0;
    let count = cursor.count(1)?;
    let code_granules = (0..count)
        .map(|_| {
            last = cursor.delta(last)?;
            Some(last)
        })
        .collect::<Option<Vec<u64>>>()?;
    let accesses = accesses(cursor)?;
    let times = times(cursor)?;
    Some(Call {
        region,
        process,
        thread,
        sequence,
        entered_at,
        end,
        depth,
        instructions,
        binding_instructions,
        missed_blocks,
        arguments,
        accesses,
        code_granules,
        times,
    })
}

fn times(cursor: &mut Cursor<'_>) -> Option<Vec<TimeMark>> {
    // The number of an access and the clock take a byte each at least.
    let count = cursor.count(2)?;
    let mut times = Vec::with_capacity(count);
    let mut last = 0;
    for _ in 0..count {
        last = cursor.delta(last)?;
        times.push(TimeMark { access: u32::try_from(last).ok()?, cycles: 0 });
    }
    last = 0;
    for time in &mut times {
        last = cursor.delta(last)?;
        time.cycles = last;
    }
    Some(times)
}

fn accesses(cursor: &mut Cursor<'_>) -> Option<Vec<Access>> {
    // Flags, pc and address take a byte each at least.
    let count = cursor.count(3)?;
    let flags = cursor.take(count)?;
    let mut accesses: Vec<Access> = flags
        .iter()
        .map(|flags| Access {
            pc: 0,
            address: 0,
            size_bytes: u32::from(flags & SIZE_MASK),
            kind: if flags & IS_STORE != 0 { AccessKind::Store } else { AccessKind::Load },
            value: (flags & HAS_VALUE != 0).then_some(0),
        })
        .collect();
    let mut last = 0;
    for access in &mut accesses {
        last = cursor.delta(last)?;
        access.pc = last;
    }
    last = 0;
    for access in &mut accesses {
        last = cursor.delta(last)?;
        access.address = last;
    }
    for access in accesses.iter_mut().filter(|access| access.size_bytes == u32::from(SIZE_FOLLOWS)) {
        access.size_bytes = u32::try_from(cursor.int()?).ok()?;
    }
    last = 0;
    for value in accesses.iter_mut().filter_map(|access| access.value.as_mut()) {
        last = cursor.delta(last)?;
        *value = last;
    }
    Some(accesses)
}
