//! All machines, and where the description of each is.

mod aarch64;
mod arm;
mod i386;
mod riscv64;
mod x86_64;

use crate::machine::description::{CodeMachine, Description, Machine};
use std::fmt;

impl Machine {
    /// All machines.
    pub const ALL: [Machine; 5] =
        [Machine::X86_64, Machine::I386, Machine::AArch64, Machine::Arm, Machine::RiscV64];

    /// The facts about this machine.
    pub const fn description(self) -> &'static Description {
        match self {
            Machine::X86_64 => &x86_64::DESCRIPTION,
            Machine::I386 => &i386::DESCRIPTION,
            Machine::Arm => &arm::DESCRIPTION,
            Machine::AArch64 => &aarch64::DESCRIPTION,
            Machine::RiscV64 => &riscv64::DESCRIPTION,
        }
    }

    /// The machine of a name, see [`Description::name`].
    pub fn named(name: &str) -> Option<Machine> {
        Self::ALL.into_iter().find(|machine| machine.description().name == name)
    }

    /// The machine of a number in recordings, see [`Description::file_code`].
    pub fn of_file_code(code: u8) -> Option<Machine> {
        Self::ALL.into_iter().find(|machine| machine.description().file_code == code)
    }

    /// The machine of an ELF file's `e_machine`.
    pub fn of_elf(elf_machine: u16) -> Option<Machine> {
        Self::ALL.into_iter().find(|machine| machine.description().elf_machine == elf_machine)
    }

    /// The names of the machines whose kernels boot on an emulated board, as part of a sentence.
    pub fn with_boards() -> String {
        let boots = |machine: &Machine| machine.description().board.is_some();
        let names: Vec<&str> = Self::ALL
            .iter()
            .filter(|machine| boots(machine))
            .map(|machine| machine.description().name)
            .collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => names.concat(),
        }
    }

    /// True when the machine that this code runs on runs such programs itself.
    pub fn is_host(self) -> bool {
        self.description().name == std::env::consts::ARCH
    }
}

impl CodeMachine {
    /// The machine.
    pub const fn machine(self) -> Machine {
        match self {
            Self::X86_64 => Machine::X86_64,
            Self::I386 => Machine::I386,
            Self::Arm => Machine::Arm,
            Self::AArch64 => Machine::AArch64,
        }
    }

    /// The facts about it.
    pub const fn description(self) -> &'static Description {
        self.machine().description()
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description().name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_lead_back_to_their_machine() {
        for machine in Machine::ALL {
            let described = machine.description();
            assert_eq!(Machine::named(described.name), Some(machine));
            assert_eq!(Machine::of_file_code(described.file_code), Some(machine));
            assert_eq!(Machine::of_elf(described.elf_machine), Some(machine));
            assert!(described.code.is_none_or(|code| code.machine() == machine));
            assert_ne!(described.counterpart.description().pointer_bytes, described.pointer_bytes);
        }
        assert_eq!(Machine::named("mips"), None);
        assert_eq!(Machine::of_file_code(200), None);
    }

    #[test]
    fn this_machine_runs_its_own_programs_only() {
        let hosts = Machine::ALL.into_iter().filter(|machine| machine.is_host()).count();
        assert_eq!(hosts, usize::from(Machine::named(std::env::consts::ARCH).is_some()));
    }
}
