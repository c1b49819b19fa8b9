//! A cluster of the programs that Ballista publishes, on the loopback interface, and runs of the command against it.

#![allow(dead_code, reason = "each test file uses some of it")]

use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A cluster is up within this time.
const UP: Duration = Duration::from_secs(60);

/// The scheduler gives up on an executor after this silence. The default is three minutes.
const IMPATIENT: [&str; 4] =
    ["--executor-timeout-seconds", "5", "--expire-dead-executor-interval-seconds", "1"];

/// The plan of a question names every file of its tables: of 20,000 recordings that is more than a message may have.
const LARGE_PLANS: [&str; 4] = [
    "--grpc-server-max-decoding-message-size",
    "268435456",
    "--grpc-server-max-encoding-message-size",
    "268435456",
];

/// The environment and options of the cluster's programs.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'s> {
    pub(crate) executors: usize,
    pub(crate) scheduler_folder: &'s Path,
    pub(crate) executor_folder: &'s Path,
    pub(crate) variables: &'s [(&'s str, &'s str)],
}

impl Setting<'_> {
    /// This number of executors, with this machine's view of the files.
    pub(crate) fn of(executors: usize) -> Setting<'static> {
        let root = Path::new("/");
        Setting { executors, scheduler_folder: root, executor_folder: root, variables: &[] }
    }
}

/// The cluster. Its programs end with it.
pub(crate) struct Ballista {
    /// `HOST:PORT` of the scheduler.
    pub(crate) address: String,
    pub(crate) scheduler: Child,
    pub(crate) executors: Vec<Child>,
    folder: TempDir,
}

/// The folder where `make fleet-cluster` puts Ballista's programs, if it exists.
fn programs() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.join("target/ballista/bin");
    let is_there = ["ballista-scheduler", "ballista-executor"].iter().all(|name| folder.join(name).is_file());
    if !is_there {
        let why = format!("Ballista's programs are not in {}: make fleet-cluster", folder.display());
        assert!(std::env::var_os("CI").is_none(), "{why}");
        println!("skipped: {why}");
    }
    is_there.then_some(folder)
}

/// A port without a listener.
pub(crate) fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port().to_string()
}

impl Ballista {
    /// Starts one, or says why it cannot.
    pub(crate) fn start(setting: Setting<'_>) -> Option<Ballista> {
        let (programs, folder) = (programs()?, tempfile::tempdir().expect("a folder"));
        let run = |program: &str, log: &str, cwd: &Path, arguments: &[&str]| {
            let log = File::create(folder.path().join(log)).expect("a log");
            let mut command = Command::new(programs.join(program));
            command
                .args(arguments)
                .args(LARGE_PLANS)
                .current_dir(cwd)
                .envs(setting.variables.iter().copied());
            command.stdout(log.try_clone().expect("the log")).stderr(log).stdin(Stdio::null());
            command.spawn().expect("a program of Ballista")
        };
        let port = free_port();
        let mut arguments = vec!["--bind-host", "127.0.0.1", "--bind-port", &port];
        arguments.extend(IMPATIENT);
        let scheduler = run("ballista-scheduler", "scheduler.log", setting.scheduler_folder, &arguments);
        let executor = |number: usize| {
            let (own, control) = (free_port(), free_port());
            let work = folder.path().join(format!("work-{number}"));
            fs::create_dir(&work).expect("a folder");
            let mut arguments = vec!["--bind-host", "127.0.0.1", "--external-host", "127.0.0.1"];
            arguments.extend([
                "--scheduler-host",
                "127.0.0.1",
                "--scheduler-port",
                &port,
                "--bind-port",
                &own,
            ]);
            arguments.extend(["--bind-grpc-port", &control, "--concurrent-tasks", "1"]);
            arguments.extend(["--scheduler-connect-timeout-seconds", "30"]);
            arguments.extend(["--executor-heartbeat-interval-seconds", "1"]);
            arguments.extend(["--work-dir", work.to_str().expect("a name")]);
            run("ballista-executor", &format!("executor-{number}.log"), setting.executor_folder, &arguments)
        };
        let executors = (0..setting.executors).map(executor).collect();
        let cluster = Ballista { address: format!("127.0.0.1:{port}"), scheduler, executors, folder };
        let is_up = || cluster.shows("executors").matches("\"host\"").count() == setting.executors;
        assert!(within(UP, is_up), "the cluster does not come up:\n{}", cluster.logs());
        Some(cluster)
    }

    /// The scheduler's page of this name; nothing until it runs.
    pub(crate) fn shows(&self, page: &str) -> String {
        let ask = || {
            let mut stream = TcpStream::connect(&self.address)?;
            write!(stream, "GET /api/{page} HTTP/1.1\r\nHost: cluster\r\nConnection: close\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text).map(|_| text)
        };
        ask().unwrap_or_default()
    }

    /// The logs of the cluster's programs.
    pub(crate) fn logs(&self) -> String {
        let mut all = String::new();
        for entry in fs::read_dir(self.folder.path()).expect("the folder").flatten() {
            if let Ok(text) = fs::read_to_string(entry.path()) {
                all += &format!("{}:\n{text}\n", entry.path().display());
            }
        }
        all
    }

    /// The command that asks the cluster about a store.
    pub(crate) fn query(&self, sql: &str, store: &str, more: &[&str]) -> Command {
        let mut command = query(sql, store);
        command.args(["--cluster", &self.address]).args(more);
        command
    }
}

impl Drop for Ballista {
    fn drop(&mut self) {
        for program in self.executors.iter_mut().chain([&mut self.scheduler]) {
            // It may have ended by itself, or the test ended it.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

/// Waits until something becomes true, and gives up after this time.
pub(crate) fn within(time: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while began.elapsed() < time {
        if is_so() {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

/// The command that asks about a store.
pub(crate) fn query(sql: &str, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lineup-fleet"));
    command.args(["query", sql, "--store", store, "--format", "json"]);
    command
}

/// The message of a command that fails, on one line, with its exit code.
pub(crate) fn refusal(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty(), "an answer: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

/// An answer as JSON: names of columns, then rows in an order of their own.
#[derive(Debug)]
pub(crate) struct Rows {
    columns: Value,
    pub(crate) rows: Vec<Vec<Value>>,
}

impl Rows {
    /// The rows that a successful command prints.
    pub(crate) fn of(output: &Output) -> Rows {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let cells = |row: &Value| row.as_array().expect("a row").clone();
        let mut rows: Vec<_> = document["rows"].as_array().expect("rows").iter().map(cells).collect();
        // Few digits of each number, so that rounding does not change the order.
        let key = |cell: &Value| match cell.as_f64() {
            Some(number) => format!("{number:.6e}"),
            None => cell.to_string(),
        };
        rows.sort_by_cached_key(|row| row.iter().map(key).collect::<Vec<_>>());
        Rows { columns: document["columns"].clone(), rows }
    }

    /// The first difference. Numbers differ by more than a part in a thousand million: engines add up in other orders.
    pub(crate) fn differs(&self, other: &Rows) -> Option<String> {
        if self.columns != other.columns || self.rows.len() != other.rows.len() {
            return Some(format!("{} and {} rows of {}", self.rows.len(), other.rows.len(), self.columns));
        }
        let same = |pair: (&Value, &Value)| match (pair.0.as_f64(), pair.1.as_f64()) {
            (Some(one), Some(two)) => (one - two).abs() <= 1e-9 * one.abs().max(two.abs()).max(1e-3),
            _ => pair.0 == pair.1,
        };
        let mut pairs = self.rows.iter().zip(&other.rows);
        let (one, two) = pairs.find(|(one, two)| !one.iter().zip(two.iter()).all(same))?;
        Some(format!("{one:?} and {two:?}"))
    }
}
