//! The runtime's own hot paths, studied: `studies/runtime-hot-paths` recorded, and the lines of every call counted.

use super::program::lineup_record;
use lineup_model::access::Call;
use lineup_model::region::RegionId;
use lineup_recording::{Recording, read_all};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const LINE_BYTES: u64 = 64;
const CALLS: usize = 2000;
const REGIONS: [&str; 3] = ["clock_read", "dormant_probe", "immediate_read"];

fn record() -> Recording {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().expect("a scratch folder");
    let output = Command::new("gcc")
        .args(["-g", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(root.join("runtime/runtime/include"))
        .arg(root.join("studies/runtime-hot-paths/hot_paths.c"))
        // The runtime as its users have it: an optimised archive.
        .arg(lineup_fixtures::released("liblineup_runtime.a"))
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(folder.path().join("hot_paths"))
        .output()
        .expect("gcc; apt install gcc");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let regions = REGIONS.iter().flat_map(|region| ["--region", region]);
    let arguments: Vec<&str> = regions.chain(["--", "./hot_paths"]).collect();
    let output = lineup_record(folder.path(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read_all(&std::fs::read(folder.path().join("lineup.rec")).expect("the recording")).expect("readable")
}

/// Lines that a call touched outside its stack.
fn data_lines(call: &Call, recording: &Recording) -> BTreeSet<u64> {
    let is_stack =
        |address: u64| recording.stacks.iter().any(|stack| (stack.start..stack.end).contains(&address));
    let accesses = call.accesses.iter().filter(|access| !is_stack(access.address));
    accesses
        .flat_map(|access| {
            let last = access.address + u64::from(access.size_bytes) - 1;
            access.address / LINE_BYTES..=last / LINE_BYTES
        })
        .collect()
}

#[test]
fn a_clock_read_touches_one_data_line_and_probes_and_immediate_reads_none() {
    let recording = record();
    let lines_of = |region: usize| -> Vec<BTreeSet<u64>> {
        let calls = recording.calls.iter().filter(|call| call.region == RegionId(region as u16));
        calls
            .inspect(|call| assert_eq!(call.missed_blocks, 0))
            .map(|call| data_lines(call, &recording))
            .collect()
    };
    let clock = lines_of(0);
    assert_eq!(clock.len(), CALLS);
    assert!(clock.iter().all(|lines| lines.len() == 1 && *lines == clock[0]), "{:?}", clock[0]);
    for (region, name) in REGIONS.iter().enumerate().skip(1) {
        let lines = lines_of(region);
        assert_eq!(lines.len(), CALLS, "{name}");
        assert!(lines.iter().all(BTreeSet::is_empty), "{name}: {:?}", lines[0]);
    }
}
