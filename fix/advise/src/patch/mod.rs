//! Changes of texts: members in another order, marks of groups, values by position, and the diff of all.

pub mod rewrite;

pub(crate) mod diff;
pub(crate) mod doc_comment;
pub(crate) mod group_text;
pub(crate) mod line_edits;
pub(crate) mod text_edits;
pub(crate) mod value_exchange;
pub(crate) mod value_lines;

pub use diff::{apply, diff_of_texts, unified_diff};
