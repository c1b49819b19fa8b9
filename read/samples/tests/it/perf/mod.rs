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

/// The names of a level, such as "Local RAM or RAM hit": perf 6.1 gives both, perf 6.12 the latter alone.
pub(crate) fn spellings(level: &str) -> [&str; 2] {
    [level, level.rsplit(" or ").next().unwrap_or(level)]
}

/// The row of `perf mem report` for a level and what snooping found: its share and its number of samples.
pub(crate) fn row<'p>(printed: &'p str, level: &str, snoop: &str) -> [&'p str; 2] {
    let rows = printed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is_row = |words: &Vec<&str>| {
        let of = words.get(2..).unwrap_or_default().join(" ");
        spellings(level).iter().any(|level| of == format!("{level} {snoop}"))
    };
    let words = rows.into_iter().find(is_row).unwrap_or_else(|| panic!("no {level}: {printed}"));
    [words[0], words[1]]
}

/// The output of a command, which must succeed.
pub(crate) fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).env("PERF_PAGER", "cat").output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}
