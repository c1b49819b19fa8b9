//! Processes of a recorded program, and the address spaces that separate their memory.

use crate::access::ProcessId;

/// One process of a recorded program, from its start or its last `exec` on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Process {
    /// Its number.
    pub id: ProcessId,
    /// The way it was created.
    pub origin: Origin,
    /// The number that the system gave it.
    pub system_id: u32,
    /// Position in the recording's global order of events at which it began.
    pub began_at: u64,
    /// The file of the program that it runs.
    pub program: String,
}

/// The way a process was created.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// It is the first process.
    Started,
    /// This process forked it off: it began with a copy of its memory.
    Forked(ProcessId),
    /// This process became it by `exec`: it began with none of its memory.
    Executed(ProcessId),
}

/// The memory of a program from `exec` on, shared by the processes it forks: 0 is the first program's.
///
/// Programs that run at the same addresses touch different memory. So a recorded runtime address carries the number of
/// its space in its upper 16 bits, which no address of a program needs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Debug)]
pub struct AddressSpace(pub u16);

/// Bits of a runtime address below the number of its space.
const ADDRESS_BITS: u32 = 48;

/// A pointer-sized value below this is taken for a number: nothing is mapped at the lowest addresses.
const LOWEST_POINTER: u64 = 0x1_0000;

impl AddressSpace {
    /// The space that a recorded runtime address belongs to.
    pub fn of(address: u64) -> Self {
        AddressSpace((address >> ADDRESS_BITS) as u16)
    }

    /// The recorded runtime address of an address in this space.
    pub fn place(self, address: u64) -> u64 {
        address.wrapping_add(u64::from(self.0) << ADDRESS_BITS)
    }

    /// As [`AddressSpace::place`], for a value in memory that need not be an address.
    pub fn place_value(self, value: u64) -> u64 {
        let is_pointer = (LOWEST_POINTER..1 << ADDRESS_BITS).contains(&value);
        if is_pointer { self.place(value) } else { value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_two_spaces_never_meet_and_numbers_stay() {
        let (one, other) = (AddressSpace(0), AddressSpace(7));
        let address = 0x5555_5555_4000;
        assert_eq!((one.place(address), AddressSpace::of(one.place(address))), (address, one));
        assert_ne!(other.place(address), address);
        assert_eq!(AddressSpace::of(other.place(address)), other);
        assert_eq!(other.place_value(address), other.place(address));
        for number in [0, 12, u64::MAX, (-64_i64).cast_unsigned()] {
            assert_eq!(other.place_value(number), number);
        }
    }
}
