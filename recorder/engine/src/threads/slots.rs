//! The engine's words of each thread of the program: at a fixed distance from the thread's base, which code in the
//! cache reaches without a register.

/// The words, in the layout that the gates and code in the cache use.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Slots {
    /// The program's values of the two registers that a block borrows.
    pub(crate) first: u64,
    pub(crate) second: u64,
    /// The program's value of a third register, which some code borrows for a short time.
    pub(crate) counter: u64,
    /// Address of the log's next record.
    pub(crate) log: u64,
    /// The program's next address.
    pub(crate) pc: u64,
    pub(crate) scratch: u64,
    /// The table of places that indirect jumps lead to.
    pub(crate) table: u64,
    /// Minus the address of the outermost call's return address.
    pub(crate) minus_base: u64,
    /// Reason for leaving the cache: see [`reason`].
    pub(crate) reason: u64,
    /// The link that is to lead to `pc` from now on, or 0.
    pub(crate) link: u64,
    /// The address of the gate out of the cache.
    pub(crate) gate: u64,
    /// Address that the gate returns to.
    pub(crate) resume: u64,
    /// The program's stack pointer while the engine runs.
    pub(crate) stack: u64,
    /// The top of the engine's stack, 0 before the thread is known.
    pub(crate) own_stack: u64,
    /// Memory for vector state while the engine runs.
    pub(crate) vectors: u64,
    /// Not 0 while the thread is in the cache or the engine: 2 while a signal handler runs that interrupted it there.
    pub(crate) busy: u64,
    /// The entry that was reached, and the number of the call.
    pub(crate) entry: u64,
    pub(crate) sequence: u64,
    /// The thread's [`crate::threads::thread::Thread`].
    pub(crate) thread: u64,
    /// The program's address when the gate returns: a signal handler is to see it.
    pub(crate) resume_pc: u64,
    /// Not 0 when a signal came while the engine ran: it is sent again, and delivered when the engine is done.
    pub(crate) deferred: u64,
    /// The signals that were blocked when it came.
    pub(crate) mask: u64,
    /// Address where the thread continues after it was first met.
    pub(crate) after_first: u64,
    /// The program's stack pointer when a signal handler interrupted it in the cache, and the handlers' own stack.
    pub(crate) interrupted: u64,
    pub(crate) handlers_stack: u64,
    pub(crate) handlers_stack_bytes: u64,
    /// The program's registers while that mask is put back, see [`crate::machine::Gates::unmask`].
    pub(crate) kept: [u64; 7],
    /// A mask that blocks all signals, and the mask that it replaced, see [`crate::machine::Gates::masking`].
    pub(crate) all: u64,
    pub(crate) before_all: u64,
    /// The thread's number in the system, 0 before it is known: a process that borrows this one's memory has another.
    pub(crate) owner: u64,
    /// When calls are timed: the thread's table, 0 before it has one.
    pub(crate) times: u64,
    /// The program's values of the two registers that reading the time takes, and the time.
    pub(crate) time_kept: [u64; 2],
    pub(crate) time: u64,
    /// Coming accesses to its area by an instruction that saves or loads the processor's state, see
    /// [`crate::machine::Translation::see_state`].
    pub(crate) state: [u64; STATE_WORDS],
    /// Data of a single mode of recording.
    pub(crate) own: Own,
}

/// Loads of both halves of the area, and stores.
pub(crate) const STATE_WORDS: usize = 4;

/// Words that only one mode of recording needs, in the same memory as those of the others.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Own {
    /// When calls are timed, by region: the innermost open call, see [`crate::timing::open_calls::slot`].
    pub(crate) timed: [crate::timing::open_calls::Slot; lineup_recording::native::timed::REGIONS],
    /// When the whole program is recorded.
    pub(crate) sieve: Sieve,
    /// When calls are recorded.
    pub(crate) calls: Calls,
    /// When all of it is logged: the program's value of the log's register.
    pub(crate) logged: u64,
}

/// State of a thread whose calls are recorded.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Calls {
    /// Under a limit of calls a thread: the thread's [`crate::threads::budget::Spent`], 0 before it is known.
    pub(crate) spent: u64,
    /// Not 0 when the program blocks SIGTRAP. The kernel does not block it where there are traps, see
    /// [`crate::entries::traps`].
    pub(crate) blocks_trap: u64,
    /// Not 0 when one was sent to the thread in the meantime, and the kernel's data of it.
    pub(crate) has_trap: u64,
    pub(crate) trap: [u64; SIGNAL_WORDS],
}

/// Words of the kernel's data of a signal.
pub(crate) const SIGNAL_WORDS: usize = size_of::<libc::siginfo_t>() / 8;

/// See [`crate::whole_program::sieve`].
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Sieve {
    /// The sieve that blocks use: the thread's, or one that passes nothing over, so that the next block hands over.
    pub(crate) current: u64,
    /// The thread's sieve. Its lowest bits are the shift count for a data address.
    pub(crate) own: u64,
    /// The sieve that passes nothing over.
    pub(crate) nothing: u64,
    /// Tables to update: in the thread's sieve, or, in a window, in memory that no reader looks at.
    pub(crate) tables: u64,
    /// 1 in a window: hits are noted as well.
    pub(crate) notes_all: u64,
    /// Uses of the first level up to the end of the stretch of the run; the next block is to hand over when it is 0.
    pub(crate) left: u64,
    /// Not 0 when the next block is to hand over.
    pub(crate) called: u64,
    /// First used address in memory.
    pub(crate) address: u64,
    /// Address where the block continues.
    pub(crate) back: u64,
    /// The definition of a block that stands alone.
    pub(crate) definition: u64,
    /// Code for uses of data, and for uses of code.
    pub(crate) data: u64,
    pub(crate) code: u64,
    /// The rows of the modelled caches, see [`crate::whole_program::level`].
    pub(crate) data_rows: u64,
    pub(crate) code_rows: u64,
    /// The program's values of the registers that the code of the sieve uses.
    pub(crate) kept: [u64; 8],
    /// The record of a block that stands alone.
    pub(crate) record: [u64; RECORD_WORDS],
}

/// Words of the longest record of a block that stands alone: one instruction accesses memory at two places at most.
pub(crate) const RECORD_WORDS: usize = 12;

/// Distance of a word from the beginning.
macro_rules! at {
    ($($field:ident).+) => {
        std::mem::offset_of!(crate::threads::slots::Slots, $($field).+) as i32
    };
}
pub(crate) use at;

/// Bytes that the machine sets aside in each thread.
pub(crate) const BYTES: usize = 640;
const _: () = assert!(size_of::<Slots>() <= BYTES);

/// The reasons for which code in the cache hands over to the engine.
pub(crate) mod reason {
    /// Continue at `pc`, which may have to be translated; `link` is set when a jump leads there.
    pub(crate) const GO: u64 = 0;
    /// An entry was reached natively, and the call is to be recorded.
    pub(crate) const ENTER: u64 = 1;
    /// An entry was reached inside a recorded call.
    pub(crate) const INNER: u64 = 2;
    /// The chunk of the log is full.
    pub(crate) const FULL: u64 = 3;
    /// The outermost call has ended.
    pub(crate) const LEAVE: u64 = 4;
    /// The next instruction is a system call.
    pub(crate) const SYSTEM_CALL: u64 = 5;
    /// The next instruction cannot be translated.
    pub(crate) const LOST: u64 = 6;
    /// A thread of a program that is recorded as a whole begins at `pc`.
    pub(crate) const BEGIN: u64 = 7;
    /// A system call has returned: the program continues at `pc`.
    pub(crate) const RETURNED: u64 = 8;
    /// An instruction that stands alone, in a program that is recorded as a whole, was executed; `pc` is the next
    /// address.
    pub(crate) const ALONE: u64 = 9;
    /// In a program that is recorded as a whole, an allocator is called, or its call returns; the block continues.
    pub(crate) const ALLOCATION: u64 = 10;
    /// The next instruction saves or loads the processor's state; then the block continues.
    pub(crate) const STATE: u64 = 11;
    /// The next store may begin a restartable sequence, see [`crate::cache::sequences`].
    pub(crate) const SEQUENCE: u64 = 12;
    /// The command begins a burst at `pc`, see [`crate::start::bursts`].
    pub(crate) const BURST: u64 = 13;
}
