//! The cost of recording: `cargo bench -p lineup --bench recording`.
//!
//! (a) Recording a region that is under one per cent of the instructions, against the bare emulator (goal of the
//! recording run: at most 1.3 times; both runs together are shown next to it).
//! (b) The whole program with modelled caches, against `valgrind --tool=cachegrind --cache-sim=yes` with the same
//! caches (goal: at most half its time).
//! A whole run logged (`--log`), against the program alone (goals: 1.5, 2.5 and 3 times for `gzip`, Lua and SQLite).
//! `lineup find` and `valgrind --tool=dhat` are measured as well.
//! The commands take turns; medians and their ratios are printed. For (b) the processor time of both stands next to the
//! wall time, and can be compared even on a busy machine: the model runs on its own thread, so that wall time falls
//! only where a second processor is free.

mod setup;
#[path = "setup/timing.rs"]
mod timing;

use lineup_recording::{Event, Reader};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use timing::{Took, measure, median};

const ROUNDS: usize = 5;
const CACHES: [&str; 3] = ["l1i=32K,8,64", "l1d=32K,8,64", "l2=1M,16,64"];

/// A hot loop, and a region that is seldom called.
const SELDOM: &str = r#"
#include <stdio.h>
static unsigned table[4096];
__attribute__((noinline)) unsigned region(unsigned n) { for (int i = 0; i < 64; i++) table[i * 8 + (n & 7)] += n; return table[n & 4095]; }
__attribute__((noinline)) unsigned beside(unsigned n) { unsigned x = n; for (int i = 0; i < 40000; i++) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; table[x & 4095] ^= x; } return x; }
int main(void) { unsigned sum = 0; for (unsigned n = 0; n < 4000; n++) sum += region(n) + beside(n); printf("%u\n", sum); return 0; }
"#;

fn main() {
    let lineup = setup::release_build();
    let folder = tempfile::tempdir().expect("a scratch folder");
    region(&lineup, folder.path());
    let text = text_file(folder.path());
    whole_program(&lineup, folder.path(), "gzip -9", &["gzip", "-9", "-k", "-f", &text]);
    let own = lineup.to_str().expect("a UTF-8 path");
    logged(own, folder.path(), "gzip -9", &["gzip", "-9", "-k", "-f", &text]);
    lua(&lineup, folder.path());
}

/// Wall time of one run, whose output is thrown away.
fn time(command: &[&str], folder: &Path, package: &str) -> Duration {
    measure(command, folder, package).wall
}

fn region(lineup: &Path, folder: &Path) {
    fs::write(folder.join("seldom.c"), SELDOM).expect("writing a source file");
    time(&["gcc", "-g", "-O2", "-o", "seldom", "seldom.c"], folder, "gcc");
    let lineup = lineup.to_str().expect("a UTF-8 path");
    let record = [lineup, "record", "--region", "region", "--", "./seldom"];
    let (mut bare, mut both, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(time(&["qemu-x86_64", "./seldom"], folder, "qemu-user"));
        both.push(time(&record, folder, ""));
        second.push(recording_run(&folder.join("lineup.rec")));
    }
    let (bare, both, second) = (median(bare), median(both), median(second));
    println!("a region under 1 % of the instructions, {ROUNDS} rounds, medians");
    println!("  bare qemu-x86_64            {bare:8.3} s");
    println!("  recording run               {second:8.3} s  {:5.2} times bare (goal 1.30)", second / bare);
    println!("  both runs and the rest      {both:8.3} s  {:5.2} times bare", both / bare);
}

/// Wall time of the second run, from the recording.
fn recording_run(recording: &Path) -> Duration {
    let reader =
        Reader::new(BufReader::new(File::open(recording).expect("the recording"))).expect("a header");
    let ending = reader.into_iter().find_map(|event| match event {
        Event::Ending(ending) => Some(ending.elapsed_ns),
        _ => None,
    });
    Duration::from_nanos(ending.expect("how the program ended"))
}

/// About 20 MB of words that repeat as those of a text do.
fn text_file(folder: &Path) -> String {
    let path = folder.join("text");
    let mut out = BufWriter::new(File::create(&path).expect("a file"));
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for word in 0..3_000_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let rank = (state >> 33) % ((state >> 13) % 4096 + 1);
        write!(out, "{:x}{}", rank * 2_654_435_761 % 65_521, if word % 12 == 11 { "\n" } else { "  " })
            .expect("writing");
    }
    out.flush().expect("writing");
    path.to_string_lossy().into_owned()
}

fn whole_program(lineup: &Path, folder: &Path, name: &str, program: &[&str]) {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program[0]]).output().expect("sh");
    let path = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    let program = [&[path.as_str()], &program[1..]].concat();
    let lineup = lineup.to_str().expect("a UTF-8 path");
    let caches = || CACHES.iter().flat_map(|spec| ["--cache", *spec]);
    let ours = |command: &[&'static str]| {
        [lineup].into_iter().chain(command.iter().copied()).chain(caches()).chain(["--"]).collect()
    };
    let sizes =
        ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64", "--cachegrind-out-file=/dev/null"];
    let cachegrind = ["valgrind", "--tool=cachegrind", "--cache-sim=yes"].into_iter().chain(sizes).collect();
    let dhat = vec!["valgrind", "--tool=dhat", "--dhat-out-file=/dev/null"];
    let commands: [(&str, Vec<&str>); 6] = [
        ("cachegrind", cachegrind),
        ("lineup record --whole-program", ours(&["record", "--whole-program"])),
        ("  by the emulator", ours(&["record", "--whole-program", "--engine", "qemu"])),
        ("lineup find --no-clock", ours(&["find", "--no-clock"])),
        ("  by the emulator", ours(&["find", "--no-clock", "--engine", "qemu"])),
        ("DHAT", dhat),
    ];
    let mut runs: [Vec<Took>; 6] = Default::default();
    for _ in 0..3 {
        for ((name, command), runs) in commands.iter().zip(&mut runs) {
            let package = match *name {
                "cachegrind" | "DHAT" => "valgrind",
                _ => "qemu-user",
            };
            runs.push(measure(&[command.as_slice(), &program].concat(), folder, package));
        }
    }
    println!(
        "the whole program with caches, {name}, 3 rounds, medians (goals of recording: 0.17 times cachegrind in wall time \
         with a second processor, 0.25 in processor time)"
    );
    let of = |runs: &[Took], time: fn(&Took) -> Duration| median(runs.iter().map(time).collect());
    let [wall, processor]: [fn(&Took) -> Duration; 2] = [|took| took.wall, |took| took.processor];
    for ((name, _), own) in commands.iter().zip(&runs) {
        let [their_wall, their_processor] = [of(&runs[0], wall), of(&runs[0], processor)];
        let [own_wall, own_processor] = [of(own, wall), of(own, processor)];
        println!(
            "  {name:30} wall {own_wall:8.3} s, {:5.2} times; processor {own_processor:8.3} s, {:5.2} times",
            own_wall / their_wall,
            own_processor / their_processor
        );
    }
}

/// Everything of a run logged, compressed and written, against the program alone.
fn logged(lineup: &str, folder: &Path, name: &str, program: &[&str]) {
    let log = [lineup, "record", "--whole-program", "--log", "run.log", "--"];
    let (mut alone, mut all) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        alone.push(measure(program, folder, program[0]));
        all.push(measure(&[&log[..], program].concat(), folder, ""));
    }
    let of = |runs: &[Took], time: fn(&Took) -> Duration| median(runs.iter().map(time).collect());
    let times = |time: fn(&Took) -> Duration| of(&all, time) / of(&alone, time);
    let bytes = fs::metadata(folder.join("run.log")).map_or(0, |file| file.len());
    println!(
        "all of {name} logged, 3 rounds, medians: wall {:.2} times the program alone, processor {:.2} times; {:.1} MB",
        times(|took| took.wall),
        times(|took| took.processor),
        bytes as f64 / 1e6
    );
}

fn lua(lineup: &Path, folder: &Path) {
    let study = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/lua");
    let study = study.canonicalize().expect("the study");
    time(&["make"], &study, "make");
    let (program, script) = (study.join("lua"), study.join("bench.lua"));
    let text = |path: &Path| path.to_str().expect("a UTF-8 path").to_owned();
    whole_program(lineup, folder, "lua bench.lua", &[&text(&program), &text(&script)]);
    let own = lineup.to_str().expect("a UTF-8 path");
    logged(own, folder, "lua bench.lua 10", &[&text(&program), &text(&script), "10"]);
    let statements = "create table t(a integer primary key, b text, c int); create index i on t(c); with recursive \
                      n(a) as (select 1 union all select a + 1 from n where a < 100000) insert into t select a, a * 7, \
                      a * 7919 % 10007 from n; select count(*) from t a join t b on a.c = b.c;";
    logged(own, folder, "sqlite3 with 100,000 rows", &["sqlite3", ":memory:", statements]);
}
