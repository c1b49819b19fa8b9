//! One run of one variant: the request to a runner and the runner's result.

use crate::disturbance::Disturbance;
use crate::metric::Reading;
use crate::output::Output;
use std::fmt;

/// One of the programs compared, numbered from 0 in the order given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Variant(pub usize);

impl Variant {
    /// The unchanged program.
    pub const BEFORE: Variant = Variant(0);
    /// The program with the change.
    pub const AFTER: Variant = Variant(1);
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Variant::BEFORE => f.write_str("first"),
            Variant::AFTER => f.write_str("second"),
            Variant(index) => write!(f, "number {}", index + 1),
        }
    }
}

/// One planned run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// The variant to run.
    pub variant: Variant,
    /// Position among all runs of the comparison, from 0.
    pub number: u64,
    /// The block it belongs to, from 0; `None` for warm-up. All runs of a block are to be placed
    /// alike (same CPUs, same environment size), different blocks may differ.
    pub block: Option<u64>,
}

/// The ending of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// A signal with this number ended it.
    Killed(i32),
    /// Its runner ended it, because its time was over or its client was done.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(status) => write!(f, "exit status {status}"),
            Ending::Killed(signal) => f.write_str(&lineup_model::signal_name(*signal)),
            Ending::Stopped => f.write_str("stopped from outside"),
        }
    }
}

/// The kernel's accounting of a process and the children it waited for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Time on a CPU in user mode.
    pub user_ns: u64,
    /// Time on a CPU in the kernel.
    pub system_ns: u64,
    /// Page faults served without reading a disk.
    pub minor_faults: u64,
    /// Page faults that read a disk.
    pub major_faults: u64,
    /// Switches because the process waited.
    pub voluntary_switches: u64,
    /// Switches because its time was up.
    pub involuntary_switches: u64,
    /// Largest resident set in bytes; `None` when it was not above that of the process that became
    /// the program, whose own peak the kernel passes on.
    pub peak_memory_bytes: Option<u64>,
}

/// The results of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunResult {
    /// Its ending.
    pub ending: Ending,
    /// Its standard input; `None` when that is not known.
    pub input: Option<Output>,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
    /// The standard output of the client that drove it; `None` without a client.
    pub client_stdout: Option<Output>,
    /// From release to exit, by a monotonic clock; where a client drove it, the client's time.
    pub wall_ns: u64,
    /// The unmeasured time of the run: until the server listened, and from its client's end to its own.
    pub around_ns: u64,
    /// The kernel's accounting of it; `None` when not observed.
    pub usage: Option<Usage>,
    /// CPUs it was allowed to run on, sorted; `None` when it was not pinned.
    pub cpus: Option<Vec<u32>>,
    /// Counters, in the order asked for.
    pub counters: Vec<Reading>,
    /// Numbers that the program printed.
    pub printed: Vec<Reading>,
    /// The time of its CPUs that other work had meanwhile; `None` when not observed.
    pub disturbance: Option<Disturbance>,
}

impl RunResult {
    /// The result of a process that exited by itself, placed anywhere, without accounts.
    pub fn finished(status: i32, stdout: &[u8], stderr: &[u8], wall_ns: u64) -> Self {
        Self {
            ending: Ending::Exited(status),
            input: None,
            stdout: Output::of(stdout),
            stderr: Output::of(stderr),
            client_stdout: None,
            wall_ns,
            around_ns: 0,
            usage: None,
            cpus: None,
            counters: Vec::new(),
            printed: Vec::new(),
            disturbance: None,
        }
    }

    /// All that the run took.
    pub fn spent_ns(&self) -> u64 {
        self.wall_ns.saturating_add(self.around_ns)
    }

    /// The two endings in words, where they differ.
    pub fn ending_difference(&self, other: &RunResult) -> Option<String> {
        (self.ending != other.ending).then(|| format!("{} against {}", self.ending, other.ending))
    }

    /// The differences between two runs, as far as they can be seen from outside.
    pub fn difference(&self, other: &RunResult) -> Option<String> {
        if let Some(ending) = self.ending_difference(other) {
            return Some(ending);
        }
        let stdout = self.stdout.difference(&other.stdout).map(|text| format!("standard output: {text}"));
        let stderr = || self.stderr.difference(&other.stderr).map(|text| format!("standard error: {text}"));
        let client = || match (&self.client_stdout, &other.client_stdout) {
            (Some(one), Some(other)) => {
                one.difference(other).map(|text| format!("the client's output: {text}"))
            }
            _ => None,
        };
        stdout.or_else(stderr).or_else(client)
    }
}

/// Runs variants. Implemented by code that may spawn processes; any closure of the same shape will do.
pub trait Runner {
    /// Runs one variant to its end.
    ///
    /// # Errors
    /// When the variant cannot be run at all. A program that exits with a failure is a result.
    fn run(&mut self, slot: &Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>>;
}

impl<F> Runner for F
where
    F: FnMut(&Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>>,
{
    fn run(&mut self, slot: &Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>> {
        self(slot)
    }
}
