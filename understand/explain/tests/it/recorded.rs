//! From a recording's bytes to an explanation: lines, patterns, sharing, coverage.

use lineup_debuginfo::{DebugInfo, NoCompanions};
use lineup_explain::explanation::{Explanation, Lack};
use lineup_explain::instruction::{InstructionSet, Touch, decode};
use lineup_explain::{Options, Survey};
use lineup_model::abi::Abi;
use lineup_model::access::{Access, CallEnd, ProcessId, StackRange, ThreadId};
use lineup_model::image::LoadedImage;
use lineup_model::line::LineSize;
use lineup_model::region::{Region, RegionId};
use lineup_recording::{CallHead, Encoder, Header, Mode, Reader, Writer};
use std::process::Command;

const SOURCE: &str = "
    struct job { int state; char name[60]; long total; struct job *next; };
    struct { long hits; long limit; } counters = { 1, 2 };
    long f(struct job *j) { counters.hits++; j->total += j->state; return counters.limit; }
";

struct Program {
    bytes: Vec<u8>,
    image: LoadedImage,
    entry: u64,
    touches: Vec<(u64, Touch)>,
}

fn program() -> Program {
    compile(SOURCE, &["-g"])
}

fn compile(source: &str, options: &[&str]) -> Program {
    let folder = tempfile::tempdir().unwrap();
    let (text, file) = (folder.path().join("a.c"), folder.path().join("a"));
    std::fs::write(&text, source).unwrap();
    let output = Command::new("x86_64-linux-gnu-gcc")
        .args(options)
        .args(["-O1", "-nostdlib", "-static", "-no-pie", "-Wl,-e,f", "-o"])
        .args([&file, &text])
        .output()
        .expect("x86_64-linux-gnu-gcc runs; apt-get install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = std::fs::read(&file).unwrap();
    let debug = DebugInfo::parse(bytes.clone(), &mut NoCompanions).unwrap();
    let symbol = |name: &str| {
        let found = debug.symbols().iter().find(|symbol| symbol.name == name).unwrap();
        (found.address, found.size_bytes)
    };
    let (entry, size) = symbol("f");
    let code = debug.code(entry..entry + size).unwrap();
    let decoded = decode(InstructionSet::X86_64, entry, code).unwrap();
    let touches =
        decoded.iter().flat_map(|one| one.touches.iter().map(move |touch| (one.address, *touch))).collect();
    let image = LoadedImage {
        path: "a".into(),
        start: debug.first_load_address().unwrap(),
        end: debug.segments().iter().map(|segment| segment.addresses.end).max().unwrap(),
        bias: 0,
        build_id: None,
    };
    Program { bytes, image, entry, touches }
}

/// The accesses of one call with the job at an address: an access without a base register is a variable.
fn accesses(program: &Program, job: u64) -> Vec<Access> {
    let off_stack = program.touches.iter().filter(|(_, touch)| touch.at.base.is_none_or(|base| base.0 != 7));
    off_stack
        .map(|(pc, touch)| Access {
            pc: *pc,
            address: touch.at.displacement as u64 + touch.at.base.map_or(0, |_| job),
            size_bytes: touch.size_bytes,
            kind: touch.kind,
            value: None,
        })
        .collect()
}

/// A recording of calls, each by a thread on a job at an address.
fn recording(program: &Program, calls: &[(u32, u64)]) -> Vec<u8> {
    let mut header = Header::new(Abi::X86_64, vec!["a".into()]);
    header.regions.push(Region {
        name: "f".into(),
        weight: 1.0,
        image: "a".into(),
        entries: vec![program.entry],
    });
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut encoder = Encoder::new();
    encoder.image(&program.image);
    encoder.stack(&StackRange { thread: ThreadId(0), start: 0x7000_0000, end: 0x7001_0000 });
    for (index, (thread, job)) in calls.iter().enumerate() {
        let head = CallHead {
            region: RegionId(0),
            process: ProcessId(0),
            thread: ThreadId(*thread),
            sequence: index as u64,
            entered_at: index as u64,
            end: CallEnd::Returned,
            depth: 0,
            instructions: 12,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: None,
        };
        encoder.call(&head, &accesses(program, *job), &[program.entry & !31], &[]);
    }
    writer.append(&encoder.seal().unwrap()).unwrap();
    writer.into_inner()
}

fn explain(program: &Program, recording: &[u8], options: Options) -> Explanation {
    let survey = Survey::read(Reader::new(recording).unwrap());
    let debug = DebugInfo::parse(program.bytes.clone(), &mut NoCompanions).unwrap();
    survey.explain(&[Some(debug)], options, || Reader::new(recording)).unwrap()
}

#[test]
fn lines_per_call_count_every_line_once() {
    let program = program();
    let explanation =
        explain(&program, &recording(&program, &[(0, 0x10_0000), (0, 0x10_0020)]), Options::default());
    let region = &explanation.regions[0];
    assert_eq!((region.name.as_str(), region.calls), ("f", 2));
    let of_64 = region.lines.iter().find(|lines| lines.line_bytes == 64).unwrap();
    // The job's state and total are on two lines, the counters on one.
    assert_eq!(of_64.data.unwrap().median, 3);
    assert_eq!(of_64.code.unwrap().median, 1);
    assert_eq!(explanation.coverage.named, Some(1.0));
}

#[test]
fn a_line_tells_what_is_used_and_what_rides_along() {
    let program = program();
    let explanation =
        explain(&program, &recording(&program, &[(0, 0x10_0000), (0, 0x10_0000)]), Options::default());
    let map = &explanation.regions[0].map;
    let first = map.iter().find(|line| line.type_name.as_deref() == Some("job") && line.line == 0).unwrap();
    assert_eq!(first.base_in_line, Some(0));
    assert_eq!((first.needed_per_call, first.loads_per_call, first.stores_per_call), (1.0, 1.0, 0.0));
    assert_eq!((first.parts[0].name.as_str(), first.bytes_used), ("state", 4.0));
    assert_eq!(first.cold.iter().map(|part| part.name.as_str()).collect::<Vec<_>>(), ["name"]);
    let counters = map.iter().find(|line| line.type_name.is_none()).unwrap();
    let names: Vec<&str> = counters.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["counters.hits", "counters.limit"]);
}

#[test]
fn bytes_of_a_struct_in_a_variable_are_listed_once_and_known_to_advice() {
    let source = "
        struct job { int state; char name[60]; long total; struct job *next; } last = { 1 };
        long f(struct job *j) { last.total++; return last.state; }
    ";
    let program = compile(source, &["-g"]);
    let explanation =
        explain(&program, &recording(&program, &[(0, 0x10_0000), (1, 0x10_0000)]), Options::default());
    let of_64 = explanation.regions[0].lines.iter().find(|lines| lines.line_bytes == 64).unwrap();
    let listed: f64 = explanation.regions[0].map.iter().map(|line| line.needed_per_call).sum();
    assert_eq!(listed, of_64.data.unwrap().mean);
    assert!(explanation.regions[0].map.iter().all(|line| line.type_name.is_none()));
    let shared: Vec<&String> = explanation.shared_lines.iter().flat_map(|line| &line.parts).collect();
    assert!(shared.iter().all(|part| part.starts_with("last.")), "{shared:?}");
    assert_eq!(explanation.usage[0].types[0].patterns[0].occurrences, 2);
}

#[test]
fn usage_for_advice_holds_patterns_of_objects_and_variables() {
    let program = program();
    let recorded = recording(&program, &[(0, 0x10_0000), (0, 0x10_0020), (0, 0x10_0080)]);
    let explanation = explain(&program, &recorded, Options::default());
    let usage = &explanation.usage[0];
    let debug = DebugInfo::parse(program.bytes.clone(), &mut NoCompanions).unwrap();
    let job = usage
        .types
        .iter()
        .find(|used| debug.types().get(used.ty).unwrap().name.as_deref() == Some("job"))
        .unwrap();
    let places: Vec<(u8, u64)> =
        job.patterns.iter().map(|pattern| (pattern.base_in_line, pattern.occurrences)).collect();
    assert_eq!((job.calls, places), (3, vec![(0, 2), (32, 1)]));
    let bytes: Vec<(u64, u64)> =
        job.patterns[0].bytes.iter().map(|run| (run.offset, run.size_bytes)).collect();
    assert_eq!(bytes, [(0, 4), (64, 8)]);
    let variables = &usage.variables[0].patterns[0];
    assert_eq!((variables.variables[0].0.name.as_str(), variables.occurrences), ("counters", 3));
}

#[test]
fn threads_that_write_one_counter_share_its_line_and_disturb_its_neighbour() {
    let program = program();
    let recorded = recording(&program, &[(0, 0x10_0000), (1, 0x20_0000), (0, 0x10_0000)]);
    let explanation = explain(&program, &recorded, Options::default());
    assert_eq!(explanation.threads, 2);
    let line = &explanation.shared_lines[0];
    assert_eq!((line.true_handovers, line.writers.as_slice()), (2, &[0, 1][..]));
    assert!(line.parts.contains(&"counters.hits*".to_owned()), "{:?}", line.parts);
    let counters = explanation.regions[0].map.iter().find(|line| line.type_name.is_none()).unwrap();
    assert!(counters.is_shared);
    assert!(explanation.usage[0].sharing.iter().any(|sharing| sharing.offset == 0 && sharing.handovers == 2));
}

#[test]
fn pressure_turns_a_footprint_into_misses() {
    let program = program();
    let recorded = recording(&program, &[(0, 0x10_0000)]);
    let options = Options {
        caches: vec!["l1d=32K,8,64".parse().unwrap()],
        pressure_bytes: vec![0, 1 << 30],
        ..Options::default()
    };
    let misses: Vec<f64> = explain(&program, &recorded, options).regions[0]
        .misses
        .iter()
        .map(|one| one.misses_per_call)
        .collect();
    assert!(misses[0] == 0.0 && (misses[1] - 3.0).abs() < 1e-6, "{misses:?}");
}

#[test]
fn a_smaller_line_size_finds_more_lines() {
    let program = program();
    let options = Options { line_size: LineSize::B32, ..Options::default() };
    let explanation = explain(&program, &recording(&program, &[(0, 0x10_0000)]), options);
    let total = explanation.regions[0].map.iter().find(|line| line.parts[0].name == "total").unwrap();
    assert_eq!((explanation.line_bytes, total.line), (32, 2));
}

#[test]
fn an_image_that_cannot_be_read_leaves_accesses_unnamed_not_lost() {
    let program = program();
    let recorded = recording(&program, &[(0, 0x10_0000)]);
    let survey = Survey::read(Reader::new(recorded.as_slice()).unwrap());
    let explanation =
        survey.explain(&[None], Options::default(), || Reader::new(recorded.as_slice())).unwrap();
    let coverage = &explanation.regions[0].coverage;
    assert_eq!((coverage.accesses, coverage.named), (accesses(&program, 0).len() as u64, Some(0.0)));
    assert_eq!(explanation.regions[0].unnamed[0].lacks, Some(Lack::DebugInfo));
}

#[test]
fn functions_without_types_say_why_their_accesses_have_no_names() {
    for (flag, lacks) in [("-g1", Some(Lack::Types)), ("-g", None)] {
        let program = compile(SOURCE, &[flag]);
        let explanation = explain(&program, &recording(&program, &[(0, 0x10_0000)]), Options::default());
        let found = explanation.regions[0].unnamed.first().and_then(|unnamed| unnamed.lacks);
        assert_eq!(found, lacks, "{flag}: {:?}", explanation.regions[0].unnamed);
    }
}

#[test]
fn variables_of_which_only_the_symbol_is_known_are_on_the_line_map() {
    let source = "
        namespace shop { struct { long hits, unread, limit; } counters __attribute__((aligned(64))) = { 1, 2, 3 };
                         long beside = 4; }
        extern \"C\" long f(void *) { shop::counters.hits++; return shop::counters.limit; }
    ";
    let program = compile(source, &["-g0", "-x", "c++", "-fno-toplevel-reorder"]);
    let explanation =
        explain(&program, &recording(&program, &[(0, 0x10_0000), (1, 0x10_0000)]), Options::default());
    let [region] = &explanation.regions[..] else { panic!("{explanation:#?}") };
    let [line] = &region.map[..] else { panic!("{:#?}", region.map) };
    let start = line.line * 64;
    let parts: Vec<(&str, u64)> =
        line.parts.iter().map(|part| (part.name.as_str(), part.offset - start)).collect();
    assert_eq!(parts, [("shop::counters", 0), ("shop::counters", 16)]);
    let hits = &line.parts[0];
    assert_eq!((line.needed_per_call, hits.loads_per_call, hits.stores_per_call), (1.0, 1.0, 1.0));
    let cold: Vec<(&str, u64)> = line.cold.iter().map(|part| (part.name.as_str(), part.size_bytes)).collect();
    assert_eq!(cold, [("shop::beside", 8)]);
    assert!(line.is_shared);
    assert_eq!(region.coverage.named, Some(1.0));
}

/// A recording may be large: it is read as often as naming needs, once for everything but calls and twice for the
/// calls, and never held in memory as a whole.
#[test]
fn calls_are_read_twice_after_all_else_was_read_once() {
    let program = program();
    let recording = recording(&program, &[(0, 0x10_0000), (0, 0x10_0020)]);
    let survey = Survey::read(Reader::new(recording.as_slice()).unwrap());
    let debug = DebugInfo::parse(program.bytes.clone(), &mut NoCompanions).unwrap();
    let opened = std::cell::Cell::new(0);
    let open = || {
        opened.set(opened.get() + 1);
        Reader::new(recording.as_slice())
    };
    let explanation = survey.explain(&[Some(debug)], Options::default(), open).unwrap();
    assert_eq!((explanation.regions[0].calls, opened.get()), (2, 2));
}

#[test]
fn the_sections_of_a_module_are_one_image_at_the_addresses_where_it_ran() {
    let mut header = Header::new(Abi::X86_64, vec!["6.1".into()]);
    header.mode = Mode::System;
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut encoder = Encoder::new();
    let image = |path: &str, start: u64, end: u64, link: u64| LoadedImage {
        path: path.into(),
        start,
        end,
        bias: start.wrapping_sub(link),
        build_id: None,
    };
    let (text, data) = (0xffff_ffff_c020_0000, 0xffff_ffff_c010_0000);
    let sections = [image("a.ko", text, text + 0x100, 0x1_0000), image("a.ko", data, data + 0x40, 0x1_0100)];
    encoder.image(&image("vmlinuz", 0xffff_8000_0000_0000, u64::MAX, 0xffff_8000_0000_0000));
    sections.iter().for_each(|section| encoder.image(section));
    writer.append(&encoder.seal().unwrap()).unwrap();
    let bytes = writer.into_inner();
    let survey = Survey::read(Reader::new(bytes.as_slice()).unwrap());
    let [kernel, module] = &survey.images[..] else { panic!("{:?}", survey.images) };
    assert_eq!((kernel.path.as_str(), kernel.bias), ("vmlinuz", 0));
    assert_eq!((module.start, module.end, module.bias), (data, text + 0x100, 0));
    let places: Vec<(usize, u64, u64)> =
        survey.places.iter().map(|place| (place.image, place.loaded.start, place.loaded.bias)).collect();
    assert_eq!(places, [(1, text, 0), (1, data, 0)]);
    assert_eq!(survey.modules[&1], [(0x1_0000, text), (0x1_0100, data)].into());
}
