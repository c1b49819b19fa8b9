//! `lineup import`: samples that were planted in a perf.data are counted with exactly the functions and members that they
//! were planted in, and what perf itself took is read.

mod schema;

use lineup_samples::writer::{EventSpec, MappingSpec, SampleSpec, Writer, kind, source};
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

const START: u64 = 0x5555_5555_0000;
const HEAP: u64 = 0x7f00_0000_0000;
const PROCESS: u32 = 4242;

/// `lineup`, in a folder that is its user's home: the caches of whoever runs this test tell it nothing.
fn lineup(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.args(arguments).current_dir(folder).env("HOME", folder);
    lineup.env_remove("XDG_CACHE_HOME").env_remove("DEBUGINFOD_CACHE_PATH").output().expect("lineup runs")
}

/// A built program with what its linker says of it.
struct Program {
    folder: TempDir,
    symbols: BTreeMap<String, u64>,
    size_bytes: u64,
}

fn output(program: &str, arguments: &[&str], folder: &Path) -> String {
    let done = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

impl Program {
    fn build() -> Program {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program.c"), PROGRAM).unwrap();
        output("gcc", &["-g", "-O2", "-o", "program", "program.c"], folder.path());
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

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of the program's file.
    fn file(&self) -> String {
        self.path().join("program").to_str().unwrap().to_owned()
    }

    fn at(&self, symbol: &str) -> u64 {
        START + self.symbols.get(symbol).unwrap_or_else(|| panic!("no {symbol}"))
    }

    /// A file of samples of the program, which perf mapped as a whole at [`START`].
    fn samples(&self, name: &str, write: impl FnOnce(&mut Writer<BufWriter<File>>)) {
        let event =
            EventSpec { name: "mem-loads".to_owned(), sample_type: kind::MEMORY, ..EventSpec::default() };
        let out = BufWriter::new(File::create(self.path().join(name)).unwrap());
        let mut writer = Writer::file(out, &[event]).unwrap();
        writer.name(PROCESS, "program").unwrap();
        let path = self.file();
        let mapping = MappingSpec {
            process: PROCESS,
            start: START,
            size_bytes: self.size_bytes,
            file_offset: 0,
            protection: 5,
            path: &path,
            build_id: None,
        };
        writer.mapping(&mapping).unwrap();
        write(&mut writer);
        writer.finish().unwrap();
    }

    fn import(&self, arguments: &[&str]) -> Value {
        let all = [&["import", "--json"], arguments].concat();
        let done = lineup(self.path(), &all);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        schema::checked(&done.stdout)
    }
}

/// Function, what it accesses, where the accessed bytes lie, where they come from, how often, and with which weight.
struct Planted {
    function: &'static str,
    member: (&'static str, &'static str),
    evidence: &'static str,
    address: u64,
    source: u64,
    count: u64,
    weight: u64,
}

fn planted(program: &Program) -> Vec<Planted> {
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

fn write_planted(program: &Program, name: &str) -> Vec<Planted> {
    let all = planted(program);
    program.samples(name, |writer| {
        let mut time_ns = 1000;
        // In turns, as a program's run mixes them.
        for turn in 0..all.iter().map(|one| one.count).max().unwrap() {
            for one in all.iter().filter(|one| one.count > turn) {
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
        }
        writer.lost(19, 5).unwrap();
    });
    all
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn array<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn every_member_has_exactly_the_samples_that_were_planted_in_it() {
    let program = Program::build();
    let planted = write_planted(&program, "perf.data");
    let found = program.import(&["perf.data"]);
    assert_eq!(found["schema"], "lineup.samples/1");
    assert_eq!((number(&found, "lost_records"), &found["is_whole"]), (19, &Value::Bool(true)));

    let mut members: BTreeMap<(&str, &str), [u64; 5]> = BTreeMap::new();
    let mut evidence: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sources: BTreeMap<(&str, &str, u64), u64> = BTreeMap::new();
    for one in &planted {
        let is_store = one.source == source::STORE_L1;
        let hitm = if one.source == source::LOAD_HITM { one.count } else { 0 };
        let (loads, stores) = if is_store { (0, one.count) } else { (one.count, 0) };
        let more = [one.count, loads, stores, hitm, one.count * one.weight];
        let sum = members.entry(one.member).or_default();
        sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        *evidence.entry((one.member.0, one.member.1, one.evidence)).or_default() += one.count;
        *functions.entry(one.function).or_default() += one.count;
        *sources.entry((one.member.0, one.member.1, one.source)).or_default() += one.count;
    }

    let (mut found_members, mut found_evidence, mut found_sources) = (BTreeMap::new(), BTreeMap::new(), 0);
    for data in array(&found, "data") {
        let name = data["name"].as_str().unwrap();
        for member in array(data, "members") {
            let path = member["path"].as_str().unwrap();
            let figures = ["samples", "loads", "stores", "hitm", "weight"].map(|key| number(member, key));
            found_members.insert((name, path), figures);
            for one in array(member, "evidence") {
                found_evidence
                    .insert((name, path, one["evidence"].as_str().unwrap()), number(one, "samples"));
            }
            found_sources += array(member, "sources").len();
        }
    }
    assert_eq!(found_members, members);
    assert_eq!(found_evidence, evidence);
    assert_eq!(found_sources, sources.len());
    let found_functions: BTreeMap<&str, u64> = array(&found, "functions")
        .iter()
        .map(|function| (function["name"].as_str().unwrap(), number(function, "samples")))
        .collect();
    assert_eq!(found_functions, functions);
}

#[test]
fn shares_of_latency_lines_between_cpus_and_the_next_command_are_told() {
    let program = Program::build();
    let planted = write_planted(&program, "perf.data");
    let found = program.import(&["perf.data"]);
    let all: u64 = planted.iter().map(|one| one.count * one.weight).sum();
    let device = array(&found, "data").first().unwrap();
    assert_eq!(device["name"], "device");
    let own: u64 =
        planted.iter().filter(|one| one.member.0 == "device").map(|one| one.count * one.weight).sum();
    assert!((device["weight_share"].as_f64().unwrap() - own as f64 / all as f64).abs() < 1e-12);

    let line = &array(&found, "lines")[0];
    assert_eq!((number(line, "samples"), line["address"].as_str()), (29, Some("0x7f0000002040")));
    let loaded: Vec<u64> = array(line, "cpus").iter().map(|cpu| number(cpu, "samples")).collect();
    assert_eq!(loaded, [8, 7, 7, 7], "29 in turns on four CPUs");
    let byte = &array(line, "bytes")[0];
    assert_eq!((number(byte, "at"), byte["name"].as_str()), (8, Some("device.hits")));
    assert_eq!(byte["function"], "read_hits");

    let next = &array(&found, "next")[0];
    assert_eq!(next["subject"], "device");
    let command = next["command"].as_str().unwrap();
    assert!(
        command.starts_with("lineup record --region read_id --region read_hits --region write_flags --out"),
        "{command}"
    );
    assert!(command.ends_with(&format!("-- {} ARGUMENTS", program.file())), "{command}");
    let notes: Vec<&str> = array(&found, "notes").iter().map(|note| note.as_str().unwrap()).collect();
    assert!(
        notes.iter().any(|note| note.contains("which members a call touches together they do not say")),
        "{notes:?}"
    );
    assert!(notes.iter().any(|note| note.starts_with("19 records were lost")), "{notes:?}");
}

#[test]
fn the_text_tells_the_same() {
    let program = Program::build();
    write_planted(&program, "perf.data");
    let done = lineup(program.path(), &["import", "perf.data", "--out", "report.txt"]);
    assert!(done.status.success() && done.stdout.is_empty());
    let text = std::fs::read_to_string(program.path().join("report.txt")).unwrap();
    for part in ["286 samples", "device", "range.last", "load, L3, changed by another CPU", "0x7f0000002040"]
    {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

#[test]
fn a_program_is_found_by_its_build_id_in_the_users_folder() {
    let program = Program::build();
    let notes = output("readelf", &["-n", "program"], program.path());
    let id =
        notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).expect("a build id").to_owned();
    let bytes: Vec<u8> =
        (0..id.len()).step_by(2).map(|at| u8::from_str_radix(&id[at..at + 2], 16).unwrap()).collect();
    let event = EventSpec { sample_type: kind::IP | kind::TID | kind::TIME, ..EventSpec::default() };
    let out = BufWriter::new(File::create(program.path().join("perf.data")).unwrap());
    let mut writer = Writer::file(out, &[event]).unwrap();
    let mapping = MappingSpec {
        process: PROCESS,
        start: START,
        size_bytes: program.size_bytes,
        file_offset: 0,
        protection: 5,
        path: "/container/bin/program",
        build_id: Some(&bytes),
    };
    writer.mapping(&mapping).unwrap();
    let sample = SampleSpec { instruction: program.at("look_up"), process: PROCESS, ..SampleSpec::default() };
    writer.sample(&sample).unwrap();
    writer.finish().unwrap();

    let function = |found: &Value| array(found, "functions")[0]["name"].as_str().unwrap().to_owned();
    assert_eq!(function(&program.import(&["perf.data"])), "(no symbol)");
    let folder = program.path().join("symbols/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(program.path().join("program"), folder.join(&id[2..])).unwrap();
    let found = program.import(&["--symbols", "symbols", "perf.data"]);
    assert_eq!(function(&found), "look_up");
    assert_eq!(array(&found, "files")[0]["build_id"], id.as_str());
}

#[test]
fn functions_of_a_kernel_are_named_by_the_symbols_in_perfs_cache() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let start = 0xffff_ffff_8100_0000;
    let event = EventSpec { sample_type: kind::IP | kind::TID | kind::TIME, ..EventSpec::default() };
    let mut writer = Writer::file(File::create(folder.join("perf.data")).unwrap(), &[event]).unwrap();
    let mapping = MappingSpec {
        process: u32::MAX,
        start,
        size_bytes: 0x10_0000,
        file_offset: start,
        protection: 5,
        path: "[kernel.kallsyms]_text",
        build_id: Some(&[0xcd; 20]),
    };
    writer.mapping(&mapping).unwrap();
    for distance in [0x40, 0x7f, 0x80] {
        let sample = SampleSpec { instruction: start + distance, is_kernel: true, ..SampleSpec::default() };
        writer.sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    let cache = folder.join(".debug/[kernel.kallsyms]").join("cd".repeat(20));
    std::fs::create_dir_all(&cache).unwrap();
    // As listed by another boot, which had the kernel elsewhere.
    std::fs::write(cache.join("kallsyms"), "ffff0000 T _text\nffff0040 T schedule\nffff0080 t tick\n")
        .unwrap();
    let done = lineup(folder, &["import", "--json", "perf.data"]);
    let found: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let functions: Vec<_> = array(&found, "functions")
        .iter()
        .map(|function| (function["name"].as_str().unwrap(), number(function, "samples")))
        .collect();
    assert_eq!(functions, [("schedule", 2), ("tick", 1)]);
}

#[test]
fn a_models_shares_are_held_against_those_of_samples() {
    let program = Program::build();
    let event = EventSpec { sample_type: kind::IP | kind::TID | kind::TIME, ..EventSpec::default() };
    let out = BufWriter::new(File::create(program.path().join("perf.data")).unwrap());
    let mut writer = Writer::file(out, &[event]).unwrap();
    let path = program.file();
    let mapping = MappingSpec {
        process: PROCESS,
        start: START,
        size_bytes: program.size_bytes,
        file_offset: 0,
        protection: 5,
        path: &path,
        build_id: None,
    };
    writer.mapping(&mapping).unwrap();
    for number in 0..1000 {
        let name = if number % 10 < 7 { "read_hits" } else { "look_up" };
        let sample = SampleSpec { instruction: program.at(name), process: PROCESS, ..SampleSpec::default() };
        writer.sample(&sample).unwrap();
        // The kernel's time is not the model's.
        writer.sample(&SampleSpec { is_kernel: true, ..sample }).unwrap();
    }
    writer.finish().unwrap();
    let model = r#"{"schema": "lineup.find/1", "functions": [{"name": "read_hits", "of_cycles": 0.71},
        {"name": "look_up", "of_cycles": 0.1}, {"name": "read_id", "of_cycles": 0.19}]}"#;
    std::fs::write(program.path().join("find.json"), model).unwrap();
    let found = program.import(&["--find", "find.json", "perf.data"]);
    let told: Vec<_> = array(&found, "against_model")
        .iter()
        .map(|one| {
            (one["name"].as_str().unwrap(), one["clock"]["share"].as_f64(), &one["clock"]["is_explained"])
        })
        .collect();
    let (yes, no) = (&Value::Bool(true), &Value::Bool(false));
    assert_eq!(told, [("read_hits", Some(0.7), yes), ("look_up", Some(0.3), no), ("read_id", Some(0.0), no)]);
    let shown = lineup(program.path(), &["import", "--find", "find.json", "perf.data"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.matches("does not explain it").count(), 2, "{shown}");
    let refused = lineup(program.path(), &["import", "--find", "program.c", "perf.data"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_is_no_file_of_samples_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("other"), "nothing of the kind").unwrap();
    let done = lineup(folder.path(), &["import", "other"]);
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("other") && said.contains("this is no perf.data"), "{said}");
}

#[test]
fn what_perf_took_of_a_real_program_names_its_functions() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("busy.c"),
        "long spin(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i * i ^ sum; return sum; }\n\
         int main(void) { return spin(300000000) == 1; }\n",
    )
    .unwrap();
    output("gcc", &["-g", "-O1", "-o", "busy", "busy.c"], folder);
    output("perf", &["record", "-q", "-e", "cpu-clock", "-g", "-o", "perf.data", "./busy"], folder);
    let of_file = lineup(folder, &["import", "--json", "perf.data"]);
    let found: Value = serde_json::from_slice(&of_file.stdout).expect("JSON");
    let first = &array(&found, "functions")[0];
    assert_eq!(first["name"], "spin");
    assert!(first["share"].as_f64().unwrap() > 0.5, "{first}");
    // As many samples as perf itself counts.
    let printed = output("perf", &["script", "-i", "perf.data", "-F", "ip"], folder);
    let count = printed.split("\n\n").filter(|sample| !sample.trim().is_empty()).count();
    assert_eq!(array(&found, "events")[0]["samples"].as_u64(), Some(count as u64));
    assert!(array(&found, "data").is_empty(), "clock samples have no addresses");
    let notes: Vec<&str> = array(&found, "notes").iter().map(|note| note.as_str().unwrap()).collect();
    assert!(notes.iter().any(|note| note.starts_with("no event carries addresses")), "{notes:?}");
    let piped = Command::new("sh")
        .args([
            "-c",
            "perf record -q -e cpu-clock -o - ./busy 2>/dev/null | \"$0\" import --json -",
            env!("CARGO_BIN_EXE_lineup"),
        ])
        .current_dir(folder)
        .output()
        .unwrap();
    let piped: Value = serde_json::from_slice(&piped.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&piped.stderr)));
    assert_eq!(array(&piped, "functions")[0]["name"], "spin");
}
