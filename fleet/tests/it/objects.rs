//! A store in an object store: the commands by URL, over S3's protocol, with the promises of a folder.

use crate::planted::{Recorded, words};
use crate::served::{BUCKET, KEY, SECRET, STORE, Server, texts};
use lineup_fleet::{tables, views};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tempfile::TempDir;

/// Files that `lineup explain --usage` writes, of two builds of one service; each has two rows of `patterns`.
fn recordings(count: u64) -> (TempDir, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |number| {
        let build_id = ["01", "02"][number as usize % 2];
        let members =
            [["a", "b", "c", "d", "e", "f", "g", "h", "i"], ["i", "b", "c", "d", "e", "f", "g", "h", "a"]];
        let recorded = Recorded {
            number,
            build_id,
            region: "serve",
            calls_per_second: Some(100.0),
            data_lines: 2.0 + number as f64,
            layout: words("task", build_id, &members[number as usize % 2]),
            together: &[(&[0, 8], 4)],
        };
        let file = folder.path().join(format!("calls-{number}.json"));
        fs::write(&file, recorded.document().to_string()).expect("a file");
        file.to_str().expect("a name").to_owned()
    };
    let files = (1..=count).map(write).collect();
    (folder, files)
}

fn add<'a>(files: &'a [String], store: &'a str) -> Vec<&'a str> {
    let mut arguments =
        vec!["add", "--store", store, "--service", "web", "--commit", "c1", "--commit-time", "1"];
    arguments.extend(files.iter().map(String::as_str));
    arguments
}

fn count(server: &Server, table: &str) -> String {
    let sql = format!("SELECT COUNT(*) AS n FROM {table}");
    let answer = server.says(&["query", &sql, "--store", STORE, "--format", "csv"]);
    answer.lines().nth(1).expect("a row").to_owned()
}

#[test]
fn every_table_and_view_answers_as_that_of_a_folder() {
    let (folder, files) = recordings(3);
    let local = folder.path().join("store").to_str().expect("a name").to_owned();
    let server = Server::start();
    for store in [STORE, &local] {
        assert_eq!(server.says(&add(&files, store)).matches("added: ").count(), 3);
    }
    let names = tables::ALL.iter().map(|table| table.name).chain(views::ALL.iter().map(|view| view.name));
    for name in names {
        let sql = format!("SELECT * FROM {name}");
        let asked = |store| {
            let answer = server.says(&["query", &sql, "--store", store, "--format", "csv"]);
            let mut lines: Vec<String> = answer.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(asked(STORE), asked(&local), "{name}");
    }
    assert_eq!(count(&server, "patterns"), "6");
}

#[test]
fn advice_and_the_report_come_from_a_url_as_well() {
    let (folder, files) = recordings(2);
    let server = Server::start();
    server.says(&add(&files, STORE));
    let advice = server.says(&["advise", "task", "--store", STORE]);
    assert!(advice.contains("web") && advice.contains("gains"), "{advice}");
    let page = folder.path().join("fleet.html");
    server.says(&["report", "--store", STORE, "--out", page.to_str().expect("a name")]);
    assert!(fs::read_to_string(page).expect("a page").contains(STORE));
}

#[test]
fn the_same_recording_counts_once() {
    let (_folder, files) = recordings(2);
    let server = Server::start();
    server.says(&add(&files, STORE));
    let again = server.says(&add(&files, STORE));
    assert_eq!((again.matches("was there: ").count(), again.matches("added: ").count()), (2, 0), "{again}");
    assert_eq!((count(&server, "runs"), count(&server, "patterns")), ("2".into(), "4".into()));
}

/// The test's server looks for a file and makes it afterwards, so two clients may both learn that a file is new.
/// Servers that keep S3's promise answer so to only one.
#[test]
fn two_who_add_the_same_files_at_once_count_each_once() {
    let (_folder, files) = recordings(12);
    let server = Server::start();
    let start = || {
        let mut command = server.command(&add(&files, STORE));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let both = [start(), start()].map(|child| texts(child.wait_with_output().expect("it ends")));
    let mut new = 0;
    for [out, error, code] in both {
        assert_eq!(code, "Some(0)", "{out}{error}");
        assert_eq!(out.matches("added: ").count() + out.matches("was there: ").count(), 12, "{out}");
        new += out.matches("added: ").count();
    }
    assert!(new >= 12, "each is new to one at least: {new}");
    assert_eq!((count(&server, "runs"), count(&server, "patterns")), ("12".into(), "24".into()));
}

#[test]
fn who_is_interrupted_leaves_nothing_that_counts_and_may_add_again() {
    let (_folder, files) = recordings(2);
    let server = Server::start();
    server.says(&add(&files, STORE));
    let run = format!("{:064x}", 1);
    fs::remove_file(server.file(&format!("runs/{run}.parquet"))).expect("the file that is made last");
    assert!(server.file(&format!("patterns/{run}.parquet")).exists());
    assert_eq!((count(&server, "runs"), count(&server, "patterns")), ("1".into(), "2".into()));
    let again = server.says(&add(&files, STORE));
    assert_eq!((again.matches("was there: ").count(), again.matches("added: ").count()), (1, 1), "{again}");
    assert_eq!((count(&server, "runs"), count(&server, "patterns")), ("2".into(), "4".into()));
}

#[test]
fn a_damaged_file_is_refused_by_name_and_the_rest_goes_in() {
    let (folder, mut files) = recordings(2);
    let cut = folder.path().join("cut.json");
    fs::write(&cut, &fs::read(&files[0]).expect("a file")[..100]).expect("a file");
    files.insert(0, cut.to_str().expect("a name").to_owned());
    let server = Server::start();
    let [out, error, code] = texts(server.command(&add(&files, STORE)).output().expect("it runs"));
    assert_eq!(code, "Some(2)", "{out}{error}");
    assert!(error.contains(&format!("refused: {}", cut.display())), "{error}");
    assert_eq!(count(&server, "runs"), "2");
}

#[test]
fn what_is_no_store_is_named() {
    let server = Server::start();
    for (store, why) in [
        (STORE, "here is no store of `lineup fleet add`"),
        ("s3://other/store", "s3://other/store"),
        ("ftp://host/store", "a store is a folder, or a URL of s3://"),
        ("s3://", "a store is a folder, or a URL of s3://"),
        ("file://host/store", "a store is a folder, or a URL of s3://"),
    ] {
        let asked = server.command(&["query", "SELECT 1", "--store", store]).output().expect("it runs");
        let [out, error, code] = texts(asked);
        assert_eq!(code, "Some(2)", "{store}: {out}{error}");
        assert!(error.contains(why), "{store}: {error}");
    }
    let (_folder, files) = recordings(1);
    let refused = server.command(&add(&files, "https://host/store")).output().expect("it runs");
    let [_, error, code] = texts(refused);
    assert!(code == "Some(2)" && error.contains("nothing can be added to it"), "{error}");
}

/// Servers send back the request, and users paste any text they have.
#[test]
fn no_message_holds_a_credential() {
    let (_folder, files) = recordings(1);
    let server = Server::start();
    let told = |mut command: std::process::Command| {
        let [out, error, code] = texts(command.output().expect("it runs"));
        assert_eq!(code, "Some(2)", "{out}{error}");
        out + &error
    };
    let mut wrong = server.command(&add(&files, STORE));
    wrong.env("AWS_SECRET_ACCESS_KEY", "the-secret-of-another");
    let said = told(wrong);
    assert!(said.contains(STORE) && said.contains("SignatureDoesNotMatch"), "{said}");
    assert!(!said.contains("the-secret-of-another") && !said.contains(KEY), "{said}");
    let mut unknown = server.command(&add(&files, STORE));
    unknown.env("AWS_ACCESS_KEY_ID", "AKIDOFSOMEBODY").env("AWS_SESSION_TOKEN", "a-token-for-a-while");
    let said = told(unknown);
    assert!(!said.contains("AKIDOFSOMEBODY") && !said.contains("a-token-for-a-while"), "{said}");
    for url in [format!("s3://{KEY}:{SECRET}@{BUCKET}/of"), format!("https://host/store?sig={SECRET}")] {
        let said = told(server.command(&["query", "SELECT 1", "--store", &url]));
        assert!(said.contains("credentials come from the environment"), "{said}");
        assert!(!said.contains(SECRET) && !said.contains(KEY), "{said}");
    }
}

/// A store in a folder needs no server, also by URL.
#[test]
fn a_file_url_is_the_folder() {
    let (folder, files) = recordings(1);
    let path: PathBuf = Path::new(folder.path()).join("a b");
    let server = Server::start();
    let url = format!("file://{}/a%20b", folder.path().display());
    server.says(&add(&files, &url));
    assert!(path.join("lineup-fleet").exists());
    let sql = "SELECT COUNT(*) AS n FROM runs";
    let asked = server.says(&["query", sql, "--store", path.to_str().expect("a name"), "--format", "csv"]);
    assert_eq!(asked, "n\n1\n");
}
