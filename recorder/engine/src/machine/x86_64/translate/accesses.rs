//! The memory that an instruction accesses, and the form of its addresses.

use super::elements::Elements;
use crate::machine::x86_64::assembly::{Address, Gpr, RSP};
use crate::machine::x86_64::general_registers::gpr;
use iced_x86::{
    Code, CodeSize, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, Register, UsedMemory,
};
use lineup_recording::native::DefinedAccess;

/// The form of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AddressForm {
    /// A constant.
    Constant(u64),
    /// Distance from the thread's base.
    OfThread(i64),
    /// From registers, and optionally from the thread's base.
    Computed(Address, bool),
    /// A string instruction repeats from this register's address on, and leaves the end in it.
    Repeated(Gpr),
}

/// An access to be logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Planned {
    pub(crate) place: AddressForm,
    pub(crate) size_bytes: u32,
    pub(crate) is_load: bool,
    pub(crate) is_store: bool,
    /// Its value is logged.
    pub(crate) is_valued: bool,
    /// The accessed elements, if only some are accessed, are logged.
    pub(crate) elements: Option<Elements>,
}

/// The accesses of an instruction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Plans {
    pub(crate) all: Vec<Planned>,
    /// There are more accesses, which cannot be determined.
    pub(crate) misses: bool,
    /// The instruction synchronises threads: the time is logged before its first access.
    pub(crate) is_timed: bool,
}

impl Plans {
    /// Words in the log.
    pub(crate) fn words(&self) -> usize {
        let words = |plan: &Planned| plan.defined(0).iter().map(DefinedAccess::words).sum::<usize>();
        usize::from(self.is_timed) + self.all.iter().map(words).sum::<usize>()
    }
}

/// The accesses of an instruction, loads first.
pub(crate) fn plan(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Plans {
    let mut plans = Plans::default();
    if accesses_nothing(instruction) {
        return plans;
    }
    let info = factory.info(instruction);
    for memory in info.used_memory() {
        match planned(instruction, memory) {
            Some(Some(plan)) => plans.all.push(plan),
            Some(None) => {}
            None => plans.misses = true,
        }
    }
    plans.all.sort_by_key(|plan| !plan.is_load);
    if is_comparison(instruction) {
        // The emulator loads the operand at `rdi` first; the processor's manual gives no order.
        plans.all.reverse();
    }
    plans.is_timed = synchronises(instruction) && !plans.all.is_empty();
    plans
}

/// Names memory without accessing it.
fn accesses_nothing(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Lea | Nop
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            | Prefetch
            | Prefetchwt1
            | Clflush
            | Clflushopt
            | Clwb
            | Cldemote
    )
}

/// `None` when it cannot be determined, `Some(None)` when nothing is accessed.
fn planned(instruction: &Instruction, memory: &UsedMemory) -> Option<Option<Planned>> {
    let (is_load, is_store) = match memory.access() {
        OpAccess::None | OpAccess::NoMemAccess => return Some(None),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    };
    if is_bit_string(instruction) || memory.address_size() == CodeSize::Code32 {
        return None;
    }
    let is_repeated = instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
    let size = match memory.memory_size() {
        MemorySize::Unknown => instruction.memory_size(),
        size => size,
    };
    let size_bytes = match size {
        // The bytes after that stay unchanged.
        MemorySize::Fxsave_512Byte | MemorySize::Fxsave64_512Byte => 416,
        _ => u32::try_from(size.size()).ok().filter(|size| *size > 0)?,
    };
    let of_thread = match memory.segment() {
        Register::FS => true,
        Register::GS => return None,
        _ => false,
    };
    if is_repeated {
        let register = gpr(memory.base()).filter(|_| !of_thread)?;
        return Some(Some(Planned {
            place: AddressForm::Repeated(register),
            size_bytes,
            is_load,
            is_store,
            is_valued: false,
            elements: None,
        }));
    }
    let elements = Elements::of(instruction, memory, size)?;
    let place = place(instruction, memory, of_thread)?;
    let is_valued = size_bytes == 8 && elements.is_none();
    Some(Some(Planned { place, size_bytes, is_load, is_store, is_valued, elements }))
}

pub(crate) fn place(instruction: &Instruction, memory: &UsedMemory, of_thread: bool) -> Option<AddressForm> {
    let mut distance = memory.displacement() as i64;
    let base = register(memory.base())?;
    // A gather's indices are no part of the address that is logged.
    let index = match memory.vsib_size() {
        0 => register(memory.index())?.map(|index| (index, memory.scale() as u8)),
        _ => None,
    };
    // `pop` into memory computes its address with its final stack pointer.
    let is_written = memory.access() == OpAccess::Write;
    let pops = matches!(instruction.code(), Code::Pop_rm64 | Code::Pop_rm16) && is_written;
    if pops && base == Some(RSP) {
        distance += if instruction.code() == Code::Pop_rm64 { 8 } else { 2 };
    }
    match (base, index, of_thread) {
        (None, None, false) => Some(AddressForm::Constant(distance as u64)),
        (None, None, true) => Some(AddressForm::OfThread(distance)),
        _ => {
            let distance = i32::try_from(distance).ok()?;
            Some(AddressForm::Computed(Address { base, index, distance }, of_thread))
        }
    }
}

/// `None` for one that is no general register; `Some(None)` for none.
fn register(register: Register) -> Option<Option<Gpr>> {
    match register {
        Register::None => Some(None),
        register if register.is_gpr64() => gpr(register).map(Some),
        _ => None,
    }
}

/// The bit may lie in other memory than the operand's own.
fn is_bit_string(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(instruction.mnemonic(), Bt | Btc | Btr | Bts)
        && instruction.op1_kind() == iced_x86::OpKind::Register
}

/// Other threads see what it accesses before or after, as a whole: `xchg` with memory does so without a prefix.
fn synchronises(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg
}

/// Compares two strings.
fn is_comparison(instruction: &Instruction) -> bool {
    matches!(
        instruction.code(),
        Code::Cmpsb_m8_m8 | Code::Cmpsw_m16_m16 | Code::Cmpsd_m32_m32 | Code::Cmpsq_m64_m64
    )
}
