//! Recordings of calls: reading them, the debug information of their files, what commands show of them.

pub(crate) mod debug_info;
pub(crate) mod file_mark;
pub(crate) mod module_types;
pub(crate) mod report;
pub(crate) mod survey;
pub(crate) mod usage;
