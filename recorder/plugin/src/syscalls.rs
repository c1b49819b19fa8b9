//! The system calls that matter. Each machine's instruction set has their numbers.

/// The meaning of a system call for the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// Ends the thread.
    Exit,
    /// Ends the process.
    ExitGroup,
    /// Sends a signal: the second argument, to the receiver in the first.
    Kill,
    /// Sends a signal: the third argument, to a thread.
    ThreadKill,
    /// Installs a signal handler for the first argument: the second points to it.
    SetHandler,
    /// A signal handler returns.
    HandlerReturns,
    /// Takes pages away: address and length are the first two arguments.
    Unmap,
    /// Maps pages: address and length are the first two arguments, flags the fourth.
    Map,
    /// Replaces the program: path, arguments and environment.
    Exec,
    /// Replaces the program: folder, path in it, arguments, environment and flags.
    ExecAt,
    /// Makes a process.
    Fork,
    /// Makes a process or a thread, by its flags in the first argument.
    Clone,
    /// Sets the thread's base to the second argument, if the first is `ARCH_SET_FS`.
    SetBase,
    /// Sets the thread's base by the descriptor that the first argument points to.
    SetDescriptor,
}

/// `MAP_FIXED`: the pages replace older mappings.
pub(crate) const MAP_FIXED: u64 = 0x10;
/// `AT_FDCWD`: a path is relative to the working directory.
pub(crate) const AT_FDCWD: i32 = -100;
/// `ARCH_SET_FS`: the base is set, not something else.
pub(crate) const ARCH_SET_FS: u64 = 0x1002;
/// `CLONE_SETTLS`: the thread's base is an argument, on i386 in a descriptor that it points to.
pub(crate) const CLONE_SETTLS: u64 = 0x80000;
/// `CLONE_VFORK`: a process that borrows memory until it calls `exec`.
pub(crate) const CLONE_VFORK: u64 = 0x4000;
/// `CLONE_VM`: a thread, not a process.
pub(crate) const CLONE_VM: u64 = 0x100;

/// The argument of `clone` that holds the new thread's base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ThreadBaseArgument {
    /// The fourth.
    Fourth,
    /// The fourth points to a descriptor that holds it.
    FourthDescribes,
    /// The fifth.
    Fifth,
}

/// The meaning of a number in a table.
pub(crate) fn look_up(table: &[(i64, Call)], number: i64) -> Option<Call> {
    table.iter().find(|(known, _)| *known == number).map(|(_, call)| *call)
}

/// The numbers that 32-bit Arm took over from i386.
pub(crate) const OF_BOTH_OLD: &[(i64, Call)] = &[
    (174, Call::SetHandler),
    (67, Call::SetHandler),
    (173, Call::HandlerReturns),
    (119, Call::HandlerReturns),
    (91, Call::Unmap),
    (163, Call::Unmap),
    (192, Call::Map),
    (11, Call::Exec),
    (2, Call::Fork),
    (190, Call::Fork),
    (120, Call::Clone),
    (1, Call::Exit),
    (37, Call::Kill),
    (238, Call::Kill),
];
