//! A program of another machine under two emulators: the installed QEMU 7.2, and QEMU 10 built from Debian's sources,
//! whose plugins speak another interface.

use super::program::{AArch64, Program, c};
use crate::fetched;
use lineup_model::access::{Access, AccessKind, Call, CallEnd};
use lineup_model::image::LoadedImage;
use lineup_recording::{Recording, read_all};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A list that is walked and written, a function of the C library that is called, and calls within calls.
const SOURCE: &str = r#"
#include <stdlib.h>
#include <string.h>

struct item { struct item *next; long weight; char label[24]; double share; };

__attribute__((noinline)) static long depth_of(struct item *item, int most) {
    return !item || most == 0 ? 0 : item->weight + depth_of(item->next, most - 1);
}

__attribute__((noinline)) long work(struct item *first, int round) {
    long sum = depth_of(first, 5);
    for (struct item *item = first; item; item = item->next) {
        memset(item->label, round, sizeof item->label);
        item->share += 0.5 * round;
        sum += item->weight;
    }
    return sum;
}

int main(void) {
    struct item *first = 0;
    for (int i = 0; i < 20; i++) {
        struct item *item = calloc(1, sizeof *item);
        item->next = first;
        item->weight = i;
        first = item;
    }
    long sum = 0;
    for (int round = 0; round < 500; round++)
        sum += work(first, round);
    return sum == 0;
}
"#;

/// The folder of the newer emulator.
fn newer_emulator() -> PathBuf {
    fetched::by("qemu-user-build", &[])
}

/// A recording of calls of `work` under the installed emulator, or under the one in this folder.
fn record(program: &Program, out: &str, folder: Option<&Path>) -> Recording {
    record_calls(program, "work", out, folder)
}

/// A recording of calls of a function.
fn record_calls(program: &Program, region: &str, out: &str, folder: Option<&Path>) -> Recording {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    lineup.current_dir(program.folder.path()).args(["record", "--region", region, "--calls", "500"]);
    lineup.args(["--out", out, "--", "./program"]);
    if let Some(folder) = folder {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
        lineup.env("PATH", std::env::join_paths(folders).expect("a PATH"));
    }
    let output = lineup.output().expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read_all(&std::fs::read(program.folder.path().join(out)).expect("a recording")).expect("it can be read")
}

/// The most bytes that an instruction of 64-bit Arm loads or stores at once: two registers. QEMU 7.2 reports that as
/// two accesses, QEMU 10 as one.
const PAIR_BYTES: u32 = 16;

/// The part that does not depend on the places of stacks, heaps and files.
#[derive(PartialEq, Eq, Debug)]
struct Shape {
    end: CallEnd,
    instructions: u64,
    code: Vec<(String, u64)>,
    accesses: Vec<(String, u64, AccessKind, u32)>,
}

fn shape(images: &[LoadedImage], call: &Call) -> Shape {
    let place = |address: u64| {
        let image = images.iter().find(|image| image.contains(address)).expect("code of a file");
        (image.path.clone(), image.to_link(address))
    };
    let mut joined: Vec<Access> = Vec::new();
    for access in &call.accesses {
        let goes_on = |last: &&mut Access| {
            (last.pc, last.kind, last.address + u64::from(last.size_bytes))
                == (access.pc, access.kind, access.address)
                && last.size_bytes + access.size_bytes <= PAIR_BYTES
        };
        match joined.last_mut().filter(goes_on) {
            Some(last) => last.size_bytes += access.size_bytes,
            None => joined.push(*access),
        }
    }
    let told = |access: &Access| {
        let (path, pc) = place(access.pc);
        (path, pc, access.kind, access.size_bytes)
    };
    let mut code: Vec<_> = call.code_granules.iter().map(|granule| place(*granule)).collect();
    code.sort_unstable();
    Shape {
        end: call.end,
        instructions: call.instructions,
        code,
        accesses: joined.iter().map(told).collect(),
    }
}

#[test]
#[ignore = "builds an emulator, which takes minutes; make test-emulators runs it"]
fn a_program_of_another_machine_makes_the_same_calls_under_an_emulator_of_today() {
    let program = c(AArch64, SOURCE, &[]);
    let older = record(&program, "older.rec", None);
    let newer = record(&program, "newer.rec", Some(&newer_emulator()));
    assert!(newer.header.emulator.contains("version 10."), "{}", newer.header.emulator);
    assert_ne!(older.header.emulator, newer.header.emulator);
    let shapes = |recording: &Recording| -> Vec<Shape> {
        recording.calls.iter().map(|call| shape(&recording.images, call)).collect()
    };
    let (one, other) = (shapes(&older), shapes(&newer));
    assert_eq!((one.len(), other.len()), (500, 500));
    for (sequence, (one, other)) in one.iter().zip(&other).enumerate() {
        assert_eq!(one, other, "call {sequence}");
    }
    let accesses: usize = one.iter().map(|call| call.accesses.len()).sum();
    println!(
        "500 calls with {accesses} accesses, alike under {} and {}",
        older.header.emulator, newer.header.emulator
    );
}

/// Facts that only registers show on this machine: a leaf uses no stack, the first thread's base is set without a
/// system call, and the C library's code does not show what it clears.
const REGISTERS: &str = r#"
#include <stdlib.h>
#include <string.h>

struct item { long weight; char label[88]; struct item *next; };
static __thread long many[16];

__attribute__((noinline, noclone)) long leaf(long *local) { return ++*local; }
__attribute__((noinline, noclone)) long indexed(long i) { return ++many[i & 15]; }
__attribute__((noinline, noclone)) void clear(long round, struct item *item) {
    memset(item->label, (int)round, sizeof item->label);
}

int main(void) {
    struct item *item = malloc(sizeof *item);
    long local = 0;
    for (long round = 0; round < 20; round++) {
        leaf(&local);
        indexed(round);
        clear(round, item);
    }
    return local + many[3] == 0;
}
"#;

/// Accesses by class and by evidence, in the calls of a function that were recorded under an
/// emulator.
fn classes(program: &Program, region: &str, folder: Option<&Path>) -> (serde_json::Value, serde_json::Value) {
    record_calls(program, region, "x.rec", folder);
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    let output = lineup.current_dir(program.folder.path()).args(["explain", "x.rec", "--json"]).output();
    let output = output.expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let explanation: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(explanation["tells"]["registers"], folder.is_some());
    let coverage = &explanation["regions"][0]["coverage"];
    println!("{region} {folder:?} {} {}", coverage["by_class"], coverage["by_evidence"]);
    (coverage["by_class"].clone(), coverage["by_evidence"].clone())
}

#[test]
#[ignore = "builds an emulator, which takes minutes; make test-emulators runs it"]
fn an_emulator_of_today_tells_by_registers_what_the_older_one_cannot() {
    let program = c(AArch64, REGISTERS, &["-fno-builtin", "-static"]);
    let newer = newer_emulator();
    let (_, older) = classes(&program, "clear", None);
    let (classes_now, now) = classes(&program, "clear", Some(&newer));
    assert!(older.get("argument").is_none() && older["code"].as_u64() >= Some(20), "{older}");
    assert!(now["argument"].as_u64() >= Some(20) && now.get("code").is_none(), "{now}");
    assert!(classes_now["member"].as_u64() >= Some(20), "{classes_now}");

    let (older, _) = classes(&program, "indexed", None);
    let (now, evidence) = classes(&program, "indexed", Some(&newer));
    assert!(older.get("variable").is_none(), "{older}");
    assert!(now["variable"] == 40 && evidence["thread_base"].as_u64() >= Some(40), "{now} {evidence}");

    let (older, _) = classes(&program, "leaf", None);
    let (now, evidence) = classes(&program, "leaf", Some(&newer));
    assert_eq!(older, serde_json::json!({"buffer": 40}));
    assert_eq!((now, &evidence["stack_range"]), (serde_json::json!({"stack": 40}), &40.into()));
}
