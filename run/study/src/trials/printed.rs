//! Numbers that a measured program prints.

use crate::error::{Doing, Error, Result};
use lineup_prove::metric::{Observed, Reading, Unit};
use regex::{Captures, Regex};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// The part of a program's output that is searched.
const SEARCHED_BYTES: u64 = 64 << 20;

/// The first word of a line by which a program states a metric itself.
const STATED: &str = "lineup-metric";

/// Patterns to look for in a program's output.
#[derive(Clone, Default, Debug)]
pub struct PrintedMetrics {
    patterns: Vec<Regex>,
}

impl PrintedMetrics {
    /// Patterns whose group `value` (or first group) is the number; the groups `name` and `unit` are
    /// optional.
    pub fn new(patterns: &[String]) -> Result<Self> {
        let compile = |text: &String| {
            let refused = |why: &str| Error::argument(format!("--metric {text:?}"), why);
            let pattern = Regex::new(text).map_err(|error| refused(&error.to_string()))?;
            if pattern.captures_len() < 2 {
                let why = "it has no group: put the number in parentheses, as in 'took ([0-9.]+) ms'";
                return Err(refused(why));
            }
            Ok(pattern)
        };
        Ok(Self { patterns: patterns.iter().map(compile).collect::<Result<_>>()? })
    }

    /// The metrics in a program's standard output; the last value of each name counts.
    pub fn pick(&self, output: File) -> Result<Vec<Reading>> {
        let mut found: Vec<Reading> = Vec::new();
        let mut reader = BufReader::new(output.take(SEARCHED_BYTES));
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).doing("reading the program's output")? > 0 {
            for reading in self.in_line(String::from_utf8_lossy(&line).trim_end()) {
                found.retain(|known| known.name != reading.name);
                found.push(reading);
            }
            line.clear();
        }
        Ok(found)
    }

    fn in_line(&self, line: &str) -> Vec<Reading> {
        let matched = self.patterns.iter().enumerate().filter_map(|(index, pattern)| {
            let captures = pattern.captures(line)?;
            reading_of(&captures, index)
        });
        stated(line).into_iter().chain(matched).collect()
    }
}

/// `lineup-metric NAME VALUE [UNIT]`.
fn stated(line: &str) -> Option<Reading> {
    let mut words = line.split_whitespace();
    if words.next() != Some(STATED) {
        return None;
    }
    let (name, value) = (words.next()?, words.next()?);
    let unit: Vec<&str> = words.collect();
    reading(name, value, &unit.join(" "))
}

fn reading_of(captures: &Captures<'_>, index: usize) -> Option<Reading> {
    let value = captures.name("value").or_else(|| captures.get(1))?;
    let numbered = format!("metric-{}", index + 1);
    let name = captures.name("name").map_or(numbered.as_str(), |name| name.as_str());
    let unit = captures.name("unit").map_or("", |unit| unit.as_str());
    reading(name, value.as_str(), unit)
}

fn reading(name: &str, value: &str, unit: &str) -> Option<Reading> {
    let value: f64 = value.replace([',', '_'], "").parse().ok()?;
    value.is_finite().then(|| Reading {
        name: name.into(),
        unit: Unit::Named(unit.into()),
        observed: Observed::Value(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn pick(patterns: &[&str], output: &str) -> Vec<(String, f64, String)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(output.as_bytes()).unwrap();
        file.rewind().unwrap();
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).into()).collect();
        let readings = PrintedMetrics::new(&patterns).unwrap().pick(file).unwrap();
        let plain = |r: Reading| (r.name, r.observed.value().unwrap(), r.unit.symbol().to_owned());
        readings.into_iter().map(plain).collect()
    }

    #[test]
    fn stated_metrics_and_patterns_are_found_and_the_last_value_counts() {
        let output = "lineup-metric rate 5 calls/s\nMade 14528449 calls in 10000000290 ns\n\
                      lineup-metric rate 7.5 calls/s\n";
        assert_eq!(
            pick(&["Made (?<value>[0-9]+) (?<name>calls)"], output),
            [("calls".into(), 14_528_449.0, String::new()), ("rate".into(), 7.5, "calls/s".into())]
        );
        assert_eq!(pick(&["in ([0-9]+) ns"], output)[0].0, "metric-1");
    }

    #[test]
    fn what_is_no_number_is_not_a_metric() {
        assert!(
            pick(&[], "lineup-metric rate fast\nlineup-metric rate\nlineup-metric rate inf x\n").is_empty()
        );
    }

    #[test]
    fn a_pattern_without_a_group_is_refused() {
        let error = PrintedMetrics::new(&["took".into()]).unwrap_err();
        assert!(error.to_string().contains("parentheses"));
        assert!(PrintedMetrics::new(&["(".into()]).is_err());
    }
}
