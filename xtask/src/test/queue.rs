//! Runs tests, as many at a time as there are processors and as their groups allow.

use super::groups::{self, Group};
use super::listed::Test;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// The time limit of a test, in seconds. The longest tests, which boot every machine, take minutes.
const LIMIT_SECONDS: u32 = 900;

/// The exit code of `timeout` when it had to end the program.
const TIMED_OUT: i32 = 124;

pub(super) struct Outcome {
    pub(super) test: Test,
    pub(super) took: Duration,
    /// Processor time of the test and of the programs it ran.
    pub(super) processor_time: Duration,
    /// The reason of a failure.
    pub(super) failure: Option<String>,
    /// The test's own reason to be skipped.
    pub(super) skipped: Option<String>,
}

#[derive(Default)]
struct State {
    /// Tests that have not begun, in reverse order.
    waiting: Vec<Test>,
    running: BTreeMap<Group, usize>,
    done: Vec<Outcome>,
}

impl State {
    /// The next test that may run along with those that run.
    fn next(&mut self, processors: usize) -> Option<Test> {
        let running: usize = self.running.values().sum();
        let waits = self.running.get(&Group::Waits).copied().unwrap_or(0);
        let is_full = running - waits >= processors;
        let is_alone = self.running.get(&Group::Timed).is_some_and(|&count| count > 0);
        let may_begin = |group: Group| match group {
            Group::Timed => running == 0,
            _ if is_alone => false,
            group if is_full && group != Group::Waits => false,
            group => self.running.get(&group).copied().unwrap_or(0) < group.at_a_time(),
        };
        // Tests that need the machine for themselves come last: until then no processor waits for them.
        let not_alone = self.waiting.iter().rposition(|test| {
            let group = groups::group_of(test);
            group != Group::Timed && may_begin(group)
        });
        let is_left = self.waiting.iter().any(|test| groups::group_of(test) != Group::Timed);
        let at = match not_alone {
            Some(at) => at,
            None if is_left => return None,
            None => self.waiting.iter().rposition(|test| may_begin(groups::group_of(test)))?,
        };
        let test = self.waiting.remove(at);
        *self.running.entry(groups::group_of(&test)).or_default() += 1;
        Some(test)
    }
}

/// Runs all tests in their order, and prints those that fail, are skipped or take long.
pub(super) fn run(mut tests: Vec<Test>, root: &Path) -> Result<Vec<Outcome>> {
    let processors = std::thread::available_parallelism()?.get();
    let said = root.join("target/test-output");
    std::fs::create_dir_all(&said).with_context(|| said.display().to_string())?;
    println!("{} tests, {processors} at a time", tests.len());
    tests.reverse();
    let state = Mutex::new(State { waiting: tests, ..State::default() });
    let changed = Condvar::new();
    std::thread::scope(|scope| {
        // One worker more than processors: of the tests that wait, at most one runs.
        for worker in 0..=processors {
            let (state, changed) = (&state, &changed);
            let said = said.join(format!("{worker}.txt"));
            scope.spawn(move || work(state, changed, processors, root, &said));
        }
    });
    Ok(state.into_inner().unwrap_or_else(PoisonError::into_inner).done)
}

fn work(state: &Mutex<State>, changed: &Condvar, processors: usize, root: &Path, said: &Path) {
    let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
    while !held.waiting.is_empty() {
        let Some(test) = held.next(processors) else {
            held = changed.wait(held).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(held);
        let group = groups::group_of(&test);
        let outcome = run_one(test, root, said);
        held = state.lock().unwrap_or_else(PoisonError::into_inner);
        show(&outcome, said);
        if let Some(count) = held.running.get_mut(&group) {
            *count -= 1;
        }
        held.done.push(outcome);
        changed.notify_all();
    }
}

fn run_one(test: Test, root: &Path, said: &Path) -> Outcome {
    let start = Instant::now();
    let ended = start_and_wait(&test, root, said);
    let took = start.elapsed();
    let text = text_of(said);
    let processor_time = ended.as_ref().map_or(Duration::ZERO, |(_, time)| *time);
    let failure = match ended.map(|(status, _)| status) {
        Ok(status) if status.success() => None,
        Ok(status) if status.code() == Some(TIMED_OUT) => {
            Some(format!("has not ended after {LIMIT_SECONDS} s"))
        }
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(format!("{error:#}")),
    };
    let skipped =
        text.lines().find_map(|line| line.strip_prefix("skipped:")).map(|why| why.trim().to_owned());
    let skipped = match &failure {
        None => skipped,
        Some(_) => lacking_emulator(&text).filter(|_| std::env::var_os("CI").is_none()),
    };
    let failure = failure.filter(|_| skipped.is_none());
    Outcome { test, took, processor_time, skipped, failure }
}

/// The reason why a test could not run that needs an emulator with plugins: Debian 13 and current Ubuntu have none.
fn lacking_emulator(said: &str) -> Option<String> {
    const LACK: &str = " was built without plugins";
    let emulator = said.split_once(LACK)?.0.rsplit(char::is_whitespace).next()?;
    emulator.starts_with("qemu-").then(|| format!("{emulator}{LACK}"))
}

/// Runs a test as cargo would. `timeout` makes a process group of the test, and ends all of it.
fn start_and_wait(test: &Test, root: &Path, said: &Path) -> Result<(std::process::ExitStatus, Duration)> {
    let file = File::create(said).with_context(|| said.display().to_string())?;
    let mut command = Command::new("timeout");
    command.args(["--kill-after=30", &LIMIT_SECONDS.to_string()]).arg(&test.program);
    command.args([&test.path, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]);
    command.current_dir(&test.folder).env("CARGO_MANIFEST_DIR", &test.folder);
    command.env("INSTA_WORKSPACE_ROOT", root).env("LD_LIBRARY_PATH", libraries(&test.program)?);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("timeout does not run: apt install coreutils")?;
    let ended = child.wait4()?;
    Ok((ended.status, ended.rusage.utime + ended.rusage.stime))
}

/// The folders in which a test finds the libraries that cargo built.
fn libraries(program: &Path) -> Result<std::ffi::OsString> {
    let beside = program.parent().context("a program is in a folder")?;
    let mut folders: Vec<PathBuf> = vec![beside.to_owned()];
    folders.extend(beside.parent().map(Path::to_owned));
    let before = std::env::var_os("LD_LIBRARY_PATH");
    folders.extend(before.iter().flat_map(|list| std::env::split_paths(list).collect::<Vec<_>>()));
    Ok(std::env::join_paths(folders)?)
}

fn text_of(said: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(said).unwrap_or_default()).into_owned()
}

/// A line for each test; with all of its output, if it failed.
fn show(outcome: &Outcome, said: &Path) {
    let seconds = outcome.took.as_secs_f64();
    let name = outcome.test.name();
    match (&outcome.failure, &outcome.skipped) {
        (Some(why), _) => println!("FAILED  {seconds:7.2} s  {name}: {why}\n{}", text_of(said)),
        (None, Some(why)) => println!("skipped {seconds:7.2} s  {name}: {why}"),
        (None, None) => println!("ok      {seconds:7.2} s  {name}"),
    }
}
