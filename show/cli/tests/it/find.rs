//! `lineup find`: findings in programs where the right answer is known.

use crate::place::Place;
use crate::schema;
use serde_json::Value;

/// Caches so small that little programs stall.
const CACHES: [&str; 6] = ["--cache", "l1i=4K,4,64", "--cache", "l1d=4K,4,64", "--cache", "l2=16K,8,64"];

/// Findings as JSON.
fn found(place: &Place, more: &[&str], arguments: &[&str]) -> Value {
    let all = [&["find", "--json"][..], &CACHES, more, &["--", "./program"], arguments].concat();
    let output = place.lineup(&all).output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    schema::checked(&output.stdout)
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number at {path} of {value}"))
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or_else(|| panic!("no text at {path} of {value}"))
}

fn owner<'v>(found: &'v Value, name: &str) -> &'v Value {
    let owners = found["owners"].as_array().expect("owners");
    owners.iter().find(|owner| owner["name"] == name).unwrap_or_else(|| panic!("no {name} in {found}"))
}

/// All modelled stalls.
fn stalls(found: &Value) -> f64 {
    number(found, "/stalls/code_cycles") + number(found, "/stalls/data_cycles")
}

/// Devices in an array of which two members are used, a list whose nodes hold text that is not, and numbers that fit in
/// the caches. With BEST the devices have the order that is best for them.
const DEVICES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#ifdef BEST
struct device { long hits; int flags; char more[60]; long id; char name[48]; };
#else
struct device { long id; char name[48]; long hits; char more[60]; int flags; };
#endif
struct node { struct node *next; char text[56]; int key; };
struct small { int a, b; };
static struct device devices[400] __attribute__((aligned(64)));
static struct small smalls[20];
static struct node *head;
__attribute__((noinline)) long walk(int turn) { long sum = 0; for (int i = 0; i < 400; i++) { sum += devices[i].hits; if (devices[i].flags > turn) sum++; } return sum; }
__attribute__((noinline)) long list(int key) { long sum = 0; for (struct node *node = head; node; node = node->next) if (node->key == key) sum++; return sum; }
__attribute__((noinline)) long numbers(long of) { long sum = of; for (int turn = 0; turn < 200; turn++) for (int i = 0; i < 20; i++) sum += smalls[i].a * turn; return sum; }
int main(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) smalls[i].a = argc + i;
	for (int i = 0; i < 400; i++) { devices[i].hits = i; devices[i].flags = i % 3; }
	for (int i = 0; i < 150; i++) { struct node *node = malloc(sizeof *node); node->next = head; node->key = i; head = node; }
	long sum = 0;
	for (int turn = 0; turn < 60; turn++) sum += walk(turn) + list(turn) + numbers(turn);
	printf("%ld\n", sum);
	return 0;
}
"#;

#[test]
fn the_types_that_stall_are_found_with_what_their_best_layout_gains() {
    let place = Place::new(DEVICES, &[]);
    let findings = found(&place, &[], &[]);
    // The windows cover the whole run, so that modelling it again gives the same stalls.
    assert_eq!(number(&findings, "/sample/accesses"), number(&findings, "/sample/of_accesses"));
    assert_eq!(number(&findings, "/sample/stall_cycles"), stalls(&findings));
    assert!(number(&findings, "/coverage/named") > 0.99, "{findings}");
    let devices = owner(&findings, "device");
    assert_eq!(devices["members"][0]["path"], "hits");
    assert_eq!(devices["members"][1]["path"], "flags");
    // Sixty walks and the beginning: two lines of each device every time.
    assert_eq!(number(devices, "/l1_misses"), 61.0 * 800.0);
    assert_eq!(number(devices, "/accesses"), 61.0 * 800.0);
    assert_eq!(number(devices, "/used_bytes_per_line"), 6.0);
    assert_eq!(number(devices, "/members/0/l1_misses"), 61.0 * 400.0);
    assert!(number(owner(&findings, "small"), "/share") < 0.01);
    let functions = findings["functions"].as_array().expect("functions");
    let walk = functions.iter().find(|function| function["name"] == "walk").expect("the function");
    // With the return address.
    assert_eq!(number(walk, "/accesses"), 60.0 * 801.0);
    assert!((number(walk, "/used_bytes_per_line") - 6.0).abs() < 0.01, "{walk}");
    assert!((1.0..=3.0).contains(&number(walk, "/code_lines")), "{walk}");
    let first = &findings["findings"][0];
    assert_eq!((text(first, "/subject"), &first["functions"]), ("device", &serde_json::json!(["walk"])));
    assert_eq!(
        text(first, "/next"),
        "lineup study --cache 'l1i=4K,4,64' --cache 'l1d=4K,4,64' --cache 'l2=16K,8,64' --region walk -- ./program"
    );
    assert_eq!((number(first, "/evidence/lines"), number(first, "/evidence/lines_needed")), (2.0, 1.0));
    assert_eq!(number(first, "/evidence/in_arrays"), 1.0);
    let node = &findings["findings"][1];
    assert_eq!(text(node, "/subject"), "node");
    assert_eq!(findings["configurations"].as_array().map(Vec::len), first["gains"].as_array().map(Vec::len));
    assert!(findings["configurations"].as_array().is_some_and(|all| all.len() >= 8));
}

/// Without types nothing is judged, though functions have names: that is no all-clear.
#[test]
fn a_program_without_debug_information_has_no_all_clear() {
    let place = Place::new(DEVICES, &["-g0"]);
    let all = [&["find", "--no-clock"][..], &CACHES, &["--", "./program"]].concat();
    let output = place.lineup(&all).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = said.lines().find(|line| line.contains("modelled stalls")).unwrap_or_default();
    let advice = "whose types are not known (no debug information; build with -g): no layout of it was tried";
    assert!(
        first.contains("of modelled stalls are for data without a name in ") && first.contains(advice),
        "{said}"
    );
    assert!(!said.contains("nothing is worth fixing") && !said.contains("code of a library"), "{said}");
    assert!(!said.contains("devices, 7"), "its members are unknown, not absent: {said}");
    place.assert_clean();
}

/// A list whose nodes hold numbers used side by side, before text that is not, and an array of two members far apart.
const NODES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { struct node *next; long key; char text[112]; };
struct far_apart { long first; char text[112]; long last; };
static struct far_apart table[300] __attribute__((aligned(64)));
static struct node *head;
__attribute__((noinline)) long list(int key) { long sum = 0; for (struct node *node = head; node; node = node->next) if (node->key == key) sum++; return sum; }
__attribute__((noinline)) long both(void) { long sum = 0; for (int i = 0; i < 300; i++) sum += table[i].first ^ table[i].last; return sum; }
int main(void)
{
	long sum = 0;
	for (int i = 0; i < 300; i++) { table[i].first = i; table[i].last = 2 * i; }
	for (int i = 0; i < 300; i++) { struct node *node = aligned_alloc(64, sizeof *node); node->next = head; node->key = i; head = node; }
	for (int turn = 0; turn < 100; turn++) sum += list(turn) + both();
	printf("%ld\n", sum);
	return 0;
}
"#;

/// Where no order of members gains, a study may still split a struct of C, and the finding says so. The suggested
/// commands have the given options.
#[test]
fn a_split_of_c_leads_to_a_study() {
    let place = Place::new(NODES, &[]);
    let findings = found(&place, &["--no-clock", "--engine", "native", "--max-seconds", "60"], &[]);
    let of = |name: &str| {
        let all = findings["findings"].as_array().expect("findings");
        all.iter().find(|one| one["subject"] == name).unwrap_or_else(|| panic!("no {name} in {findings}"))
    };
    let node = of("node");
    let sketch = "lineup study writes this where the sources allow it: node keeps next, key, and a pointer to a second struct with the other";
    assert!(text(node, "/by_hand").starts_with(sketch), "{node}");
    let next = |region: &str| {
        format!(
            "lineup study --engine native --cache 'l1i=4K,4,64' --cache 'l1d=4K,4,64' --cache 'l2=16K,8,64' --max-seconds 60 \
             --region {region} -- ./program"
        )
    };
    assert_eq!([text(node, "/next"), text(of("far_apart"), "/next")], [next("list"), next("both")]);
    place.assert_clean();
}

/// An array whose elements each function uses by another member.
const CELLS: &str = r#"
#include <stdio.h>
struct cell { double heat, flow, salt, depth; long fish, caught; double oxygen, age; };
static struct cell cells[4000];
__attribute__((noinline)) double heat(void) { double sum = 0; for (int i = 0; i < 4000; i++) sum += cells[i].heat -= cells[i].flow; return sum; }
__attribute__((noinline)) double salt(void) { double sum = 0; for (int i = 0; i < 4000; i++) sum += cells[i].salt; return sum; }
__attribute__((noinline)) long fish(void) { long sum = 0; for (int i = 0; i < 4000; i++) sum += cells[i].fish; return sum; }
int main(void)
{
	double sum = 0;
	for (int i = 0; i < 4000; i++) { cells[i].flow = i; cells[i].salt = 1; cells[i].fish = i % 3; cells[i].age = i; }
	for (int turn = 0; turn < 12; turn++) sum += heat() + salt() + fish();
	printf("%f %f\n", sum, cells[7].age);
	return 0;
}
"#;

#[test]
fn an_array_for_each_member_of_c_leads_to_a_study() {
    let place = Place::new(CELLS, &[]);
    let findings = found(&place, &["--no-clock", "--engine", "native"], &[]);
    let mut all = findings["findings"].as_array().expect("findings").iter();
    let cell = all.find(|one| one["subject"] == "cell").unwrap_or_else(|| panic!("no cell in {findings}"));
    assert_eq!(text(cell, "/kind"), "columns", "{cell}");
    let sketch = "lineup study writes this where the sources allow it: instead of an array of cell, an array for each of";
    assert!(text(cell, "/by_hand").starts_with(sketch), "{cell}");
    let next = text(cell, "/next");
    assert!(next.starts_with("lineup study --engine native") && next.ends_with(" -- ./program"), "{next}");
    assert!(
        ["heat", "salt", "fish"].iter().all(|region| next.contains(&format!(" --region {region} "))),
        "{next}"
    );
    place.assert_clean();
}

#[test]
fn the_gain_of_an_order_is_what_the_order_gains() {
    let as_it_is = found(&Place::new(DEVICES, &[]), &["--least", "0"], &[]);
    let best = found(&Place::new(DEVICES, &["-DBEST"]), &[], &[]);
    let finding = as_it_is["findings"].as_array().expect("findings").iter();
    let of_devices = finding.clone().find(|finding| finding["subject"] == "device").expect("devices");
    let trials = of_devices["trials"].as_array().expect("trials");
    let order = trials.iter().find(|trial| trial["kind"] == "order").expect("an order");
    let gained = 1.0 - stalls(&best) / stalls(&as_it_is);
    assert!(gained > 0.2, "{gained}");
    assert!((number(order, "/gain") / gained - 1.0).abs() < 0.1, "{order} {gained}");
}

/// The changes by a better order, and the same stalls as stacks.
#[test]
fn two_builds_are_held_against_each_other() {
    let as_it_is = found(&Place::new(DEVICES, &[]), &["--no-clock"], &[]);
    let best = Place::new(DEVICES, &["-DBEST"]);
    let old = best.root.path().join("old.json");
    std::fs::write(&old, as_it_is.to_string()).expect("a file");
    let old = old.to_str().expect("a name");
    let all = [
        &["find", "--no-clock", "--folded", "folded", "--pprof", "stalls.pb", "--html", "page.html"][..],
        &["--diff", old],
        &CACHES,
        &["--", "./program"],
    ]
    .concat();
    let output = best.lineup(&all).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = |what: &str| {
        let found = said.lines().find(|line| line.ends_with(what));
        found.unwrap_or_else(|| panic!("no line of {what} in {said}")).split_whitespace().collect::<Vec<_>>()
    };
    let figure = |text: &str| text.replace(',', "").replace('−', "-").parse::<f64>().expect("a number");
    let device = line("device");
    // A line less of each device on every walk.
    assert!((figure(device[1]) / figure(device[0]) - 0.5).abs() < 0.1, "{said}");
    assert!(figure(line("walk")[2]) < 0.0, "{said}");
    let folded = std::fs::read_to_string(best.source().join("folded")).expect("the stacks");
    let hits = folded.lines().find(|line| line.starts_with("data;device;hits;walk "));
    let cycles = hits.and_then(|line| line.rsplit(' ').next()).map(figure).expect("stalls of device.hits");
    assert!(cycles > 1e6, "{folded}");
    // The profile has the same frames, and the page the lines of the list's nodes.
    let profile = std::fs::read(best.source().join("stalls.pb")).expect("the profile");
    assert!(profile.windows(4).any(|bytes| bytes == b"walk"));
    let page = std::fs::read_to_string(best.source().join("page.html")).expect("the page");
    assert!(
        page.starts_with("<!DOCTYPE html>") && page.contains("line 0") && page.contains("node"),
        "{page}"
    );
    let strange = best.source().join("Makefile");
    let refused = ["find", "--diff", strange.to_str().expect("a name"), "--", "./program"];
    let output = best.lineup(&refused).output().expect("lineup runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    best.assert_clean();
}

/// In a run that is longer than its windows, shares and gains are nearly the same.
#[test]
fn a_sample_tells_the_same_as_the_whole_run() {
    let place = Place::new(&DEVICES.replace("turn < 60", "turn < 600"), &[]);
    // The clock may put findings in another order.
    let whole = found(&place, &["--windows", "64", "--no-clock"], &[]);
    let sample = found(&place, &["--windows", "2", "--no-clock"], &[]);
    assert_eq!(stalls(&whole), stalls(&sample));
    assert_eq!(number(&whole, "/sample/accesses"), number(&whole, "/sample/of_accesses"));
    assert!(number(&sample, "/sample/accesses") < 0.2 * number(&sample, "/sample/of_accesses"), "{sample}");
    for number_of in [0, 1] {
        let [one, other] = [&whole, &sample].map(|found| &found["findings"][number_of]);
        assert_eq!((&one["subject"], &one["kind"]), (&other["subject"], &other["kind"]));
        for figure in ["/stalls", "/gain"] {
            let (one, other) = (number(one, figure), number(other, figure));
            assert!((one / other - 1.0).abs() < 0.05, "{figure}: {one} {other}");
        }
    }
}

/// Three hundred functions that are run in turn, each with cold code between executed code.
#[test]
fn code_that_stalls_more_than_data_is_told_to() {
    let functions = (0..300).map(|number| {
        format!(
            "__attribute__((noinline, aligned(64))) long f{number}(long x) {{\n\
             if (x == {number}) {{ puts(\"never\"); x *= {number}; puts(\"ever\"); return x / 7; }}\n\
             x += {number}; if (x < 0) {{ printf(\"%ld %ld\", x, x * 3); puts(\"lost\"); }}\n\
             x ^= x >> 3; if (x == -2) {{ printf(\"%ld %ld\", x * 5, x); puts(\"found\"); }} return x; }}\n"
        )
    });
    let calls = (0..300).map(|number| format!("x = f{number}(x);\n"));
    let source = format!(
        "#include <stdio.h>\n{}int main(void) {{ long x = 1000000; for (int i = 0; i < 100; i++) {{ {} }} printf(\"%ld\\n\", x); }}",
        functions.collect::<String>(),
        calls.collect::<String>()
    );
    let place = Place::new(&source, &[]);
    let findings = found(&place, &[], &[]);
    assert!(number(&findings, "/stalls/code_cycles") > 10.0 * number(&findings, "/stalls/data_cycles"));
    let first = &findings["findings"][0];
    assert_eq!((&first["subject"], text(first, "/kind")), (&Value::Null, "code"));
    assert!(number(first, "/gain") > 0.1, "{first}");
    assert!(text(first, "/next").starts_with("lineup study --code "), "{first}");
    let output =
        place.lineup(&[&["find"][..], &CACHES, &["--", "./program"]].concat()).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("the code of the whole program:"), "{said}");
    place.assert_clean();
}

/// Divisions take long without stalls: the clock sees time that the model does not.
#[test]
fn the_clock_tells_where_the_time_goes() {
    let source = "#include <stdio.h>\n\
        __attribute__((noinline)) static unsigned long divide(unsigned long n) {\n\
            unsigned long x = -1UL; for (unsigned long i = 1; i < n; i++) x = ~0UL / (x / (i | 1) | 1) + i; return x; }\n\
        int main(int argc, char **argv) { printf(\"%lu\\n\", divide(3000000UL * argc)); return 0; }\n";
    let place = Place::new(source, &[]);
    let findings = found(&place, &["--windows", "1"], &[]);
    let functions = findings["functions"].as_array().expect("functions");
    let divide = functions.iter().find(|function| function["name"] == "divide").expect("the function");
    assert!(number(&findings, "/clock_samples") > 10.0, "{findings}");
    assert!(number(divide, "/clock/share") > 0.5, "{divide}");
    assert!(number(divide, "/clock/low") < number(divide, "/clock/share"), "{divide}");
    let without = found(&place, &["--windows", "1", "--no-clock"], &[]);
    assert!(["cycles", "task_clock"].contains(&findings["clock_event"].as_str().expect("an event")));
    assert_eq!((&without["clock_samples"], &without["clock_event"]), (&Value::Null, &Value::Null));
    place.assert_clean();
}

/// A study of the findings, and the refusal where nothing is to be found.
#[test]
fn a_study_without_regions_takes_the_best_findings() {
    let place = Place::new(DEVICES, &[]);
    let study =
        ["study", "--engine", "qemu", "--max-time", "1", "--calls", "50", "--out", "out", "--only", "layout"];
    let output =
        place.lineup(&[&study[..], &CACHES, &["--", "./program"]].concat()).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("lineup: studies walk, list, for device (upper bound −"), "{said}");
    let report = std::fs::read(place.source().join("out/report.json"))
        .unwrap_or_else(|error| panic!("{error}: {said}"));
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    let regions = report["regions"].as_array().expect("regions");
    let names: Vec<_> = regions.iter().filter_map(|region| region["name"].as_str()).collect();
    assert!(names.contains(&"walk") && names.contains(&"list"), "{names:?}");
    assert!(report["setting"].to_string().contains("studies walk, list"), "{}", report["setting"]);

    let idle = Place::new("int main(void) { return 0; }", &[]);
    let output = idle.lineup(&[&study[..], &["--", "./program"]].concat()).output().expect("lineup runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "that nothing is found is an answer: {said}");
    assert!(said.starts_with("No lever takes less time beyond doubt."), "{said}");
    assert!(said.contains("No patch: in the whole program no layout that a study writes gains"), "{said}");
    place.assert_clean();
    idle.assert_clean();
}

#[test]
fn what_cannot_be_done_is_refused() {
    let place = Place::new("int main(void) { return 0; }", &[]);
    let refused = |arguments: &[&str]| {
        let output = place.lineup(arguments).output().expect("lineup runs");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused(&["find"]).contains("PROGRAM"));
    assert!(refused(&["find", "--least", "much", "--", "./program"]).contains("no percentage"));
    assert!(refused(&["find", "--windows", "0", "--", "./program"]).contains("--windows"));
    assert!(refused(&["find", "--", "./no-such-program"]).contains("no-such-program"));
}

#[test]
fn an_exit_status_that_is_not_zero_is_said() {
    let place = Place::new("int main(int count, char **words) { return 12 * (count > 1); }", &[]);
    let said = |words: &[&str]| {
        let output = place.lineup(&[&["find", "--no-clock", "--", "./program"], words].concat()).output();
        String::from_utf8_lossy(&output.expect("lineup runs").stdout).into_owned()
    };
    assert!(said(&["fail"]).contains("the program ended with exit status 12; one that fails early"));
    assert!(!said(&[]).contains("exit status"));
}

#[test]
fn a_program_that_another_starts_is_named() {
    let place = Place::new("int main(void) { return 0; }", &[]);
    // The emulator sees the programs that the first process becomes.
    for (engine, script) in [("native", "./program; exec dirname x"), ("qemu", "exec ./program")] {
        let arguments = ["find", "--json", "--no-clock", "--engine", engine, "--", "/bin/sh", "-c", script];
        let output = place.lineup(&arguments).output().expect("lineup runs");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let notes = found["notes"].as_array().expect("notes");
        let is_told = notes.iter().filter_map(Value::as_str).any(|note| {
            note.contains("/program was started once and is not counted: to look into it, name it after --")
        });
        assert!(is_told, "{engine}: {notes:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{engine}: {said}");
        assert!(
            said.contains("name the program that is meant, as `lineup find -- ./program`"),
            "{engine}: {said}"
        );
    }
}

#[test]
fn a_program_without_debug_information_is_told_so() {
    let place = Place::new(DEVICES, &[]);
    let stripped = std::process::Command::new("strip").arg(place.source().join("program")).status();
    assert!(stripped.expect("strip runs; apt-get install binutils").success());
    let findings = found(&place, &["--no-clock"], &[]);
    let notes = findings["notes"].to_string();
    assert!(notes.contains("no debug information; build with -g"), "{notes}");
    assert!(number(&findings, "/coverage/named") < 0.5, "{notes}");
}

/// Events in a vector, of which few are large, and particles of which little is used.
const RUST: &str = r#"
pub enum Event { Step(u32), Turn { by: f32, to: u32 }, Load([u64; 30]) }
#[inline(never)] fn value(one: &Event) -> u64 {
    match one { Event::Step(by) => u64::from(*by), Event::Turn { by, to } => *by as u64 + u64::from(*to), Event::Load(all) => all[29] }
}
pub struct Particle { at: f64, speed: f64, name: [u8; 112] }
#[inline(never)] fn advance(all: &mut [Particle]) { for one in all { one.at += one.speed } }
fn main() {
    let mut particles: Vec<Particle> = (0..400).map(|index| Particle { at: 0.0, speed: f64::from(index), name: [0; 112] }).collect();
    let turn = std::env::args().count() as u32;
    let events: Vec<Event> = (0..400).map(|index| match index % 40 {
        0 => Event::Load([u64::from(index); 30]),
        1..20 => Event::Turn { by: 1.5, to: index },
        _ => Event::Step(index * turn),
    }).collect();
    let mut sum = 0;
    for _ in 0..100 { advance(&mut particles); sum += events.iter().map(|one| value(std::hint::black_box(one))).sum::<u64>() }
    println!("{sum} {} {}", particles[7].at, particles[9].name[3]);
}
"#;

#[test]
fn of_rust_types_it_is_told_what_to_box() {
    let place = Place::new(DEVICES, &[]);
    std::fs::write(place.source().join("main.rs"), RUST).expect("a file");
    let built = std::process::Command::new("rustc")
        .args(["-g", "-O", "--edition", "2024", "main.rs", "-o", "program"])
        .current_dir(place.source())
        .status();
    assert!(built.expect("rustc runs").success());
    let findings = found(&place, &["--no-clock"], &[]);
    let of = |name: &str| {
        let mut all = findings["findings"].as_array().expect("findings").iter();
        all.find(|one| one["subject"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    let event = of("main::Event");
    assert_eq!(text(event, "/kind"), "boxed_variant");
    let largest = &event["evidence"]["largest_variant"];
    assert_eq!((text(largest, "/name"), number(largest, "/size_bytes")), ("Load", 248.0));
    assert_eq!((number(largest, "/others_bytes"), number(largest, "/size_bytes_boxed")), (12.0, 16.0));
    // Four lie on each line instead of one on four.
    assert!(number(event, "/gain") > 0.5 * number(event, "/stalls"), "{event}");
    // A study does not edit Rust, so that no command leads to one.
    assert_eq!(text(event, "/next"), "", "{event}");
    assert!(
        text(event, "/by_hand").starts_with("by hand, since no patch is made for this: Load of"),
        "{event}"
    );
    // The compiler unrolls the walk, and describes an offset in it as if it were the particle's address.
    let members = owner(&findings, "main::Particle")["members"].as_array().expect("members");
    assert!(["at", "speed"].contains(&text(&members[0], "/path")), "{members:?}");
    let particle = of("main::Particle");
    let kinds: Vec<&str> =
        particle["trials"].as_array().expect("trials").iter().map(|one| text(one, "/kind")).collect();
    assert!(
        kinds.contains(&"columns") && !kinds.contains(&"order") && !kinds.contains(&"split"),
        "{kinds:?}"
    );
}
