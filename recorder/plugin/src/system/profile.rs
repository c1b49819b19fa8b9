//! Counts of whole systems: executions, accesses and misses of every instruction, in the kernel and in programs.

use super::context::Context;
use super::lock::lock;
use super::privileged::Privileged;
use super::shared::{LAST_CALLBACK, System, get};
use super::sites::Role;
use crate::ask::OnTranslate;
use crate::block::{Insn, insns, profile_block};
use crate::ffi::{NO_REGISTERS, READS_AND_WRITES, Tb};
use crate::isa::Flow;
use crate::profile::{Profiled, current, give_current, take_current};
use lineup_recording::{Encoder, Summary};
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;

/// A block is translated.
pub(crate) struct Translates;

impl OnTranslate for Translates {
    unsafe fn call(tb: *mut Tb) {
        let Some(system) = get() else { return };
        let Some(profile) = &system.profile else { return };
        // SAFETY: `tb` is valid for this callback.
        let insns = unsafe { insns(&system.api, system.machine, tb) };
        let Some(first) = insns.first() else { return };
        if first.pc == system.kernel.entries.marker {
            // SAFETY: as above.
            unsafe { (system.api.block_exec)(tb, on_marker, NO_REGISTERS, null_mut()) };
            return;
        }
        // SAFETY: as above. Callbacks come in the order of the requests: the context is that of the block's own fetch.
        unsafe {
            system.watch_contexts(tb, &insns);
            profile_block(&system.api, system.machine, profile, tb, &insns);
        }
    }
}

/// The marker is reached again: the workload has ended.
unsafe extern "C" fn on_marker(_vcpu: c_uint, _data: *mut c_void) {
    if let Some(system) = get() {
        system.finish(true);
    }
}

/// Entries by the numbers that callbacks get.
const ROLES: [Role; 4] = [Role::SystemCall, Role::Interrupt, Role::Exception, Role::Switch];

/// A block of note begins, the number of whose role is `data`.
unsafe extern "C" fn on_entry(vcpu: c_uint, data: *mut c_void) {
    if let Some(role) = ROLES.get(data as usize) {
        with_context(vcpu, |context| context.enter(*role));
    }
}

/// An instruction returns from an entry; `data` is not 0 when it does from a system call alone.
unsafe extern "C" fn on_leave(vcpu: c_uint, data: *mut c_void) {
    with_context(vcpu, |context| context.leave(!data.is_null()));
}

/// The function that changes stacks uses the stack.
unsafe extern "C" fn on_stack(vcpu: c_uint, info: u32, address: u64, _data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    let is_store = unsafe { current(vcpu) }.is_some_and(|profiled| profiled.is_store(info));
    if is_store && system.uses_slots() {
        // The old task's saved data.
        return;
    }
    let stack = address & !(system.kernel.entries.stack_bytes.max(1) - 1);
    with_context(vcpu, |context| context.use_stack(stack, &mut lock(&system.suspended), &system.tasks));
}

/// The function that changes stacks uses the description of a task.
unsafe extern "C" fn on_description(vcpu: c_uint, info: u32, address: u64, _data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: as in `on_stack`.
    let is_store = unsafe { current(vcpu) }.is_some_and(|profiled| profiled.is_store(info));
    if let Some(context) = system.contexts.get(vcpu as usize).filter(|_| !is_store) {
        lock(context).use_description(system.physical(info, address), &system.tasks);
    }
}

/// Changes the context of a virtual CPU, and passes it to its counts.
fn with_context(vcpu: u32, change: impl FnOnce(&mut Context)) {
    let Some(system) = get() else { return };
    let Some(context) = system.contexts.get(vcpu as usize) else { return };
    let number = {
        let mut context = lock(context);
        change(&mut context);
        context.number()
    };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(profiled) = unsafe { current(vcpu) } {
        profiled.counts.context(number);
    }
}

impl System {
    /// Asks for the callbacks that show a CPU's context.
    ///
    /// # Safety
    /// `tb` must be the block under translation and `insns` its instructions.
    unsafe fn watch_contexts(&self, tb: *mut Tb, insns: &[Insn]) {
        let Some(first) = insns.first().filter(|first| first.pc >= self.kernel.entries.kernel_start) else {
            return;
        };
        let role = self.role(first.pc);
        if let Some(number) = ROLES.iter().position(|one| *one == role) {
            // SAFETY: the caller's promise; the number is not followed.
            unsafe { (self.api.block_exec)(tb, on_entry, NO_REGISTERS, number as *mut c_void) };
        }
        for insn in insns {
            let what = self.privileged(insn.pc, &insn.bytes);
            let leaves = match what {
                Some(Privileged::InterruptReturn) => Some(0),
                Some(Privileged::SystemCallReturn) => Some(1),
                _ => None,
            };
            if let Some(data) = leaves {
                // SAFETY: as above.
                unsafe { (self.api.insn_exec)(insn.handle, on_leave, NO_REGISTERS, data as *mut c_void) };
            }
            let callback = if self.tells_stack(insn) {
                on_stack
            } else if self.describes_task(insn.pc, &insn.decoded) {
                on_description
            } else {
                continue;
            };
            // SAFETY: as above.
            unsafe { (self.api.insn_mem)(insn.handle, callback, NO_REGISTERS, READS_AND_WRITES, null_mut()) };
        }
    }

    /// Whether an instruction's use of the stack shows the running task. In the function that changes stacks, a use
    /// before the change is of the old stack. Right after the function, every use is of the new one.
    fn tells_stack(&self, insn: &Insn) -> bool {
        let is_inside = self.kernel.entries.task_switch.contains(&insn.pc);
        let is_flow = matches!(insn.decoded.flow, Flow::Call | Flow::Return);
        insn.decoded.on_stack && !is_flow && is_inside == self.uses_slots()
    }

    /// Every virtual CPU gets its counts.
    pub(super) fn begin_profile(&self) {
        let Some(profile) = &self.profile else { return };
        for vcpu in 0..self.kernel.cpus.max(1) {
            give_current(vcpu, Profiled::new(profile.thread(), self.api));
        }
    }

    /// Writes the counts of all virtual CPUs.
    pub(super) fn finish_profile(&self) {
        let Some(profile) = &self.profile else { return };
        let taken: Vec<*mut Profiled> = (0..self.kernel.cpus.max(1)).map(take_current).collect();
        if self.kernel.cpus > 1 {
            std::thread::sleep(LAST_CALLBACK);
        }
        // SAFETY: null, or given in `begin_profile`. This callback holds no reference to any, and those of other
        // virtual CPUs have had time to return: see `super::cpus::current`.
        let whole = |taken: *mut Profiled| (!taken.is_null()).then(|| unsafe { Box::from_raw(taken) });
        let counts = taken.into_iter().zip(0_u32..).map(|(taken, cpu)| {
            let numbers = self.contexts.get(cpu as usize).map(|context| {
                let context = lock(context);
                context.end(&self.tasks);
                context.numbers.clone()
            });
            profile.take_of_cpu(
                cpu,
                whole(taken).map(|profiled| profiled.counts),
                &numbers.unwrap_or_default(),
            )
        });
        let instructions: u64 = counts.sum();
        let mut encoder = Encoder::new();
        self.tasks.write(&mut encoder);
        // A failure was reported on standard error.
        let _ = profile.write(&mut encoder, |encoder| self.output.flush(encoder));
        encoder.summary(&Summary {
            total_instructions: Some(instructions),
            elapsed_ns: instructions << self.kernel.time_shift,
            threads: u64::from(self.kernel.cpus),
            ..Summary::default()
        });
        self.write(&mut encoder);
    }
}
