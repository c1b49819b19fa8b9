//! Copying, filling and comparing memory, in place of the C library's functions: those belong to the recorded program.
//! They use vector registers, and the gate does not keep the upper parts of these when an allocator hands over.

use std::arch::global_asm;

// The functions that the compiler calls to copy, move, fill and compare. By the ABI `rdi` holds the destination, `rsi`
// the source or the byte, and `rdx` the number of bytes. They return the destination, or the order of the bytes. `rax`,
// `rcx`, `rdx`, `rsi`, `rdi`, `r8` and `xmm0` may be changed.
global_asm!(
    ".pushsection .text",
    ".globl memcpy, memmove, memset, memcmp, bcmp",
    ".hidden memcpy, memmove, memset, memcmp, bcmp",
    ".type memcpy, @function",
    ".type memmove, @function",
    ".type memset, @function",
    ".type memcmp, @function",
    ".type bcmp, @function",
    // When the destination begins inside the source, the last bytes are moved first.
    "memmove:",
    "mov rax, rdi",
    "sub rax, rsi",
    "cmp rax, rdx",
    "jae memcpy",
    "mov rax, rdi",
    "2:",
    "cmp rdx, 8",
    "jb 3f",
    "mov rcx, qword ptr [rsi + rdx - 8]",
    "mov qword ptr [rdi + rdx - 8], rcx",
    "sub rdx, 8",
    "jmp 2b",
    "3:",
    "test rdx, rdx",
    "jz 4f",
    "mov cl, byte ptr [rsi + rdx - 1]",
    "mov byte ptr [rdi + rdx - 1], cl",
    "dec rdx",
    "jmp 3b",
    "4:",
    "ret",
    ".size memmove, . - memmove",
    "memcpy:",
    "mov rax, rdi",
    "cmp rdx, 256",
    "ja 4f",
    "6:",
    "cmp rdx, 16",
    "jb 2f",
    "movups xmm0, xmmword ptr [rsi]",
    "movups xmmword ptr [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "sub rdx, 16",
    "jmp 6b",
    "2:",
    "cmp rdx, 8",
    "jb 3f",
    "mov rcx, qword ptr [rsi]",
    "mov qword ptr [rdi], rcx",
    "add rsi, 8",
    "add rdi, 8",
    "sub rdx, 8",
    "jmp 2b",
    "3:",
    "test rdx, rdx",
    "jz 5f",
    "mov cl, byte ptr [rsi]",
    "mov byte ptr [rdi], cl",
    "inc rsi",
    "inc rdi",
    "dec rdx",
    "jmp 3b",
    "4:",
    "mov rcx, rdx",
    "rep movsb",
    "5:",
    "ret",
    ".size memcpy, . - memcpy",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".size memset, . - memset",
    "memcmp:",
    "bcmp:",
    "2:",
    "cmp rdx, 8",
    "jb 3f",
    "mov rcx, qword ptr [rsi]",
    "cmp rcx, qword ptr [rdi]",
    "jne 3f",
    "add rsi, 8",
    "add rdi, 8",
    "sub rdx, 8",
    "jmp 2b",
    "3:",
    "test rdx, rdx",
    "jz 4f",
    "movzx eax, byte ptr [rdi]",
    "movzx ecx, byte ptr [rsi]",
    "inc rsi",
    "inc rdi",
    "dec rdx",
    "sub eax, ecx",
    "jz 3b",
    "ret",
    "4:",
    "xor eax, eax",
    "ret",
    ".size memcmp, . - memcmp",
    ".size bcmp, . - bcmp",
    ".popsection",
);

#[cfg(test)]
mod tests {
    /// Every length and distance around the words that are moved at once, also where both overlap.
    #[test]
    fn memory_is_moved_as_if_through_another_place() {
        let bytes: Vec<u8> = (0..700u32).map(|number| (number * 7 % 251) as u8).collect();
        let lengths = (0..40).chain([255, 256, 257, 300]);
        for length in lengths {
            for (from, to) in
                [(300, 0), (0, 300), (10, 10), (10, 11), (11, 10), (10, 17), (17, 10), (10, 18), (9, 40)]
            {
                let mut moved = bytes.clone();
                moved.copy_within(from..from + length, to);
                let expected = |at: usize| match at.checked_sub(to).filter(|distance| *distance < length) {
                    Some(distance) => bytes[from + distance],
                    None => bytes[at],
                };
                assert!(
                    moved.iter().enumerate().all(|(at, byte)| *byte == expected(at)),
                    "{from} {to} {length}"
                );
            }
            let mut filled = bytes.clone();
            filled[5..5 + length].fill(0xa5);
            assert!(filled[5..5 + length].iter().all(|byte| *byte == 0xa5), "{length}");
            assert_eq!((filled[4], filled[5 + length]), (bytes[4], bytes[5 + length]));
            let mut copy = filled[3..3 + length].to_vec();
            assert_eq!(copy, filled[3..3 + length]);
            for at in 0..length {
                copy[at] = copy[at].wrapping_add(0x80);
                assert_eq!(
                    copy.cmp(&filled[3..3 + length].to_vec()),
                    copy[at].cmp(&filled[3 + at]),
                    "{at} {length}"
                );
                assert_ne!(copy, filled[3..3 + length]);
                copy[at] = filled[3 + at];
            }
        }
    }
}
