//! The time and memory for reading a large file of samples: `cargo bench -p lineup-samples`, with the file's size in
//! MiB as an argument; 1024 when none is given. With the argument `traces` the samples are in traces of Arm's
//! processors.

use lineup_samples::spe::{Access, Kind, TraceRecord};
use lineup_samples::writer::{BufferOf, EventSpec, MappingSpec, SampleSpec, Writer, kind, source};
use lineup_samples::{FileSegment, MappedFile, Reader, Segments, tally};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

const SAMPLE_BYTES: u64 = 96;
const SAMPLES_A_ROUND: u64 = 20_000;

struct OneSegment;

impl Segments for OneSegment {
    fn of(&mut self, _file: &MappedFile) -> Vec<FileSegment> {
        vec![FileSegment {
            file_offset: 0,
            file_bytes: 1 << 20,
            address: 0,
            memory_bytes: 2 << 20,
            is_code: true,
        }]
    }
}

/// Numbers that look random, and addresses by them.
struct Random(u64);

impl Random {
    fn next(&mut self) -> (u64, u64) {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let in_data = 0x50_0000 + self.0 % 40_000;
        let on_heap = 0x7f00_0000_0000 + (self.0 >> 20) % (1 << 32);
        (self.0, if self.0 & 1 == 0 { in_data } else { on_heap })
    }
}

fn program() -> MappingSpec<'static> {
    MappingSpec {
        process: 7,
        start: 0x40_0000,
        size_bytes: 1 << 20,
        file_offset: 0,
        protection: 5,
        path: "/usr/bin/program",
        build_id: None,
    }
}

/// Loads and stores of 5,000 instructions: a half of the addresses in variables, a half all over the heap.
fn write(path: &Path, mib: u64) -> u64 {
    let event = EventSpec { name: "loads".to_owned(), sample_type: kind::MEMORY, ..EventSpec::default() };
    let mut writer = Writer::file(BufWriter::new(File::create(path).unwrap()), &[event]).unwrap();
    writer.mapping(&program()).unwrap();
    let count = (mib << 20) / SAMPLE_BYTES;
    let sources =
        [source::LOAD_L1, source::LOAD_L3, source::LOAD_MEMORY, source::LOAD_HITM, source::STORE_L1];
    let mut random = Random(88_172_645_463_325_252);
    for number in 0..count {
        let (random, address) = random.next();
        let sample = SampleSpec {
            instruction: 0x40_0000 + random % 5000 * 4,
            process: 7,
            thread: 7,
            // As the kernel's buffers are read: one CPU after the other, each in order.
            time_ns: number / SAMPLES_A_ROUND * SAMPLES_A_ROUND + number * 4 % SAMPLES_A_ROUND,
            address,
            cpu: (number % 4) as u32,
            period: 1000,
            weight: random % 400,
            source: sources[(random % 5) as usize],
            ..SampleSpec::default()
        };
        writer.sample(&sample).unwrap();
        if number % SAMPLES_A_ROUND == SAMPLES_A_ROUND - 1 {
            writer.round().unwrap();
        }
    }
    writer.finish().unwrap();
    count
}

/// The same loads and stores in traces of 64 CPUs, of which each chunk has 1 MiB.
fn write_traces(path: &Path, mib: u64) -> u64 {
    const CPUS: u32 = 64;
    const RECORD_BYTES: u64 = 64;
    let event = EventSpec {
        name: "arm_spe_0//".to_owned(),
        kind: 8,
        sample_type: kind::MEMORY,
        ..EventSpec::default()
    };
    let mut writer = Writer::file(BufWriter::new(File::create(path).unwrap()), &[event]).unwrap();
    writer.timer(0, 40, 0).unwrap();
    writer.trace_info_of(8, &[0x410f_d4f0; CPUS as usize]).unwrap();
    writer.mapping(&program()).unwrap();
    let mut random = Random(88_172_645_463_325_252);
    let mut trace = Vec::new();
    for chunk in 0..mib {
        trace.clear();
        for number in 0..(1 << 20) / RECORD_BYTES {
            let (random, address) = random.next();
            let access = Access { is_store: random % 5 == 4, ..Access::default() };
            let record = TraceRecord {
                instruction: Some(0x40_0000 + random % 5000 * 4),
                level: Some(0),
                address: Some(address),
                kind: Kind::Access(access),
                events: 0b110,
                source: Some([0x0, 0x8, 0x9, 0xb, 0xe][(random % 5) as usize]),
                total_cycles: Some((random % 400) as u16),
                context: Some(7),
                ticks: Some(chunk / u64::from(CPUS) * (1 << 20) + number * 64),
                ..TraceRecord::default()
            };
            record.encode(&mut trace);
        }
        let position = (chunk / u64::from(CPUS)) << 20;
        writer.chunk(BufferOf::Cpu((chunk % u64::from(CPUS)) as u32), position, &trace).unwrap();
    }
    writer.finish().unwrap();
    (mib << 20) / RECORD_BYTES
}

/// Processor time of this process, in seconds; the system counts hundredths.
fn processor_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let behind_name = stat.rsplit(')').next().unwrap();
    let fields: Vec<f64> =
        behind_name.split_whitespace().skip(11).take(2).map(|one| one.parse().unwrap()).collect();
    fields.iter().sum::<f64>() / 100.0
}

/// The most memory that this process had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let mib = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(1024);
    let folder = tempfile::tempdir_in(option_env!("CARGO_TARGET_TMPDIR").unwrap_or("/tmp")).unwrap();
    let path = folder.path().join("samples.data");
    let has_traces = std::env::args().any(|argument| argument == "traces");
    let count = if has_traces { write_traces(&path, mib) } else { write(&path, mib) };
    let (begun, processor_before) = (Instant::now(), processor_s());
    let mut reader = Reader::of_file(File::open(&path).unwrap()).unwrap();
    let read = tally(&mut reader, &mut OneSegment, &mut |_| {}).unwrap();
    let (took, processor) = (begun.elapsed(), processor_s() - processor_before);
    assert_eq!(read.events[0].sum.samples, count);
    println!(
        "{count} samples, {mib} MiB: {:.2} s, of them {processor:.2} s on a processor, {} MiB at most; {} places, {} lines, {} folded",
        took.as_secs_f64(),
        peak_kib() / 1024,
        read.spots.len(),
        read.lines.len(),
        read.folded + read.folded_lines,
    );
}
