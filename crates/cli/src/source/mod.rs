//! The user's source folder: scratch copies, its text, and the compiler as the judge of candidates.

pub(crate) mod judge;
pub(crate) mod scratch;
pub(crate) mod texts;
