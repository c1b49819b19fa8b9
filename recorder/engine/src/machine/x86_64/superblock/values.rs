//! Knowledge of registers within a superblock: the word of the record that a value follows from.

use crate::machine::x86_64::assembly::{Gpr, RSP};
use crate::machine::x86_64::superblock::register_results::{Operand, RegisterResult};
use crate::system::address_tables::Set;
use iced_x86::InstructionInfoFactory;
use lineup_recording::native::derived::{Derived, FIRST_DERIVED, MOST_DERIVED, Operation, Value};
use lineup_recording::native::superblock::STACK;

/// The most values that are computed for one.
const MOST_STEPS: usize = 16;

/// The number of the first value that an instruction produces. Lower numbers are the registers' initial values.
const FIRST_MADE: u32 = 16;
/// The most words that are logged in place of one: others may follow from them as well.
pub(super) const MOST_SOURCES: usize = 2;

/// A value that registers have, or had.
#[derive(Clone, Copy)]
pub(super) struct RegisterValue {
    /// The logged value that it follows from, if there is one.
    pub(super) value: Option<Value>,
    /// Its computation.
    pub(super) made: Option<RegisterResult>,
}

/// The values of all registers, by the register's number.
pub(super) struct Values {
    /// The numbers of their values: equal values have equal numbers.
    pub(super) all: [u32; 16],
    /// Knowledge of values, by number.
    pub(super) known: Vec<RegisterValue>,
    /// Addresses of the executed instructions.
    pub(super) passed: Set,
    /// One of them was executed again.
    pub(super) has_turned: bool,
    pub(super) factory: InstructionInfoFactory,
}

impl Values {
    /// Nothing is known except the stack pointer.
    pub(super) fn new() -> Values {
        let mut known = vec![RegisterValue { value: None, made: None }; FIRST_MADE as usize];
        known[usize::from(RSP.0)].value = Some(Value { word: STACK, distance: 0 });
        let all = std::array::from_fn(|number| number as u32);
        let (passed, has_turned) = (Set::default(), false);
        Values { all, known, passed, has_turned, factory: InstructionInfoFactory::new() }
    }

    pub(super) fn get(&self, register: Gpr) -> Option<Value> {
        self.known[self.number(register) as usize].value
    }

    /// Whether the stack pointer follows from a word, or from its initial value: no other value determines it.
    pub(super) fn is_stack_known(&self) -> bool {
        const LAST_DERIVED: u8 = FIRST_DERIVED - MOST_DERIVED as u8 + 1;
        self.get(RSP).is_some_and(|stack| !(LAST_DERIVED..=FIRST_DERIVED).contains(&stack.word))
    }

    /// The value that a register's value follows from, which may have to be computed.
    pub(super) fn find(&mut self, register: Gpr, derived: &mut Vec<Derived>) -> Option<Value> {
        let number = self.number(register);
        if let Some(value) = self.known[number as usize].value {
            return Some(value);
        }
        let has_room = derived.len() + MOST_STEPS <= MOST_DERIVED;
        (has_room && self.follows(number, &[])).then(|| self.work_out(number, derived))?
    }

    /// Registers whose values have to be logged to compute another's: the sources of its computation, as far back as
    /// registers still have them. `None` when it is to be logged itself.
    pub(super) fn sources(&self, register: Gpr, derived: usize) -> Option<Vec<Gpr>> {
        let wanted = self.number(register);
        let has_room = derived + MOST_STEPS <= MOST_DERIVED;
        let (mut sources, mut left) = (Vec::new(), MOST_STEPS);
        let is_made = has_room && self.known[wanted as usize].made.is_some();
        (is_made && self.gather(wanted, &mut sources, &mut left)).then_some(())?;
        let is_worth = match sources[..] {
            [one] => one != wanted,
            // A register's initial value is needed again in each turn of a loop.
            [one, other] => self.has_turned && (one < FIRST_MADE || other < FIRST_MADE),
            _ => false,
        };
        (is_worth && self.follows(wanted, &sources)).then_some(())?;
        sources.iter().map(|source| self.holder(*source)).collect()
    }

    /// Gathers values that registers have, and that another follows from; false when there are none.
    pub(super) fn gather(&self, number: u32, sources: &mut Vec<u32>, left: &mut usize) -> bool {
        if self.known[number as usize].value.is_some() || sources.contains(&number) {
            return true;
        }
        *left = left.saturating_sub(1);
        if let Some(made) = self.known[number as usize].made.filter(|made| *left > 0 && !made.is_byte()) {
            let before = sources.len();
            if made.numbers().all(|operand| self.gather(operand, sources, left)) {
                return true;
            }
            sources.truncate(before);
        }
        let is_held = self.holder(number).is_some();
        sources.extend(Some(number).filter(|_| is_held));
        is_held
    }

    /// A register that has a value.
    pub(super) fn holder(&self, number: u32) -> Option<Gpr> {
        self.all.iter().position(|own| *own == number).map(|holder| Gpr(holder as u8))
    }

    /// Whether a value follows from the logged ones and `also`, in few enough steps.
    pub(super) fn follows(&self, number: u32, also: &[u32]) -> bool {
        let mut left = MOST_STEPS;
        let mut open = vec![number];
        while let Some(number) = open.pop() {
            let known = &self.known[number as usize];
            if known.value.is_some() || also.contains(&number) {
                continue;
            }
            let Some(made) = known.made.filter(|_| left > 0) else { return false };
            left -= 1;
            open.extend(made.numbers());
        }
        true
    }

    /// Computes a value that follows from others.
    pub(super) fn work_out(&mut self, number: u32, derived: &mut Vec<Derived>) -> Option<Value> {
        let known = self.known[number as usize];
        if known.value.is_some() {
            return known.value;
        }
        let made = known.made?;
        let mut operand = |operand: Operand| match operand {
            Operand::Number(number) => self.work_out(number, derived),
            Operand::Constant(constant) => Some(Value::constant(constant)),
        };
        let (first, second) = (operand(made.first)?, operand(made.second)?);
        let value = match (made.operation, made.is_half) {
            (Operation::Add, false) if second.word == 0 => first.plus(second.distance),
            (Operation::Add, false) if first.word == 0 => second.plus(first.distance),
            (operation, is_half) => {
                derived.push(Derived { operation, is_half, first, second });
                Value { word: FIRST_DERIVED - (derived.len() - 1) as u8, distance: 0 }
            }
        };
        self.known[number as usize].value = Some(value);
        Some(value)
    }

    /// The register's value is a word of the record.
    pub(super) fn set_word(&mut self, register: Gpr, word: u8) {
        let number = self.number(register) as usize;
        self.known[number].value = Some(Value { word, distance: 0 });
    }

    /// The number of a register's value.
    pub(super) fn number(&self, register: Gpr) -> u32 {
        self.all[usize::from(register.0)]
    }

    /// The number of a computed value: the same if it was computed before.
    pub(super) fn make(&mut self, made: RegisterResult) -> u32 {
        let value = match (made.first, made.second) {
            (Operand::Number(first), Operand::Constant(distance)) if made.is_sum() => {
                self.known[first as usize].value.map(|value| value.plus(distance))
            }
            (Operand::Constant(first), Operand::Constant(second)) => {
                let [first, second] = [first, second].map(i64::cast_unsigned);
                Some(Value::constant(made.operation.of(made.is_half, first, second).cast_signed()))
            }
            _ => None,
        };
        let same = self.known.iter().position(|known| known.made == Some(made));
        same.map_or_else(|| self.add(RegisterValue { value, made: Some(made) }), |same| same as u32)
    }

    /// The constant of a number, or the number.
    pub(super) fn operand(&self, number: u32) -> Operand {
        match self.known[number as usize].value {
            Some(Value { word: 0, distance }) => Operand::Constant(distance),
            _ => Operand::Number(number),
        }
    }

    /// The number of a constant.
    pub(super) fn constant(&mut self, constant: i64) -> u32 {
        self.add(RegisterValue { value: Some(Value::constant(constant)), made: None })
    }

    /// Whether a value has at most 32 bits.
    pub(super) fn is_half(&self, number: u32) -> bool {
        self.known[number as usize].made.is_some_and(|made| made.is_half)
    }

    pub(super) fn add(&mut self, known: RegisterValue) -> u32 {
        self.known.push(known);
        self.known.len() as u32 - 1
    }

    /// The register has another value.
    pub(super) fn set(&mut self, register: Gpr, value: Option<Value>) {
        self.all[usize::from(register.0)] = self.add(RegisterValue { value, made: None });
    }
}
