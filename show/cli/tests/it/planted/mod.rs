//! A program whose functions each access one member, and a perf.data with known samples of it.
#![allow(dead_code, reason = "each test that uses this uses a part of it")]

use crate::schema;
use lineup_samples::spe::{Access, Kind, TraceRecord};
use lineup_samples::writer::{BufferOf, EventSpec, MappingSpec, PartSpec, SampleSpec, Writer, kind, source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Each function accesses one member with its first instruction, so that samples can be planted by symbols alone.
const PROGRAM: &str = r#"
#include <stdlib.h>
struct device { long id; char name[40]; long hits; int flags; struct { long first, last; } range; };
struct counters { long served, refused; };
struct counters stats[2];
long table[512];
#define FAR __attribute__((noinline, used))
FAR long read_id(struct device *device) { return device->id; }
FAR long read_hits(struct device *device) { return device->hits; }
FAR void write_flags(struct device *device, int flags) { device->flags = flags; }
FAR long read_last(struct device *device) { return device->range.last; }
FAR long read_refused(struct counters *all) { return all->refused; }
FAR void count_served(void) { stats[1].served++; }
FAR long look_up(long index) { return table[index]; }
int main(int count, char **arguments) {
    struct device *device = calloc(1, sizeof *device);
    write_flags(device, count);
    count_served();
    return (int)(read_id(device) + read_hits(device) + read_last(device) + read_refused(stats) + look_up(count));
}
"#;

pub(crate) const START: u64 = 0x5555_5555_0000;
const HEAP: u64 = 0x7f00_0000_0000;
pub(crate) const PROCESS: u32 = 4242;

/// `lineup`, with this folder as its user's home: the caches of the user who runs this test are not used.
pub(crate) fn lineup(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.args(arguments).current_dir(folder).env("HOME", folder);
    lineup.env_remove("XDG_CACHE_HOME").env_remove("DEBUGINFOD_CACHE_PATH").output().expect("lineup runs")
}

/// A built program with its linker's addresses.
pub(crate) struct Program {
    pub(crate) folder: TempDir,
    pub(crate) symbols: BTreeMap<String, u64>,
    pub(crate) size_bytes: u64,
}

pub(crate) fn output(program: &str, arguments: &[&str], folder: &Path) -> String {
    let done = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

impl Program {
    pub(crate) fn build() -> Program {
        Program::of(PROGRAM, "-O2")
    }

    /// The program of this source, built with debug information and this optimisation.
    pub(crate) fn of(source: &str, optimised: &str) -> Program {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.c"), source).unwrap();
        output("gcc", &["-g", optimised, "-o", "program", "program.c"], folder.path());
        let symbols = output("nm", &["--defined-only", "program"], folder.path());
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((words.nth(1)?.to_owned(), address))
        };
        let symbols = symbols.lines().filter_map(symbol).collect();
        let size_bytes = std::fs::metadata(folder.path().join("program")).unwrap().len();
        Program { folder, symbols, size_bytes }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the program's file.
    pub(crate) fn file(&self) -> String {
        self.path().join("program").to_str().unwrap().to_owned()
    }

    pub(crate) fn at(&self, symbol: &str) -> u64 {
        START + self.symbols.get(symbol).unwrap_or_else(|| panic!("no {symbol}"))
    }

    /// The whole program, mapped at [`START`] from this path.
    pub(crate) fn mapping<'p>(&self, path: &'p str) -> MappingSpec<'p> {
        MappingSpec {
            process: PROCESS,
            start: START,
            size_bytes: self.size_bytes,
            file_offset: 0,
            protection: 5,
            path,
            build_id: None,
        }
    }

    /// A file of samples of the program, which perf mapped as a whole at [`START`].
    pub(crate) fn samples(&self, name: &str, write: impl FnOnce(&mut Writer<BufWriter<File>>)) {
        let event =
            EventSpec { name: "mem-loads".to_owned(), sample_type: kind::MEMORY, ..EventSpec::default() };
        let mut writer = self.writer(name, &event);
        write(&mut writer);
        writer.finish().unwrap();
    }

    /// A file of samples of this event, with the program's mapping.
    pub(crate) fn writer(&self, name: &str, event: &EventSpec) -> Writer<BufWriter<File>> {
        let out = BufWriter::new(File::create(self.path().join(name)).unwrap());
        let mut writer = Writer::file(out, std::slice::from_ref(event)).unwrap();
        writer.name(PROCESS, "program").unwrap();
        let path = self.file();
        writer.mapping(&self.mapping(&path)).unwrap();
        writer
    }

    pub(crate) fn import(&self, arguments: &[&str]) -> Value {
        self.json(&[&["explain", "--json"], arguments].concat())
    }

    /// The document that a command prints, as its schema says.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = lineup(self.path(), arguments);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        schema::checked(&done.stdout)
    }
}

/// Function, accessed member, address, source, number, and weight of planted samples.
pub(crate) struct Planted {
    pub(crate) function: &'static str,
    pub(crate) member: (&'static str, &'static str),
    pub(crate) evidence: &'static str,
    pub(crate) address: u64,
    pub(crate) source: u64,
    pub(crate) count: u64,
    pub(crate) weight: u64,
}

pub(crate) fn planted(program: &Program) -> Vec<Planted> {
    let one = |function, member, evidence, address, source, count, weight| Planted {
        function,
        member,
        evidence,
        address,
        source,
        count,
        weight,
    };
    let located = "located_register";
    vec![
        one("read_id", ("device", "id"), located, HEAP, source::LOAD_L1, 101, 4),
        one("read_id", ("device", "id"), located, HEAP + 0x1000, source::LOAD_MEMORY, 13, 310),
        one("read_hits", ("device", "hits"), located, HEAP + 48, source::LOAD_MEMORY, 57, 290),
        one("read_hits", ("device", "hits"), located, HEAP + 0x2048, source::LOAD_HITM, 29, 120),
        one("write_flags", ("device", "flags"), located, HEAP + 56, source::STORE_L1, 43, 0),
        one("read_last", ("device", "range.last"), located, HEAP + 72, source::LOAD_L3, 7, 60),
        // By the pointer's type, and by the address of a variable.
        one("read_refused", ("counters", "refused"), located, HEAP + 0x3008, source::LOAD_L1, 11, 5),
        one(
            "read_refused",
            ("counters", "refused"),
            "global_address",
            program.at("stats") + 8,
            source::LOAD_L1,
            17,
            5,
        ),
        one(
            "count_served",
            ("counters", "served"),
            "global_address",
            program.at("stats") + 16,
            source::STORE_L1,
            5,
            0,
        ),
        one("look_up", ("table", ""), "global_address", program.at("table") + 80, source::LOAD_L3, 3, 45),
    ]
}

/// Each as often as it was planted, in turns, as a program's run mixes them.
fn in_turns(all: &[Planted]) -> impl Iterator<Item = (u64, &Planted)> {
    let most = all.iter().map(|one| one.count).max().unwrap();
    (0..most).flat_map(move |turn| all.iter().filter(move |one| one.count > turn).map(move |one| (turn, one)))
}

pub(crate) fn write_planted(program: &Program, name: &str) -> Vec<Planted> {
    let all = planted(program);
    program.samples(name, |writer| {
        let mut time_ns = 1000;
        for (turn, one) in in_turns(&all) {
            time_ns += 10;
            let sample = SampleSpec {
                instruction: program.at(one.function),
                process: PROCESS,
                thread: PROCESS,
                time_ns,
                address: one.address,
                cpu: (turn % 4) as u32,
                period: 1,
                weight: one.weight,
                source: one.source,
                ..SampleSpec::default()
            };
            writer.sample(&sample).unwrap();
        }
        writer.lost(19, 5).unwrap();
    });
    all
}

/// The kind of the event that makes traces, and the processors of the CPUs that do: Neoverse V2.
const TRACING: u32 = 8;
const PROCESSORS: [u64; 4] = [0x410f_d4f0; 4];

/// The processor's number for a source of data.
fn traced_source(word: u64) -> Option<u16> {
    match word {
        source::LOAD_L1 => Some(0x0),
        source::LOAD_L3 => Some(0xb),
        source::LOAD_MEMORY => Some(0xe),
        source::LOAD_HITM => Some(0x9),
        // It has no source for stores.
        _ => None,
    }
}

/// The same samples in the traces of four of Arm's CPUs, each with one chunk at the end of the file.
pub(crate) fn write_planted_traces(program: &Program, name: &str) -> Vec<Planted> {
    let all = planted(program);
    let event = EventSpec {
        name: "arm_spe_0//".to_owned(),
        kind: TRACING,
        sample_type: kind::MEMORY,
        ..EventSpec::default()
    };
    let mut writer = program.writer(name, &event);
    writer.timer(0, 40, 0).unwrap();
    writer.trace_info_of(TRACING, &PROCESSORS).unwrap();
    let (mut traces, mut ticks) = (vec![Vec::new(); PROCESSORS.len()], 0);
    for (turn, one) in in_turns(&all) {
        ticks += 10;
        let access = Access { is_store: one.source == source::STORE_L1, ..Access::default() };
        let record = TraceRecord {
            instruction: Some(program.at(one.function)),
            level: Some(0),
            address: Some(one.address),
            kind: Kind::Access(access),
            events: 1 << 1 | 1 << 2,
            source: traced_source(one.source),
            total_cycles: Some(one.weight as u16),
            context: Some(PROCESS),
            ticks: Some(ticks),
            ..TraceRecord::default()
        };
        record.encode(&mut traces[(turn % 4) as usize]);
    }
    for (cpu, trace) in (0..).zip(&traces) {
        let size_bytes = trace.len() as u64;
        // In the first CPU's trace there was no room for one more.
        let flags = u64::from(cpu == 0);
        let time_ns = 40 * ticks + 1;
        let part = PartSpec {
            size_bytes,
            flags,
            cpu,
            process: PROCESS,
            thread: PROCESS,
            time_ns,
            ..PartSpec::default()
        };
        writer.part(&part).unwrap();
        writer.chunk(BufferOf::Cpu(cpu), 0, trace).unwrap();
    }
    writer.finish().unwrap();
    all
}

pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

pub(crate) fn array<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}
