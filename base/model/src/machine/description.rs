//! The facts that a machine has.

/// A processor architecture whose programs Lineup reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Machine {
    /// x86-64, including the x32 data model.
    X86_64,
    /// 32-bit x86.
    I386,
    /// 32-bit Arm, A32 and Thumb.
    Arm,
    /// 64-bit Arm.
    AArch64,
    /// 64-bit RISC-V. Its layouts are read.
    RiscV64,
}

/// A machine whose instructions Lineup reads: its programs can be recorded. Of any other, only types and their layouts
/// are read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CodeMachine {
    /// x86-64.
    X86_64,
    /// 32-bit x86.
    I386,
    /// 32-bit Arm.
    Arm,
    /// 64-bit Arm.
    AArch64,
}

/// The facts about a machine.
#[derive(PartialEq, Eq, Debug)]
pub struct Description {
    /// Its name in files and messages, which is the emulator's name for its target too.
    pub name: &'static str,
    /// Its number in recordings. Never changed, never given again.
    pub file_code: u8,
    /// `e_machine` of its ELF files, from the generic ABI's list.
    pub elf_machine: u16,
    /// The machine as one whose instructions are read; `None` where only layouts are.
    pub code: Option<CodeMachine>,
    /// Bytes of a pointer in its usual data model.
    pub pointer_bytes: u8,
    /// No scalar inside an aggregate is aligned to more bytes than this.
    pub max_scalar_align_bytes: u64,
    /// Bytes of C's `long double`.
    pub long_double_bytes: u64,
    /// The machine whose data model advice is judged under besides this one's: the usual one of the other width.
    pub counterpart: Machine,
    /// Registers that carry integer arguments, in order, by DWARF number. Empty when arguments go by the stack.
    pub argument_registers: &'static [u16],
    /// The emulator's names of the registers that matter where a call begins.
    pub emulator_registers: EmulatorRegisters,
    /// The place where a call leaves its return address.
    pub return_address: ReturnAddress,
    /// True where a function may take its arguments off the stack when it returns.
    pub callee_may_pop: bool,
    /// The layout of a thread's variables around the thread pointer.
    pub threads: ThreadAbi,
    /// Debian's name for folders of libraries.
    pub triplet: &'static str,
    /// The emulator that runs its programs.
    pub program_emulator: &'static str,
    /// The folder of the target's libraries that Debian's cross compilers use.
    pub sysroot: &'static str,
    /// The emulated board that boots its kernels; `None` when none is set up.
    pub board: Option<&'static Board>,
}

/// Registers by the names that the emulator gives them.
#[derive(PartialEq, Eq, Debug)]
pub struct EmulatorRegisters {
    /// The stack pointer.
    pub stack_pointer: &'static str,
    /// The base from which a program's thread-local variables are found.
    pub thread_base: &'static str,
    /// The base from which a kernel finds the copies of variables that belong to the CPU.
    pub cpu_base: &'static str,
    /// The registers of [`Description::argument_registers`], in the same order.
    pub arguments: &'static [&'static str],
}

/// The place where a call leaves its return address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReturnAddress {
    /// In memory, where the stack pointer then points.
    OnStack,
    /// In a register, which the callee may save.
    InRegister,
}

/// Thread-local storage, after the machine's ABI and Drepper's "ELF Handling For Thread-Local Storage".
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadAbi {
    /// On which side of the base the program's own block lies.
    pub block: BlockSide,
    /// Pointers at the base that the ABI lays down and no variable uses.
    pub head_pointers: u8,
    /// Pointers between the base and the one to the vector of blocks.
    pub vector_pointers: u8,
    /// The relocation that asks for a variable's distance from the base.
    pub distance_relocation: u32,
    /// The relocation that asks for the number of the module that holds a variable.
    pub module_relocation: u32,
    /// The relocation that asks for a descriptor, and the bytes from there to the word that gets the distance.
    pub descriptor_relocation: Option<(u32, u64)>,
    /// True when compilers describe thread-local variables without saying where they are.
    pub has_variables_without_place: bool,
}

/// On which side of a thread's base the program's own block of thread-local variables lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BlockSide {
    /// It ends at the base, rounded down to its alignment.
    Below,
    /// It starts above the head, rounded up to its alignment.
    Above,
}

/// A board that the full-system emulator knows, set up so that nothing random reaches the guest.
#[derive(PartialEq, Eq, Debug)]
pub struct Board {
    /// The emulator's command.
    pub emulator: &'static str,
    /// The Debian package that holds it.
    pub package: &'static str,
    /// The Fedora package that holds it.
    pub fedora_package: &'static str,
    /// Options that choose board and processor.
    pub options: &'static [(&'static str, &'static str)],
    /// The serial console, as the kernel calls it.
    pub console: &'static str,
    /// Additional arguments for the kernel's command line, such as a trusted clock. May be empty.
    pub cmdline: &'static str,
    /// Memory in MiB that the board can have at most.
    pub max_memory_mib: u32,
    /// Physical addresses at which its memory begins and that are certain to follow each other.
    pub memory: std::ops::Range<u64>,
    /// The emulator's first version, major and minor, under which several processors share one clock that counts
    /// instructions, so that runs repeat to the bit.
    pub counts_time_on_several_cpus_since: (u32, u32),
}
