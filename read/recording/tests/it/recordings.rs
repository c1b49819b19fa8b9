//! A recording survives its file; a damaged file gives the records before the damage.

use lineup_model::abi::Abi;
use lineup_model::access::{
    Access, AccessKind, Arguments, Call, CallEnd, MemoryEvent, MemoryEventKind, ProcessId, StackRange,
    ThreadId, TimeMark,
};
use lineup_model::image::LoadedImage;
use lineup_model::process::{AddressSpace, Origin, Process};
use lineup_model::region::{Region, RegionId, Regions};
use lineup_recording::{
    AllocationSite, Arm, CallHead, CallSizes, Counts, Encoder, Ending, Event, FlagCounts, Header,
    MOST_ACCESSES, MeasuredCall, Misses, Mode, OLDEST_VERSION, ProfileInstruction, ProfileRun, ProgramExit,
    Reader, RecordingError, RegionCounts, Resident, Summary, SystemSummary, Unfollowed, Window, WindowStep,
    Writer, read_all,
};
use proptest::prelude::*;

const ENDS: [CallEnd; 5] =
    [CallEnd::Returned, CallEnd::Abandoned, CallEnd::ThreadEnded, CallEnd::ProcessEnded, CallEnd::Unfinished];

fn any_access() -> impl Strategy<Value = Access> {
    let size = prop_oneof![Just(1u32), Just(8), Just(30), Just(31), Just(32), any::<u32>()];
    (any::<u64>(), any::<u64>(), size, any::<bool>(), any::<Option<u64>>()).prop_map(
        |(pc, address, size_bytes, store, value)| Access {
            pc,
            address,
            size_bytes,
            kind: if store { AccessKind::Store } else { AccessKind::Load },
            value,
        },
    )
}

prop_compose! {
    fn any_call()(
        region: u16, process: u32, thread: u32, sequence: u64, entered_at: u64, end in 0..ENDS.len(), depth: u32,
        instructions: u64, binding_instructions: u64, missed_blocks: u64,
        accesses in prop::collection::vec(any_access(), 0..40),
        code_granules in prop::collection::btree_set(any::<u64>(), 0..40),
        times in prop::collection::btree_map(0..41u32, any::<u64>(), 0..40),
        given in prop::option::of((any::<u64>(), prop::collection::vec(any::<u64>(), 0..=Arguments::MOST))),
    ) -> Call {
        let times = times.into_iter().filter(|(access, _)| *access as usize <= accesses.len());
        let times = times.map(|(access, cycles)| TimeMark { access, cycles }).collect();
        Call {
            arguments: given.map(|(entry, values)| Arguments::new(entry, &values)),
            times, region: RegionId(region), process: ProcessId(process), thread: ThreadId(thread), sequence, entered_at,
            end: ENDS[end], depth, instructions, binding_instructions, missed_blocks, accesses, code_granules: code_granules.into_iter().collect(),
        }
    }
}

prop_compose! {
    fn any_measured()(
        region: u16, cpu: u16, sequence: u64, begun_at: u64, ended_at: u64, from_pc: u64, to_pc: u64, end in 0..ENDS.len(),
        arm in 0..3usize, counts in prop::array::uniform9(any::<u64>()), interrupts: u32,
        interrupt_instructions: u64, switches: u32,
    ) -> MeasuredCall {
        let [instructions, code1, code2, data1, data2, shared_misses, code, data, spin_instructions] = counts;
        MeasuredCall {
            region: RegionId(region), cpu, sequence, begun_at, ended_at, from_pc, to_pc, interrupts,
            interrupt_instructions, switches, arm: Arm::ALL[arm],
            end: ENDS[end],
            own: Counts {
                instructions, shared_misses, spin_instructions,
                code_misses: Misses { l1: code1, l2: code2 }, data_misses: Misses { l1: data1, l2: data2 },
                code_stall_cycles: code, data_stall_cycles: data,
            },
        }
    }
}

fn pack(encoder: &mut Encoder, call: &Call) {
    let kept = encoder.call(&head_of(call), &call.accesses, &call.code_granules, &call.times);
    assert_eq!(kept, call.accesses.len());
}

fn head_of(call: &Call) -> CallHead {
    CallHead {
        region: call.region,
        process: call.process,
        thread: call.thread,
        sequence: call.sequence,
        entered_at: call.entered_at,
        end: call.end,
        depth: call.depth,
        instructions: call.instructions,
        binding_instructions: call.binding_instructions,
        missed_blocks: call.missed_blocks,
        arguments: call.arguments,
    }
}

fn header() -> Header {
    let mut header = Header::new(Abi::ARM, vec!["./räder".into(), "--count".into(), "3".into()]);
    header.mode = Mode::OnePass;
    header.regions = Regions::from_iter([Region {
        name: "ns::turn(int)".into(),
        weight: 2.5,
        image: "/tmp/räder".into(),
        entries: vec![0x1_0000, u64::MAX],
    }]);
    header.max_calls = Some(7);
    header.caches = vec!["l1d=32K,8,64".into()];
    header
}

/// A file with one call to a block.
fn file_of(calls: &[Call]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    for call in calls {
        let mut encoder = Encoder::new();
        pack(&mut encoder, call);
        writer.append(&encoder.seal().unwrap()).unwrap();
    }
    writer.into_inner()
}

fn simple_call(entered_at: u64) -> Call {
    Call {
        region: RegionId(0),
        process: ProcessId(0),
        thread: ThreadId(0),
        sequence: entered_at,
        entered_at,
        end: CallEnd::Returned,
        depth: 0,
        instructions: 12,
        binding_instructions: 0,
        missed_blocks: 0,
        arguments: None,
        accesses: vec![Access {
            pc: 0x40_0000,
            address: 0x7fff_0000,
            size_bytes: 8,
            kind: AccessKind::Load,
            value: Some(5),
        }],
        code_granules: vec![0x40_0000, 0x40_0020],
        times: Vec::new(),
    }
}

proptest! {
    #[test]
    fn calls_survive_and_come_back_in_order_of_entry(calls in prop::collection::vec(any_call(), 0..6)) {
        let recording = read_all(&file_of(&calls)).unwrap();
        let mut expected = calls;
        expected.sort_by_key(|call| call.entered_at);
        prop_assert_eq!(recording.calls, expected);
        prop_assert_eq!(recording.header, header());
        prop_assert_eq!(recording.damage, None);
    }

    #[test]
    fn a_changed_byte_never_panics_and_never_invents_a_call(at: prop::sample::Index, flip in 1..=255u8) {
        let calls: Vec<Call> = (0..4).map(simple_call).collect();
        let mut bytes = file_of(&calls);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        if let Ok(recording) = read_all(&bytes) {
            prop_assert!(calls.starts_with(&recording.calls));
            prop_assert!(recording.damage.is_some());
        }
    }
}

#[test]
fn a_block_of_calls_that_claims_to_be_part_of_a_log_is_damaged() {
    let calls: Vec<Call> = (0..4).map(simple_call).collect();
    let whole = file_of(&calls);
    // The head of the header's block stands behind the file's mark and version; its second word is its stored length.
    let header = 12;
    let stored = u32::from_le_bytes(whole[header + 4..header + 8].try_into().expect("four bytes"));
    let second = header + 12 + stored as usize;
    let flagged = |block: usize| {
        let mut bytes = whole.clone();
        bytes[block + 3] ^= 0x80;
        bytes
    };
    assert!(read_all(&flagged(header)).is_err());
    let recording = read_all(&flagged(second)).unwrap();
    assert!(recording.calls.is_empty() && recording.damage.is_some(), "{:?}", recording.damage);
}

#[test]
fn every_kind_of_record_survives() {
    let image = LoadedImage {
        path: "/lib/x.so".into(),
        start: 1,
        end: 9,
        bias: u64::MAX,
        build_id: Some(vec![1, 2]),
    };
    let stack = StackRange { thread: ThreadId(3), start: 0x1000, end: 0x9000 };
    let freed = MemoryEvent {
        at: 5,
        process: ProcessId(2),
        thread: ThreadId(3),
        kind: MemoryEventKind::Freed,
        address: 0x5000,
        size_bytes: None,
    };
    let unmapped = MemoryEvent { at: 4, kind: MemoryEventKind::Unmapped, size_bytes: Some(4096), ..freed };
    let private = MemoryEvent { kind: MemoryEventKind::Private, ..unmapped };
    let shared = MemoryEvent { kind: MemoryEventKind::Shared, ..unmapped };
    let run = ProfileRun {
        pc: 0x40_0000,
        size_bytes: 17,
        executions: 3,
        instructions: 12,
        fetch_misses: Misses { l1: 1, l2: 1 },
        loads: 6,
        load_misses: Misses { l1: 2, l2: 0 },
        stores: 3,
        store_misses: Misses::default(),
    };
    let misses = Misses { l1: 9, l2: 1 };
    let instruction =
        ProfileInstruction { pc: 0x40_0004, loads: 6, load_misses: misses, ..ProfileInstruction::default() };
    let fetch = WindowStep::Fetch { pc: 0x40_0000, size_bytes: 17 };
    let window =
        Window { number: 8, resident: Some(Resident::default()), steps: vec![fetch], ..Window::default() };
    let mut sizes = CallSizes::default();
    for size in [3, 70_000, 3] {
        sizes.add(size);
    }
    let summary = Summary {
        process: ProcessId(0),
        unfollowed: vec![Unfollowed { program: "/bin/true".into(), why: "is foreign".into() }],
        all_calls: vec![CallSizes::default(), sizes],
        regions: vec![RegionCounts { seen: 9, recorded: 4, abandoned: 1, ..RegionCounts::default() }],
        total_instructions: Some(99),
        elapsed_ns: 5,
        threads: 2,
        unrecorded_threads: 0,
        forks: 1,
        notes: vec!["a note".into()],
    };
    let ending = Ending { exit: ProgramExit::Signaled(11), elapsed_ns: 8, total_instructions: None };
    let process = Process {
        id: ProcessId(7),
        origin: Origin::Executed(ProcessId(2)),
        system_id: 4711,
        began_at: 12,
        program: "/bin/server".into(),
    };
    let mut encoder = Encoder::new();
    encoder.process(&process);
    encoder.image(&image);
    encoder.stack(&stack);
    encoder.memory(&freed);
    [unmapped, private, shared].iter().for_each(|event| encoder.memory(event));
    encoder.profile(&run);
    encoder.instruction(&instruction);
    encoder.window(&window);
    encoder.summary(&summary);
    encoder.ending(&ending);
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    writer.append(&encoder.seal().unwrap()).unwrap();
    let file = writer.into_inner();
    let events: Vec<Event> = Reader::new(&file[..]).unwrap().collect();
    assert!(events.contains(&Event::Instruction(instruction)) && events.contains(&Event::Window(window)));
    let recording = read_all(&file).unwrap();
    assert_eq!(recording.processes, [process]);
    assert_eq!(recording.images, [image]);
    assert_eq!(recording.stacks, [stack]);
    assert_eq!(recording.events, [unmapped, private, shared, freed]);
    assert_eq!(recording.profile, [run]);
    assert_eq!(recording.summary, Some(summary));
    assert_eq!(recording.ending, Some(ending));
}

#[test]
fn a_file_cut_anywhere_gives_the_whole_blocks_before_the_cut() {
    let calls: Vec<Call> = (0..3).map(simple_call).collect();
    let ends: Vec<usize> = (0..=3).map(|count| file_of(&calls[..count]).len()).collect();
    let bytes = file_of(&calls);
    for cut in ends[0]..=bytes.len() {
        let recording = read_all(&bytes[..cut]).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        assert_eq!(recording.calls, calls[..whole], "cut at {cut}");
        match &recording.damage {
            None => assert!(ends.contains(&cut)),
            Some(damage) => assert_eq!(damage.good_bytes as usize, ends[whole]),
        }
    }
}

#[test]
fn a_repaired_file_can_be_continued() {
    let mut bytes = file_of(&[simple_call(0), simple_call(1)]);
    bytes.truncate(bytes.len() - 1);
    let good = read_all(&bytes).unwrap().damage.unwrap().good_bytes as usize;
    bytes.truncate(good);
    let mut encoder = Encoder::new();
    pack(&mut encoder, &simple_call(2));
    let mut writer = Writer::resume(bytes);
    writer.append(&encoder.seal().unwrap()).unwrap();
    let recording = read_all(&writer.into_inner()).unwrap();
    assert_eq!(recording.calls, [simple_call(0), simple_call(2)]);
    assert_eq!(recording.damage, None);
}

#[test]
fn what_is_not_a_recording_is_refused() {
    assert!(matches!(read_all(b""), Err(RecordingError::Empty)));
    assert!(matches!(read_all(b"    spin 278 55.12: 250"), Err(RecordingError::Text)));
    assert!(matches!(read_all(b"\x7fELF too short to be one"), Err(RecordingError::NotARecording)));
    let mut newer = file_of(&[]);
    newer[8] = 200;
    assert!(matches!(read_all(&newer), Err(RecordingError::Version { found: 200, .. })));
    newer[8] = OLDEST_VERSION as u8 - 1;
    assert!(matches!(read_all(&newer), Err(RecordingError::Version { found: 8, .. })));
    assert!(matches!(read_all(&file_of(&[])[..20]), Err(RecordingError::NoHeader(_))));
}

/// The output of an older version: calls without arguments, and its number at the beginning.
#[test]
fn a_recording_of_the_version_before_arguments_is_read_as_before() {
    let mut older = file_of(&[simple_call(0), simple_call(1)]);
    older[8] = OLDEST_VERSION as u8;
    let recording = read_all(&older).unwrap();
    assert_eq!(recording.calls, [simple_call(0), simple_call(1)]);
    assert!(recording.calls.iter().all(|call| call.arguments.is_none()));
    assert_eq!(recording.damage, None);
}

#[test]
fn a_length_beyond_a_block_is_damage_not_an_allocation() {
    let mut bytes = file_of(&[]);
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend_from_slice(&[0xff; 60]);
    let recording = read_all(&bytes).unwrap();
    assert!(recording.damage.unwrap().what.contains("impossible length"));
}

#[test]
fn of_a_call_that_is_too_large_so_many_accesses_are_kept_whatever_they_take() {
    let simple = simple_call(0);
    let far = |at: u64| Access {
        pc: at.wrapping_mul(u64::MAX / 5),
        address: at.wrapping_mul(u64::MAX / 3),
        size_bytes: u32::MAX,
        value: Some(at.wrapping_mul(u64::MAX / 7)),
        ..simple.accesses[0]
    };
    let near = vec![simple.accesses[0]; MOST_ACCESSES + 1];
    let far: Vec<Access> = (0..MOST_ACCESSES as u64 + 1).map(far).collect();
    let times: Vec<TimeMark> = (0..2 * MOST_ACCESSES as u32)
        .map(|number| TimeMark { access: number / 2, cycles: (u64::MAX / 3).wrapping_mul(number.into()) })
        .collect();
    for (accesses, times, small_calls) in
        [(&near, &[][..], 0), (&near, &times[..100], 9), (&near, &times, 300_000), (&far, &times, 9)]
    {
        let mut encoder = Encoder::new();
        (0..small_calls).for_each(|_| pack(&mut encoder, &simple));
        assert_eq!(encoder.call(&head_of(&simple), accesses, &[], times), MOST_ACCESSES);
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        writer.append(&encoder.seal().unwrap()).unwrap();
        let call = read_all(&writer.into_inner()).unwrap().calls.pop().unwrap();
        assert!(call.accesses == accesses[..MOST_ACCESSES]);
        if accesses == &near {
            assert!(call.times == times);
        } else {
            let kept = call.times.len();
            assert!(
                kept > 1000 && call.times[..kept - 1] == times[..kept - 1],
                "the first ones, and the last"
            );
            assert_eq!(call.times.last(), times.last());
        }
    }
}

#[test]
fn of_times_between_two_accesses_the_first_and_the_last_are_kept() {
    let call = simple_call(0);
    let mark = |access, cycles| TimeMark { access, cycles };
    let times = [mark(0, 5), mark(0, 6), mark(0, 7), mark(1, 9), mark(1, 20), mark(2, 30)];
    let mut encoder = Encoder::new();
    encoder.call(&head_of(&call), &call.accesses, &[], &times);
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    writer.append(&encoder.seal().unwrap()).unwrap();
    let read = read_all(&writer.into_inner()).unwrap();
    assert_eq!(read.calls[0].times, [mark(0, 5), mark(0, 7), mark(1, 9), mark(1, 20)], "it has one access");
}

#[test]
fn streaming_yields_events_one_by_one() {
    let bytes = file_of(&[simple_call(0), simple_call(1)]);
    let mut reader = Reader::new(&bytes[..]).unwrap();
    assert_eq!(reader.by_ref().count(), 2);
    assert_eq!(reader.good_bytes(), bytes.len() as u64);
    assert_eq!(reader.damage(), None);
}

proptest! {
    #[test]
    fn what_calls_cost_on_a_system_reads_back(
        calls in prop::collection::vec(any_measured(), 0..20), interrupts: u64, is_complete: bool,
    ) {
        let summary = SystemSummary {
            cpus: calls.iter().map(|call| call.own).collect(), interrupts, complete: is_complete,
            flag: FlagCounts { checks: interrupts, failed_checks: 1, lost: interrupts / 2 },
            ..SystemSummary::default()
        };
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        let mut encoder = Encoder::new();
        calls.iter().for_each(|call| encoder.measured(call));
        encoder.system(&summary);
        writer.append(&encoder.seal().unwrap()).unwrap();
        let recording = read_all(&writer.into_inner()).unwrap();
        let mut sorted = calls;
        sorted.sort_by_key(|call| (call.begun_at, call.cpu));
        prop_assert_eq!(recording.measured, sorted);
        prop_assert_eq!(recording.system, Some(summary));
    }
}

/// Two programs at the same addresses: the data they touched is apart, and all data within one of them stays together.
#[test]
fn programs_with_address_spaces_of_their_own_never_meet() {
    let of = |space: AddressSpace| {
        let mut encoder = Encoder::of(space);
        let image =
            LoadedImage { path: "/bin/x".into(), start: 0x4000, end: 0x9000, bias: 0x4000, build_id: None };
        encoder.image(&image);
        encoder.stack(&StackRange { thread: ThreadId(0), start: 0x7000_0000, end: 0x7001_0000 });
        encoder.thread_base(0x6000_0000);
        let head = CallHead {
            region: RegionId(0),
            process: ProcessId(0),
            thread: ThreadId(0),
            sequence: 0,
            entered_at: u64::from(space.0),
            end: CallEnd::Returned,
            depth: 0,
            instructions: 1,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: Some(Arguments::new(0x4010, &[0x7000_0010, 3])),
        };
        let access = |value| Access {
            pc: 0x4010,
            address: 0x7000_0010,
            size_bytes: 8,
            kind: AccessKind::Load,
            value: Some(value),
        };
        encoder.call(&head, &[access(0x7000_0018), access(3)], &[0x4000], &[]);
        encoder.seal().unwrap()
    };
    let mut writer = Writer::new(Vec::new(), &header()).unwrap();
    writer.append(&of(AddressSpace(0))).unwrap();
    writer.append(&of(AddressSpace(9))).unwrap();
    let recording = read_all(&writer.into_inner()).unwrap();
    let [first, second] = recording.images.as_slice() else { panic!("two images") };
    let [own, other] = recording.calls.as_slice() else { panic!("two calls") };
    for (image, call, stack, base) in [
        (first, own, recording.stacks[0], recording.thread_bases[0]),
        (second, other, recording.stacks[1], recording.thread_bases[1]),
    ] {
        assert!(image.contains(call.accesses[0].pc) && image.contains(call.code_granules[0]));
        assert_eq!(image.to_link(call.accesses[0].pc), 0x10);
        assert!((stack.start..stack.end).contains(&call.accesses[0].address));
        let pointer = call.accesses[0].value.unwrap();
        assert_eq!(pointer - call.accesses[0].address, 8, "a pointer leads to where it led");
        assert_eq!(call.accesses[1].value, Some(3), "a number is none");
        let arguments = call.arguments.unwrap();
        assert_eq!(arguments.entry, call.accesses[0].pc);
        assert_eq!(arguments.values(), [call.accesses[0].address, 3]);
        assert_eq!(stack.start - base, 0x1000_0000);
    }
    assert!(!first.contains(other.accesses[0].pc) && !second.contains(own.accesses[0].pc));
}

/// A recorder packs all its data when the program has ended: that may be more than one block holds.
#[test]
fn a_table_of_any_length_is_sealed_and_read_back() {
    let site = |number: u32| {
        let far = |frame: u64| (u64::from(number) * 12 + frame).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        AllocationSite {
            number,
            frames: (0..12).map(far).collect(),
            objects: number.into(),
            ..AllocationSite::default()
        }
    };
    let mut encoder = Encoder::new();
    let count = 200_000;
    (0..count).for_each(|number| encoder.allocation_site(&site(number)));
    assert!(encoder.packed_bytes() > lineup_recording::MAX_BLOCK_BYTES, "{}", encoder.packed_bytes());
    let header = Header::new(Abi::X86_64, vec!["a program".into()]);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    writer.append(&encoder.seal().unwrap()).unwrap();
    let bytes = writer.into_inner();
    let reader = Reader::new(bytes.as_slice()).unwrap();
    let mut next = 0;
    for event in reader {
        if let Event::AllocationSite(read) = event {
            assert_eq!(read, site(next));
            next += 1;
        }
    }
    assert_eq!(next, count);
}
