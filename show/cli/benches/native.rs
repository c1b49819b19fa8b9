//! The cost of recording with the native engine: `cargo bench -p lineup --bench native`.
//!
//! The commands take turns: the program alone, with the engine in it, under the bare emulator, and recorded by the
//! emulator. The bench prints medians of processor time, which can be compared even on a busy machine, and their ratios
//! to the program alone. `lineup`'s own time is part of it.

#[allow(dead_code, reason = "it needs the command alone")]
mod setup;
#[path = "setup/timing.rs"]
mod timing;

use std::fs;
use std::path::Path;
use timing::{Took, measure, median};

const ROUNDS: usize = 5;

/// A function that is called ten million times, and one that is never called.
const OFTEN: &str = r#"
#include <stdio.h>
static unsigned table[4096];
__attribute__((noinline)) unsigned often(unsigned n) { table[n & 4095] += n; return table[(n * 7) & 4095]; }
__attribute__((noinline)) unsigned never(unsigned n) { return n * 3 + table[n & 4095]; }
int main(int count, char **words) {
    unsigned sum = 0;
    for (unsigned n = 0; n < 10000000; n++) { unsigned x = n; for (int i = 0; i < 20; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; } sum += often(x); }
    printf("%u\n", sum);
    return count > 1 ? never(sum) & 1 : 0;
}
"#;

fn main() {
    let lineup = setup::release_build();
    let folder = tempfile::tempdir().expect("a scratch folder");
    fs::write(folder.path().join("often.c"), OFTEN).expect("writing a source file");
    measure(&["gcc", "-g", "-O2", "-o", "often", "often.c"], folder.path(), "gcc");
    compare("10 million calls of a function", &lineup, folder.path(), "often", &["./often"]);
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/lua");
    let study = study.canonicalize().expect("the study");
    measure(&["make"], &study, "make");
    let text = |name: &str| study.join(name).to_str().expect("a UTF-8 path").to_owned();
    compare("lua bench.lua", &lineup, folder.path(), "luaD_poscall", &[&text("lua"), &text("bench.lua")]);
}

/// Prints the times of the ways to record calls of a function.
fn compare(name: &str, lineup: &Path, folder: &Path, function: &str, program: &[&str]) {
    let lineup = lineup.to_str().expect("a UTF-8 path");
    let record = |options: &[&'static str]| {
        let mut all = vec![lineup, "record", "--region", function];
        all.extend(options);
        all.push("--");
        [all.as_slice(), program].concat()
    };
    let native = ["--engine", "native", "--calls", "2000"];
    let ways = [
        ("alone", program.to_vec()),
        ("native, first 2,000 calls", record(&[&native[..], &["--first"]].concat())),
        ("native, 2,000 calls of all", record(&native)),
        ("every call timed", [&[lineup, "time", "--region", function, "--"], program].concat()),
        ("bare qemu-x86_64", [&["qemu-x86_64"], program].concat()),
        ("qemu, 2,000 calls of all", record(&["--engine", "qemu", "--calls", "2000"])),
    ];
    let mut took: Vec<Vec<Took>> = vec![Vec::new(); ways.len()];
    for _ in 0..ROUNDS {
        for ((_, command), took) in ways.iter().zip(&mut took) {
            took.push(measure(command, folder, "qemu-user"));
        }
    }
    println!("{name}: calls of {function}, {ROUNDS} rounds, medians");
    let times: Vec<(f64, f64)> = took
        .iter()
        .map(|took| {
            let of = |time: fn(&Took) -> std::time::Duration| median(took.iter().map(time).collect());
            (of(|took| took.processor), of(|took| took.wall))
        })
        .collect();
    for ((way, _), (processor, wall)) in ways.iter().zip(&times) {
        let (ratio, more) = (processor / times[0].0, processor - times[0].0);
        println!(
            "  {way:28} {processor:8.3} s of processor time, {ratio:6.2} times, {more:7.3} s more; {wall:8.3} s"
        );
    }
}
