//! A call's registers name the target of a pointer, where nothing else does.

use super::program::{AArch64, Program, X86_64, c};
use lineup_model::machine::Machine;
use serde_json::Value;
use std::process::Command;

/// The C library, whose code is unknown, clears the item; only registers hold the item's address.
const SOURCE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item { long weight; char label[88]; struct item *next; };

__attribute__((noinline, noclone)) void work(int round, struct item *item) {
    memset(item->label, round, sizeof item->label);
}

int main(void) {
    struct item *item = malloc(sizeof *item);
    printf("item %p\n", (void *)item);
    for (int round = 0; round < 20; round++) work(round, item);
    return item->label[3] != 19;
}
"#;

/// The output of `lineup explain` for a program's recording.
fn explain(program: &Program, how: &str) -> Vec<u8> {
    let mut lineup = Command::new(env!("CARGO_BIN_EXE_lineup"));
    let output = lineup.current_dir(program.folder.path()).args(["explain", "lineup.rec", how]).output();
    let output = output.expect("lineup runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn json(program: &Program) -> Value {
    serde_json::from_slice(&explain(program, "--json")).expect("JSON")
}

#[test]
fn the_native_engine_tells_what_a_call_was_given_and_that_names_what_the_c_library_writes() {
    let program = c(X86_64, SOURCE, &["-fno-builtin"]);
    let recorded = program.record(&["--engine", "native", "--region", "work"]);
    assert_eq!(recorded.calls().len(), 20);
    for (round, call) in (0..).zip(recorded.calls()) {
        let arguments = call.arguments.expect("registers");
        assert_eq!(arguments.values().len(), Machine::X86_64.description().argument_registers.len());
        assert_eq!((arguments.values()[0] as u32, arguments.values()[1]), (round, recorded.value("item")));
        let image = recorded.recording.images.iter().find(|image| image.contains(arguments.entry));
        assert!(image.expect("the program").path.ends_with("/program"));
    }
    let explanation = json(&program);
    assert_eq!(explanation["tells"]["registers"], true);
    let coverage = &explanation["regions"][0]["coverage"];
    assert!(coverage["by_evidence"]["argument"].as_u64() >= Some(20), "{coverage:#}");
    let map = explanation["regions"][0]["map"].as_array().expect("a map");
    let parts = map.iter().filter(|line| line["type_name"] == "item");
    let names: Vec<&Value> =
        parts.flat_map(|line| line["parts"].as_array().expect("parts")).map(|part| &part["name"]).collect();
    assert!(!names.is_empty() && names.iter().all(|name| **name == "label[]"), "{map:#?}");
}

#[test]
fn an_emulator_that_reads_no_registers_leaves_it_to_the_library_and_says_so() {
    for machine in [X86_64, AArch64] {
        let program = c(machine, SOURCE, &["-fno-builtin", "-static"]);
        let recorded = program.record(&["--engine", "qemu", "--region", "work"]);
        assert!(
            recorded.recording.header.emulator.contains("version 7."),
            "this asks the installed emulator"
        );
        assert!(recorded.calls().iter().all(|call| call.arguments.is_none()));
        let explanation = json(&program);
        assert_eq!(explanation["tells"]["registers"], false);
        let coverage = &explanation["regions"][0]["coverage"];
        assert!(coverage["by_evidence"].get("argument").is_none(), "{coverage:#}");
        assert!(coverage["by_class"]["library"].as_u64() >= Some(20), "{coverage:#}");
        let text = String::from_utf8(explain(&program, "--full")).expect("text");
        assert!(text.contains("Registers were not read: "), "{text}");
    }
}
