//! The library's imports, for programs that are linked statically, see [`crate::start::static_program`].

use std::arch::naked_asm;
use std::ffi::{c_char, c_void};

/// Bytes before the one that is zero.
///
/// # Safety
/// As for `strlen`.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_alone_strlen(text: *const c_char) -> usize {
    naked_asm!(
        "lea rax, [rdi - 1]",
        "2:",
        "inc rax",
        "cmp byte ptr [rax], 0",
        "jne 2b",
        "sub rax, rdi",
        "ret"
    )
}

/// A variable of this thread: the first word is the distance of the library's variables from the thread's base, the
/// second that of the variable from these.
///
/// # Safety
/// As for `__tls_get_addr`: it may change the registers that a function may, but changes none.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_alone___tls_get_addr(words: *const [u64; 2]) -> *mut c_void {
    naked_asm!("mov rax, fs:[0]", "add rax, [rdi]", "add rax, [rdi + 8]", "ret")
}

/// In place of all other imports: ends the program by the signal with which a panic ends it.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn lineup_alone_missing() {
    naked_asm!(
        "mov eax, {getpid}",
        "syscall",
        "mov edi, eax",
        "mov esi, {abort}",
        "mov eax, {kill}",
        "syscall",
        "mov edi, 134",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        getpid = const libc::SYS_getpid,
        abort = const libc::SIGABRT,
        kill = const libc::SYS_kill,
        exit = const libc::SYS_exit_group,
    )
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_at_its_first_zero() {
        // SAFETY: terminated texts.
        let lengths = [c"some text", c"", c"a"].map(|text| unsafe { lineup_alone_strlen(text.as_ptr()) });
        assert_eq!(lengths, [9, 0, 1]);
    }
}
