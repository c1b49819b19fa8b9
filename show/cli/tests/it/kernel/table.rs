//! The manual's table of emulators and machines. Each cell is shown by a test, which says so with [`shows`] and fails
//! if the table says otherwise; the manual has to have this very table.

use lineup_recording::Recording;

const MACHINES: [&str; 5] = ["x86-64", "x86-64, two CPUs", "AArch64", "AArch64, two CPUs", "32-bit Arm"];

const REPEATS: &str = "repeats to the bit";
const RECORDED: &str = "recorded, does not repeat";
const AS_OLDER: &str = "the same calls as 7.2";
const STAYS_ON: &str = "the same calls as 7.2; the guest does not switch itself off";

/// A machine's ability, and the test that shows it.
type Cell = (&'static str, &'static str);

struct Row {
    emulator: &'static str,
    /// The emulator's part of a recording's header.
    version: &'static str,
    interface: u32,
    /// In the order of the machines.
    cells: [Cell; MACHINES.len()],
}

/// The abilities that the tests of [`super::other_emulators`] show, except for Arm's machines with one processor, and
/// with two.
const fn other(
    emulator: &'static str,
    version: &'static str,
    interface: u32,
    [one_of_arm, two_of_arm]: [&'static str; 2],
) -> Row {
    let (same, two) = ("other_emulators_record_the_same_calls", "other_emulators_record_two_processors");
    Row {
        emulator,
        version,
        interface,
        cells: [(AS_OLDER, same), (RECORDED, two), (one_of_arm, same), (two_of_arm, two), (one_of_arm, same)],
    }
}

const ROWS: [Row; 7] = [
    Row {
        emulator: "QEMU 7.2 (Debian 12)",
        version: "version 7.2",
        interface: 1,
        cells: [
            (REPEATS, "the_same_command_gives_the_same_recording_and_it_holds_what_the_kernel_did"),
            (
                RECORDED,
                "the_locks_of_two_run_queues_are_named_and_what_both_cpus_write_is_for_the_same_bytes",
            ),
            (REPEATS, "sixty_four_bit_arm_is_recorded_alike"),
            (REPEATS, "two_processors_share_lines_and_still_give_the_same_recording"),
            (REPEATS, "thirty_two_bit_arm_has_the_generic_clock_of_2015_on_few_lines"),
        ],
    },
    other("QEMU 8.2 (Ubuntu 24.04)", "version 8.2", 1, [AS_OLDER, REPEATS]),
    other("QEMU 9.2 (Ubuntu 25.04)", "version 9.2", 4, [STAYS_ON, REPEATS]),
    Row {
        emulator: "QEMU 10.0 (Debian 12's backports, Debian 13)",
        version: "version 10.0",
        interface: 4,
        cells: [
            (AS_OLDER, "two_emulators_record_the_same_calls"),
            (RECORDED, "the_newer_emulator_tells_which_of_two_processors_it_is"),
            (AS_OLDER, "two_emulators_record_the_same_calls_of_arm_kernels"),
            (RECORDED, "the_newer_emulator_records_two_arm_processors_that_share_lines"),
            (AS_OLDER, "two_emulators_record_the_same_calls_of_arm_kernels"),
        ],
    },
    other("QEMU 10.1 (Ubuntu 25.10)", "version 10.1", 5, [AS_OLDER, RECORDED]),
    other("QEMU 10.2 (Ubuntu 26.04)", "version 10.2", 5, [AS_OLDER, RECORDED]),
    other("QEMU 11.1 (Debian 13's backports)", "version 11.1", 7, [AS_OLDER, RECORDED]),
];

/// A test has shown that this is recorded on that machine, with the emulator in the recording: the table must say just
/// that. An emulator that is not in the table is not checked.
pub(crate) fn shows(recording: &Recording, machine: &str, test: &str) {
    let Some((row, (what, by))) = cell(recording, machine) else {
        return println!("not in the table: {}", recording.header.emulator);
    };
    assert_eq!(by, test, "the table names another test for {}, {machine}", row.emulator);
    println!("shown: {}, {machine}: {what}", row.emulator);
}

/// True when the table says that two runs under this emulator are the same.
pub(crate) fn is_repeated(recording: &Recording, machine: &str) -> bool {
    cell(recording, machine).is_some_and(|(_, (what, _))| what == REPEATS)
}

fn cell(recording: &Recording, machine: &str) -> Option<(&'static Row, Cell)> {
    let row = ROWS.iter().find(|row| recording.header.emulator.contains(row.version))?;
    let column = MACHINES.iter().position(|known| *known == machine).expect("a machine of the table");
    Some((row, row.cells[column]))
}

fn in_the_manual() -> String {
    let line = |cells: &[&str]| format!("| {} |\n", cells.join(" | "));
    let mut table = line(&[&["emulator", "plugins' interface"][..], &MACHINES].concat());
    table += &format!("|{}\n", "---|".repeat(2 + MACHINES.len()));
    for row in &ROWS {
        let interface = row.interface.to_string();
        let cells = row.cells.map(|(what, _)| what);
        table += &line(&[&[row.emulator, interface.as_str()][..], &cells].concat());
    }
    table
}

/// The body of a function in these tests' sources.
fn body_of(test: &str) -> &'static str {
    const SOURCES: [&str; 6] = [
        include_str!("emulators.rs"),
        include_str!("machines.rs"),
        include_str!("other_emulators.rs"),
        include_str!("record.rs"),
        include_str!("sweep.rs"),
        include_str!("threads.rs"),
    ];
    let start = format!("fn {test}() {{\n");
    let found = SOURCES.iter().find_map(|source| source.split_once(start.as_str()));
    let (_, rest) = found.unwrap_or_else(|| panic!("there is no test {test}"));
    rest.split_once("\n}\n").expect("its end").0
}

#[test]
fn the_manual_has_the_table_of_emulators_and_machines_that_the_tests_show() {
    let manual = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/kernel.md"));
    let table = in_the_manual();
    assert!(manual.expect("the manual").contains(&table), "docs/kernel.md lacks this table:\n{table}");
    for (_, test) in ROWS.iter().flat_map(|row| row.cells) {
        assert!(body_of(test).contains("shows("), "{test} shows nothing");
    }
}
