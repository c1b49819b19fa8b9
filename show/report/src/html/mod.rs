//! Reports as one HTML page that needs nothing but itself.

mod call_times;
mod code;
mod comparison;
mod elements;
mod guest;
mod lines;
mod map;
mod optimisers;
mod page;
mod proof;
mod proposal;
mod sched;
mod study;

pub use comparison::{ComparisonPage, comparison_page};
pub(crate) use elements::{NAME_CHARACTERS, name, scroll};
pub(crate) use map::{legend, letters, one_map};
pub use page::{Section, page};
pub use sched::{sched_page, sched_sweep_page};
pub use study::study_page;
