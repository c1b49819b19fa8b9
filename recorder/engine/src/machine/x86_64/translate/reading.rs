//! Selects the instructions of a block, and the registers that they leave to it.

use super::step::{Ending, Step};
use super::{accesses, counted_jumps, pieces};
use crate::machine::x86_64::assembly::{Gpr, RCX, RSP};
use crate::machine::x86_64::general_registers::gpr;
use crate::machine::x86_64::restarts::{self, Beginning};
use crate::machine::x86_64::translate::state_saves;
use crate::machine::{Task, Unlogged};
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess,
};
use lineup_recording::native::Definition;

/// The most words of the log that a block fills.
const MOST_WORDS: usize = 400;

/// The general registers that an instruction uses, as bits.
pub(crate) fn used(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> u16 {
    let info = factory.info(instruction);
    let registers = info.used_registers().iter().map(|used| used.register());
    registers.filter_map(gpr).fold(0, |all, register| all | 1 << register.0)
}

/// Two unused registers: for the log's end, and for addresses. Every instruction can name the second where possible.
fn free(used: u16) -> Option<(Gpr, Gpr)> {
    const FOR_ADDRESSES: [u8; 14] = [7, 6, 3, 5, 2, 0, 8, 9, 10, 11, 12, 13, 14, 15];
    let is_free = |number: &u8| used & 1 << *number == 0;
    let scratch = FOR_ADDRESSES.into_iter().find(is_free)?;
    let log = FOR_ADDRESSES.into_iter().rev().find(|number| is_free(number) && *number != scratch)?;
    Some((Gpr(log), Gpr(scratch)))
}

/// The instructions and the accesses of a block.
pub(crate) struct Read {
    pub(crate) steps: Vec<Step>,
    pub(crate) ending: Ending,
    /// The next instruction, when it cannot be translated.
    pub(crate) lost: Option<Unlogged>,
    /// The registers that are borrowed.
    pub(crate) log: Gpr,
    pub(crate) scratch: Gpr,
    /// `rcx` is borrowed as well.
    pub(crate) holds_counter: bool,
    /// Its first instruction keeps the processor's state, or loads it.
    pub(crate) begins_with_state: bool,
    /// It may begin a restartable sequence.
    pub(crate) begins_sequence: bool,
    /// The part of its accesses that is known.
    pub(crate) definition: Definition,
}

/// The instructions of the block at the task's address, at most this many.
pub(crate) fn read(task: &Task<'_>, most: usize) -> Read {
    let mut decoder = Decoder::with_ip(64, task.bytes, task.pc, DecoderOptions::NONE);
    let mut factory = InstructionInfoFactory::new();
    let (mut steps, mut all_used, mut words) = (Vec::new(), 0, 1);
    let (mut log, mut scratch) = (Gpr(15), Gpr(7));
    let mut ending = Ending::Falls;
    let mut lost = None;
    let mut begins_with_state = false;
    let mut begins_sequence = false;
    let mut definition = Definition::default();
    if most == 0 {
        // Not even one instruction can be moved.
        lost = Some(unlogged(&decoder.decode(), true));
        ending = Ending::Lost;
    }
    while steps.len() < most && words < MOST_WORDS {
        let instruction = decoder.decode();
        if instruction.is_invalid() || !is_translatable(&instruction) {
            lost = steps.is_empty().then(|| unlogged(&instruction, true));
            ending = if steps.is_empty() { Ending::Lost } else { Ending::Falls };
            break;
        }
        let beginning = restarts::beginning(&mut factory, &instruction, (task.zones, task.is_changeable));
        if beginning == Beginning::Unclear {
            lost = steps.is_empty().then(|| unlogged(&instruction, true));
            ending = if steps.is_empty() { Ending::Lost } else { Ending::Falls };
            break;
        }
        if beginning == Beginning::Store && !steps.is_empty() {
            break;
        }
        begins_sequence |= beginning == Beginning::Store;
        let with_this = all_used | used(&mut factory, &instruction);
        let Some(registers) = free(with_this) else { break };
        (log, scratch) = registers;
        all_used = with_this;
        let mut plans = accesses::plan(&mut factory, &instruction);
        plans.is_timed &= task.whole.is_none();
        let state = if plans.misses { state_saves::plan(&mut factory, &instruction) } else { None };
        if state.is_some() && !steps.is_empty() {
            break;
        }
        // An instruction that hands over first for another reason does not hand over for its state as well.
        let state = state.filter(|_| !task.is_entry);
        begins_with_state |= state.is_some();
        plans = state.unwrap_or(plans);
        let is_told = !plans.misses || instruction.flow_control() == FlowControl::Next;
        if !is_told || (task.whole.is_some() && !pieces::has_room(&plans)) {
            lost = steps.is_empty().then(|| unlogged(&instruction, true));
            ending = if steps.is_empty() { Ending::Lost } else { Ending::Falls };
            break;
        }
        let stands_alone = task.whole.is_some() && pieces::stands_alone(task, &plans);
        if stands_alone && !steps.is_empty() {
            break;
        }
        words += plans.words();
        let target = plans.all.iter().find(|plan| plan.is_load).map(|plan| plan.place);
        steps.push(Step { instruction, plans, pieces: Vec::new(), has_idle_flags: false, target });
        if instruction.flow_control() != FlowControl::Next {
            ending = Ending::Flow;
            break;
        }
        if stands_alone {
            definition.stands_alone = true;
            break;
        }
        if task.is_changeable && may_change_next(&mut factory, &instruction) {
            break;
        }
    }
    let Some(whole) = task.whole else {
        let holds_counter = false;
        return Read {
            steps,
            ending,
            lost,
            log,
            scratch,
            holds_counter,
            begins_with_state,
            begins_sequence,
            definition,
        };
    };
    steps.iter_mut().flat_map(|step| &mut step.plans.all).for_each(|plan| plan.is_valued = false);
    if !definition.stands_alone {
        definition.accesses = pieces::plan(&mut steps, whole.levels.data);
    }
    pieces::mark_idle_flags(&mut steps);
    let holds_counter = all_used & 1 << RCX.0 == 0;
    Read { steps, ending, lost, log, scratch, holds_counter, begins_with_state, begins_sequence, definition }
}

/// Whether an instruction of code that may change may write the instruction behind it: a block ends there, and the next
/// one is checked against the code as it is then. Code is not reached by the stack pointer.
pub(crate) fn may_change_next(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::Next
        && factory.info(instruction).used_memory().iter().any(|used| {
            let reads = [OpAccess::None, OpAccess::Read, OpAccess::CondRead, OpAccess::NoMemAccess];
            !reads.contains(&used.access()) && gpr(used.base()) != Some(RSP)
        })
}

pub(crate) fn unlogged(instruction: &Instruction, is_lost: bool) -> Unlogged {
    let mnemonic = format!("{:?}", instruction.mnemonic()).to_lowercase();
    Unlogged { pc: instruction.ip(), mnemonic, is_lost }
}

pub(crate) fn is_translatable(instruction: &Instruction) -> bool {
    use Opcode::{
        Call_rel32_64, Call_rm64, Jmp_rel8_64, Jmp_rel32_64, Jmp_rm64, Retnq, Retnq_imm16, Syscall,
    };
    let code = instruction.code();
    match instruction.flow_control() {
        FlowControl::Next => !matches!(
            code,
            Opcode::Wrfsbase_r32
                | Opcode::Wrfsbase_r64
                | Opcode::Wrgsbase_r32
                | Opcode::Wrgsbase_r64
                | Opcode::Enterq_imm16_imm8
        ),
        FlowControl::ConditionalBranch => {
            instruction.is_jcc_short_or_near() && instruction.op0_kind() == iced_x86::OpKind::NearBranch64
                || counted_jumps::is_counted(code)
        }
        FlowControl::UnconditionalBranch => matches!(code, Jmp_rel8_64 | Jmp_rel32_64),
        FlowControl::IndirectBranch => code == Jmp_rm64,
        FlowControl::Return => matches!(code, Retnq | Retnq_imm16),
        FlowControl::Call => matches!(code, Call_rel32_64 | Syscall),
        FlowControl::IndirectCall => code == Call_rm64,
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => false,
    }
}
