//! The findings of `lineup find`, in words and as a page.

mod page;
mod stacks;
pub mod words;

pub use page::find_page;
