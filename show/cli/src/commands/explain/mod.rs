//! `lineup explain`: the data and code that recorded calls touched.

mod args;
mod brief;
mod code;
mod exports;
mod full;
mod page;
mod parts;
mod regions;
mod run;
mod samples;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
