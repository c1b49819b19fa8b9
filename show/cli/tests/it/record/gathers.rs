//! Instructions that access only some elements of a vector: exactly these accesses are recorded.

use super::engines::assert_engines_agree;
use super::program::{X86_64, c};
use std::collections::BTreeSet;
use std::process::Command;

#[test]
fn both_engines_see_which_elements_are_gathered_and_moved() {
    let program = c(X86_64, include_str!("gathers.c"), &["-mno-avx"]);
    assert_engines_agree(&program, &["--region", "hot", "--calls", "200"]);
}

/// The emulator has no AVX-512, and reads all bytes of a masked load: here the program itself says what is accessed.
#[test]
fn elements_are_those_that_the_program_expects_and_faults_in_between_change_nothing() {
    const TABLE: std::ops::Range<u64> = 0x2100_0000..0x2100_2000;
    let program = c(X86_64, include_str!("elements.c"), &["-mno-avx"]);
    let alone = Command::new(program.folder.path().join("program")).output().expect("the program");
    let alone = String::from_utf8_lossy(&alone.stdout);
    let native = program.record(&["--engine", "native", "--region", "hot", "--calls", "1000"]);
    let said = |name: &'static str, text: &str| -> Vec<String> {
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    };
    assert_eq!(said("result", &native.said), said("result", &alone));
    let expected = said("expected", &native.said);
    assert_eq!(native.calls().len(), 2 * expected.len());
    // In each pair of calls the first only says what the second will access.
    for (number, (call, expected)) in native.calls().chunks(2).zip(&expected).enumerate() {
        let own = call[1].accesses.iter().filter(|access| TABLE.contains(&access.address));
        let bytes = own.flat_map(|access| access.address..access.address + u64::from(access.size_bytes));
        let seen: BTreeSet<u64> = bytes.map(|address| address - TABLE.start).collect();
        let expected: BTreeSet<u64> =
            expected.split(' ').skip(1).map(|byte| byte.parse().expect("a byte")).collect();
        assert_eq!(seen, expected, "call {number}");
    }
    assert!(native.calls().iter().all(|call| call.missed_blocks == 0));
}
