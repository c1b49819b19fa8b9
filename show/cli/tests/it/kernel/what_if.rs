//! Another order of members, tried on a kernel's recorded accesses.

use super::guests::{Bench, QUICK, busybox, kernel};
use serde_json::{Value, json};
use std::process::Command;

fn advise(bench: &Bench, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup"));
    command.current_dir(bench.folder.path()).env("XDG_CACHE_HOME", bench.folder.path().join("cache"));
    let output = command.arg("advise").args(arguments).output().expect("lineup runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
#[ignore = "takes a minute: make test-kernel"]
fn a_replay_misses_what_the_recorder_saw_and_an_order_changes_only_its_own_type() {
    let bench = Bench::new(&["record", "--kernel"]);
    let image = bench.copy(&kernel("cloud"));
    let guest = ["--workload", "idle", "--cmdline", QUICK, "--out", "calls.rec"];
    bench.json(&image, &[&["--region", "timer", "--stream"], &guest[..]].concat());

    let proposed = advise(&bench, &["calls.rec", "--what-if", "--json"]);
    let report: Value = serde_json::from_str(&proposed.1).unwrap_or_else(|_| panic!("{proposed:?}"));
    crate::schema::check(&report);
    assert_eq!(report["schema"], "lineup.what-if/2");
    assert_eq!(report["reproduces_recording"], true, "{report:#}");
    let regions = report["regions"].as_array().expect("regions");
    assert!(
        regions.iter().any(|region| region["before"]["data_l1"] != region["after"]["data_l1"]),
        "{report:#}"
    );
    for region in regions {
        assert_eq!(region["before"]["code_l1"], region["after"]["code_l1"], "code does not move: {region:#}");
    }

    std::fs::write(bench.folder.path().join("short"), "list_head: next\n").expect("a file");
    let refused = advise(&bench, &["calls.rec", "--what-if", "short"]);
    assert_eq!(refused.0, Some(2));
    assert!(refused.2.contains("line 1") && refused.2.contains("2 members, and 1"), "{}", refused.2);

    std::fs::write(bench.folder.path().join("same"), "list_head: next, prev\n").expect("a file");
    let same = advise(&bench, &["calls.rec", "--what-if", "same", "--json"]);
    let report: Value = serde_json::from_str(&same.1).unwrap_or_else(|_| panic!("{same:?}"));
    for region in report["regions"].as_array().expect("regions") {
        assert_eq!(region["before"], region["after"], "the present order changes nothing");
    }
}

/// Two programs that answer each other through pipes, on whichever processor.
const PING_PONG: &str = "mkfifo /tmp/there /tmp/back; (while read -r n; do echo $n; done < /tmp/there > /tmp/back) & \
     exec 3> /tmp/there 4< /tmp/back; n=0; while [ $n -lt 100 ]; do echo $n >&3; read -r answer <&4; n=$((n + 1)); done";

#[test]
#[ignore = "boots kernels; make test-kernel runs it"]
fn with_two_processors_lines_come_from_the_other_one_in_the_replay_as_they_did() {
    let bench = Bench::new(&["record", "--kernel"]);
    // Both processors of Arm take turns, those of x86 run at once.
    for machine in ["arm64", "cloud"] {
        let fetched = kernel(machine);
        let (image, out) = (bench.copy(&fetched), format!("{machine}.rec"));
        let mut guest = vec!["--cpus", "2", "--workload", PING_PONG, "--out", &out];
        let busybox = (machine == "arm64").then(|| busybox(&fetched));
        guest.extend(busybox.iter().flat_map(|file| ["--busybox", file]));
        let regions = ["--region", "try_to_wake_up", "--region", "ttwu_do_activate", "--calls", "50"];
        bench.json(&image, &[&regions[..], &["--stream"], &guest].concat());
        std::fs::write(bench.folder.path().join("same"), "list_head: next, prev\n").expect("a file");
        let same = advise(&bench, &[&out, "--what-if", "same", "--json"]);
        let report: Value = serde_json::from_str(&same.1).unwrap_or_else(|_| panic!("{same:?}"));
        assert_eq!(
            (&report["reproduces_recording"], &report["cpus"]),
            (&json!(true), &json!(2)),
            "{report:#}"
        );
        let regions = report["regions"].as_array().expect("regions");
        assert!(regions.iter().any(|region| region["before"]["shared"].as_u64() > Some(0)), "{report:#}");
    }
}
