//! Perf decodes the traces that the writer makes: packet by packet, as samples, and summed up. Its output agrees with
//! the written records and with our own reader.

use crate::perf::{PROGRAM, output, row, spellings};
use crate::traced::{KIND, encoded, event, load};
use lineup_samples::data_source::Operation;
use lineup_samples::spe::{Access, Kind, TraceRecord};
use lineup_samples::writer::{BufferOf, PartSpec, Writer};
use lineup_samples::{FileSegment, MappedFile, Reader, Record, Segments, tally};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// A Neoverse N1, whose sources the perf of Linux 6.1 knows.
const PROCESSOR: &str = "0x00000000413fd0c1";
const SOURCES: [u16; 7] = [0x0, 0x8, 0x9, 0xb, 0xc, 0xd, 0xe];
/// Ticks of 40 ns, from this time on.
const ZERO_NS: u64 = 1000;

fn planted() -> Vec<TraceRecord> {
    let record = |number: u64| TraceRecord {
        kind: Kind::Access(Access {
            is_store: number % 5 == 4,
            is_exclusive: number.is_multiple_of(10),
            is_ordered: number.is_multiple_of(20),
            ..Access::default()
        }),
        source: (number % 5 != 4).then(|| SOURCES[(number % 7) as usize]),
        events: 0b110 | if number.is_multiple_of(3) { 0b1_0000 } else { 0b11_1000 },
        total_cycles: Some((number % 11) as u16 * 30 + 1),
        ..load(number, 1000 + number)
    };
    (0..280).map(record).collect()
}

/// In chunks of two CPUs.
fn write(path: &Path, records: &[TraceRecord]) {
    let mut writer = Writer::file(BufWriter::new(File::create(path).unwrap()), &[event()]).unwrap();
    writer.timer(10, 40 << 10, ZERO_NS).unwrap();
    writer.trace_info(KIND).unwrap();
    writer.name(77, "planted").unwrap();
    writer.mapping(&PROGRAM).unwrap();
    let mut positions = [0; 2];
    for (number, records) in records.chunks(70).enumerate() {
        let (cpu, trace) = (number % 2, encoded(records));
        let part = PartSpec {
            position: positions[cpu],
            size_bytes: trace.len() as u64,
            cpu: cpu as u32,
            process: 77,
            thread: 77,
            time_ns: 40 * (1000 + 70 * (number as u64 + 1)),
            flags: 0,
        };
        writer.part(&part).unwrap();
        writer.chunk(BufferOf::Cpu(cpu as u32), positions[cpu], &trace).unwrap();
        positions[cpu] += trace.len() as u64;
        writer.round().unwrap();
    }
    writer.processor(PROCESSOR);
    writer.finish().unwrap();
}

fn is_store(record: &TraceRecord) -> bool {
    matches!(record.kind, Kind::Access(Access { is_store: true, .. }))
}

#[test]
fn perf_prints_every_packet_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traced.data");
    let branch = TraceRecord {
        kind: Kind::Branch { is_conditional: true, is_indirect: true },
        branch_target: Some(0xffff_8000_0010_2000),
        instruction: Some(0xffff_8000_0010_1000),
        level: Some(2),
        address: None,
        physical_address: None,
        ticks: None,
        ..load(0, 0)
    };
    let atomic = Access { is_atomic: true, is_ordered: true, ..Access::default() };
    let records = [
        TraceRecord { kind: Kind::Access(atomic), source: Some(0x10d), ..load(1, 1000) },
        branch,
        TraceRecord { kind: Kind::Other, address: None, ..load(2, 1001) },
    ];
    write(&path, &records);
    let printed = output("perf", &["script", "-D", "-i", path.to_str().unwrap()]);
    let packet = |line: &str| {
        let (bytes, told) = line.strip_prefix(".  ")?.split_once(": ")?.1.split_at_checked(49)?;
        let is_packet = bytes.trim_start().len() >= 2 && !told.trim().is_empty();
        is_packet.then(|| told.trim().to_owned())
    };
    let behind = printed.split("ARM SPE data").nth(1).unwrap().split("event: 68").next().unwrap();
    let packets: Vec<String> = behind.lines().filter_map(packet).filter(|told| told != "PAD").collect();
    let expected = [
        "PC 0x401001 el0 ns=1",
        "VA 0x7f0000001008",
        "PA 0x10001 ns=1 ch=0 pat=0",
        "CONTEXT 0x4d el2",
        "LD AT AR",
        "EV RETIRED L1D-ACCESS",
        "DATA-SOURCE 269",
        "LAT 101 TOT",
        "LAT 3 ISSUE",
        "LAT 1 XLAT",
        "TS 1000",
        "PC 0xff800000101000 el2 ns=1",
        "TGT 0xff800000102000 el2 ns=1",
        "CONTEXT 0x4d el2",
        "B COND IND",
        "EV RETIRED L1D-ACCESS",
        "LAT 100 TOT",
        "LAT 3 ISSUE",
        "LAT 1 XLAT",
        "END",
        "PC 0x401002 el0 ns=1",
        "PA 0x10002 ns=1 ch=0 pat=0",
        "CONTEXT 0x4d el2",
        "OTHER INSN-OTHER",
        "EV RETIRED L1D-ACCESS",
        "LAT 102 TOT",
        "LAT 3 ISSUE",
        "LAT 1 XLAT",
        "TS 1001",
    ];
    assert_eq!(packets, expected, "{printed}");
}

/// Perf separates each CPU's chunks by its own order; by time they are one list.
#[test]
fn perf_script_decodes_every_sample_as_it_was_written_and_as_our_reader_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traced.data");
    write(&path, &planted());
    let fields = "pid,tid,cpu,time,ip,addr,weight,phys_addr,data_src";
    let arguments = ["script", "--ns", "--itrace=M", "-F", fields, "-i", path.to_str().unwrap()];
    let mut lines: Vec<String> = output("perf", &arguments)
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort_by_key(|line| line.split(' ').nth(2).unwrap().to_owned());
    assert_eq!(lines.len(), planted().len());

    let mut reader = Reader::of_file(File::open(&path).unwrap()).unwrap();
    let mut own = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let Record::Sample(sample) = record else { continue };
        own.push((
            format!(
                "{}/{} [{:03}] 0.{:09}: {:x}",
                sample.process.unwrap(),
                sample.thread.unwrap(),
                sample.cpu.unwrap(),
                sample.time_ns.unwrap(),
                sample.address.unwrap(),
            ),
            format!(
                "{} {:x} {:x}",
                sample.weight.unwrap().full,
                sample.instruction.unwrap(),
                sample.physical_address.unwrap(),
            ),
        ));
    }
    assert_eq!(own.len(), planted().len());
    for (number, ((line, (begins, ends)), record)) in lines.iter().zip(&own).zip(planted()).enumerate() {
        let cpu = number / 70 % 2;
        let time = ZERO_NS + 40 * record.ticks.unwrap();
        let address = record.address.unwrap();
        assert_eq!(*begins, format!("77/77 [{cpu:03}] 0.{time:09}: {address:x}"));
        assert!(
            line.starts_with(begins.as_str()) && line.ends_with(ends.as_str()),
            "{line}: {begins} {ends}"
        );
        assert_eq!(record.total_cycles.unwrap().to_string(), ends.split(' ').next().unwrap());
        let (operation, level, snoop) = match (is_store(&record), record.source) {
            (true, _) => ("STORE", "N/A or N/A", "N/A"),
            (_, Some(0x0)) => ("LOAD", "L1 or L1 hit", "None"),
            (_, Some(0x8)) => ("LOAD", "L2 or L2 hit", "None"),
            (_, Some(0x9)) => ("LOAD", "L2 or L2 hit", "Peer"),
            (_, Some(0xc)) => ("LOAD", "L3 or L3 hit", "Peer"),
            (_, Some(0xb)) => ("LOAD", "L3 or L3 hit", "Hit"),
            (_, Some(0xd)) => ("LOAD", "Remote N/A or N/A", "Peer"),
            _ => ("LOAD", "Local RAM or RAM hit", "None"),
        };
        let said = spellings(level).map(|level| format!("|OP {operation}|LVL {level}|SNP {snoop}|"));
        assert!(said.iter().any(|said| line.contains(said)), "{line}: {said:?}");
        let translation = if record.events & 1 << 5 == 0 { "TLB Walker hit" } else { "TLB Walker miss" };
        assert!(line.contains(translation), "{line}");
    }
}

/// The facts of every sample on which both readers must agree: perf names levels of caches that a peer's line may have
/// come from, and knows no locks.
fn told(path: &Path) -> Vec<String> {
    let mut reader = Reader::of_file(File::open(path).unwrap()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        let Record::Sample(sample) = record else { continue };
        let source = sample.data_source.unwrap();
        let level = (!source.is_hitm() && source.operation == Operation::Load).then_some(source.level);
        all.push(format!(
            "{:?} {:?} {:?} {:?} {:x?} {:x?} {:x?} {} {:?} {level:?} {} {:?}",
            sample.time_ns,
            sample.cpu,
            sample.process,
            sample.thread,
            sample.instruction,
            sample.address,
            sample.physical_address,
            sample.weight.unwrap().full,
            source.operation,
            source.is_hitm(),
            source.translation,
        ));
    }
    all.sort();
    all
}

#[test]
fn samples_that_perf_made_of_a_trace_are_read_as_those_of_the_trace_itself() {
    let folder = tempfile::tempdir().unwrap();
    let [traced, sampled] = ["traced.data", "sampled.data"].map(|name| folder.path().join(name));
    write(&traced, &planted());
    let [from, to] = [&traced, &sampled].map(|path| path.to_str().unwrap());
    output("perf", &["inject", "--itrace=M", "-i", from, "-o", to]);
    let all = told(&traced);
    assert_eq!(all.len(), planted().len());
    assert_eq!(told(&sampled), all);
}

struct NoSegments;

impl Segments for NoSegments {
    fn of(&mut self, _file: &MappedFile) -> Vec<FileSegment> {
        Vec::new()
    }
}

#[test]
fn perf_mem_report_sums_up_what_was_written_and_so_does_our_tally() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("traced.data");
    write(&path, &planted());
    let printed =
        output("perf", &["mem", "report", "-i", path.to_str().unwrap(), "--stdio", "--sort=mem,snoop"]);
    let printed = printed.split("of event 'memory'").nth(1).unwrap();
    let mut expected: BTreeMap<Option<u16>, (u64, u64)> = BTreeMap::new();
    for record in planted() {
        let sum = expected.entry(record.source).or_default();
        *sum = (sum.0 + 1, sum.1 + u64::from(record.total_cycles.unwrap()));
    }
    let all: u64 = expected.values().map(|(_, weight)| weight).sum();
    let rows = [
        (None, "N/A or N/A", "N/A"),
        (Some(0x0), "L1 or L1 hit", "None"),
        (Some(0x8), "L2 or L2 hit", "None"),
        (Some(0x9), "L2 or L2 hit", "Peer"),
        (Some(0xb), "L3 or L3 hit", "Hit"),
        (Some(0xc), "L3 or L3 hit", "Peer"),
        (Some(0xe), "Local RAM or RAM hit", "None"),
    ];
    for (source, level, snoop) in rows {
        let (count, weight) = expected[&source];
        let share = format!("{:.2}%", 100.0 * weight as f64 / all as f64);
        assert_eq!(row(printed, level, snoop), [share.as_str(), count.to_string().as_str()], "{printed}");
    }
    let mut reader = Reader::of_file(File::open(&path).unwrap()).unwrap();
    let tally = tally(&mut reader, &mut NoSegments, &mut |_| {}).unwrap();
    assert_eq!((tally.events[0].sum.samples, tally.events[0].sum.weight), (planted().len() as u64, all));
    let hitm: u64 = tally.lines.values().map(|line| line.sum.weight).sum();
    let of_peers = [0x9, 0xc, 0xd].map(|source| expected[&Some(source)].1);
    assert_eq!(hitm, of_peers.iter().sum::<u64>());
}
