//! Perf reads the writer's output, and reports every sample as written. In files that perf made, a peer's reader and
//! ours find the same records.

use crate::perf::{PROGRAM, output, row, spellings};
use lineup_samples::writer::{EventSpec, SampleSpec, Writer, kind, source};
use lineup_samples::{Reader, Record};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

const SOURCES: [u64; 5] =
    [source::LOAD_L1, source::LOAD_L3, source::LOAD_MEMORY, source::LOAD_HITM, source::STORE_L1];

fn planted() -> Vec<SampleSpec> {
    let sample = |number: u64| SampleSpec {
        instruction: 0x40_1000 + number % 7,
        process: 77,
        thread: 77 + (number % 3) as u32,
        time_ns: 1_000_000 + 1000 * number,
        address: 0x7f00_0000_1000 + 8 * number,
        cpu: (number % 4) as u32,
        period: 100 + number,
        weight: (number % 11) * 30,
        source: SOURCES[(number % 5) as usize],
        physical_address: 0x1_0000 + number,
        ..SampleSpec::default()
    };
    (0..200).map(sample).collect()
}

fn write(path: &Path) {
    let event = EventSpec {
        name: "cpu/mem-loads,ldlat=30/P".to_owned(),
        kind: 4,
        config: 0x1cd,
        sample_type: kind::MEMORY,
        ..EventSpec::default()
    };
    let mut writer = Writer::file(BufWriter::new(File::create(path).unwrap()), &[event]).unwrap();
    writer.name(77, "planted").unwrap();
    writer.mapping(&PROGRAM).unwrap();
    for (number, sample) in planted().iter().enumerate() {
        writer.sample(sample).unwrap();
        if number % 50 == 49 {
            writer.round().unwrap();
        }
    }
    writer.build_id("/nowhere/planted", &[0xab; 20]);
    writer.finish().unwrap();
}

#[test]
fn perf_script_reads_every_sample_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planted.data");
    write(&path);
    let fields = "pid,tid,cpu,time,event,ip,addr,weight,phys_addr,data_src,period";
    let printed = output("perf", &["script", "--ns", "-F", fields, "-i", path.to_str().unwrap()]);
    let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 200);
    for (words, sample) in lines.iter().zip(planted()) {
        let text = words.join(" ");
        assert_eq!(words[0], format!("{}/{}", sample.process, sample.thread));
        assert_eq!(words[1], format!("[{:03}]", sample.cpu));
        assert_eq!(words[2], format!("0.{:09}:", sample.time_ns));
        assert_eq!(words[3], sample.period.to_string());
        assert_eq!(words[4], "cpu/mem-loads,ldlat=30/P:");
        assert_eq!(words[5], format!("{:x}", sample.address));
        assert_eq!(words[6], format!("{:x}", sample.source), "{text}");
        let rest = words[7..].join(" ");
        let (operation, level, more) = match sample.source {
            source::LOAD_L1 => ("LOAD", "L1 or L1 hit", "SNP None|TLB L1 hit|LCK N/A"),
            source::LOAD_L3 => ("LOAD", "L3 or L3 hit", "SNP None|TLB L1 hit|LCK N/A"),
            source::LOAD_MEMORY => ("LOAD", "Local RAM or RAM hit", "SNP Miss|TLB L2 hit|LCK N/A"),
            source::LOAD_HITM => ("LOAD", "L3 or L3 hit", "SNP HitM|TLB L1 hit|LCK N/A"),
            _ => ("STORE", "L1 or L1 hit", "SNP N/A|TLB L1 hit|LCK N/A"),
        };
        let said = spellings(level).map(|level| format!("|OP {operation}|LVL {level}|{more}"));
        assert!(said.iter().any(|said| rest.starts_with(said)), "{text}");
        let end = format!("{} {:x} {:x}", sample.weight, sample.instruction, sample.physical_address);
        assert!(rest.ends_with(&end), "{text}: {end}");
    }
}

/// Rows of `perf mem report`: how many samples of each source, and their weight in all.
#[test]
fn perf_mem_report_sums_up_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("planted.data");
    write(&path);
    let path = path.to_str().unwrap();
    let printed = output("perf", &["mem", "report", "-i", path, "--stdio", "--sort=mem,snoop"]);
    let mut expected: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for sample in planted() {
        let sum = expected.entry(sample.source).or_default();
        // Perf takes a sample without weight for one cycle.
        *sum = (sum.0 + 1, sum.1 + sample.weight.max(1));
    }
    let all: u64 = expected.values().map(|(_, weight)| weight).sum();
    let rows = [
        (source::LOAD_L1, "L1 or L1 hit", "None"),
        (source::LOAD_L3, "L3 or L3 hit", "None"),
        (source::LOAD_MEMORY, "Local RAM or RAM hit", "Miss"),
        (source::LOAD_HITM, "L3 or L3 hit", "HitM"),
        (source::STORE_L1, "L1 or L1 hit", "N/A"),
    ];
    for (word, level, snoop) in rows {
        let (count, weight) = expected[&word];
        let share = format!("{:.2}%", 100.0 * weight as f64 / all as f64);
        assert_eq!(row(&printed, level, snoop), [share.as_str(), count.to_string().as_str()], "{printed}");
    }
}

#[test]
fn of_a_real_recording_a_peer_reads_as_many_records_and_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("real.data");
    let busy = ["record", "-q", "-e", "cpu-clock", "-g", "-F", "2000", "-o", path.to_str().unwrap()];
    let work = ["--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; ls / >/dev/null"];
    output("perf", &[&busy[..], &work[..]].concat());

    let mut ours = Reader::of_file(File::open(&path).unwrap()).unwrap();
    let mut own = Vec::new();
    while let Some(record) = ours.next_record().unwrap() {
        if let Record::Sample(sample) = record {
            own.push((sample.time_ns, sample.instruction, sample.process, sample.call_chain().to_vec()));
        }
    }
    let input = BufReader::new(File::open(&path).unwrap());
    let linux_perf_data::PerfFileReader { mut perf_file, mut record_iter } =
        linux_perf_data::PerfFileReader::parse_file(input).unwrap();
    let mut theirs = Vec::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        use linux_perf_data::linux_perf_event_reader::EventRecord;
        let linux_perf_data::PerfFileRecord::EventRecord { record, .. } = record else { continue };
        if let EventRecord::Sample(sample) = record.parse().unwrap() {
            let chain =
                sample.callchain.map(|chain| (0..chain.len()).filter_map(|at| chain.get(at)).collect());
            let process = sample.pid.map(|pid| pid as u32);
            theirs.push((sample.timestamp, sample.ip, process, chain.unwrap_or_default()));
        }
    }
    assert!(own.len() > 20, "{} samples", own.len());
    assert_eq!(own, theirs);
    let theirs = perf_file.build_ids().unwrap();
    assert_eq!(ours.header().build_ids.len(), theirs.len());
    for own in &ours.header().build_ids {
        assert!(theirs.values().any(|info| info.build_id == own.id), "{own:?}");
    }
    assert_eq!(ours.header().command_line.get(1).map(String::as_str), Some("record"));
}
