//! The findings of `lineup find`: in words, for the terminal, and as a page.

mod allocations;
mod contexts;
mod owners;
mod page;
mod placements;
mod rows;
mod stacks;
mod text;
pub mod words;

pub use page::find_page;
pub use text::find_text;
