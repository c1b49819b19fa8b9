//! The emulator's callback when it translates a block of a whole system.

use super::callbacks::{on_data, on_noted, on_noted_run, on_program_run, on_run, on_transfer};
use super::flag::Mask;
use super::lock::lock;
use super::privileged::{FlagAccess, Privileged};
use super::shared::{System, get};
use super::sites::{DataSite, Meaning, Noted, NotedSite, Role, Run};
use crate::ask::OnTranslate;
use crate::ffi::{self, InsnBytes, NO_REGISTERS, READS_AND_WRITES, Tb};
use crate::isa::{self, Flow};
use lineup_model::machine::CodeMachine;
use std::ffi::c_void;

/// Address of 32-bit Arm's vectors, which change modes by a return from an exception without an exception.
const ARM_VECTORS: u64 = 0xffff_0000;

/// An instruction of a block.
struct Insn {
    handle: *mut ffi::Insn,
    pc: u64,
    size_bytes: u64,
    decoded: isa::Insn,
    privileged: Option<Privileged>,
}

/// A block is translated.
pub(crate) struct Translates;

impl OnTranslate for Translates {
    unsafe fn call(tb: *mut Tb) {
        let Some(system) = get() else { return };
        // SAFETY: `tb` is valid for this callback.
        let insns = unsafe { system.insns(tb) };
        let runs = system.cut(&insns);
        if let (Some(programs), Some((_, first))) = (&system.programs, runs.first())
            && first.is_user
            && !first.repeats
        {
            let instructions = runs.iter().map(|(_, run)| u64::from(run.instructions)).sum();
            // SAFETY: as above, and the recorder of the system is never freed.
            return unsafe { programs.count(tb, instructions) };
        }
        for (index, run) in runs {
            // SAFETY: the handles are valid for this callback, and runs are never freed.
            unsafe { system.watch_run(&insns[index], run) };
        }
        for insn in &insns {
            // SAFETY: as above.
            unsafe { system.watch_insn(insn) };
        }
    }
}

impl System {
    /// The block's instructions.
    ///
    /// # Safety
    /// `tb` must be the block under translation.
    unsafe fn insns(&self, tb: *mut Tb) -> Vec<Insn> {
        let api = &self.api;
        // SAFETY: the caller's promise; indices are below the count.
        let insn = |index| unsafe {
            let handle = (api.block_insn)(tb, index);
            let bytes = api.insn_bytes(handle);
            let pc = (api.insn_vaddr)(handle);
            let insn = Insn {
                handle,
                pc,
                size_bytes: bytes.len() as u64,
                decoded: isa::of(self.machine).decode(&bytes, false),
                privileged: self.privileged(pc, &bytes),
            };
            (!isa::is_only_listed(self.machine, index, pc, &bytes)).then_some((insn, bytes))
        };
        // SAFETY: the caller's promise.
        let insns = (0..unsafe { (api.block_insns)(tb) }).filter_map(insn);
        let (mut insns, bytes): (Vec<Insn>, Vec<InsnBytes>) = insns.unzip();
        self.find_flag_accesses(&mut insns, &bytes);
        insns
    }

    /// Never for a program's code: on Arm it may be in another instruction set.
    pub(super) fn privileged(&self, pc: u64, bytes: &[u8]) -> Option<Privileged> {
        let is_vector = self.machine == CodeMachine::Arm && pc >= ARM_VECTORS;
        let is_kernel = pc >= self.kernel.entries.kernel_start && !is_vector;
        is_kernel.then(|| isa::of(self.machine).privileged(bytes)).flatten()
    }

    /// Finds the effect of instructions that move the interrupt flag through a register, by the instructions around
    /// them. A read counts if interrupts are turned off next; other reads have no effect.
    fn find_flag_accesses(&self, insns: &mut [Insn], bytes: &[InsnBytes]) {
        for index in 0..insns.len() {
            let Some(insn) = insns.get(index).filter(|insn| insn.pc >= self.kernel.entries.kernel_start)
            else {
                continue;
            };
            let next = insns.get(index + 1).filter(|next| next.privileged == Some(Privileged::InterruptsOff));
            let mask = match (next, self.flag_saves.get(&insn.pc)) {
                (Some(next), _) => Some(Mask { pc: next.pc, is_conditional: false }),
                (None, pc) => pc.map(|pc| Mask { pc: *pc, is_conditional: true }),
            };
            let found = match bytes.get(index).and_then(|bytes| isa::of(self.machine).flag_access(bytes)) {
                Some(FlagAccess::Read) => mask.map(Privileged::FlagSave),
                Some(FlagAccess::Write { register }) => {
                    let mut before = bytes.iter().take(index).rev().map(|bytes| &**bytes);
                    Some(Privileged::FlagWrite(isa::of(self.machine).written(register, &mut before)))
                }
                None => continue,
            };
            insns[index].privileged = found;
        }
    }

    /// Cuts a block into runs that lie on one line and end at instructions that change the interrupt flag: the index of
    /// each one's first instruction, and the run.
    fn cut(&self, insns: &[Insn]) -> Vec<(usize, Run)> {
        let mut runs: Vec<(usize, Run)> = Vec::new();
        let mut is_cut = true;
        for (index, insn) in insns.iter().enumerate() {
            let same_line = |run: &Run| run.pc / self.line_bytes == insn.pc / self.line_bytes;
            is_cut |= insn.privileged.is_some();
            match runs.last_mut().filter(|(_, run)| !is_cut && same_line(run)) {
                Some((_, run)) => {
                    run.size_bytes += insn.size_bytes as u32;
                    run.instructions += 1;
                }
                None => runs.push((index, self.run(insn, index == 0, insns.len() == 1))),
            }
            is_cut = insn.privileged.is_some();
        }
        runs
    }

    fn run(&self, insn: &Insn, is_first: bool, is_alone: bool) -> Run {
        Run {
            pc: insn.pc,
            size_bytes: insn.size_bytes as u32,
            instructions: 1,
            repeats: is_alone && insn.decoded.repeats,
            spins: self.kernel.entries.spins.iter().any(|spin| spin.contains(&insn.pc)),
            is_user: insn.pc < self.kernel.entries.kernel_start,
            is_landing: is_first && !self.uses_slots() && insn.pc >= self.kernel.entries.kernel_start,
            role: if is_first { self.role(insn.pc) } else { Role::Plain },
            entry: is_first.then(|| self.entries.get(&insn.pc).copied()).flatten(),
        }
    }

    pub(super) fn role(&self, pc: u64) -> Role {
        let kernel = &self.kernel;
        match pc {
            _ if pc < kernel.entries.kernel_start => Role::User,
            _ if pc == kernel.entries.marker => Role::Marker,
            _ if kernel.entries.interrupts.contains(&pc) => Role::Interrupt,
            _ if kernel.entries.exceptions.contains(&pc) => Role::Exception,
            _ if kernel.entries.system_calls.contains(&pc) => Role::SystemCall,
            _ if pc == kernel.entries.task_switch.start => Role::Switch,
            _ => Role::Plain,
        }
    }

    /// # Safety
    /// The instruction must belong to the block under translation.
    unsafe fn watch_run(&self, insn: &Insn, run: Run) {
        let is_noted = run.role != Role::Plain || run.entry.is_some() || run.is_landing;
        let registers = self.api.at_block(run.entry.is_some());
        let data: *const Run = lock(&self.sites).run(run);
        let callback = match run.role {
            Role::User if run.entry.is_none() => on_program_run,
            _ if is_noted => on_noted_run,
            _ => on_run,
        };
        // SAFETY: the caller's promise; the run is never freed.
        unsafe { (self.api.insn_exec)(insn.handle, callback, registers, data.cast_mut().cast::<c_void>()) };
    }

    /// Whether an access by an instruction in the function that changes stacks is to the description of a task.
    pub(super) fn describes_task(&self, pc: u64, decoded: &isa::Insn) -> bool {
        !decoded.on_stack && decoded.flow == Flow::Plain && self.kernel.entries.task_switch.contains(&pc)
    }

    /// # Safety
    /// The instruction must belong to the block under translation.
    unsafe fn watch_insn(&self, insn: &Insn) {
        let site = DataSite {
            pc: insn.pc,
            next_pc: insn.pc + insn.size_bytes,
            is_user: insn.pc < self.kernel.entries.kernel_start,
            repeats: insn.decoded.repeats,
            meaning: self.meaning(insn),
        };
        let callback = match (site.meaning, site.is_user) {
            (Meaning::Plain, true) => on_data::<true>,
            (Meaning::Plain, false) => on_data::<false>,
            _ => on_transfer,
        };
        let mut sites = lock(&self.sites);
        let data: *const DataSite = sites.data(site);
        // SAFETY: the caller's promise; the sites are never freed.
        unsafe {
            (self.api.insn_mem)(
                insn.handle,
                callback,
                NO_REGISTERS,
                READS_AND_WRITES,
                data.cast_mut().cast(),
            );
            if let Some(what) = self.noted(insn) {
                let data: *const NotedSite =
                    sites.noted(NotedSite { pc: insn.pc, next_pc: site.next_pc, what });
                (self.api.insn_exec)(insn.handle, on_noted, NO_REGISTERS, data.cast_mut().cast::<c_void>());
            }
        }
    }

    fn noted(&self, insn: &Insn) -> Option<Noted> {
        let is_call = !self.uses_slots()
            && insn.pc >= self.kernel.entries.kernel_start
            && insn.decoded.flow == Flow::Call;
        insn.privileged.map(Noted::Privileged).or(is_call.then_some(Noted::Call))
    }

    fn meaning(&self, insn: &Insn) -> Meaning {
        let is_kernel = insn.pc >= self.kernel.entries.kernel_start;
        match insn.decoded.flow {
            _ if !is_kernel => Meaning::Plain,
            _ if insn.privileged == Some(Privileged::InterruptReturn) => Meaning::InterruptReturn,
            Flow::Call if self.uses_slots() => Meaning::Call,
            Flow::Return if self.uses_slots() => Meaning::Return,
            _ if self.describes_task(insn.pc, &insn.decoded) => Meaning::Description,
            _ if !insn.decoded.on_stack => Meaning::Plain,
            _ if self.uses_slots() && self.kernel.entries.task_switch.contains(&insn.pc) => {
                Meaning::SwitchedStack
            }
            _ if !self.uses_slots() && !self.kernel.entries.task_switch.contains(&insn.pc) => Meaning::Stack,
            _ => Meaning::Plain,
        }
    }
}
