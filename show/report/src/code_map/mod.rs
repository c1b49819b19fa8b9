//! Executed code as a map: functions as rows of lines, and the pages that they lie on.

mod drawing;
mod page;

pub use page::{CodePage, code_page};
