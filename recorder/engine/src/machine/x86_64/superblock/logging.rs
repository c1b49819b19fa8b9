//! Logs the values that a superblock's accesses follow from, and finds registers for that.

use super::helpers::Helpers;
use super::reading::Step;
use super::writer::Writer;
use crate::machine::x86_64::assembly::{Address, Gpr};
use crate::machine::x86_64::general_registers::LOG;
use crate::machine::x86_64::translate::accesses::{AddressForm, Planned};
use crate::machine::x86_64::translate::elements::Elements;
use crate::machine::x86_64::translate::reading::unlogged;
use crate::threads::slots::at;
use lineup_recording::native::derived::Value;
use lineup_recording::native::superblock::{AccessForm, Reckoned};

impl Writer<'_> {
    /// A register that the instruction does not use, borrowed during the instruction.
    pub(super) fn borrow(&mut self, helpers: &mut Helpers, pc: u64) -> Gpr {
        let register = helpers.take();
        if self.state.first.is_none() {
            self.code.store_slot(self.slot(at!(first)), register);
            self.state.first = Some(register.0);
        } else {
            self.code.store_slot(self.slot(at!(second)), register);
            self.state.second = Some(register.0);
        }
        self.mark(pc);
        register
    }

    pub(super) fn give_helpers_back(&mut self, pc: u64) {
        if let Some(second) = self.state.second {
            self.code.load_slot(Gpr(second), self.slot(at!(second)));
            self.state.second = None;
            self.mark(pc);
        }
        if let Some(first) = self.state.first {
            self.code.load_slot(Gpr(first), self.slot(at!(first)));
            self.state.first = None;
            self.mark(pc);
        }
    }

    /// A register with the program's value of the log's register.
    pub(super) fn own_value(&mut self, helpers: &mut Helpers, pc: u64) -> Gpr {
        if let Some(own) = helpers.own {
            return own;
        }
        let own = self.borrow(helpers, pc);
        self.code.load_slot(own, self.slot(at!(own.logged)));
        helpers.own = Some(own);
        own
    }

    /// The logged value that a register's value follows from. Without one, the register is logged, or other registers
    /// that it follows from, since more values may follow from those.
    fn value(&mut self, register: Gpr, helpers: &mut Helpers, pc: u64) -> Value {
        if let Some(value) = self.values.find(register, &mut self.made.derived) {
            return value;
        }
        let state = self.state;
        let is_own = |other: &Gpr| ![state.first, state.second].contains(&Some(other.0));
        let sources = self.values.sources(register, self.made.derived.len());
        if let Some(mut sources) = sources.filter(|sources| sources.iter().all(is_own)) {
            // It takes a register, which may hold another value.
            sources.sort_by_key(|source| *source == LOG);
            for source in sources {
                self.log_value(source, helpers, pc);
            }
            if let Some(value) = self.values.find(register, &mut self.made.derived) {
                return value;
            }
        }
        self.log_value(register, helpers, pc)
    }

    fn log_value(&mut self, register: Gpr, helpers: &mut Helpers, pc: u64) -> Value {
        let from = if register == LOG { self.own_value(helpers, pc) } else { register };
        let word = self.next_word();
        self.code.store(LOG, 8 * i32::from(word), from);
        self.values.set_word(register, word);
        Value { word, distance: 0 }
    }

    pub(super) fn next_word(&mut self) -> u8 {
        self.words += 1;
        self.words - 1
    }

    /// Logs the values that the addresses of an instruction's accesses follow from.
    pub(super) fn log_accesses(&mut self, step: &Step, helpers: &mut Helpers) {
        let is_told = |plan: &Planned| plan.elements.is_none_or(|elements| elements.has_bits_alone());
        if step.plans.misses || !step.plans.all.iter().all(is_told) {
            self.out.unlogged.push(unlogged(&step.instruction, false));
        }
        let pc = step.instruction.ip();
        for plan in step.plans.all.iter().filter(|plan| is_told(plan)) {
            let mut access = self.reckoned(plan);
            match plan.place {
                AddressForm::Constant(address) => access.distance = address.cast_signed(),
                AddressForm::OfThread(distance) => (access.is_of_thread, access.distance) = (true, distance),
                AddressForm::Computed(address, is_of_thread) => {
                    access.is_of_thread = is_of_thread;
                    self.reckon(&mut access, address, helpers, pc);
                }
                AddressForm::Repeated(register) => {
                    let from = if register == LOG { self.own_value(helpers, pc) } else { register };
                    (access.base, access.index) = (self.next_word(), self.next_word());
                    self.code.store(LOG, 8 * i32::from(access.base), from);
                }
            }
            if let Some(elements) = plan.elements {
                access.mask = self.log_mask(elements, helpers, pc);
            }
            self.made.accesses.extend(both(plan, access));
        }
    }

    fn reckoned(&self, plan: &Planned) -> Reckoned {
        Reckoned {
            instruction: self.state.instructions,
            is_store: false,
            told: match (plan.place, plan.elements) {
                (AddressForm::Repeated(_), _) => AccessForm::Repeated,
                (_, Some(_)) => AccessForm::Masked,
                _ => AccessForm::Plain,
            },
            is_of_thread: false,
            base: 0,
            index: 0,
            scale_shift: 0,
            mask: 0,
            element_bytes: plan.elements.map_or(0, |elements| elements.element_bytes),
            size_bytes: plan.size_bytes.try_into().unwrap_or(u16::MAX),
            distance: 0,
        }
    }

    fn reckon(&mut self, access: &mut Reckoned, address: Address, helpers: &mut Helpers, pc: u64) {
        access.distance = address.distance.into();
        if let Some(base) = address.base {
            let value = self.value(base, helpers, pc);
            access.base = value.word;
            access.distance = access.distance.wrapping_add(value.distance);
        }
        if let Some((index, scale)) = address.index {
            let value = self.value(index, helpers, pc);
            access.index = value.word;
            access.scale_shift = scale.trailing_zeros() as u8;
            access.distance = access.distance.wrapping_add(value.distance.wrapping_mul(scale.into()));
        }
    }

    fn log_mask(&mut self, elements: Elements, helpers: &mut Helpers, pc: u64) -> u8 {
        let register = self.borrow(helpers, pc);
        elements.move_bits(&mut self.code, register);
        let word = self.next_word();
        self.code.store(LOG, 8 * i32::from(word), register);
        helpers.spare = Some(register);
        word
    }

    /// Logs the end of a string instruction.
    pub(super) fn log_ends(&mut self, step: &Step) {
        let first = self.made.accesses.len() - step.plans.all.len().min(self.made.accesses.len());
        for (number, plan) in step.plans.all.iter().enumerate() {
            if let AddressForm::Repeated(register) = plan.place {
                let word = self.made.accesses[first + number].index;
                self.code.store(LOG, 8 * i32::from(word), register);
            }
        }
    }
}

/// A load and a store of the same address, or one of them.
fn both(plan: &Planned, access: Reckoned) -> impl Iterator<Item = Reckoned> {
    [(plan.is_load, false), (plan.is_store, true)]
        .into_iter()
        .filter(|(is_there, _)| *is_there)
        .map(move |(_, is_store)| Reckoned { is_store, ..access })
}
