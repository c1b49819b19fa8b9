//! Logs the time, the addresses and the values of an instruction.

use super::accesses::{AddressForm, Planned, Plans};
use super::block::Block;
use super::reading::unlogged;
use super::step::Step;
use crate::machine::x86_64::assembly::{Address, Gpr, RAX, RDX};
use crate::machine::x86_64::slot_registers::SlotRegisters;
use crate::threads::slots::at;
use lineup_recording::native::{DefinedAccess, Form};

impl Block<'_> {
    /// Logs the data known before an instruction. Returns the places of the addresses of stores whose values are to be
    /// logged after it, and the places for these values.
    pub(crate) fn log_before(&mut self, number: u8, step: &Step) -> Vec<(i32, i32)> {
        let mut stores = Vec::new();
        if step.plans.misses {
            self.out.definition.misses_accesses = true;
            self.out.unlogged.push(unlogged(&step.instruction, false));
        }
        if step.plans.is_timed {
            self.log_time(step.instruction.ip());
        }
        for (place, plan) in step.plans.all.iter().enumerate() {
            let mut accesses = plan.defined(number);
            if let Some(first) = accesses.first_mut().filter(|_| place == 0) {
                first.is_timed = step.plans.is_timed;
            }
            self.out.definition.accesses.extend(accesses);
            if let AddressForm::Repeated(register) = plan.place {
                let word = self.next_word();
                self.code.store(self.log, word, register);
                self.next_word();
                continue;
            }
            self.address(plan.place, step.instruction.ip());
            let address = self.next_word();
            self.code.store(self.log, address, self.scratch);
            if let Some(elements) = plan.elements {
                self.log_elements(elements);
            }
            if plan.is_load && plan.is_valued {
                self.code.load(self.scratch, self.scratch, 0);
                let value = self.next_word();
                self.code.store(self.log, value, self.scratch);
            }
            if plan.is_store && plan.is_valued {
                stores.push((address, self.next_word()));
            }
        }
        stores
    }

    /// Logs the time. The registers that it arrives in may be borrowed, so a slot holds it in between.
    fn log_time(&mut self, pc: u64) {
        let (rax, rdx) = (self.slot(at!(time_kept)), self.slot(at!(time_kept) + 8));
        let time = self.slot(at!(time));
        self.code.store_slot(rax, RAX);
        self.code.store_slot(rdx, RDX);
        self.mark(Some(pc), SlotRegisters::Timed);
        self.code.read_time();
        self.code.store_slot_half_of(time, RAX);
        self.code.store_slot_half_of(time + 4, RDX);
        self.code.load_slot(RAX, rax);
        self.code.load_slot(RDX, rdx);
        self.mark(Some(pc), SlotRegisters::Borrowed);
        self.code.load_slot(self.scratch, time);
        let word = self.next_word();
        self.code.store(self.log, word, self.scratch);
    }

    /// Puts an address into the register for addresses, before the instruction at `pc`.
    pub(crate) fn address(&mut self, place: AddressForm, pc: u64) {
        if self.task.whole.is_some() {
            return self.address_with_counter_kept(place, pc);
        }
        if self.address_within(place, 0) {
            self.add_base(self.log);
            self.code.load_slot(self.log, self.slot(at!(log)));
        }
    }

    /// Puts an address at this distance into the register for addresses. True when the thread's base is still to be
    /// added, see [`Block::add_base`].
    pub(crate) fn address_within(&mut self, place: AddressForm, distance: i32) -> bool {
        match place {
            AddressForm::Constant(address) => {
                self.code.move_value(self.scratch, address.wrapping_add_signed(distance.into()));
                false
            }
            AddressForm::OfThread(from) => {
                self.code.move_value(self.scratch, (from + i64::from(distance)) as u64);
                true
            }
            AddressForm::Computed(address, is_of_thread) => {
                match address.distance.checked_add(distance) {
                    Some(distance) => self.code.lea(self.scratch, Address { distance, ..address }),
                    None => {
                        self.code.lea(self.scratch, address);
                        self.code.lea_plus(self.scratch, self.scratch, distance);
                    }
                }
                is_of_thread
            }
            AddressForm::Repeated(register) => {
                self.code.lea_plus(self.scratch, register, distance);
                false
            }
        }
    }

    /// Adds the thread's base to the register for addresses, by way of another.
    pub(crate) fn add_base(&mut self, by: Gpr) {
        // The first word of a thread's block is its own address.
        self.code.load_slot(by, 0);
        self.code.lea(self.scratch, Address { base: Some(self.scratch), index: Some((by, 1)), distance: 0 });
    }
}

impl Plans {
    /// Registers that hold the end of a repeated instruction, and the words for them, counted from the instruction's
    /// first.
    pub(crate) fn repeated_ends(&self) -> impl Iterator<Item = (Gpr, i32)> {
        let registers = self.all.iter().filter_map(|plan| match plan.place {
            AddressForm::Repeated(register) => Some(register),
            _ => None,
        });
        registers.enumerate().map(|(number, register)| (register, 8 * (2 * number as i32 + 1)))
    }
}

impl Planned {
    /// The accesses in the definition's order: a load before a store.
    pub(crate) fn defined(&self, instruction: u8) -> Vec<DefinedAccess> {
        let access = |is_store, form| DefinedAccess {
            instruction,
            is_store,
            form,
            size_bytes: self.size_bytes,
            element_bytes: self.elements.map_or(0, |elements| elements.element_bytes),
            is_timed: false,
            distance: 0,
        };
        let first = match (self.place, self.is_valued) {
            (AddressForm::Repeated(_), _) => Form::Repeated,
            (_, true) => Form::Valued,
            (_, false) => self.elements.map_or(Form::Address, |elements| elements.form),
        };
        let again = if self.is_valued { Form::AgainValued } else { Form::Again };
        match (self.is_load, self.is_store) {
            (true, true) => vec![access(false, first), access(true, again)],
            (_, is_store) => vec![access(is_store, first)],
        }
    }
}
