//! Events counted on a child through `perf_event_open`.

use crate::error::{Error, Result};
use lineup_prove::metric::{Absence, Observed, Reading, Unit};
use perf_event::events::Software;
use perf_event::{Builder, Counter, ReadFormat};
use rustix::process::Pid;
use std::io;

/// An event as the user named it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    name: String,
    kind: u32,
    config: u64,
    unit: Unit,
    user: bool,
    kernel: bool,
}

/// Events that share the hardware at the same moments.
pub type EventGroup = Vec<Event>;

/// Types of `perf_event_attr`, from the kernel's user interface.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
const RAW: u32 = 4;

/// Generic events: names, type and number as in the kernel's `perf_event.h`.
const GENERIC: &[(&[&str], u32, u64)] = &[
    (&["cycles", "cpu-cycles"], HARDWARE, 0),
    (&["instructions"], HARDWARE, 1),
    (&["cache-references"], HARDWARE, 2),
    (&["cache-misses"], HARDWARE, 3),
    (&["branches", "branch-instructions"], HARDWARE, 4),
    (&["branch-misses"], HARDWARE, 5),
    (&["bus-cycles"], HARDWARE, 6),
    (&["stalled-cycles-frontend", "idle-cycles-frontend"], HARDWARE, 7),
    (&["stalled-cycles-backend", "idle-cycles-backend"], HARDWARE, 8),
    (&["ref-cycles"], HARDWARE, 9),
    (&["cpu-clock"], SOFTWARE, 0),
    (&["task-clock"], SOFTWARE, 1),
    (&["page-faults", "faults"], SOFTWARE, 2),
    (&["context-switches", "cs"], SOFTWARE, 3),
    (&["cpu-migrations", "migrations"], SOFTWARE, 4),
    (&["minor-faults"], SOFTWARE, 5),
    (&["major-faults"], SOFTWARE, 6),
    (&["alignment-faults"], SOFTWARE, 7),
    (&["emulation-faults"], SOFTWARE, 8),
];

/// Caches as `perf list` names them, with their numbers.
const CACHES: &[(&str, u64)] =
    &[("L1-dcache", 0), ("L1-icache", 1), ("LLC", 2), ("dTLB", 3), ("iTLB", 4), ("branch", 5), ("node", 6)];

/// Cache operations and their results, with the numbers of the operation and of the result.
const CACHE_OPERATIONS: &[(&str, u64, u64)] = &[
    ("loads", 0, 0),
    ("load-misses", 0, 1),
    ("stores", 1, 0),
    ("store-misses", 1, 1),
    ("prefetches", 2, 0),
    ("prefetch-misses", 2, 1),
];

/// The events that `perf stat` counts by default.
pub const DEFAULT_EVENTS: &str = "task-clock,context-switches,cpu-migrations,page-faults,cycles,\
     instructions,stalled-cycles-frontend,stalled-cycles-backend,branches,branch-misses";

/// Reads a list such as `cycles,{instructions:u,branches:u},r01c2`.
pub fn parse(list: &str) -> Result<Vec<EventGroup>> {
    let refused = |why| Error::argument(format!("the event list {list:?}"), why);
    let mut groups = Vec::new();
    let mut open: Option<EventGroup> = None;
    for item in list.split(',').map(str::trim) {
        let (item, opens) = item.strip_prefix('{').map_or((item, false), |rest| (rest, true));
        let (item, closes) = item.strip_suffix('}').map_or((item, false), |rest| (rest, true));
        if (opens && open.is_some()) || (closes && !opens && open.is_none()) {
            return Err(refused("the braces do not match: write {a,b} for a group"));
        }
        let mut group = open.take().unwrap_or_default();
        group.push(event(item)?);
        let continues = !closes && (opens || group.len() > 1);
        if continues { open = Some(group) } else { groups.push(group) }
    }
    match open {
        Some(_) => Err(refused("it opens a group that it does not close")),
        None => Ok(groups),
    }
}

fn event(name: &str) -> Result<Event> {
    let (plain, modifiers) = name.split_once(':').unwrap_or((name, ""));
    if let Some(unknown) = modifiers.chars().find(|letter| !"uk".contains(*letter)) {
        let why = format!("modifier {unknown} is not known; use :u for user mode, :k for the kernel");
        return Err(Error::argument(format!("event {name}"), why));
    }
    let Some((kind, config)) = generic(plain).or_else(|| cache(plain)).or_else(|| raw(plain)) else {
        let why = "it is not known; use a generic name such as cycles, instructions or page-faults, \
                   a cache event such as L1-dcache-load-misses, or a raw one such as r01c2 (see perf list)";
        return Err(Error::argument(format!("event {plain}"), why));
    };
    let is_clock = kind == SOFTWARE && config <= 1;
    Ok(Event {
        name: name.into(),
        kind,
        config,
        unit: if is_clock { Unit::Nanoseconds } else { Unit::Events },
        user: modifiers.is_empty() || modifiers.contains('u'),
        kernel: modifiers.is_empty() || modifiers.contains('k'),
    })
}

fn generic(name: &str) -> Option<(u32, u64)> {
    GENERIC.iter().find(|(names, ..)| names.contains(&name)).map(|(_, kind, config)| (*kind, *config))
}

fn cache(name: &str) -> Option<(u32, u64)> {
    CACHES.iter().find_map(|(cache, number)| {
        let operation = name.strip_prefix(cache)?.strip_prefix('-')?;
        let (_, op, result) = CACHE_OPERATIONS.iter().find(|(word, ..)| *word == operation)?;
        Some((CACHE, number | op << 8 | result << 16))
    })
}

fn raw(name: &str) -> Option<(u32, u64)> {
    let digits = name.strip_prefix('r')?;
    u64::from_str_radix(digits, 16).ok().map(|config| (RAW, config))
}

/// Counters on a child that has not yet become the program.
pub struct Counters {
    opened: Vec<(Event, Result<Counter, Absence>)>,
}

impl Counters {
    /// Attaches counters that start when the child becomes the program and follow its children.
    /// Events the machine or the kernel refuses are kept as refused.
    pub fn attach(child: Pid, groups: &[EventGroup]) -> Self {
        let mut opened: Vec<(Event, Result<Counter, Absence>)> = Vec::new();
        for group in groups {
            let mut leader: Option<usize> = None;
            for event in group {
                let within =
                    leader.and_then(|at| opened.get_mut(at)).and_then(|(_, counter)| counter.as_mut().ok());
                let (event, counter) = open(child, event, within);
                if leader.is_none() && counter.is_ok() {
                    leader = Some(opened.len());
                }
                opened.push((event, counter));
            }
        }
        Self { opened }
    }

    /// The counters' readings.
    pub fn read(self) -> Vec<Reading> {
        let read = |(event, counter): (Event, Result<Counter, Absence>)| Reading {
            name: event.name,
            unit: event.unit,
            observed: match counter {
                Err(absence) => Observed::Absent(absence),
                Ok(mut counter) => observe(&mut counter),
            },
        };
        self.opened.into_iter().map(read).collect()
    }
}

/// Tries to count an event, as in a list for [`parse`].
///
/// # Errors
/// The reason why it cannot be counted here.
pub fn works(event: &str) -> Result<(), Absence> {
    let groups = parse(event).map_err(|_| Absence::NotSupported)?;
    let ours = rustix::process::getpid();
    groups.iter().flatten().try_for_each(|event| open(ours, event, None).1.map(drop))
}

/// Opens one event; when the kernel may not be watched, only for user mode, and the event's name then says so.
fn open(child: Pid, event: &Event, leader: Option<&mut Counter>) -> (Event, Result<Counter, Absence>) {
    let mut event = event.clone();
    let mut attempt = build(child, &event, leader);
    let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    if attempt.as_ref().is_err_and(is_denied) && event.user && event.kernel {
        event.kernel = false;
        event.name.push_str(":u");
        attempt = build(child, &event, None);
    }
    let counter = attempt
        .map_err(|error| if is_denied(&error) { Absence::NotPermitted } else { Absence::NotSupported });
    (event, counter)
}

fn build(child: Pid, event: &Event, leader: Option<&mut Counter>) -> io::Result<Counter> {
    let mut builder = Builder::new(Software::DUMMY);
    let attributes = builder.attrs_mut();
    attributes.type_ = event.kind;
    attributes.config = event.config;
    builder
        .observe_pid(child.as_raw_nonzero().get())
        .any_cpu()
        .inherit(true)
        .exclude_user(!event.user)
        .exclude_kernel(!event.kernel)
        .exclude_hv(!event.kernel)
        .read_format(ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING);
    match leader {
        // A member counts whenever its leader does.
        Some(leader) => builder.enabled(true).build_with_group(leader),
        None => builder.enable_on_exec(true).build(),
    }
}

fn observe(counter: &mut Counter) -> Observed {
    let Ok(data) = counter.read_full() else { return Observed::Absent(Absence::NotCounted) };
    let nanoseconds = |time: Option<std::time::Duration>| time.unwrap_or_default().as_nanos() as f64;
    let (enabled, running) = (nanoseconds(data.time_enabled()), nanoseconds(data.time_running()));
    if running <= 0.0 {
        return Observed::Absent(Absence::NotCounted);
    }
    let count = data.count() as f64;
    if running < enabled {
        Observed::Scaled { value: count * enabled / running, share: running / enabled }
    } else {
        Observed::Value(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(list: &str) -> Vec<Vec<(u32, u64)>> {
        let groups = parse(list).unwrap();
        groups.iter().map(|group| group.iter().map(|e| (e.kind, e.config)).collect()).collect()
    }

    #[test]
    fn names_groups_and_raw_events() {
        assert_eq!(
            codes("cycles,{instructions:u,branches:u},r1c2"),
            [vec![(0, 0)], vec![(0, 1), (0, 4)], vec![(4, 0x1c2)]]
        );
        assert_eq!(codes("{cycles}"), [vec![(0, 0)]]);
        assert_eq!(codes("L1-dcache-load-misses,dTLB-loads"), [vec![(3, 0x1_0000)], vec![(3, 3)]]);
    }

    #[test]
    fn modifiers_split_user_and_kernel() {
        let both = event("cycles").unwrap();
        assert!(both.user && both.kernel);
        let user = event("cycles:u").unwrap();
        assert!(user.user && !user.kernel);
    }

    #[test]
    fn bad_lists_are_refused_with_what_to_write() {
        for list in ["cycels", "cycles:x", "{cycles,instructions", "cycles}", "{a,{b}}", "", "rxyz"] {
            assert!(parse(list).is_err(), "{list}");
        }
    }

    #[test]
    fn every_default_event_is_known() {
        assert_eq!(parse(DEFAULT_EVENTS).unwrap().len(), 10);
    }
}
