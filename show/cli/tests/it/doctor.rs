//! The doctor's checks give the same answers as the commands themselves, and remedies for the rest.

use crate::installed;
use serde_json::Value;
use std::process::Output;

fn doctor(arguments: &[&str], path: Option<&str>) -> Output {
    let mut command = installed::lineup();
    command.arg("doctor").args(arguments);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    command.output().expect("lineup runs")
}

fn checks(output: &Output) -> Value {
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["schema"], "lineup.doctor/1");
    report["checks"].clone()
}

fn named<'c>(checks: &'c Value, name: &str) -> &'c Value {
    let all = checks.as_array().expect("a list");
    all.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("no {name} in {checks:#}"))
}

#[test]
fn recorders_were_tried_here() {
    let output = doctor(&["--json", "--require", "native engine"], None);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let checks = checks(&output);
    assert_eq!(
        named(&checks, "native engine")["what"],
        "counted a program from its first instruction to its last"
    );
    let emulated = named(&checks, "x86_64 programs, emulated");
    assert!(emulated["what"].as_str().is_some_and(|what| what.ends_with("counted a program with it")));
}

#[test]
fn what_is_not_there_is_said_with_what_installs_it() {
    let nothing = tempfile::tempdir().expect("a folder");
    let nothing = nothing.path().to_str().expect("UTF-8");
    let output = doctor(&["--json", "--require", "aarch64 programs, emulated"], Some(nothing));
    assert_eq!(output.status.code(), Some(1));
    let checks = checks(&output);
    for (name, what, package) in [
        ("aarch64 programs, emulated", "qemu-aarch64 is not installed", "qemu-user"),
        ("arm kernels", "qemu-system-arm is not installed", "qemu-system-arm"),
        ("compiler", "cc is not installed", "gcc make"),
    ] {
        let check = named(&checks, name);
        assert_eq!((&check["works"], &check["what"]), (&false.into(), &what.into()));
        assert_eq!(check["next"], format!("apt install {package}"));
    }
    let text = doctor(&[], Some(nothing));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("next: apt install qemu-user\n"), "{text}");
}

#[test]
fn an_emulator_without_plugins_is_told_with_how_to_build_one() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let emulator = folder.path().join("qemu-arm");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo qemu-arm version 10.0.2\nexit 0\n";
    std::fs::write(&emulator, script).expect("writes");
    std::fs::set_permissions(&emulator, std::fs::Permissions::from_mode(0o755)).expect("sets");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let checks = checks(&doctor(&["--json"], Some(&path)));
    let check = named(&checks, "arm programs, emulated");
    assert_eq!(check["what"], "qemu-arm was built without plugins");
    let next = check["next"].as_str().expect("what to do");
    assert!(next.contains("--target-list=arm-linux-user"), "{next}");
}

#[test]
fn a_line_that_is_not_there_cannot_be_required() {
    let output = doctor(&["--require", "telepathy"], None);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("there are: native engine, attaching"), "{said}");
}

#[test]
fn shells_and_man_get_what_they_know_of_the_commands() {
    let output = installed::lineup().args(["completions", "bash"]).output().expect("lineup runs");
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("lineup.bash");
    let test = "source \"$0\"; COMP_WORDS=(lineup layo); COMP_CWORD=1; _lineup lineup layo lineup; echo \"${COMPREPLY[@]}\"";
    std::fs::write(&script, &output.stdout).expect("writes");
    let completed =
        std::process::Command::new("bash").args(["-c", test]).arg(&script).output().expect("bash runs");
    assert_eq!(String::from_utf8_lossy(&completed.stdout).trim(), "layout");
    let pages = folder.path().join("man/man1");
    let written = installed::lineup().arg("manual").arg(&pages).output().expect("lineup runs");
    assert!(written.status.success());
    let page = std::fs::read_to_string(pages.join("lineup-study.1")).expect("a page");
    assert!(page.contains("Example:") && page.contains("lineup study"), "{page}");
}
