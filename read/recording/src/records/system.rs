//! Whole systems: the facts about a kernel that the recorder needs, and its measurements of each call.

use super::header::Misses;
use lineup_model::access::CallEnd;
use lineup_model::entry_points::{EntryPoints, TaskStruct};
use lineup_model::image::LoadedImage;
use lineup_model::region::RegionId;

/// The facts about its kernel that the recorder needs. Addresses are runtime addresses.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SystemPlan {
    /// Its entry points.
    pub entries: EntryPoints,
    /// The offsets for finding the name of a task, where they are known.
    pub task_struct: Option<TaskStruct>,
    /// The places where the kernel saves its interrupt flag and turns interrupts off only if they are on: from the
    /// instruction that reads the flag to the one that turns them off, which may stand before it.
    pub flag_saves: Vec<(u64, u64)>,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Instructions per two-to-the-power-of-this nanoseconds of the guest's time.
    pub time_shift: u32,
    /// The cost of a miss.
    pub latency: Latency,
    /// The arms: interventions in the caches before calls, chosen at random for each call with equal chance.
    /// [`Arm::Untouched`] alone stands for none.
    pub arms: Vec<Arm>,
    /// The region that is not a function: spans with interrupts off.
    pub interrupts_off: Option<RegionId>,
    /// The second region that is no function: all accesses in the kernel, in windows of the run.
    pub windows: Option<RegionId>,
    /// Steps of the stream written at most; 0 writes none.
    pub stream_steps: u64,
    /// The sections of its modules, each as an image of its own. A section's link address is the one that it has when
    /// the module's file is read by itself.
    pub modules: Vec<LoadedImage>,
}

/// Cycles that the processor model stalls for. An instruction takes one cycle besides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Latency {
    /// For a line that the first level lacks and the second has.
    pub l2_cycles: u32,
    /// For a line from memory, or from another CPU's cache.
    pub memory_cycles: u32,
}

impl Default for Latency {
    /// In the range of a server core of the last ten years: 14 cycles to the second level, 200 to memory.
    fn default() -> Self {
        Latency { l2_cycles: 14, memory_cycles: 200 }
    }
}

/// The intervention in the caches before a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub enum Arm {
    /// Nothing.
    #[default]
    Untouched,
    /// The first-level instruction cache was emptied.
    InvalidatedCode,
    /// The code lines that earlier calls of the region had fetched were fetched.
    PrefetchedCode,
}

impl Arm {
    /// All, in the order of reports.
    pub const ALL: [Arm; 3] = [Arm::Untouched, Arm::InvalidatedCode, Arm::PrefetchedCode];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Untouched => "normal",
            Arm::InvalidatedCode => "invalidated",
            Arm::PrefetchedCode => "prefetched",
        }
    }

    /// The arm of that name.
    pub fn named(name: &str) -> Option<Arm> {
        Arm::ALL.into_iter().find(|arm| arm.name() == name)
    }
}

/// The cost of one call of a region, without nested interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredCall {
    /// The region.
    pub region: RegionId,
    /// The virtual CPU that entered it.
    pub cpu: u16,
    /// Position among the calls of its region, from 0.
    pub sequence: u64,
    /// Instructions that the CPU had executed at the entry: its clock.
    pub begun_at: u64,
    /// The same at the end.
    pub ended_at: u64,
    /// The place where it began: the instruction after the call, or the one that turned interrupts off.
    pub from_pc: u64,
    /// The place where it ended: the same address for a function, else the instruction that turned interrupts on.
    pub to_pc: u64,
    /// The way it ended.
    pub end: CallEnd,
    /// The intervention before it.
    pub arm: Arm,
    /// Its counts, callees included, interrupts excluded.
    pub own: Counts,
    /// Interrupts and exceptions during it.
    pub interrupts: u32,
    /// Instructions of these interrupts and exceptions.
    pub interrupt_instructions: u64,
    /// Times the task was switched away.
    pub switches: u32,
}

impl MeasuredCall {
    /// Modelled cycles: one an instruction, and the stalls.
    pub fn cycles(&self) -> u64 {
        self.own.instructions + self.own.code_stall_cycles + self.own.data_stall_cycles
    }
}

/// Counts of the processor model.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Instructions.
    pub instructions: u64,
    /// Code fetches that missed.
    pub code_misses: Misses,
    /// Loads and stores that missed.
    pub data_misses: Misses,
    /// Accesses to lines that another CPU had written since, or stores to lines that another had read.
    pub shared_misses: u64,
    /// Cycles stalled for code.
    pub code_stall_cycles: u64,
    /// Cycles stalled for data.
    pub data_stall_cycles: u64,
    /// Instructions spent spinning for locks.
    pub spin_instructions: u64,
}

impl Counts {
    pub(crate) const FIELDS: usize = 9;

    pub(crate) fn fields(&self) -> [u64; Self::FIELDS] {
        [
            self.instructions,
            self.code_misses.l1,
            self.code_misses.l2,
            self.data_misses.l1,
            self.data_misses.l2,
            self.shared_misses,
            self.code_stall_cycles,
            self.data_stall_cycles,
            self.spin_instructions,
        ]
    }

    pub(crate) fn from_fields(fields: [u64; Self::FIELDS]) -> Self {
        let [instructions, code1, code2, data1, data2, shared_misses, code, data, spin_instructions] = fields;
        Counts {
            instructions,
            code_misses: Misses { l1: code1, l2: code2 },
            data_misses: Misses { l1: data1, l2: data2 },
            shared_misses,
            code_stall_cycles: code,
            data_stall_cycles: data,
            spin_instructions,
        }
    }

    /// The counts from `earlier` to `self`.
    #[must_use]
    pub fn since(&self, earlier: &Counts) -> Counts {
        let (now, then) = (self.fields(), earlier.fields());
        Counts::from_fields(std::array::from_fn(|field| now[field].wrapping_sub(then[field])))
    }

    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &Counts) -> Counts {
        let (one, two) = (self.fields(), other.fields());
        Counts::from_fields(std::array::from_fn(|field| one[field].wrapping_add(two[field])))
    }
}

/// The agreement of the tracked interrupt flag with the kernel's behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FlagCounts {
    /// Times that the kernel read its flag and its next steps showed the value (64-bit Arm before 6.4).
    pub checks: u64,
    /// The number of these that showed another flag than the tracked one.
    pub failed_checks: u64,
    /// Times that the flag became unknown, until a later event showed it again.
    pub lost: u64,
}

impl FlagCounts {
    /// The sum.
    #[must_use]
    pub fn plus(&self, other: &FlagCounts) -> FlagCounts {
        FlagCounts {
            checks: self.checks + other.checks,
            failed_checks: self.failed_checks + other.failed_checks,
            lost: self.lost + other.lost,
        }
    }
}

/// The totals of the whole system while it was recorded.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SystemSummary {
    /// The cost of misses.
    pub latency: Latency,
    /// Totals, by virtual CPU.
    pub cpus: Vec<Counts>,
    /// Hardware interrupts.
    pub interrupts: u64,
    /// Hardware interrupts while interrupts were off according to the tracked state: 0 when it is exact.
    pub interrupts_while_off: u64,
    /// Further evidence about the tracked state's exactness.
    pub flag: FlagCounts,
    /// Exceptions.
    pub exceptions: u64,
    /// Returns from interrupts whose entry was not seen.
    pub unmatched_returns: u64,
    /// Task switches.
    pub switches: u64,
    /// True when the end marker was reached.
    pub complete: bool,
    /// True when a stream was asked for and written whole.
    pub has_whole_stream: bool,
}
