//! Files that a store takes, and files that it refuses.

use crate::planted::{Recorded, labels, new_store, of, words};
use lineup_fleet::FleetError;
use lineup_fleet::engine::{Engine, MEMORY_BYTES};
use lineup_fleet::input::{self, Labels};
use lineup_fleet::print::{Form, text};
use lineup_fleet::store::{Added, Store};
use lineup_fleet::tables::{self, PATTERNS, RUNS};
use serde_json::json;
use std::fs;
use std::path::Path;

fn recorded(number: u64) -> Recorded<'static> {
    Recorded {
        number,
        build_id: "01",
        region: "serve",
        calls_per_second: None,
        data_lines: 1.0,
        layout: words("task", "01", &["a", "b"]),
        together: &[(&[0, 1], 4)],
    }
}

fn count(store: &Store, table: &str) -> String {
    let engine = Engine::over(store, MEMORY_BYTES).expect("an engine");
    let answer = engine.ask(&format!("SELECT COUNT(*) AS n FROM {table}")).expect("an answer");
    text(&answer, Form::Csv).expect("text").lines().nth(1).expect("a row").to_owned()
}

#[test]
fn an_empty_store_answers() {
    let (_folder, store) = new_store();
    for table in tables::ALL {
        assert_eq!(count(&store, table.name), "0", "{}", table.name);
    }
}

#[test]
fn the_same_recording_counts_once_whatever_is_said_of_it() {
    let (_folder, store) = new_store();
    let one = recorded(1).input(&labels("web", "one", ("c1", 1)));
    assert_eq!(store.add(&one).expect("added"), Added::New);
    assert_eq!(store.add(&one).expect("added"), Added::Known);
    let named_anew = recorded(1).input(&labels("other", "two", ("c2", 2)));
    assert_eq!(store.add(&named_anew).expect("added"), Added::Known);
    assert_eq!((count(&store, "runs"), count(&store, "patterns")), ("1".into(), "2".into()));
}

#[test]
fn who_is_interrupted_leaves_nothing_that_counts_and_may_add_again() {
    let (folder, store) = new_store();
    let mut input = recorded(1).input(&Labels::default());
    let runs = input.rows.pop().expect("rows of runs");
    assert_eq!(runs.table.name, RUNS.name, "these come last");
    store.add(&input).expect("all but the last file");
    fs::write(folder.path().join(PATTERNS.name).join(".new-half"), "PAR1 half a file").expect("a file");
    assert_eq!((count(&store, "runs"), count(&store, "patterns")), ("0".into(), "0".into()));
    input.rows.push(runs);
    assert_eq!(store.add(&input).expect("added"), Added::New);
    assert_eq!((count(&store, "runs"), count(&store, "patterns")), ("1".into(), "2".into()));
}

#[test]
fn two_who_add_the_same_files_at_once_count_each_once() {
    let (folder, store) = new_store();
    let add = || {
        let inputs = (1..=12).map(|number| recorded(number).input(&Labels::default()));
        inputs.filter(|input| store.add(input).expect("added") == Added::New).count()
    };
    let new: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|_| scope.spawn(add)).collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer")).sum()
    });
    assert_eq!(new, 12, "each file is new to one of the four");
    assert_eq!((count(&store, "runs"), count(&store, "patterns")), ("12".into(), "24".into()));
    let left = tables::ALL
        .into_iter()
        .flat_map(|table| fs::read_dir(folder.path().join(table.name)).expect("a folder"));
    let left =
        left.filter(|file| file.as_ref().expect("a file").file_name().as_encoded_bytes().starts_with(b"."));
    assert_eq!(left.count(), 0, "nothing is left under a name for a while");
}

#[test]
fn a_damaged_file_is_refused_by_name() {
    let whole = recorded(1).document().to_string();
    let mut of_nothing = recorded(1).document();
    of_nothing["uses"][0]["type"] = json!(7);
    let mut elsewhere = recorded(1).document();
    elsewhere["content_sha256"] = json!("../../../etc/passwd");
    let mut other_version = recorded(1).document();
    other_version["schema"] = json!("lineup.usage/2");
    let cut_samples = json!({ "schema": "lineup.samples/1", "is_whole": false });
    let damaged = [
        whole[..whole.len() / 2].to_owned(),
        of_nothing.to_string(),
        elsewhere.to_string(),
        other_version.to_string(),
        cut_samples.to_string(),
        "{}".into(),
        "[]".into(),
        String::new(),
        "LINEUPRC…".into(),
        "schema = \"lineup.lock/1\"\n[[group]]\n".into(),
    ];
    for text in damaged {
        let read = input::of_bytes(Path::new("host7/calls.json"), text.as_bytes(), None, &Labels::default());
        let Err(error @ FleetError::BadInput { .. }) = read else { panic!("{text}: {read:?}") };
        assert!(error.to_string().starts_with("host7/calls.json: "), "{error}");
    }
}

/// The store takes or refuses numbers that no real program has, without overflow.
#[test]
fn wild_numbers_do_no_harm() {
    let mut document = recorded(1).document();
    let most = json!(u64::MAX);
    document["uses"][0]["patterns"][0]["bytes"][0]["offset"] = most.clone();
    document["uses"][0]["patterns"][0]["bytes"][1]["loads"] = most.clone();
    document["types"][0]["members"][0]["offset_bits"] = most.clone();
    document["types"][0]["members"][1]["size_bytes"] = most;
    document["regions"][0]["weight"] = json!("heavy");
    let (_folder, store) = new_store();
    store.add(&of(&document.to_string(), &Labels::default())).expect("added");
    assert_eq!(count(&store, "regions WHERE weight IS NULL"), "1");
}

#[test]
fn a_folder_without_a_store_is_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    let given = folder.path().to_str().expect("a name");
    assert!(matches!(Store::open(given), Err(FleetError::NoStore { .. })));
    Store::open_or_make(&format!("file://{given}")).expect("a store by URL");
    Store::open(given).expect("the same store by path");
    fs::write(folder.path().join("lineup-fleet"), "lineup.fleet/9\n").expect("a file");
    assert!(matches!(Store::open(given), Err(FleetError::StoreVersion { .. })));
}
