//! The events of a recording.

use super::allocation::AllocationSite;
use super::context::Context;
use super::header::{Ending, ProfileInstruction, ProfileRun, Summary};
use super::placement::Placement;
use super::stream::Step;
use super::system::{MeasuredCall, SystemSummary};
use super::tasks::{KernelTask, Reach, Turn};
use super::window::Window;
use crate::log::{LogBlock, LogPart};
use lineup_model::access::{Call, MemoryEvent, StackRange};
use lineup_model::image::LoadedImage;
use lineup_model::process::Process;

/// One record of a recording.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A process began.
    Process(Process),
    /// A file was mapped into the program.
    Image(LoadedImage),
    /// The range of a thread's stack.
    Stack(StackRange),
    /// A thread was given this base: the runtime address that its thread-local variables are found from.
    ThreadBase(u64),
    /// A call ended.
    Call(Call),
    /// Memory began or ended its life.
    Memory(MemoryEvent),
    /// Counts of a run of instructions.
    Profile(ProfileRun),
    /// Counts of an instruction.
    Instruction(ProfileInstruction),
    /// A part of a window of the run.
    Window(Window),
    /// A place where the program allocated memory.
    AllocationSite(AllocationSite),
    /// Where objects of the program lay, and on which pages.
    Placement(Placement),
    /// The misses of code in one context of a whole system.
    Context(Context),
    /// A task of a whole system.
    Task(KernelTask),
    /// A CPU of a whole system began to work for a task.
    Turn(Turn),
    /// The position of a call on a whole system in the order of events.
    Reach(Reach),
    /// The recorder of a process finished.
    Summary(Summary),
    /// The program ended.
    Ending(Ending),
    /// The cost of a call on a whole system.
    Measured(MeasuredCall),
    /// The recorder of a whole system finished.
    System(SystemSummary),
    /// A part of the stream of fetches and accesses.
    Stream(Vec<Step>),
    /// The description of a block of a logged run.
    LogBlock(LogBlock),
    /// A stretch of execution of one thread of a logged run.
    LogPart(LogPart),
}
