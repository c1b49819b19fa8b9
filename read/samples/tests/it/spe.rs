//! Traces of Arm's processors: every sample written into one is returned as written, in the order of time among the
//! other records. Cut-off records are left out and counted.

use crate::traced::{KIND, encoded, event, load};
use lineup_samples::data_source::{Level, Operation, Snoop};
use lineup_samples::record::Mode;
use lineup_samples::spe::{Access, Kind, Packet, TraceRecord, packet};
use lineup_samples::writer::{BufferOf, MappingSpec, PartSpec, Writer, kind};
use lineup_samples::{FileSegment, MappedFile, Reader, Record, SamplesError, Segments, tally};
use std::io::{Cursor, Read, Seek};

type Made = Writer<Cursor<Vec<u8>>>;

fn file(write: impl FnOnce(&mut Made)) -> Vec<u8> {
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[event()]).unwrap();
    write(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn reader(bytes: Vec<u8>) -> Reader<Cursor<Vec<u8>>> {
    Reader::of_file(Cursor::new(bytes)).unwrap()
}

/// The returned records, in words with their number and time.
fn told<R: Read>(reader: &mut Reader<R>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        all.push(match record {
            Record::Sample(sample) => match (sample.process, sample.thread) {
                (Some(process), Some(thread)) => {
                    format!("{:x} by {process}/{thread}", sample.instruction.unwrap_or_default())
                }
                _ => format!("{:x}", sample.instruction.unwrap_or_default()),
            },
            Record::Mapped(mapping) => format!("maps {}", mapping.path),
            Record::Forked { process, .. } => format!("forks {process}"),
            Record::Named { name, .. } => format!("named {name}"),
            Record::Traced { is_cut, has_collided } => format!("part {is_cut} {has_collided}"),
            other => format!("{other:?}"),
        });
    }
    all
}

/// Nine packets of one record, as the architecture's manual lays them out: in the kernel, with tags and long heads.
#[test]
fn a_record_says_all_that_its_packets_say() {
    let packets: [&[u8]; 10] = [
        // The program counter: not secure, level 2.
        &[0xb0, 0x10, 0x20, 0x30, 0x00, 0x00, 0x80, 0xff, 0xc0],
        // The address, in a head of two bytes, with a tag of the program's.
        &[0x20, 0xb2, 0x88, 0x77, 0x66, 0x55, 0xff, 0xff, 0xff, 0x5a],
        &[0xb3, 0x01, 0x02, 0x03, 0x04, 0x00, 0x00, 0x00, 0x80],
        &[0x65, 0x39, 0x30, 0x00, 0x00],
        // An exclusive store with order.
        &[0x49, 0x1b],
        &[0x52, 0x0e, 0x04],
        &[0x43, 0x0d],
        &[0x98, 0x2c, 0x01],
        &[0x99, 0x14, 0x00],
        &[0x71, 1, 0, 0, 0, 0, 0, 0, 0],
    ];
    let trace = packets.concat();
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        writer.timer(0, 3, 5).unwrap();
        writer.chunk(BufferOf::Cpu(6), 0, &trace).unwrap();
    });
    let mut reader = reader(bytes);
    let Some(Record::Sample(sample)) = reader.next_record().unwrap() else { panic!("a sample") };
    assert_eq!(sample.instruction, Some(0xffff_8000_0030_2010));
    assert_eq!(sample.address, Some(0xffff_ffff_5566_7788), "the tag is none of the address");
    assert_eq!(sample.physical_address, Some(0x0403_0201));
    assert_eq!((sample.mode, sample.thread, sample.cpu), (Mode::Kernel, Some(12345), Some(6)));
    assert_eq!((sample.is_precise, sample.weight.map(|weight| weight.full)), (true, Some(300)));
    let source = sample.data_source.unwrap();
    assert_eq!((source.operation, source.is_locked), (Operation::Store, true));
    // Events: access to the first level, which had not the line, and another socket.
    assert_eq!((source.level, source.missed, source.is_remote), (Level::L1, true, true));
    drop(sample);
    let carries = reader.header().events[0].carries();
    assert!(carries.address && carries.weight && carries.data_source && !carries.registers);
}

#[test]
fn the_clock_is_taken_wherever_it_is_told() {
    let times = |first_clock: bool| {
        let bytes = file(|writer| {
            if first_clock {
                writer.timer(1, 8, 100).unwrap();
            }
            writer.trace_info(KIND).unwrap();
            writer.chunk(BufferOf::Cpu(0), 0, &encoded(&[load(1, 50)])).unwrap();
        });
        let mut reader = reader(bytes);
        let Some(Record::Sample(sample)) = reader.next_record().unwrap() else { panic!("a sample") };
        sample.time_ns
    };
    assert_eq!(times(true), Some(300));
    assert_eq!(times(false), None, "ticks are no times");
}

#[test]
fn what_was_written_is_what_is_read() {
    let kinds = [
        Kind::Access(Access::default()),
        Kind::Access(Access { is_store: true, ..Access::default() }),
        Kind::Access(Access { is_atomic: true, is_ordered: true, ..Access::default() }),
        Kind::Access(Access { is_exclusive: true, ..Access::default() }),
        Kind::Access(Access { is_vector: true, ..Access::default() }),
        Kind::Branch { is_conditional: true, is_indirect: false },
        Kind::Other,
    ];
    let records = kinds.into_iter().zip(0u64..).map(|(kind, number)| TraceRecord {
        kind,
        branch_target: matches!(kind, Kind::Branch { .. }).then_some(0x40_2000 + number),
        branch_before: matches!(kind, Kind::Branch { .. }).then_some(0x40_1000),
        source: Some(0x108),
        ticks: number.is_multiple_of(2).then_some(number),
        ..load(number, number)
    });
    let records: Vec<TraceRecord> = records.collect();
    let mut trace = encoded(&records);
    let (mut read, mut own, mut at) = (Vec::new(), TraceRecord::default(), 0);
    while let Some((packet, length)) = packet(&trace[at..], at as u64) {
        at += length;
        own.see(packet);
        if matches!(packet, Packet::End | Packet::Timestamp(_)) {
            read.push(std::mem::take(&mut own));
        }
    }
    assert_eq!((read, at), (records, trace.len()));
    // A packet that ends early is no packet.
    trace.truncate(5);
    assert_eq!(packet(&trace, 0), None);
}

#[test]
fn unknown_packets_are_passed_over_by_their_length_and_alignment_by_where_they_stand() {
    assert_eq!(packet(&[0x5f, 1, 2, 3], 0), Some((Packet::Unknown, 3)));
    assert_eq!(packet(&[0xff, 0, 0, 0, 0, 0, 0, 0, 0], 0), Some((Packet::Unknown, 9)));
    assert_eq!(packet(&[0x3c], 0), Some((Packet::Unknown, 1)));
    assert_eq!(packet(&[0x21, 0xff, 0, 0, 0, 0, 0, 0, 0, 0], 0), Some((Packet::Unknown, 10)));
    assert_eq!(
        packet(&[0x21, 0xb2, 8, 0, 0, 0, 0, 0, 0, 0], 0),
        Some((Packet::Address { index: 10, value: 8 }, 10))
    );
    assert_eq!(packet(&[0x23, 0, 0, 0, 0, 0, 0, 0], 8), Some((Packet::Padding, 8)));
    assert_eq!(packet(&[0x20, 0, 1], 16), Some((Packet::Padding, 2)));
    assert_eq!(packet(&[0x23, 0, 0], 8), None);
    let aligned = [&[0x23, 0][..], &[0xee; 14], &encoded(&[load(1, 1)])].concat();
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        writer.chunk(BufferOf::Cpu(0), 4096, &[&[0x5e, 9, 9][..], &[0; 13], &aligned].concat()).unwrap();
    });
    assert_eq!(told(&mut reader(bytes)), ["401001 by 77/77"]);
}

/// Two CPUs, whose chunks come long after the events they describe.
fn two_cpus(writer: &mut Made) {
    writer.timer(0, 1, 0).unwrap();
    writer.trace_info(KIND).unwrap();
    let mapping = |path| MappingSpec {
        process: 77,
        start: 0x40_0000,
        size_bytes: 0x1000,
        file_offset: 0,
        protection: 5,
        path,
        build_id: None,
    };
    writer.mapping(&mapping("first")).unwrap();
    (1..8).for_each(|number| {
        writer.fork(900 + number, 77, 10 * u64::from(number)).unwrap();
        writer.round().unwrap();
    });
    let first: Vec<TraceRecord> = [5, 25, 45].map(|time| load(time, time)).into();
    writer.chunk(BufferOf::Cpu(0), 0, &encoded(&first)).unwrap();
    writer.chunk(BufferOf::Cpu(1), 0, &encoded(&[load(7, 7), load(44, 44)])).unwrap();
    writer.round().unwrap();
    writer.chunk(BufferOf::Cpu(1), 128, &encoded(&[load(99, 99)])).unwrap();
}

#[test]
fn samples_of_traces_come_in_the_order_of_time_among_all_other_records() {
    let expected = [
        "maps first",
        "401005 by 77/77",
        "401007 by 77/77",
        "forks 901",
        "forks 902",
        "401019 by 77/77",
        "forks 903",
        "forks 904",
        "40102c by 77/77",
        "40102d by 77/77",
        "forks 905",
        "forks 906",
        "forks 907",
        "401063 by 77/77",
    ];
    assert_eq!(told(&mut reader(file(two_cpus))), expected);
    // A file whose records perf did not finish holds the same.
    let mut unended = file(two_cpus);
    unended[48..56].fill(0);
    let end = unended.len() - 16;
    assert_eq!(told(&mut reader(unended[..end].to_vec()))[..13], expected[..13]);
}

#[test]
fn a_pipe_tells_the_same_samples_as_far_as_they_are_there_in_the_order_of_time() {
    let mut writer = Writer::pipe(Cursor::new(Vec::new()), &[event()]).unwrap();
    two_cpus(&mut writer);
    let bytes = writer.finish_pipe().into_inner();
    let mut piped = Reader::of_pipe(&bytes[..]).unwrap();
    let all = told(&mut piped);
    let samples =
        |all: &[String]| all.iter().filter(|one| one.starts_with("4010")).cloned().collect::<Vec<_>>();
    let in_file = told(&mut reader(bytes.clone()));
    assert_eq!(samples(&all), samples(&in_file));
    assert_eq!(all[0], "maps first");
    assert_eq!(all.len(), in_file.len());
    assert_eq!(piped.skipped_auxiliary_bytes(), 0);
}

#[test]
fn a_record_that_its_part_cuts_off_is_left_out_and_counted_and_the_next_part_is_read() {
    let whole = encoded(&[load(1, 1), load(2, 2)]);
    let cut = &whole[..100];
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        let part = PartSpec { size_bytes: 100, flags: 1 | 4, process: 77, thread: 77, ..PartSpec::default() };
        writer.part(&part).unwrap();
        let second = PartSpec { position: 100, size_bytes: 128, flags: 8, ..part };
        writer.part(&second).unwrap();
        writer.chunk(BufferOf::Cpu(0), 0, &[cut, &encoded(&[load(3, 3), load(4, 4)])].concat()).unwrap();
        // This one ends within a record, and the file describes no part of it.
        writer.chunk(BufferOf::Cpu(1), 0, &whole[..96]).unwrap();
    });
    let mut reader = reader(bytes);
    let all = told(&mut reader);
    let samples = ["401001 by 77/77", "401003 by 77/77", "401004 by 77/77", "401001 by 77/77"];
    assert_eq!(
        all.iter().filter(|one| one.contains("by")).collect::<Vec<_>>(),
        samples.iter().collect::<Vec<_>>()
    );
    assert_eq!(reader.unreadable_traced(), 2);
    assert_eq!(
        all.iter().filter(|one| one.starts_with("part")).collect::<Vec<_>>(),
        ["part true false", "part false true"]
    );
}

#[test]
fn a_chunk_that_the_file_ends_in_is_read_to_its_last_whole_record() {
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        writer
            .chunk(BufferOf::Cpu(0), 0, &encoded(&(0..10).map(|time| load(time, time)).collect::<Vec<_>>()))
            .unwrap();
    });
    let start = 104 + 8 + 144 + 32 + 48;
    for cut in [start + 1, start + 64, start + 100, start + 639] {
        let mut reader = reader(bytes[..cut].to_vec());
        let mut count = 0;
        while let Ok(Some(record)) = reader.next_record() {
            count += usize::from(matches!(record, Record::Sample(_)));
        }
        // All of a record but its padding is enough.
        assert_eq!(count, (cut - start + 5) / 64, "cut at {cut}");
    }
}

#[test]
fn who_ran_is_told_by_the_record_else_by_the_buffer_by_switches_or_by_who_wrote_the_part() {
    let nameless = |number, ticks| TraceRecord { context: None, ..load(number, ticks) };
    let run = |write: &dyn Fn(&mut Made), of: BufferOf| {
        let mut reader = reader(file(|writer| {
            writer.timer(0, 1, 0).unwrap();
            writer.trace_info(KIND).unwrap();
            writer.fork(77, 1, 1).unwrap();
            write(writer);
            writer.chunk(of, 0, &encoded(&[nameless(1, 10), nameless(2, 30)])).unwrap();
        }));
        let all: Vec<String> = told(&mut reader).into_iter().filter(|one| one.starts_with("4010")).collect();
        (all, reader.guessed_threads())
    };
    let at = PartSpec { cpu: 3, process: 70, thread: 71, time_ns: 5, size_bytes: 128, ..PartSpec::default() };
    let named = |one: &str, other: &str| vec![format!("401001{one}"), format!("401002{other}")];
    assert_eq!(run(&|_| {}, BufferOf::Thread(77)), (named(" by 77/77", " by 77/77"), 0));
    assert_eq!(run(&|_| {}, BufferOf::Cpu(3)), (named("", ""), 2));
    let started = |writer: &mut Made| writer.started(&at).unwrap();
    assert_eq!(run(&started, BufferOf::Cpu(3)), (named(" by 70/71", " by 70/71"), 2));
    let parted = |writer: &mut Made| {
        writer.started(&at).unwrap();
        writer.part(&PartSpec { thread: 72, time_ns: 40, ..at }).unwrap();
    };
    assert_eq!(run(&parted, BufferOf::Cpu(3)), (named(" by 70/72", " by 70/72"), 2));
    let switched = |writer: &mut Made| {
        parted(writer);
        writer.switched(&at, 80, 81).unwrap();
        writer.switched(&PartSpec { time_ns: 20, ..at }, 90, 91).unwrap();
    };
    assert_eq!(run(&switched, BufferOf::Cpu(3)), (named(" by 80/81", " by 90/91"), 0));
}

#[test]
fn a_thread_is_of_the_process_that_a_trace_was_begun_for() {
    let bytes = file(|writer| {
        writer.timer(0, 1, 0).unwrap();
        writer.trace_info(KIND).unwrap();
        writer.started(&PartSpec { process: 50, thread: 77, ..PartSpec::default() }).unwrap();
        writer.chunk(BufferOf::Cpu(0), 0, &encoded(&[load(1, 9)])).unwrap();
    });
    assert!(told(&mut reader(bytes)).contains(&"401001 by 50/77".to_owned()));
}

#[test]
fn without_a_clock_samples_come_before_what_the_kernel_wrote_after_them() {
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        writer.fork(901, 77, 10).unwrap();
        let part = PartSpec { cpu: 1, size_bytes: 64, time_ns: 15, ..PartSpec::default() };
        writer.part(&part).unwrap();
        writer.part(&PartSpec { position: 64, time_ns: 35, ..part }).unwrap();
        writer.fork(902, 77, 20).unwrap();
        writer.fork(903, 77, 40).unwrap();
        writer.chunk(BufferOf::Cpu(1), 0, &encoded(&[load(1, 1), load(2, 2)])).unwrap();
    });
    let all = told(&mut reader(bytes));
    let place = |what: &str| all.iter().position(|one| one.starts_with(what)).unwrap();
    assert!(place("forks 901") < place("401001") && place("401001") < place("forks 902"), "{all:?}");
    assert!(place("forks 902") < place("401002") && place("401002") < place("forks 903"), "{all:?}");
}

#[test]
fn each_processor_has_its_own_numbers_of_sources() {
    let source = |write: &dyn Fn(&mut Made)| {
        let mut reader = reader(file(|writer| {
            write(writer);
            let peer = TraceRecord { source: Some(0x9), events: 1 << 2 | 1 << 3, ..load(1, 1) };
            writer.chunk(BufferOf::Cpu(1), 0, &encoded(&[peer])).unwrap();
        }));
        let Some(Record::Sample(sample)) = reader.next_record().unwrap() else { panic!("a sample") };
        sample.data_source.map(|source| (source.level, source.snoop, source.is_hitm())).unwrap()
    };
    let peer = (Level::Cache, Snoop::Peer, true);
    assert_eq!(source(&|writer| writer.trace_info_of(KIND, &[0, 0x410f_d4f0]).unwrap()), peer);
    let by_events = (Level::L1, Snoop::Unknown, false);
    assert_eq!(source(&|writer| writer.trace_info_of(KIND, &[0x410f_d4f0, 0]).unwrap()), by_events);
    assert_eq!(source(&|writer| writer.trace_info(KIND).unwrap()), by_events, "the processor is not told");
    let in_header = |writer: &mut Made| {
        writer.trace_info(KIND).unwrap();
        writer.processor("0x00000000413fd0c1");
    };
    assert_eq!(source(&in_header), peer);
}

#[test]
fn what_is_no_access_has_neither_weight_nor_source() {
    let branch = Kind::Branch { is_conditional: false, is_indirect: false };
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        let record = TraceRecord { kind: branch, address: None, physical_address: None, ..load(1, 1) };
        writer.chunk(BufferOf::Cpu(0), 0, &encoded(&[record])).unwrap();
    });
    let mut reader = reader(bytes);
    let Some(Record::Sample(sample)) = reader.next_record().unwrap() else { panic!("a sample") };
    assert_eq!((sample.weight, sample.data_source, sample.address), (None, None, None));
}

#[test]
fn a_trace_of_which_nothing_can_be_read_is_refused_when_there_is_nothing_else() {
    let in_vain = |with_clock: bool| {
        let event = event();
        let clock = lineup_samples::writer::EventSpec {
            sample_type: kind::IDENTIFIER | kind::IP | kind::TIME,
            ..lineup_samples::writer::EventSpec::default()
        };
        let mut writer = Writer::file(Cursor::new(Vec::new()), &[event, clock]).unwrap();
        writer.trace_info(KIND).unwrap();
        if with_clock {
            let sample = lineup_samples::writer::SampleSpec { event: 1, ..Default::default() };
            writer.sample(&sample).unwrap();
        }
        writer.chunk(BufferOf::Cpu(0), 0, &[0xff; 4096]).unwrap();
        let mut reader = reader(writer.finish().unwrap().into_inner());
        tally(&mut reader, &mut NoSegments, &mut |_| {}).map(|tally| tally.unreadable_traced)
    };
    let refused = in_vain(false).unwrap_err();
    assert!(matches!(refused, SamplesError::Undecodable { bytes: 4096 }), "{refused}");
    assert_eq!(in_vain(true).unwrap(), 1, "what is left of the trace");
}

#[test]
fn traces_of_others_are_passed_over_as_before() {
    let bytes = file(|writer| {
        writer.chunk(BufferOf::Cpu(0), 0, &encoded(&[load(1, 1)])).unwrap();
    });
    let mut reader = reader(bytes);
    assert!(told(&mut reader).is_empty());
    assert_eq!(reader.skipped_auxiliary_bytes(), 64);
}

struct NoSegments;

impl Segments for NoSegments {
    fn of(&mut self, _file: &MappedFile) -> Vec<FileSegment> {
        Vec::new()
    }
}

#[test]
fn a_trace_is_counted_as_other_samples_are() {
    let records: Vec<TraceRecord> = (0..300)
        .map(|number| TraceRecord {
            address: Some(0x7f00_0000_0000),
            source: Some(0x9),
            ..load(number % 3, number)
        })
        .collect();
    let bytes = file(|writer| {
        writer.timer(0, 1, 0).unwrap();
        writer.trace_info_of(KIND, &[0x410f_d4f0; 2]).unwrap();
        writer.chunk(BufferOf::Cpu(1), 0, &encoded(&records)).unwrap();
    });
    let tally = tally(&mut reader(bytes), &mut NoSegments, &mut |_| {}).unwrap();
    let event = &tally.events[0];
    assert_eq!((event.sum.samples, event.precise, event.in_kernel), (300, 300, 0));
    assert_eq!(event.sum.weight, records.iter().map(|one| u64::from(one.total_cycles.unwrap())).sum::<u64>());
    assert_eq!(tally.lines[&(77, 0x7f00_0000_0000)].by_cpu, [(1, 300)].into());
    assert_eq!(tally.processes[&77].samples, 300);
    assert_eq!(tally.span_ns, Some((0, 299)));
}

/// Damage at any byte is refused, or read past.
#[test]
fn damage_anywhere_is_refused_or_read_past() {
    fn read<R: Read + Seek>(input: R) {
        if let Ok(mut reader) = Reader::of_file(input) {
            while let Ok(Some(_)) = reader.next_record() {}
        }
    }
    let whole = file(two_cpus);
    for at in 100..whole.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            read(Cursor::new(bytes));
        }
        read(Cursor::new(whole[..at].to_vec()));
    }
}

/// More bytes than are read at once, so that packets cross the reads.
#[test]
fn long_chunks_are_read_in_pieces() {
    let records: Vec<TraceRecord> = (0..30_000).map(|number| load(number % 4096, number)).collect();
    // 256 KiB are read at once, which end within a counter then.
    let mut trace = vec![0; 20];
    trace.extend(encoded(&records));
    let bytes = file(|writer| {
        writer.trace_info(KIND).unwrap();
        writer.chunk(BufferOf::Cpu(0), 0, &trace).unwrap();
        writer.chunk(BufferOf::Cpu(1), 0, &trace).unwrap();
    });
    let mut reader = reader(bytes);
    let mut counts = [0u64; 2];
    while let Some(record) = reader.next_record().unwrap() {
        let Record::Sample(sample) = record else { panic!("only samples") };
        let count = &mut counts[sample.cpu.unwrap() as usize];
        assert_eq!(sample.instruction, Some(0x40_1000 + *count % 4096));
        *count += 1;
    }
    assert_eq!((counts, reader.unreadable_traced()), ([30_000; 2], 0));
}
