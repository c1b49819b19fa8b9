//! One symbol of a kernel, from any source.

/// One symbol of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelSymbol {
    /// Its link address.
    pub address: u64,
    /// Its letter as `nm` prints it: `T`, `t`, `D`, …
    pub kind: char,
    /// Its name, without suffixes taken off.
    pub name: String,
}

impl KernelSymbol {
    /// True for code.
    pub fn is_code(&self) -> bool {
        matches!(self.kind, 't' | 'T' | 'w' | 'W')
    }
}
