//! x86-64, after the System V ABI's supplement for it.

use crate::machine::description::{
    BlockSide, Board, CodeMachine, Description, EmulatorRegisters, Machine, ReturnAddress, ThreadAbi,
};

pub(super) const DESCRIPTION: Description = Description {
    name: "x86_64",
    file_code: 0,
    elf_machine: 62,
    code: Some(CodeMachine::X86_64),
    pointer_bytes: 8,
    max_scalar_align_bytes: 16,
    long_double_bytes: 16,
    counterpart: Machine::Arm,
    // Figure 3.36: rdi, rsi, rdx, rcx, r8, r9.
    argument_registers: &[5, 4, 1, 2, 8, 9],
    emulator_registers: EmulatorRegisters {
        stack_pointer: "rsp",
        thread_base: "fs_base",
        cpu_base: "gs_base",
        arguments: &["rdi", "rsi", "rdx", "rcx", "r8", "r9"],
    },
    return_address: ReturnAddress::OnStack,
    callee_may_pop: false,
    threads: ThreadAbi {
        block: BlockSide::Below,
        // Up to the guards of stack and pointers.
        head_pointers: 7,
        vector_pointers: 1,
        distance_relocation: 18,
        module_relocation: 16,
        descriptor_relocation: Some((36, 8)),
        has_variables_without_place: false,
    },
    triplet: "x86_64-linux-gnu",
    program_emulator: "qemu-x86_64",
    sysroot: "/usr/x86_64-linux-gnu",
    board: Some(&Board {
        emulator: "qemu-system-x86_64",
        package: "qemu-system-x86",
        fedora_package: "qemu-system-x86-core",
        // Without the instructions for random numbers.
        options: &[("-cpu", "max,-rdrand,-rdseed")],
        console: "ttyS0",
        cmdline: "tsc=reliable",
        max_memory_mib: 65_536,
        memory: 0..2 << 30,
        // QEMU 7.2 does not bring up a second processor so, 10.0 does; 8.2 and 9.2 were tried in real time alone.
        counts_time_on_several_cpus_since: (10, 0),
    }),
};
