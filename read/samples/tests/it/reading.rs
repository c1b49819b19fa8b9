//! Written data is read back: samples with all their fields, in the order of time, and the rest of a file.

use lineup_samples::data_source::{Level, Operation, Snoop, Translation};
use lineup_samples::record::{Mapping, Mode, Sample};
use lineup_samples::writer::{EventSpec, MappingSpec, SampleSpec, Writer, kind, source};
use lineup_samples::{Ending, FileSegment, MappedFile, Reader, Record, SamplesError, Segments, tally};
use std::io::{Cursor, Read, Seek};

fn memory_event() -> EventSpec {
    EventSpec {
        name: "cpu/mem-loads/P".to_owned(),
        kind: 4,
        config: 0x1cd,
        sample_type: kind::MEMORY,
        ..EventSpec::default()
    }
}

fn file(event: EventSpec, write: impl FnOnce(&mut Writer<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[event]).unwrap();
    write(&mut writer);
    writer.finish().unwrap().into_inner()
}

/// The result of `look` for every sample, and the way the file ended.
fn samples<R: Read + Seek, T>(input: R, mut look: impl FnMut(&Sample<'_>) -> T) -> (Vec<T>, Ending) {
    let mut reader = Reader::of_file(input).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        if let Record::Sample(sample) = record {
            all.push(look(&sample));
        }
    }
    (all, reader.ending().unwrap())
}

fn times(bytes: &[u8]) -> (Vec<u64>, Ending) {
    samples(Cursor::new(bytes), |sample| sample.time_ns.unwrap())
}

fn at(time_ns: u64) -> SampleSpec {
    SampleSpec { time_ns, instruction: 0x1000 + time_ns, ..SampleSpec::default() }
}

#[test]
fn a_sample_of_memory_has_all_that_was_written() {
    let planted = SampleSpec {
        instruction: 0x401136,
        process: 7,
        thread: 8,
        time_ns: 99,
        address: 0x7ffc_0010,
        cpu: 3,
        period: 5000,
        // 345 cycles from the load's issue, 400 of the instruction.
        weight: 345 | 400 << 32 | 2 << 48,
        source: source::LOAD_HITM,
        physical_address: 0x1234_5678,
        ..SampleSpec::default()
    };
    let bytes = file(memory_event(), |writer| writer.sample(&planted).unwrap());
    let mut reader = Reader::of_file(Cursor::new(bytes)).unwrap();
    assert_eq!(reader.header().events[0].name, "cpu/mem-loads/P");
    let carries = reader.header().events[0].carries();
    assert!(carries.address && carries.weight && carries.data_source && carries.physical_address);
    assert!(!carries.registers && !carries.call_chain);
    let Some(Record::Sample(sample)) = reader.next_record().unwrap() else { panic!("a sample") };
    assert_eq!((sample.process, sample.thread, sample.cpu), (Some(7), Some(8), Some(3)));
    assert_eq!((sample.instruction, sample.time_ns), (Some(0x401136), Some(99)));
    assert_eq!((sample.address, sample.physical_address), (Some(0x7ffc_0010), Some(0x1234_5678)));
    assert_eq!((sample.period, sample.mode), (Some(5000), Mode::User));
    let weight = sample.weight.unwrap();
    assert_eq!((weight.full, weight.instruction, weight.third), (345, Some(400), Some(2)));
    let from = sample.data_source.unwrap();
    assert_eq!((from.operation, from.level, from.snoop), (Operation::Load, Level::L3, Snoop::HitModified));
    assert_eq!((from.translation, from.is_locked, from.is_remote), (Translation::L1, false, false));
    drop(sample);
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(reader.ending(), Some(Ending::Whole));
}

#[test]
fn a_plain_weight_is_one_number() {
    let sample_type = kind::IP | kind::TIME | kind::WEIGHT | kind::DATA_SRC;
    let bytes = file(EventSpec { sample_type, ..memory_event() }, |writer| {
        let weight = 1 << 40;
        writer.sample(&SampleSpec { weight, source: source::STORE_L1, ..at(1) }).unwrap();
    });
    let (all, _) =
        samples(Cursor::new(bytes), |sample| (sample.weight.unwrap(), sample.data_source.unwrap().operation));
    assert_eq!((all[0].0.full, all[0].0.instruction), (1 << 40, None));
    assert_eq!(all[0].1, Operation::Store);
}

#[test]
fn chains_branches_and_registers_are_read() {
    let sample_type = kind::IP
        | kind::TIME
        | kind::CALLCHAIN
        | kind::BRANCH_STACK
        | kind::REGS_USER
        | kind::REGS_INTR
        | kind::WEIGHT_STRUCT;
    let event =
        EventSpec { sample_type, user_registers: 0b1010_0001, interrupted_registers: 0b10, ..memory_event() };
    let bytes = file(event, |writer| {
        let planted = SampleSpec {
            call_chain: vec![u64::MAX - 511, 0x10, 0x20],
            branches: vec![(1, 2), (3, 4)],
            user_registers: vec![11, 55, 77],
            interrupted_registers: vec![42],
            weight: 9,
            ..at(1)
        };
        writer.sample(&planted).unwrap();
    });
    let (all, _) = samples(Cursor::new(bytes), |sample| {
        let registers = sample.user_registers().unwrap();
        let some: Vec<_> = [0, 1, 5, 7, 64].map(|number| registers.get(number)).into();
        let branches: Vec<_> = sample.branches().map(|branch| (branch.from, branch.to)).collect();
        let other = sample.interrupted_registers().unwrap().get(1);
        (sample.call_chain().to_vec(), branches, some, other, sample.weight.unwrap().full)
    });
    assert_eq!(all[0].0, [u64::MAX - 511, 0x10, 0x20]);
    assert_eq!(all[0].1, [(1, 2), (3, 4)]);
    assert_eq!(all[0].2, [Some(11), None, Some(55), Some(77), None]);
    assert_eq!((all[0].3, all[0].4), (Some(42), 9));
}

#[test]
fn what_happened_beside_samples_is_told() {
    let bytes = file(memory_event(), |writer| {
        writer.name(7, "server").unwrap();
        let mapping = MappingSpec {
            process: 7,
            start: 0x40_0000,
            size_bytes: 0x1000,
            file_offset: 0x2000,
            protection: 5,
            path: "/usr/bin/server",
            build_id: Some(&[1, 2, 3]),
        };
        writer.mapping(&mapping).unwrap();
        writer.mapping(&MappingSpec { process: u32::MAX, protection: 3, build_id: None, ..mapping }).unwrap();
        writer.fork(9, 7, 5).unwrap();
        writer.lost(17, 6).unwrap();
        writer.build_id("/usr/bin/server", &[0xab; 20]);
        writer.command_line(&["perf", "mem", "record"]);
    });
    let mut reader = Reader::of_file(Cursor::new(bytes)).unwrap();
    let header = reader.header();
    assert_eq!(header.command_line, ["perf", "mem", "record"]);
    assert_eq!(
        (header.build_ids[0].path.as_str(), &header.build_ids[0].id[..]),
        ("/usr/bin/server", &[0xab; 20][..])
    );
    let mut told = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        told.push(match record {
            Record::Named { process, name, .. } => format!("{process} is {name}"),
            Record::Mapped(Mapping { process, start, file_offset, path, build_id, is_code, .. }) => {
                format!("{process:?} maps {path}+{file_offset:#x} at {start:#x} {build_id:?} {is_code}")
            }
            Record::Forked { process, parent, .. } => format!("{process} of {parent}"),
            Record::Lost(count) => format!("lost {count}"),
            other => format!("{other:?}"),
        });
    }
    assert_eq!(
        told,
        [
            "7 is server",
            "Some(7) maps /usr/bin/server+0x2000 at 0x400000 Some([1, 2, 3]) true",
            "None maps /usr/bin/server+0x2000 at 0x400000 None false",
            "9 of 7",
            "lost 17",
        ]
    );
}

#[test]
fn samples_come_in_the_order_of_time_over_rounds() {
    let bytes = file(memory_event(), |writer| {
        let rounds: [&[u64]; 4] = [&[3, 1, 5], &[2, 7, 4], &[6, 9, 8], &[10]];
        for round in rounds {
            round.iter().for_each(|time| writer.sample(&at(*time)).unwrap());
            writer.round().unwrap();
        }
    });
    assert_eq!(times(&bytes), ((1..=10).collect(), Ending::Whole));
}

#[test]
fn events_are_told_apart_by_their_identity_whatever_each_carries() {
    let clock = EventSpec { sample_type: kind::IDENTIFIER | kind::IP | kind::TIME, ..EventSpec::default() };
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[memory_event(), clock]).unwrap();
    writer.sample(&SampleSpec { event: 1, ..at(1) }).unwrap();
    writer.sample(&SampleSpec { address: 5, ..at(2) }).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let (all, _) = samples(Cursor::new(bytes), |sample| (sample.event, sample.time_ns, sample.address));
    assert_eq!(all, [(1, Some(1), None), (0, Some(2), Some(5))]);
}

#[test]
fn events_that_cannot_be_told_apart_are_refused() {
    let one = EventSpec { sample_type: kind::IP | kind::TIME, ..EventSpec::default() };
    let other =
        EventSpec { sample_type: kind::IP | kind::TIME | kind::ADDR | kind::ID, ..EventSpec::default() };
    let bytes = Writer::file(Cursor::new(Vec::new()), &[one, other]).unwrap().finish().unwrap().into_inner();
    let refused = Reader::of_file(Cursor::new(bytes)).unwrap_err();
    assert!(matches!(refused, SamplesError::NoIdentifier { events: 2 }), "{refused}");
}

#[test]
fn a_pipe_tells_what_a_file_tells() {
    let event = memory_event();
    let mut writer = Writer::pipe(Vec::new(), &[event]).unwrap();
    (1..=5).for_each(|time| writer.sample(&at(time)).unwrap());
    let bytes = writer.finish_pipe();
    let mut reader = Reader::of_pipe(&bytes[..]).unwrap();
    let mut found = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let Record::Sample(sample) = record else { continue };
        found.push(sample.time_ns.unwrap());
    }
    assert_eq!(found, [1, 2, 3, 4, 5]);
    assert_eq!(
        (reader.ending(), reader.header().events[0].name.as_str()),
        (Some(Ending::Whole), "cpu/mem-loads/P")
    );
    // The same bytes in a file.
    assert_eq!(times(&bytes), (vec![1, 2, 3, 4, 5], Ending::Whole));
}

#[test]
fn a_file_cut_off_anywhere_is_read_to_its_last_whole_record() {
    let bytes = file(memory_event(), |writer| (1..=5).for_each(|time| writer.sample(&at(time)).unwrap()));
    let data_start = 104 + 8 + 144;
    let record_bytes = 8 + 8 * 11;
    for cut in data_start..data_start + 5 * record_bytes {
        let (found, ending) = times(&bytes[..cut]);
        let whole = (cut - data_start) / record_bytes;
        assert_eq!(found, (1..=whole as u64).collect::<Vec<_>>(), "cut at {cut}");
        assert_eq!(ending, Ending::CutOff { after_bytes: (whole * record_bytes) as u64 });
    }
}

#[test]
fn a_file_that_perf_did_not_come_to_end_is_read() {
    let mut bytes = file(memory_event(), |writer| (1..=5).for_each(|time| writer.sample(&at(time)).unwrap()));
    // The size of the records is written last.
    bytes[48..56].fill(0);
    bytes.truncate(104 + 8 + 144 + 5 * 96);
    let (found, ending) = times(&bytes);
    assert_eq!((found, ending), (vec![1, 2, 3, 4, 5], Ending::CutOff { after_bytes: 5 * 96 }));
}

#[test]
fn other_files_are_refused_by_what_they_are() {
    let refused = |bytes: &[u8]| Reader::of_file(Cursor::new(bytes)).unwrap_err();
    assert!(matches!(refused(b""), SamplesError::Empty));
    assert!(matches!(refused(b"spin 1234 cpu-clock:"), SamplesError::Text));
    assert!(matches!(refused(b"short"), SamplesError::Text));
    assert!(matches!(refused(b"\x7fELF\x02"), SamplesError::NotPerf));
    assert!(matches!(refused(&[0; 200]), SamplesError::NotPerf));
    assert!(matches!(refused(b"PERFILE2"), SamplesError::Damaged { at: 8, .. }));
    let mut other = b"2ELIFREP".to_vec();
    other.resize(200, 0);
    assert!(matches!(refused(&other), SamplesError::BigEndian));
    assert!(matches!(refused(b"PERFILE2\x68\0\0\0\0\0\0\0"), SamplesError::Damaged { .. }));
    let pipe = [&b"PERFILE2\x10\0\0\0\0\0\0\0"[..], &[9, 0, 0, 0, 0, 0, 8, 0]].concat();
    let mut reader = Reader::of_pipe(&pipe[..]).unwrap();
    assert!(matches!(reader.next_record().unwrap_err(), SamplesError::NoEvents), "a sample of no event");
}

#[test]
fn lengths_that_cannot_be_are_not_believed() {
    let whole = file(memory_event(), |writer| {
        writer.sample(&at(1)).unwrap();
        writer.build_id("/usr/bin/server", &[1; 20]);
    });
    // Every word of the head and of the event's description, with the largest values.
    for at in (8..256).step_by(8) {
        for value in [u64::MAX, 1 << 62, 1 << 40, 0] {
            let mut bytes = whole.clone();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            if let Ok(mut reader) = Reader::of_file(Cursor::new(bytes)) {
                while let Ok(Some(_)) = reader.next_record() {}
            }
        }
    }
    // A trace that claims more bytes than there are is passed over to the end.
    let mut writer = Writer::pipe(Vec::new(), &[memory_event()]).unwrap();
    writer.sample(&at(1)).unwrap();
    let mut bytes = writer.finish_pipe();
    bytes.extend_from_slice(&[71, 0, 0, 0, 0, 0, 48, 0]);
    bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    bytes.extend_from_slice(&[0; 132]);
    let mut reader = Reader::of_pipe(&bytes[..]).unwrap();
    assert!(matches!(reader.next_record().unwrap(), Some(Record::Sample(_))));
    assert!(reader.next_record().unwrap().is_none());
    assert_eq!(reader.skipped_auxiliary_bytes(), 100);
}

struct OddSegments;

impl Segments for OddSegments {
    fn of(&mut self, file: &MappedFile) -> Vec<FileSegment> {
        let size = file.path.len() as u64;
        vec![FileSegment {
            file_offset: 0,
            file_bytes: size << 12,
            address: size << 60,
            memory_bytes: u64::MAX >> (size % 8),
            is_code: true,
        }]
    }
}

/// A file with one of everything, and that as a pipe.
fn one_of_everything() -> [Vec<u8>; 2] {
    let all = kind::MEMORY | kind::CALLCHAIN | kind::BRANCH_STACK | kind::REGS_USER | kind::REGS_INTR;
    let event =
        EventSpec { sample_type: all, user_registers: 0xff, interrupted_registers: 3, ..memory_event() };
    let mapping = MappingSpec {
        process: 7,
        start: 0x40_0000,
        size_bytes: 0x1000,
        file_offset: 0,
        protection: 5,
        path: "/usr/bin/server",
        build_id: Some(&[1; 20]),
    };
    let sample = SampleSpec {
        process: 7,
        address: 0x40_0010,
        source: source::LOAD_HITM,
        call_chain: vec![1, 2],
        branches: vec![(3, 4)],
        ..at(0x3f_0000)
    };
    let mut in_file = Writer::file(Cursor::new(Vec::new()), std::slice::from_ref(&event)).unwrap();
    let mut in_pipe = Writer::pipe(Cursor::new(Vec::new()), &[event]).unwrap();
    for writer in [&mut in_file, &mut in_pipe] {
        writer.name(7, "server").unwrap();
        writer.mapping(&mapping).unwrap();
        writer
            .mapping(&MappingSpec { process: u32::MAX, path: "[kernel.kallsyms]_text", ..mapping.clone() })
            .unwrap();
        writer.fork(9, 7, 5).unwrap();
        writer.sample(&sample).unwrap();
        writer.round().unwrap();
        writer.lost(3, 9).unwrap();
        writer.sample(&SampleSpec { is_kernel: true, ..sample.clone() }).unwrap();
        writer.build_id("/usr/bin/server", &[2; 20]);
        writer.command_line(&["perf", "record"]);
    }
    [in_file.finish().unwrap().into_inner(), in_pipe.finish_pipe().into_inner()]
}

#[test]
fn damage_anywhere_is_refused_or_read_past() {
    let mut random = 88_172_645_463_325_252u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut read = 0;
    for whole in one_of_everything() {
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next() % 4 {
                let at = next() as usize % bytes.len();
                bytes[at] = [0, 0xff, 0x80, next() as u8][next() as usize % 4];
            }
            bytes.truncate(bytes.len() - (next() % 3 / 2 * (next() % 64)) as usize);
            if let Ok(mut reader) = Reader::of_file(Cursor::new(&bytes)) {
                read += usize::from(tally(&mut reader, &mut OddSegments, &mut |_| {}).is_ok());
            }
        }
    }
    assert!(read > 10_000, "{read} were read: most damage leaves a file of samples");
}
