//! The short forms of the command line: `2,8,16`, `100ms`, `~100ms`, `low:shares=2,tasks=50`.

use super::{Clock, Group, Pattern, ROOT, Span, TaskSet};
use crate::error::Error;
use crate::weights::NICE_0_WEIGHT;

/// A length of time such as `250us`, `1.5ms` or `60s`, in nanoseconds. The unit is one of ns, us, ms, s and m.
///
/// # Errors
/// [`Error::Text`] if it does not have that form or does not fit into 64 bits.
///
/// ```
/// use lineup_sched::scenario::parse_duration_ns;
/// assert_eq!(parse_duration_ns("1.5ms"), Ok(1_500_000));
/// assert!(parse_duration_ns("100").is_err());
/// ```
pub fn parse_duration_ns(text: &str) -> Result<u64, Error> {
    let fault = |reason: &str| Error::text(text, reason);
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_ns: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        _ => return Err(fault("a length of time needs a unit: ns, us, ms, s or m")),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = whole.parse().map_err(|_| fault("not a number, or too large for one"))?;
    let mut total = whole.checked_mul(unit_ns).ok_or_else(|| fault("too long for 64 bits of nanoseconds"))?;
    let mut place_ns = unit_ns;
    for digit in fraction.bytes() {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10).ok_or_else(|| fault("two points"))?;
        place_ns /= 10;
        let part = u64::from(digit) * place_ns;
        total = total.checked_add(part).ok_or_else(|| fault("too long for 64 bits of nanoseconds"))?;
    }
    Ok(total)
}

/// A span: `100ms` (always), `~100ms` (uniform from 0 to 200 ms) or `50ms..150ms` (uniform between).
///
/// # Errors
/// [`Error::Text`] if it has none of the forms.
pub fn parse_span(text: &str) -> Result<Span, Error> {
    if let Some(mean) = text.strip_prefix('~') {
        let mean_ns = parse_duration_ns(mean)?;
        if mean_ns > u64::MAX / 2 {
            return Err(Error::text(text, "twice this is too long for 64 bits of nanoseconds"));
        }
        return Ok(Span::around(mean_ns));
    }
    match text.split_once("..") {
        Some((low, high)) => {
            Ok(Span::Uniform { low: parse_duration_ns(low)?, high: parse_duration_ns(high)? })
        }
        None => parse_duration_ns(text).map(Span::Fixed),
    }
}

/// Domain sizes such as `2,8,16`.
///
/// # Errors
/// [`Error::Text`] if a part is no number.
pub fn parse_domains(text: &str) -> Result<Vec<usize>, Error> {
    text.split(',')
        .map(|part| {
            part.trim()
                .parse()
                .map_err(|_| Error::text(text, format!("`{part}` is no number of CPUs; write 2,8,16")))
        })
        .collect()
}

/// A group such as `low:shares=2,tasks=50,busy=~100ms,sleep=~100ms`. Keys: `shares` (1024 unless given),
/// `tasks` (1), `busy` and `sleep` (both or neither; neither means busy without end), `clock` (`wall`, `cpu` or
/// `timetable`), `nice` (0), `parent`.
///
/// # Errors
/// [`Error::Text`] naming the key that is unknown, given twice, or has a bad value.
pub fn parse_group(text: &str) -> Result<Group, Error> {
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let mut given = Settings::default();
    for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(Error::text(setting, "write KEY=VALUE"));
        };
        given.set(setting, key.trim(), value.trim())?;
    }
    let pattern = match (given.busy, given.sleep) {
        (Some(busy), Some(sleep)) => Pattern::Random { busy, sleep },
        (None, None) => Pattern::Always,
        _ => return Err(Error::text(text, "give both busy and sleep, or neither")),
    };
    let tasks = TaskSet {
        count: given.tasks.unwrap_or(1),
        nice: given.nice.unwrap_or(0),
        pattern,
        clock: given.clock.unwrap_or_default(),
    };
    Ok(Group {
        name: name.trim().to_string(),
        parent: given.parent.unwrap_or_else(|| ROOT.to_string()),
        shares: given.shares.unwrap_or(NICE_0_WEIGHT),
        tasks: if tasks.count == 0 { Vec::new() } else { vec![tasks] },
    })
}

#[derive(Default)]
struct Settings {
    shares: Option<u64>,
    tasks: Option<usize>,
    busy: Option<Span>,
    sleep: Option<Span>,
    clock: Option<Clock>,
    nice: Option<i8>,
    parent: Option<String>,
}

impl Settings {
    fn set(&mut self, setting: &str, key: &str, value: &str) -> Result<(), Error> {
        match key {
            "shares" => once(&mut self.shares, setting, number(setting, value)?),
            "tasks" => once(&mut self.tasks, setting, number(setting, value)?),
            "nice" => once(&mut self.nice, setting, number(setting, value)?),
            "busy" => once(&mut self.busy, setting, parse_span(value)?),
            "sleep" => once(&mut self.sleep, setting, parse_span(value)?),
            "clock" => once(&mut self.clock, setting, parse_clock(value)?),
            "parent" => once(&mut self.parent, setting, value.to_string()),
            _ => Err(Error::text(
                setting,
                "unknown key; there are shares, tasks, busy, sleep, clock, nice and parent",
            )),
        }
    }
}

fn once<T>(slot: &mut Option<T>, setting: &str, value: T) -> Result<(), Error> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::text(setting, "given twice")),
    }
}

fn number<T: std::str::FromStr>(setting: &str, value: &str) -> Result<T, Error> {
    value.parse().map_err(|_| Error::text(setting, "not a whole number in range"))
}

pub(super) fn parse_clock(text: &str) -> Result<Clock, Error> {
    match text {
        "wall" => Ok(Clock::Wall),
        "cpu" => Ok(Clock::Cpu),
        "timetable" => Ok(Clock::Timetable),
        _ => Err(Error::text(text, "a burst is measured by `wall`, `cpu` or `timetable`")),
    }
}
