//! Every integration test of this crate, in one program.

mod protocol;
mod whole;
