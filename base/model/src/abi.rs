//! Machines and data models: they decide sizes and alignments.

pub use crate::machine::Machine;

/// The machine and the pointer width, which determine the size and alignment of C types.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Abi {
    /// The processor architecture.
    pub machine: Machine,
    /// The size of a pointer in bytes: 4 or 8.
    pub pointer_bytes: u8,
}

impl Abi {
    /// LP64 on x86-64.
    pub const X86_64: Abi = Abi::usual(Machine::X86_64);
    /// LP64 on 64-bit Arm.
    pub const AARCH64: Abi = Abi::usual(Machine::AArch64);
    /// ILP32 on 32-bit Arm (AAPCS): 8-byte scalars are aligned to 8.
    pub const ARM: Abi = Abi::usual(Machine::Arm);
    /// ILP32 on 32-bit x86 (System V): 8-byte scalars are aligned to 4 inside aggregates.
    pub const I386: Abi = Abi::usual(Machine::I386);

    /// The usual ABI of a machine.
    pub const fn usual(machine: Machine) -> Abi {
        Abi { machine, pointer_bytes: machine.description().pointer_bytes }
    }

    /// The name of the data model: `LP64` or `ILP32`.
    pub fn data_model(self) -> &'static str {
        if self.pointer_bytes == 8 { "LP64" } else { "ILP32" }
    }

    /// The size of C's `long` in bytes.
    pub fn long_bytes(self) -> u64 {
        u64::from(self.pointer_bytes)
    }

    /// The alignment of a scalar of `size_bytes` inside an aggregate.
    pub fn scalar_align(self, size_bytes: u64) -> u64 {
        let most = self.machine.description().max_scalar_align_bytes;
        size_bytes.clamp(1, most).next_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_of_any_size_have_an_alignment() {
        assert_eq!([0, 1, 3, 8, 16, 32].map(|bytes| Abi::X86_64.scalar_align(bytes)), [1, 1, 4, 8, 16, 16]);
        assert_eq!(Abi::X86_64.scalar_align(u64::MAX), 16);
        assert_eq!(Abi::I386.scalar_align(u64::MAX), 4);
    }
}
