//! What a recording is made of.

use crate::allocation::AllocationSite;
use crate::context::Context;
use crate::header::{Ending, ProfileInstruction, ProfileRun, Summary};
use crate::log::{LogBlock, LogPart};
use crate::stream::Step;
use crate::system::{MeasuredCall, SystemSummary};
use crate::tasks::{KernelTask, Reach, Turn};
use crate::window::Window;
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
    /// Where a thread's stack is.
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
    /// Where the program allocated memory.
    AllocationSite(AllocationSite),
    /// What code missed in one context of a whole system.
    Context(Context),
    /// A task of a whole system.
    Task(KernelTask),
    /// A CPU of a whole system began to work for a task.
    Turn(Turn),
    /// Where a call on a whole system lies in the order of events.
    Reach(Reach),
    /// The recorder of a process finished.
    Summary(Summary),
    /// The program ended.
    Ending(Ending),
    /// What a call on a whole system cost.
    Measured(MeasuredCall),
    /// The recorder of a whole system finished.
    System(SystemSummary),
    /// A part of the stream of fetches and accesses.
    Stream(Vec<Step>),
    /// What a block of a logged run is made of.
    LogBlock(LogBlock),
    /// What a thread of a logged run executed for a while.
    LogPart(LogPart),
}
