//! Standard output and standard error: progress, errors, figures, help.

pub(crate) mod csv;
pub(crate) mod errors;
pub(crate) mod examples;
pub(crate) mod failed_runs;
pub(crate) mod help_groups;
pub(crate) mod outcome;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod typed_command;
pub(crate) mod version;
