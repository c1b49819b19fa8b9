//! The state that the virtual CPUs of a whole system share.

use super::context::{Context, Suspended};
use super::lock::lock;
use super::sites::Sites;
use super::stream::Stream;
use super::task::Task;
use super::tasks::Tasks;
use super::windows::Windows;
use crate::ffi::Api;
use crate::output::Output;
use crate::unwatched::Unwatched;
use lineup_cache::{CacheSpec, Directory};
use lineup_follow::selection::Picker;
use lineup_model::machine::{CodeMachine, ReturnAddress};
use lineup_model::region::RegionId;
use lineup_profile::Profile;
use lineup_recording::plan::Plan;
use lineup_recording::{Arm, Encoder, Header, RegionCounts, Summary, SystemPlan, SystemSummary};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// The time that callbacks of other CPUs get to return at the end.
pub(super) const LAST_CALLBACK: Duration = Duration::from_millis(50);

/// The one recorder of a whole system.
pub(super) static SYSTEM: OnceLock<System> = OnceLock::new();

/// Counts and knowledge of one region.
pub(crate) struct Region {
    /// Calls entered.
    seen: AtomicU64,
    ended: Mutex<RegionCounts>,
    /// Code granules that its calls fetched, kept when calls may be prefetched.
    granules: Mutex<BTreeSet<u64>>,
    /// Picks the calls whose accesses are kept.
    picker: Picker,
}

impl Region {
    pub(super) fn new(header: &Header) -> Self {
        // The number of its calls is not known before.
        let picker = Picker::new(header, 0);
        Region { seen: AtomicU64::new(0), ended: Mutex::default(), granules: Mutex::default(), picker }
    }
}

/// The shared state of virtual CPUs.
pub(crate) struct System {
    pub(crate) api: Api,
    pub(crate) plan: Plan,
    pub(crate) kernel: SystemPlan,
    pub(crate) machine: CodeMachine,
    pub(super) caches: Vec<CacheSpec>,
    /// Runs of instructions are cut at lines of this size.
    pub(super) line_bytes: u64,
    /// Instructions of programs, where their code has callbacks only for repeated instructions.
    pub(crate) programs: Option<Unwatched>,
    /// Regions by the addresses of their entries.
    pub(super) entries: HashMap<u64, u16>,
    /// Places where the flag is saved and interrupts are turned off only if they are on: by the reading instruction,
    /// the one that turns them off.
    pub(super) flag_saves: HashMap<u64, u64>,
    pub(super) output: Output,
    /// Counts of the whole system, if they are wanted.
    pub(super) profile: Option<Profile>,
    pub(crate) sites: Mutex<Sites>,
    /// Stacks that are in the recording, by their lowest addresses.
    pub(super) stacks: Mutex<HashSet<u64>>,
    /// Open calls of tasks that are switched away, by their stacks.
    pub(super) away: Mutex<HashMap<u64, Task>>,
    /// All tasks that ran.
    pub(crate) tasks: Tasks,
    /// When the whole guest is counted: the context of each CPU, and the contexts of tasks that are switched away.
    pub(super) contexts: Vec<Mutex<Context>>,
    pub(super) suspended: Mutex<HashMap<u64, Suspended>>,
    pub(crate) directory: Option<Directory>,
    pub(crate) stream: Option<Stream>,
    pub(crate) regions: Vec<Region>,
    pub(super) windows: Windows,
    /// Positions in the order of events.
    pub(super) clock: AtomicU64,
    pub(super) begun: AtomicBool,
    pub(super) is_over: AtomicBool,
}

/// The recorder of the system; `None` before it is installed.
pub(crate) fn get() -> Option<&'static System> {
    SYSTEM.get()
}

impl System {
    /// True where the return address of a call lies in memory.
    pub(crate) fn uses_slots(&self) -> bool {
        self.machine.description().return_address == ReturnAddress::OnStack
    }

    /// True in the first call only.
    pub(crate) fn begin_once(&self) -> bool {
        !self.begun.swap(true, Ordering::AcqRel)
    }

    /// The next position in the order of events.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// The next position, without taking it.
    pub(crate) fn position(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Counts an entry; gives its number.
    pub(crate) fn count_entry(&self, region: u16) -> Option<u64> {
        Some(self.regions.get(usize::from(region))?.seen.fetch_add(1, Ordering::Relaxed))
    }

    /// True when the accesses of a region's call of that number are kept: asked once for each call. When calls are
    /// spread over the run, more are kept than are wanted, and the command leaves the others out at the end.
    pub(crate) fn keeps(&self, region: u16, number: u64) -> bool {
        self.regions.get(usize::from(region)).is_some_and(|region| region.picker.takes(number))
    }

    /// True when accesses in a window of the order of events are kept: the same for all CPUs.
    pub(crate) fn keeps_window(&self, region: RegionId, window: u64) -> bool {
        self.windows.keeps(window, || {
            self.count_entry(region.0);
            self.keeps(region.0, window)
        })
    }

    /// The trial before a call: sampled by its number, so that the same guest gets the same arms.
    pub(crate) fn arm(&self, region: u16, number: u64) -> Arm {
        let arms = &self.kernel.arms;
        let mixed = (number ^ u64::from(region) << 48).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32;
        arms.get(mixed as usize % arms.len().max(1)).copied().unwrap_or_default()
    }

    /// True when the code of calls must be known for later ones.
    pub(crate) fn learns_code(&self) -> bool {
        self.kernel.arms.contains(&Arm::PrefetchedCode)
    }

    /// Remembers the code that a call of a region fetched.
    pub(crate) fn learn(&self, region: u16, granules: &BTreeSet<u64>) {
        if let Some(region) = self.regions.get(usize::from(region)) {
            lock(&region.granules).extend(granules);
        }
    }

    /// The code that calls of a region have fetched so far.
    pub(crate) fn known_code(&self, region: u16) -> Vec<u64> {
        let region = self.regions.get(usize::from(region));
        region.map_or_else(Vec::new, |region| lock(&region.granules).iter().copied().collect())
    }

    /// True when a stack is not in the recording yet.
    pub(crate) fn is_new_stack(&self, stack: u64) -> bool {
        lock(&self.stacks).insert(stack)
    }

    /// The physical address of an access; `None` where that is a device's. Only for the current access.
    pub(crate) fn physical(&self, info: u32, address: u64) -> Option<u64> {
        // SAFETY: this is the callback on the access that `info` and `address` are of, as the emulator asks for.
        unsafe {
            let place = (self.api.mem_place)(info, address);
            let is_memory = !place.is_null() && !(self.api.is_device)(place);
            is_memory.then(|| (self.api.physical)(place))
        }
    }

    /// Exchanges the task that runs on a stack for the one that has run.
    pub(crate) fn switch_task(&self, from_stack: u64, from: Task, to_stack: u64) -> Task {
        let mut away = lock(&self.away);
        away.insert(from_stack, from);
        away.remove(&to_stack).unwrap_or_default()
    }

    /// Writes a CPU's encoder once it holds a block.
    pub(crate) fn flush_full(&self, encoder: &mut Encoder) {
        self.output.flush_full(encoder);
    }

    /// Writes the content of an encoder. A failure was reported on standard error; the file's content is whole.
    pub(super) fn write(&self, encoder: &mut Encoder) {
        let _ = self.output.flush(encoder);
    }

    /// Adds a CPU's counts of ended calls to those of all.
    pub(crate) fn add_counts(&self, counts: &[RegionCounts]) {
        for (region, own) in self.regions.iter().zip(counts) {
            lock(&region.ended).add(own);
        }
    }

    pub(super) fn write_summary(&self, summary: &SystemSummary) {
        let mut encoder = Encoder::new();
        let instructions = summary.cpus.iter().map(|cpu| cpu.instructions).sum::<u64>();
        let counts = |region: &Region| RegionCounts {
            seen: region.seen.load(Ordering::Relaxed),
            ..*lock(&region.ended)
        };
        self.tasks.write(&mut encoder);
        encoder.system(summary);
        encoder.summary(&Summary {
            regions: self.regions.iter().map(counts).collect(),
            total_instructions: Some(instructions),
            // The guest's time, so that equal guests give equal files.
            elapsed_ns: instructions << self.kernel.time_shift,
            threads: u64::from(self.kernel.cpus),
            ..Summary::default()
        });
        self.write(&mut encoder);
    }
}
