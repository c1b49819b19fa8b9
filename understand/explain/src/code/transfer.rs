//! The effect of one instruction on the known facts about registers and stack slots.

use crate::code::abstract_value::{AbstractValue, Number, Origin, Pointer, SymbolicId};
use crate::code::callees::Parameter;
use crate::code::instruction::{Address, CallTarget, Convention, Expression, Flow, Instruction, Register};
use crate::types::congruence::Congruence;
use lineup_model::access::AccessKind;
use std::collections::BTreeMap;

/// The known facts at one place of a function.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct State {
    registers: Vec<AbstractValue>,
    /// Pointer-sized slots of the frame, by distance from the canonical frame address.
    slots: BTreeMap<i64, AbstractValue>,
}

/// Facts that registers do not contain.
pub(crate) trait Surroundings {
    /// The value of a load whose address is known, from the type of the loaded data.
    fn loaded(&mut self, pc: u64, at: AbstractValue, size_bytes: u32, state: &State) -> AbstractValue;
    /// The register in which the called function returns the address that it returns to (i386 code that does not
    /// depend on its place asks for it this way).
    fn return_address_in(&mut self, target: CallTarget) -> Option<Register>;
    /// The task that a kernel runs.
    fn kernel_task(&mut self) -> AbstractValue;
    /// True for a called function that leaves all registers unchanged.
    fn keeps_registers(&mut self, target: CallTarget) -> bool;
    /// The pointers that the called function takes in registers.
    fn passed(&mut self, target: CallTarget) -> &[Parameter];
    /// Bytes of arguments that the called function takes off the stack (on i386 one that returns a structure).
    fn popped_bytes(&mut self, target: CallTarget) -> i64;
    /// The value that a call returns.
    fn returned(&mut self, target: CallTarget) -> AbstractValue;
}

impl State {
    /// Nothing known, for the registers that `convention` counts.
    pub(crate) fn nothing(convention: &Convention) -> Self {
        Self {
            registers: vec![AbstractValue::Nothing; usize::from(convention.registers)],
            slots: BTreeMap::new(),
        }
    }

    /// The value of a register.
    pub(crate) fn register(&self, register: Register) -> AbstractValue {
        if register == Register::ZERO {
            return AbstractValue::Number(Number::exactly(0));
        }
        self.registers.get(usize::from(register.0)).copied().unwrap_or(AbstractValue::Nothing)
    }

    /// Changes a register's value.
    pub(crate) fn set(&mut self, register: Register, held: AbstractValue) {
        if let Some(slot) = self.registers.get_mut(usize::from(register.0)) {
            *slot = held;
        }
    }

    /// The value of the slot at this distance from the canonical frame address.
    pub(crate) fn slot(&self, distance: i64) -> AbstractValue {
        self.slots.get(&distance).copied().unwrap_or(AbstractValue::Nothing)
    }

    /// Merges the facts of another path; true when that changed something. With `widen`, changed values are widened to
    /// cover every pass through a loop, so that the analysis terminates.
    pub(crate) fn merge(&mut self, other: &State, widen: bool) -> bool {
        let mut changed = false;
        let mut meet = |own: &mut AbstractValue, other: AbstractValue| {
            let joined = own.join(other.carried());
            if joined != *own {
                let new = if widen { joined.widened() } else { joined };
                changed |= new != *own;
                *own = new;
            }
        };
        for (own, other) in self.registers.iter_mut().zip(&other.registers) {
            meet(own, *other);
        }
        // Both are in order, and mostly the same slots.
        let mut own = self.slots.iter_mut();
        let mut next = own.next();
        let mut new = Vec::new();
        for (distance, other) in &other.slots {
            while next.as_ref().is_some_and(|(place, _)| *place < distance) {
                next = own.next();
            }
            match &mut next {
                Some((place, held)) if *place == distance => meet(held, *other),
                _ => {
                    let mut held = AbstractValue::Nothing;
                    meet(&mut held, *other);
                    new.push((*distance, held));
                }
            }
        }
        self.slots.extend(new);
        changed
    }

    /// The value of a sum.
    pub(crate) fn sum(&self, address: Address) -> AbstractValue {
        let displacement = Number::exactly(address.displacement);
        let Some((index, factor)) = address.index else {
            return match (address.base, address.is_thread_local) {
                (None, true) => AbstractValue::Thread(address.displacement),
                (Some(base), true) => match self.register(base) {
                    held @ AbstractValue::Pointer(_) => held.plus(displacement),
                    held => match held.as_number().exact() {
                        Some(offset) => AbstractValue::Thread(offset.wrapping_add(address.displacement)),
                        None => AbstractValue::Nothing,
                    },
                },
                (None, false) => AbstractValue::Number(displacement),
                (Some(base), false) => self.register(base).plus(displacement),
            };
        };
        if address.is_thread_local {
            return AbstractValue::Nothing;
        }
        let scaled = self.register(index);
        let Some(base) = address.base else {
            return if factor == 1 {
                scaled
            } else {
                AbstractValue::Number(scaled.as_number().times(factor))
            }
            .plus(displacement);
        };
        let held = self.register(base);
        if base == index && !held.is_address() {
            return AbstractValue::Number(held.as_number().times(factor.wrapping_add(1))).plus(displacement);
        }
        if let Some(copy) = of_cpu(held, scaled).filter(|_| factor == 1) {
            return copy.plus(displacement);
        }
        match (held, scaled) {
            (AbstractValue::Pointer(base), AbstractValue::Pointer(index))
                if factor == 1 && base.target == index.target =>
            {
                AbstractValue::Pointer(element_at(base, index))
            }
            (_, scaled) if scaled.is_address() && held.is_address() => {
                AbstractValue::Number(Number::any(SymbolicId(0)))
            }
            (held, scaled) if scaled.is_address() && factor == 1 => scaled.plus(held.as_number()),
            (AbstractValue::Nothing | AbstractValue::Untyped(_), AbstractValue::Number(number))
                if factor == 1 && looks_like_address(number) =>
            {
                AbstractValue::Number(number)
            }
            (held, scaled) => held.plus(scaled.as_number().times(factor)),
        }
        .plus(displacement)
    }

    fn expression(&self, pc: u64, expression: Expression, around: &mut impl Surroundings) -> AbstractValue {
        match expression {
            Expression::Unknown => AbstractValue::Nothing,
            Expression::Sum(address) => self.sum(address),
            Expression::Narrow(address) => match self.sum(address) {
                AbstractValue::Number(number) => AbstractValue::Number(number),
                _ => AbstractValue::Number(Number::any(SymbolicId(pc))),
            },
            Expression::Product { factors: [a, b], addend } => {
                let (a, b) = (self.register(a).as_number(), self.register(b).as_number());
                let product = match (a.exact(), b.exact()) {
                    (Some(factor), _) => b.times(factor),
                    (_, Some(factor)) => a.times(factor),
                    _ => Number::any(SymbolicId(pc)),
                };
                addend.map_or(AbstractValue::Number(product), |addend| self.register(addend).plus(product))
            }
            Expression::Masked { register, mask } => self.masked(register, mask),
            Expression::Inserted { register, shift, bits } => {
                match self.register(register).as_number().exact() {
                    Some(value) => {
                        let cleared = value & !(0xffff_i64 << shift);
                        AbstractValue::Number(Number::exactly(cleared | (i64::from(bits) << shift)))
                    }
                    None => AbstractValue::Nothing,
                }
            }
            Expression::Either(a, b) => self.register(a).carried().join(self.register(b).carried()),
            Expression::Loaded { at, size_bytes } => self.load(pc, at, size_bytes, around),
            Expression::PlusLoaded { register, at, size_bytes } => {
                let (own, loaded) = (self.register(register), self.load(pc, at, size_bytes, around));
                if let Some(copy) = of_cpu(own, loaded) {
                    return copy;
                }
                match (own.is_address(), loaded.is_address()) {
                    (true, true) => AbstractValue::Number(Number::any(SymbolicId(0))),
                    (_, true) => loaded.plus(own.as_number()),
                    _ => own.plus(loaded.as_number()),
                }
            }
            Expression::ThreadBase => AbstractValue::Thread(0),
            Expression::KernelTask => around.kernel_task(),
        }
    }

    /// Clearing low bits aligns downwards; of an address the alignment is lost, the region is not.
    fn masked(&self, register: Register, mask: i64) -> AbstractValue {
        let step = 1u64 << mask.trailing_zeros().min(62);
        match self.register(register) {
            AbstractValue::Stack(offset) if mask < 0 => {
                AbstractValue::Stack(Congruence::new(offset.residue, step))
            }
            AbstractValue::Pointer(pointer) if mask < 0 => {
                let offset = pointer.offset.plus(Congruence::new(0, 1));
                AbstractValue::Pointer(Pointer { offset, ..pointer })
            }
            _ => AbstractValue::Number(Number::any(SymbolicId(0)).times(step as i64)),
        }
    }

    fn load(&self, pc: u64, at: Address, size_bytes: u32, around: &mut impl Surroundings) -> AbstractValue {
        let place = self.sum(at);
        if let AbstractValue::Stack(distance) = place
            && let Some(distance) = distance.exact()
        {
            let slot = self.slot(distance);
            if slot != AbstractValue::Nothing {
                return slot;
            }
        }
        around.loaded(pc, place, size_bytes, self)
    }

    /// Executes one instruction.
    pub(crate) fn step(
        &mut self,
        instruction: &Instruction,
        convention: &Convention,
        around: &mut impl Surroundings,
    ) {
        let pc = instruction.address;
        let new: Vec<(Register, AbstractValue)> = instruction
            .sets
            .iter()
            .map(|(to, value)| (*to, self.expression(pc, *value, around).carried()))
            .collect();
        self.learn_from_stores(instruction, convention, around);
        self.stores(instruction, convention);
        for (to, held) in new {
            self.forget_symbol(SymbolicId(pc), held);
            let held = if instruction.is_conditional { predicated(self.register(to), held) } else { held };
            self.set(to, held);
        }
        if let Flow::Call(target) = instruction.flow
            && !around.keeps_registers(target)
        {
            if let Some(register) = around.return_address_in(target) {
                return self.set(register, AbstractValue::Number(Number::exactly(instruction.end() as i64)));
            }
            self.learn_from_call(around.passed(target));
            for register in convention.clobbered {
                self.set(Register(*register), AbstractValue::Nothing);
            }
            self.forget_symbol(SymbolicId(pc), AbstractValue::Untyped(SymbolicId(pc)));
            let returned = match around.returned(target) {
                AbstractValue::Nothing => AbstractValue::Untyped(SymbolicId(pc)),
                known => known,
            };
            self.set(convention.result, returned);
            let above = Number::exactly(around.popped_bytes(target));
            self.set(convention.stack_pointer, self.register(convention.stack_pointer).plus(above));
        }
    }

    /// A value of no known type that is stored where a pointer belongs is that pointer, in every place that holds it.
    fn learn_from_stores(
        &mut self,
        instruction: &Instruction,
        convention: &Convention,
        around: &mut impl Surroundings,
    ) {
        for touch in instruction.touches.iter().filter(|touch| touch.kind == AccessKind::Store) {
            let Some(from) = touch.from.filter(|_| touch.size_bytes == convention.pointer_bytes) else {
                continue;
            };
            if matches!(self.register(from), AbstractValue::Untyped(_)) {
                let place = self.sum(touch.at);
                let there = around.loaded(instruction.address, place, touch.size_bytes, self);
                if matches!(there, AbstractValue::Pointer(_)) {
                    self.learn(from, there);
                }
            }
        }
    }

    /// A value of no known type that is passed as a pointer is that pointer, in every place that holds it.
    fn learn_from_call(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            if matches!(self.register(parameter.register), AbstractValue::Untyped(_)) {
                self.learn(parameter.register, fresh(parameter.target, parameter.origin));
            }
        }
    }

    /// A register is found to hold this, and with it all that hold the same.
    pub(crate) fn learn(&mut self, register: Register, held: AbstractValue) {
        if let AbstractValue::Untyped(symbol) = self.register(register)
            && symbol != SymbolicId(0)
        {
            let is_same = |known: &&mut AbstractValue| **known == AbstractValue::Untyped(symbol);
            let all = self.registers.iter_mut().chain(self.slots.values_mut());
            all.filter(is_same).for_each(|known| *known = held.carried());
        }
        self.set(register, held);
    }

    fn stores(&mut self, instruction: &Instruction, convention: &Convention) {
        let stores = instruction.touches.iter().filter(|touch| touch.kind == AccessKind::Store);
        let written: Vec<(i64, u32, AbstractValue)> = stores
            .filter_map(|touch| match self.sum(touch.at) {
                AbstractValue::Stack(distance) => {
                    let held =
                        touch.from.map_or(AbstractValue::Nothing, |from| self.register(from).carried());
                    Some((distance.exact()?, touch.size_bytes, held))
                }
                _ => None,
            })
            .collect();
        let pointer = i64::from(convention.pointer_bytes);
        for (distance, size, held) in written {
            let end = distance.saturating_add(i64::from(size));
            let stale: Vec<i64> =
                self.slots.range(distance.saturating_sub(pointer - 1)..end).map(|(slot, _)| *slot).collect();
            for slot in stale {
                self.slots.remove(&slot);
            }
            if i64::from(size) == pointer && held != AbstractValue::Nothing {
                self.slots.insert(distance, held);
            }
        }
    }

    /// An instruction that runs again makes a new unknown; older copies no longer relate to it.
    fn forget_symbol(&mut self, symbol: SymbolicId, new: AbstractValue) {
        let of = |held: &AbstractValue| match held {
            AbstractValue::Number(number) => number.symbol,
            AbstractValue::Untyped(symbol) => *symbol,
            _ => SymbolicId(0),
        };
        if of(&new) != symbol {
            return;
        }
        for held in self.registers.iter_mut().chain(self.slots.values_mut()) {
            match held {
                AbstractValue::Number(number) if number.symbol == symbol => number.symbol = SymbolicId(0),
                AbstractValue::Untyped(own) if *own == symbol => *own = SymbolicId(0),
                _ => {}
            }
        }
    }
}

/// Compilers describe the index of a loop as the pointer that it stands for: added to the start, it gives that.
fn element_at(start: Pointer, index: Pointer) -> Pointer {
    let origin = if start.origin == index.origin { start.origin } else { Origin::Unknown };
    Pointer { offset: start.offset.plus(index.offset), origin, is_located: false, ..start }
}

/// A pointer to a variable of which every CPU has a copy, plus the distance of one CPU's copies: that copy.
fn of_cpu(one: AbstractValue, other: AbstractValue) -> Option<AbstractValue> {
    match (one, other) {
        (pointer @ AbstractValue::Pointer(_), AbstractValue::Thread(0))
        | (AbstractValue::Thread(0), pointer @ AbstractValue::Pointer(_)) => Some(pointer),
        _ => None,
    }
}

/// A number that is more likely a link address than an index.
fn looks_like_address(number: Number) -> bool {
    number.exact().is_some_and(|value| value >= 0x1000)
}

/// After a predicated instruction: the new value when it is an address, for an instruction that did not run leaves a
/// register that the code after it does not use as another address.
fn predicated(old: AbstractValue, new: AbstractValue) -> AbstractValue {
    match (old, new) {
        (AbstractValue::Pointer(a), AbstractValue::Pointer(b)) if a.target == b.target => old.join(new),
        (_, new) if new.is_address() => new,
        (old, AbstractValue::Number(number)) if old.is_address() && number.exact().is_some() => old,
        (AbstractValue::Number(_), AbstractValue::Number(_)) => old.join(new),
        (_, new) => new,
    }
}

/// A pointer to the start of an object that a load or call gave.
pub(crate) fn fresh(target: crate::types::catalog::Ty, origin: Origin) -> AbstractValue {
    AbstractValue::Pointer(Pointer::new(target, Congruence::exactly(0), origin))
}
