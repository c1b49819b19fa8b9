//! `lineup find` and `lineup explain` of a perf.data: planted samples are found, with exactly their shares, and the
//! output names the recording that would show more than samples can.

use crate::planted::{PROCESS, Program, array, lineup, number, output, write_planted};
use crate::schema;
use lineup_samples::writer::{EventSpec, MappingSpec, SampleSpec, Writer, kind, source};
use serde_json::Value;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

/// An object that lies so that two of its members are on one line.
const OBJECT: u64 = 0x7f00_0000_2018;

fn texts<'v>(value: &'v Value, key: &str) -> Vec<&'v str> {
    array(value, key).iter().map(|text| text.as_str().unwrap()).collect()
}

/// Loads of `hits` that find the line changed, stores to `flags` on the same line, and loads of `id` from the first
/// level.
fn write_passed(program: &Program) {
    program.samples("perf.data", |writer| {
        let kinds = [
            ("read_hits", OBJECT + 48, source::LOAD_HITM, 20, 300),
            ("write_flags", OBJECT + 56, source::STORE_L1, 30, 0),
            ("read_id", OBJECT, source::LOAD_L1, 50, 40),
        ];
        let mut time_ns = 1000;
        for (function, address, source, count, weight) in kinds {
            for turn in 0..count {
                time_ns += 10;
                let sample = SampleSpec {
                    instruction: program.at(function),
                    process: PROCESS,
                    thread: PROCESS,
                    time_ns,
                    address,
                    cpu: turn % 2,
                    period: 1,
                    weight,
                    source,
                    ..SampleSpec::default()
                };
                writer.sample(&sample).unwrap();
            }
        }
    });
}

#[test]
fn a_line_that_cpus_take_from_each_other_is_found_with_what_was_stored_to_it() {
    let program = Program::build();
    write_passed(&program);
    let found = program.json(&["find", "--json", "perf.data"]);
    assert_eq!(found["schema"], "lineup.samples/1");
    let findings = array(&found, "findings");
    let told: Vec<(&str, &str)> = findings
        .iter()
        .map(|one| (one["worth"].as_str().unwrap(), one["subject"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("waited_for", "device"), ("passed_between_cpus", "device")]);
    let passed = &findings[1];
    assert!((passed["share"].as_f64().unwrap() - 6000.0 / 8000.0).abs() < 1e-12, "{passed}");
    assert_eq!((number(passed, "samples"), number(passed, "weight")), (20, 6000));
    assert_eq!(texts(passed, "members"), ["hits"]);
    assert_eq!(texts(passed, "functions"), ["read_hits"]);
    assert_eq!(texts(passed, "written"), ["device.flags by write_flags"]);
    let waited = &findings[0];
    assert_eq!((waited["share"].as_f64(), number(waited, "samples")), (Some(1.0), 100));
    assert_eq!(texts(waited, "members"), ["hits", "id"]);
    let command = waited["command"].as_str().unwrap();
    assert!(command.starts_with("lineup record --region read_id --region write_flags --region read_hits"));

    let line = &array(&found, "lines")[0];
    let stored = &array(line, "stores")[0];
    assert_eq!((number(stored, "at"), stored["name"].as_str()), (16, Some("device.flags")));
    assert_eq!((stored["function"].as_str(), number(stored, "samples")), (Some("write_flags"), 30));

    let shown = lineup(program.path(), &["find", "perf.data"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    for part in [
        "2. device: 20 loads took their line from another CPU, 75.0 % of all latency",
        "stores to these lines: device.flags by write_flags",
        "which members a call touches together: lineup record --region read_id",
    ] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
}

#[test]
fn findings_are_those_of_at_least_the_share_that_is_asked_for() {
    let program = Program::build();
    write_planted(&program, "perf.data");
    let count = |least: &str| {
        let found = program.json(&["find", "--json", "--least", least, "perf.data"]);
        array(&found, "findings").len()
    };
    assert_eq!((count("0"), count("10"), count("99.9")), (4, 2, 0));
    let shown = lineup(program.path(), &["find", "--least", "99.9", "perf.data"]);
    assert!(String::from_utf8(shown.stdout).unwrap().contains("nothing took so large a share"));
}

#[test]
fn what_is_no_perf_data_is_refused_and_a_program_without_its_dashes_is_told_of_them() {
    let program = Program::build();
    let refused = |file: &str| {
        let done = lineup(program.path(), &["find", file]);
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8(done.stderr).unwrap()
    };
    assert!(refused("program").contains("a program goes behind two dashes: lineup find -- program"));
    assert!(refused("nowhere").contains("nowhere"));
}

#[test]
fn an_explanation_is_of_all_accesses_or_of_those_by_one_function() {
    let program = Program::build();
    let planted = write_planted(&program, "perf.data");
    let members = |arguments: &[&str]| {
        let found = program.json(&[&["explain", "--json", "perf.data"], arguments].concat());
        let data = array(&found, "data").iter();
        data.map(|data| array(data, "members").iter().map(|one| number(one, "samples")).sum::<u64>())
            .sum::<u64>()
    };
    let all: u64 = planted.iter().map(|one| one.count).sum();
    let own = planted.iter().filter(|one| one.function == "read_hits").map(|one| one.count).sum::<u64>();
    assert_eq!((members(&[]), members(&["--region", "read_hits"])), (all, own));

    let shown = lineup(program.path(), &["explain", "perf.data", "--region", "read_hits"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("device") && shown.contains("hits") && !shown.contains("flags"), "{shown}");

    let refused = |arguments: &[&str]| {
        let done = lineup(program.path(), &[&["explain", "perf.data"], arguments].concat());
        assert_eq!(done.status.code(), Some(2));
        String::from_utf8(done.stderr).unwrap()
    };
    assert!(refused(&["--region", "nowhere"]).contains("no sample is in nowhere; most are in read_id"));
    assert!(refused(&["--cache", "l1d=32K,8,64"]).contains("--cache needs recorded calls"));
}

#[test]
fn samples_without_addresses_tell_functions_and_what_would_tell_their_data() {
    let program = Program::build();
    let event = EventSpec { sample_type: kind::IP | kind::TID | kind::TIME, ..EventSpec::default() };
    let out = BufWriter::new(File::create(program.path().join("perf.data")).unwrap());
    let mut writer = Writer::file(out, &[event]).unwrap();
    let path = program.file();
    writer.mapping(&program.mapping(&path)).unwrap();
    for number in 0..100 {
        let name = if number < 80 { "read_hits" } else { "look_up" };
        let sample = SampleSpec { instruction: program.at(name), process: PROCESS, ..SampleSpec::default() };
        writer.sample(&sample).unwrap();
    }
    writer.finish().unwrap();
    let found = program.json(&["find", "--json", "perf.data"]);
    let told: Vec<_> = array(&found, "findings")
        .iter()
        .map(|one| (one["worth"].as_str().unwrap(), one["subject"].as_str().unwrap(), one["share"].as_f64()))
        .collect();
    assert_eq!(told, [("time_spent", "read_hits", Some(0.8)), ("time_spent", "look_up", Some(0.2))]);
    let command = array(&found, "findings")[0]["command"].as_str().unwrap();
    assert_eq!(command, format!("lineup record --region read_hits --out calls.rec -- {path} ARGUMENTS"));
}

/// `DI` of x86-64, in which a function gets its first argument, and its number as perf has it.
const FIRST_ARGUMENT: u64 = 1 << 5;

#[test]
fn addresses_are_worked_out_from_registers_where_samples_have_none() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: registers of x86-64 are planted");
        return;
    }
    let program = Program::build();
    let event = EventSpec {
        sample_type: kind::IP | kind::TID | kind::TIME | kind::REGS_INTR,
        interrupted_registers: FIRST_ARGUMENT,
        ..EventSpec::default()
    };
    let out = BufWriter::new(File::create(program.path().join("perf.data")).unwrap());
    let mut writer = Writer::file(out, &[event]).unwrap();
    let path = program.file();
    writer.mapping(&program.mapping(&path)).unwrap();
    let planted = [
        // Its argument is a variable, or lies on the heap; another's needs no register.
        ("read_refused", program.at("stats"), 7),
        ("read_refused", 0x7f00_0000_0000, 5),
        ("count_served", 0, 3),
        // Its first instruction accesses nothing.
        ("main", 0, 2),
    ];
    for (function, argument, count) in planted {
        for _ in 0..count {
            let sample = SampleSpec {
                instruction: program.at(function),
                process: PROCESS,
                interrupted_registers: vec![argument],
                ..SampleSpec::default()
            };
            writer.sample(&sample).unwrap();
        }
    }
    writer.finish().unwrap();
    let found = program.import(&["perf.data"]);
    assert!(number(&found, "worked_out_addresses") >= 15, "{found:#}");
    let counters = array(&found, "data").iter().find(|data| data["name"] == "counters").unwrap();
    let members: Vec<_> = array(counters, "members")
        .iter()
        .map(|one| {
            let evidence: Vec<_> = array(one, "evidence")
                .iter()
                .map(|one| (one["evidence"].as_str().unwrap(), number(one, "samples")))
                .collect();
            (one["path"].as_str().unwrap(), number(one, "worked_out"), evidence)
        })
        .collect();
    assert_eq!(
        members,
        [
            ("served", 3, vec![("global_address", 3)]),
            ("refused", 12, vec![("global_address", 7), ("located_register", 5)]),
        ]
    );
    let notes = texts(&found, "notes");
    assert!(notes.iter().any(|note| note.contains("have no address, and registers")), "{notes:?}");
    // A program's samples of places do not measure its accesses.
    let findings = array(&found, "findings");
    assert!(findings.iter().all(|one| one["worth"] == "time_spent"), "{findings:#?}");
    assert_eq!(findings[0]["subject"], "read_refused");
}

/// A module of two sections of code, and one that the kernel frees, whose functions each access one member.
const MODULE: &str = r#"
struct queue { long head; char room[24]; long tail; };
#define OWN(name) __attribute__((noinline, used, section(name)))
OWN(".init.text") long begin(struct queue *queue) { return queue->head; }
OWN(".text") long take(struct queue *queue) { return queue->head; }
OWN(".text.unlikely") void refuse(struct queue *queue) { queue->tail = 0; }
"#;

/// Builds it with a build id, and returns that id.
fn build_module(folder: &Path, file: &str) -> Vec<u8> {
    std::fs::write(folder.join("module.c"), MODULE).unwrap();
    let options = ["-g", "-O2", "-c", "-ffreestanding", "-fno-pic", "-fcf-protection=none", "-o", "module.o"];
    output("gcc", &[&options[..], &["module.c"]].concat(), folder);
    output("ld", &["-r", "--build-id=sha1", "-o", file, "module.o"], folder);
    let notes = output("readelf", &["-n", file], folder);
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).expect("a build id");
    (0..id.len()).step_by(2).map(|at| u64::from_str_radix(&id[at..at + 2], 16).unwrap() as u8).collect()
}

/// The kernel's place of a section of code: in the order of the file, sections for the start left out.
fn distance(folder: &Path, file: &str, wanted: &str) -> u64 {
    let listed = output("readelf", &["-SW", file], folder);
    let mut next = 0u64;
    for line in listed.lines().filter_map(|line| line.split_once(']').map(|(_, rest)| rest)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, _, _, _, size, _, flags, .., alignment] = words.as_slice() else { continue };
        if !flags.contains("AX") || name.starts_with(".init") {
            continue;
        }
        let start = next.next_multiple_of(alignment.parse::<u64>().unwrap().max(1));
        if *name == wanted {
            return start;
        }
        next = start + u64::from_str_radix(size, 16).unwrap();
    }
    panic!("no {wanted} in {listed}")
}

fn write_in_module(folder: &Path, build_id: &[u8], release: Option<&str>, places: &[u64]) {
    let event = EventSpec { sample_type: kind::MEMORY, ..EventSpec::default() };
    let mut writer = Writer::file(File::create(folder.join("perf.data")).unwrap(), &[event]).unwrap();
    let start = 0xffff_ffff_c0a0_0000;
    let mapping = MappingSpec {
        process: u32::MAX,
        start,
        size_bytes: 0x4000,
        file_offset: 0,
        protection: 5,
        path: "[some_module]",
        build_id: Some(build_id),
    };
    writer.mapping(&mapping).unwrap();
    for place in places {
        let sample = SampleSpec {
            instruction: start + place,
            process: PROCESS,
            address: 0xffff_8880_0000_1000,
            period: 1,
            weight: 10,
            source: source::LOAD_L1,
            is_kernel: true,
            ..SampleSpec::default()
        };
        writer.sample(&sample).unwrap();
    }
    release.into_iter().for_each(|release| writer.release(release));
    writer.finish().unwrap();
}

fn named(folder: &Path, arguments: &[&str]) -> Vec<(String, u64)> {
    let done = lineup(folder, &[&["explain", "--json", "perf.data"], arguments].concat());
    let found = schema::checked(&done.stdout);
    let functions = array(&found, "functions").iter();
    functions.map(|one| (one["name"].as_str().unwrap().to_owned(), number(one, "samples"))).collect()
}

#[test]
fn functions_and_members_of_a_module_are_named_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tree = folder.join("symbols/kernel/drivers");
    std::fs::create_dir_all(&tree).unwrap();
    let id = build_module(folder, "symbols/kernel/drivers/some-module.ko");
    let file = "symbols/kernel/drivers/some-module.ko";
    let (take, refuse) = (distance(folder, file, ".text"), distance(folder, file, ".text.unlikely"));
    write_in_module(folder, &id, Some("6.1.0-test"), &[take, take, refuse]);
    let symbols = ["--symbols", "symbols"];
    assert_eq!(named(folder, &symbols), [("take".to_owned(), 2), ("refuse".to_owned(), 1)]);
    let found =
        schema::checked(&lineup(folder, &["explain", "--json", "perf.data", "--symbols", "symbols"]).stdout);
    let queue = array(&found, "data").iter().find(|data| data["name"] == "queue").expect("its type");
    assert_eq!((array(queue, "members")[0]["path"].as_str(), number(queue, "samples")), (Some("head"), 2));

    output("xz", &["--check=crc32", file], folder);
    assert_eq!(named(folder, &symbols), [("take".to_owned(), 2), ("refuse".to_owned(), 1)], "packed");
    write_in_module(folder, &[1; 20], Some("6.1.0-test"), &[take]);
    assert_eq!(named(folder, &symbols), [("(no symbol)".to_owned(), 1)], "another build's");
}

#[test]
fn a_module_in_a_cache_is_found_by_its_build_id_without_a_release() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let id = build_module(folder, "module.ko");
    let spelled: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let cache = folder.join(".debug/.build-id").join(&spelled[..2]).join(&spelled[2..]);
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::copy(folder.join("module.ko"), cache.join("elf")).unwrap();
    write_in_module(folder, &id, None, &[distance(folder, "module.ko", ".text.unlikely")]);
    assert_eq!(named(folder, &[]), [("refuse".to_owned(), 1)]);
}
