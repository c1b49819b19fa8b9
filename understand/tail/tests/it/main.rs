//! Every integration test of this crate, in one program.

mod calls;
mod synthetic_calls;
