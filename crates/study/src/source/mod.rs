//! The user's source folder: scratch copies, its text, and the compiler as the judge of candidates.

pub mod judge;
pub mod scratch;
pub mod texts;
