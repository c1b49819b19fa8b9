//! The effects of threads on each other's caches: the value that `lineup threads` shows, for the terminal, as JSON and as a
//! page.

mod kernel_text;
mod page;
mod report;
mod task_page;
mod text;
mod words;

pub use page::threads_page;
pub use report::ThreadsReport;
pub use text::threads_text;
pub use words::serialising_sentence;
