//! The barrier that makes every thread of this process refetch its instructions.

const QUERY: libc::c_int = 0;
const PRIVATE_EXPEDITED_SYNC_CORE: libc::c_int = 1 << 5;
const REGISTER_PRIVATE_EXPEDITED_SYNC_CORE: libc::c_int = 1 << 6;

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: membarrier takes integers alone and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}

/// Registers this process for [`sync_cores`]. False when the system has no such barrier.
///
/// A child of `fork` inherits the registration; a new program loses it and its own start registers again.
pub(super) fn register() -> bool {
    let supported = membarrier(QUERY);
    supported > 0
        && supported as libc::c_int & PRIVATE_EXPEDITED_SYNC_CORE != 0
        && membarrier(REGISTER_PRIVATE_EXPEDITED_SYNC_CORE) == 0
        && sync_cores()
}

/// Returns after every running thread of this process has executed a core-serialising instruction; threads that do
/// not run execute one before they return to user code. False when the system refused.
pub(super) fn sync_cores() -> bool {
    membarrier(PRIVATE_EXPEDITED_SYNC_CORE) == 0
}
