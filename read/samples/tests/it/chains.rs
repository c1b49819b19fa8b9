//! Chains of calls are kept once each, with the places of the calls.

use lineup_samples::writer::{EventSpec, MappingSpec, SampleSpec, Writer, kind};
use lineup_samples::{Code, FileSegment, MappedFile, Reader, Segments, Tally, tally};
use std::io::Cursor;

const USER: u64 = (-512i64).cast_unsigned();
const KERNEL: u64 = (-128i64).cast_unsigned();

/// A file whose places are offsets in it.
struct Nothing;

impl Segments for Nothing {
    fn of(&mut self, _: &MappedFile) -> Vec<FileSegment> {
        Vec::new()
    }
}

fn mapping(start: u64, path: &str) -> MappingSpec<'_> {
    MappingSpec { process: 7, start, size_bytes: 0x1000, file_offset: 0, protection: 5, path, build_id: None }
}

fn sample(instruction: u64, call_chain: &[u64], time_ns: u64) -> SampleSpec {
    SampleSpec { instruction, process: 7, call_chain: call_chain.to_vec(), time_ns, ..SampleSpec::default() }
}

fn tallied(write: impl FnOnce(&mut Writer<Cursor<Vec<u8>>>)) -> Tally {
    let sample_type = kind::IP | kind::TID | kind::TIME | kind::CALLCHAIN;
    let event = EventSpec { sample_type, ..EventSpec::default() };
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[event]).unwrap();
    write(&mut writer);
    let bytes = writer.finish().unwrap().into_inner();
    tally(&mut Reader::of_file(Cursor::new(bytes)).unwrap(), &mut Nothing, &mut |_| {}).unwrap()
}

/// Places of each chain, innermost first, and samples, in an order of their own.
fn chains(tally: &Tally) -> Vec<(Vec<Code>, u64)> {
    let mut all: Vec<_> =
        tally.chains.iter().map(|(_, places, sum)| (places.collect::<Vec<_>>(), sum.samples)).collect();
    all.sort_unstable();
    all
}

#[test]
fn equal_chains_are_counted_together_and_callers_are_where_they_call() {
    let of_program = |writer: &mut Writer<_>| {
        writer.mapping(&mapping(0x5000, "/bin/program")).unwrap();
        writer.sample(&sample(0x5100, &[USER, 0x5100, 0x5205, 0x5305], 1)).unwrap();
        writer.sample(&sample(0x5100, &[USER, 0x5100, 0x5205, 0x5305], 2)).unwrap();
        writer.sample(&sample(0x5100, &[USER, 0x5100, 0x5305], 3)).unwrap();
        // Nothing but the sampled place, and not even that: an empty list at the record's end.
        writer.sample(&sample(0x5200, &[USER, 0x5200], 4)).unwrap();
        writer.sample(&sample(0x5200, &[], 5)).unwrap();
        // Nothing of the kernel was mapped.
        let both = [KERNEL, 0xffff_8000_0000_1000, USER, 0x5105, 0x5305];
        writer.sample(&sample(0x5100, &both, 6)).unwrap();
    };
    let at = |at| Code::File { file: 0, at };
    let expected = [
        (vec![at(0x100), at(0x105), at(0x304)], 1),
        (vec![at(0x100), at(0x204), at(0x304)], 2),
        (vec![at(0x100), at(0x304)], 1),
        (vec![at(0x200)], 2),
    ];
    let tally = tallied(of_program);
    assert_eq!((tally.events[0].sum.samples, tally.unreadable), (6, 0));
    assert_eq!(chains(&tally), expected);
}

#[test]
fn addresses_are_the_new_files_once_another_is_mapped_there() {
    let tally = tallied(|writer| {
        writer.mapping(&mapping(0x5000, "/bin/one")).unwrap();
        writer.mapping(&mapping(0x8000, "/bin/two")).unwrap();
        writer.sample(&sample(0x5100, &[USER, 0x5100, 0x8205], 1)).unwrap();
        writer.sample(&sample(0x5100, &[USER, 0x5100, 0x8205], 2)).unwrap();
        // The reader returns the records written two rounds before.
        writer.round().unwrap();
        writer.round().unwrap();
        writer.mapping(&mapping(0x8000, "/bin/three")).unwrap();
        writer.sample(&sample(0x5100, &[USER, 0x5100, 0x8205], 4)).unwrap();
    });
    let at = |file, at| Code::File { file, at };
    let expected = [(vec![at(0, 0x100), at(1, 0x204)], 2), (vec![at(0, 0x100), at(2, 0x204)], 1)];
    assert_eq!(chains(&tally), expected);
}
