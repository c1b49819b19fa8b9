//! A function's machine code as blocks, and where each goes.

use crate::execution_counts::Executed;
use crate::flow::jump_tables as tables;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Instructions that are executed one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Link addresses.
    pub(crate) addresses: Range<u64>,
    /// Link address of the last instruction.
    pub(crate) last: u64,
    /// The number of its instructions.
    pub(crate) instructions: u64,
    /// Times it was executed.
    pub(crate) executions: u64,
    /// Its end.
    pub(crate) ends: Ends,
    /// False when it only begins where the count changes, as behind a call that does not always return.
    pub(crate) is_reached: bool,
}

/// The end of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ends {
    /// The next block follows.
    Falls,
    /// With a branch to a place that the instruction names; the next block follows when it is not taken.
    Branches {
        /// Its target.
        target: u64,
    },
    /// With a jump to a place that the instruction names.
    Jumps {
        /// Its target.
        target: u64,
    },
    /// With a jump to a place that only the running program knows.
    JumpsAnywhere,
    /// With a return, or with an instruction that nothing follows.
    Leaves,
}

/// A call of a place that the instruction names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// Link address of the instruction.
    pub(crate) from: u64,
    /// Link address of the called code.
    pub(crate) target: u64,
    /// Times it was executed.
    pub(crate) times: u64,
}

/// A function's blocks and calls, by address.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Graph {
    pub(crate) blocks: Vec<Block>,
    pub(crate) calls: Vec<Call>,
    /// For each executed indirect jump, by its link address, the targets in its table; empty when none was found.
    pub(crate) tables: BTreeMap<u64, BTreeSet<u64>>,
}

/// The graph of the code in `range`, whose bytes are `code`. `None` when some bytes there are no instruction. `data`
/// gives the file's bytes at link addresses.
pub(crate) fn graph<'d>(
    range: &Range<u64>,
    code: &[u8],
    executed: &Executed,
    data: &dyn Fn(Range<u64>) -> Option<&'d [u8]>,
) -> Option<Graph> {
    let (instructions, counts) = decoded(range, code, executed)?;
    let mut graph = Graph::default();
    for (instruction, _) in
        instructions.iter().zip(&counts).filter(|(one, times)| is_anywhere(one) && **times > 0)
    {
        graph.tables.insert(instruction.ip(), tables::targets(instruction, &instructions, range, data));
    }
    let mut reached = reached(range, &instructions);
    reached.extend(graph.tables.values().flatten());
    let changes = changes(&instructions, &counts);
    for (instruction, times) in instructions.iter().zip(&counts) {
        let addresses = instruction.ip()..instruction.next_ip();
        match graph.blocks.last_mut() {
            Some(block) if !reached.contains(&addresses.start) && !changes.contains(&addresses.start) => {
                block.addresses.end = addresses.end;
                block.last = addresses.start;
                block.instructions += 1;
                block.ends = ends(instruction);
            }
            _ => graph.blocks.push(Block {
                is_reached: reached.contains(&addresses.start),
                last: addresses.start,
                addresses,
                instructions: 1,
                executions: *times,
                ends: ends(instruction),
            }),
        }
        if *times > 0 && instruction.is_call_near() {
            let target = instruction.near_branch_target();
            graph.calls.push(Call { from: instruction.ip(), target, times: *times });
        }
    }
    Some(graph)
}

/// The instructions in `range`, whose bytes are `code`, and how often each was executed. `None` when something there is
/// no instruction.
pub(crate) fn decoded(
    range: &Range<u64>,
    code: &[u8],
    executed: &Executed,
) -> Option<(Vec<Instruction>, Vec<u64>)> {
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, code, range.start, DecoderOptions::NONE).into_iter().collect();
    if instructions.iter().any(Instruction::is_invalid) {
        return None;
    }
    let counts = executions(&instructions, executed);
    Some((instructions, counts))
}

/// The execution count of each. A repeated string instruction was counted once for each repetition, and is executed as
/// often as the instruction behind it.
fn executions(instructions: &[Instruction], executed: &Executed) -> Vec<u64> {
    let repeats = |one: &Instruction| one.has_rep_prefix() || one.has_repne_prefix();
    let mut counts: Vec<u64> = Vec::with_capacity(instructions.len());
    let mut next = None;
    for instruction in instructions.iter().rev() {
        let own = match (repeats(instruction) && instruction.is_string_instruction(), next) {
            (true, Some(after)) => after,
            _ => executed.at(instruction.ip()),
        };
        counts.push(own);
        next = Some(own);
    }
    counts.reverse();
    counts
}

/// Addresses where blocks begin: the start, the targets of branches and the addresses after branches.
fn reached(range: &Range<u64>, instructions: &[Instruction]) -> BTreeSet<u64> {
    let mut reached = BTreeSet::from([range.start]);
    for instruction in instructions {
        match ends(instruction) {
            Ends::Falls => continue,
            Ends::Branches { target } | Ends::Jumps { target } if range.contains(&target) => {
                reached.insert(target);
            }
            _ => (),
        }
        reached.insert(instruction.next_ip());
    }
    reached
}

/// Addresses where the count changes: control flow enters or leaves there.
fn changes(instructions: &[Instruction], counts: &[u64]) -> BTreeSet<u64> {
    let pairs = instructions.windows(2).zip(counts.windows(2));
    pairs.filter(|(_, counts)| counts[0] != counts[1]).map(|(two, _)| two[1].ip()).collect()
}

fn is_anywhere(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::IndirectBranch
}

fn ends(instruction: &Instruction) -> Ends {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch => Ends::Branches { target: instruction.near_branch_target() },
        FlowControl::UnconditionalBranch => Ends::Jumps { target: instruction.near_branch_target() },
        FlowControl::IndirectBranch => Ends::JumpsAnywhere,
        FlowControl::Return | FlowControl::Exception => Ends::Leaves,
        _ => Ends::Falls,
    }
}
