//! Every integration test of this crate, in one program.

mod accuracy;
mod catalog;
mod fields;
mod instructions;
mod kernel_code;
mod naming;
mod pieces;
mod recorded;
