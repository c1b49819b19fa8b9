//! Values in; terminal text, JSON and one offline HTML page out.
//!
//! Design constraints:
//!
//! * No figure that a finding rests on is computed here: figures come in as values of [`study`] and are shown. The one
//!   exception is the geometry of line maps, [`study::ObjectLines::new`].
//! * Nothing is printed or written here: every output is a `String`.
//! * A page needs nothing but itself: no script, no font, no image, no network. Its policy forbids them.
//! * Every text is hostile. HTML is escaped where it is made (`maud`), and characters that steer a terminal or
//!   turn the direction of text are spelled out ([`visible`]).
//! * Colour never stands alone: a pattern, a letter or a word says the same.
//! * Unobserved is shown as `–`, never as zero.
//!
//! ```
//! use lineup_report::study::StudyReport;
//! let report = StudyReport::new("demo");
//! assert!(report.to_json()?.contains("\"schema\": \"lineup.study/1\""));
//! assert!(lineup_report::html::study_page(&report).starts_with("<!DOCTYPE html>"));
//! # Ok::<(), lineup_report::ReportError>(())
//! ```

pub mod calls;
pub mod chart;
pub mod code_map;
mod commit_message;
pub mod compact;
mod distributions;
pub mod effects;
mod error;
pub mod exports;
pub mod find;
pub mod html;
pub mod placement;
pub mod study;
pub mod text;
pub mod threads;
pub mod trace;
pub mod visible;

pub use commit_message::{
    commit_message, hints_message, is_anything_better, kernel_order_message, series_message,
};
pub use error::ReportError;
