//! 64-bit Arm, after Arm's procedure call standard (AAPCS64) and its ELF supplement.

use crate::machine::description::{
    BlockSide, Board, CodeMachine, Description, EmulatorRegisters, Machine, ReturnAddress, ThreadAbi,
};

pub(super) const DESCRIPTION: Description = Description {
    name: "aarch64",
    file_code: 3,
    elf_machine: 183,
    code: Some(CodeMachine::AArch64),
    pointer_bytes: 8,
    max_scalar_align_bytes: 16,
    long_double_bytes: 16,
    counterpart: Machine::Arm,
    argument_registers: &[0, 1, 2, 3, 4, 5, 6, 7],
    emulator_registers: EmulatorRegisters {
        stack_pointer: "sp",
        thread_base: "TPIDR_EL0",
        cpu_base: "TPIDR_EL1",
        arguments: &["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"],
    },
    return_address: ReturnAddress::InRegister,
    callee_may_pop: false,
    threads: ThreadAbi {
        block: BlockSide::Above,
        head_pointers: 2,
        vector_pointers: 0,
        distance_relocation: 1030,
        module_relocation: 1028,
        descriptor_relocation: Some((1031, 8)),
        has_variables_without_place: true,
    },
    triplet: "aarch64-linux-gnu",
    program_emulator: "qemu-aarch64",
    sysroot: "/usr/aarch64-linux-gnu",
    board: Some(&Board {
        emulator: "qemu-system-aarch64",
        package: "qemu-system-arm",
        fedora_package: "qemu-system-aarch64-core",
        // Without random seeds in the device tree.
        options: &[("-M", "virt,dtb-randomness=off"), ("-cpu", "cortex-a72")],
        console: "ttyAMA0",
        cmdline: "",
        max_memory_mib: 65_536,
        memory: 1 << 30..256 << 30,
        counts_time_on_several_cpus_since: (7, 1),
    }),
};
