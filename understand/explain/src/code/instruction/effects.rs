//! The effects of an instruction on registers and memory, in terms common to all machines.
//!
//! Only effects that matter for addresses are kept: copies, sums with constants and scaled registers, loads and stores.
//! Everything else that writes a register makes its value unknown. All expressions of one instruction are evaluated on
//! the registers as they were before it.

use lineup_model::access::AccessKind;
use lineup_model::machine::CodeMachine;

/// A register by its DWARF number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Register(pub u16);

impl Register {
    /// Stands for a register whose value is not followed, such as a vector of indices.
    pub const OPAQUE: Register = Register(u16::MAX);
    /// Stands for the register that always reads as zero.
    pub const ZERO: Register = Register(u16::MAX - 1);
}

/// The encoding of a stretch of code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InstructionSet {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    I386,
    /// 64-bit Arm.
    AArch64,
    /// 32-bit Arm, four bytes an instruction.
    A32,
    /// 32-bit Arm, two or four bytes an instruction.
    Thumb,
}

impl InstructionSet {
    /// The usual set of a machine (A32 on 32-bit Arm).
    pub fn usual(machine: CodeMachine) -> Self {
        match machine {
            CodeMachine::X86_64 => Self::X86_64,
            CodeMachine::I386 => Self::I386,
            CodeMachine::AArch64 => Self::AArch64,
            CodeMachine::Arm => Self::A32,
        }
    }
}

/// Base plus scaled index plus displacement. With neither register it is a link address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Address {
    /// Added unscaled.
    pub base: Option<Register>,
    /// Added after multiplication with the factor.
    pub index: Option<(Register, i64)>,
    /// Added last; a link address when program-counter relative.
    pub displacement: i64,
    /// True when the thread's base is added (`fs:` on x86-64, `gs:` on i386).
    pub is_thread_local: bool,
}

impl Address {
    /// A fixed link address, or a plain number.
    pub fn constant(value: i64) -> Self {
        Self { displacement: value, ..Self::default() }
    }

    /// A register plus a constant.
    pub fn of(base: Register, displacement: i64) -> Self {
        Self { base: Some(base), displacement, ..Self::default() }
    }

    /// A register times a factor.
    pub fn scaled(index: Register, factor: i64) -> Self {
        Self { index: Some((index, factor)), ..Self::default() }
    }
}

/// A register's new value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Expression {
    /// Something that is not followed.
    Unknown,
    /// A sum of full width: a copy, a constant, `lea`, addition.
    Sum(Address),
    /// A sum computed or cut to fewer bits than a pointer has.
    Narrow(Address),
    /// The product of two registers plus or minus a third.
    Product {
        /// Multiplied with each other.
        factors: [Register; 2],
        /// Added to the product.
        addend: Option<Register>,
    },
    /// A register with the bits outside `mask` cleared.
    Masked {
        /// The register.
        register: Register,
        /// The bits kept.
        mask: i64,
    },
    /// A register with 16 bits replaced (`movt`, `movk`).
    Inserted {
        /// The register.
        register: Register,
        /// Position of the lowest bit replaced.
        shift: u32,
        /// The bits put there.
        bits: u16,
    },
    /// Either of two registers (conditional moves).
    Either(Register, Register),
    /// The content of memory.
    Loaded {
        /// The address.
        at: Address,
        /// The number of bytes.
        size_bytes: u32,
    },
    /// A register plus the content of memory.
    PlusLoaded {
        /// The register.
        register: Register,
        /// The address.
        at: Address,
        /// The number of bytes.
        size_bytes: u32,
    },
    /// The thread's base address.
    ThreadBase,
    /// The address of the task that runs, which Linux for 64-bit Arm keeps in a register of its own. Programs cannot
    /// read it.
    KernelTask,
}

/// One access to memory that an instruction makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Touch {
    /// The address.
    pub at: Address,
    /// The number of bytes; 0 when the instruction does not say.
    pub size_bytes: u32,
    /// Load or store.
    pub kind: AccessKind,
    /// The register stored, when it is stored whole.
    pub from: Option<Register>,
}

/// The target of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallTarget {
    /// A link address.
    Direct(u64),
    /// The address held at this link address (a slot of the global offset table).
    Slot(u64),
    /// Not known from the instruction.
    Unknown,
}

/// The control flow after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To this link address.
    Jump(u64),
    /// To this link address or the next instruction.
    Branch(u64),
    /// To an address known only at run time.
    Indirect,
    /// Into another function and back.
    Call(CallTarget),
    /// Back to the caller.
    Return,
    /// Nowhere: a trap.
    Stop,
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Link address.
    pub address: u64,
    /// Length in bytes.
    pub length: u8,
    /// The registers set. A register appears once at most.
    pub sets: Vec<(Register, Expression)>,
    /// The accesses to memory.
    pub touches: Vec<Touch>,
    /// True when it may have no effect (predicated execution).
    pub is_conditional: bool,
    /// The control flow after it.
    pub flow: Flow,
}

impl Instruction {
    pub(super) fn new(address: u64, length: usize) -> Self {
        Self {
            address,
            length: length as u8,
            sets: Vec::new(),
            touches: Vec::new(),
            is_conditional: false,
            flow: Flow::Next,
        }
    }

    /// Link address of the next instruction.
    pub fn end(&self) -> u64 {
        self.address + u64::from(self.length)
    }

    /// Sets a register, replacing the value from an earlier rule.
    pub(super) fn set(&mut self, to: Register, value: Expression) {
        match self.sets.iter_mut().find(|(register, _)| *register == to) {
            Some(slot) => slot.1 = value,
            None => self.sets.push((to, value)),
        }
    }

    pub(super) fn touch(&mut self, at: Address, size_bytes: u32, kind: AccessKind, from: Option<Register>) {
        self.touches.push(Touch { at, size_bytes, kind, from });
    }
}

/// The rules of a machine's procedure call standard for registers.
#[derive(Clone, Copy, Debug)]
pub struct Convention {
    /// The stack pointer.
    pub stack_pointer: Register,
    /// Canonical frame address minus the stack pointer at a function's first instruction.
    pub frame_above_stack_bytes: i64,
    /// Register of an integer or pointer result.
    pub result: Register,
    /// Registers that a call may change.
    pub clobbered: &'static [u16],
    /// The number of tracked registers: the DWARF numbers below this.
    pub registers: u16,
    /// Size of a pointer in bytes.
    pub pointer_bytes: u32,
    /// True when memory at the thread's base holds the base's address.
    pub base_holds_itself: bool,
}
