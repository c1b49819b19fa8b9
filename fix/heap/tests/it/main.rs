//! Every integration test of this crate, in one program.

mod faults;
mod model;
mod place;
mod profiles;
mod programs_of_others;
mod sites;
