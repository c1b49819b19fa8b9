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
    /// A mutex of a Linux kernel.
    KernelMutex,
    /// A reader-writer semaphore of a Linux kernel.
    KernelReadWriteSemaphore,
    /// A spin lock of a Linux kernel with PREEMPT_RT, for which tasks sleep.
    KernelSleepingSpin,
    /// A mutex of Rust's standard library.
    RustStd,
    /// A reader-writer lock of Rust's standard library.
    RustStdReadWrite,
    /// A mutex of `parking_lot`.
    ParkingLot,
    /// A reader-writer lock of `parking_lot`.
    ParkingLotReadWrite,
    /// A word that code of the program itself waited for in a loop.
    SpinLoop,
}

impl LockKind {
    /// Bytes from the lock's word on that are the lock's own.
    pub(in crate::threads) fn own_bytes(self) -> u64 {
        match self {
            LockKind::CLibrary => 40,
            LockKind::CLibraryReadWrite => 56,
            LockKind::Kernel => 4,
            LockKind::KernelMutex => 32,
            LockKind::KernelReadWriteSemaphore => 40,
            LockKind::KernelReadWrite | LockKind::KernelSleepingSpin | LockKind::ParkingLotReadWrite => 8,
            // With the flag that tells of panics.
            LockKind::RustStd => 5,
            LockKind::RustStdReadWrite => 9,
            LockKind::ParkingLot | LockKind::SpinLoop => 1,
        }
    }

    /// True for locks that a task of a kernel has, on whatever CPU it runs.
    pub fn is_of_tasks(self) -> bool {
        use LockKind::{KernelMutex, KernelReadWriteSemaphore, KernelSleepingSpin};
        matches!(self, KernelMutex | KernelReadWriteSemaphore | KernelSleepingSpin)
    }

    /// True for locks that are taken by code of a Rust library.
    pub(super) fn is_of_rust(self) -> bool {
        use LockKind::{ParkingLot, ParkingLotReadWrite, RustStd, RustStdReadWrite};
        matches!(self, RustStd | RustStdReadWrite | ParkingLot | ParkingLotReadWrite)
    }

    /// Bytes of the word that says whether the lock is taken.
    pub(super) fn word_bytes(self) -> u64 {
        match self {
            LockKind::ParkingLot => 1,
            LockKind::ParkingLotReadWrite => 8,
            _ => 4,
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
            LockKind::KernelMutex => "mutexes of the kernel",
            LockKind::KernelReadWriteSemaphore => "reader-writer semaphores of the kernel",
            LockKind::KernelSleepingSpin => "spin locks of the kernel for which tasks sleep",
            LockKind::RustStd => "mutexes of Rust's library",
            LockKind::RustStdReadWrite => "reader-writer locks of Rust's library",
            LockKind::ParkingLot => "mutexes of parking_lot",
            LockKind::ParkingLotReadWrite => "reader-writer locks of parking_lot",
            LockKind::SpinLoop => "words that the program spins on",
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
    ("pthread_mutex_trylock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_mutex_cond_lock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_mutex_timedlock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_spin_unlock", Code::GivesBack),
    ("pthread_spin_lock", Code::Takes(LockKind::CLibrary, false)),
    ("pthread_spin_trylock", Code::Takes(LockKind::CLibrary, false)),
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
    ("syscall", Code::Inside),
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

/// What code of a kernel does with locks that tasks sleep for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SleepingCode {
    /// Takes a lock, alone or beside others.
    Takes(LockKind, IsShared),
    GivesBack,
}

/// What a function of that name begins with does; the first that fits.
const SLEEPING: &[(&str, SleepingCode)] = &[
    ("mutex_unlock", SleepingCode::GivesBack),
    ("mutex_lock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("mutex_trylock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("ww_mutex_unlock", SleepingCode::GivesBack),
    ("ww_mutex_lock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("ww_mutex_trylock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("rt_mutex_unlock", SleepingCode::GivesBack),
    ("rt_mutex_lock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("rt_mutex_trylock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("rt_mutex_slowlock", SleepingCode::Takes(LockKind::KernelMutex, false)),
    ("rt_spin_unlock", SleepingCode::GivesBack),
    ("rt_spin_lock", SleepingCode::Takes(LockKind::KernelSleepingSpin, false)),
    ("rt_spin_trylock", SleepingCode::Takes(LockKind::KernelSleepingSpin, false)),
    ("up_read", SleepingCode::GivesBack),
    ("up_write", SleepingCode::GivesBack),
    ("down_read", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, true)),
    ("down_write", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, false)),
    ("rwsem_down_read", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, true)),
    ("rwsem_down_write", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, false)),
];

/// What a function of a kernel does with locks that tasks sleep for.
pub(super) fn sleeping_code(function: &str) -> Option<SleepingCode> {
    of_beginning(SLEEPING, function.trim_start_matches('_'))
}

/// What stands with the first beginning of a name.
fn of_beginning<T: Copy>(beginnings: &[(&str, T)], name: &str) -> Option<T> {
    let known = beginnings.iter().find(|(beginning, _)| name.starts_with(beginning));
    known.map(|(_, code)| *code)
}

/// What code does with locks: the innermost of the functions that are inlined there that does something, or the function
/// itself.
pub(super) fn code_at(function: &str, inlined: &[String]) -> Code {
    let known = inlined.iter().rev().map(|name| rust_code_of(name)).find(|code| *code != Code::Other);
    known.unwrap_or_else(|| match rust_code_of(function) {
        Code::Other => code_of(function),
        code => code,
    })
}

/// What a function of a Rust library does with locks.
fn rust_code_of(function: &str) -> Code {
    let path = function.split('<').next().unwrap_or_default();
    let method = path.rsplit("::").find(|part| !part.starts_with('{')).unwrap_or_default();
    let of = |kind, is_shared| match method.contains("unlock") || method.starts_with("wake") {
        true => Code::GivesBack,
        false => Code::Takes(kind, is_shared),
    };
    let is_method = |beginnings: &[&str]| beginnings.iter().any(|beginning| method.starts_with(beginning));
    let is_of_mutex = || is_method(&["lock", "try_lock", "unlock", "wake"]);
    let is_of_readers = || is_method(&["read", "try_read"]) || method.contains("_shared");
    let is_of_writers = || is_method(&["write", "try_write", "wake"]) || method.contains("_exclusive");
    let is_std = |module: &str, before: &str| {
        path.starts_with("std::sys") && (path.contains(module) || path.contains(before))
    };
    if path.starts_with("parking_lot_core::") || path.contains("futex::futex_wait") {
        Code::Inside
    } else if path.starts_with("parking_lot::raw_mutex::") && is_of_mutex() {
        of(LockKind::ParkingLot, false)
    } else if path.starts_with("parking_lot::raw_rwlock::") && (is_of_readers() || is_of_writers()) {
        of(LockKind::ParkingLotReadWrite, is_of_readers())
    } else if is_std("mutex::futex::", "futex_mutex::") && is_of_mutex() {
        of(LockKind::RustStd, false)
    } else if is_std("rwlock::futex::", "futex_rwlock::") && (is_of_readers() || is_of_writers()) {
        of(LockKind::RustStdReadWrite, is_of_readers())
    } else {
        Code::Other
    }
}

/// What a function does with locks.
pub(super) fn code_of(function: &str) -> Code {
    let name = function.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_');
    of_beginning(BEGINNINGS, name).unwrap_or(Code::Other)
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

    #[test]
    fn locks_that_tasks_sleep_for_are_known_by_name() {
        use LockKind::{KernelMutex, KernelReadWriteSemaphore, KernelSleepingSpin};
        for (name, code) in [
            ("mutex_lock", Some(SleepingCode::Takes(KernelMutex, false))),
            ("__mutex_lock.constprop.0", Some(SleepingCode::Takes(KernelMutex, false))),
            ("mutex_unlock", Some(SleepingCode::GivesBack)),
            ("__mutex_unlock_slowpath.isra.0", Some(SleepingCode::GivesBack)),
            ("down_read_killable", Some(SleepingCode::Takes(KernelReadWriteSemaphore, true))),
            ("down_write", Some(SleepingCode::Takes(KernelReadWriteSemaphore, false))),
            ("up_read", Some(SleepingCode::GivesBack)),
            ("rt_spin_lock", Some(SleepingCode::Takes(KernelSleepingSpin, false))),
            ("mutex_is_locked", None),
            ("mutex_spin_on_owner", None),
            ("update_curr", None),
        ] {
            assert_eq!(sleeping_code(name), code, "{name}");
        }
    }

    #[test]
    fn rusts_locks_are_known_where_they_are_inlined() {
        use LockKind::{ParkingLot, ParkingLotReadWrite, RustStd, RustStdReadWrite};
        let at = |inlined: &[&str]| {
            let inlined: Vec<String> = inlined.iter().map(|name| (*name).to_owned()).collect();
            code_at("m::work", &inlined)
        };
        let lock = "std::sync::poison::mutex::Mutex<m::Account>::lock<m::Account>";
        let swap = "core::sync::atomic::AtomicU32::swap";
        assert_eq!(
            at(&[lock, "std::sys::sync::mutex::futex::Mutex::lock", swap]),
            Code::Takes(RustStd, false)
        );
        assert_eq!(at(&[lock]), Code::Other, "what follows it");
        for (name, code) in [
            ("std::sys::sync::mutex::futex::Mutex::unlock", Code::GivesBack),
            ("std::sys::sync::rwlock::futex::RwLock::read", Code::Takes(RustStdReadWrite, true)),
            ("std::sys::sync::rwlock::futex::RwLock::read_unlock", Code::GivesBack),
            ("std::sys::unix::locks::futex_rwlock::RwLock::write", Code::Takes(RustStdReadWrite, false)),
            ("parking_lot::raw_mutex::{impl#0}::lock", Code::Takes(ParkingLot, false)),
            ("parking_lot::raw_mutex::{impl#0}::unlock", Code::GivesBack),
            (
                "parking_lot::raw_rwlock::{impl#10}::lock_shared_slow::{closure#0}",
                Code::Takes(ParkingLotReadWrite, true),
            ),
            ("parking_lot::raw_rwlock::{impl#0}::unlock_exclusive", Code::GivesBack),
            (
                "parking_lot_core::parking_lot::park<parking_lot::raw_mutex::{impl#3}::lock_slow>",
                Code::Inside,
            ),
        ] {
            assert_eq!(at(&["m::inner", name, swap]), code, "{name}");
        }
        assert_eq!(
            code_at("std::sys::sync::mutex::futex::Mutex::lock_contended", &[]),
            Code::Takes(RustStd, false)
        );
    }
}
