//! The names of locks.

use crate::threads::locks::lock_code::LockKind;

/// Members of the types of locks that hold their words: a kernel's, those of Rust's library, those of `parking_lot`,
/// the C library's and those of C++ that hold one of these.
const INSIDE: [&str; 14] = [
    ".rlock",
    ".raw_lock",
    ".owner.counter",
    ".count.counter",
    ".lock.owner",
    ".inner.futex",
    ".inner.state",
    ".raw.state",
    ".__align",
    "._M_sem._M_counter",
    ".rwbase",
    ".rtmutex",
    ".__data.",
    "._M_mutex.",
];

/// The name of a lock, without those of the types inside it that others wrote.
pub(super) fn without_its_inside(word: &str) -> &str {
    let inside = INSIDE.iter().filter_map(|inside| word.find(inside)).min();
    inside.map_or(word, |inside| &word[..inside])
}

/// A kernel's lock: the member of a type that it is, and the variable that this lies in.
pub(super) fn name_in_kernel(kind: LockKind, word: &str, variable: Option<&str>) -> String {
    let lock = match kind {
        // The word is the one that the first asking thread accessed.
        LockKind::KernelSemaphore => {
            let inside = [".count", ".wait_list"].iter().filter_map(|inside| word.rfind(inside)).min();
            inside.map_or(word, |inside| &word[..inside])
        }
        _ => without_its_inside(word),
    };
    variable.map_or_else(|| lock.to_owned(), |variable| format!("{lock} of {variable}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_named_by_the_member_or_variable_that_it_is() {
        assert_eq!(without_its_inside("rq.__lock.raw_lock.val.counter"), "rq.__lock");
        assert_eq!(
            without_its_inside("dentry.d_lockref.lock.rlock.raw_lock.locked"),
            "dentry.d_lockref.lock"
        );
        assert_eq!(without_its_inside("mm_struct.mmap_lock.count.counter"), "mm_struct.mmap_lock");
        assert_eq!(without_its_inside("pipe_inode_info.mutex.owner.counter"), "pipe_inode_info.mutex");
        assert_eq!(without_its_inside("m::ACCOUNT.inner.futex.v.value"), "m::ACCOUNT");
        assert_eq!(without_its_inside("account.lock.__data.__lock"), "account.lock");
        assert_eq!(without_its_inside("queue.guard._M_mutex.__data.__lock"), "queue.guard");
        assert_eq!(without_its_inside("mine.__data"), "mine.__data", "a member of the program's own");
        assert_eq!(without_its_inside("pool.free.__align"), "pool.free");
        assert_eq!(without_its_inside("files.table_lock.rwbase.rtmutex.owner"), "files.table_lock");
        assert_eq!(without_its_inside("(heap)"), "(heap)");
        let semaphore = LockKind::KernelSemaphore;
        assert_eq!(name_in_kernel(semaphore, "gate.enter.count", Some("the_gate")), "gate.enter of the_gate");
        assert_eq!(name_in_kernel(semaphore, "gate.enter.wait_list.next", None), "gate.enter");
    }
}
