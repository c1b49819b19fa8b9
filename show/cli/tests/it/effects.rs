//! `lineup effects`: a program's effects are seen, and two programs that hand on other bytes are distinguished. Effects
//! that change from run to run are named and left out, and the observed program behaves as it does alone.

use crate::installed;
use crate::schema;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Both variants of `programs/sender.c`: unchanged, and with the members of its struct in the other order.
fn senders() -> &'static (tempfile::TempDir, PathBuf, PathBuf) {
    static SENDERS: OnceLock<(tempfile::TempDir, PathBuf, PathBuf)> = OnceLock::new();
    SENDERS.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let build = |name: &str, more: &[&str]| {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/programs/sender.c");
            let program = folder.path().join(name);
            let mut compiler = Command::new("cc");
            compiler.args(["-g", "-O1", "-w", "-pthread", "-o"]).arg(&program).arg(source).args(more);
            assert!(compiler.status().expect("cc runs").success());
            program
        };
        let (plain, swapped) = (build("plain", &[]), build("swapped", &["-DSWAPPED"]));
        (folder, plain, swapped)
    })
}

/// True where one process may trace another. In CI it must be so.
fn can_trace() -> bool {
    let output = lineup(Path::new("."), &["--", "true"]);
    let message = String::from_utf8_lossy(&output.stderr);
    let is_forbidden = message.contains("does not allow tracing") || message.contains("refuses a filter");
    if is_forbidden {
        println!("skipped: {message}");
        assert!(std::env::var_os("CI").is_none(), "{message}");
    } else {
        assert_eq!(output.status.code(), Some(0), "{message}");
    }
    !is_forbidden
}

fn lineup(folder: &Path, arguments: &[&str]) -> Output {
    let mut lineup = installed::lineup();
    lineup.arg("effects").args(arguments).current_dir(folder).stdin(std::process::Stdio::null());
    lineup.output().expect("lineup runs")
}

fn json(output: &Output) -> Value {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{message}");
    schema::checked(&output.stdout)
}

/// Both variants, compared with each other: whether they are equal, and the finding.
fn against(how: &str) -> (bool, Value) {
    let (folder, plain, swapped) = senders();
    let (plain, swapped) = (plain.to_string_lossy(), swapped.to_string_lossy());
    let output = lineup(folder.path(), &["--json", "--against", &swapped, "--", &plain, how]);
    let found = json(&output);
    assert_eq!(found["schema"], "lineup.effects-check/1");
    let is_equal = found["difference"].is_null();
    assert_eq!(output.status.code(), Some(if is_equal { 0 } else { 1 }));
    (is_equal, found)
}

/// Asserts that the variants differ, and returns the effect that is named and how it differs.
fn difference(how: &str) -> (String, String) {
    let (is_equal, found) = against(how);
    assert!(!is_equal, "{how}: {found}");
    let text = |name: &str| found["difference"][name].as_str().expect("text").to_owned();
    (text("effect"), text("how"))
}

/// The struct's bytes in the first program.
const BYTES: &str = "01 00 00 00 1e 00 00 00";

#[test]
fn other_bytes_of_a_struct_are_found_wherever_they_leave_and_the_call_is_named() {
    if !can_trace() {
        return;
    }
    let (in_stream, in_call) = (format!("offset 0: {BYTES}"), format!("offset 0 of 8 bytes: {BYTES}"));
    let cases = [
        ("write", "file out.bin (changed by openat, write)", in_stream.as_str()),
        ("writev", "bytes written to standard output (writev)", "offset 4: 01 00 00 00"),
        ("pwrite", "file out.bin (changed by openat, pwrite64)", "offset 17: 01 00 00 00"),
        ("mmap", "file out.bin (changed by ftruncate, mmap, openat)", "offset 17: 01 00 00 00"),
        ("deleted", "bytes written to deleted file (write)", &in_stream),
        ("ioctl", "call 2 of ioctl on /dev/zero", &in_call),
        ("setsockopt", "call 1 of setsockopt on stream socket 1", &in_call),
        ("send", "call 1 of sendto on local datagram socket 1", &in_call),
        ("sendmsg", "call 1 of sendmsg on local datagram socket 1", &in_call),
        ("sendmmsg", "call 1 of sendmmsg on local datagram socket 1", &in_call),
        ("stream", "bytes written to local stream socket 1 (sendto)", &in_stream),
        ("pipe", "bytes written to pipe 1 (write)", &in_stream),
        ("bind", "call 1 of bind on datagram socket 1", "127.0.0.1:0 against 127.0.0.30:0"),
        ("signal", "call 1 of kill on itself", "SIGUSR1 against SIGUSR2"),
        ("child", "end of process 0.1", "exit status 1 against exit status 30"),
        ("threads", "file o0 (changed by openat, write)", &in_stream),
    ];
    for (how, effect, bytes) in cases {
        let found = difference(how);
        assert_eq!(found.0, effect, "{how}: {}", found.1);
        assert!(found.1.starts_with(bytes), "{how}: {}", found.1);
    }
}

#[test]
fn what_changes_from_run_to_run_is_named_and_the_rest_is_compared() {
    if !can_trace() {
        return;
    }
    let (is_equal, found) = against("pid");
    assert!(is_equal, "{found}");
    let left_out = &found["check"]["not_compared"];
    assert_eq!(left_out[0]["effect"], "bytes written to standard output");
    assert_eq!(left_out[0]["share"], "1 of 3 lines or pieces");
    assert_eq!(found["check"]["compared"][0], "standard output");
    assert_eq!(found["check"]["runs"], 4);
    // Of 2,000 thrown coins some fall alike in a few runs of each variant.
    let (is_equal, found) = against("coins");
    assert!(is_equal && found["check"]["runs"].as_u64() > Some(8), "{found}");
    // A line next to the time is still compared.
    let (effect, _) = difference("varying");
    assert_eq!(effect, "bytes written to standard output (write)");
    // An address in an argument is left out, the number next to it is not.
    let (is_equal, found) = against("pointer");
    assert!(is_equal, "{found}");
    assert_eq!(found["check"]["not_compared"][0]["effect"], "ioctl on /dev/zero");
    assert_eq!(found["check"]["not_compared"][0]["share"], "parts of 1 of 1 calls");
}

#[test]
fn every_run_starts_from_the_same_files_and_its_folder_does_not_count() {
    if !can_trace() {
        return;
    }
    for how in ["count", "place"] {
        let (is_equal, found) = against(how);
        assert!(is_equal, "{how}: {found}");
        assert_eq!(found["check"]["not_compared"], Value::Array(vec![]), "{how}");
    }
}

/// The report on a program, and its output when it ran alone in the same folder.
fn observed(folder: &Path, command: &[&str]) -> (Value, Output) {
    let arguments: Vec<&str> = ["--json", "--"].into_iter().chain(command.iter().copied()).collect();
    let output = lineup(folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let alone = Command::new(command[0]).args(&command[1..]).current_dir(folder).output().expect("it runs");
    (json(&output), alone)
}

/// All that went to standard output, of the processes in order, as hexadecimal.
fn printed(report: &Value) -> String {
    let streams = report["processes"].as_array().expect("a list").iter();
    let streams = streams.flat_map(|process| process["streams"].as_array().expect("a list"));
    let output = streams.filter(|stream| stream["target"] == "standard output");
    output.map(|stream| stream["first_bytes"].as_str().expect("text")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn signals_stops_and_children_work_under_observation_as_they_do_alone() {
    if !can_trace() {
        return;
    }
    let (folder, plain, _) = senders();
    let plain = plain.to_string_lossy();
    let (report, alone) = observed(folder.path(), &[&plain, "signals"]);
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "stopped 19\nexit 7\n");
    assert_eq!(printed(&report), hex(&alone.stdout));
    assert_eq!(report["processes"][1]["exit_status"], 7);

    let (report, alone) = observed(folder.path(), &[&plain, "children"]);
    assert_eq!(String::from_utf8_lossy(&alone.stdout), "spawned\nvforked\nexit 5\n");
    let expected = [("exit 5\n", 0), ("spawned\n", 0), ("vforked\n", 5)];
    for (process, (text, status)) in expected.into_iter().enumerate() {
        let process = &report["processes"][process];
        assert_eq!(process["streams"][0]["first_bytes"], hex(text.as_bytes()));
        assert_eq!(process["exit_status"], status);
    }
}

#[test]
fn a_program_that_is_ended_by_a_signal_is_seen_to_be() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for (signal, name) in [(15, "TERM"), (9, "KILL")] {
        let output = lineup(folder.path(), &["--json", "--", "sh", "-c", &format!("kill -{name} $$")]);
        assert_eq!(json(&output)["processes"][0]["signal"], signal);
    }
}

#[test]
fn files_made_changed_and_removed_are_told_with_their_paths() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("old"), "old").expect("a file");
    let script =
        "mkdir d; echo hi > d/new; mv old renamed; ln -s d/new link; echo x > t; rm t; chmod 600 d/new";
    let report = json(&lineup(folder.path(), &["--json", "--", "sh", "-c", script]));
    let files = report["files"].as_array().expect("a list").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let files: Vec<String> = files
        .map(|file| format!("{} {} {}", text(&file["path"]), text(&file["kind"]), file["size_bytes"]))
        .collect();
    assert_eq!(
        files,
        ["d folder 0", "d/new file 3", "link symbolic link 5", "old removed 0", "renamed file 3"]
    );
    assert_eq!(report["files"][1]["permissions"], "600");
}

#[test]
fn real_programs_print_the_same_under_observation() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let commands: [&[&str]; 4] = [
        &["sh", "-c", "seq 200 | sort -r | head -3"],
        &["perl", "-e", "print join(',', map { $_ * $_ } 1..9), \"\\n\""],
        &["git", "--version"],
        &["gzip", "-c", "/etc/passwd"],
    ];
    for command in commands {
        let (report, alone) = observed(folder.path(), command);
        assert!(!alone.stdout.is_empty(), "{command:?}");
        let shown = alone.stdout.len().min(64);
        assert_eq!(printed(&report), hex(&alone.stdout[..shown]), "{command:?}");
        assert_eq!(report["processes"][0]["exit_status"].as_i64(), alone.status.code().map(i64::from));
    }
}

#[test]
fn output_that_the_kernel_moves_is_compared_as_a_whole() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("text"), "some text\n").expect("a file");
    let (report, alone) = observed(folder.path(), &["cat", "text"]);
    assert_eq!(printed(&report), hex(&alone.stdout));
}

#[test]
fn a_program_that_cannot_be_run_is_said_so() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = lineup(folder.path(), &["--", "./nothing-here"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("cannot run ./nothing-here"), "{message}");
}

#[test]
fn a_build_that_replaces_lineup_while_it_runs_does_not_stop_it() {
    if !can_trace() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("lineup");
    std::fs::copy(installed::lineup().get_program(), &own).expect("copies");
    let mut lineup = Command::new(&own);
    lineup.args(["effects", "--", "sh", "-c", "rm -f lineup; echo other > lineup; echo done"]);
    let output = lineup.current_dir(folder.path()).stdin(std::process::Stdio::null()).output();
    let output = output.expect("lineup runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
