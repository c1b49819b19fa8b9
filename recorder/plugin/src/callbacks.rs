//! The emulator's callbacks while the guest runs.

use crate::ask::{OnEvent, OnSyscall, OnVcpu};
use crate::follow::Exec;
use crate::guest::read_value;
use crate::isa::{self, Flow};
use crate::limits::BLOCK_BYTES;
use crate::process;
use crate::profile::{self, Profiled};
use crate::recorder::{self, Recorder};
use crate::registers::AtEntry;
use crate::syscalls::{
    ARCH_SET_FS, AT_FDCWD, CLONE_SETTLS, CLONE_VFORK, CLONE_VM, Call, MAP_FIXED, ThreadBaseArgument,
};
use crate::thread::{Own, Thread};
use lineup_follow::blocks::{Block, Site, Special};
use lineup_follow::tracker::CallSite;
use lineup_model::access::{AccessKind, CallEnd, MemoryEvent, MemoryEventKind};
use lineup_profile::{Handle, ThreadProfile};
use lineup_recording::plan::BlockRoles;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;

/// Any larger chunk of the C library's heap is a misreading.
const MAX_CHUNK_BYTES: u64 = 1 << 36;

/// A thread begins.
pub(crate) struct Begins;

impl OnVcpu for Begins {
    fn call(vcpu: c_uint) {
        if let Some(recorder) = recorder::get() {
            recorder.begin_thread(vcpu);
        }
    }
}

/// A thread ends.
pub(crate) struct Ends;

impl OnVcpu for Ends {
    fn call(vcpu: c_uint) {
        if let Some(recorder) = recorder::get() {
            recorder.end_thread(vcpu, CallEnd::ThreadEnded);
        }
    }
}

/// The emulator ends.
pub(crate) struct Exits;

impl OnEvent for Exits {
    fn call() {
        if let Some(recorder) = recorder::get() {
            recorder.finish();
        }
    }
}

/// A block with a callback begins.
pub(crate) unsafe extern "C" fn on_block(vcpu: c_uint, data: *mut c_void) {
    let Some(recorder) = recorder::get() else { return };
    // SAFETY: `data` is a block that was leaked when this callback was asked for.
    let block: &'static Block = unsafe { &*data.cast::<Block>() };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    let Some(thread) = (unsafe { recorder.thread(vcpu) }) else { return };
    recorder.block(thread, block);
}

/// A watched instruction accessed memory.
pub(crate) unsafe extern "C" fn on_access(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    let Some(recorder) = recorder::get() else { return };
    // SAFETY: `data` is a site that was leaked when this callback was asked for.
    let site: &'static Site = unsafe { &*data.cast::<Site>() };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    let Some(thread) = (unsafe { recorder.thread(vcpu) }) else { return };
    // SAFETY: `info` comes from the emulator.
    let (is_store, shift) =
        unsafe { ((recorder.api.mem_is_store)(info), (recorder.api.mem_size_shift)(info)) };
    recorder.access(thread, site, address, 1 << shift.min(12), is_store);
}

/// A block begins, in whole-program mode. `data` is the number of its first run.
pub(crate) unsafe extern "C" fn on_profiled(vcpu: c_uint, data: *mut c_void) {
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(profile) = unsafe { profile::current(vcpu) }
        && !profile.counts.enter(data as usize as u32)
    {
        enter_slowly(&mut profile.counts, data as usize as u32);
    }
}

/// An instruction accessed memory, in whole-program mode. `data` is the number of its counters.
pub(crate) unsafe extern "C" fn on_profiled_access(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(profile) = unsafe { profile::current(vcpu) }
        && !profile.access(data as usize as u32, address, info)
    {
        access_slowly(profile, data as usize as u32, address, info);
    }
}

/// A chain of accesses begins, in whole-program mode, and with `BEGINS` the block. `data` is the chain's [`Handle`].
pub(crate) unsafe extern "C" fn on_chain<const BEGINS: bool>(
    vcpu: c_uint,
    _info: u32,
    address: u64,
    data: *mut c_void,
) {
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(profile) = unsafe { profile::current(vcpu) }
        && !profile.counts.chain::<BEGINS>(Handle::from_data(data as u64), address)
    {
        chain_slowly::<BEGINS>(&mut profile.counts, data as u64, address);
    }
}

/// As [`on_chain`], for an instruction that loads and stores, one of which begins the chain: with `STORES` the store.
pub(crate) unsafe extern "C" fn on_chain_of<const BEGINS: bool, const STORES: bool>(
    vcpu: c_uint,
    info: u32,
    address: u64,
    data: *mut c_void,
) {
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(profile) = unsafe { profile::current(vcpu) }
        && profile.is_store(info) == STORES
        && !profile.counts.chain::<BEGINS>(Handle::from_data(data as u64), address)
    {
        chain_slowly::<BEGINS>(&mut profile.counts, data as u64, address);
    }
}

// Calls in last place, so that the callbacks above save no registers for them.

#[inline(never)]
extern "C" fn enter_slowly(profile: &mut ThreadProfile, run: u32) {
    profile.enter_slowly(run);
}

#[inline(never)]
extern "C" fn chain_slowly<const BEGINS: bool>(profile: &mut ThreadProfile, data: u64, address: u64) {
    profile.chain_slowly::<BEGINS>(Handle::from_data(data), address);
}

#[inline(never)]
extern "C" fn access_slowly(profile: &mut Profiled, counter: u32, address: u64, info: u32) {
    profile.access_slowly(counter, address, info);
}

/// A system call is about to be made.
pub(crate) struct Calls;

impl OnSyscall for Calls {
    fn call(vcpu: c_uint, number: i64, [a1, a2, a3, a4, a5, ..]: [u64; 8]) {
        let Some(recorder) = recorder::get() else { return };
        let call = isa::of(recorder.machine).system_call(number);
        match call {
            Some(Call::Exec) => {
                return recorder.follow(&Exec { folder: AT_FDCWD, path: a1, arguments: a2, environment: a3 });
            }
            Some(Call::ExecAt) => {
                return recorder.follow(&Exec {
                    folder: a1 as i32,
                    path: a2,
                    arguments: a3,
                    environment: a4,
                });
            }
            Some(Call::Fork) => process::begin_fork(recorder, vcpu),
            // A process that borrows its parent's memory is one of its own under the emulator.
            Some(Call::Clone) if a1 & CLONE_VM == 0 || a1 & CLONE_VFORK != 0 => {
                process::begin_fork(recorder, vcpu)
            }
            _ => {}
        }
        // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
        let Some(thread) = (unsafe { recorder.thread(vcpu) }) else { return };
        recorder.keep_before_system_call(thread);
        let Some(call) = call else { return };
        match call {
            Call::Exit => recorder.end_calls(thread, recorder.is_last_thread()),
            Call::ExitGroup => recorder.end_calls(thread, true),
            Call::Kill if recorder.is_deadly(a2) && recorder.is_own_process(a1) => {
                recorder.end_by_signal(vcpu)
            }
            Call::ThreadKill if recorder.is_deadly(a3) => recorder.end_by_signal(vcpu),
            Call::SetHandler if a2 != 0 => recorder.set_handler(a1, a2),
            Call::HandlerReturns => {
                thread.end_handler();
                thread.unwatched_seen = recorder.unwatched.seen(vcpu);
            }
            Call::Unmap => recorder.note_memory(thread, MemoryEventKind::Unmapped, a1, a2),
            Call::SetBase if a1 == ARCH_SET_FS => thread.encoder.thread_base(a2),
            Call::SetDescriptor => recorder.note_descriptor(thread, a1),
            Call::Clone if a1 & CLONE_SETTLS != 0 => match isa::of(recorder.machine).clone_sets_base() {
                ThreadBaseArgument::Fourth => thread.encoder.thread_base(a4),
                ThreadBaseArgument::FourthDescribes => recorder.note_descriptor(thread, a4),
                ThreadBaseArgument::Fifth => thread.encoder.thread_base(a5),
            },
            Call::Map if a4 & MAP_FIXED != 0 => {
                recorder.note_memory(thread, MemoryEventKind::Unmapped, a1, a2)
            }
            _ => {}
        }
    }
}

impl Recorder {
    fn block(&self, thread: &mut Thread, block: &'static Block) {
        thread.instructions += block.instructions;
        if block.handler {
            thread.begin_handler();
        }
        if matches!(block.special, Some(Special::Leave(_))) {
            thread.leave_handlers();
        }
        let open_calls = thread.tracker.open_calls();
        let is_next = self.follows_all() || !self.saw_gap(thread);
        let start = block.facts.start;
        let in_function = |pc| self.is_same_function(pc, start);
        thread.step(block, is_next, in_function, |previous| self.is_in_the_middle(previous, start));
        if std::mem::take(&mut thread.was_left) {
            self.mark(block, BlockRoles::LANDING);
        }
        if !self.uses_slots() {
            thread.pop_site(None, Some(block.facts.start));
            if thread.tracker.open_calls() < open_calls {
                self.mark(block, BlockRoles::RETURN);
            }
        }
        if let Some(region) = block.entry {
            // SAFETY: this block's callback was asked for with the registers.
            unsafe { self.enter(thread, region, block.facts.start) };
        }
        if thread.is_recording() {
            thread.execute(block);
            if !block.watched {
                self.mark(block, BlockRoles::INSIDE);
                if !self.is_discovery && thread.keeps_accesses() {
                    thread.miss();
                }
            }
        }
        thread.awaits_chunk = block.frees || (thread.awaits_chunk && block.is_in_free);
        if block.facts.flow == Flow::Call && !self.uses_slots() {
            thread.push_site(CallSite { return_pc: block.facts.end, slot: None }, block);
        }
        thread.last = Some(block);
        self.note_inside(thread);
        self.keep(thread);
    }

    /// True when blocks without callback ran on this thread since the last one with a callback.
    fn saw_gap(&self, thread: &mut Thread) -> bool {
        let now = self.unwatched.seen(thread.own.vcpu);
        std::mem::replace(&mut thread.unwatched_seen, now) != now
    }

    fn is_same_function(&self, one: u64, other: u64) -> bool {
        let translation = self.translation();
        let name = |pc| translation.images.function_at(pc).map(|function| function.name);
        name(one).is_some_and(|one| Some(one) == name(other))
    }

    /// True when `next` lies in the middle of another function than `previous`. Stubs and tail calls lead to the
    /// beginnings of functions and switches stay inside one; a part that was split off may begin with a landing.
    fn is_in_the_middle(&self, previous: u64, next: u64) -> bool {
        let function = self.translation().images.function_at(next);
        let is_inner = function.is_some_and(|function| function.is_part || function.range.start != next);
        is_inner && !self.is_same_function(previous, next)
    }

    /// A region's entry was reached, at `pc`.
    ///
    /// # Safety
    /// Only in the callback on the block that begins there.
    unsafe fn enter(&self, thread: &mut Thread, region: u16, pc: u64) {
        let site = thread.call_site().filter(|(site, _)| self.is_current(site));
        if let Some((_, block)) = site {
            self.mark(block, BlockRoles::APPROACH);
        }
        if site.is_some_and(|(site, _)| site.slot.is_some()) && thread.was_reached(region) {
            return;
        }
        let mut read = None;
        let admit = |own: &mut Own| {
            self.admit(region, || {
                let names = &self.machine.description().emulator_registers;
                // SAFETY: the caller's promise.
                read = unsafe { own.registers.read(&self.api, names, false, pc) };
                read.map(|read| read.arguments)
            })
        };
        thread.enter(region, site.map(|(site, _)| site), admit);
        if let Some(read) = read {
            self.note_places(thread, &read);
        }
    }

    /// Notes where the thread's stack and its variables are, once.
    fn note_places(&self, thread: &mut Thread, read: &AtEntry) {
        if !thread.has_stack {
            self.note_stack(thread, read.stack_pointer);
        }
        if let Some(base) = read.base
            && !std::mem::replace(&mut thread.own.has_base, true)
        {
            thread.encoder.thread_base(base);
        }
    }

    /// True when the return address of a call is still in its slot.
    fn is_current(&self, site: &CallSite) -> bool {
        let Some(slot) = site.slot else { return true };
        let host = slot.wrapping_add(self.guest_base.load(Ordering::Relaxed));
        // SAFETY: the guest's call stored here; stacks stay mapped while their thread runs.
        let stored = unsafe { read_value(host, self.plan.header.abi.pointer_bytes) };
        stored == Some(site.return_pc)
    }

    fn access(
        &self,
        thread: &mut Thread,
        site: &'static Site,
        address: u64,
        size_bytes: u32,
        is_store: bool,
    ) {
        let pointer_bytes = self.plan.header.abi.pointer_bytes;
        let is_pointer_like =
            size_bytes == u32::from(pointer_bytes) && address.is_multiple_of(u64::from(pointer_bytes));
        // SAFETY: the guest just accessed these bytes.
        let value = is_pointer_like
            .then(|| unsafe { read_value(address.wrapping_add(site.guest_base), pointer_bytes) })
            .flatten();
        if thread.awaits_chunk && !is_store {
            self.note_chunk(thread, site, address, value);
        }
        if thread.keeps_accesses() {
            if site.on_stack && !thread.has_stack {
                self.note_stack(thread, address);
            }
            let kind = if is_store { AccessKind::Store } else { AccessKind::Load };
            thread.touch(site, address, size_bytes, kind, value);
        }
        if !self.uses_slots() {
            return;
        }
        match (site.flow, is_store) {
            (Flow::Call, true) => {
                if let Some(block) = thread.last {
                    thread.push_site(CallSite { return_pc: site.next_pc, slot: Some(address) }, block);
                }
                thread.called(address, site.next_pc);
            }
            (Flow::Return, false) => {
                thread.pop_site(Some(address), None);
                thread.returned(address, value);
                self.note_inside(thread);
                self.keep(thread);
            }
            _ => {}
        }
    }

    /// The first load of `free` that can be the size in a chunk header ends the chunk's life.
    fn note_chunk(&self, thread: &mut Thread, site: &Site, address: u64, value: Option<u64>) {
        let pointer = u64::from(self.plan.header.abi.pointer_bytes);
        let Some(size) = value.map(|value| value & !7) else { return };
        let is_header = address % (2 * pointer) == pointer
            && size.is_multiple_of(2 * pointer)
            && (4 * pointer..MAX_CHUNK_BYTES).contains(&size);
        if is_header && !site.on_stack {
            thread.awaits_chunk = false;
            self.note_memory(thread, MemoryEventKind::Freed, address.wrapping_add(pointer), size - pointer);
        }
    }

    fn note_memory(&self, thread: &mut Thread, kind: MemoryEventKind, address: u64, size_bytes: u64) {
        if self.is_discovery || self.profile.is_some() {
            return;
        }
        thread.encoder.memory(&MemoryEvent {
            at: self.journal.tick(),
            process: self.process(),
            thread: thread.id,
            kind,
            address,
            size_bytes: Some(size_bytes),
        });
        if thread.encoder.packed_bytes() >= BLOCK_BYTES {
            self.flush(thread);
        }
    }

    /// A thread gets the base that the segment descriptor at this address holds, after the entry's number.
    fn note_descriptor(&self, thread: &mut Thread, descriptor: u64) {
        let host = descriptor.wrapping_add(4).wrapping_add(self.guest_base.load(Ordering::Relaxed));
        if !host.is_multiple_of(4) || !lineup_follow::maps::is_readable(host) {
            return;
        }
        // SAFETY: checked to be mapped and aligned just now; the guest passes it to the kernel, so it keeps it mapped.
        if let Some(base) = unsafe { read_value(host, 4) } {
            thread.encoder.thread_base(base);
        }
    }

    /// A thread ends, and perhaps its process with it.
    fn end_calls(&self, thread: &mut Thread, ends_process: bool) {
        thread.end_all(if ends_process { CallEnd::ProcessEnded } else { CallEnd::ThreadEnded });
        self.note_inside(thread);
        self.keep(thread);
    }

    /// True for a signal that always ends a process: one that cannot be handled, or that of `abort` without a handler.
    fn is_deadly(&self, signal: u64) -> bool {
        match signal as i32 {
            libc::SIGKILL => true,
            libc::SIGABRT => !self.translation().handled_signals.contains(&signal),
            _ => false,
        }
    }

    fn is_own_process(&self, id: u64) -> bool {
        id == u64::from(std::process::id())
    }

    /// The thread on a virtual CPU ends its process by a signal, after which no callback comes.
    fn end_by_signal(&self, vcpu: u32) {
        self.end_thread(vcpu, CallEnd::ProcessEnded);
        self.finish();
    }

    /// The guest installs the signal handler that an action at this address names.
    fn set_handler(&self, signal: u64, action: u64) {
        let pointer_bytes = self.plan.header.abi.pointer_bytes;
        let host = action.wrapping_add(self.guest_base.load(Ordering::Relaxed));
        if !host.is_multiple_of(u64::from(pointer_bytes)) || !lineup_follow::maps::is_readable(host) {
            return;
        }
        // SAFETY: checked to be mapped and aligned just now; the guest passes it to the kernel, so it keeps it mapped.
        let handler = unsafe { read_value(host, pointer_bytes) };
        let mut translation = self.translation();
        // 0 is the default action, 1 ignores the signal.
        match handler {
            Some(0) => translation.handled_signals.remove(&signal),
            _ => translation.handled_signals.insert(signal),
        };
        if let Some(handler) = handler.filter(|handler| *handler > 1) {
            translation.handlers.insert(handler & !u64::from(pointer_bytes == 4));
        }
    }
}
