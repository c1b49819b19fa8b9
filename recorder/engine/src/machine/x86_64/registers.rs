//! The program's registers: while the engine runs, and in a signal's context.

use crate::machine::Context;

/// The program's registers while the engine runs, in the gate's layout on the engine's stack.
#[repr(C)]
pub(crate) struct Registers {
    pub(crate) flags: u64,
    pub(crate) r15: u64,
    pub(crate) r14: u64,
    pub(crate) r13: u64,
    pub(crate) r12: u64,
    pub(crate) r11: u64,
    pub(crate) r10: u64,
    pub(crate) r9: u64,
    pub(crate) r8: u64,
    pub(crate) rdi: u64,
    pub(crate) rsi: u64,
    pub(crate) rbp: u64,
    pub(crate) rbx: u64,
    pub(crate) rdx: u64,
    pub(crate) rcx: u64,
    pub(crate) rax: u64,
}

impl crate::machine::Registers for Registers {
    fn call(&self) -> i64 {
        self.rax as i64
    }

    fn set_call(&mut self, number: i64) {
        self.rax = number as u64;
    }

    fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }

    fn set_result(&mut self, result: u64) {
        self.rax = result;
    }

    fn come_back(&mut self, next: u64) {
        self.rcx = next;
    }

    fn come_back_to_site(&mut self) {
        self.rcx = self.r11;
    }

    fn function_arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.rcx, self.r8, self.r9]
    }

    fn function_result(&self) -> u64 {
        self.rax
    }

    fn frame_pointer(&self) -> u64 {
        self.rbp
    }

    fn chooser(&self) -> usize {
        self.rax as usize
    }
}

/// In the kernel's order.
pub(crate) type Gregs = [libc::greg_t; 23];

impl Context for Gregs {
    unsafe fn of<'a>(context: *mut libc::ucontext_t) -> &'a mut Gregs {
        // SAFETY: the caller's promise.
        unsafe { &mut (*context).uc_mcontext.gregs }
    }

    fn pc(&self) -> u64 {
        self[libc::REG_RIP as usize] as u64
    }

    fn set_pc(&mut self, pc: u64) {
        self[libc::REG_RIP as usize] = pc as libc::greg_t;
    }

    fn stack(&self) -> u64 {
        self[libc::REG_RSP as usize] as u64
    }
}

/// The kernel's numbers of registers, by ours.
pub(crate) const GREGS: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];
