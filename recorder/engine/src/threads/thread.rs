//! The engine's state of each thread of the program.

use super::thread_memory::{Retired, ThreadMemory};
use crate::engine::{self, Engine, Whole};
use crate::machine::{Abi, Host, Translation};
use crate::start::bursts::Burst;
use crate::system;
use crate::threads::budget::{Spent, Taken};
use crate::threads::owned::Owned;
use crate::threads::slots::Slots;
use crate::whole_program::allocations::Allocations;
use std::sync::atomic::Ordering;

pub(crate) const STACK_BYTES: usize = 1 << 18;

/// Memory of threads whose end is not reported.
static OWNED: Owned<ThreadMemory> = Owned::new();

/// The engine's state of a thread.
pub(crate) struct Thread {
    pub(crate) number: u64,
    /// Its first recorded call is still to come.
    pub(crate) is_new: bool,
    /// The chunk that it fills, and the chunk's address; `None` between calls when chunks are scarce.
    pub(crate) chunk: Option<(usize, u64)>,
    memory: ThreadMemory,
    /// The burst that it is in.
    pub(crate) burst: Option<Burst>,
    /// When a whole program's allocations are noted.
    pub(crate) allocations: Option<Box<Allocations>>,
    /// Under a limit of calls a thread: this thread's recorded calls, by region.
    pub(crate) taken: Vec<Taken>,
    /// The times until which its regions need not be asked for more calls; entries' code reads them, too.
    pub(crate) spent: Option<Box<Spent>>,
}

impl Whole {
    /// The memory of a thread that is gone.
    fn take_retired(&self) -> Option<Retired> {
        let is_gone = |retired: &Retired| !system::is_thread(retired.owner);
        self.retired.with(|all| all.iter().position(is_gone).map(|place| all.swap_remove(place)))
    }
}

impl Engine {
    /// The first meeting with a thread. False when there is no memory for it.
    pub(crate) fn begin_thread(&self, slots: &mut Slots) -> bool {
        let Some(memory) = self.thread_memory() else {
            // Unknown threads use the first stack only under its lock.
            slots.own_stack = 0;
            return false;
        };
        let number = self.shared.control().next_thread.fetch_add(1, Ordering::Relaxed);
        let notes = self.whole.is_some() && self.shared.has_allocators();
        let allocations = notes.then(|| Box::new(Allocations::new()));
        let has_budget = self.shared.control().calls_per_thread.load(Ordering::Relaxed) != 0;
        let spent = if has_budget { Spent::new(&self.shared, number) } else { None };
        if let Some(spent) = &spent {
            slots.own.calls.spent = std::ptr::from_ref(&**spent) as u64;
        }
        let (chunk, burst, taken) = (None, None, Vec::new());
        let thread = Thread { number, is_new: true, chunk, memory, burst, allocations, taken, spent };
        if let (Some(whole), Some((sieve, held)), false) = (&self.whole, memory.sieve, self.logs_all()) {
            whole.sieves.begin(slots, sieve, held);
        }
        slots.owner = system::thread();
        slots.own_stack = (memory.stack + STACK_BYTES) as u64;
        slots.vectors = memory.stack as u64;
        slots.table = memory.table as u64;
        slots.gate = self.gate;
        slots.all = u64::MAX;
        slots.thread = Box::into_raw(Box::new(thread)) as u64;
        // SAFETY: the key is ours; it belongs to the first 32, for which the C library keeps room in every thread, so
        // that nothing is allocated.
        unsafe { libc::pthread_setspecific(self.thread_key, slots.thread as *const libc::c_void) };
        true
    }

    /// The thread continues in a forked process, with its old memory: nothing is counted there yet, and its modelled
    /// caches are empty.
    pub(crate) fn begin_thread_again(&self, slots: &mut Slots) -> Option<()> {
        let thread = self.thread(slots)?;
        let (whole, (sieve, held)) = (self.whole.as_ref()?, thread.memory.sieve?);
        thread.number = self.shared.control().next_thread.fetch_add(1, Ordering::Relaxed);
        let (number, start) = self.shared.take_chunk(thread.number, u32::MAX)?;
        thread.chunk = Some((number, start as u64));
        slots.log = start as u64;
        slots.owner = system::thread();
        whole.sieves.begin(slots, sieve, held);
        Some(())
    }

    /// A stack, a table and where needed a sieve for a thread: new ones, or those of one that is gone.
    fn thread_memory(&self) -> Option<ThreadMemory> {
        let fresh = |sieve| {
            let (stack, table) = (system::memory(STACK_BYTES)?, system::memory(Host::TABLE_BYTES)?);
            Some(ThreadMemory { stack: stack as usize, table: table as usize, sieve })
        };
        let Some(whole) = &self.whole else {
            let memory = OWNED.take().or_else(|| fresh(None))?;
            OWNED.keep(memory);
            return Some(memory);
        };
        if let Some(retired) = whole.take_retired() {
            return Some(retired.memory);
        }
        let Some(sieve) = self.shared.take_sieve() else {
            self.shared.control().passed_over.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        fresh(Some((sieve, whole.sieves.hold()?)))
    }

    /// The thread is about to end in the cache: another may have its memory, once it is gone.
    pub(crate) fn retire(&self, slots: &mut Slots) {
        let Some(whole) = self.whole.as_ref().filter(|_| slots.thread != 0) else { return };
        // SAFETY: made by `begin_thread`, and used by no other code.
        let thread = unsafe { Box::from_raw(slots.thread as *mut Thread) };
        slots.thread = 0;
        let owner = slots.owner;
        let signals = system::block_signals();
        whole.retired.with(|all| all.push(Retired { owner, memory: thread.memory }));
        system::restore_signals(signals);
    }

    pub(crate) fn thread<'a>(&self, slots: &Slots) -> Option<&'a mut Thread> {
        // SAFETY: null or made by `begin_thread`, and used by its thread alone.
        unsafe { (slots.thread as *mut Thread).as_mut() }
    }
}

/// A thread ends: its memory is given back.
pub(crate) unsafe extern "C" fn end_thread(thread: *mut libc::c_void) {
    let (Some(engine), false) = (engine::get().filter(|engine| engine.is_on()), thread.is_null()) else {
        return;
    };
    // SAFETY: this thread's own; it is not in the cache, since the C library calls this natively.
    let slots = unsafe { &mut *Host::slots() };
    if slots.thread != thread as u64 || slots.busy == 1 {
        return;
    }
    slots.busy = 1;
    if engine.whole.is_none() {
        // No other code uses it where calls are recorded.
        slots.own.calls.spent = 0;
    }
    // SAFETY: made by `begin_thread`, and used by no other code.
    let thread = unsafe { Box::from_raw(thread.cast::<Thread>()) };
    if let Some((chunk, start)) = thread.chunk {
        engine.shared.submit_chunk(chunk, slots.log - start);
    }
    slots.thread = 0;
    slots.own_stack = 0;
    system::unmap(thread.memory.stack as *mut u8, STACK_BYTES);
    system::unmap(thread.memory.table as *mut u8, Host::TABLE_BYTES);
    slots.busy = 0;
}
