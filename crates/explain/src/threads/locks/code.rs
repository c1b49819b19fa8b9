//! What code does with locks, by the names that those who wrote the locks gave it.

use serde::Serialize;

/// Whose a lock is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// A mutex or spin lock of the C library.
    CLibrary,
    /// A reader-writer lock of the C library.
    CLibraryReadWrite,
    /// A spin lock of a Linux kernel.
    Kernel,
    /// A spinning reader-writer lock of a Linux kernel.
    KernelReadWrite,
}

impl LockKind {
    /// Bytes from the lock's word on that are the lock's own.
    pub(super) fn own_bytes(self) -> u64 {
        match self {
            LockKind::CLibrary => 40,
            LockKind::CLibraryReadWrite => 56,
            LockKind::Kernel => 4,
            LockKind::KernelReadWrite => 8,
        }
    }

    /// True when a store to a part of the word gives it back, whatever code it is in: a kernel's unlocking is inlined.
    pub(super) fn ends_with_a_small_store(self) -> bool {
        matches!(self, LockKind::Kernel | LockKind::KernelReadWrite)
    }

    /// In words, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::CLibrary => "mutexes and spin locks of the C library",
            LockKind::CLibraryReadWrite => "reader-writer locks of the C library",
            LockKind::Kernel => "spin locks of the kernel",
            LockKind::KernelReadWrite => "reader-writer locks of the kernel",
        }
    }
}

/// What code does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Code {
    /// Takes a lock, alone or beside others.
    Takes(LockKind, IsShared),
    GivesBack,
    /// On behalf of either.
    Inside,
    Other,
}

/// Whether others may have the lock as well.
pub(super) type IsShared = bool;

/// What a function of that name begins with, and what it does.
const BEGINNINGS: &[(&str, Code)] = &[
    ("pthread_mutex_unlock", Code::GivesBack),
    ("pthread_mutex_lock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_mutex_cond_lock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_mutex_timedlock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_spin_unlock", Code::GivesBack),
    ("pthread_spin_lock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_rwlock_unlock", Code::GivesBack),
    ("pthread_rwlock_rdunlock", Code::GivesBack),
    ("pthread_rwlock_wrunlock", Code::GivesBack),
    ("pthread_rwlock_rd", Code::Takes(LockKind::CLibraryReadWrite, true)),
    ("pthread_rwlock_timedrd", Code::Takes(LockKind::CLibraryReadWrite, true)),
    ("pthread_rwlock_clockrd", Code::Takes(LockKind::CLibraryReadWrite, true)),
    ("pthread_rwlock_tryrd", Code::Takes(LockKind::CLibraryReadWrite, true)),
    ("pthread_rwlock_wr", Code::Takes(LockKind::CLibraryReadWrite, false)),
    ("pthread_rwlock_timedwr", Code::Takes(LockKind::CLibraryReadWrite, false)),
    ("pthread_rwlock_clockwr", Code::Takes(LockKind::CLibraryReadWrite, false)),
    ("pthread_rwlock_trywr", Code::Takes(LockKind::CLibraryReadWrite, false)),
    ("lll_lock_w", Code::Inside),
    ("lll_mutex_lock", Code::Inside),
    ("futex_", Code::Inside),
    ("(no symbol)", Code::Inside),
    ("raw_spin_unlock", Code::GivesBack),
    ("raw_spin_lock", Code::Takes(LockKind::Kernel, false)),
    ("raw_spin_trylock", Code::Takes(LockKind::Kernel, false)),
    ("native_queued_spin_lock_slowpath", Code::Takes(LockKind::Kernel, false)),
    ("pv_queued_spin_lock_slowpath", Code::Takes(LockKind::Kernel, false)),
    ("queued_spin_lock_slowpath", Code::Takes(LockKind::Kernel, false)),
    ("raw_read_unlock", Code::GivesBack),
    ("raw_write_unlock", Code::GivesBack),
    ("raw_read_lock", Code::Takes(LockKind::KernelReadWrite, true)),
    ("raw_read_trylock", Code::Takes(LockKind::KernelReadWrite, true)),
    ("queued_read_lock_slowpath", Code::Takes(LockKind::KernelReadWrite, true)),
    ("raw_write_lock", Code::Takes(LockKind::KernelReadWrite, false)),
    ("raw_write_trylock", Code::Takes(LockKind::KernelReadWrite, false)),
    ("queued_write_lock_slowpath", Code::Takes(LockKind::KernelReadWrite, false)),
];

/// What a function does with locks.
pub(super) fn code_of(function: &str) -> Code {
    let name = function.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_');
    let known = BEGINNINGS.iter().find(|(beginning, _)| name.starts_with(beginning));
    known.map_or(Code::Other, |(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_known_by_the_names_that_its_authors_gave_it() {
        use LockKind::{CLibrary, CLibraryReadWrite, Kernel, KernelReadWrite};
        for (name, code) in [
            ("___pthread_mutex_lock", Code::Takes(CLibrary, false)),
            ("__GI___pthread_mutex_unlock_usercnt", Code::GivesBack),
            ("pthread_spin_lock", Code::Takes(CLibrary, false)),
            ("__pthread_rwlock_rdlock_full64", Code::Takes(CLibraryReadWrite, true)),
            ("___pthread_rwlock_trywrlock", Code::Takes(CLibraryReadWrite, false)),
            ("___pthread_rwlock_unlock", Code::GivesBack),
            ("__lll_lock_wait", Code::Inside),
            ("pthread_mutex_init", Code::Other),
            ("work", Code::Other),
            ("_raw_spin_lock_irqsave", Code::Takes(Kernel, false)),
            ("native_queued_spin_lock_slowpath", Code::Takes(Kernel, false)),
            ("_raw_spin_unlock_irqrestore", Code::GivesBack),
            ("_raw_read_lock_bh", Code::Takes(KernelReadWrite, true)),
            ("raw_spin_rq_lock_nested", Code::Other),
        ] {
            assert_eq!(code_of(name), code, "{name}");
        }
    }
}
