//! Reports as text: tables for a terminal, plain columns for a pipe.

mod study;
mod table;

pub use study::study_text;
pub use table::{Align, Table};

/// For whom the text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextStyle {
    /// A person at a terminal of so many columns: tables have rules and long cells wrap.
    Terminal {
        /// The terminal's width in characters.
        columns: u16,
    },
    /// A pipe: aligned columns without rules, one row a line however long.
    Plain,
}
