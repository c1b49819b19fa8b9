//! Asking the emulator for callbacks. Up to version 6 of its interface each gets the plugin's number. From version 7 on
//! (QEMU 11.1) each gets a pointer of the plugin's own, at another place. The called code is the same: each callback is
//! a type, which is called from a function of the form that the emulator has. Callbacks of system calls and of threads
//! were tried up to version 4 alone: emulators of programs that take plugins are older.

use crate::handles::{PluginId, Tb};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

/// The first version whose callbacks get a pointer.
pub(crate) const POINTED_SINCE: c_int = 7;

/// A virtual CPU, or thread, begins or ends.
pub(crate) trait OnVcpu {
    fn call(vcpu: c_uint);
}

/// A block is translated.
pub(crate) trait OnTranslate {
    /// # Safety
    /// `tb` must be valid until it returns.
    unsafe fn call(tb: *mut Tb);
}

/// A system call is about to be made.
pub(crate) trait OnSyscall {
    fn call(vcpu: c_uint, number: i64, arguments: [u64; 8]);
}

/// A system call has returned.
pub(crate) trait OnSyscallReturn {
    fn call(vcpu: c_uint, result: i64);
}

/// The emulator ends, or has forgotten every callback.
pub(crate) trait OnEvent {
    fn call();
}

/// A function for each callback, in one of the two forms.
#[derive(Clone, Copy)]
pub(crate) struct Functions<Vcpu, Translate, Syscall, SyscallReturn, Reset, Exit> {
    pub(crate) vcpu_init: Vcpu,
    pub(crate) vcpu_exit: Vcpu,
    pub(crate) translate: Translate,
    pub(crate) syscall: Syscall,
    pub(crate) syscall_return: SyscallReturn,
    pub(crate) reset: Reset,
    pub(crate) exit: Exit,
}

/// The emulator's functions that ask for callbacks.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    Numbered(Numbered),
    Pointed(Pointed),
}

type VcpuNumbered = unsafe extern "C" fn(PluginId, c_uint);
type TranslateNumbered = unsafe extern "C" fn(PluginId, *mut Tb);
type SyscallNumbered = unsafe extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
type SyscallReturnNumbered = unsafe extern "C" fn(PluginId, c_uint, i64, i64);
type ResetNumbered = unsafe extern "C" fn(PluginId);
type ExitNumbered = unsafe extern "C" fn(PluginId, *mut c_void);

/// Asks with a callback alone.
type AskNumbered<Callback> = unsafe extern "C" fn(PluginId, Callback);

/// The functions of versions 1 to 6.
pub(crate) type Numbered = Functions<
    AskNumbered<VcpuNumbered>,
    AskNumbered<TranslateNumbered>,
    AskNumbered<SyscallNumbered>,
    AskNumbered<SyscallReturnNumbered>,
    AskNumbered<ResetNumbered>,
    unsafe extern "C" fn(PluginId, ExitNumbered, *mut c_void),
>;

type VcpuPointed = unsafe extern "C" fn(c_uint, *mut c_void);
type TranslatePointed = unsafe extern "C" fn(*mut Tb, *mut c_void);
type SyscallPointed = unsafe extern "C" fn(c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64, *mut c_void);
type SyscallReturnPointed = unsafe extern "C" fn(c_uint, i64, i64, *mut c_void);
type EventPointed = unsafe extern "C" fn(*mut c_void);
type AskPointed<Callback> = unsafe extern "C" fn(PluginId, Callback, *mut c_void);

/// The functions of version 7 and later.
pub(crate) type Pointed = Functions<
    AskPointed<VcpuPointed>,
    AskPointed<TranslatePointed>,
    AskPointed<SyscallPointed>,
    AskPointed<SyscallReturnPointed>,
    AskPointed<EventPointed>,
    AskPointed<EventPointed>,
>;

/// Asks for callbacks, with the number by which the emulator knows the plugin.
#[derive(Clone, Copy)]
pub(crate) struct Callbacks {
    pub(crate) ask: Ask,
    pub(crate) id: PluginId,
}

// SAFETY, of every block below: the emulator's functions have the types that its interface describes, and so have the
// callbacks, which live as long as the plugin.
impl Callbacks {
    pub(crate) fn on_vcpu_init<C: OnVcpu>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.vcpu_init)(self.id, vcpu_numbered::<C>) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe { (ask.vcpu_init)(self.id, vcpu_pointed::<C>, null_mut()) },
        }
    }

    pub(crate) fn on_vcpu_exit<C: OnVcpu>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.vcpu_exit)(self.id, vcpu_numbered::<C>) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe { (ask.vcpu_exit)(self.id, vcpu_pointed::<C>, null_mut()) },
        }
    }

    pub(crate) fn on_translate<C: OnTranslate>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.translate)(self.id, translate_numbered::<C>) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe { (ask.translate)(self.id, translate_pointed::<C>, null_mut()) },
        }
    }

    pub(crate) fn on_syscall<C: OnSyscall>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.syscall)(self.id, syscall_numbered::<C>) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe { (ask.syscall)(self.id, syscall_pointed::<C>, null_mut()) },
        }
    }

    pub(crate) fn on_syscall_return<C: OnSyscallReturn>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.syscall_return)(self.id, syscall_return_numbered::<C>) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe {
                (ask.syscall_return)(self.id, syscall_return_pointed::<C>, null_mut());
            },
        }
    }

    /// Has the emulator forget every callback, and calls when it has.
    pub(crate) fn reset<C: OnEvent>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.reset)(self.id, reset_numbered::<C>) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe { (ask.reset)(self.id, event_pointed::<C>, null_mut()) },
        }
    }

    pub(crate) fn on_exit<C: OnEvent>(&self) {
        match self.ask {
            // SAFETY: see above.
            Ask::Numbered(ask) => unsafe { (ask.exit)(self.id, exit_numbered::<C>, null_mut()) },
            // SAFETY: see above.
            Ask::Pointed(ask) => unsafe { (ask.exit)(self.id, event_pointed::<C>, null_mut()) },
        }
    }
}

unsafe extern "C" fn vcpu_numbered<C: OnVcpu>(_id: PluginId, vcpu: c_uint) {
    C::call(vcpu);
}

unsafe extern "C" fn vcpu_pointed<C: OnVcpu>(vcpu: c_uint, _data: *mut c_void) {
    C::call(vcpu);
}

unsafe extern "C" fn translate_numbered<C: OnTranslate>(_id: PluginId, tb: *mut Tb) {
    // SAFETY: the emulator's block is valid for this callback.
    unsafe { C::call(tb) };
}

unsafe extern "C" fn translate_pointed<C: OnTranslate>(tb: *mut Tb, _data: *mut c_void) {
    // SAFETY: the emulator's block is valid for this callback.
    unsafe { C::call(tb) };
}

#[allow(clippy::too_many_arguments, reason = "the emulator's signature")]
unsafe extern "C" fn syscall_numbered<C: OnSyscall>(
    _id: PluginId,
    vcpu: c_uint,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
    a5: u64,
    a6: u64,
    a7: u64,
    a8: u64,
) {
    C::call(vcpu, number, [a1, a2, a3, a4, a5, a6, a7, a8]);
}

#[allow(clippy::too_many_arguments, reason = "the emulator's signature")]
unsafe extern "C" fn syscall_pointed<C: OnSyscall>(
    vcpu: c_uint,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
    a5: u64,
    a6: u64,
    a7: u64,
    a8: u64,
    _data: *mut c_void,
) {
    C::call(vcpu, number, [a1, a2, a3, a4, a5, a6, a7, a8]);
}

unsafe extern "C" fn syscall_return_numbered<C: OnSyscallReturn>(
    _id: PluginId,
    vcpu: c_uint,
    _number: i64,
    result: i64,
) {
    C::call(vcpu, result);
}

unsafe extern "C" fn syscall_return_pointed<C: OnSyscallReturn>(
    vcpu: c_uint,
    _number: i64,
    result: i64,
    _data: *mut c_void,
) {
    C::call(vcpu, result);
}

unsafe extern "C" fn reset_numbered<C: OnEvent>(_id: PluginId) {
    C::call();
}

unsafe extern "C" fn exit_numbered<C: OnEvent>(_id: PluginId, _data: *mut c_void) {
    C::call();
}

unsafe extern "C" fn event_pointed<C: OnEvent>(_data: *mut c_void) {
    C::call();
}
