//! The recorder of this process: the threads' shared state, from installation to the last summary.

use crate::ffi::Api;
use crate::journal::Journal;
use crate::limits::{BLOCK_BYTES, MAX_THREADS};
use crate::output::Output;
use crate::profile::{self, Profiled};
use crate::thread::{Own, Thread};
use crate::unwatched::Unwatched;
use lineup_follow::blocks::{Block, Registry};
use lineup_follow::images::Images;
use lineup_follow::selection::Picker;
use lineup_follow::thread::{Manner, RegionEntry};
use lineup_model::access::{Arguments, CallEnd, ProcessId, StackRange, ThreadId};
use lineup_model::machine::{CodeMachine, ReturnAddress};
use lineup_model::process::{AddressSpace, Origin, Process};
use lineup_profile::Profile;
use lineup_recording::journal::MOST_REGIONS;
use lineup_recording::plan::{BlockRoles, Plan, Task};
use lineup_recording::{CallSizes, Encoder, Mode, RegionCounts, Unfollowed};
use std::collections::{BTreeSet, HashSet};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The longest time that a record waits to be written, except when its thread is idle.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The one recorder.
static RECORDER: OnceLock<Recorder> = OnceLock::new();

/// State of translation.
#[derive(Default)]
pub(crate) struct Translation {
    pub(crate) registry: Registry,
    pub(crate) images: Images,
    /// Entries of signal handlers.
    pub(crate) handlers: HashSet<u64>,
    /// Signals with a handler, or ignored ones.
    pub(crate) handled_signals: BTreeSet<u64>,
    /// Programs that were started by `exec` but are not recorded.
    pub(crate) unfollowed: Vec<Unfollowed>,
    /// Entries found by symbol in files when they were mapped.
    pub(crate) found_entries: Vec<(u16, String, u64)>,
}

/// The shared state of a region for all threads of this process.
pub(crate) struct Region {
    /// Calls entered.
    pub(crate) seen: AtomicU64,
    pub(crate) picker: Picker,
    /// Sums of threads that ended.
    ended: Mutex<CallTotals>,
}

/// Counts and sizes of calls.
pub(crate) type CallTotals = (RegionCounts, CallSizes);

impl Region {
    /// Counts and sizes of calls on threads that ended.
    pub(crate) fn lock(&self) -> MutexGuard<'_, CallTotals> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Everything that threads share.
pub(crate) struct Recorder {
    pub(crate) api: Api,
    pub(crate) plan: Plan,
    /// The plan's path, for programs that this one becomes.
    pub(crate) plan_path: String,
    /// The memory of this program and of the processes that it forks.
    space: AddressSpace,
    pub(crate) machine: CodeMachine,
    pub(crate) is_discovery: bool,
    /// `None` in discovery.
    pub(crate) output: Option<Output>,
    /// Counters of the whole program, in that mode.
    pub(crate) profile: Option<Profile>,
    pub(crate) translation: Mutex<Translation>,
    /// The emulator's offset from a guest address to a host address.
    pub(crate) guest_base: AtomicU64,
    /// Blocks executed that have no callback: a gap when it grows while a call is open. Only in programs with one
    /// thread: with more, every block has a callback.
    pub(crate) unwatched: Unwatched,
    threads: Box<[AtomicPtr<Thread>]>,
    /// Threads that are inside a region now.
    inside: AtomicU64,
    pub(crate) journal: Journal,
    pub(crate) regions: Vec<Region>,
    /// This process, by its number.
    process: AtomicU32,
    /// True once the last words were written.
    is_over: AtomicBool,
    /// Threads that began and that live, in this process.
    pub(crate) threads_begun: AtomicU64,
    threads_alive: AtomicU64,
    pub(crate) lost_threads: AtomicU64,
    pub(crate) forks: AtomicU64,
    pub(crate) gaps: AtomicU64,
    pub(crate) instructions: AtomicU64,
    pub(crate) begun: Instant,
}

/// The recorder; `None` before it is installed.
pub(crate) fn get() -> Option<&'static Recorder> {
    RECORDER.get()
}

/// Sets the recorder, once.
pub(crate) fn set(recorder: Recorder) -> Result<(), String> {
    RECORDER.set(recorder).map_err(|_| "the plugin was loaded twice".to_owned())
}

impl Recorder {
    /// Opens the output of a plan. `parent` is the process that became this one by `exec`.
    pub(crate) fn new(
        api: Api,
        plan: Plan,
        plan_path: &str,
        machine: CodeMachine,
        parent: Option<ProcessId>,
    ) -> Result<Self, String> {
        if plan.header.regions.len() > MOST_REGIONS {
            return Err(format!("more than {MOST_REGIONS} regions; name fewer"));
        }
        let is_discovery = plan.task == Task::Discover;
        let journal = Journal::open(&plan.journal)
            .map_err(|error| format!("cannot map the journal {:?}: {error}", plan.journal))?;
        let output = match is_discovery {
            true => None,
            false => {
                let opened = match parent {
                    None => Output::create(&plan.output, &plan.header),
                    Some(_) => Output::resume(&plan.output),
                };
                Some(opened.map_err(|error| format!("cannot write the recording {}: {error}", plan.output))?)
            }
        };
        let profile = (plan.header.mode == Mode::WholeProgram).then(|| profile_of(&plan)).transpose()?;
        let process = journal.begin_process();
        let recorder = Recorder {
            api,
            plan_path: plan_path.to_owned(),
            space: parent
                .map_or(AddressSpace(0), |_| AddressSpace(u16::try_from(process).unwrap_or(u16::MAX))),
            machine,
            is_discovery,
            output,
            profile,
            translation: Mutex::default(),
            guest_base: AtomicU64::new(0),
            unwatched: Unwatched::new(&api),
            threads: (0..MAX_THREADS).map(|_| AtomicPtr::new(ptr::null_mut())).collect(),
            inside: AtomicU64::new(0),
            process: AtomicU32::new(process),
            journal,
            regions: (0..plan.header.regions.len()).map(|index| region(&plan, index)).collect(),
            is_over: AtomicBool::new(false),
            threads_begun: AtomicU64::new(0),
            threads_alive: AtomicU64::new(0),
            lost_threads: AtomicU64::new(0),
            forks: AtomicU64::new(0),
            gaps: AtomicU64::new(0),
            instructions: AtomicU64::new(0),
            begun: Instant::now(),
            plan,
        };
        recorder.note_process(parent.map_or(Origin::Started, Origin::Executed));
        Ok(recorder)
    }

    /// Writes the identity of this process.
    fn note_process(&self, origin: Origin) {
        let mut encoder = self.encoder();
        encoder.process(&Process {
            id: self.process(),
            origin,
            system_id: std::process::id(),
            began_at: self.journal.tick(),
            program: self.plan.program.clone(),
        });
        self.write(&mut encoder);
    }

    /// Packs addresses of this process.
    pub(crate) fn encoder(&self) -> Encoder {
        Encoder::of(self.space)
    }

    /// True where the return address lies in memory.
    pub(crate) fn uses_slots(&self) -> bool {
        self.machine.description().return_address == ReturnAddress::OnStack
    }

    /// True when every block and every call has a callback.
    pub(crate) fn follows_all(&self) -> bool {
        self.is_discovery || self.plan.follows_all || self.plan.header.mode != Mode::TwoPass
    }

    /// True when the accesses of every block are seen.
    pub(crate) fn watches_all(&self) -> bool {
        !self.is_discovery && self.plan.header.mode != Mode::TwoPass
    }

    /// True when this run counts the sizes of all calls: the first run does it for those after it.
    pub(crate) fn counts_sizes(&self) -> bool {
        self.is_discovery || self.plan.header.mode == Mode::OnePass
    }

    /// The process, by its number.
    pub(crate) fn process(&self) -> ProcessId {
        ProcessId(self.process.load(Ordering::Relaxed))
    }

    pub(crate) fn translation(&self) -> MutexGuard<'_, Translation> {
        self.translation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an entry of a region, and returns an entry if the call is followed, with whether it is recorded.
    pub(crate) fn admit(
        &self,
        number: u16,
        arguments: impl FnOnce() -> Option<Arguments>,
    ) -> Option<RegionEntry> {
        let region = self.regions.get(usize::from(number))?;
        region.seen.fetch_add(1, Ordering::Relaxed);
        let sequence = self.journal.count_call(number)?;
        let kept = !self.is_discovery && region.picker.takes(sequence);
        let entry = || RegionEntry {
            sequence,
            at: self.journal.tick(),
            process: self.process(),
            kept,
            arguments: if kept { arguments() } else { None },
        };
        (kept || self.counts_sizes()).then(entry)
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
        // SAFETY: the pointer is null or comes from `Box::into_raw` in `begin_thread`, and is taken out before the box
        // is dropped. Callbacks of one virtual CPU run on one host thread, one after the other, so the reference is
        // unique.
        unsafe { slot.load(Ordering::Relaxed).as_mut() }
    }

    /// A guest thread begins on a virtual CPU.
    pub(crate) fn begin_thread(&self, vcpu: u32) {
        let Some(slot) = self.threads.get(vcpu as usize) else {
            self.lost_threads.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut thread =
            Thread::new(ThreadId(self.journal.thread()), self.manner(), Own { vcpu, ..Own::default() });
        self.threads_begun.fetch_add(1, Ordering::Relaxed);
        self.threads_alive.fetch_add(1, Ordering::Relaxed);
        thread.own.profile = self.profile.as_ref().map(|profile| Profiled::new(profile.thread(), self.api));
        profile::set_current(vcpu, thread.own.profile.as_deref_mut());
        let old = slot.swap(Box::into_raw(Box::new(thread)), Ordering::AcqRel);
        self.drop_thread(old, CallEnd::ThreadEnded);
    }

    fn manner(&self) -> Manner {
        Manner {
            uses_slots: self.uses_slots(),
            keeps_all_sites: self.follows_all(),
            counts_sizes: self.counts_sizes(),
            regions: self.regions.len(),
            max_accesses: usize::try_from(self.plan.header.max_accesses).unwrap_or(usize::MAX),
            space: self.space,
        }
    }

    /// True when no other thread of this process lives.
    pub(crate) fn is_last_thread(&self) -> bool {
        self.threads_alive.load(Ordering::Relaxed) <= 1
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
        // SAFETY: not null, so it came from `Box::into_raw` and was swapped out here: no other code has it.
        let mut thread = unsafe { Box::from_raw(thread) };
        thread.end_all(how);
        self.note_inside(&mut thread);
        self.flush(&mut thread);
        self.threads_alive.fetch_sub(1, Ordering::Relaxed);
        self.gaps.fetch_add(thread.gaps, Ordering::Relaxed);
        for (region, own) in self.regions.iter().zip(&thread.counts) {
            region.lock().0.add(own);
        }
        for (region, own) in self.regions.iter().zip(&thread.sizes) {
            region.lock().1.add_all(own);
        }
        self.instructions.fetch_add(thread.instructions, Ordering::Relaxed);
        if let Some(profile) = &self.profile {
            let instructions = profile.take(thread.own.profile.map(|profiled| profiled.counts));
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

    /// Writes a thread's packed records.
    pub(crate) fn flush(&self, thread: &mut Thread) {
        if let Some(slot) = &mut thread.own.slot {
            slot.begin_writing();
        }
        self.write(&mut thread.encoder);
        if let Some(slot) = &mut thread.own.slot {
            slot.clear();
        }
        thread.own.in_slot = 0;
        thread.written_at = Instant::now();
    }

    /// Writes the content of an encoder.
    pub(crate) fn write(&self, encoder: &mut Encoder) {
        let Some(output) = &self.output else { return };
        if let Err(error) = output.flush(encoder) {
            self.journal.note_failure(&error);
        }
    }

    /// Puts ended calls where they survive: into the journal at once, and into the recording when there is a block of
    /// them, or when they have waited.
    pub(crate) fn keep(&self, thread: &mut Thread) {
        if !std::mem::take(&mut thread.has_packed_call) {
            return;
        }
        if thread.own.slot.is_none() {
            thread.own.slot = self.journal.slot();
        }
        let packed = thread.encoder.packed_bytes();
        let fits = thread
            .own
            .slot
            .as_mut()
            .is_none_or(|slot| slot.append(&thread.encoder.packed()[thread.own.in_slot..]));
        thread.own.in_slot = packed;
        if !fits || packed >= BLOCK_BYTES || thread.written_at.elapsed() >= LONGEST_WAIT {
            self.flush(thread);
        }
    }

    /// Writes waiting records: the thread may be about to sleep.
    pub(crate) fn keep_before_system_call(&self, thread: &mut Thread) {
        if thread.encoder.packed_bytes() > 0 && thread.written_at.elapsed() >= LONGEST_WAIT {
            self.flush(thread);
        }
    }

    /// Writes the place of a thread's stack, once.
    pub(crate) fn note_stack(&self, thread: &mut Thread, address: u64) {
        thread.has_stack = true;
        let guest_base = self.guest_base.load(Ordering::Relaxed);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        if let Some((start, end)) =
            lineup_follow::maps::mapping_around(&maps, address.wrapping_add(guest_base))
        {
            let (start, end) = (start.wrapping_sub(guest_base), end.wrapping_sub(guest_base));
            thread.encoder.stack(&StackRange { thread: thread.id, start, end });
        }
    }

    /// A process was made.
    pub(crate) fn count_fork(&self) {
        self.forks.fetch_add(1, Ordering::Relaxed);
    }

    /// This process was just forked off; the thread of this virtual CPU is its only one.
    pub(crate) fn become_child(&self, vcpu: u32) {
        let parent = self.process();
        self.process.store(self.journal.begin_process(), Ordering::Relaxed);
        for (other, slot) in (0..).zip(&self.threads) {
            if other != vcpu {
                // Not dropped: the other threads' state belongs to the other process.
                slot.store(ptr::null_mut(), Ordering::Relaxed);
                profile::set_current(other, None);
            }
        }
        for region in &self.regions {
            region.seen.store(0, Ordering::Relaxed);
            *region.lock() = Default::default();
        }
        for count in [&self.lost_threads, &self.forks, &self.gaps, &self.instructions, &self.inside] {
            count.store(0, Ordering::Relaxed);
        }
        self.threads_begun.store(1, Ordering::Relaxed);
        self.threads_alive.store(1, Ordering::Relaxed);
        let mut translation = self.translation();
        translation.unfollowed.clear();
        if self.profile.is_some() {
            // A whole program is profiled as one process.
            self.is_over.store(true, Ordering::Relaxed);
            self.output.iter().for_each(Output::close);
        }
        self.note_process(Origin::Forked(parent));
        // SAFETY: called in the system call of that virtual CPU, whose callback has returned: no other reference lives.
        if let Some(thread) = unsafe { self.thread(vcpu) } {
            // The other process's part of the journal stays unchanged.
            std::mem::forget(thread.own.slot.take());
            thread.forked(ThreadId(self.journal.thread()), Own::default());
            thread.is_counted_inside = false;
        }
    }

    /// The program is about to end: every thread is closed. True the first time, when the last words are to be written.
    pub(crate) fn end_threads(&self) -> bool {
        if self.is_over.swap(true, Ordering::Relaxed) {
            return false;
        }
        (0..MAX_THREADS as u32).for_each(|vcpu| self.end_thread(vcpu, CallEnd::Unfinished));
        true
    }

    /// Marks a block with this run's findings about it.
    pub(crate) fn mark(&self, block: &Block, role: BlockRoles) {
        if self.follows_all() && !self.watches_all() {
            block.mark(role);
        }
    }
}

/// Counts of the whole program. Each thread of the guest leaves a processor to its model where there are enough.
pub(crate) fn profile_of(plan: &Plan) -> Result<Profile, String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let profile = Profile::new(&plan.header.caches, processors / 2);
    let profile = profile.map_err(|(text, error)| format!("{text}: {error}"))?;
    Ok(profile.with_windows(plan.window_bytes))
}

fn region(plan: &Plan, index: usize) -> Region {
    let expected = plan.discovery.calls.get(index).copied().unwrap_or_default();
    Region { seen: AtomicU64::new(0), picker: Picker::new(&plan.header, expected), ended: Mutex::default() }
}
