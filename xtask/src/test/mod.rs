//! `xtask test`: the tests of every program that cargo built, in one queue, a process each.

mod groups;
mod listed;
mod queue;
mod summary;

use anyhow::{Context, Result, bail};
use listed::Test;
use std::path::{Path, PathBuf};

/// The set of tests to run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The tests of `make test`.
    First,
    /// The tests that `make test` leaves to `make test-all`.
    Rest,
    /// Both.
    Every,
    /// The tests that only a target or a script of its own runs.
    ByHand,
}

struct Options {
    part: Part,
    is_listed: bool,
    /// Cargo's output of the build, one JSON document a line.
    built: Vec<PathBuf>,
    /// Words that a test's name must have one of, where there are any.
    words: Vec<String>,
}

const USAGE: &str = "usage: xtask test [--rest|--every|--by-hand] [--list] [--built FILE]... [WORD]...";

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options { part: Part::First, is_listed: false, built: Vec::new(), words: Vec::new() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rest" => options.part = Part::Rest,
            "--every" => options.part = Part::Every,
            "--by-hand" => options.part = Part::ByHand,
            "--list" => options.is_listed = true,
            "--built" => options.built.push(arguments.next().context(USAGE)?.into()),
            other if other.starts_with('-') => bail!("{other} is no option; {USAGE}"),
            _ => options.words.push(argument),
        }
    }
    if options.built.is_empty() {
        options.built.push("target/built.json".into());
    }
    Ok(options)
}

impl Options {
    fn wants(&self, test: &Test) -> bool {
        let is_named = self.words.is_empty() || self.words.iter().any(|word| test.name().contains(word));
        let is_of_part = match (self.part, groups::time_of(test)) {
            (Part::Every, time) => time != groups::Time::ByHand,
            (Part::First, time) => time == groups::Time::First,
            (Part::Rest, time) => time == groups::Time::Rest,
            (Part::ByHand, time) => time == groups::Time::ByHand,
        };
        is_named && is_of_part
    }
}

/// Runs the tests, and prints the numbers of passed, failed and skipped ones in the last line.
pub(crate) fn test(arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = options(arguments)?;
    let root = std::env::current_dir()?;
    let mut tests = Vec::new();
    for file in &options.built {
        tests.extend(listed::tests(&root.join(file))?);
    }
    groups::check(&tests)?;
    tests.retain(|test| options.wants(test));
    if options.is_listed {
        tests.iter().for_each(|test| println!("{}", test.name()));
        return Ok(());
    }
    if tests.is_empty() {
        bail!("no test has such a name: `xtask test --every --list` prints all names");
    }
    let times = root.join("target/test-times");
    order(&mut tests, &times);
    let results = queue::run(tests, &root)?;
    summary::keep_times(&results, &times)?;
    match summary::print(&results) {
        0 => Ok(()),
        // The closing line is the last one.
        _ => std::process::exit(1),
    }
}

/// Those that run one at a time come first, then the longest, by the processor time that each took last; unknown tests
/// come before known ones.
fn order(tests: &mut [Test], times: &Path) {
    let known = summary::kept_times(times);
    let seconds = |test: &Test| known.get(&test.name()).copied().unwrap_or(f64::INFINITY);
    tests.sort_by(|a, b| {
        let chains = [b, a].map(|test| groups::group_of(test).is_a_chain());
        let by_chain = chains[0].cmp(&chains[1]);
        by_chain.then(seconds(b).total_cmp(&seconds(a))).then_with(|| a.name().cmp(&b.name()))
    });
}
