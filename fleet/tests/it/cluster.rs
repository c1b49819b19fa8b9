//! A cluster of Ballista gives the answers of this machine, or says why it gives none.

use crate::ballista::{Ballista, Rows, Setting, free_port, query, refusal, within};
use crate::planted::{Recorded, Together, labels, new_store, of, words};
use crate::served;
use crate::served::Server;
use lineup_fleet::{tables, views};
use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MEMBERS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
const TURNED: [&str; 9] = ["i", "b", "c", "d", "e", "f", "g", "h", "a"];

/// Bytes that calls of either service use together.
const TOGETHER: [&[Together<'_>]; 2] = [&[(&[0, 8], 4)], &[(&[0], 4), (&[2], 3)]];

/// Two services and three builds, of which every view has something to say.
fn fleet() -> (TempDir, String) {
    let (folder, store) = new_store();
    for number in 1..=6 {
        let (build_id, members) = [("01", MEMBERS), ("02", TURNED), ("03", MEMBERS)][number as usize % 3];
        let recorded = Recorded {
            number,
            build_id,
            region: "serve",
            calls_per_second: Some(100.0),
            data_lines: 2.0 + number as f64,
            layout: words("task", build_id, &members),
            together: TOGETHER[number as usize % 2],
        };
        let (service, host) = [("web", "one"), ("batch", "two")][number as usize % 2];
        store.add(&recorded.input(&labels(service, host, (build_id, number as i64)))).expect("added");
    }
    let lock = "schema = \"lineup.lock/1\"\n[[group]]\ntype = \"task\"\nline_bytes = 64\ndata_model = \"LP64\"\nmembers = [\"a\", \"b\"]\n";
    store.add(&of(lock, &labels("web", "one", ("01", 1)))).expect("added");
    let path = folder.path().to_str().expect("a name").to_owned();
    (folder, path)
}

fn output(mut command: Command) -> Output {
    command.output().expect("the command")
}

/// This machine's answer.
fn here(sql: &str, store: &str) -> Rows {
    Rows::of(&output(query(sql, store)))
}

/// A question of some seconds whose work is for several executors: each of 54 rows becomes a million.
const LONG: &str = "SELECT member, COUNT(*) AS n, SUM(k % 7) AS total
    FROM (SELECT l.member, UNNEST(RANGE(0, 1000000)) AS k FROM layouts l) many GROUP BY member";

/// A cluster that is at work on a question, and the command that waits for it.
fn at_work(cluster: &Ballista, sql: &str, store: &str, more: &[&str]) -> Child {
    let mut command = cluster.query(sql, store, more);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command");
    // The first job reads the list of runs.
    let is_at_work = || cluster.shows("jobs").matches("\"job_id\"").count() > 1;
    assert!(within(Duration::from_secs(60), is_at_work), "{}\n{}", cluster.shows("jobs"), cluster.logs());
    std::thread::sleep(Duration::from_millis(200));
    child
}

/// Ends one of a cluster's programs as a machine ends that loses power.
fn kill(program: &mut Child) {
    program.kill().expect("it runs");
    program.wait().expect("it ended");
}

#[test]
fn every_table_and_view_answers_as_on_this_machine() {
    let Some(cluster) = Ballista::start(Setting::of(2)) else { return };
    let (_folder, store) = fleet();
    for name in tables::ALL.iter().map(|table| table.name).chain(views::ALL.iter().map(|view| view.name)) {
        let sql = format!("SELECT * FROM {name}");
        let (one, other) = (here(&sql, &store), Rows::of(&output(cluster.query(&sql, &store, &[]))));
        assert_eq!(other.differs(&one), None, "{name}");
        let is_empty = ["shared_lines", "verdicts", "findings"].contains(&name);
        assert_eq!(one.rows.is_empty(), is_empty, "{name}");
    }
}

#[test]
fn an_order_is_kept_and_a_report_and_advice_are_given() {
    let Some(cluster) = Ballista::start(Setting::of(2)) else { return };
    let (folder, store) = fleet();
    let sql = "SELECT run, member, offset_bits FROM layouts ORDER BY offset_bits DESC, run LIMIT 20";
    let [one, other] = [query(sql, &store), cluster.query(sql, &store, &[])].map(output);
    assert_eq!(one.stdout, other.stdout, "{}", String::from_utf8_lossy(&other.stderr));
    let page = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup-fleet"));
        command.args(["report", "--store", &store, "--out"]).arg(&out).args(more);
        let done = output(command);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        fs::read_to_string(out).expect("the page").replace(name, "")
    };
    assert_eq!(page("one.html", &[]), page("other.html", &["--cluster", &cluster.address]));
    let advice = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup-fleet"));
        output({
            command.args(["advise", "task", "--json", "--store", &store]).args(more);
            command
        })
    };
    let [one, other] = [advice(&[]), advice(&["--cluster", &cluster.address])];
    assert_eq!(
        (one.status.code(), one.stdout, one.stderr),
        (other.status.code(), other.stdout, other.stderr)
    );
}

#[test]
fn a_store_in_a_bucket_is_asked_with_the_credentials_of_the_clusters_programs() {
    let server = Server::start();
    let variables = server.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let Some(cluster) = Ballista::start(Setting { variables: &variables, ..Setting::of(2) }) else { return };
    let (folder, store) = fleet();
    for entry in walk(Path::new(&store)) {
        let to =
            server.file(entry.strip_prefix(&store).expect("a file of the store").to_str().expect("a name"));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(&entry, to).expect("a copy");
    }
    drop(folder);
    for view in views::ALL {
        let sql = format!("SELECT * FROM {}", view.name);
        let ask = |more: &[&str]| {
            let mut arguments = vec!["query", &sql, "--store", served::STORE, "--format", "json"];
            arguments.extend(more);
            Rows::of(&output(server.command(&arguments)))
        };
        assert_eq!(ask(&["--cluster", &cluster.address]).differs(&ask(&[])), None, "{}", view.name);
    }
}

/// All files under a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn when_one_of_two_executors_is_killed_the_answer_is_right_or_there_is_none() {
    let Some(mut cluster) = Ballista::start(Setting::of(2)) else { return };
    let (_folder, store) = fleet();
    let expected = here(LONG, &store);
    let mut child = at_work(&cluster, LONG, &store, &[]);
    kill(&mut cluster.executors[0]);
    assert!(child.try_wait().expect("the command").is_none(), "the question was answered before");
    let output = child.wait_with_output().expect("the command");
    if output.status.success() {
        println!("the executor that was left gave the answer");
        assert_eq!(Rows::of(&output).differs(&expected), None);
    } else {
        println!("{}", refusal(&output));
        assert!(refusal(&output).contains(&cluster.address), "{}", refusal(&output));
    }
}

#[test]
fn when_all_executors_are_killed_the_question_ends_in_time() {
    let Some(mut cluster) = Ballista::start(Setting::of(2)) else { return };
    let (_folder, store) = fleet();
    let child = at_work(&cluster, LONG, &store, &["--wait", "15"]);
    cluster.executors.iter_mut().for_each(kill);
    let began = Instant::now();
    let said = refusal(&child.wait_with_output().expect("the command"));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(said.starts_with(&format!("lineup-fleet: {}: the cluster ", cluster.address)), "{said}");
}

#[test]
fn a_scheduler_that_is_killed_is_told_of_at_once() {
    let Some(mut cluster) = Ballista::start(Setting::of(2)) else { return };
    let (_folder, store) = fleet();
    let child = at_work(&cluster, LONG, &store, &[]);
    kill(&mut cluster.scheduler);
    let began = Instant::now();
    let said = refusal(&child.wait_with_output().expect("the command"));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    let expected =
        format!("lineup-fleet: {}: the cluster's scheduler cannot be reached any more: ", cluster.address);
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn a_cluster_without_executors_is_waited_for_as_long_as_was_said() {
    let Some(cluster) = Ballista::start(Setting::of(0)) else { return };
    let (_folder, store) = fleet();
    let began = Instant::now();
    let said = refusal(&output(cluster.query("SELECT * FROM places", &store, &["--wait", "3"])));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(said.contains(": the cluster gave no answer within 3 s; "), "{said}");
    assert!(said.contains(&format!("http://{}/api/executors", cluster.address)), "{said}");
}

/// A path that is another folder for each program.
const OWN: &str = "/proc/self/cwd";

#[test]
fn a_scheduler_that_sees_another_folder_gives_an_error_and_no_empty_answer() {
    let (folder, store) = fleet();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let setting =
        Setting { scheduler_folder: elsewhere.path(), executor_folder: folder.path(), ..Setting::of(2) };
    let Some(cluster) = Ballista::start(setting) else { return };
    let mut command = cluster.query("SELECT COUNT(*) AS n FROM places", OWN, &[]);
    command.current_dir(&store);
    let said = refusal(&output(command));
    assert!(said.contains(": the cluster sees 0 of the 7 runs of the store; "), "{said}");
    assert!(said.ends_with(&format!("find the same files at file://{OWN}/ as this machine")), "{said}");
}

#[test]
fn executors_that_do_not_see_the_store_give_an_error_that_names_it() {
    let (folder, store) = fleet();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let setting =
        Setting { scheduler_folder: folder.path(), executor_folder: elsewhere.path(), ..Setting::of(2) };
    let Some(cluster) = Ballista::start(setting) else { return };
    let mut command = cluster.query("SELECT COUNT(*) AS n FROM places", OWN, &[]);
    command.current_dir(&store);
    let said = refusal(&output(command));
    assert!(
        said.contains(&format!("{}: the cluster cannot answer the question: ", cluster.address)),
        "{said}"
    );
    assert!(said.contains(&format!("must all find the store at file://{OWN}/")), "{said}");
}

#[test]
fn runs_that_the_scheduler_alone_lacks_are_counted() {
    let (folder, store) = fleet();
    let less = tempfile::tempdir().expect("a folder");
    for file in walk(folder.path()) {
        let to = less.path().join(file.strip_prefix(&store).expect("a file of the store"));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(&file, to).expect("a copy");
    }
    fs::remove_file(walk(&less.path().join("runs")).pop().expect("a run")).expect("gone");
    let setting = Setting { scheduler_folder: less.path(), executor_folder: less.path(), ..Setting::of(1) };
    let Some(cluster) = Ballista::start(setting) else { return };
    let mut command = cluster.query("SELECT COUNT(*) AS n FROM runs", OWN, &[]);
    command.current_dir(&store);
    let said = refusal(&output(command));
    assert!(said.contains(": the cluster sees 6 of the 7 runs of the store; "), "{said}");
}

#[test]
fn where_no_scheduler_is_its_address_is_told() {
    let (_folder, store) = fleet();
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = query("SELECT * FROM places", &store);
    command.args(["--cluster", &address]);
    let began = Instant::now();
    let said = refusal(&output(command));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let expected =
        format!("lineup-fleet: {address}: the cluster's scheduler cannot be reached before the question: ");
    assert!(said.starts_with(&expected) && said.contains("see that ballista-scheduler runs there"), "{said}");
}

#[test]
fn who_takes_connections_and_says_nothing_is_waited_for_as_long_as_was_said() {
    let (_folder, store) = fleet();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let mut command = query("SELECT * FROM places", &store);
    command.args(["--cluster", &address, "--wait", "2"]);
    let began = Instant::now();
    let said = refusal(&output(command));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(said.contains(&format!("{address}: the cluster gave no answer within 2 s")), "{said}");
}

#[test]
fn what_is_no_address_or_no_store_for_a_cluster_is_refused() {
    let (_folder, store) = fleet();
    for given in
        ["here", "http://127.0.0.1:50050", "127.0.0.1", "127.0.0.1:port", "a@b:1", ":50050", "a:1/b", ""]
    {
        let mut command = query("SELECT 1", &store);
        command.args(["--cluster", given]);
        let said = refusal(&output(command));
        assert!(said.ends_with("HOST:PORT of its scheduler, such as 127.0.0.1:50050"), "{given}: {said}");
    }
}
