//! Lineup computes addresses that samples do not carry from their registers, where those determine the operand's
//! address.

use lineup_samples::data_source::Operation;
use lineup_samples::operand::Operand;
use lineup_samples::writer::{EventSpec, MappingSpec, SampleSpec, Writer, kind};
use lineup_samples::{Code, Data, FileSegment, MappedFile, Reader, Segments, Tally, tally};
use std::io::Cursor;

/// Base and index, as x86-64 numbers them: `BX` and `R8`.
const REGISTERS: u64 = 1 << 1 | 1 << 16;
const START: u64 = 0x5000_0000;

/// A file of one segment, and instructions by their addresses in it.
struct Known(Vec<(u64, Operand)>);

impl Segments for Known {
    fn of(&mut self, _: &MappedFile) -> Vec<FileSegment> {
        vec![FileSegment {
            file_offset: 0,
            file_bytes: 0x4000,
            address: 0,
            memory_bytes: 0x4000,
            is_code: true,
        }]
    }

    fn operand(&mut self, file: u32, at: u64) -> Option<Operand> {
        assert_eq!(file, 0);
        self.0.iter().find(|(own, _)| *own == at).map(|(_, operand)| *operand)
    }
}

/// `8(%rbx,%r8,4)`, loaded.
fn operand() -> Operand {
    Operand {
        base: Some(1),
        index: Some((16, 4)),
        displacement: 8,
        is_overwritten: false,
        operation: Operation::Load,
    }
}

fn tallied(sample_type: u64, known: Known, samples: &[SampleSpec]) -> Tally {
    let event = EventSpec {
        sample_type: kind::IP | kind::TID | kind::TIME | sample_type,
        interrupted_registers: REGISTERS,
        ..EventSpec::default()
    };
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[event]).unwrap();
    let mapping = MappingSpec {
        process: 7,
        start: START,
        size_bytes: 0x4000,
        file_offset: 0,
        protection: 5,
        path: "/bin/program",
        build_id: None,
    };
    writer.mapping(&mapping).unwrap();
    samples.iter().for_each(|sample| writer.sample(sample).unwrap());
    let bytes = writer.finish().unwrap().into_inner();
    let mut known = known;
    tally(&mut Reader::of_file(Cursor::new(bytes)).unwrap(), &mut known, &mut |_| {}).unwrap()
}

fn sample(at: u64, base: u64, index: u64) -> SampleSpec {
    SampleSpec {
        instruction: START + at,
        process: 7,
        interrupted_registers: vec![base, index],
        ..SampleSpec::default()
    }
}

/// Instruction and data of all places, in their order.
fn places(tally: &Tally) -> Vec<(Code, Data, Operation)> {
    let mut all: Vec<_> =
        tally.spots.keys().map(|spot| (spot.code, spot.data, spot.source.operation)).collect();
    all.sort_unstable();
    all
}

#[test]
fn base_index_and_displacement_come_to_a_place_in_the_file_or_in_memory() {
    let absolute = Operand { base: None, index: None, displacement: 0x3000, ..operand() };
    let known = Known(vec![(0x10, operand()), (0x20, absolute)]);
    let samples = [
        sample(0x10, START + 0x2000, 3),
        sample(0x10, 0x7f00_0000_0000, 1),
        sample(0x20, 0, 0),
        sample(0x30, 0, 0),
    ];
    let tally = tallied(kind::REGS_INTR, known, &samples);
    let code = |at| Code::File { file: 0, at };
    let expected = [
        (code(0x10), Data::File { file: 0, at: 0x2014 }, Operation::Load),
        (code(0x10), Data::Memory, Operation::Load),
        (code(0x20), Data::File { file: 0, at: 0x3000 }, Operation::Load),
        (code(0x30), Data::Unsaid, Operation::Unknown),
    ];
    assert_eq!(places(&tally), expected);
    assert_eq!(tally.worked_out, 3);
    assert_eq!(tally.spots.keys().filter(|spot| spot.is_worked_out).count(), 3);
}

#[test]
fn registers_behind_an_instruction_that_set_them_say_nothing() {
    let loaded = Operand { is_overwritten: true, ..operand() };
    let of = |is_precise: bool, operand: Operand| {
        let sample = SampleSpec { is_precise, ..sample(0x10, START, 0) };
        tallied(kind::REGS_INTR, Known(vec![(0x10, operand)]), &[sample]).worked_out
    };
    assert_eq!((of(true, loaded), of(false, loaded), of(true, operand())), (0, 1, 1));
}

#[test]
fn an_address_that_was_sampled_is_taken_as_it_is_and_without_registers_there_is_none() {
    let known = || Known(vec![(0x10, operand())]);
    let sampled = SampleSpec { address: START + 0x100, ..sample(0x10, START + 0x2000, 0) };
    let tally = tallied(kind::REGS_INTR | kind::ADDR, known(), &[sampled]);
    assert_eq!(tally.worked_out, 0);
    assert_eq!(tally.spots.keys().next().unwrap().data, Data::File { file: 0, at: 0x100 });
    assert_eq!(tallied(0, known(), &[sample(0x10, START, 0)]).worked_out, 0);
}

#[test]
fn the_kernels_instructions_are_left_alone() {
    let sample = SampleSpec { is_kernel: true, ..sample(0x10, START, 0) };
    assert_eq!(tallied(kind::REGS_INTR, Known(vec![(0x10, operand())]), &[sample]).worked_out, 0);
}
