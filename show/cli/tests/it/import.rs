//! `lineup explain`: samples that were planted in a perf.data are counted with exactly their functions and members, and
//! files that perf itself wrote are read.

use crate::planted::{
    PROCESS, Planted, Program, array, lineup, number, output, write_planted, write_planted_traces,
};
use lineup_samples::writer::{BufferOf, EventSpec, MappingSpec, SampleSpec, Writer, kind, source};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::process::Command;

#[test]
fn every_member_has_exactly_the_samples_that_were_planted_in_it() {
    let program = Program::build();
    let planted = write_planted(&program, "perf.data");
    let found = program.import(&["perf.data"]);
    assert_eq!(found["schema"], "lineup.samples/1");
    assert_eq!((number(&found, "lost_records"), &found["is_whole"]), (19, &Value::Bool(true)));
    holds_what_was_planted(&found, &planted);
}

/// Every member and every function has exactly its planted samples.
fn holds_what_was_planted(found: &Value, planted: &[Planted]) {
    let mut members: BTreeMap<(&str, &str), [u64; 5]> = BTreeMap::new();
    let mut evidence: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    let mut functions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sources: BTreeMap<(&str, &str, u64), u64> = BTreeMap::new();
    for one in planted {
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
    for data in array(found, "data") {
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
    let found_functions: BTreeMap<&str, u64> = array(found, "functions")
        .iter()
        .map(|function| (function["name"].as_str().unwrap(), number(function, "samples")))
        .collect();
    assert_eq!(found_functions, functions);
}

#[test]
fn every_member_has_exactly_the_samples_that_were_planted_in_traces_of_arms_processors() {
    let program = Program::build();
    let planted = write_planted_traces(&program, "perf.data");
    let found = program.import(&["perf.data"]);
    holds_what_was_planted(&found, &planted);
    let event = &array(&found, "events")[0];
    assert_eq!((event["name"].as_str(), number(event, "samples")), (Some("arm_spe_0//"), 286));
    assert_eq!(number(event, "precise"), 286);

    // Data from another CPU's cache, by line.
    let line = &array(&found, "lines")[0];
    assert_eq!((number(line, "samples"), line["address"].as_str()), (29, Some("0x7f0000002040")));
    assert_eq!((number(line, "weight"), line["process"].as_u64()), (29 * 120, Some(PROCESS.into())));
    let loaded: Vec<u64> = array(line, "cpus").iter().map(|cpu| number(cpu, "samples")).collect();
    assert_eq!(loaded, [8, 7, 7, 7], "29 in turns on four CPUs");
    let sources: BTreeMap<&str, u64> = array(&found, "sources")
        .iter()
        .map(|one| (one["from"].as_str().unwrap(), number(one, "samples")))
        .collect();
    let expected = [
        ("load, L1", 129),
        ("load, L3", 10),
        ("load, a cache, given by another CPU", 29),
        ("load, memory", 70),
        ("store, L1", 48),
    ];
    assert_eq!(sources, BTreeMap::from(expected));
    let notes: Vec<&str> = array(&found, "notes").iter().map(|note| note.as_str().unwrap()).collect();
    assert!(notes.iter().any(|note| note.starts_with("1 parts of traces had no room for all")), "{notes:?}");
    assert!(!notes.iter().any(|note| note.contains("not marked as precise")), "{notes:?}");

    // The same file, found worth a look and explained.
    let worth = program.json(&["find", "--json", "perf.data"]);
    let passed = array(&worth, "findings").iter().find(|one| one["worth"] == "passed_between_cpus").unwrap();
    assert_eq!((passed["subject"].as_str(), number(passed, "samples")), (Some("device"), 29));
    let explained = program.json(&["explain", "--json", "perf.data", "--region", "read_last"]);
    let data: Vec<_> =
        array(&explained, "data").iter().map(|one| (one["name"].as_str(), number(one, "samples"))).collect();
    assert_eq!(data, [(Some("device"), 7)]);
}

#[test]
fn a_trace_of_which_nothing_can_be_read_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let event = EventSpec {
        name: "arm_spe_0//".to_owned(),
        kind: 8,
        sample_type: kind::MEMORY,
        ..EventSpec::default()
    };
    let mut writer = Writer::file(File::create(folder.path().join("perf.data")).unwrap(), &[event]).unwrap();
    writer.trace_info(8).unwrap();
    writer.chunk(BufferOf::Cpu(0), 0, &[0xff; 512]).unwrap();
    writer.finish().unwrap();
    let done = lineup(folder.path(), &["explain", "perf.data"]);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && said.contains("hold no record that can be read"), "{said}");
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
    let done = lineup(program.path(), &["explain", "perf.data"]);
    assert!(done.status.success());
    let text = String::from_utf8_lossy(&done.stdout);
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
    let mapping = MappingSpec { build_id: Some(&bytes), ..program.mapping("/container/bin/program") };
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
    // A list by another boot, which had the kernel elsewhere.
    std::fs::write(cache.join("kallsyms"), "ffff0000 T _text\nffff0040 T schedule\nffff0080 t tick\n")
        .unwrap();
    let done = lineup(folder, &["explain", "--json", "perf.data"]);
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
    writer.mapping(&program.mapping(&path)).unwrap();
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
    let shown = lineup(program.path(), &["explain", "--find", "find.json", "perf.data"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_eq!(shown.matches("does not explain it").count(), 2, "{shown}");
    let refused = lineup(program.path(), &["explain", "--find", "program.c", "perf.data"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_is_no_file_of_samples_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for (text, why) in [
        ("nothing of the kind", "the file is text, as `perf script` prints"),
        ("", "the file is empty"),
        ("\x7fELF\x02\x01\x01 and more", "not a recording"),
    ] {
        std::fs::write(folder.path().join("other"), text).unwrap();
        let done = lineup(folder.path(), &["explain", "other"]);
        assert_eq!(done.status.code(), Some(2));
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.contains("other") && said.contains(why), "{said}");
    }
}

/// The output of `lineup explain` for clock samples that perf takes, with chains of calls, of a program built from this
/// source.
fn taken_by_perf(folder: &Path, program: &str, source: &str, flags: &[&str]) -> Value {
    let file = format!("{program}.c");
    std::fs::write(folder.join(&file), source).unwrap();
    output("gcc", &[flags, &["-o", program, &file]].concat(), folder);
    let program = format!("./{program}");
    output("perf", &["record", "-q", "-e", "cpu-clock", "-g", "-o", "perf.data", &program], folder);
    let found = lineup(folder, &["explain", "--json", "perf.data"]);
    serde_json::from_slice(&found.stdout).expect("JSON")
}

#[test]
fn what_perf_took_of_a_real_program_names_its_functions() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let found = taken_by_perf(
        folder,
        "busy",
        "long spin(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i * i ^ sum; return sum; }\n\
         int main(void) { return spin(300000000) == 1; }\n",
        &["-g", "-O1"],
    );
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

/// A program whose functions call each other and themselves: shares with callees are those that perf reports.
#[test]
fn shares_of_functions_with_what_they_call_are_those_of_perf() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let found = taken_by_perf(
        folder,
        "calls",
        "long spin(long n) { long sum = 0; for (long i = 0; i < n; i++) sum += i * i ^ sum; return sum; }\n\
         long down(int depth) { return spin(9000000) + (depth > 0 ? down(depth - 1) : 0); }\n\
         long both(void) { return spin(60000000) + down(5); }\n\
         int main(void) { return both() + down(9) == 1; }\n",
        &["-g", "-O0", "-fno-omit-frame-pointer"],
    );
    let own = array(&found, "functions").iter().filter(|one| text(&one["file"]).ends_with("/calls"));
    let percents = |share: &Value| (share.as_f64().expect("a share") * 1e4).round() / 1e2;
    let ours: BTreeMap<&str, (f64, f64)> = own
        .map(|one| (text(&one["name"]), (percents(&one["with_callees"]["share"]), percents(&one["share"]))))
        .collect();
    let fields = ["--children", "-g", "none", "-F", "overhead_children,overhead,sym", "--stdio"];
    let printed = output("perf", &[&["report", "-i", "perf.data"][..], &fields].concat(), folder);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        let mut figure = || words.next()?.strip_suffix('%')?.parse::<f64>().ok();
        let figures = (figure()?, figure()?);
        Some((line.split("[.] ").nth(1)?.trim().to_owned(), figures))
    };
    let theirs: BTreeMap<String, (f64, f64)> = printed.lines().filter_map(row).collect();
    for name in ["main", "both", "down", "spin"] {
        let (one, other) = (ours[name], theirs[name]);
        let is_near = |one: f64, other: f64| (one - other).abs() < 0.011;
        assert!(is_near(one.0, other.0) && is_near(one.1, other.1), "{name}: {one:?} {other:?}");
    }
    assert!(ours["main"].0 > 80.0 && ours["down"].0 > ours["both"].0 - ours["down"].0, "{ours:?}");
    let printed = lineup(folder, &["explain", "perf.data"]);
    assert!(String::from_utf8_lossy(&printed.stdout).contains("Functions with their callees"));
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}
