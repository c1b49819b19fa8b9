//! The few system calls that matter, by machine.

use lineup_model::abi::Machine;

/// What a system call means for the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    /// Ends the thread.
    Exit,
    /// Ends the process.
    ExitGroup,
    /// Sends a signal: the second argument, to what the first names.
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
    /// Replaces the program.
    Exec,
    /// Makes a process.
    Fork,
    /// Makes a process or a thread, by its flags in the first argument.
    Clone,
    /// Sets the thread's base to the second argument, if the first is `ARCH_SET_FS`.
    SetBase,
    /// Sets the thread's base by the descriptor that the first argument points to.
    SetDescriptor,
}

/// `MAP_FIXED`: the pages replace what was there.
pub(crate) const MAP_FIXED: u64 = 0x10;
/// `ARCH_SET_FS`: the base is set, not something else.
pub(crate) const ARCH_SET_FS: u64 = 0x1002;
/// `CLONE_SETTLS`: the thread's base is an argument, on i386 in a descriptor that it points to.
pub(crate) const CLONE_SETTLS: u64 = 0x80000;
/// `CLONE_VFORK`: a process that borrows memory until it calls `exec`.
pub(crate) const CLONE_VFORK: u64 = 0x4000;
/// `CLONE_VM`: a thread, not a process.
pub(crate) const CLONE_VM: u64 = 0x100;

/// The meaning of a system call number.
pub(crate) fn meaning(machine: Machine, number: i64) -> Option<Call> {
    let table: &[(i64, Call)] = match machine {
        Machine::X86_64 => &[
            (13, Call::SetHandler),
            (15, Call::HandlerReturns),
            (11, Call::Unmap),
            (25, Call::Unmap),
            (9, Call::Map),
            (59, Call::Exec),
            (322, Call::Exec),
            (57, Call::Fork),
            (58, Call::Fork),
            (56, Call::Clone),
            (158, Call::SetBase),
            (60, Call::Exit),
            (231, Call::ExitGroup),
            (62, Call::Kill),
            (200, Call::Kill),
            (234, Call::ThreadKill),
        ],
        Machine::AArch64 => &[
            (134, Call::SetHandler),
            (139, Call::HandlerReturns),
            (215, Call::Unmap),
            (216, Call::Unmap),
            (222, Call::Map),
            (221, Call::Exec),
            (281, Call::Exec),
            (220, Call::Clone),
            (93, Call::Exit),
            (94, Call::ExitGroup),
            (129, Call::Kill),
            (130, Call::Kill),
            (131, Call::ThreadKill),
        ],
        Machine::Arm => &[(387, Call::Exec), (248, Call::ExitGroup), (268, Call::ThreadKill)],
        Machine::I386 => &[
            (358, Call::Exec),
            (243, Call::SetDescriptor),
            (252, Call::ExitGroup),
            (270, Call::ThreadKill),
        ],
    };
    let common = match machine {
        Machine::X86_64 | Machine::AArch64 => &[],
        Machine::Arm | Machine::I386 => OF_BOTH_OLD,
    };
    table.iter().chain(common).find(|(known, _)| *known == number).map(|(_, call)| *call)
}

/// The numbers that 32-bit Arm took over from i386.
const OF_BOTH_OLD: &[(i64, Call)] = &[
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_machine_has_its_own_numbers() {
        assert_eq!(meaning(Machine::X86_64, 59), Some(Call::Exec));
        assert_eq!(meaning(Machine::AArch64, 221), Some(Call::Exec));
        assert_eq!(meaning(Machine::Arm, 11), Some(Call::Exec));
        assert_eq!(meaning(Machine::X86_64, 11), Some(Call::Unmap));
        assert_eq!(meaning(Machine::AArch64, 139), Some(Call::HandlerReturns));
        assert_eq!(meaning(Machine::X86_64, 158), Some(Call::SetBase));
        assert_eq!(meaning(Machine::I386, 243), Some(Call::SetDescriptor));
        assert_eq!(meaning(Machine::Arm, 243), None);
        assert_eq!(meaning(Machine::X86_64, 0), None);
        assert_eq!(meaning(Machine::X86_64, 231), Some(Call::ExitGroup));
        assert_eq!(meaning(Machine::Arm, 1), Some(Call::Exit));
        assert_eq!(meaning(Machine::AArch64, 131), Some(Call::ThreadKill));
    }
}
