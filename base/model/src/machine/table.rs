//! All machines, and where the description of each is.

use super::description::{Description, Machine};
use super::{aarch64, arm, i386, x86_64};
use std::fmt;

impl Machine {
    /// All machines.
    pub const ALL: [Machine; 4] = [Machine::X86_64, Machine::I386, Machine::Arm, Machine::AArch64];

    /// The facts about this machine.
    pub const fn description(self) -> &'static Description {
        match self {
            Machine::X86_64 => &x86_64::DESCRIPTION,
            Machine::I386 => &i386::DESCRIPTION,
            Machine::Arm => &arm::DESCRIPTION,
            Machine::AArch64 => &aarch64::DESCRIPTION,
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

    /// True when the machine that this code runs on runs such programs itself.
    pub fn is_host(self) -> bool {
        self.description().name == std::env::consts::ARCH
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
