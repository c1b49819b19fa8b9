//! `lineup trace report` on recordings of whole systems, made here.

use crate::schema;

use crate::whole_system::recording;
use lineup_recording::Mode;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lineup(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lineup")).args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_recording_is_reported_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let file = put(folder.path(), "busy.rec", &recording(Mode::System, 150));
    let symbols = put(folder.path(), "map", b"ffffffff81000000 T timer_entry\n");
    let (file, symbols) = (file.to_str().unwrap(), symbols.to_str().unwrap());
    let page = folder.path().join("page.html");
    let shown =
        lineup(&["trace", "report", "--full", file, "--symbols", symbols, "--html", page.to_str().unwrap()]);
    let report = text(&shown);
    assert!(shown.status.success(), "{report}");
    for words in ["busy", "timer", "irqs-off", "I-stall cycles 1.00", "timer_entry+0x4", "emptying the L1I"] {
        assert!(report.contains(words), "{words}: {report}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("lineup trace report"));
    let json = lineup(&["trace", "report", file, "--symbols", symbols, "--json"]);
    let json: serde_json::Value = schema::checked(&json.stdout);
    assert_eq!(
        (&json["schema"], &json["regions"][0]["runs"][0]["calls"]),
        (&"lineup.calls/1".into(), &150.into())
    );
    let csv = lineup(&["trace", "report", file, "--symbols", symbols, "--csv"]);
    assert_eq!(String::from_utf8(csv.stdout).unwrap().lines().count(), 301);
    let only =
        text(&lineup(&["trace", "report", "--full", file, "--symbols", symbols, "--region", "irqs-off"]));
    assert!(only.contains("== irqs-off") && !only.contains("== timer"), "{only}");
}

#[test]
fn without_the_image_functions_are_shown_by_address_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = put(folder.path(), "busy.rec", &recording(Mode::System, 30));
    let shown = lineup(&["trace", "report", "--full", file.to_str().unwrap()]);
    assert!(shown.status.success());
    assert!(
        text(&shown).contains("0xffffffff81000004") && text(&shown).contains("--symbols"),
        "{}",
        text(&shown)
    );
}

#[test]
fn a_truncated_recording_is_read_up_to_its_last_whole_block_and_that_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recording(Mode::System, 500);
    let file = put(folder.path(), "cut.rec", &whole[..whole.len() / 2]);
    let shown = lineup(&["trace", "report", file.to_str().unwrap()]);
    assert!(shown.status.success(), "{}", text(&shown));
    assert!(text(&shown).contains("good bytes; what stands before is used"), "{}", text(&shown));
    let json = lineup(&["trace", "report", file.to_str().unwrap(), "--json"]);
    let json: serde_json::Value = schema::checked(&json.stdout);
    let calls = json["regions"][0]["runs"][0]["calls"].as_u64().unwrap();
    assert!((50..500).contains(&calls) && calls.is_multiple_of(50), "{calls}");
    assert!(json["runs"][0]["damage"].is_string() && json["runs"][0]["instructions"].is_null());
}

#[test]
fn bad_input_is_refused_with_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let system = put(folder.path(), "system.rec", &recording(Mode::System, 30));
    let program = put(folder.path(), "program.rec", &recording(Mode::OnePass, 30));
    let empty = put(folder.path(), "empty.rec", &recording(Mode::System, 0));
    let stump = [&lineup_recording::MAGIC[..], &lineup_recording::VERSION.to_le_bytes()].concat();
    let stump = put(folder.path(), "stump.rec", &stump);
    let other = put(folder.path(), "other.trace", b"not a trace");
    let [system, program, empty, stump, other] =
        [&system, &program, &empty, &stump, &other].map(|path| path.to_str().unwrap());
    for (arguments, reason) in [
        (vec![system, other], "files of one kind"),
        (vec![program], "`lineup explain` shows"),
        (vec![empty], "no call was recorded"),
        (vec![stump], "no readable header"),
        (vec![system, "--region", "nothing"], "there are timer, irqs-off"),
        (vec![system, "--symbols", other], "holds no symbols"),
        (vec![system, "--symbols", "/nonexistent"], "cannot read /nonexistent"),
        (vec![system, "--format", "perfetto"], "have no such form"),
        (vec![other, "--region", "timer"], "are for recordings of whole systems"),
    ] {
        let refused = lineup(&[&["trace", "report"], &arguments[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused));
        assert!(text(&refused).contains(reason), "{arguments:?}: {}", text(&refused));
    }
}
