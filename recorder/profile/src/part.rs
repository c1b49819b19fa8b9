//! The part that a batch has in a window.

/// Whether a batch is part of a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The first of the window with this number.
    First(u64),
    /// A later one.
    Later(u64),
}
