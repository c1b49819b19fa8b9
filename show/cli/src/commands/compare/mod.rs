//! `lineup compare`: several commands side by side, in mirrored blocks.

mod args;
mod csv;
mod fail_if;
mod json;
mod links;
mod markdown;
mod printed_table;
mod report;
mod run;
mod view;

pub(crate) use args::Compare;
pub(crate) use run::run;
