//! The system's ABI on this processor: system calls, the place of thread-local data, and the roles of registers.

use crate::threads::slots::Slots;

/// A handler of a signal, as the kernel calls it.
pub(crate) type Handler = unsafe extern "C-unwind" fn(i32, *mut libc::siginfo_t, *mut libc::ucontext_t);

/// The part of a machine that is the system's ABI.
///
/// Its module also defines functions that are found by their names, since neither the C library nor a loader may be
/// asked. `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp` are hidden from the program. They change only registers
/// that the gate keeps when an allocator hands over (see [`super::Gates::gate`]). Three are exported for programs that
/// are linked statically: `lineup_alone_strlen`; `lineup_alone___tls_get_addr`, which the compiler calls for a
/// thread-local variable; and `lineup_alone_missing`, which ends the program by SIGABRT without a stack.
pub(crate) trait Abi {
    /// The program's registers while the engine runs, as the gates keep and restore them.
    type Registers: Registers;
    /// The registers in a signal's context.
    type Context: Context;

    /// Bytes of the instruction that makes a system call: the distance from it to the return address.
    const SYSTEM_CALL_BYTES: u64;
    /// The end of the program's addresses.
    const ADDRESSES_END: u64;
    /// Bytes of stack that a call takes for its return address, and a return gives back: 0 where that lies in a
    /// register.
    const RETURN_BYTES: u64;
    /// The system calls that make a process with a copy of this one's memory, and one that borrows it, without a flag;
    /// `None` where the system has no such call.
    const FORK: Option<i64>;
    /// See [`Abi::FORK`].
    const VFORK: Option<i64>;
    /// The system call that gives a thread another base, and its first argument then.
    const SET_BASE: (i64, u64);
    /// The machine's number in filters of system calls (seccomp).
    const AUDITED_AS: u32;

    /// Bytes of the system's pages, a power of two: mappings begin and end at multiples.
    fn page_bytes() -> u64;

    /// Makes a system call, without the C library. Errors are negative.
    ///
    /// # Safety
    /// As for the call.
    unsafe fn system_call(number: i64, arguments: [u64; 6]) -> i64;

    /// By a system call: reads a symbolic link's target into `text`. Returns its number of bytes, or an error below 0.
    ///
    /// # Safety
    /// The path is a terminated text.
    unsafe fn read_link(path: *const u8, text: &mut [u8]) -> i64;

    /// The processor's counter, which advances evenly: the same one that translated code and the code of stamps read.
    fn counter() -> u64;

    /// Distance of the slots from a thread's base: the same in all threads, since the loader gives a library that is
    /// there from the start its place in the block of every thread.
    fn slots_distance() -> i32;

    /// This thread's slots.
    fn slots() -> *mut Slots;

    /// The return address of a function that has just been called, with these registers and this stack pointer.
    ///
    /// # Safety
    /// The function has executed nothing.
    unsafe fn return_address(stack: u64, registers: &Self::Registers) -> u64;

    /// Lays out a block for a thread of the engine's own in this zeroed memory: its slots, and the words that the C
    /// library's code reads without knowing the thread, are at their distance from the base. `None` when there is too
    /// little of it.
    ///
    /// # Safety
    /// No code uses the memory.
    unsafe fn thread_block(memory: u64, bytes: u64) -> Option<ThreadBlock>;

    /// Makes a thread that sleeps until it gets a signal, and then again, with this stack and base; its number, or an
    /// error below 0.
    ///
    /// # Safety
    /// Stack and base must be memory of its own.
    unsafe fn make_thread(flags: u64, block: &ThreadBlock) -> i64;

    /// Return address of a signal's handler that the kernel is to return from: code that unwinders know as such.
    fn return_from_signal() -> u64;

    /// Runs a handler in the cache. `leads_there` is code of [`super::Gates::go_in`], which gets the handler's address.
    /// The handler returns to [`Abi::after_handler`], outside the cache, and that to the caller. Unwinders find the way
    /// back to this function from its frames.
    ///
    /// # Safety
    /// As the kernel would call the handler.
    unsafe fn run_in_cache(
        signal: i32,
        info: *mut libc::siginfo_t,
        context: *mut libc::ucontext_t,
        handler: Handler,
        leads_there: u64,
    );

    /// Return address of a handler that runs in the cache: there, the thread leaves it.
    fn after_handler() -> u64;

    /// Calls a function on another stack, of which this is the top.
    ///
    /// # Safety
    /// Nothing uses that stack. The function may be called with the argument, and returns.
    unsafe fn call_on_stack(top: u64, function: unsafe extern "C" fn(*mut ()), argument: *mut ());
}

/// Memory of a thread of the engine's own.
pub(crate) struct ThreadBlock {
    /// The top of its stack, which reaches down to the beginning of the memory.
    pub(crate) stack: u64,
    pub(crate) base: u64,
}

/// The program's registers while the engine runs.
pub(crate) trait Registers {
    /// The number of the system call that is about to be made.
    fn call(&self) -> i64;

    /// Changes it.
    fn set_call(&mut self, number: i64);

    /// The arguments of the system call that is about to be made.
    fn arguments(&self) -> [u64; 6];

    /// Sets the system call's result.
    fn set_result(&mut self, result: u64);

    /// Sets the other registers that a system call changes, as if it had been made at its own place and had returned to
    /// `next`.
    fn come_back(&mut self, next: u64);

    /// As [`Registers::come_back`], of a call in place of which code of [`super::Gates::in_place_of_call`] stands: no
    /// register is to hold a value that the system would not have left there.
    fn come_back_to_site(&mut self);

    /// The first six arguments of a function that has just been called: integers and pointers in registers.
    fn function_arguments(&self) -> [u64; 6];

    /// The result of a function that has just returned.
    fn function_result(&self) -> u64;

    /// The register that holds a function's frame, where it has one that a register holds.
    fn frame_pointer(&self) -> u64;

    /// The number that code of [`super::Gates::before_choosing`] passes.
    fn chooser(&self) -> usize;
}

/// The registers in a signal's context. Equal ones let the thread continue in the same way.
pub(crate) trait Context: Copy + PartialEq {
    /// The registers in the context that the kernel has given a handler.
    ///
    /// # Safety
    /// The kernel's context, and no other reference to its registers is used meanwhile.
    unsafe fn of<'a>(context: *mut libc::ucontext_t) -> &'a mut Self;

    /// The address where the thread continues.
    fn pc(&self) -> u64;

    /// Sets the address where the thread continues.
    fn set_pc(&mut self, pc: u64);

    /// The stack pointer.
    fn stack(&self) -> u64;
}
