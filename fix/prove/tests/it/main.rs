//! Every integration test of this crate, in one program.

mod compare;
mod effects;
mod proof;
