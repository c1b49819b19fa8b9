//! 32-bit Arm, after Arm's procedure call standard (AAPCS) and its ELF supplement.

use crate::machine::description::{
    BlockSide, Board, CodeMachine, Description, EmulatorRegisters, Machine, ReturnAddress, ThreadAbi,
};

pub(super) const DESCRIPTION: Description = Description {
    name: "arm",
    file_code: 2,
    elf_machine: 40,
    code: Some(CodeMachine::Arm),
    pointer_bytes: 4,
    max_scalar_align_bytes: 8,
    long_double_bytes: 8,
    counterpart: Machine::AArch64,
    argument_registers: &[0, 1, 2, 3],
    emulator_registers: EmulatorRegisters {
        stack_pointer: "sp",
        thread_base: "TPIDRURO",
        cpu_base: "TPIDRPRW",
        arguments: &["r0", "r1", "r2", "r3"],
    },
    return_address: ReturnAddress::InRegister,
    callee_may_pop: false,
    threads: ThreadAbi {
        block: BlockSide::Above,
        head_pointers: 2,
        vector_pointers: 0,
        distance_relocation: 19,
        module_relocation: 17,
        descriptor_relocation: None,
        has_variables_without_place: false,
    },
    triplet: "arm-linux-gnueabihf",
    program_emulator: "qemu-arm",
    sysroot: "/usr/arm-linux-gnueabihf",
    board: Some(&Board {
        emulator: "qemu-system-arm",
        package: "qemu-system-arm",
        fedora_package: "qemu-system-arm-core",
        // Without random seeds in the device tree.
        options: &[("-M", "virt,dtb-randomness=off"), ("-cpu", "cortex-a15")],
        console: "ttyAMA0",
        cmdline: "",
        max_memory_mib: 2048,
        memory: 1 << 30..3 << 30,
        counts_time_on_several_cpus_since: (7, 1),
    }),
};
