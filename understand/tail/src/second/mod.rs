//! The second tail: calls that execute more instructions than usual, and the functions that ran in them.

mod class;
mod functions;
mod second_tail;
mod split;

pub use class::{Class, ClassFound};
pub use functions::FunctionFound;
pub use second_tail::{InnerRegion, SecondTail, second_tail, unusual_above};
pub use split::Means;
