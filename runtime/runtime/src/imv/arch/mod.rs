//! The parts that differ by architecture: the bytes of a site, and the effect of its new instruction on registers.
//!
//! A site is born as a read of the ordinary variable (*dormant form*), so it is right before it is registered and
//! wherever patching is forbidden. Patching turns it into an instruction that carries the value (*immediate form*).
//!
//! `--cfg lineup_generic` takes the form for machines without an encoding on every machine: for tools that check the
//! program's memory accesses and do not know about changing instructions.

#[cfg(all(target_arch = "aarch64", not(lineup_generic)))]
mod aarch64;
#[cfg(any(not(any(target_arch = "aarch64", target_arch = "x86_64")), lineup_generic))]
mod generic;
#[cfg(all(target_arch = "x86_64", not(lineup_generic)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(lineup_generic)))]
pub(super) use aarch64::{TRAP, analyse, emulate, encode, flush_code, trapped_at};
#[cfg(any(not(any(target_arch = "aarch64", target_arch = "x86_64")), lineup_generic))]
pub(super) use generic::{TRAP, analyse, emulate, encode, flush_code, trapped_at};
#[cfg(all(target_arch = "x86_64", not(lineup_generic)))]
pub(super) use x86_64::{TRAP, analyse, emulate, encode, flush_code, trapped_at};

/// The longest instruction that a site may hold.
pub(super) const SITE_BYTES_MAX: usize = 16;

/// A site's use of its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Puts it in a register.
    Value,
    /// Jumps when it is not zero.
    Branch,
}

/// The form of a site's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// As emitted: it reads the ordinary variable.
    Dormant,
    /// A change stopped half-way: the value that it reads may be an old one until all of it is written again.
    Partial,
    /// An instruction that carries the value.
    Immediate,
}

/// A place in the code that carries a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    /// Address of the instruction.
    pub(super) address: usize,
    /// The address of the ordinary variable of the site's image.
    pub(super) cell: usize,
    /// Size of the variable: 1, 2, 4 or 8.
    pub(super) size_bytes: u8,
    /// Value or branch.
    pub(super) kind: Kind,
    /// Branch: its target when the value is not zero. Value: the out-of-line dormant form, if any.
    #[cfg_attr(lineup_generic, expect(dead_code, reason = "nothing is encoded"))]
    pub(super) target: usize,
    /// Number of the register that receives the value.
    pub(super) register: u8,
    /// The form of its bytes.
    pub(super) form: Form,
    /// Its bytes as the macros emitted them.
    pub(super) dormant: [u8; SITE_BYTES_MAX],
}

impl Site {
    /// True when it must be written for its reads to follow the variable.
    pub(super) fn is_patched(&self) -> bool {
        self.form != Form::Dormant
    }

    /// The value in the ordinary variable, which every set writes before it touches code.
    pub(super) fn cell_value(&self) -> u64 {
        super::cell::load(self.cell, self.size_bytes)
    }
}

/// One write of at most eight bytes. When `bytes` is a power of two, `address` is a multiple of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Store {
    pub(super) address: usize,
    pub(super) value: u64,
    pub(super) bytes: u8,
}

/// The immediate form of a site for one value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    /// The instruction, and the literal behind it if it has one.
    pub(super) bytes: [u8; SITE_BYTES_MAX],
    /// The number of valid `bytes`.
    pub(super) len: usize,
    /// Stores that make the change when each is atomic, in order; `None` when only the trap protocol can make it.
    pub(super) direct: Option<([Store; 2], usize)>,
}
