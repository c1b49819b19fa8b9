//! HDR histogram tools' forms: the interval log of compressed V2 histograms, and percentile tables.

use crate::histogram::Histogram;
use crate::layout::{COUNTERS, STEPS};
use crate::reader::{NameKind, Trace};
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Steps per octave are 128 in the log and 32 in a trace: two digits keep the buckets of a trace apart.
const DIGITS: u8 = 2;

/// The reason no log could be written.
#[derive(Debug, Error)]
pub enum HdrError {
    /// A count that a histogram of this form cannot hold.
    #[error("{name}: {why}; an HDR histogram counts up to 2^63: write JSON or CSV instead")]
    DoesNotFit {
        /// The name.
        name: String,
        /// The histogram's message.
        why: String,
    },
    /// The log could not be put together.
    #[error("the interval log could not be written: {0}; write JSON or CSV instead")]
    Log(String),
}

/// The whole trace as one interval of an HDR histogram log. Each region and lock is a histogram under its name as the
/// tag, in nanoseconds (a lock's hold); its lock waits and counters follow as `name/lock_wait` and `name/COUNTER`. A
/// value stands in the middle of the bucket that counted it. A character that a tag cannot hold (comma, space, line
/// end) becomes `_`.
///
/// # Errors
/// When a count does not fit.
pub fn interval_log(trace: &Trace) -> Result<Vec<u8>, HdrError> {
    let log = |error: std::io::Error| HdrError::Log(error.to_string());
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let start = SystemTime::UNIX_EPOCH + Duration::from_nanos(trace.start_realtime_ns);
    let events = trace.threads.iter().flat_map(|thread| &thread.events);
    let end_ns = events.map(|event| event.end_ns()).max().unwrap_or(0);
    let length = Duration::from_nanos(end_ns.saturating_sub(trace.start_ns));
    let mut builder = IntervalLogWriterBuilder::new();
    builder.add_comment("[Histogram log format version 1.3]");
    builder.add_comment("durations and lock waits in nanoseconds");
    builder.with_start_time(start).with_base_time(start);
    let mut writer = builder.begin_log_with(&mut bytes, &mut serializer).map_err(log)?;
    for (name, histogram) in histograms(trace) {
        let converted = converted(&name, &histogram)?;
        let written = writer.write_histogram(&converted, Duration::ZERO, length, Tag::new(&name));
        written.map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => log(error),
            IntervalLogWriterError::SerializeError(error) => {
                HdrError::DoesNotFit { name: name.clone(), why: format!("{error:?}") }
            }
        })?;
    }
    drop(writer);
    Ok(bytes)
}

/// The histograms that hold anything but zeros, and the durations, each with its tag.
fn histograms(trace: &Trace) -> Vec<(String, Histogram)> {
    let mut all = Vec::new();
    for name in trace.names.iter().filter(|name| name.kind != NameKind::Mark) {
        let counter = |position: usize| Some((position as u64 + 2, trace.counters.get(position)?.clone()?));
        let counters = (0..COUNTERS).filter_map(counter);
        let others = std::iter::once((1, "lock_wait".to_owned())).chain(counters);
        let others = others.map(|(metric, label)| (metric, format!("{}/{label}", name.text)));
        for (metric, label) in std::iter::once((0, name.text.clone())).chain(others) {
            let histogram = trace.histogram(name.index, metric);
            let is_kept = histogram.buckets().any(|(_, greatest, _)| metric == 0 || greatest > 0);
            if is_kept {
                all.push((tag(&label), histogram));
            }
        }
    }
    all
}

fn tag(label: &str) -> String {
    let is_refused = |c: char| c == ',' || c.is_whitespace() || c.is_control();
    if label.is_empty() { "_".to_owned() } else { label.replace(is_refused, "_") }
}

fn converted(name: &str, histogram: &Histogram) -> Result<hdrhistogram::Histogram<u64>, HdrError> {
    let refused = |why: String| HdrError::DoesNotFit { name: name.to_owned(), why };
    let middle = |least: u64, greatest: u64| least + (greatest - least) / 2;
    let greatest = histogram.buckets().map(|(least, greatest, _)| middle(least, greatest)).max().unwrap_or(0);
    let mut converted = hdrhistogram::Histogram::new_with_bounds(1, greatest.max(2), DIGITS)
        .map_err(|error| refused(error.to_string()))?;
    for (least, greatest, count) in histogram.buckets() {
        converted.record_n(middle(least, greatest), count).map_err(|error| refused(error.to_string()))?;
    }
    Ok(converted)
}

/// The histogram as the percentile table that HDR histogram tools write and plot.
pub fn percentiles(histogram: &Histogram) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    let total = histogram.total();
    let mut seen = 0;
    for (_, greatest, count) in histogram.buckets() {
        seen += count;
        let share = seen as f64 / total as f64;
        let inverse = if seen == total { String::new() } else { format!("{:>14.2}", 1.0 / (1.0 - share)) };
        let _ = writeln!(text, "{:>12.3} {share:>14.12} {seen:>10} {inverse}", greatest as f64);
    }
    let buckets = histogram.buckets().count();
    let _ = writeln!(text, "#[Buckets = {buckets:>12}, SubBuckets     = {STEPS:>12}]");
    text
}
