//! Every integration test of this crate, in one program.

mod compare;
mod connections;
mod effects;
mod proof;
