//! Segments of one file share pages of it, so a mapping's offset in the file does not identify its segment.

use lineup_samples::data_source::Operation;
use lineup_samples::operand::Operand;
use lineup_samples::writer::{EventSpec, MappingSpec, SampleSpec, Writer, kind};
use lineup_samples::{Code, Data, FileSegment, MappedFile, Reader, Segments, tally};
use std::io::Cursor;

const READ: u32 = 1;
const WRITE: u32 = 2;
const EXECUTE: u32 = 4;
/// The address of the file's link address 0.
const BIAS: u64 = 0x5555_0000_0000;

/// A file of these segments, with an instruction at one address that loads where `BX` points.
struct Linked {
    segments: Vec<FileSegment>,
    instruction: u64,
}

impl Segments for Linked {
    fn of(&mut self, _: &MappedFile) -> Vec<FileSegment> {
        self.segments.clone()
    }

    fn operand(&mut self, _: u32, at: u64) -> Option<Operand> {
        (at == self.instruction).then_some(Operand {
            base: Some(1),
            index: None,
            displacement: 0,
            is_overwritten: false,
            operation: Operation::Load,
        })
    }
}

fn segment(file_offset: u64, address: u64, bytes: u64, is_code: bool) -> FileSegment {
    FileSegment { file_offset, file_bytes: bytes, address, memory_bytes: bytes, is_code }
}

/// The places found for a sample at a link address that accesses another one. Each mapping has an address, a size, an
/// offset and a protection.
fn found(mut linked: Linked, mappings: &[(u64, u64, u64, u32)], accessed: u64) -> (Code, Data) {
    let event = EventSpec {
        sample_type: kind::IP | kind::TID | kind::TIME | kind::REGS_INTR,
        interrupted_registers: 1 << 1,
        ..EventSpec::default()
    };
    let mut writer = Writer::file(Cursor::new(Vec::new()), &[event]).unwrap();
    for &(address, size_bytes, file_offset, protection) in mappings {
        let start = BIAS + address;
        let path = "/bin/program";
        let one =
            MappingSpec { process: 7, start, size_bytes, file_offset, protection, path, build_id: None };
        writer.mapping(&one).unwrap();
    }
    let sample = SampleSpec {
        instruction: BIAS + linked.instruction,
        process: 7,
        interrupted_registers: vec![BIAS + accessed],
        ..SampleSpec::default()
    };
    writer.sample(&sample).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let tally = tally(&mut Reader::of_file(Cursor::new(bytes)).unwrap(), &mut linked, &mut |_| {}).unwrap();
    let spot = tally.spots.keys().next().unwrap();
    (spot.code, spot.data)
}

/// As GNU ld links: constants in the file from 0x2000 on, and data from 0x2de8 on, which is the same page of the file.
fn by_gnu_ld() -> Linked {
    let segments = vec![
        segment(0, 0, 0x618, false),
        segment(0x1000, 0x1000, 0x2a9, true),
        segment(0x2000, 0x2000, 0xe4, false),
        segment(0x2de8, 0x3de8, 0x248, false),
    ];
    Linked { segments, instruction: 0x1100 }
}

#[test]
fn data_that_share_a_page_of_the_file_with_constants_are_found_where_the_file_lies() {
    let mappings = [
        (0, 0x5000, 0, READ),
        (0x1000, 0x1000, 0x1000, READ | EXECUTE),
        (0x2000, 0x1000, 0x2000, READ),
        (0x3000, 0x2000, 0x2000, READ | WRITE),
    ];
    let at = |at| (Code::File { file: 0, at: 0x1100 }, Data::File { file: 0, at });
    assert_eq!(found(by_gnu_ld(), &mappings, 0x4018), at(0x4018));
    assert_eq!(found(by_gnu_ld(), &mappings, 0x2010), at(0x2010));
    // The loader protects the data that it has relocated, which is recorded as one more mapping.
    let protected = [&mappings[..], &[(0x3000, 0x1000, 0x2000, READ)]].concat();
    assert_eq!(found(by_gnu_ld(), &protected, 0x3df0), at(0x3df0));
}

#[test]
fn code_that_shares_a_page_of_the_file_with_constants_is_told_from_them_by_being_executed() {
    // As lld links: code follows in the file where constants end, and lies a page further in memory.
    let linked = || Linked {
        segments: vec![segment(0, 0, 0x63c, false), segment(0x640, 0x1640, 0x170, true)],
        instruction: 0x1700,
    };
    let only_code = [(0x1000, 0x1000, 0, READ | EXECUTE)];
    let expected = (Code::File { file: 0, at: 0x1700 }, Data::File { file: 0, at: 0x200 });
    assert_eq!(found(linked(), &only_code, 0x200), expected);
    let both = [(0, 0x1000, 0, READ), only_code[0]];
    assert_eq!(found(linked(), &both, 0x200), expected);
}
