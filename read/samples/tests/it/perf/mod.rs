//! Perf, and the program that samples are planted in.

use lineup_samples::writer::MappingSpec;
use std::process::Command;

/// The program of process 77.
pub(crate) const PROGRAM: MappingSpec<'static> = MappingSpec {
    process: 77,
    start: 0x40_0000,
    size_bytes: 0x2000,
    file_offset: 0,
    protection: 5,
    path: "/nowhere/planted",
    build_id: None,
};

/// The output of a command, which must succeed.
pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).env("PERF_PAGER", "cat").output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}
