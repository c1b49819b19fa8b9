//! One virtual CPU: the effects of its callbacks on its processor model and on the task that runs on it.

mod quick;
mod window;
mod written;

use super::flag::{Flag, Span};
use super::privileged::{Privileged, Returned, Written};
use super::processor::Processor;
use super::shared::System;
use super::sites::{DataSite, Meaning, Noted, NotedSite, Role, Run};
use super::stream::Lane;
use super::task::{CallDetail, CallSite, Open, Task, access};
use super::tasks::Running;
use super::windows::Piece;
use crate::describe::Descriptions;
use crate::ffi::Api;
use crate::isa;
use crate::registers::{AtEntry, Registers};
use crate::unwatched::Unwatched;
use lineup_model::access::{CallEnd, StackRange, ThreadId, code_granules};
use lineup_recording::{Arm, Counts, Encoder, MeasuredCall, RegionCounts, SystemSummary};

pub(crate) struct Cpu {
    index: u16,
    descriptions: Descriptions,
    processor: Processor,
    /// The stream's state of this CPU, when one is written.
    lane: Option<Lane>,
    /// True when accesses matter to more than this CPU's caches: to a stream, other CPUs or windows.
    shows_accesses: bool,
    task: Task,
    /// The stack of the running task, once a switch showed it.
    stack: Option<u64>,
    running: Running,
    /// The context in the last report to the stream.
    told: Option<(Option<u32>, bool)>,
    in_kernel: bool,
    flag: Flag,
    /// Last use of the stack, on machines without slots.
    last_on_stack: Option<u64>,
    /// Set at a task switch, until the first load from the other stack.
    is_switching: bool,
    /// Set at a return from an interrupt, until it reads its frame.
    awaits_frame: bool,
    /// Set from an interrupt's entry to its first push.
    awaits_push: bool,
    /// Set at a return from an exception whose entry was not seen, on machines without slots, until control reaches a
    /// block.
    is_returning: bool,
    /// True when accesses of the current level are kept.
    keeps: bool,
    /// The kept accesses of the current window.
    piece: Option<Piece>,
    /// The window that was looked at last.
    window: Option<u64>,
    /// Whether it is kept.
    keeps_window: bool,
    /// Distinguishes addresses of one program from those of another.
    salt: u64,
    last_repeated: u64,
    noted_stack: u64,
    registers: Registers,
    /// The base that was written last.
    noted_base: Option<u64>,
    /// Instructions of programs that are in the totals, where they are counted apart.
    of_programs: u64,
    counts: Vec<RegionCounts>,
    seen: SystemSummary,
    pub(crate) encoder: Encoder,
}

impl Cpu {
    pub(crate) fn new(
        index: u16,
        api: Api,
        processor: Processor,
        lane: Option<Lane>,
        shows_accesses: bool,
        regions: usize,
    ) -> Self {
        Cpu {
            index,
            descriptions: Descriptions::new(api),
            processor,
            lane,
            shows_accesses,
            task: Task::default(),
            stack: None,
            running: Running::default(),
            told: None,
            in_kernel: true,
            flag: Flag::new(),
            last_on_stack: None,
            is_switching: false,
            awaits_frame: false,
            awaits_push: false,
            is_returning: false,
            keeps: false,
            piece: None,
            window: None,
            keeps_window: false,
            salt: 0,
            last_repeated: 0,
            noted_stack: 0,
            registers: Registers::default(),
            noted_base: None,
            of_programs: 0,
            counts: vec![RegionCounts::default(); regions],
            seen: SystemSummary::default(),
            encoder: Encoder::new(),
        }
    }

    /// A run of instructions begins.
    pub(crate) fn fetch(&mut self, system: &System, run: &Run) {
        let address = self.modelled(run.pc, run.is_user);
        // Every element of a string instruction executes it again.
        let is_again = run.repeats && self.last_repeated == run.pc;
        self.last_repeated = if run.repeats { run.pc } else { 0 };
        let instructions = if is_again { 0 } else { u64::from(run.instructions) };
        let size_bytes = u64::from(run.size_bytes);
        self.processor.fetch(address, size_bytes, instructions);
        if let (Some(stream), Some(lane)) = (&system.stream, &mut self.lane) {
            stream.fetch(&system.output, lane, address, size_bytes);
        }
        if run.spins {
            self.processor.totals.spin_instructions += instructions;
        }
        if self.keeps {
            self.task.fetch(code_granules(run.pc, size_bytes));
        }
    }

    /// A block of note begins.
    pub(crate) fn begin(&mut self, system: &System, run: &Run) {
        if std::mem::take(&mut self.is_returning) && run.role != Role::User {
            match isa::of(system.machine).shown_by_vector(run.pc) {
                Some(Returned::ToProgram) => self.leave_kernel(system, run.pc),
                Some(Returned::WithInterruptsOn) => self.turn_on(system, run.pc),
                None => self.flag.lose(),
            }
        }
        if run.is_landing {
            let ended = self.task.came_to(run.pc, &self.processor.totals);
            self.write_returned(system, ended);
        }
        if let (Role::Interrupt | Role::Exception | Role::SystemCall, Some(programs)) =
            (run.role, &system.programs)
        {
            self.count_programs(programs);
        }
        match run.role {
            Role::Plain | Role::Marker => {}
            Role::User => self.leave_kernel(system, run.pc),
            Role::Interrupt | Role::Exception => self.interrupt(system, run),
            Role::SystemCall => {
                self.in_kernel = true;
                self.turn_off(system, run.pc);
            }
            Role::Switch => {
                self.is_switching = true;
                self.running.begins_switch();
                let on_stack = self.task.last_call().filter(|_| system.uses_slots()).map(|call| call.slot);
                self.stack = on_stack.or(self.last_on_stack).map(|address| stack_of(system, address));
            }
        }
        if let Some(region) = run.entry {
            // SAFETY: the callback on this run was asked for with the registers.
            unsafe { self.enter(system, region, run.pc) };
        }
    }

    /// Data is accessed, and not passed over; true when it was a store.
    pub(crate) fn access(&mut self, system: &System, site: &DataSite, address: u64, info: u32) -> bool {
        let what = self.descriptions.of(info);
        let (size_bytes, is_store) = (what.size_bytes(), what.is_store);
        let modelled = self.modelled(address, site.is_user);
        let is_foreign = match (&system.stream, &mut self.lane, &system.directory) {
            (Some(stream), Some(lane), _) => {
                stream.data((&system.output, system.directory.as_ref()), lane, (modelled, &what))
            }
            (.., Some(directory)) => directory.access(self.index, modelled, is_store),
            (.., None) => false,
        };
        self.processor.data(modelled, u64::from(size_bytes), is_foreign);
        if self.awaits_push && is_store {
            self.task.pushed(address);
            self.awaits_push = self.task.awaits_push();
        }
        if self.keeps && site.meaning != Meaning::InterruptReturn {
            let most = usize::try_from(system.plan.header.max_accesses).unwrap_or(usize::MAX);
            self.task.touch(access(site.pc, address, size_bytes, is_store), most, site.repeats);
        }
        // The same address of two programs is not the same memory, so the kernel's accesses to programs' memory are
        // left out.
        if let Some(region) = system.kernel.windows
            && !site.is_user
            && is_of_kernel(system, address)
        {
            self.keep_in_window(system, region, access(site.pc, address, size_bytes, is_store), info);
        }
        is_store
    }

    /// Data is accessed by an instruction that moves control or stacks.
    pub(crate) fn transfer(
        &mut self,
        system: &System,
        site: &DataSite,
        (address, info): (u64, u32),
        is_store: bool,
    ) {
        let same_stack = |one: u64, other: u64| stack_of(system, one) == stack_of(system, other);
        match site.meaning {
            Meaning::Plain => {}
            Meaning::Call if is_store => {
                self.note_stack(system, address);
                self.task.called(CallSite { slot: address, return_pc: site.next_pc }, same_stack);
            }
            Meaning::Return if !is_store => {
                let ended = self.task.returned(address, &self.processor.totals, same_stack);
                self.write_returned(system, ended);
            }
            Meaning::InterruptReturn if !is_store && self.awaits_frame => {
                self.awaits_frame = false;
                self.interrupt_returns(system, site.pc, Some(address));
            }
            Meaning::Description if self.is_switching => {
                let stored_of = self.stack.filter(|_| is_store);
                if stored_of.is_some() || !is_store {
                    self.running.uses(system.physical(info, address), stored_of, &system.tasks);
                }
            }
            Meaning::SwitchedStack if !is_store && self.is_switching => self.switched(system, address),
            Meaning::Stack => {
                self.note_stack(system, address);
                self.last_on_stack = Some(address);
                if self.is_switching {
                    self.switched(system, address);
                }
            }
            _ => {}
        }
    }

    /// An instruction of note is about to be executed.
    pub(crate) fn note(&mut self, system: &System, site: &NotedSite) {
        match site.what {
            Noted::Call => self.task.called_without_slot(site.next_pc),
            Noted::Privileged(Privileged::InterruptsOff) => {
                if !system.uses_slots() {
                    self.task.saves().mask(&mut self.flag, site.pc);
                }
                self.turn_off(system, site.pc);
            }
            Noted::Privileged(what @ (Privileged::InterruptsOn | Privileged::SystemCallReturn)) => {
                self.task.saves().unmask(&mut self.flag);
                self.turn_on(system, site.pc);
                if what == Privileged::SystemCallReturn {
                    self.leave_kernel(system, site.pc);
                }
            }
            Noted::Privileged(Privileged::InterruptReturn) if system.uses_slots() => self.awaits_frame = true,
            Noted::Privileged(Privileged::InterruptReturn) => self.interrupt_returns(system, site.pc, None),
            Noted::Privileged(Privileged::FlagSave(mask)) => self.task.saves().save(&mut self.flag, mask),
            Noted::Privileged(Privileged::FlagWrite(written)) => self.flag_written(system, site.pc, written),
        }
    }

    fn flag_written(&mut self, system: &System, pc: u64, written: Written) {
        let is_on = match written {
            Written::Constant { is_on: true } => {
                self.task.saves().unmask(&mut self.flag);
                Some(true)
            }
            Written::Constant { is_on: false } => {
                self.task.saves().mask(&mut self.flag, pc);
                Some(false)
            }
            Written::AtEntry => self.task.interrupts_were_on(),
            Written::Saved => self.task.saves().restore(&mut self.flag),
        };
        self.set_flag(system, pc, is_on);
    }

    /// Writes the place of a kept call's stack, once.
    fn note_stack(&mut self, system: &System, address: u64) {
        let start = stack_of(system, address);
        if (self.keeps || self.keeps_window) && self.noted_stack != start {
            self.noted_stack = start;
            if system.is_new_stack(start) {
                let end = start.saturating_add(system.kernel.entries.stack_bytes);
                self.encoder.stack(&StackRange { thread: ThreadId(u32::from(self.index)), start, end });
            }
        }
    }

    /// Finds the open calls on the present level, after a possible change.
    fn look_inside(&mut self, system: &System) {
        self.keeps = self.task.keeps();
        if let (Some(stream), Some(lane)) = (&system.stream, &mut self.lane) {
            stream.inside(&system.output, lane, self.task.inside());
        }
    }

    fn leave_kernel(&mut self, system: &System, pc: u64) {
        if !self.in_kernel {
            return;
        }
        self.in_kernel = false;
        self.is_returning = false;
        self.turn_on(system, pc);
        self.task.saves().clear();
        if self.task.is_busy() {
            let ended = self.task.end_all(CallEnd::Abandoned, &self.processor.totals);
            self.write(system, ended);
        }
    }

    /// Adds the instructions that programs have executed since they were counted last.
    pub(super) fn count_programs(&mut self, programs: &Unwatched) {
        let seen = programs.seen(u32::from(self.index));
        self.processor.totals.instructions += seen.wrapping_sub(self.of_programs);
        self.of_programs = seen;
    }

    fn interrupt(&mut self, system: &System, run: &Run) {
        let was_program = !std::mem::replace(&mut self.in_kernel, true);
        if run.role == Role::Interrupt {
            self.seen.interrupts += 1;
            self.seen.interrupts_while_off += u64::from(self.flag.interrupted());
        } else {
            self.seen.exceptions += 1;
        }
        self.task.interrupt(self.flag.is_on(), was_program, &self.processor.totals);
        if run.role == Role::Interrupt {
            self.task.is_by_hardware();
        }
        self.look_inside(system);
        self.awaits_push = system.uses_slots();
        self.turn_off(system, run.pc);
    }

    fn interrupt_returns(&mut self, system: &System, pc: u64, frame: Option<u64>) {
        let returned = self.task.interrupt_returns(frame, &self.processor.totals);
        self.awaits_push = self.task.awaits_push();
        match returned.interrupts_were_on {
            Some(were_on) => self.set_flag(system, pc, were_on),
            // Without frames, a return that ends no interrupt is one from a system call.
            None => {
                self.seen.unmatched_returns += u64::from(frame.is_some());
                self.is_returning = frame.is_none();
            }
        }
        self.write(system, returned.ended);
        // With frames, a return that ends no interrupt is one from a system call as well.
        let is_of_call = returned.interrupts_were_on.is_none() && frame.is_some();
        if returned.to_program || is_of_call {
            self.leave_kernel(system, pc);
        }
    }

    fn switched(&mut self, system: &System, address: u64) {
        let stack = stack_of(system, address);
        let Some(old) = self.stack.filter(|old| *old != stack) else { return };
        self.is_switching = false;
        self.seen.switches += 1;
        system.kernel.windows.into_iter().for_each(|region| self.end_piece(system, region));
        self.running.switched(stack, &system.tasks);
        self.task.suspend(&self.processor.totals);
        self.task = system.switch_task(old, std::mem::take(&mut self.task), stack);
        self.task.resume(&self.processor.totals);
        self.stack = Some(stack);
        // Bits above those of a program's addresses, so that no two programs share a line. The low bits stay unchanged.
        self.salt = stack >> 14 << 48;
        self.look_inside(system);
        self.awaits_push = self.task.awaits_push();
    }

    fn turn_off(&mut self, system: &System, pc: u64) {
        let totals = self.processor.totals;
        self.flag.turn_off(|| {
            let sequence = system.count_entry(system.kernel.interrupts_off?.0)?;
            Some(Span { sequence, from_pc: pc, totals })
        });
    }

    fn set_flag(&mut self, system: &System, pc: u64, is_on: Option<bool>) {
        match is_on {
            Some(true) => self.turn_on(system, pc),
            Some(false) => self.turn_off(system, pc),
            None => self.flag.lose(),
        }
    }

    fn turn_on(&mut self, system: &System, pc: u64) {
        let (Some(off), Some(region)) = (self.flag.turn_on(), system.kernel.interrupts_off) else { return };
        let totals = self.processor.totals;
        self.encoder.measured(&MeasuredCall {
            region,
            cpu: self.index,
            sequence: off.sequence,
            begun_at: off.totals.instructions,
            ended_at: totals.instructions,
            from_pc: off.from_pc,
            to_pc: pc,
            end: CallEnd::Returned,
            arm: Arm::Untouched,
            own: totals.since(&off.totals),
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
        });
        system.flush_full(&mut self.encoder);
    }

    /// A region's entry was reached, at `pc`.
    ///
    /// # Safety
    /// Only in the callback on the run that begins there.
    unsafe fn enter(&mut self, system: &System, region: u16, pc: u64) {
        let Some(site) = self.task.last_call() else { return };
        if self.task.is_loop(region, site) {
            return;
        }
        let Some(sequence) = system.count_entry(region) else { return };
        let arm =
            if self.task.is_inside() { Arm::Untouched } else { self.intervene(system, region, sequence) };
        let depth = self.task.depth_of(region);
        let keeps_accesses = system.keeps(region, sequence);
        // SAFETY: the caller's promise.
        let read = if keeps_accesses { unsafe { self.read_registers(system, pc) } } else { None };
        let open = Open {
            region,
            sequence,
            entered_at: system.tick(),
            site,
            begun_at: self.processor.totals.instructions,
            depth,
            level: self.task.level(),
            arm,
            own: Counts::default(),
            interrupts: 0,
            interrupt_instructions: 0,
            switches: 0,
            keeps_accesses,
            arguments: read.map(|read| read.arguments),
            kept: (keeps_accesses || system.learns_code()).then(CallDetail::default),
        };
        self.task.enter(open, &self.processor.totals);
        self.look_inside(system);
        let on_stack = read.map(|read| read.stack_pointer).or(system.uses_slots().then_some(site.slot));
        on_stack.into_iter().for_each(|address| self.note_stack(system, address));
    }

    /// The registers' values at the beginning of a kept call. Notes the address of the CPU's variables.
    ///
    /// # Safety
    /// As for [`Cpu::enter`].
    unsafe fn read_registers(&mut self, system: &System, pc: u64) -> Option<AtEntry> {
        let names = &system.machine.description().emulator_registers;
        // SAFETY: the caller's promise.
        let read = unsafe { self.registers.read(&system.api, names, true, pc) }?;
        if let Some(base) = read.base.filter(|base| self.noted_base != Some(*base)) {
            self.noted_base = Some(base);
            self.encoder.thread_base(base);
        }
        Some(read)
    }

    fn intervene(&mut self, system: &System, region: u16, sequence: u64) -> Arm {
        let arm = system.arm(region, sequence);
        match arm {
            Arm::Untouched => {}
            Arm::InvalidatedCode => self.processor.invalidate_code(),
            Arm::PrefetchedCode => self.processor.prefetch(&system.known_code(region)),
        }
        arm
    }
}

/// True for addresses of the kernel's own. With 64 bits these are the upper half, in which data may lie below all code.
fn is_of_kernel(system: &System, address: u64) -> bool {
    address >= system.kernel.entries.kernel_start.min(1 << 63)
}

/// The stack that an address lies on, by its lowest address.
fn stack_of(system: &System, address: u64) -> u64 {
    address & !(system.kernel.entries.stack_bytes.max(1) - 1)
}
