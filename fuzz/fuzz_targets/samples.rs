//! Any bytes are samples or are refused: no panic, no unbounded allocation. Half of the inputs get the head of a file that
//! describes an event, with what its samples carry from the input, so that records are reached. Of one that has Arm's traces
//! the input is cut into parts, chunks and other records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lineup_samples::code_names::CodeNames;
use lineup_samples::data_source::Operation;
use lineup_samples::operand::Operand;
use lineup_samples::writer::{BufferOf, EventSpec, PartSpec, Writer};
use lineup_samples::{FileSegment, MappedFile, Reader, Record, Segments, tally};
use std::io::Cursor;

struct SomeSegments;

impl Segments for SomeSegments {
    fn of(&mut self, file: &MappedFile) -> Vec<FileSegment> {
        let size = file.path.len() as u64;
        let one = FileSegment {
            file_offset: 0,
            file_bytes: size << 12,
            address: size << 20,
            memory_bytes: size << 13,
            is_code: size.is_multiple_of(4),
        };
        if size.is_multiple_of(2) { vec![one] } else { Vec::new() }
    }

    fn operand(&mut self, file: u32, at: u64) -> Option<Operand> {
        let some = |what: u64| (at >> what & 1 == 1).then_some(at as u32 % 40);
        Some(Operand {
            base: some(0),
            index: some(1).map(|index| (index, at as i64)),
            displacement: (at << (file % 64)) as i64,
            is_overwritten: at & 4 == 0,
            operation: Operation::Load,
        })
    }
}

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    if let Some((kinds, records)) = bytes.split_first_chunk::<24>() {
        for file in [with_head(kinds, records), with_pipe_head(kinds, records)].into_iter().flatten() {
            read(&file);
        }
        for file in with_traces(kinds, records).into_iter().flatten() {
            read(&file);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = (CodeNames::of_jit_map(&text).at(0x1000), CodeNames::of_kallsyms(&text).at(0));
    let _ = CodeNames::of_module(&text, "m", 0x1000..0x2000).at(0);
});

fn event(kinds: &[u8; 24]) -> EventSpec {
    let word = |at: usize| u64::from_le_bytes(kinds[at..at + 8].try_into().expect("eight bytes"));
    EventSpec {
        sample_type: word(0),
        user_registers: word(8),
        interrupted_registers: word(16),
        ..EventSpec::default()
    }
}

fn with_head(kinds: &[u8; 24], records: &[u8]) -> Option<Vec<u8>> {
    let empty = Writer::file(Cursor::new(Vec::new()), &[event(kinds)]).ok()?.finish().ok()?.into_inner();
    // Nothing stands behind the records then: the file looks as if perf had not ended it.
    let mut file = empty.get(..256)?.to_vec();
    file[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    file.extend_from_slice(records);
    Some(file)
}

fn with_pipe_head(kinds: &[u8; 24], records: &[u8]) -> Option<Vec<u8>> {
    let mut pipe = Writer::pipe(Vec::new(), &[event(kinds)]).ok()?.finish_pipe();
    pipe.extend_from_slice(records);
    Some(pipe)
}

/// A file and a pipe with traces. Bytes of the input say what comes next, and how much of the input goes into it.
fn with_traces(kinds: &[u8; 24], records: &[u8]) -> Option<[Vec<u8>; 2]> {
    let mut file = Writer::file(Cursor::new(Vec::new()), &[event(kinds)]).ok()?;
    let mut pipe = Writer::pipe(Cursor::new(Vec::new()), &[event(kinds)]).ok()?;
    traces(&mut file, kinds, records)?;
    traces(&mut pipe, kinds, records)?;
    Some([file.finish().ok()?.into_inner(), pipe.finish_pipe().into_inner()])
}

fn traces(writer: &mut Writer<Cursor<Vec<u8>>>, kinds: &[u8; 24], mut rest: &[u8]) -> Option<()> {
    let [first, second, ..] = *kinds;
    if first & 1 == 0 {
        writer.timer((first >> 1).into(), second.into(), 7).ok()?;
    }
    match first & 2 {
        0 => writer.trace_info(1).ok()?,
        _ => writer.trace_info_of(1, &[0x410f_d4f0, 0x480f_d060, 0xc00f_ac40]).ok()?,
    }
    let mut position = u64::from(second) << (first % 57);
    while let Some(([what, size], behind)) = rest.split_first_chunk::<2>() {
        let cpu = u32::from(what >> 4 & 3);
        let (trace, behind) = behind.split_at(usize::from(*size).min(behind.len()));
        rest = behind;
        let at = PartSpec {
            position,
            size_bytes: u64::from(*size) / (1 + u64::from(what >> 6)),
            flags: (*size).into(),
            cpu,
            process: 7,
            thread: u32::from(*size),
            time_ns: u64::from(*size) << (what >> 3),
        };
        match what & 7 {
            0..=2 => writer.chunk(BufferOf::Cpu(cpu), position, trace),
            3 => writer.chunk(BufferOf::Thread(cpu), position, trace),
            4 => writer.part(&at),
            5 => writer.started(&at),
            6 => writer.switched(&at, 7, 8),
            _ => writer.round(),
        }
        .ok()?;
        position = position.wrapping_add(if what & 8 == 0 { trace.len() as u64 } else { 0 });
    }
    Some(())
}

fn read(bytes: &[u8]) {
    if let Ok(mut reader) = Reader::of_file(Cursor::new(bytes)) {
        while let Ok(Some(record)) = reader.next_record() {
            if let Record::Sample(sample) = record {
                let registers = [sample.user_registers(), sample.interrupted_registers()];
                let values = registers.iter().flatten().filter_map(|own| own.get(7));
                let _ = (values.count(), sample.branches().count(), sample.call_chain().len());
            }
        }
    }
    if let Ok(mut reader) = Reader::of_file(Cursor::new(bytes)) {
        let _ = tally(&mut reader, &mut SomeSegments, &mut |_| {});
    }
}
