//! 32-bit x86, after the System V ABI's supplement for it.

use crate::machine::description::{
    BlockSide, CodeMachine, Description, EmulatorRegisters, Machine, ReturnAddress, ThreadAbi,
};

pub(super) const DESCRIPTION: Description = Description {
    name: "i386",
    file_code: 1,
    elf_machine: 3,
    code: Some(CodeMachine::I386),
    pointer_bytes: 4,
    max_scalar_align_bytes: 4,
    long_double_bytes: 12,
    counterpart: Machine::X86_64,
    argument_registers: &[],
    emulator_registers: EmulatorRegisters {
        stack_pointer: "esp",
        thread_base: "gs_base",
        cpu_base: "fs_base",
        arguments: &[],
    },
    return_address: ReturnAddress::OnStack,
    callee_may_pop: true,
    threads: ThreadAbi {
        block: BlockSide::Below,
        // Up to the guards of stack and pointers.
        head_pointers: 7,
        vector_pointers: 1,
        distance_relocation: 14,
        module_relocation: 35,
        descriptor_relocation: Some((41, 4)),
        has_variables_without_place: false,
    },
    triplet: "i386-linux-gnu",
    program_emulator: "qemu-i386",
    sysroot: "/usr/i686-linux-gnu",
    board: None,
};
