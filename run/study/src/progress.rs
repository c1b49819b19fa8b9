//! Progress reports to a waiting user. The caller decides how to show them.

/// Hears of the stages of long work.
pub trait Progress: Sync {
    /// A stage begins, and the one before it has ended.
    fn stage(&self, what: &str);

    /// The stage has reached `done` of `total`, in a unit of its own.
    fn advance(&self, done: u64, total: u64);

    /// A line that is not part of any stage: a guest's console, a remark.
    fn line(&self, text: &str);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn stage(&self, _what: &str) {}

    fn advance(&self, _done: u64, _total: u64) {}

    fn line(&self, _text: &str) {}
}
