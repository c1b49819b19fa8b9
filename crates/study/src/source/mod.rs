//! The user's source folder: scratch copies, its text, and the compiler as the judge of candidates.

mod compiler_calls;
pub mod judge;
pub mod meaning;
pub mod scratch;
pub mod texts;
