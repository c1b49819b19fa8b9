//! A function's instructions as basic blocks.

use crate::code::instruction::{CallTarget, Convention, Flow, Instruction, InstructionSet, decode};
use crate::error::ExplainError;
use crate::images::image::Image;
use lineup_model::program::Function;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// The blocks of a function.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Instructions, sorted by address.
    pub instructions: Vec<Instruction>,
    /// Each block: its instructions, by index.
    pub blocks: Vec<Block>,
    /// The registers' roles.
    pub convention: Convention,
}

/// Instructions that always run one after the other.
#[derive(Debug)]
pub(crate) struct Block {
    /// Indices into the instructions.
    pub range: Range<usize>,
    /// Blocks that may run next.
    pub next: Vec<usize>,
}

/// Functions that do not return, so that nothing flows past a call of them.
const NEVER_RETURN: &[&str] = &[
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "__assert_fail",
    "__stack_chk_fail",
    "__fortify_fail",
    "__chk_fail",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "_Unwind_Resume",
    "__cxa_throw",
    "__cxa_rethrow",
    "__cxa_bad_cast",
    "pthread_exit",
];

impl Graph {
    /// Decodes a function. `None` when its code is not in the image or of a machine that is not read.
    ///
    /// # Errors
    /// When the disassembler fails.
    pub(crate) fn of(image: &Image<'_>, function: &Function) -> Result<Option<Graph>, ExplainError> {
        let mut instructions: Vec<Instruction> = Vec::new();
        let mut set: Option<InstructionSet> = None;
        for range in &function.ranges {
            for (run, run_set) in image.code_runs(range) {
                let Some(bytes) = image.bytes(&run) else { continue };
                instructions.extend(decode(run_set, run.start, bytes)?);
                set = set.or(Some(run_set));
            }
        }
        instructions.sort_by_key(|instruction| instruction.address);
        instructions.dedup_by_key(|instruction| instruction.address);
        let Some(set) = set.filter(|_| !instructions.is_empty()) else { return Ok(None) };
        for instruction in &mut instructions {
            if never_returns(image, instruction.flow) {
                instruction.flow = Flow::Stop;
            }
        }
        let blocks = blocks(&instructions);
        Ok(Some(Graph { instructions, blocks, convention: Convention::of(set) }))
    }

    /// The block that starts at the function's entry.
    pub(crate) fn entry_block(&self, entry: u64) -> Option<usize> {
        self.blocks.iter().position(|block| {
            self.instructions.get(block.range.start).is_some_and(|first| first.address == entry)
        })
    }
}

fn never_returns(image: &Image<'_>, flow: Flow) -> bool {
    let name = match flow {
        Flow::Call(CallTarget::Direct(target)) => image.callee_name(target),
        _ => None,
    };
    name.is_some_and(|name| {
        let plain = name.split('@').next().unwrap_or(name);
        NEVER_RETURN.contains(&plain) || plain.contains("core9panicking")
    })
}

fn blocks(instructions: &[Instruction]) -> Vec<Block> {
    let index_of: HashMap<u64, usize> =
        instructions.iter().enumerate().map(|(index, instruction)| (instruction.address, index)).collect();
    let mut leaders = BTreeSet::from([0]);
    for (index, instruction) in instructions.iter().enumerate() {
        if let Flow::Jump(target) | Flow::Branch(target) = instruction.flow {
            leaders.extend(index_of.get(&target));
        }
        let follows = instructions.get(index + 1).is_some_and(|next| next.address == instruction.end());
        if !follows || !matches!(instruction.flow, Flow::Next | Flow::Call(_)) {
            leaders.insert(index + 1);
        }
    }
    leaders.retain(|leader| *leader < instructions.len());
    let starts: Vec<usize> = leaders.into_iter().collect();
    let block_of: HashMap<usize, usize> =
        starts.iter().enumerate().map(|(block, start)| (*start, block)).collect();
    let mut blocks: Vec<Block> = starts
        .iter()
        .enumerate()
        .map(|(block, start)| {
            let end = starts.get(block + 1).copied().unwrap_or(instructions.len());
            let next = successors(instructions, *start..end, &index_of, &block_of);
            Block { range: *start..end, next }
        })
        .collect();
    connect_indirect(instructions, &mut blocks);
    blocks
}

fn successors(
    instructions: &[Instruction],
    range: Range<usize>,
    index_of: &HashMap<u64, usize>,
    block_of: &HashMap<usize, usize>,
) -> Vec<usize> {
    let Some(last) = instructions.get(range.end.wrapping_sub(1)) else { return Vec::new() };
    let block_at = |address: u64| index_of.get(&address).and_then(|index| block_of.get(index)).copied();
    let fallthrough = || block_at(last.end());
    match last.flow {
        Flow::Next | Flow::Call(_) => fallthrough().into_iter().collect(),
        Flow::Jump(target) => {
            let past = last.is_conditional.then(fallthrough).flatten();
            block_at(target).into_iter().chain(past).collect()
        }
        Flow::Branch(target) => block_at(target).into_iter().chain(fallthrough()).collect(),
        Flow::Indirect | Flow::Return if last.is_conditional => fallthrough().into_iter().collect(),
        Flow::Indirect | Flow::Return | Flow::Stop => Vec::new(),
    }
}

/// Jump tables lead to the blocks that nothing else leads to.
fn connect_indirect(instructions: &[Instruction], blocks: &mut [Block]) {
    let reached: BTreeSet<usize> = blocks.iter().flat_map(|block| block.next.iter().copied()).collect();
    let orphans: Vec<usize> = (1..blocks.len()).filter(|block| !reached.contains(block)).collect();
    for block in blocks.iter_mut() {
        let last = block.range.end.checked_sub(1).and_then(|last| instructions.get(last));
        if last.is_some_and(|last| last.flow == Flow::Indirect) {
            block.next.extend(&orphans);
        }
    }
}
