//! The report of a study of placement: one table of all candidates, the confirmed one, and the words that use it.

mod page;
mod report;
mod text;

pub use page::placement_page;
pub use report::{Action, CandidateReport, Change, Confirmed, ConfirmedInput, NotTried, PlacementReport};
pub use text::placement_text;
