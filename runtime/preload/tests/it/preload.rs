//! The locks of an unmodified program, timed.

use lineup_trace::{Kind, Trace};
use std::path::Path;
use std::process::Command;

#[test]
fn every_lock_of_an_unmodified_program_is_timed_by_address() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("locks");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs/locks.c");
    let mut build = Command::new("gcc");
    build.args(["-O2", "-Wall", "-Werror"]).arg(source).arg("-o").arg(&program).arg("-lpthread");
    assert!(build.status().expect("gcc; apt install gcc").success());
    let library = lineup_fixtures::beside("liblineup_preload.so");
    let file = folder.path().join("locks.trace");
    let run = |traced: bool| {
        let mut command = Command::new(&program);
        command.env_remove("LD_LIBRARY_PATH").env("LD_PRELOAD", &library);
        if traced {
            command.env("LINEUP_TRACE", &file);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(false);
    assert!(!file.exists());
    let address = run(true);
    let trace = Trace::parse(&std::fs::read(&file).unwrap()).unwrap();
    let mutex = trace.names.iter().find(|name| name.text == format!("mutex {address}")).unwrap().index;
    let spin = trace.names.iter().find(|name| name.text.starts_with("spin ")).unwrap().index;
    let held: Vec<u64> = trace.events_of(mutex, Kind::Lock).map(|event| event.duration_ns).collect();
    // Two threads of fifty turns, the last two takes, and one more for each wait for the condition.
    assert!(held.len() >= 102, "{}", held.len());
    assert!(held.iter().any(|ns| *ns >= 20_000_000));
    assert_eq!(trace.events_of(spin, Kind::Lock).count(), 50);
    assert_eq!(trace.losses().unbalanced, 0);
}
