//! Scenario files.

use super::check::field;
use super::text::parse_clock;
use super::{
    Clock, Group, Mechanism, Pattern, ROOT, Scenario, TaskSet, Topology, Tunables, parse_duration_ns,
    parse_span,
};
use crate::error::Error;
use crate::weights::{NICE_0_WEIGHT, Resolution};
use serde::Deserialize;
use std::collections::HashMap;
use toml::Spanned;

/// Reads a scenario file (TOML; `docs/sched.md` lists its keys) and checks the scenario.
///
/// # Errors
/// [`Error::File`] with the line and the reason: a fault of form, an unknown key, a value out of range.
///
/// ```
/// let scenario = lineup_sched::scenario::parse_file(
///     r#"
///     cpus = 4
///     time = "10s"
///     [[group]]
///     name = "low"
///     shares = 2
///     [[group.tasks]]
///     count = 6
///     busy = "~10ms"
///     sleep = "~10ms"
///     "#,
/// )
/// .unwrap();
/// assert_eq!((scenario.tasks(), scenario.time_ns), (6, 10_000_000_000));
/// ```
pub fn parse_file(text: &str) -> Result<Scenario, Error> {
    let file: File = toml::from_str(text).map_err(|error| Error::File {
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        reason: reason(error.message()),
    })?;
    let mut reader = Reader { text, lines: HashMap::new() };
    let scenario = reader.scenario(file)?;
    scenario.check().map_err(|error| reader.placed(error))?;
    Ok(scenario)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    cpus: Spanned<usize>,
    domains: Option<Spanned<Vec<usize>>>,
    smt: Option<bool>,
    resolution: Option<Spanned<u8>>,
    time: Option<Spanned<String>>,
    warmup: Option<Spanned<String>>,
    #[serde(default)]
    without: Vec<Spanned<String>>,
    #[serde(default)]
    with: Vec<Spanned<String>>,
    tunables: Option<FileTunables>,
    #[serde(default)]
    group: Vec<FileGroup>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FileTunables {
    hz: Option<Spanned<u64>>,
    latency: Option<Spanned<String>>,
    min_granularity: Option<Spanned<String>>,
    wakeup_granularity: Option<Spanned<String>>,
    migration_cost: Option<Spanned<String>>,
    shares_window: Option<Spanned<String>>,
    clock_check: Option<Spanned<String>>,
    imbalance_percent: Option<Spanned<Vec<u64>>>,
    smt_core_power: Option<Spanned<u64>>,
    busy_factor: Option<Spanned<u64>>,
    cache_nice_tries: Option<u32>,
    migrate_batch: Option<u32>,
    newly_idle_span_cpus: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGroup {
    name: Spanned<String>,
    parent: Option<Spanned<String>>,
    shares: Option<Spanned<u64>>,
    #[serde(default)]
    tasks: Vec<FileTasks>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTasks {
    count: Spanned<usize>,
    nice: Option<Spanned<i8>>,
    busy: Option<Spanned<String>>,
    sleep: Option<Spanned<String>>,
    clock: Option<Spanned<String>>,
    script: Option<Spanned<Vec<String>>>,
}

/// Remembers the line of each value, to give the place of an error of [`Scenario::check`].
struct Reader<'a> {
    text: &'a str,
    lines: HashMap<String, usize>,
}

impl Reader<'_> {
    fn scenario(&mut self, file: File) -> Result<Scenario, Error> {
        let cpus = self.take("cpus", file.cpus);
        let domains = file.domains.map(|domains| self.take("domains", domains)).unwrap_or_default();
        let mut topology = Topology::new(cpus, &domains);
        topology.smt = file.smt.unwrap_or(topology.smt);
        let mut scenario = Scenario::new(topology);
        if let Some(bits) = file.resolution {
            let line = self.line(&bits);
            scenario.resolution = Resolution::new(self.take("resolution", bits)).ok_or_else(|| {
                let reason = format!("resolution: more than {} extra bits", Resolution::MAX_BITS);
                Error::File { line, reason }
            })?;
        }
        self.duration("time", file.time, &mut scenario.time_ns)?;
        self.duration("warmup", file.warmup, &mut scenario.warmup_ns)?;
        for name in file.without {
            scenario.mechanisms = scenario.mechanisms.without(self.mechanism(&name)?);
        }
        for name in file.with {
            scenario.mechanisms = scenario.mechanisms.with(self.mechanism(&name)?);
        }
        if let Some(tunables) = file.tunables {
            self.tunables(tunables, &mut scenario.tunables)?;
        }
        scenario.groups = file.group.into_iter().map(|group| self.group(group)).collect::<Result<_, _>>()?;
        Ok(scenario)
    }

    fn tunables(&mut self, file: FileTunables, to: &mut Tunables) -> Result<(), Error> {
        self.duration("latency", file.latency, &mut to.latency_ns)?;
        self.duration("min-granularity", file.min_granularity, &mut to.min_granularity_ns)?;
        self.duration("wakeup-granularity", file.wakeup_granularity, &mut to.wakeup_granularity_ns)?;
        self.duration("migration-cost", file.migration_cost, &mut to.migration_cost_ns)?;
        self.duration("shares-window", file.shares_window, &mut to.shares_window_ns)?;
        self.duration("clock-check", file.clock_check, &mut to.clock_check_ns)?;
        self.number("hz", file.hz, &mut to.hz);
        self.number("smt-core-power", file.smt_core_power, &mut to.smt_core_power);
        self.number("busy-factor", file.busy_factor, &mut to.busy_factor);
        if let Some(percent) = file.imbalance_percent {
            to.imbalance_percent = self.take("imbalance-percent", percent);
        }
        to.cache_nice_tries = file.cache_nice_tries.unwrap_or(to.cache_nice_tries);
        to.migrate_batch = file.migrate_batch.unwrap_or(to.migrate_batch);
        to.newly_idle_span_cpus = file.newly_idle_span_cpus.unwrap_or(to.newly_idle_span_cpus);
        Ok(())
    }

    fn group(&mut self, file: FileGroup) -> Result<Group, Error> {
        let mut group = Group {
            name: file.name.get_ref().clone(),
            parent: ROOT.to_string(),
            shares: NICE_0_WEIGHT,
            tasks: Vec::new(),
        };
        self.note(&field(&group, "name"), &file.name);
        self.note("group", &file.name);
        if let Some(parent) = file.parent {
            group.parent = self.take(&field(&group, "parent"), parent);
        }
        if let Some(shares) = file.shares {
            group.shares = self.take(&field(&group, "shares"), shares);
        }
        for tasks in file.tasks {
            let tasks = self.tasks(&group, tasks)?;
            group.tasks.push(tasks);
        }
        Ok(group)
    }

    fn tasks(&mut self, group: &Group, file: FileTasks) -> Result<TaskSet, Error> {
        let line = self.line(&file.count);
        let count = self.take("tasks", file.count);
        let nice = file.nice.map_or(0, |nice| self.take(&field(group, "nice"), nice));
        let clock = match file.clock {
            Some(clock) => self.at_its_line(&clock, parse_clock)?,
            None => Clock::Wall,
        };
        let pattern = match (file.busy, file.sleep, file.script) {
            (Some(busy), Some(sleep), None) => {
                self.note(&field(group, "busy"), &busy);
                self.note(&field(group, "sleep"), &sleep);
                Pattern::Random {
                    busy: self.at_its_line(&busy, parse_span)?,
                    sleep: self.at_its_line(&sleep, parse_span)?,
                }
            }
            (None, None, Some(script)) => self.script(group, &script)?,
            (None, None, None) => Pattern::Always,
            _ => {
                let reason = "give busy and sleep, or a script, or none of them".to_string();
                return Err(Error::File { line, reason });
            }
        };
        Ok(TaskSet { count, nice, pattern, clock })
    }

    fn script(&mut self, group: &Group, script: &Spanned<Vec<String>>) -> Result<Pattern, Error> {
        self.note(&field(group, "script"), script);
        let line = self.line(script);
        let lengths = script.get_ref().iter().map(|length| parse_duration_ns(length));
        let lengths: Vec<u64> = lengths
            .collect::<Result<_, _>>()
            .map_err(|error| Error::File { line, reason: error.to_string() })?;
        if !lengths.len().is_multiple_of(2) {
            let reason = "a script lists busy and sleep lengths in turn; one is missing".to_string();
            return Err(Error::File { line, reason });
        }
        Ok(Pattern::Script(lengths.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
    }

    fn mechanism(&self, name: &Spanned<String>) -> Result<Mechanism, Error> {
        self.at_its_line(name, str::parse)
    }

    fn duration(
        &mut self,
        field: &str,
        value: Option<Spanned<String>>,
        to_ns: &mut u64,
    ) -> Result<(), Error> {
        if let Some(value) = value {
            self.note(field, &value);
            *to_ns = self.at_its_line(&value, parse_duration_ns)?;
        }
        Ok(())
    }

    fn number(&mut self, field: &str, value: Option<Spanned<u64>>, to: &mut u64) {
        if let Some(value) = value {
            *to = self.take(field, value);
        }
    }

    fn at_its_line<T>(
        &self,
        value: &Spanned<String>,
        parse: impl Fn(&str) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let line = self.line(value);
        parse(value.get_ref()).map_err(|error| Error::File { line, reason: error.to_string() })
    }

    fn take<T>(&mut self, field: &str, value: Spanned<T>) -> T {
        self.note(field, &value);
        value.into_inner()
    }

    fn note<T>(&mut self, field: &str, value: &Spanned<T>) {
        let line = self.line(value);
        self.lines.insert(field.to_string(), line);
    }

    fn line<T>(&self, value: &Spanned<T>) -> usize {
        line_of(self.text, value.span().start)
    }

    /// A fault of the scenario, at the line of the value that is at fault.
    fn placed(&self, error: Error) -> Error {
        match error {
            Error::Scenario { field, reason } => {
                let line = self.lines.get(&field).copied().unwrap_or(1);
                Error::File { line, reason: format!("{field}: {reason}") }
            }
            other => other,
        }
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The parser's message, except for numbers beyond 64 bits, which get a clearer one.
fn reason(message: &str) -> String {
    let number = message.strip_prefix("invalid type: integer `").and_then(|rest| rest.split_once('`'));
    match number {
        Some((number, rest)) if rest.starts_with(" as i128") || rest.starts_with(" as u128") => {
            format!("{number} does not fit into 64 bits")
        }
        _ => message.to_string(),
    }
}
