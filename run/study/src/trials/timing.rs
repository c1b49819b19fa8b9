//! Runs variants as processes, for comparisons.

pub use crate::process::cpus::allowed_cpus;

use crate::error::{Error, Result};
use crate::perf::counters::{Counters, EventGroup};
use crate::process::child::{Finished, Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::{On, Run};
use crate::trials::disturbed::Watch;
use crate::trials::printed::PrintedMetrics;
use crate::trials::transfers::Transfers;
use lineup_prove::links::link_of;
use lineup_prove::run::{RunResult, Runner, Slot, Usage};
use lineup_stats::random::Seed;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// On which CPUs the runs of a block may be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placing {
    /// On one CPU per block, a different one each time, when the warm-up showed that the program keeps no more than
    /// one CPU busy; anywhere otherwise.
    Auto,
    /// Wherever the kernel puts them.
    Anywhere,
    /// Always on these.
    Cpus(Vec<u32>),
    /// Each of a process's threads on a CPU of its own, in turn.
    ThreadsApart,
    /// All threads on one CPU per block, a different one each time.
    ThreadsTogether,
}

impl Placing {
    /// The CPUs in the order in which threads get them: for threads apart, as far from each other as possible.
    pub fn ordered(&self, cpus: Vec<u32>) -> Vec<u32> {
        match self {
            Placing::ThreadsApart => Transfers::of(&cpus).far_apart(),
            _ => cpus,
        }
    }

    /// A run's place on these CPUs: each block begins with another CPU.
    pub fn on(&self, cpus: &[u32], slot: &Slot) -> On {
        let mut cpus = cpus.to_vec();
        let turn = usize::try_from(slot.block.unwrap_or_default()).unwrap_or_default() % cpus.len().max(1);
        cpus.rotate_left(turn);
        match self {
            Placing::Cpus(given) => On::These(given.clone()),
            Placing::ThreadsApart => On::EachOnItsOwn(cpus),
            Placing::ThreadsTogether => On::These(cpus.into_iter().take(1).collect()),
            Placing::Auto | Placing::Anywhere => On::Anywhere,
        }
    }
}

impl FromStr for Placing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Placing::Auto),
            "none" => Ok(Placing::Anywhere),
            "apart" => Ok(Placing::ThreadsApart),
            "together" => Ok(Placing::ThreadsTogether),
            list => {
                let cpus = list.split(',').map(|cpu| cpu.trim().parse::<u32>());
                let cpus = cpus.collect::<Result<Vec<_>, _>>().map_err(|_| {
                    format!("{list:?} is neither auto, none, apart, together nor a list of CPU numbers such as 0,2")
                })?;
                Ok(Placing::Cpus(cpus))
            }
        }
    }
}

/// Options for running variants and observing the runs.
#[derive(Clone, Debug)]
pub struct RunnerOptions {
    /// The placing of the runs.
    pub placing: Placing,
    /// Counters to attach.
    pub events: Vec<EventGroup>,
    /// The destination of the programs' output.
    pub streams: Streams,
    /// Numbers to pick from the programs' output.
    pub printed: PrintedMetrics,
    /// Several links of each variant's program, of which a block uses one.
    pub links: Option<Links>,
    /// Gives every block an environment of another size, which moves the stack.
    pub vary_environment: Option<Seed>,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        Self {
            placing: Placing::Auto,
            events: Vec::new(),
            streams: Streams::Captured,
            printed: PrintedMetrics::default(),
            links: None,
            vary_environment: None,
        }
    }
}

/// Several links of each variant's program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Links {
    /// The programs of each variant, the same number for each.
    pub programs: Vec<Vec<PathBuf>>,
    /// The seed of the random numbers: the plan's.
    pub seed: Seed,
}

impl Links {
    /// The number of links of each variant.
    pub fn count(&self) -> u64 {
        self.programs.iter().map(|programs| programs.len() as u64).min().unwrap_or(1)
    }

    /// The file that a run starts.
    fn program(&self, slot: &Slot) -> Option<&PathBuf> {
        let programs = self.programs.get(slot.variant.0)?;
        let link = slot.block.map_or(0, |block| link_of(block, programs.len() as u64, self.seed));
        programs.get(usize::try_from(link).ok()?)
    }
}

/// A program that uses no more than this many CPUs on average is taken for single-threaded.
const ONE_CPU: f64 = 1.05;

/// The extra time that even a short single-threaded program may use: starting it is counted a little longer than it is
/// timed.
const STARTING_NS: f64 = 2e6;

/// True when a run needed more than one CPU.
fn kept_several_busy(usage: &Usage, wall_ns: u64) -> bool {
    let busy_ns = usage.user_ns.saturating_add(usage.system_ns) as f64;
    busy_ns > ONE_CPU * wall_ns as f64 + STARTING_NS
}

/// The variable whose length varies the environment, and its greatest length.
const PADDING: (&str, u64) = ("LINEUP_PADDING", 4096);

/// Runs each variant's command, observes it and accounts for it.
pub struct ProcessRunner {
    variants: Vec<Run>,
    options: RunnerOptions,
    allowed: Vec<u32>,
    interrupts: Interrupts,
    /// True once a warm-up run kept more than one CPU busy.
    is_parallel: bool,
    /// Other work beside the runs.
    watch: Watch,
}

impl ProcessRunner {
    /// A runner for these commands, in the order of the variants.
    pub fn new(variants: Vec<Run>, options: RunnerOptions, interrupts: &Interrupts) -> Result<Self> {
        let allowed = allowed_cpus()?;
        if let Placing::Cpus(cpus) = &options.placing
            && let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu))
        {
            let why = format!("it is not among the CPUs this process may use: {allowed:?}");
            return Err(Error::argument(format!("CPU {cpu}"), why));
        }
        let allowed = options.placing.ordered(allowed);
        Ok(Self {
            variants,
            options,
            allowed,
            interrupts: interrupts.clone(),
            is_parallel: false,
            watch: Watch::default(),
        })
    }

    /// True once a warm-up run kept more than one CPU busy.
    pub fn is_parallel(&self) -> bool {
        self.is_parallel
    }

    /// A run's place; the same for all runs of a block.
    fn placed(&self, slot: &Slot) -> On {
        match (&self.options.placing, slot.block) {
            (Placing::Auto, Some(_)) if !self.is_parallel => Placing::ThreadsTogether.on(&self.allowed, slot),
            (placing, _) => placing.on(&self.allowed, slot),
        }
    }

    /// The variant's command, with the padding of its block.
    fn run_of(&self, slot: &Slot) -> Result<Run> {
        let variant = self.variants.get(slot.variant.0);
        let mut run =
            variant.ok_or_else(|| Error::Start(format!("there is no variant {}", slot.variant)))?.clone();
        let link = self.options.links.as_ref().and_then(|links| links.program(slot));
        if let (Some(link), Some(program)) = (link, run.command.first_mut()) {
            *program = link.into();
        }
        if let (Some(seed), Some(block)) = (self.options.vary_environment, slot.block) {
            let (name, longest) = PADDING;
            let length = usize::try_from(seed.part(block).0 % longest).unwrap_or_default();
            run.environment.push((name.into(), "x".repeat(length).into()));
        }
        Ok(run)
    }

    /// Runs one slot.
    pub fn run_slot(&mut self, slot: &Slot) -> Result<RunResult> {
        let on = self.placed(slot);
        let (cpus, used) = match &on {
            On::These(cpus) => (Some(cpus.clone()), cpus.clone()),
            On::EachOnItsOwn(cpus) => (None, cpus.clone()),
            On::Anywhere => (None, self.allowed.clone()),
        };
        let run = Run { on, ..self.run_of(slot)? };
        let begun = self.watch.begin(slot, &used, &self.interrupts);
        let started = Instant::now();
        let waiting = Waiting::start(&run, self.options.streams, &self.interrupts)?;
        let counters = Counters::attach(waiting.pid(), &self.options.events);
        let Finished { ending, wall_ns, usage, stdout, stderr, stdout_file, client, .. } = waiting.run()?;
        let disturbance = begun.and_then(|begun| self.watch.end(begun, &used, &usage));
        if slot.block.is_none() {
            self.is_parallel |= kept_several_busy(&usage, wall_ns);
        }
        let printed = match stdout_file {
            Some(file) => self.options.printed.pick(file)?,
            None => Vec::new(),
        };
        let counters = counters.read();
        let client_stdout = client.map(|client| client.stdout);
        let usage = Some(usage);
        let input = Some(run.input.content());
        let around = started.elapsed().saturating_sub(Duration::from_nanos(wall_ns));
        Ok(RunResult {
            ending,
            input,
            stdout,
            stderr,
            client_stdout,
            wall_ns,
            around_ns: u64::try_from(around.as_nanos()).unwrap_or(u64::MAX),
            usage,
            cpus,
            counters,
            printed,
            disturbance,
        })
    }
}

impl Runner for ProcessRunner {
    fn run(&mut self, slot: &Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.run_slot(slot)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placings_are_read_from_words_and_lists() {
        assert_eq!("auto".parse(), Ok(Placing::Auto));
        assert_eq!("none".parse(), Ok(Placing::Anywhere));
        assert_eq!("apart".parse(), Ok(Placing::ThreadsApart));
        assert_eq!("together".parse(), Ok(Placing::ThreadsTogether));
        assert_eq!("0, 3".parse(), Ok(Placing::Cpus(vec![0, 3])));
        assert!("some".parse::<Placing>().is_err());
    }

    #[test]
    fn a_short_program_is_not_parallel_because_of_what_starting_it_took() {
        let used = |user_ns, system_ns| Usage { user_ns, system_ns, ..Usage::default() };
        assert!(!kept_several_busy(&used(300_000, 400_000), 500_000));
        assert!(!kept_several_busy(&used(900_000_000, 100_000_000), 1_000_000_000));
        assert!(kept_several_busy(&used(8_000_000, 0), 4_000_000));
        assert!(kept_several_busy(&used(1_000_000_000, 100_000_000), 1_000_000_000));
    }
}
