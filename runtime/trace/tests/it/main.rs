//! Every integration test of this crate, in one program.

mod attribution;
mod hdr;
mod reader;
