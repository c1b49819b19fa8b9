//! The results of all tests, and the times that order the next run.

use super::queue::Outcome;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The number of slowest tests to list.
const SLOWEST: usize = 20;

/// Prints the slowest tests, the failed ones, and at the end a line of counts. Returns the number of failed tests.
pub(super) fn print(outcomes: &[Outcome]) -> usize {
    let mut by_time: Vec<&Outcome> = outcomes.iter().collect();
    by_time.sort_by_key(|outcome| std::cmp::Reverse(outcome.took));
    println!("==> the slowest tests");
    for outcome in by_time.iter().take(SLOWEST) {
        let [took, processor] = [outcome.took, outcome.processor_time].map(|time| time.as_secs_f64());
        println!("{took:8.2} s, {processor:8.2} s of processors  {}", outcome.test.name());
    }
    let failed: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    let skipped: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.skipped.is_some()).collect();
    for outcome in &skipped {
        println!("skipped: {}: {}", outcome.test.name(), outcome.skipped.as_deref().unwrap_or_default());
    }
    for outcome in &failed {
        println!("failed: {}", outcome.test.name());
    }
    let passed = outcomes.len() - failed.len() - skipped.len();
    println!("{passed} passed, {} failed, {} skipped", failed.len(), skipped.len());
    failed.len()
}

/// Seconds of processors that each test took by its name, in the last run that had it: other programs change them
/// least.
pub(super) fn kept_times(file: &Path) -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(seconds, name)| Some((name.to_owned(), seconds.parse().ok()?))).collect()
}

/// Keeps the times of these tests, and the older times of others.
pub(super) fn keep_times(outcomes: &[Outcome], file: &Path) -> Result<()> {
    let mut times = kept_times(file);
    times.extend(outcomes.iter().map(|outcome| (outcome.test.name(), outcome.processor_time.as_secs_f64())));
    let mut text = String::new();
    for (name, seconds) in times {
        writeln!(text, "{seconds:.3} {name}")?;
    }
    std::fs::write(file, text).with_context(|| file.display().to_string())
}
