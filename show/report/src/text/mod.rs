//! Reports as text: tables for a terminal, plain columns for a pipe.

mod code;
mod first_screen;
mod guest;
mod hints;
mod optimisers;
mod screen;
mod study;
mod table;
mod wrap;

pub use screen::{Extent, SCREEN_LINES, screen};
pub use study::{levers_text, study_text};
pub use table::{Align, Table};

/// The extent of a report, and its reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Telling {
    /// For whom.
    pub style: TextStyle,
    /// All of it; else only the first screen: at most 40 lines of 80 characters.
    pub is_full: bool,
    /// Also the figures of data models that were not recorded.
    pub all_data_models: bool,
}

/// For whom the text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextStyle {
    /// A person at a terminal of this many columns: tables have rules and long cells wrap.
    Terminal {
        /// The terminal's width in characters.
        columns: u16,
    },
    /// A pipe: aligned columns without rules, one row a line however long.
    Plain,
}
