//! Sorts tests: those that run first, those left to `make test-all`, and those that share the machine with few others.

use super::listed::Test;
use anyhow::{Result, bail};

/// Tests that take the same part of the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Group {
    /// A processor each.
    Free,
    /// Waits for clocks and other processes most of its time, and takes little of a processor.
    Waits,
    /// Compares times, so no other test runs at the same time.
    Timed,
    /// Boots a kernel, which takes more than one processor and much memory.
    Boots,
    /// Opens a browser of several processes.
    Browser,
}

impl Group {
    /// The number of the group's tests that may run at a time.
    pub(super) fn at_a_time(self) -> usize {
        match self {
            Group::Free => usize::MAX,
            Group::Timed | Group::Boots | Group::Browser | Group::Waits => 1,
        }
    }

    /// Whether the group's tests, one after another, may take longer than all others together: they begin first.
    pub(super) fn is_a_chain(self) -> bool {
        matches!(self, Group::Boots | Group::Browser | Group::Waits)
    }
}

/// When a test runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Time {
    /// By `make test`.
    First,
    /// By `make test-all`.
    Rest,
    /// By a target or a script of its own.
    ByHand,
}

/// Package, target, how the path begins, and the group.
const GROUPS: &[(&str, &str, &str, Group)] = &[
    ("lineup", "it", "kernel::", Group::Boots),
    ("lineup", "it", "own_kernel::", Group::Boots),
    ("lineup", "it", "pages::", Group::Browser),
    ("lineup-browser", "it", "", Group::Browser),
    ("lineup", "it", "children::a_study_of_a_driven_server", Group::Waits),
    ("lineup", "it", "children::calls_of_a_driven_server", Group::Waits),
    ("lineup", "it", "effects_clients::", Group::Waits),
    ("lineup", "it", "kernel_source::a_patch_to_a_kernel", Group::Waits),
    ("lineup", "it", "measuring::what_takes_over_two_seconds", Group::Waits),
    ("lineup-study", "lineup_study", "process::interrupt::tests::work_that_does_not_ask", Group::Waits),
    ("lineup", "it", "peers::", Group::Timed),
    ("lineup", "it", "record::interventions::", Group::Timed),
    ("lineup", "it", "record::times::", Group::Timed),
    ("lineup-runtime", "clock", "", Group::Timed),
];

/// Package, target, how the path begins, and why `make test` leaves it out.
const REST: &[(&str, &str, &str, &str)] = &[
    ("lineup", "it", "find_planted::", "tries orders of two thousand types"),
    ("lineup", "it", "find_threads::lines_of_their_own_bytes_of_both", "records ten programs with threads"),
    ("lineup", "it", "guide::a_server_under_load", "studies a server; `children` does the same in less time"),
    ("lineup", "it", "kernel::boot::a_guest_without_memory", "boots a kernel"),
    ("lineup", "it", "kernel::emulators::", "fetches an emulator and boots two kernels"),
    ("lineup", "it", "kernel::grief::a_workload_that_fails", "boots a kernel"),
    ("lineup", "it", "kernel::record::", "boots a kernel twice"),
    ("lineup", "it", "kernel_source::a_change_that_does_not_boot", "builds and boots a kernel"),
    ("lineup", "it", "kernel_source::a_change_that_does_not_build", "builds a kernel"),
    ("lineup", "it", "kernel_source::a_change_with_which", "builds and boots kernels"),
    ("lineup", "it", "kernel_source::a_kernel_that_does_not_build", "builds a kernel"),
    ("lineup", "it", "kernel_source::a_kernel_whose_script", "builds a kernel"),
    ("lineup", "it", "kernel_source::an_image_with_another_layout", "builds and boots kernels"),
    ("lineup", "it", "kernel_source::an_order_with_a_group", "builds and boots kernels"),
    ("lineup", "it", "kernel_source::functions_that_calls_go_into", "builds and boots kernels"),
    ("lineup", "it", "kernel_source::what_was_built_in_the_tree", "builds a kernel"),
    ("lineup", "it", "layout_pahole::every_struct_of_zstd", "compiles zstd once for each way of packing"),
    ("lineup", "it", "own_kernel::registers_tell", "fetches two emulators"),
    ("lineup", "it", "pages::every_kind_of_page", "writes every page and opens each in four windows"),
    ("lineup", "it", "record::hot_paths::", "links an optimised runtime"),
    ("lineup", "it", "record::injected::hard_programs_that_are_linked_statically", "records forty programs"),
    ("lineup", "it", "record::logged::programs_that_are_hard_to_follow", "records forty programs"),
    (
        "lineup",
        "it",
        "record::restartable::sequences_of_a_program_that_registers",
        "runs millions of sequences",
    ),
    ("lineup", "it", "review::of_ten_changes", "builds ten changes"),
    ("lineup", "it", "study::lua_gets_a_patch", "studies an interpreter"),
    ("lineup", "it", "study_code::other_optimisers", "builds with every optimiser"),
    ("lineup", "it", "study_threads::fields_and_objects_of_rust", "studies a program of Rust"),
    ("lineup-browser", "it", "bad_pages::", "opens a page for each fault"),
    ("lineup-advise", "it", "lua::", "compiles Lua once for each layout of its types"),
    ("lineup-runtime", "it", "aarch64::", "runs a runtime that is built for another machine"),
    ("lineup-runtime", "it", "installed::the_rust_example", "builds a package of a user's own by cargo"),
];

/// Tests that `make test` leaves out for their time alone, a line each: package, target, path.
const SLOW: &str = include_str!("slow.txt");

fn slow_tests() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = SLOW.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?, words.next()?, words.next()?))
    })
}

/// Ignored tests that `make test-all` leaves out, too, each with the name of its runner.
const BY_HAND: &[(&str, &str, &str, &str)] = &[
    ("lineup", "it", "kernel::other_emulators::", "make test-emulators"),
    ("lineup", "it", "record::emulators::", "make test-emulators"),
    ("lineup", "it", "record::equal::", "scripts/engines, which names programs"),
];

fn is_below(test: &Test, (package, target, path): (&str, &str, &str)) -> bool {
    test.package == package && test.target == target && test.path.starts_with(path)
}

pub(super) fn group_of(test: &Test) -> Group {
    let found = GROUPS.iter().find(|(package, target, path, _)| is_below(test, (package, target, path)));
    found.map_or(Group::Free, |(_, _, _, group)| *group)
}

fn is_slow(test: &Test) -> bool {
    slow_tests()
        .any(|(package, target, path)| test.package == package && test.target == target && test.path == path)
}

pub(super) fn time_of(test: &Test) -> Time {
    let is_in = |list: &[(&str, &str, &str, &str)]| {
        list.iter().any(|(package, target, path, _)| is_below(test, (package, target, path)))
    };
    match test.is_ignored {
        true if is_in(BY_HAND) => Time::ByHand,
        true => Time::Rest,
        false if is_in(REST) || is_slow(test) => Time::Rest,
        false => Time::First,
    }
}

/// Refuses lines that name no test of an existing package: a renamed test would silently change its time.
pub(super) fn check(tests: &[Test]) -> Result<()> {
    let named = GROUPS.iter().map(|(package, target, path, _)| (*package, *target, *path));
    let named =
        named.chain(REST.iter().chain(BY_HAND).map(|(package, target, path, _)| (*package, *target, *path)));
    for line in named.chain(slow_tests()) {
        let is_built = tests.iter().any(|test| test.package == line.0);
        if is_built && !tests.iter().any(|test| is_below(test, line)) {
            bail!("xtask/src/test names {line:?}, and no test begins so");
        }
    }
    Ok(())
}
