//! Registers that help an instruction's logging.

use crate::machine::x86_64::assembly::Gpr;

/// Registers that an instruction does not use.
pub(super) struct Helpers {
    pub(super) free: Vec<Gpr>,
    /// One that has the program's value of the log's register.
    pub(super) own: Option<Gpr>,
    /// A borrowed one, whose value is not needed any more.
    pub(super) spare: Option<Gpr>,
}

impl Helpers {
    pub(super) fn of(used: u16) -> Helpers {
        // Registers that every instruction can name come last, and are taken first.
        const ALL: [u8; 14] = [14, 13, 12, 11, 10, 9, 8, 1, 0, 2, 5, 3, 6, 7];
        let free = ALL.into_iter().filter(|number| used & 1 << number == 0).map(Gpr).collect();
        Helpers { free, own: None, spare: None }
    }

    pub(super) fn take(&mut self) -> Gpr {
        // No instruction uses more than some of fourteen.
        self.free.pop().unwrap_or(Gpr(7))
    }
}
