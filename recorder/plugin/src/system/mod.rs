//! Whole systems: records calls of kernel functions, and runs the processor model over everything.
//!
//! While the guest boots, only the marker is watched. Its first call starts the recording: the emulator drops its
//! translations once, and from then on every line of code fetched and every access to data has a callback. The marker's
//! second call ends the recording.
//!
//! Distinguished parts of the run:
//!
//! * *Calls* end when a `ret` loads from the slot that their `call` stored to; on Arm, when control reaches the
//!   instruction after the innermost call of that place.
//! * *Interrupts* begin at the kernel's entries and end at the return that reads the frame they began with (on Arm, at
//!   the next return from an interrupt); code that ran in between belongs to no region of the level below.
//! * *Tasks* are identified by their stacks: the one function that changes stacks suspends the open calls of one task
//!   and resumes those of the other.
//! * *Interrupts off* is a shadow of the processor's flag, kept from the instruction stream. It is checked: a
//!   hardware interrupt that comes while the shadow says off is counted as an error of the shadow. On Arm the flag is
//!   written from registers, which no plugin sees: saves and restores are matched, see [`flag`].

mod begin;
mod callbacks;
mod context;
mod cpu;
mod flag;
pub(crate) mod privileged;
mod processor;
mod profile;
mod sites;
mod stream;
mod task;
mod tasks;
mod translate;
mod windows;

use crate::ffi::Api;
use crate::limits::BLOCK_BYTES;
use crate::output::Output;
use crate::recorder::profile_of;
use crate::unwatched::Unwatched;
use context::{Context, Suspended};
use cpu::Cpu;
use lineup_cache::{CacheSpec, Directory};
use lineup_follow::selection::Picker;
use lineup_model::image::LoadedImage;
use lineup_model::machine::{Machine, ReturnAddress};
use lineup_model::region::RegionId;
use lineup_profile::Profile;
use lineup_recording::plan::Plan;
use lineup_recording::stream::MOST_CPUS;
use lineup_recording::{Arm, Encoder, Header, Mode, RegionCounts, Summary, SystemPlan, SystemSummary};
use processor::Processor;
use sites::Sites;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use stream::{Lane, Stream};
use task::Task;
use tasks::Tasks;
use windows::Windows;

/// The time that callbacks of other CPUs get to return at the end.
const LAST_CALLBACK: Duration = Duration::from_millis(50);

/// Virtual CPUs recorded at most.
const MAX_CPUS: usize = MOST_CPUS as usize;

/// The one recorder of a whole system.
static SYSTEM: OnceLock<System> = OnceLock::new();

/// The state of each virtual CPU while the recording runs, where callbacks find it with one load.
static CPUS: [AtomicPtr<Cpu>; MAX_CPUS] = [const { AtomicPtr::new(ptr::null_mut()) }; MAX_CPUS];

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
    fn new(header: &Header) -> Self {
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
    pub(crate) machine: Machine,
    caches: Vec<CacheSpec>,
    /// Runs of instructions are cut at lines of this size.
    line_bytes: u64,
    /// Instructions of programs, where their code has callbacks only for repeated instructions.
    pub(crate) programs: Option<Unwatched>,
    /// Regions by the addresses of their entries.
    entries: HashMap<u64, u16>,
    /// Places where the flag is saved and interrupts are turned off only if they are on: by the reading instruction,
    /// the one that turns them off.
    flag_saves: HashMap<u64, u64>,
    output: Output,
    /// Counts of the whole system, if they are wanted.
    profile: Option<Profile>,
    pub(crate) sites: Mutex<Sites>,
    /// Stacks that are in the recording, by their lowest addresses.
    stacks: Mutex<HashSet<u64>>,
    /// Open calls of tasks that are switched away, by their stacks.
    away: Mutex<HashMap<u64, Task>>,
    /// All tasks that ran.
    pub(crate) tasks: Tasks,
    /// When the whole guest is counted: the context of each CPU, and the contexts of tasks that are switched away.
    contexts: Vec<Mutex<Context>>,
    suspended: Mutex<HashMap<u64, Suspended>>,
    pub(crate) directory: Option<Directory>,
    pub(crate) stream: Option<Stream>,
    pub(crate) regions: Vec<Region>,
    windows: Windows,
    /// Positions in the order of events.
    clock: AtomicU64,
    begun: AtomicBool,
    is_over: AtomicBool,
}

/// The recorder of the system; `None` before it is installed.
pub(crate) fn get() -> Option<&'static System> {
    SYSTEM.get()
}

/// The state of a virtual CPU; `None` before the recording began and after it ended.
///
/// # Safety
/// Only for callbacks of that virtual CPU, and only one reference at a time.
#[inline]
pub(crate) unsafe fn current<'a>(vcpu: u32) -> Option<&'a mut Cpu> {
    let slot = CPUS.get(vcpu as usize)?;
    // SAFETY: null, or a box that is never freed. Callbacks of one virtual CPU run one after the other, so the
    // reference is unique; [`System::finish`] reads the states of all CPUs only after it has set every slot to null,
    // inside a callback. With one host thread for all CPUs, as with counted time, no other callback is under way then.
    // With a thread for each, `finish` first waits far longer than a callback lasts. A callback that the host holds up
    // for that long is unlikely but possible, and would be a race on that CPU's last counts.
    unsafe { slot.load(Ordering::Relaxed).as_mut() }
}

/// Opens the output and watches for the marker.
pub(crate) fn install(api: Api, machine: Machine, plan: Plan) -> Result<(), String> {
    let kernel =
        plan.system.clone().ok_or("the plan says nothing of the kernel; use `lineup record --kernel`")?;
    if kernel.cpus as usize > MAX_CPUS {
        return Err(format!("{} virtual CPUs: at most {MAX_CPUS} are recorded", kernel.cpus));
    }
    let caches =
        plan.header.caches.iter().map(|text| text.parse().map_err(|error| format!("{text}: {error}")));
    let caches = caches.collect::<Result<Vec<CacheSpec>, String>>()?;
    let profile = (plan.header.mode == Mode::WholeProgram).then(|| profile_of(&plan)).transpose()?;
    let output = Output::create(&plan.output, &plan.header)
        .map_err(|error| format!("cannot write the recording {}: {error}", plan.output))?;
    let system = System {
        api,
        machine,
        line_bytes: caches.iter().map(|spec| spec.line().bytes()).min().unwrap_or(64),
        programs: programs_apart(&api, &caches, kernel.cpus),
        entries: entries_of(&plan),
        directory: (kernel.cpus > 1 && !caches.is_empty()).then(Directory::empty),
        stream: (kernel.stream_steps > 0).then(|| Stream::new(kernel.cpus, kernel.stream_steps)),
        flag_saves: kernel.flag_saves.iter().copied().collect(),
        caches,
        output,
        profile,
        sites: Mutex::default(),
        stacks: Mutex::default(),
        away: Mutex::default(),
        tasks: Tasks::new(kernel.task_struct.clone()),
        contexts: (0..kernel.cpus.max(1)).map(|_| Mutex::default()).collect(),
        suspended: Mutex::default(),
        regions: plan.header.regions.iter().map(|_| Region::new(&plan.header)).collect(),
        windows: Windows::default(),
        clock: AtomicU64::new(0),
        begun: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
        kernel,
        plan,
    };
    SYSTEM.set(system).map_err(|_| "the plugin was loaded twice".to_string())?;
    begin::watch_for_marker(&api);
    Ok(())
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

    /// The recording begins: every virtual CPU gets its state.
    pub(crate) fn begin(&self) {
        let mut encoder = Encoder::new();
        encoder.image(&LoadedImage {
            path: self.plan.program.clone(),
            start: self.kernel.entries.kernel_start,
            end: u64::MAX,
            bias: 0,
            build_id: None,
        });
        self.kernel.modules.iter().for_each(|section| encoder.image(section));
        self.write(&mut encoder);
        if self.profile.is_some() {
            return self.begin_profile();
        }
        for (index, slot) in CPUS.iter().enumerate().take(self.kernel.cpus.max(1) as usize) {
            let processor = Processor::new(&self.caches, self.kernel.latency);
            let lane = self.stream.as_ref().map(|_| Lane::new(index as u16, &self.caches));
            let shows_accesses = lane.is_some() || self.directory.is_some() || self.kernel.windows.is_some();
            let cpu = Cpu::new(index as u16, self.api, processor, lane, shows_accesses, self.regions.len());
            slot.store(Box::into_raw(Box::new(cpu)), Ordering::Release);
        }
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
        if encoder.packed_bytes() >= BLOCK_BYTES {
            self.write(encoder);
        }
    }

    /// Writes the content of an encoder. A failure was reported on standard error; the file's content is whole.
    fn write(&self, encoder: &mut Encoder) {
        let _ = self.output.flush(encoder);
    }

    /// Adds a CPU's counts of ended calls to those of all.
    pub(crate) fn add_counts(&self, counts: &[RegionCounts]) {
        for (region, own) in self.regions.iter().zip(counts) {
            lock(&region.ended).add(own);
        }
    }

    /// Ends the recording: closes every call and writes the last words.
    pub(crate) fn finish(&self, is_complete: bool) {
        if !self.begun.load(Ordering::Acquire) || self.is_over.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.profile.is_some() {
            return self.finish_profile();
        }
        let taken: Vec<*mut Cpu> =
            CPUS.iter().map(|slot| slot.swap(ptr::null_mut(), Ordering::AcqRel)).collect();
        if self.kernel.cpus > 1 {
            std::thread::sleep(LAST_CALLBACK);
        }
        let mut summary =
            SystemSummary { complete: is_complete, latency: self.kernel.latency, ..SystemSummary::default() };
        // SAFETY: see `current`: the slots are null now, and the boxes are never freed.
        for cpu in taken.into_iter().filter_map(|cpu| unsafe { cpu.as_mut() }) {
            cpu.finish(self, &mut summary);
            self.write(&mut cpu.encoder);
        }
        summary.has_whole_stream = self.stream.as_ref().is_some_and(|stream| stream.finish(self));
        self.write_summary(&summary);
    }

    fn write_summary(&self, summary: &SystemSummary) {
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

/// Without caches, programs matter by the count of their instructions alone, which the emulator keeps by itself: for
/// each virtual CPU, or where there is but one.
fn programs_apart(api: &Api, caches: &[CacheSpec], cpus: u32) -> Option<Unwatched> {
    let counts = caches.is_empty().then(|| Unwatched::new(api));
    counts.filter(|counts| counts.is_per_cpu() || cpus <= 1)
}

/// Regions by the addresses of their entries.
fn entries_of(plan: &Plan) -> HashMap<u64, u16> {
    let regions = plan.header.regions.iter().map(|(RegionId(index), region)| (index, region));
    regions.flat_map(|(number, region)| region.entries.iter().map(move |entry| (*entry, number))).collect()
}

/// A lock whose holder panicked still guards whole values: nothing here panics between two changes.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
