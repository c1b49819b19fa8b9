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
    /// See [`crate::machine::Abi::call_on_stack`].
    #[link_name = "lineup_engine_on_stack"]
    pub(crate) fn on_stack(top: u64, function: unsafe extern "C" fn(*mut ()), argument: *mut ());
}

global_asm!(
    ".pushsection .text",
    ".globl lineup_engine_on_stack",
    ".hidden lineup_engine_on_stack",
    "lineup_engine_on_stack:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdi",
    "and rsp, -16",
    "mov rdi, rdx",
    "call rsi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".popsection",
);

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
