//! Recognition of code that handles locks, by the names of the locks' functions.

use serde::Serialize;

/// The implementation of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// A mutex or spin lock of the C library.
    CLibrary,
    /// A reader-writer lock of the C library.
    CLibraryReadWrite,
    /// A semaphore of the C library.
    CLibrarySemaphore,
    /// A `std::counting_semaphore` of GCC's C++ library.
    CppSemaphore,
    /// A spin lock of a Linux kernel.
    Kernel,
    /// A spinning reader-writer lock of a Linux kernel.
    KernelReadWrite,
    /// A mutex of a Linux kernel.
    KernelMutex,
    /// A reader-writer semaphore of a Linux kernel.
    KernelReadWriteSemaphore,
    /// A counting semaphore of a Linux kernel.
    KernelSemaphore,
    /// A spin lock of a Linux kernel with PREEMPT_RT, for which tasks sleep.
    KernelSleepingSpin,
    /// A reader-writer lock of a Linux kernel with PREEMPT_RT, for which tasks sleep.
    KernelSleepingReadWrite,
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
            LockKind::Kernel | LockKind::CppSemaphore => 4,
            LockKind::KernelMutex | LockKind::CLibrarySemaphore => 32,
            LockKind::KernelReadWriteSemaphore | LockKind::KernelSleepingReadWrite => 40,
            LockKind::KernelSemaphore => 24,
            LockKind::KernelReadWrite | LockKind::KernelSleepingSpin | LockKind::ParkingLotReadWrite => 8,
            // The word and the flag for panics.
            LockKind::RustStd => 5,
            LockKind::RustStdReadWrite => 9,
            LockKind::ParkingLot | LockKind::SpinLoop => 1,
        }
    }

    /// True for locks that a task of a kernel has, on any CPU it runs on.
    pub fn is_of_tasks(self) -> bool {
        use LockKind::{KernelMutex, KernelReadWriteSemaphore, KernelSemaphore};
        use LockKind::{KernelSleepingReadWrite, KernelSleepingSpin};
        matches!(self, KernelMutex | KernelReadWriteSemaphore | KernelSemaphore)
            || matches!(self, KernelSleepingReadWrite | KernelSleepingSpin)
    }

    /// True for locks that only one holder can have at a time.
    pub(in crate::threads) fn is_exclusive(self) -> bool {
        use LockKind::{CLibrary, Kernel, KernelMutex, KernelSleepingSpin, ParkingLot, RustStd, SpinLoop};
        matches!(self, CLibrary | RustStd | ParkingLot | SpinLoop | Kernel | KernelMutex | KernelSleepingSpin)
    }

    /// True for a kernel's.
    pub(super) fn is_of_kernel(self) -> bool {
        self.is_of_tasks() || matches!(self, LockKind::Kernel | LockKind::KernelReadWrite)
    }

    /// Whether `address` belongs to the same lock as `word`, for locks that tasks sleep for. PREEMPT_RT's reader-writer
    /// locks have the readers' number, and the writer's task 32 bytes behind it.
    pub(super) fn is_at(self, word: u64, address: u64) -> bool {
        const OWNER_BYTES: u64 = 32;
        let distance = word.abs_diff(address);
        match self {
            LockKind::KernelSemaphore => distance < self.own_bytes(),
            LockKind::KernelReadWriteSemaphore | LockKind::KernelSleepingReadWrite => {
                distance == 0 || distance == OWNER_BYTES
            }
            _ => distance == 0,
        }
    }

    /// True for locks that several threads may have, and that any thread may give back, even one that did not take it.
    pub(super) fn is_semaphore(self) -> bool {
        matches!(self, LockKind::CLibrarySemaphore | LockKind::CppSemaphore | LockKind::KernelSemaphore)
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

    /// True when a store to a part of the word gives it back from any code: a kernel's unlocking is inlined.
    pub(super) fn ends_with_a_small_store(self) -> bool {
        matches!(self, LockKind::Kernel | LockKind::KernelReadWrite)
    }

    /// In words, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::CLibrary => "mutexes and spin locks of the C library",
            LockKind::CLibraryReadWrite => "reader-writer locks of the C library",
            LockKind::CLibrarySemaphore => "semaphores of the C library",
            LockKind::CppSemaphore => "semaphores of the C++ library",
            LockKind::Kernel => "spin locks of the kernel",
            LockKind::KernelReadWrite => "reader-writer locks of the kernel",
            LockKind::KernelMutex => "mutexes of the kernel",
            LockKind::KernelReadWriteSemaphore => "reader-writer semaphores of the kernel",
            LockKind::KernelSemaphore => "semaphores of the kernel",
            LockKind::KernelSleepingReadWrite => "reader-writer locks of the kernel for which tasks sleep",
            LockKind::KernelSleepingSpin => "spin locks of the kernel for which tasks sleep",
            LockKind::RustStd => "mutexes of Rust's library",
            LockKind::RustStdReadWrite => "reader-writer locks of Rust's library",
            LockKind::ParkingLot => "mutexes of parking_lot",
            LockKind::ParkingLotReadWrite => "reader-writer locks of parking_lot",
            LockKind::SpinLoop => "words that the program spins on",
        }
    }
}

/// The role of code in handling locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Code {
    /// Takes a lock, alone or together with others.
    Takes(LockKind, IsShared),
    GivesBack,
    /// Gives a semaphore back, from any thread.
    Posts,
    /// On behalf of either.
    Inside,
    Other,
}

/// Whether others may have the lock at the same time.
pub(super) type IsShared = bool;

/// Beginnings of function names, with the role of those functions.
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
    ("sem_post", Code::Posts),
    ("sem_wait", Code::Takes(LockKind::CLibrarySemaphore, false)),
    ("sem_trywait", Code::Takes(LockKind::CLibrarySemaphore, false)),
    ("sem_timedwait", Code::Takes(LockKind::CLibrarySemaphore, false)),
    ("sem_clockwait", Code::Takes(LockKind::CLibrarySemaphore, false)),
    ("new_sem_post", Code::Posts),
    ("new_sem_wait", Code::Takes(LockKind::CLibrarySemaphore, false)),
    ("new_sem_trywait", Code::Takes(LockKind::CLibrarySemaphore, false)),
    ("do_futex_wait", Code::Inside),
    ("sched_yield", Code::Inside),
    ("pthread_testcancel", Code::Inside),
    ("pthread_cleanup_", Code::Inside),
    ("pthread_register_cancel", Code::Inside),
    ("pthread_unregister_cancel", Code::Inside),
    ("pthread_enable_asynccancel", Code::Inside),
    ("pthread_disable_asynccancel", Code::Inside),
    ("internal_syscall_cancel", Code::Inside),
    ("lll_lock_w", Code::Inside),
    ("lll_mutex_lock", Code::Inside),
    ("futex_", Code::Inside),
    ("syscall", Code::Inside),
    // After a wait that failed because the lock was given back before it began, the asking code reads the error.
    ("errno_location", Code::Inside),
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

/// The role of a kernel's code in handling locks that tasks sleep for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SleepingCode {
    /// Takes a lock, alone or together with others.
    Takes(LockKind, IsShared),
    GivesBack,
    /// Gives a semaphore back.
    Posts,
}

/// Beginnings of function names, with the role of those functions; the first that fits counts.
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
    ("rt_read_unlock", SleepingCode::GivesBack),
    ("rt_write_unlock", SleepingCode::GivesBack),
    ("rt_read_lock", SleepingCode::Takes(LockKind::KernelSleepingReadWrite, true)),
    ("rt_read_trylock", SleepingCode::Takes(LockKind::KernelSleepingReadWrite, true)),
    ("rt_write_lock", SleepingCode::Takes(LockKind::KernelSleepingReadWrite, false)),
    ("rt_write_trylock", SleepingCode::Takes(LockKind::KernelSleepingReadWrite, false)),
    // PREEMPT_RT implements its reader-writer locks and semaphores with these functions.
    ("rwbase_read_unlock", SleepingCode::GivesBack),
    ("rwbase_write_unlock", SleepingCode::GivesBack),
    ("rwbase_read_lock", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, true)),
    ("rwbase_write_lock", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, false)),
    ("up_read", SleepingCode::GivesBack),
    ("up_write", SleepingCode::GivesBack),
    ("down_read", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, true)),
    ("down_write", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, false)),
    ("rwsem_down_read", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, true)),
    ("rwsem_down_write", SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, false)),
];

/// Functions of a kernel's semaphores that take one: many other names begin so.
const DOWN: [&str; 6] =
    ["down", "down_interruptible", "down_killable", "down_trylock", "down_timeout", "down_common"];

/// The role of a kernel's function in handling locks that tasks sleep for.
pub(super) fn sleeping_code(function: &str) -> Option<SleepingCode> {
    let name = function.trim_start_matches('_');
    match name.split('.').next().unwrap_or_default() {
        "up" => Some(SleepingCode::Posts),
        name if DOWN.contains(&name) => Some(SleepingCode::Takes(LockKind::KernelSemaphore, false)),
        _ => of_beginning(SLEEPING, name),
    }
}

/// The entry of the first beginning that a name has.
fn of_beginning<T: Copy>(beginnings: &[(&str, T)], name: &str) -> Option<T> {
    let known = beginnings.iter().find(|(beginning, _)| name.starts_with(beginning));
    known.map(|(_, code)| *code)
}

/// The role of code in handling locks: that of the innermost function inlined there that has one, or that of the
/// function itself.
pub(super) fn code_at(function: &str, inlined: &[String]) -> Code {
    let of_library = |name: &str| match rust_code_of(name) {
        Code::Other => cpp_code_of(name),
        code => code,
    };
    let known = inlined.iter().rev().map(|name| of_library(name)).find(|code| *code != Code::Other);
    known.unwrap_or_else(|| match of_library(function) {
        Code::Other => code_of(function),
        code => code,
    })
}

/// The role of a Rust library's function in handling locks.
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

/// The role of a GCC C++ library function in handling semaphores; mutexes are those of the C library. Only the attempt
/// changes the semaphore: the code around it waits, in a pool that all semaphores share.
fn cpp_code_of(function: &str) -> Code {
    const WAITING: [&str; 5] = ["__platform_wait", "__waiter", "__atomic_spin", "__atomic_wait", "__thread_"];
    let waits = || function.strip_prefix("std::__detail::").or(function.strip_prefix("std::"));
    let is_waiting = || waits().is_some_and(|name| WAITING.iter().any(|waiting| name.starts_with(waiting)));
    let is_semaphores = function.contains("__atomic_semaphore::") || function.contains("counting_semaphore<");
    if !is_semaphores {
        if is_waiting() { Code::Inside } else { Code::Other }
    } else if function.starts_with("std::__atomic_semaphore::_S_do_try_acquire") {
        Code::Takes(LockKind::CppSemaphore, false)
    } else if function.starts_with("std::__atomic_semaphore::_M_release") {
        Code::Posts
    } else {
        Code::Inside
    }
}

/// The role of a function in handling locks.
pub(super) fn code_of(function: &str) -> Code {
    let name = function.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_');
    of_beginning(BEGINNINGS, name).unwrap_or(Code::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_known_by_the_names_that_its_authors_gave_it() {
        use LockKind::{CLibrary, CLibraryReadWrite, CLibrarySemaphore, Kernel, KernelReadWrite};
        for (name, code) in [
            ("___pthread_mutex_lock", Code::Takes(CLibrary, false)),
            ("__GI___pthread_mutex_unlock_usercnt", Code::GivesBack),
            ("pthread_spin_lock", Code::Takes(CLibrary, false)),
            ("__pthread_rwlock_rdlock_full64", Code::Takes(CLibraryReadWrite, true)),
            ("___pthread_rwlock_trywrlock", Code::Takes(CLibraryReadWrite, false)),
            ("___pthread_rwlock_unlock", Code::GivesBack),
            ("__lll_lock_wait", Code::Inside),
            ("__errno_location", Code::Inside),
            ("__new_sem_wait_slow64.constprop.0", Code::Takes(CLibrarySemaphore, false)),
            ("sem_clockwait", Code::Takes(CLibrarySemaphore, false)),
            ("sem_post", Code::Posts),
            ("sem_init", Code::Other),
            ("__pthread_enable_asynccancel", Code::Inside),
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
        use LockKind::{KernelMutex, KernelReadWriteSemaphore, KernelSemaphore};
        use LockKind::{KernelSleepingReadWrite, KernelSleepingSpin};
        for (name, code) in [
            ("mutex_lock", Some(SleepingCode::Takes(KernelMutex, false))),
            ("__mutex_lock.constprop.0", Some(SleepingCode::Takes(KernelMutex, false))),
            ("mutex_unlock", Some(SleepingCode::GivesBack)),
            ("__mutex_unlock_slowpath.isra.0", Some(SleepingCode::GivesBack)),
            ("down_read_killable", Some(SleepingCode::Takes(KernelReadWriteSemaphore, true))),
            ("down_write", Some(SleepingCode::Takes(KernelReadWriteSemaphore, false))),
            ("up_read", Some(SleepingCode::GivesBack)),
            ("rt_spin_lock", Some(SleepingCode::Takes(KernelSleepingSpin, false))),
            ("down_interruptible", Some(SleepingCode::Takes(KernelSemaphore, false))),
            ("__down_common.isra.0", Some(SleepingCode::Takes(KernelSemaphore, false))),
            ("__up.isra.0", Some(SleepingCode::Posts)),
            ("rt_write_lock", Some(SleepingCode::Takes(KernelSleepingReadWrite, false))),
            ("__rwbase_read_unlock", Some(SleepingCode::GivesBack)),
            ("down_console_sem", None),
            ("mutex_is_locked", None),
            ("mutex_spin_on_owner", None),
            ("update_curr", None),
        ] {
            assert_eq!(sleeping_code(name), code, "{name}");
        }
    }

    #[test]
    fn a_semaphore_of_the_cpp_library_is_known_by_the_attempt_and_what_waits_around_it() {
        let attempt = "std::__atomic_semaphore::_S_do_try_acquire";
        for (name, code) in [
            (attempt, Code::Takes(LockKind::CppSemaphore, false)),
            ("std::__atomic_semaphore::_M_release", Code::Posts),
            (
                "std::__atomic_wait_address_bare<std::__atomic_semaphore::_M_acquire()::<lambda()> >",
                Code::Inside,
            ),
            ("std::__detail::__platform_wait<int>", Code::Inside),
            ("std::counting_semaphore<4>::acquire", Code::Inside),
            ("std::barrier<>::wait", Code::Other),
        ] {
            assert_eq!(code_at("work", &[name.to_owned()]), code, "{name}");
        }
        let inside = ["std::counting_semaphore<4>::acquire", attempt, "std::__atomic_base<int>::load"];
        let inside = inside.map(str::to_owned);
        assert_eq!(code_at("work", &inside), Code::Takes(LockKind::CppSemaphore, false));
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
