//! The cost of a run that nothing records.

/// A run at the program's own speed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunAlone {
    /// Cycles of the processor, the system's for this program among them; 0 where they are not known.
    pub cycles: u64,
    /// Page faults that needed no disk.
    pub page_faults: u64,
}
