//! The functions replaced, as the next library in line has them.

use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t, timespec};
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A function looked up once.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(std::ptr::null_mut()) }
    }

    fn address(&self) -> *mut c_void {
        let known = self.address.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a terminated name; every C library that has the function we replace exports it.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        if found.is_null() {
            std::process::abort();
        }
        self.address.store(found, Relaxed);
        found
    }
}

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ident: $ty:ty),*);)*) => {$(
        pub(crate) unsafe extern "C" fn $name($($argument: $ty),*) -> c_int {
            static NEXT: Next = Next::new($symbol);
            // SAFETY: the C library's function of this name has this type; the caller keeps its contract.
            unsafe {
                let function: unsafe extern "C" fn($($ty),*) -> c_int = std::mem::transmute(NEXT.address());
                function($($argument),*)
            }
        }
    )*};
}

functions! {
    mutex_lock = c"pthread_mutex_lock"(mutex: *mut c_void);
    mutex_trylock = c"pthread_mutex_trylock"(mutex: *mut c_void);
    mutex_unlock = c"pthread_mutex_unlock"(mutex: *mut c_void);
    spin_lock = c"pthread_spin_lock"(spin: *mut c_void);
    spin_trylock = c"pthread_spin_trylock"(spin: *mut c_void);
    spin_unlock = c"pthread_spin_unlock"(spin: *mut c_void);
    cond_wait = c"pthread_cond_wait"(condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    cond_timedwait = c"pthread_cond_timedwait"(
        condition: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, until: *const timespec
    );
}
