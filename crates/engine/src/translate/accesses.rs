//! Which memory an instruction accesses, and how its addresses are found.

use super::gpr;
use crate::assembly::{Address, Gpr, RSP};
use iced_x86::{
    Code, CodeSize, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, Register, UsedMemory,
};

/// How an address is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// It is always the same.
    Constant(u64),
    /// So far from the thread's base.
    OfThread(i64),
    /// From registers; and from the thread's base.
    Computed(Address, bool),
    /// A string instruction repeats from where this register points, and leaves it at the end.
    Repeated(Gpr),
}

/// An access to be logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Planned {
    pub(super) place: Place,
    pub(super) size_bytes: u32,
    pub(super) is_load: bool,
    pub(super) is_store: bool,
    /// Its value is logged.
    pub(super) is_valued: bool,
    /// Which of its elements are accessed is logged.
    pub(super) mask: Option<Mask>,
}

/// A register that tells which elements are accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mask {
    number: u8,
    pub(super) element_bytes: u8,
    /// There are more than 16 elements.
    is_long: bool,
}

impl Mask {
    /// Adds `kmovw` or `kmovq`.
    pub(super) fn move_to(self, register: Gpr, code: &mut crate::assembly::Code) {
        let high = if register.0 < 8 { 0x80 } else { 0 };
        let (second, third) = if self.is_long { (0x61, 0x80 | 0x7b) } else { (0x61, 0x78) };
        code.put(&[0xc4, second | high, third, 0x93, 0xc0 | (register.0 & 7) << 3 | self.number]);
    }

    fn of(instruction: &Instruction, size: MemorySize) -> Option<Mask> {
        use Mnemonic::*;
        // These put elements together.
        let is_packing = matches!(
            instruction.mnemonic(),
            Vpcompressb
                | Vpcompressw
                | Vpcompressd
                | Vpcompressq
                | Vcompressps
                | Vcompresspd
                | Vpexpandb
                | Vpexpandw
                | Vpexpandd
                | Vpexpandq
                | Vexpandps
                | Vexpandpd
        );
        let element_bytes =
            u8::try_from(size.element_size()).ok().filter(|bytes| *bytes > 0 && !is_packing)?;
        let number = (instruction.op_mask() as u32).checked_sub(Register::K0 as u32)? as u8;
        let is_long = size.size() / usize::from(element_bytes) > 16;
        Some(Mask { number, element_bytes, is_long })
    }
}

/// The accesses of an instruction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Plans {
    pub(super) all: Vec<Planned>,
    /// There are more, which cannot be told.
    pub(super) misses: bool,
    /// The instruction synchronises threads: the time is logged before its first access.
    pub(super) is_timed: bool,
}

impl Plans {
    /// Words in the log.
    pub(super) fn words(&self) -> usize {
        let words = |plan: &Planned| match plan.place {
            Place::Repeated(_) => 2,
            _ if plan.mask.is_some() => 2,
            _ => 1 + usize::from(plan.is_valued) * (usize::from(plan.is_load) + usize::from(plan.is_store)),
        };
        usize::from(self.is_timed) + self.all.iter().map(words).sum::<usize>()
    }
}

/// The accesses of an instruction, loads first.
pub(super) fn plan(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Plans {
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
        // The emulator loads what `rdi` points to first; the processor's manual does not say.
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

/// `None` when it cannot be told, `Some(None)` when nothing is accessed.
fn planned(instruction: &Instruction, memory: &UsedMemory) -> Option<Option<Planned>> {
    let (is_load, is_store) = match memory.access() {
        OpAccess::None | OpAccess::NoMemAccess => return Some(None),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    };
    let cannot_tell = is_masked_move(instruction) || is_bit_string(instruction);
    if memory.vsib_size() != 0 || cannot_tell || memory.address_size() == CodeSize::Code32 {
        return None;
    }
    let is_repeated = instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix());
    let size = match memory.memory_size() {
        MemorySize::Unknown => instruction.memory_size(),
        size => size,
    };
    let size_bytes = u32::try_from(size.size()).ok().filter(|size| *size > 0)?;
    let of_thread = match memory.segment() {
        Register::FS => true,
        Register::GS => return None,
        _ => false,
    };
    if is_repeated {
        let register = gpr(memory.base()).filter(|_| !of_thread)?;
        return Some(Some(Planned {
            place: Place::Repeated(register),
            size_bytes,
            is_load,
            is_store,
            is_valued: false,
            mask: None,
        }));
    }
    let place = place(instruction, memory, of_thread)?;
    if instruction.has_op_mask() {
        let mask = Mask::of(instruction, size)?;
        return Some(Some(Planned {
            place,
            size_bytes,
            is_load,
            is_store,
            is_valued: false,
            mask: Some(mask),
        }));
    }
    Some(Some(Planned { place, size_bytes, is_load, is_store, is_valued: size_bytes == 8, mask: None }))
}

fn place(instruction: &Instruction, memory: &UsedMemory, of_thread: bool) -> Option<Place> {
    let mut distance = memory.displacement() as i64;
    let base = register(memory.base())?;
    let index = register(memory.index())?.map(|index| (index, memory.scale() as u8));
    // `pop` into memory computes its address with the stack pointer that it leaves.
    let is_written = memory.access() == OpAccess::Write;
    let pops = matches!(instruction.code(), Code::Pop_rm64 | Code::Pop_rm16) && is_written;
    if pops && base == Some(RSP) {
        distance += if instruction.code() == Code::Pop_rm64 { 8 } else { 2 };
    }
    match (base, index, of_thread) {
        (None, None, false) => Some(Place::Constant(distance as u64)),
        (None, None, true) => Some(Place::OfThread(distance)),
        _ => {
            let distance = i32::try_from(distance).ok()?;
            Some(Place::Computed(Address { base, index, distance }, of_thread))
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

fn is_masked_move(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(
        instruction.mnemonic(),
        Vmaskmovps | Vmaskmovpd | Vpmaskmovd | Vpmaskmovq | Maskmovq | Maskmovdqu | Vmaskmovdqu
    )
}

/// The bit may lie in other memory than the operand names.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::Code;
    use iced_x86::{Decoder, DecoderOptions};

    #[test]
    fn masks_are_moved_to_any_register() {
        for (is_long, expected) in
            [(false, iced_x86::Code::VEX_Kmovw_r32_kr), (true, iced_x86::Code::VEX_Kmovq_r64_kr)]
        {
            for register in (0..16).filter(|register| *register != 4) {
                let mut code = Code::default();
                Mask { number: 3, element_bytes: 1, is_long }.move_to(Gpr(register), &mut code);
                let instruction = Decoder::new(64, &code.bytes, DecoderOptions::NONE).decode();
                assert_eq!(instruction.code(), expected);
                assert_eq!(gpr(instruction.op0_register()), Some(Gpr(register)));
                assert_eq!(instruction.op1_register(), Register::K3);
            }
        }
    }
}
