//! One word of each thread. In a library, Rust's own thread-local variables cost a call; this one costs two loads.

#[cfg(target_arch = "x86_64")]
mod word {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".section .tbss.lineup_heap_thread_word,\"awT\",@nobits",
        ".globl lineup_heap_thread_word",
        ".hidden lineup_heap_thread_word",
        ".type lineup_heap_thread_word,@object",
        ".size lineup_heap_thread_word,8",
        ".balign 8",
        "lineup_heap_thread_word:",
        ".zero 8",
        ".previous",
    );

    #[inline(always)]
    pub(crate) fn get() -> usize {
        let word: usize;
        // SAFETY: the offset of this module's variable, which the loader put into each thread's static block.
        unsafe {
            asm!(
                "mov {word}, qword ptr [rip + lineup_heap_thread_word@GOTTPOFF]",
                "mov {word}, qword ptr fs:[{word}]",
                word = out(reg) word,
                options(nostack, preserves_flags, readonly)
            );
        }
        word
    }

    pub(crate) fn set(to: usize) {
        // SAFETY: as above; no other thread uses this one's word.
        unsafe {
            asm!(
                "mov {place}, qword ptr [rip + lineup_heap_thread_word@GOTTPOFF]",
                "mov qword ptr fs:[{place}], {to}",
                place = out(reg) _,
                to = in(reg) to,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod word {
    use std::cell::Cell;

    thread_local! {
        static WORD: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn get() -> usize {
        WORD.get()
    }

    pub(crate) fn set(to: usize) {
        WORD.set(to);
    }
}

pub(crate) use word::{get, set};
