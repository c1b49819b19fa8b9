//! Attaches to a process again and again, as `lineup record --pid` and `lineup time --pid` do, but reads the process's
//! debug information only once. Arguments: the process, the number of turns, the most seconds, and functions.
//!
//! One turn loads the engine into the process, makes its thread and code, changes the process's code, records fifty
//! calls of each function (every fourth turn: times a hundred), takes all changes back, unmaps and unloads the engine.
//! After each turn it checks that nothing of the engine is mapped, and that the process has as many open files as
//! before.

use lineup_model::region::Region;
use lineup_recording::{Mode, Selection};
use lineup_study::interrupt::Interrupts;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject};
use lineup_study::run::Run;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

/// Calls of each function that a turn waits for.
const RECORDED: u64 = 50;
const TIMED: u64 = 100;
/// The longest turn: a turn with fewer recorded calls ends after it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The results of all turns.
#[derive(Default)]
struct Turns {
    done: u64,
    given_up: BTreeMap<String, u64>,
    /// The longest stop of a thread in each turn, in microseconds.
    stops: Vec<u64>,
    /// Each turn's time, in microseconds.
    took: Vec<u64>,
    left_mapped: u64,
    left_open: u64,
    /// The engine's other notes about itself, with their numbers.
    notes: BTreeMap<String, u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [process, count, seconds, functions @ ..] = words.as_slice() else {
        return Err("usage: attachments PID COUNT SECONDS FUNCTION…".into());
    };
    let (process, count): (u32, u64) = (process.parse()?, count.parse()?);
    let seconds: f64 = seconds.parse()?;
    let interrupts = Interrupts::watch()?;
    let folder = interrupts.temporary_folder()?;
    let run = Run { command: recorder::command_of(process)?, max_time: Some(PATIENCE), ..Run::default() };
    let mut request = RecordRequest::new(run, Engine::Native, Mode::TwoPass);
    request.process = Some(process);
    request.regions = functions.iter().map(|name| Region::named(name.as_str())).collect();
    request.selection = Selection::First;
    request.output = folder.path().join("rec");
    let subject = Subject::load(&request.run, None)?;
    let open_files = || fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count);
    let before = open_files();
    let mut turns = Turns::default();
    let begun = Instant::now();
    for number in 1..=count {
        if begun.elapsed().as_secs_f64() > seconds || fs::metadata(format!("/proc/{process}/exe")).is_err() {
            break;
        }
        let turn = Instant::now();
        let made = if number % 4 == 0 {
            request.stop_after = Some(TIMED);
            recorder::time(&request, &subject, &interrupts).map(|times| times.notes)
        } else {
            (request.max_calls, request.stop_after) = (Some(RECORDED), Some(RECORDED));
            recorder::record(&request, &subject, &interrupts).map(|made| made.summary.notes)
        };
        turns.took.push(turn.elapsed().as_micros() as u64);
        interrupts.check()?;
        match made {
            Ok(notes) => turns.take(notes),
            Err(why) => *turns.given_up.entry(why.to_string()).or_default() += 1,
        }
        // A process that has ended has no maps to read, and so nothing mapped.
        let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        turns.left_mapped += u64::from(maps.contains("lineup"));
        // A server's clients come and go.
        turns.left_open += u64::from(open_files() > before + 2);
        if number % 1000 == 0 {
            eprintln!("{number} turns in {:.0} s", begun.elapsed().as_secs_f64());
        }
    }
    turns.print(begun.elapsed());
    let is_clean = turns.left_mapped == 0 && turns.left_open == 0;
    if is_clean { Ok(()) } else { Err("something of the engine was left in the process".into()) }
}

impl Turns {
    fn take(&mut self, notes: Vec<String>) {
        self.done += 1;
        for note in notes {
            let stop = note.strip_prefix("no thread of the process stood still for longer than ");
            match stop.and_then(|rest| rest.split(' ').next()?.parse().ok()) {
                Some(stop) => self.stops.push(stop),
                None => *self.notes.entry(note).or_default() += 1,
            }
        }
    }

    fn print(&mut self, elapsed: Duration) {
        println!("attached {} times in {:.0} s", self.done, elapsed.as_secs_f64());
        self.given_up.iter().for_each(|(why, times)| println!("given up {times} times: {why}"));
        self.notes.iter().for_each(|(note, times)| println!("said {times} times: {note}"));
        println!("longest stop of a thread in µs: {}", quantiles(&mut self.stops));
        println!("turns in µs: {}", quantiles(&mut self.took));
        println!("left mapped {}, left open {}", self.left_mapped, self.left_open);
    }
}

fn quantiles(values: &mut [u64]) -> String {
    values.sort_unstable();
    let at =
        |share: f64| values.get(((values.len() as f64 * share) as usize).min(values.len().saturating_sub(1)));
    [("median", 0.5), ("99 %", 0.99), ("99.9 %", 0.999), ("most", 1.0)]
        .map(|(name, share)| format!("{name} {}", at(share).copied().unwrap_or_default()))
        .join(", ")
}
