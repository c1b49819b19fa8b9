//! Small kernels of our own, with known answers. One is for `lineup threads`: one variant has an array with an element
//! for each processor on one line, and one a lock. Another is for `lineup explain`: only registers show the accessed
//! data.

use crate::fetched;
use crate::installed;

use lineup_model::abi::Abi;
use lineup_model::entry_points::EntryPoints;
use lineup_model::region::{Region, RegionId};
use lineup_recording::plan::{Plan, Task};
use lineup_recording::{Header, Mode, SystemPlan};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Compiles a kernel into a folder.
fn build(folder: &Path, source: &str, options: &[&str]) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/own_kernel");
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-g",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-ffreestanding",
        "-fno-pic",
        "-no-pie",
        "-nostdlib",
        "-static",
    ]);
    gcc.args(["-mno-red-zone", "-mgeneral-regs-only", "-fno-stack-protector", "-fcf-protection=none"]);
    gcc.args(["-Wl,--build-id=none", "-o", "kernel.elf"]).args(options);
    gcc.arg("-T").arg(sources.join("link.ld")).arg(sources.join("boot.S")).arg(sources.join(source));
    let made = gcc.current_dir(folder).output().expect("a compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A function's address.
fn address_of(folder: &Path, name: &str) -> u64 {
    let output = Command::new("nm").arg("kernel.elf").current_dir(folder).output().expect("nm runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.ends_with(&format!(" {name}")));
    let address = line.and_then(|line| line.split(' ').next()).expect("the function's symbol");
    u64::from_str_radix(address, 16).expect("an address")
}

/// The recorder's plan between the two calls of `marker`: to keep all accesses of two CPUs, or one CPU's calls of
/// functions.
fn plan(folder: &Path, functions: &[&str]) -> Plan {
    let program = folder.join("kernel.elf").display().to_string();
    let mut header = Header::new(Abi::X86_64, vec!["a kernel of our own".to_owned()]);
    (header.mode, header.max_accesses) = (Mode::System, 1000);
    let region = |name: &str, entries| Region { image: program.clone(), entries, ..Region::named(name) };
    header.regions = match functions {
        [] => [region("kernel", Vec::new())].into_iter().collect(),
        _ => functions.iter().map(|name| region(name, vec![address_of(folder, name)])).collect(),
    };
    header.caches = vec!["l1i=32K,8,64".to_owned(), "l1d=32K,8,64".to_owned()];
    let entries = EntryPoints {
        marker: address_of(folder, "marker"),
        kernel_start: 0x10_0000,
        stack_bytes: 16 << 10,
        ..EntryPoints::default()
    };
    let (cpus, windows) = if functions.is_empty() { (2, Some(RegionId(0))) } else { (1, None) };
    let system = SystemPlan { entries, cpus, windows, ..SystemPlan::default() };
    Plan {
        output: folder.join("x.rec").display().to_string(),
        program,
        system: Some(system),
        ..Plan::new(Task::Record, header)
    }
}

/// Boots and records, under this version of the emulator if one is given.
fn record(folder: &Path, functions: &[&str], version: Option<&str>) {
    let plan = plan(folder, functions);
    std::fs::write(folder.join("plan"), plan.to_text()).expect("a plan");
    let plugin = Path::new(env!("CARGO_BIN_EXE_lineup")).with_file_name("liblineup_plugin.so");
    let mut qemu = Command::new("timeout");
    let programs = version.map(|version| fetched::by("qemu-fetch", &[version])).unwrap_or_default();
    qemu.arg("60").arg(programs.join("qemu-system-x86_64"));
    let cpus = plan.system.map_or(1, |system| system.cpus).to_string();
    qemu.args(["-accel", "tcg", "-cpu", "max", "-smp", &cpus, "-m", "64M"]);
    qemu.args(["-display", "none", "-nodefaults", "-no-reboot", "-kernel", "kernel.elf"]);
    qemu.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
    let interface = if version == Some("11.1") { ",interface=7" } else { "" };
    qemu.arg("-plugin").arg(format!("{}{interface},plan=plan", plugin.display()));
    let ended = qemu.current_dir(folder).output().expect("an emulator; apt install qemu-system-x86");
    // The value that the kernel writes to that device, times two and one more.
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// The output of `lineup threads` for a variant.
fn threads(variant: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let mut lineup = installed::lineup();
    build(folder.path(), "kernel.c", &[&format!("-D{variant}=1")]);
    record(folder.path(), &[], None);
    let output = lineup.args(["threads", "x.rec", "--json"]).current_dir(folder.path()).output();
    let output = output.expect("lineup runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn an_array_with_an_element_for_each_cpu_on_one_line_is_found() {
    let report = threads("TOGETHER");
    assert_eq!((&report["of"], report["threads"].as_array().map(Vec::len)), (&"cpus".into(), Some(2)));
    let findings = report["false_sharing"].as_array().expect("findings");
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0]["remedy"], serde_json::json!({"kind": "spread_array", "variable": "counts"}));
    let written: Vec<&Value> =
        findings[0]["parts"].as_array().expect("parts").iter().map(|part| &part["writers"]).collect();
    assert_eq!(written, [&serde_json::json!([0]), &serde_json::json!([1])]);
}

#[test]
fn elements_on_lines_of_their_own_are_no_finding() {
    let report = threads("APART");
    assert_eq!(report["false_sharing"], serde_json::json!([]), "{:#}", report["lines"]);
    let threads = report["threads"].as_array().expect("CPUs");
    assert!(threads.iter().all(|cpu| cpu["time_beside_others"].as_u64() > Some(0)), "they ran together");
}

#[test]
fn a_spin_lock_is_known_with_the_data_that_travel_with_it() {
    let report = threads("LOCKED");
    let locks = report["locks"].as_array().expect("locks");
    assert_eq!(locks.len(), 1, "{locks:#?}");
    let lock = &locks[0];
    assert_eq!((&lock["name"], &lock["kind"]), (&"account.lock".into(), &"kernel".into()));
    assert_eq!(lock["taken"], 6000);
    assert_eq!(lock["sections"][0]["function"], "work");
    assert_eq!(lock["data_on_its_line"], serde_json::json!(["account.balance"]));
    // Neither CPU gets more than eight turns ahead of the other, so the data change hands hundreds of times.
    let needed = lock["needed_while_held"].as_array().expect("data");
    let history = needed.iter().find(|data| data["name"] == "account.history").expect("it is written there");
    assert!(history["waits"]["of_same_bytes"].as_u64() > Some(100), "{lock:#}");
}

/// Emulators that let plugins read registers: QEMU 10.0, and one whose callbacks have another form.
const NEWER: [&str; 2] = ["10.0", "11.1"];

/// The output of `lineup explain` for calls of `fill` and `add`, recorded under an emulator: as JSON, and as text.
fn given(version: Option<&str>) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a folder");
    installed::lineup();
    build(folder.path(), "given.c", &[]);
    record(folder.path(), &["fill", "add"], version);
    let print = |how: &str| {
        let output = installed::lineup().args(["explain", "x.rec", how]).current_dir(folder.path()).output();
        let output = output.expect("lineup runs");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    (serde_json::from_str(&print("--json")).expect("JSON"), print("--full"))
}

/// The number of accesses of all calls of a region with this evidence.
fn by_evidence(explanation: &Value, region: usize, evidence: &str) -> u64 {
    let region = &explanation["regions"][region];
    assert_eq!(region["calls"], 10);
    region["coverage"]["by_evidence"][evidence].as_u64().unwrap_or(0)
}

/// The names of the lines in a region's map, with their parts.
fn parts(explanation: &Value, region: usize) -> Vec<(Value, Value)> {
    let lines = explanation["regions"][region]["map"].as_array().expect("a map").iter();
    let parts = lines.flat_map(|line| {
        let parts = line["parts"].as_array().expect("parts").iter();
        parts.map(|part| (line["type_name"].clone(), part["name"].clone()))
    });
    parts.collect()
}

#[test]
fn registers_tell_what_object_a_call_was_given_and_which_cpus_copy() {
    for version in NEWER {
        registers_tell(Some(version));
    }
}

/// Plugins read registers since QEMU 9.0.
fn installed_reads_registers() -> bool {
    let said = Command::new("qemu-system-x86_64").arg("--version").output().expect("an emulator");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let version = said.split("version ").nth(1).and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    version.expect("its version") >= 9
}

fn registers_tell(version: Option<&str>) {
    let (explanation, text) = given(version);
    assert_eq!(explanation["tells"]["registers"], true, "{version:?}");
    assert!(!text.contains("Registers were not read"), "{text}");
    assert_eq!(by_evidence(&explanation, 0, "argument"), 20, "{explanation:#}");
    let both = [("report".into(), "next".into()), ("report".into(), "number".into())];
    let mut found = parts(&explanation, 0);
    found.sort_by_key(|(_, name)| name.to_string());
    assert_eq!(found, both);
    assert_eq!(by_evidence(&explanation, 1, "per_cpu"), 20, "{explanation:#}");
    assert_eq!(parts(&explanation, 1), [(Value::Null, "tally.sum".into())]);
}

#[test]
fn without_registers_the_object_has_no_name_and_the_copy_is_any_object() {
    if installed_reads_registers() {
        return registers_tell(None);
    }
    let (explanation, text) = given(None);
    assert_eq!(explanation["tells"]["registers"], false);
    assert!(text.contains("Registers were not read"), "{text}");
    assert_eq!(by_evidence(&explanation, 0, "argument"), 0);
    assert_eq!(parts(&explanation, 0), []);
    assert_eq!(by_evidence(&explanation, 1, "per_cpu"), 0);
    assert_eq!(parts(&explanation, 1), [("tally".into(), "sum".into())]);
}
