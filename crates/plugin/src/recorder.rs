//! The recorder of this process: what threads share, from installation to the last summary.

use crate::blocks::{Block, Registry};
use crate::callbacks;
use crate::ffi::{Api, PluginId};
use crate::images::Images;
use crate::output::Output;
use crate::profile::{self, Profile};
use crate::system;
use crate::thread::{Entry, Thread};
use lineup_model::access::{CallEnd, StackRange, ThreadId};
use lineup_model::machine::{Machine, ReturnAddress};
use lineup_recording::plan::{BlockRoles, Discovery, Plan, Task};
use lineup_recording::{Encoder, Mode, RegionCounts, Summary};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Virtual CPUs, and so threads at one time, that are recorded at most.
pub(crate) const MAX_THREADS: usize = 4096;

/// The one recorder.
static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// What translation keeps.
#[derive(Default)]
pub(crate) struct Translation {
    pub(crate) registry: Registry,
    pub(crate) images: Images,
    /// Entries of signal handlers.
    pub(crate) handlers: HashSet<u64>,
    /// Found by symbol in files as they were mapped.
    pub(crate) found_entries: Vec<(u16, String, u64)>,
}

/// Counts of a region over all threads.
#[derive(Default)]
struct SharedCounts {
    seen: AtomicU64,
    ended: Mutex<RegionCounts>,
}

/// Everything that threads share.
pub(crate) struct Recorder {
    pub(crate) api: Api,
    pub(crate) plan: Plan,
    pub(crate) machine: Machine,
    pub(crate) is_discovery: bool,
    /// `None` in discovery.
    pub(crate) output: Option<Output>,
    /// Counters of the whole program, in that mode.
    pub(crate) profile: Option<Profile>,
    pub(crate) translation: Mutex<Translation>,
    /// What the emulator adds to a guest address.
    pub(crate) guest_base: AtomicU64,
    /// Blocks executed that have no callback: a gap when it grows while a call is open. Exact with one thread; with
    /// more, such blocks have a callback.
    pub(crate) unwatched: Box<AtomicU64>,
    threads: Box<[AtomicPtr<Thread>]>,
    /// Threads that are inside a region now.
    inside: AtomicU64,
    next_thread: AtomicU32,
    lost_threads: AtomicU64,
    forks: AtomicU64,
    clock: AtomicU64,
    instructions: AtomicU64,
    regions: Vec<SharedCounts>,
    process: u32,
    begun: Instant,
}

/// The recorder; `None` before it is installed.
pub(crate) fn get() -> Option<&'static Recorder> {
    RECORDER.get()
}

/// Reads the plan, opens the output and asks for callbacks.
pub(crate) fn install(
    api: Api,
    id: PluginId,
    target: &str,
    versions: RangeInclusive<i32>,
    is_system: bool,
    arguments: &[String],
) -> Result<(), String> {
    if !versions.contains(&1) {
        return Err(format!(
            "the emulator speaks plugin interface {} to {}, not 1; QEMU 6.0 to 8.1 are known to work",
            versions.start(),
            versions.end()
        ));
    }
    let machine =
        Machine::named(target).ok_or_else(|| format!("the emulator's target {target} is not known"))?;
    let path = arguments.iter().find_map(|argument| argument.strip_prefix("plan="));
    let path = path.ok_or("the argument plan=FILE is missing; start the recorder with `lineup record`")?;
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read the plan {path}: {error}"))?;
    let plan = Plan::parse(&text).map_err(|error| error.to_string())?;
    if is_system != plan.system.is_some() {
        let (is, wanted) =
            if is_system { ("a whole system", "a program") } else { ("a program", "a whole system") };
        return Err(format!("the emulator runs {is}, but the plan is for {wanted}"));
    }
    if is_system {
        return system::install(api, id, machine, plan);
    }
    let recorder = Recorder::new(api, plan, machine)?;
    RECORDER.set(recorder).map_err(|_| "the plugin was loaded twice".to_string())?;
    callbacks::register(&api, id);
    Ok(())
}

impl Recorder {
    fn new(api: Api, plan: Plan, machine: Machine) -> Result<Self, String> {
        let is_discovery = plan.task == Task::Discover;
        let output = match is_discovery {
            true => None,
            false => Some(
                Output::create(&plan.output, &plan.header)
                    .map_err(|error| format!("cannot write the recording {}: {error}", plan.output))?,
            ),
        };
        let profile = (plan.header.mode == Mode::WholeProgram)
            .then(|| Profile::new(&plan.header.caches))
            .transpose()?;
        Ok(Recorder {
            api,
            machine,
            is_discovery,
            output,
            profile,
            translation: Mutex::default(),
            guest_base: AtomicU64::new(0),
            unwatched: Box::default(),
            threads: (0..MAX_THREADS).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            inside: AtomicU64::new(0),
            next_thread: AtomicU32::new(0),
            lost_threads: AtomicU64::new(0),
            forks: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            instructions: AtomicU64::new(0),
            regions: plan.header.regions.iter().map(|_| SharedCounts::default()).collect(),
            process: std::process::id(),
            begun: Instant::now(),
            plan,
        })
    }

    /// True where the return address lies in memory.
    pub(crate) fn uses_slots(&self) -> bool {
        self.machine.description().return_address == ReturnAddress::OnStack
    }

    /// True when every block has a callback.
    pub(crate) fn watches_all(&self) -> bool {
        self.is_discovery || self.plan.header.mode != Mode::TwoPass
    }

    /// True when a block without watch needs a callback to notice gaps: with several threads a shared counter would
    /// lose counts and blame one thread's blocks on another.
    pub(crate) fn has_threads(&self) -> bool {
        self.plan.discovery.threads > 1
    }

    pub(crate) fn translation(&self) -> MutexGuard<'_, Translation> {
        self.translation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next position in the order of events.
    pub(crate) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts an entry of a region and admits it unless warm-up or limit forbid.
    pub(crate) fn admit(&self, region: u16) -> Option<Entry> {
        let sequence = self.regions.get(usize::from(region))?.seen.fetch_add(1, Ordering::Relaxed);
        let after_warmup = sequence.checked_sub(self.plan.header.warmup_calls)?;
        if self.plan.header.max_calls.is_some_and(|most| after_warmup >= most) {
            return None;
        }
        Some(Entry { sequence, at: self.tick() })
    }

    /// The state of the thread that runs on a virtual CPU.
    ///
    /// # Safety
    /// Only for callbacks of that virtual CPU, and only one reference at a time.
    #[allow(
        clippy::mut_from_ref,
        reason = "the state is behind a pointer of its own; the caller promises one reference"
    )]
    pub(crate) unsafe fn thread(&self, vcpu: u32) -> Option<&mut Thread> {
        let slot = self.threads.get(vcpu as usize)?;
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `begin_thread`, and is taken out before the box is
        // dropped. Callbacks of one virtual CPU run on one host thread, one after the other, so the reference is unique.
        unsafe { slot.load(Ordering::Relaxed).as_mut() }
    }

    /// A guest thread begins on a virtual CPU.
    pub(crate) fn begin_thread(&self, vcpu: u32) {
        let Some(slot) = self.threads.get(vcpu as usize) else {
            self.lost_threads.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let id = ThreadId(self.next_thread.fetch_add(1, Ordering::Relaxed));
        let regions = self.regions.len();
        let mut thread =
            Thread::new(id, self.uses_slots(), self.watches_all(), regions, self.plan.header.max_accesses);
        thread.profile = self.profile.as_ref().map(|profile| profile.thread(self.api));
        profile::set_current(vcpu, thread.profile.as_deref_mut());
        let old = slot.swap(Box::into_raw(Box::new(thread)), Ordering::AcqRel);
        self.drop_thread(old, CallEnd::Abandoned);
    }

    /// The thread on a virtual CPU has ended.
    pub(crate) fn end_thread(&self, vcpu: u32, how: CallEnd) {
        if let Some(slot) = self.threads.get(vcpu as usize) {
            profile::set_current(vcpu, None);
            self.drop_thread(slot.swap(ptr::null_mut(), Ordering::AcqRel), how);
        }
    }

    fn drop_thread(&self, thread: *mut Thread, how: CallEnd) {
        if thread.is_null() {
            return;
        }
        // SAFETY: not null, so it came from `Box::into_raw` and was swapped out here: nobody else has it.
        let mut thread = unsafe { Box::from_raw(thread) };
        thread.end_all(how);
        self.note_inside(&mut thread);
        self.flush(&mut thread.encoder);
        for (shared, own) in self.regions.iter().zip(&thread.counts) {
            let mut ended = shared.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.recorded += own.recorded;
            ended.abandoned += own.abandoned;
            ended.unfinished += own.unfinished;
            ended.truncated += own.truncated;
            ended.in_handlers += own.in_handlers;
        }
        self.instructions.fetch_add(thread.instructions, Ordering::Relaxed);
        if let Some(profile) = &self.profile {
            let instructions = profile.take(thread.profile);
            self.instructions.fetch_add(instructions, Ordering::Relaxed);
        }
    }

    /// Keeps count of the threads that are inside a region.
    pub(crate) fn note_inside(&self, thread: &mut Thread) {
        let is_inside = thread.tracker.is_inside();
        if is_inside != thread.is_counted_inside {
            thread.is_counted_inside = is_inside;
            match is_inside {
                true => self.inside.fetch_add(1, Ordering::Relaxed),
                false => self.inside.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// True when a block translated now may be about to run inside a region.
    pub(crate) fn is_someone_inside(&self) -> bool {
        self.inside.load(Ordering::Relaxed) > 0
    }

    /// Writes what an encoder holds.
    pub(crate) fn flush(&self, encoder: &mut Encoder) {
        if let Some(output) = &self.output {
            output.flush(encoder);
        }
    }

    /// Writes where a thread's stack is, once.
    pub(crate) fn note_stack(&self, thread: &mut Thread, address: u64) {
        thread.has_stack = true;
        let guest_base = self.guest_base.load(Ordering::Relaxed);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if let Some((start, end)) = crate::maps::mapping_around(&maps, address.wrapping_add(guest_base)) {
            let (start, end) = (start.wrapping_sub(guest_base), end.wrapping_sub(guest_base));
            thread.encoder.stack(&StackRange { thread: thread.id, start, end });
        }
    }

    /// A process was made.
    pub(crate) fn count_fork(&self) {
        self.forks.fetch_add(1, Ordering::Relaxed);
    }

    /// The program is about to end: every thread is closed, and the last words are written.
    pub(crate) fn finish(&self) {
        if std::process::id() != self.process {
            return;
        }
        let threads = u64::from(self.next_thread.load(Ordering::Relaxed));
        for vcpu in 0..MAX_THREADS as u32 {
            self.end_thread(vcpu, CallEnd::Unfinished);
        }
        match self.is_discovery {
            true => self.write_discovery(threads),
            false => self.write_summary(threads),
        }
    }

    fn write_summary(&self, threads: u64) {
        let counts = |shared: &SharedCounts| RegionCounts {
            seen: shared.seen.load(Ordering::Relaxed),
            ..*shared.ended.lock().unwrap_or_else(PoisonError::into_inner)
        };
        let mut encoder = Encoder::new();
        if let Some(profile) = &self.profile {
            profile.write(&mut encoder, |encoder| self.flush(encoder));
        }
        encoder.summary(&Summary {
            regions: self.regions.iter().map(counts).collect(),
            total_instructions: self.watches_all().then(|| self.instructions.load(Ordering::Relaxed)),
            elapsed_ns: u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX),
            threads,
            unrecorded_threads: self.lost_threads.load(Ordering::Relaxed),
            forks: self.forks.load(Ordering::Relaxed),
            notes: self.notes(),
        });
        self.flush(&mut encoder);
    }

    fn write_discovery(&self, threads: u64) {
        let translation = self.translation();
        let mut discovery = Discovery {
            entries: translation.found_entries.clone(),
            calls: self.regions.iter().map(|region| region.seen.load(Ordering::Relaxed)).collect(),
            images: translation.images.loaded().map(|image| image.path.clone()).collect(),
            instructions: self.instructions.load(Ordering::Relaxed),
            threads,
            notes: self.notes(),
            complete: true,
            ..Discovery::default()
        };
        for block in
            translation.registry.blocks().iter().filter(|block| block.found() != BlockRoles::default())
        {
            let start = block.facts.start;
            if let Some(image) = translation.images.image_at(start) {
                let roles = discovery.blocks.entry(image.path.clone()).or_default();
                let role = roles.entry(image.to_link(start)).or_default();
                *role = role.with(block.found());
            }
        }
        if let Err(error) = std::fs::write(&self.plan.output, discovery.to_text()) {
            eprintln!("lineup: cannot write {}: {error}", self.plan.output);
        }
    }

    fn notes(&self) -> Vec<String> {
        let lost = self.lost_threads.load(Ordering::Relaxed);
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(format!("{lost} threads were not recorded: more than {MAX_THREADS} lived at once"));
        }
        notes
    }

    /// Marks what a discovery found out about a block.
    pub(crate) fn mark(&self, block: &Block, role: BlockRoles) {
        if self.is_discovery {
            block.mark(role);
        }
    }
}
