//! The contents of a recording: data accesses, instruction lines, calls.

use crate::region::RegionId;

/// A thread of the recorded program, numbered from 0 in order of first appearance over all its processes; never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ThreadId(pub u32);

/// A process of the recorded program: 0 is the first one, others follow in order of their start. A process that becomes
/// another program by `exec` gets a new number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct ProcessId(pub u32);

impl ProcessId {
    /// Stands for all processes that were killed before they reported their calls.
    pub const KILLED: ProcessId = ProcessId(u32::MAX);
}

/// The kind of an access: a read or a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// The program read.
    Load,
    /// The program wrote. A read-modify-write is a load followed by a store.
    Store,
}

/// One data access, merged from the pieces the machine may have split it into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Runtime address of the instruction.
    pub pc: u64,
    /// Runtime address of the first byte accessed.
    pub address: u64,
    /// Size in bytes.
    pub size_bytes: u32,
    /// Load or store.
    pub kind: AccessKind,
    /// The value held at `address` after the access, when it was pointer-sized, naturally aligned
    /// and observed.
    pub value: Option<u64>,
}

/// The way a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CallEnd {
    /// It returned to its caller.
    Returned,
    /// It was left by `longjmp` or by an exception: its thread went on further out.
    Abandoned,
    /// Its thread ended inside it.
    ThreadEnded,
    /// It ended its process: by `exit`, `abort` or a signal that it sent.
    ProcessEnded,
    /// It still ran when the recording ended, or when another thread ended the process: it is not whole.
    Unfinished,
}

/// One recorded call of a region, callees included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The region called.
    pub region: RegionId,
    /// The process that called it.
    pub process: ProcessId,
    /// The thread that called it.
    pub thread: ThreadId,
    /// Position of this call among all calls of its region, over all threads, from 0. Calls left out
    /// by warm-up or limits leave gaps.
    pub sequence: u64,
    /// Position of this call's entry in the recording's global order of events.
    pub entered_at: u64,
    /// The way it ended.
    pub end: CallEnd,
    /// The number of calls of the same region on the same thread that were already open (recursion).
    pub depth: u32,
    /// Instructions executed, callees included, but not those of the dynamic linker in [`Call::binding_instructions`].
    pub instructions: u64,
    /// Instructions in which the dynamic linker looked up functions that were called for the first time. Their accesses
    /// and code are no part of the call.
    pub binding_instructions: u64,
    /// Blocks entered that the recorder had not instrumented; their accesses are missing.
    pub missed_blocks: u64,
    /// The arguments passed in registers; `None` where the recorder reads none.
    pub arguments: Option<Arguments>,
    /// Data accesses in program order.
    pub accesses: Vec<Access>,
    /// Runtime addresses of the 32-byte-aligned code granules fetched, sorted, without repetition.
    pub code_granules: Vec<u64>,
    /// The times of some of its accesses, in their order; two between the same accesses when time passed there. Empty
    /// when the recorder reads no clock, and for a call inside another recorded one, which already has those accesses.
    pub times: Vec<TimeMark>,
}

impl Call {
    /// Runtime addresses of the instructions that accessed data, and of the first one where it is known by the
    /// arguments.
    pub fn pcs(&self) -> impl Iterator<Item = u64> {
        let entry = self.arguments.map(|arguments| arguments.entry);
        self.accesses.iter().map(|access| access.pc).chain(entry)
    }
}

/// The registers that carry integer arguments and pointers, at a call. Registers that the function takes no argument in
/// keep their earlier values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arguments {
    /// Runtime address of the first instruction of the function that was called.
    pub entry: u64,
    values: [u64; Arguments::MOST],
    count: usize,
}

impl Arguments {
    /// Registers that carry arguments, at most, on any machine.
    pub const MOST: usize = 8;

    /// The values of the registers, in the order of [`crate::machine::Description::argument_registers`]; values beyond
    /// [`Arguments::MOST`] are left out.
    pub fn new(entry: u64, values: &[u64]) -> Self {
        let count = values.len().min(Self::MOST);
        let mut all = [0; Self::MOST];
        all[..count].copy_from_slice(&values[..count]);
        Arguments { entry, values: all, count }
    }

    /// The values of the registers.
    pub fn values(&self) -> &[u64] {
        &self.values[..self.count]
    }
}

/// A reading of the machine's clock inside a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TimeMark {
    /// Number of the next access of the call; after the last one, the number of accesses.
    pub access: u32,
    /// Cycles of a counter that all threads of the machine read alike.
    pub cycles: u64,
}

/// Bytes in a code granule: the smallest line size that is reported.
pub const CODE_GRANULE_BYTES: u64 = 32;

/// First addresses of the granules that code of `size_bytes` bytes covers. Code of size 0 covers one.
pub fn code_granules(start: u64, size_bytes: u64) -> impl Iterator<Item = u64> {
    let last = start + size_bytes.max(1) - 1;
    (start / CODE_GRANULE_BYTES..=last / CODE_GRANULE_BYTES).map(|granule| granule * CODE_GRANULE_BYTES)
}

/// Something that ends or begins the life of memory, seen anywhere in the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryEvent {
    /// Position in the recording's global order of events (comparable with [`Call::entered_at`]).
    pub at: u64,
    /// The process whose memory it was.
    pub process: ProcessId,
    /// The thread that caused it.
    pub thread: ThreadId,
    /// The kind of event.
    pub kind: MemoryEventKind,
    /// Runtime address of the first byte concerned.
    pub address: u64,
    /// Size in bytes; `None` when the recorder could not see it.
    pub size_bytes: Option<u64>,
}

/// The kind of a [`MemoryEvent`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MemoryEventKind {
    /// A heap block was given out.
    Allocated,
    /// A heap block was given back.
    Freed,
    /// Pages were unmapped or replaced.
    Unmapped,
    /// The recorder saw a private mapping of the process: nobody else writes to it, and it maps no file except a
    /// program.
    Private,
    /// The recorder saw a mapping that others may write or read as well: shared memory, a device.
    Shared,
}

/// A thread's stack, as far as it was observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackRange {
    /// The thread.
    pub thread: ThreadId,
    /// Lowest runtime address of the mapping that holds the stack.
    pub start: u64,
    /// Address after its last byte.
    pub end: u64,
}
