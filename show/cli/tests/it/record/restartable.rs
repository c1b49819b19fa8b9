//! Restartable sequences: the kernel restarts one when a thread loses its processor in it, in every way of recording.

use super::program::{Program, X86_64, c};
use crate::installed::lineup;
use std::process::{Command, Output, Stdio};

const SOURCE: &str = include_str!("restartable.c");
/// Rounds of each of three threads: on one processor, threads lose it in the middle of hundreds.
const ROUNDS: u64 = 30_000;
/// The same for code that the program writes: it is decoded again at each execution.
const FEW_ROUNDS: u64 = 20_000;

/// Ways of recording, as arguments before those of the program.
const WAYS: [&[&str]; 7] = [
    &["record", "--whole-program", "--out", "r.rec"],
    &["record", "--whole-program", "--children", "--out", "r.rec"],
    &["record", "--whole-program", "--log", "r.log"],
    &["record", "--region", "work", "--out", "r.rec"],
    &["record", "--region", "add", "--calls", "500", "--out", "r.rec"],
    &["find", "--no-clock"],
    &["time", "--region", "add"],
];

fn run(program: &Program, way: &[&str], how: &str, processors: &str) -> Output {
    let rounds = rounds_of(how).to_string();
    let mut command = lineup();
    command.current_dir(program.folder.path()).args(way);
    if way[0] != "find" && way[0] != "time" {
        command.args(["--engine", "native"]);
    }
    command.args(["--", "./program", how, &rounds, processors]);
    // Only one of the two registers memory.
    command.env("GLIBC_TUNABLES", if how.starts_with("own") { "glibc.pthread.rseq=0" } else { "" });
    command.output().expect("lineup runs")
}

fn rounds_of(how: &str) -> u64 {
    if how.contains("written") { FEW_ROUNDS } else { ROUNDS }
}

/// No round is lost, and unrecorded sequences are counted.
fn assert_whole(program: &Program, ways: &[&[&str]], hows: &[&str]) {
    for (way, how) in ways.iter().flat_map(|way| hows.iter().map(move |how| (way, how))) {
        for processors in ["1", "2"] {
            let output = run(program, way, how, processors);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let sum = said.lines().chain(told.lines()).find_map(|line| line.parse::<u64>().ok());
            assert_eq!(sum, Some(3 * rounds_of(how)), "{way:?} {how} on {processors}: {said}{told}");
            assert!(output.status.success(), "{way:?} {how} on {processors}: {said}{told}");
            if way.contains(&"--whole-program") && !way.contains(&"--log") {
                assert!(said.contains("restartable sequences (rseq)"), "{way:?} {how}: {said}{told}");
            }
        }
    }
}

#[test]
fn sequences_that_a_thread_loses_its_processor_in_begin_anew_however_they_are_recorded() {
    let program = c(X86_64, SOURCE, &[]);
    assert_whole(&program, &WAYS, &["plain"]);
}

#[test]
fn sequences_with_loops_and_names_relative_to_them_begin_anew() {
    let program = c(X86_64, SOURCE, &[]);
    assert_whole(&program, &WAYS[..4], &["often"]);
}

#[test]
fn sequences_whose_descriptors_are_made_while_the_program_runs_begin_anew() {
    let program = c(X86_64, SOURCE, &[]);
    assert_whole(&program, &WAYS[..4], &["made"]);
}

#[test]
fn sequences_of_a_program_that_registers_memory_with_a_signature_of_its_own_begin_anew() {
    let program = c(X86_64, SOURCE, &["-DOWN", "-DSIGNATURE=0x12345678"]);
    assert_whole(&program, &WAYS[..4], &["own", "own made"]);
}

#[test]
fn sequences_of_a_program_that_is_linked_statically_begin_anew() {
    let program = c(X86_64, SOURCE, &["-static"]);
    assert_whole(&program, &[WAYS[0], WAYS[3]], &["plain", "made"]);
}

#[test]
fn sequences_in_code_that_the_program_writes_begin_anew() {
    let program = c(X86_64, SOURCE, &[]);
    assert_whole(&program, &[WAYS[0], WAYS[2], WAYS[3]], &["written", "written sealed"]);
    assert_whole(
        &program,
        &[&["record", "--region", "add_written", "--calls", "500", "--out", "r.rec"]],
        &["written"],
    );
}

/// A thread of the program loads the engine. While it stands in a sequence it must not be made to: the kernel would no
/// longer begin the sequence anew.
#[test]
fn sequences_of_a_program_that_is_attached_to_begin_anew() {
    const ROUNDS: u64 = 30_000_000;
    let program = c(X86_64, SOURCE, &[]);
    let folder = program.folder.path();
    let mut command = Command::new(folder.join("program"));
    command.args(["plain", &ROUNDS.to_string(), "1"]).stdout(Stdio::piped());
    let mut running = command.spawn().expect("the program starts");
    let process = running.id().to_string();
    let mut attachments = 0;
    while running.try_wait().expect("its state").is_none() && attachments < 4 {
        // No call of it begins any more.
        let way = ["record", "--pid", &process, "--region", "work", "--calls", "1", "--max-seconds", "0.2"];
        let output =
            lineup().args(way).args(["--out", "r.rec"]).current_dir(folder).output().expect("lineup runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("made no call of work") || said.contains("has ended"), "{said}");
        attachments += 1;
    }
    let output = running.wait_with_output().expect("its end");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", 3 * ROUNDS));
    assert!(output.status.success() && attachments > 1, "{attachments}");
}
