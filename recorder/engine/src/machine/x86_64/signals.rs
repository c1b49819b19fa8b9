//! Signals: the code that handlers return to.

use crate::machine::Handler;
use std::arch::global_asm;

unsafe extern "C-unwind" {
    /// Runs a handler in the cache: the last argument is the code that leads there, which expects the handler's address
    /// in `rcx`.
    #[link_name = "lineup_engine_in_cache"]
    pub(crate) fn in_cache(
        signal: i32,
        info: *mut libc::siginfo_t,
        context: *mut libc::ucontext_t,
        handler: Handler,
        leads_there: u64,
    );
}

unsafe extern "C" {
    #[link_name = "lineup_engine_after_handler"]
    static AFTER_HANDLER: u8;
}

// Unwinders of the handler's frames find the interrupted code from here.
global_asm!(
    ".pushsection .text",
    ".globl lineup_engine_in_cache",
    ".hidden lineup_engine_in_cache",
    "lineup_engine_in_cache:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call r8",
    ".globl lineup_engine_after_handler",
    ".hidden lineup_engine_after_handler",
    "lineup_engine_after_handler:",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".popsection",
);

/// See [`crate::machine::Abi::after_handler`].
pub(crate) fn after_handler() -> u64 {
    &raw const AFTER_HANDLER as u64
}

unsafe extern "C" {
    #[link_name = "lineup_engine_return_from_signal"]
    static RETURN_FROM_SIGNAL: u8;
}

// Unwinders know a handler's frame by these bytes.
global_asm!(
    ".pushsection .text",
    ".globl lineup_engine_return_from_signal",
    ".hidden lineup_engine_return_from_signal",
    "nop",
    "lineup_engine_return_from_signal:",
    ".byte 0x48, 0xc7, 0xc0, {call}, 0, 0, 0", // mov rax, …
    "syscall",
    ".popsection",
    call = const libc::SYS_rt_sigreturn,
);

/// See [`crate::machine::Abi::return_from_signal`].
pub(crate) fn return_from_signal() -> u64 {
    &raw const RETURN_FROM_SIGNAL as u64
}
