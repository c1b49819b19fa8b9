//! A thread of the engine's own in an attached program: the command lets it prepare all code and give all back, so that
//! no thread of the program has to stop for that.
//!
//! The C library does not know it. It has a base of its own, with its slots and its other thread-local data. It calls
//! no function of the C library that would need more. It sleeps except when the command makes it call a function.

use crate::machine::{Abi, Host};

/// The resources that a thread shares with the others of its process, and its own base.
const FLAGS: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS;

/// Makes the thread, with its stack and its base in zeroed memory; its number, or an error below 0.
///
/// # Safety
/// The memory must stay as long as the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_engine_thread(memory: u64, bytes: u64) -> i64 {
    // SAFETY: the caller's memory, for this alone.
    unsafe {
        match Host::thread_block(memory, bytes) {
            Some(block) => Host::make_thread(FLAGS as u64, &block),
            None => -i64::from(libc::ENOMEM),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;

    #[test]
    fn the_thread_sleeps_in_this_process_until_that_ends() {
        const ROOM: usize = 1 << 20;
        let memory = system::memory(ROOM).unwrap() as u64;
        // SAFETY: the memory stays.
        let thread = unsafe { lineup_engine_thread(memory, ROOM as u64) };
        assert!(thread > 0 && system::is_thread(thread as u64), "{thread}");
        // SAFETY: nothing is written: there is too little room.
        assert!(unsafe { lineup_engine_thread(memory, 1 << 16) } < 0);
    }
}
