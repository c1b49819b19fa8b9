//! 64-bit RISC-V, after its ELF psABI: the data model LP64 with hardware floating point (LP64D).

use crate::machine::description::{
    BlockSide, Description, EmulatorRegisters, Machine, ReturnAddress, ThreadAbi,
};

pub(super) const DESCRIPTION: Description = Description {
    name: "riscv64",
    file_code: 4,
    elf_machine: 243,
    code: None,
    pointer_bytes: 8,
    max_scalar_align_bytes: 16,
    long_double_bytes: 16,
    counterpart: Machine::Arm,
    // a0 to a7 are x10 to x17.
    argument_registers: &[10, 11, 12, 13, 14, 15, 16, 17],
    emulator_registers: EmulatorRegisters {
        stack_pointer: "sp",
        thread_base: "tp",
        cpu_base: "tp",
        arguments: &["a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"],
    },
    return_address: ReturnAddress::InRegister,
    callee_may_pop: false,
    threads: ThreadAbi {
        // The pointers that the C library keeps lie below the base.
        block: BlockSide::Above,
        head_pointers: 0,
        vector_pointers: 0,
        distance_relocation: 11,
        module_relocation: 7,
        descriptor_relocation: Some((12, 8)),
        has_variables_without_place: false,
    },
    triplet: "riscv64-linux-gnu",
    program_emulator: "qemu-riscv64",
    sysroot: "/usr/riscv64-linux-gnu",
    board: None,
};
